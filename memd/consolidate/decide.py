"""What becomes of two memories that look alike: one hides the other, or an edge says how they relate. Pure.

A cosine at or above the threshold makes a candidate, never a verdict. The newer supersedes the older
only if every rule below permits it; else the pair keeps both and gets an edge: `contradicts` when two
claims about the same thing cannot both hold, `similar_to` otherwise. Pairs of two projects, or of one
episode, are none of consolidation's business and get nothing.

A supersession must never make a memory harder to find than it was, so the newer one must be found
wherever the older one was: by its kind, its topic key, its trust and for as long.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memd.consolidate.claims import Claims, parse_claims
from memd.consolidate.compare import SWAPPED, Agreement, Comparison, Difference, compare_claims
from memd.models import EdgeType, Kind, Summary, Tier
from memd.text import one_line

CLAIM_KINDS = frozenset({Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT})
"""Kinds that say how things are or shall be, so that two of them can contradict each other."""
MAY_HIDE: Mapping[Kind, frozenset[Kind]] = {
    kind: frozenset({kind}) | ({Kind.NOTE} if kind in CLAIM_KINDS | {Kind.DISCOVERY} else set())
    for kind in Kind
} | {
    Kind.INSTRUCTION: frozenset({Kind.INSTRUCTION, Kind.PREFERENCE, Kind.NOTE}),
    Kind.PREFERENCE: frozenset({Kind.PREFERENCE, Kind.INSTRUCTION, Kind.NOTE}),
}
"""The newer one's kind → the kinds it may hide: its own; a note, which is a claim that nobody has typed
yet; and an instruction and a preference each other, because both tell the user's will and people word
the one as the other. Anything else would vanish from a search that asks for its kind."""
_MEASURES = frozenset({"number", "value", "version", "date"})
_DENIALS = frozenset({"negation", "qualifier"})
_OPPOSITES = frozenset({"antonym", "direction"})
_NAMES = frozenset({"path", "identifier"})
_SAME_SUBJECT = 0.7
"""Share of content words from which two texts that differ in a value are about the same thing."""
_SAME_WORDS = 0.9
"""The same from which a word that only one of them has, such as `not`, is about what both say."""
_TRUST = {tier: rank for rank, tier in enumerate(Tier)}
_FOREVER = 2**63


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """Two memories that look alike, in any order, and the cosine of their vectors."""

    one: Summary
    other: Summary
    cosine: float | None
    """None: they are of one form, whatever their cosine."""
    space: str = ""
    """Where they look alike, if it is a learned space."""


@dataclass(frozen=True, slots=True)
class Supersede:
    """The newer says all that the older says: hide the older."""

    newer_id: int
    older_id: int
    cosine: float | None
    guard: str
    """What the guards found, in words."""
    space: str = ""


@dataclass(frozen=True, slots=True)
class Relate:
    """Both stay. `a` is the newer one, and the edge goes from it."""

    a: int
    b: int
    type: EdgeType
    cosine: float | None
    finding: Comparison
    space: str = ""


Decision = Supersede | Relate


def decide(pairs: Iterable[CandidatePair]) -> list[Decision]:
    """One decision for each pair that is consolidation's business, the newest first."""
    return list(iterate_decisions(pairs))


def iterate_decisions(pairs: Iterable[CandidatePair]) -> Iterator[Decision]:
    """`decide`, one at a time: each takes about a millisecond.

    An older memory is hidden at most once, by the newest that may. Newer is what happened later, by
    (time, id).
    """
    readings: dict[int, Claims] = {}
    hidden: set[int] = set()
    for newer, older, pair in _newest_first(pairs):
        if older.id in hidden:
            continue
        finding = _finding(newer, older, readings)
        if finding.permits:
            hidden.add(older.id)
            yield Supersede(newer.id, older.id, pair.cosine, finding.reason, pair.space)
            continue
        type_ = _edge_type(newer, older, finding)
        # The same words in another relation are not alike for that alone.
        if pair.cosine is not None or type_ is EdgeType.CONTRADICTS:
            yield Relate(newer.id, older.id, type_, pair.cosine, finding, pair.space)


def join_text(title: str, body: str) -> str:
    """What a memory says: a title that only begins the text says nothing of its own, cut as it is."""
    begins = (
        one_line(body, len(body)).casefold().startswith(title.rstrip("…").casefold().strip())
    )
    return body if begins else f"{title}\n{body}"


def count_refusals(decisions: Sequence[Decision]) -> dict[str, int]:
    """Why pairs were kept apart: aspect → how many."""
    counts: dict[str, int] = {}
    for decision in decisions:
        if isinstance(decision, Relate):
            for aspect in decision.finding.aspects:
                counts[aspect] = counts.get(aspect, 0) + 1
    return counts


def _newest_first(
    pairs: Iterable[CandidatePair],
) -> list[tuple[Summary, Summary, CandidatePair]]:
    """(newer, older, pair) of the pairs that may be decided, each once."""
    found = {}
    for pair in pairs:
        older, newer = sorted((pair.one, pair.other), key=_when)
        if _is_our_business(newer, older):
            found[newer.id, older.id] = (newer, older, pair)
    return sorted(found.values(), key=lambda row: (_when(row[0]), _when(row[1])), reverse=True)


def _when(summary: Summary) -> tuple[int, int]:
    return summary.at, summary.id


def _is_our_business(newer: Summary, older: Summary) -> bool:
    is_one_episode = newer.episode is not None and (newer.session_id, newer.episode) == (
        older.session_id,
        older.episode,
    )
    return (
        newer.id != older.id
        and newer.project_id == older.project_id
        and newer.superseded_by is None
        and older.superseded_by is None
        and not is_one_episode
    )


def _finding(newer: Summary, older: Summary, readings: dict[int, Claims]) -> Comparison:
    """What the guards say of the texts, and the rules below of everything else."""
    for summary in (newer, older):
        if summary.id not in readings:
            readings[summary.id] = parse_claims(join_text(summary.title, summary.body))
    finding = compare_claims(readings[older.id], readings[newer.id])
    objections = _objections(newer, older, finding)
    if not objections:
        return finding
    return Comparison(
        Agreement.DIFFERS,
        (*finding.differences, *objections),
        finding.lost,
        finding.gained,
        finding.overlap,
    )


def _objections(newer: Summary, older: Summary, finding: Comparison) -> tuple[Difference, ...]:
    """Why the newer may not hide the older although the texts would permit it."""
    files = sorted(set(older.files) - set(newer.files))
    checks = (
        (older.pinned_at is not None, Difference("pinned", "", f"#{older.id}")),
        (older.kind not in MAY_HIDE[newer.kind], Difference("kind", older.kind.value, newer.kind.value)),
        (older.topic_key not in {None, newer.topic_key},
         Difference("topic", older.topic_key or "", newer.topic_key or "")),
        (_TRUST[newer.tier] > _TRUST[older.tier], Difference("tier", older.tier.value, newer.tier.value)),
        ((newer.expires_at or _FOREVER) < (older.expires_at or _FOREVER),
         Difference("expiry", "", "the newer one expires first")),
        (bool(files), Difference("path", ", ".join(files[:3]), ", ".join(newer.files[:3]))),
        (bool(finding.lost), Difference("detail", "", "the older one says more")),
    )  # fmt: skip
    return tuple(difference for applies, difference in checks if applies)


def _edge_type(newer: Summary, older: Summary, finding: Comparison) -> EdgeType:
    aspects = set(finding.aspects)
    is_one_topic = newer.topic_key is not None and newer.topic_key == older.topic_key
    is_one_subject = is_one_topic or (finding.overlap >= _SAME_SUBJECT and not aspects & _NAMES)
    if {newer.kind, older.kind} <= CLAIM_KINDS and is_one_subject and any(_opposes(finding)):
        return EdgeType.CONTRADICTS
    return EdgeType.SIMILAR_TO


def _opposes(finding: Comparison) -> Iterator[bool]:
    """Of each difference, whether both cannot hold. What only one side speaks of may well hold."""
    for difference in finding.differences:
        is_one_sided = not (difference.was and difference.now)
        if difference.aspect in _MEASURES:
            yield not is_one_sided or difference.now == SWAPPED
        elif difference.aspect in _DENIALS:
            yield not is_one_sided or finding.overlap >= _SAME_WORDS
        else:
            yield difference.aspect in _OPPOSITES
