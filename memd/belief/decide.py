"""Decide for two similar memories: the newer supersedes the older, or an edge relates them.

A cosine makes a candidate pair, never a decision. The newer supersedes the older only if the texts agree, or
it gives the same thing another value, and every rule below permits it. Else both stay and get an edge:
`contradicts` if they cannot both hold, `similar_to` otherwise. Pairs of two projects, of two git branches or
of one episode are left alone.

A supersession must never make a memory harder to find, so the newer one must be found wherever the
older one was: by its kind, its topic key, its tier and for as long.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from memd.belief.changes import ValueChange, find_replaced_order, find_value_change, says_turn
from memd.belief.claims import Claims, parse_claims, parse_statement, statement_text
from memd.belief.compare import Agreement, Comparison, Difference, compare, compare_claims
from memd.belief.fidelity import tells_whole
from memd.belief.notes import split_note
from memd.belief.polarity import WORDS
from memd.belief.standing import find_objection, holds_alike
from memd.belief.turns import find_ended, find_exchanged, find_moved
from memd.models import Draft, EdgeType, Kind, Summary, Tier
from memd.text import content_stems, normalised

CLAIM_KINDS = frozenset({Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT})
"""Kinds that state how things are or shall be, so that two of them can contradict each other."""
VALUE_KINDS = CLAIM_KINDS | {Kind.NOTE}
"""Kinds whose values can change: a note is a claim without a kind."""
_ORDER_KINDS = frozenset({Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE})
MAY_HIDE: Mapping[Kind, frozenset[Kind]] = {
    kind: frozenset({kind}) | ({Kind.NOTE} if kind in CLAIM_KINDS | {Kind.DISCOVERY} else set())
    for kind in Kind
} | {
    Kind.INSTRUCTION: frozenset({Kind.INSTRUCTION, Kind.PREFERENCE, Kind.NOTE}),
    Kind.PREFERENCE: frozenset({Kind.PREFERENCE, Kind.INSTRUCTION, Kind.NOTE}),
}
"""Kind of the newer memory → the kinds that it may hide: its own, and a note, which is a claim without
a kind. Instruction and preference may hide each other, because people word the one as the other. A
memory of any other kind would vanish from a search for its kind."""
_MEASURE_ASPECTS = frozenset({"number", "value", "version", "date"})
_DENIAL_ASPECTS = frozenset({"negation", "qualifier"})
_OPPOSITE_ASPECTS = frozenset({"antonym", "direction"})
_NAME_ASPECTS = frozenset({"path", "identifier"})
_SAME_SUBJECT_OVERLAP_MIN = 0.7
"""Share of content words from which two texts that differ in a value have the same subject."""
_SAME_WORDS_OVERLAP_MIN = 0.9
"""The same for a word that only one text has, such as `not`: from here it denies what both state."""
_TWINS_SHARED_MIN = 0.6
"""The share of the words of each of two texts of one quote that the other has, too: else they are two parts of it."""
_OUTRANKED = "speaker"
"""The aspect of a newer memory whose speaker may not replace the older one."""
_TIER_RANKS = {tier: rank for rank, tier in enumerate(Tier)}
_NEVER_MS = 2**63
_SHOWN_FILES_MAX = 3
_SENTENCES_CACHED = 1_024
"""Pairs of sentences of which it is kept whether one changes the other: each start of a project compares nearly the same."""


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """Two similar memories, in any order, and the cosine of their vectors."""

    one: Summary
    other: Summary
    cosine: float | None
    """None if they have one normalised text, whatever their cosine."""
    space: str = ""
    """The learned space of the cosine; empty for the space that is always complete."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The newer memory `supersedes` the older one, `contradicts` it, or is `similar_to` it."""

    newer_id: int
    older_id: int
    type: EdgeType
    cosine: float | None
    comparison: Comparison
    space: str = ""
    change: ValueChange | None = None
    """The value that the newer one changes, if that is why it supersedes or contradicts."""

    @property
    def reason(self) -> str:
        """The decision's grounds in words."""
        return str(self.change) if self.change else self.comparison.reason

    @property
    def pair(self) -> tuple[int, int]:
        """The ids: (newer id, older id)."""
        return self.newer_id, self.older_id


def decide(pairs: Iterable[CandidatePair]) -> Iterator[Decision]:
    """Decide about each pair, the newest first; each decision takes about a millisecond.

    An older memory is superseded at most once, by the newest memory that may. Newer is what happened
    later, by (time, id); but what a lesser authority repeats is hidden by what it repeats.
    """
    superseded: set[int] = set()
    for newer, older, pair in _order_pairs(pairs):
        if older.id in superseded:
            continue
        comparison = _compare_memories(newer, older)
        change = find_change(newer, older)
        if change is None and _OUTRANKED in comparison.aspects:
            # A copy in a lesser authority is hidden by what it repeats.
            reverse = _compare_memories(older, newer)
            if reverse.agrees and newer.id not in superseded:
                newer, older, comparison = older, newer, reverse  # noqa: PLW2901  # the pair, turned
        type_ = (
            _change_type(newer, older, change) if change else _edge_type(newer, older, comparison)
        )
        if type_ is EdgeType.SUPERSEDES:
            superseded.add(older.id)
        # The same words in another relation do not make two memories similar.
        if pair.cosine is not None or type_ is not EdgeType.SIMILAR_TO:
            yield Decision(newer.id, older.id, type_, pair.cosine, comparison, pair.space, change)


def count_refusals(decisions: Iterable[Decision]) -> dict[str, int]:
    """Count the pairs that each aspect kept from a supersession."""
    refused = (one.comparison.aspects for one in decisions if one.type is not EdgeType.SUPERSEDES)
    return dict(Counter(itertools.chain.from_iterable(refused)))


def _order_pairs(pairs: Iterable[CandidatePair]) -> list[tuple[Summary, Summary, CandidatePair]]:
    """Return (newer, older, pair) of the pairs that may be decided, each once."""
    found = {}
    for pair in pairs:
        older, newer = sorted((pair.one, pair.other), key=_time_and_id)
        if _may_decide(newer, older):
            found[_time_and_id(newer), _time_and_id(older)] = (newer, older, pair)
    return [found[key] for key in sorted(found, reverse=True)]


def _time_and_id(summary: Summary) -> tuple[int, int]:
    return summary.at, summary.id


def _may_decide(newer: Summary, older: Summary) -> bool:
    episodes = {(one.session_id, one.episode) for one in (newer, older)}
    is_one_episode = newer.episode is not None and len(episodes) == 1
    return (
        newer.id != older.id
        and newer.project_id == older.project_id
        and newer.superseded_by is None
        and older.superseded_by is None
        and not is_one_episode
        and holds_alike(newer.tags, older.tags)
    )


def _compare_memories(newer: Summary, older: Summary) -> Comparison:
    """The comparison of the texts, with the objections of the rules below."""
    comparison = compare_claims(*_parse_both(older, newer))
    if objections := _find_objections(newer, older, comparison):
        differences = (*comparison.differences, *objections)
        return replace(comparison, agreement=Agreement.DIFFERS, differences=differences)
    return comparison


def _find_objections(
    newer: Summary, older: Summary, comparison: Comparison
) -> tuple[Difference, ...]:
    """Return why the newer may not hide the older although the texts agree."""
    files = sorted(set(older.files) - set(newer.files))[:_SHOWN_FILES_MAX]
    checks = (
        (older.pinned_at is not None, Difference("pinned", "", f"#{older.id}")),
        (newer.authority < older.standing,
         Difference(_OUTRANKED, older.standing.description, newer.authority.description)),
        (newer.author != older.author and find_objection(newer.authority, older, newer.author) is not None,
         Difference(_OUTRANKED, older.author or "you", newer.author or newer.authority.description)),
        (older.kind not in MAY_HIDE[newer.kind], Difference("kind", older.kind.value, newer.kind.value)),
        (older.topic_key not in {None, newer.topic_key},
         Difference("topic", older.topic_key or "", newer.topic_key or "")),
        (_TIER_RANKS[newer.tier] > _TIER_RANKS[older.tier],
         Difference("tier", older.tier.value, newer.tier.value)),
        ((newer.expires_at or _NEVER_MS) < (older.expires_at or _NEVER_MS),
         Difference("expiry", "", "the newer one expires first")),
        (bool(files), Difference("path", ", ".join(files), ", ".join(newer.files[:_SHOWN_FILES_MAX]))),
        (bool(comparison.lost), Difference("detail", "", "the older one says more")),
    )  # fmt: skip
    return tuple(difference for applies, difference in checks if applies)


def _parse_both(older: Summary, newer: Summary | Draft) -> tuple[Claims, Claims]:
    return parse_statement(older.title, older.body), parse_statement(newer.title, newer.body)


def ends(newer: Draft, older: Summary) -> bool:
    """Return whether a sentence ends what a memory says, whatever kind it would have."""
    turns = says_turn(f"{newer.title}\n{newer.body}")
    finders = (find_ended, find_moved)
    return any(one(*_parse_both(older, newer), turns=turns) is not None for one in finders)


def find_change(newer: Summary, older: Summary) -> ValueChange | None:
    """The value that the newer statement changes, if both state how things are."""
    if not {newer.kind, older.kind} <= VALUE_KINDS:
        return None
    are_orders = {newer.kind, older.kind} <= _ORDER_KINDS
    turns = says_turn(f"{newer.title}\n{newer.body}")
    is_decided = newer.kind is Kind.DECISION
    return _find_change(
        *_parse_both(older, newer), turns=turns, are_orders=are_orders, is_decided=is_decided
    )


@functools.lru_cache(_SENTENCES_CACHED)
def changes_sentence(older: str, newer: str) -> bool:
    """Return whether what the user says later gives what he said before another value, order or place."""
    claims = parse_claims(older), parse_claims(newer)
    change = _find_change(*claims, turns=says_turn(newer), are_orders=True)
    return change is not None and change.is_whole


def _find_change(
    older: Claims, newer: Claims, *, turns: bool, are_orders: bool, is_decided: bool = False
) -> ValueChange | None:
    change = find_value_change(older, newer)
    if change is None and are_orders:
        change = find_replaced_order(older, newer, turns=turns)
    if change is not None and change.is_whole:
        return change
    ended = find_ended(older, newer, turns=turns, is_decided=is_decided)
    others = (find_exchanged(older, newer), find_moved(older, newer, turns=turns), ended)
    whole = next((one for one in others if one is not None and one.is_whole), None)
    return whole or change or next(filter(None, others), None)


def _change_type(newer: Summary, older: Summary, change: ValueChange) -> EdgeType:
    """Return `supersedes` unless something else forbids it: a changed value excludes that both hold."""
    may_hide = (
        change.is_whole
        and find_objection(newer.authority, older, newer.author) is None
        and (older.pinned_at is None or newer.authority > older.standing)
        and older.topic_key in {None, newer.topic_key}
        and (newer.expires_at or _NEVER_MS) >= (older.expires_at or _NEVER_MS)
    )
    return EdgeType.SUPERSEDES if may_hide else EdgeType.CONTRADICTS


def _edge_type(newer: Summary, older: Summary, comparison: Comparison) -> EdgeType:
    if comparison.agrees:
        return EdgeType.SUPERSEDES
    is_one_topic = newer.topic_key is not None and newer.topic_key == older.topic_key
    is_one_subject = is_one_topic or (
        comparison.overlap >= _SAME_SUBJECT_OVERLAP_MIN
        and _NAME_ASPECTS.isdisjoint(comparison.aspects)
    )
    if {newer.kind, older.kind} <= CLAIM_KINDS and is_one_subject and _is_opposed(comparison):
        return EdgeType.CONTRADICTS
    return EdgeType.SIMILAR_TO


def _is_opposed(comparison: Comparison) -> bool:
    """Return whether a difference excludes that both hold; a value that only one text has seldom does."""
    is_same_words = comparison.overlap >= _SAME_WORDS_OVERLAP_MIN
    return any(
        one.aspect in _OPPOSITE_ASPECTS
        or (one.aspect in _MEASURE_ASPECTS and one.was and one.now)
        or (one.aspect in _DENIAL_ASPECTS and ((one.was and one.now) or is_same_words))
        for one in comparison.differences
    )


def are_twins(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether two memories, (title, body), say the same, or one is a proved note of the words that the other has.

    A note in other words is one of a sentence that it quotes whole and tells whole.
    """
    texts = [statement_text(*each) for each in (one, other)]
    if compare(*texts).is_equal:
        return True
    said = [split_note(body).said for _, body in (one, other)]
    if not any(said):
        return False
    quotes = [f" {normalised(quote or text)} " for quote, text in zip(said, texts, strict=True)]
    if not (quotes[0] in quotes[1] or quotes[1] in quotes[0]):
        return False
    shorter, longer = sorted(map(len, quotes))
    if not all(said) and shorter >= _TWINS_SHARED_MIN * longer:
        text, sentence = texts if said[0] else reversed(texts)
        if tells_whole(text, sentence):
            return True
    mains = (WORDS["reason"].split(title, maxsplit=1)[0] for title, _ in (one, other))
    mine, theirs = (frozenset(content_stems(main)) for main in mains)
    return len(mine & theirs) >= _TWINS_SHARED_MIN * max(len(mine), len(theirs))
