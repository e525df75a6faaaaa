"""Make a page of hits of scored candidates: order, diversity, snippets, and verbatim turns beside them."""

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from memd.belief.claims import statement_text
from memd.belief.compare import EXACT_ASPECTS, compare
from memd.belief.decide import CLAIM_KINDS
from memd.belief.notes import drop_content
from memd.embeddings.hashing import HashingEmbedder
from memd.models import Summary
from memd.recall import Hit, ScorePart, Turn, apply_parts
from memd.recall.precedence import Remarks
from memd.recall.profiles import DiversitySettings
from memd.recall.query import ParsedQuery, QueryTerms, fts_expression
from memd.recall.ranking import ScoredCandidates, make_parts
from memd.store import SummaryHead, events, links, summaries
from memd.store.database import Connection
from memd.text import content_stems, fold, is_stop_word, normalised, one_line, split_sentences, stem

TURNS_MAX = 20
_COMPARED_TURNS = 1_000
"""The latest turns that are compared by cosine."""
SNIPPET_CHARACTERS_MAX = 250
TURN_SNIPPET_CHARACTERS_MAX = 200
_TITLE_CHARACTERS_MAX = 90
_READ_AHEAD = 4
"""How many times the hits of a page are read from the vault first, since diversity moves some down."""
_SENTENCES_MAX = 3
"""Sentences of a snippet that are chosen for what they have of the question; the rest is what follows the best."""
_ALIKE_MIN = 3
"""Hits in a row that say the same before they become one."""
_ALIKE = "says the same"
_ALIKE_SHARE_MIN = 0.6
"""The least share of one's content words that the other has."""
_TURNING = EXACT_ASPECTS | {"negation", "antonym", "order", "direction", "qualifier"}
"""Differences that make another statement of the same words."""
_LABEL = re.compile(r"^(?:asked|answered|while|user|assistant): [“\"]?")
_CLAUSE_END = re.compile(r"[,;:)\u2014\u2013](?=\s)\s*")
_GAP = " … "
"""Between sentences that do not follow each other."""
_TOKEN = re.compile(r"[^\W_]+(?:\.\d+)*")
"""What may be a word or a version, found twice as quickly as by the index's own rules."""
_FOREIGN = re.compile(r"[^\x00-\x7f–—‘’“”•…→]")
"""A sign that may be another one when its text is folded."""


# ── Order ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CandidateOrder:
    """The candidates in the order of the answer, at least as far down as the page needs."""

    ids: Sequence[int]
    demoted: Mapping[int, str]
    """Summary id → why it was moved down."""
    dropped: Mapping[int, str]
    """Summary id → why it may not be seen after all; not among `ids`."""
    heads: Mapping[int, SummaryHead]
    alike: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Summary id → those that say the same and are among `dropped` for it."""


def order_candidates(
    tx: Connection,
    parsed: ParsedQuery,
    best_first: Sequence[int],
    near: frozenset[frozenset[int]] = frozenset(),
    heads: Mapping[int, SummaryHead] = MappingProxyType({}),
) -> CandidateOrder:
    """Order summary ids, best first, until the page is full, or all of them for an explanation.

    `near` are pairs of which the vectors are so near that they may say the same; `heads` those that were read already.
    """
    depth = _READ_AHEAD * parsed.page_end
    if parsed.question.explain or parsed.question.as_of is not None:
        depth = len(best_first)
    while True:
        order = fold_alike(_order_best(tx, parsed, best_first[:depth], heads), near)
        in_place = len(order.ids) - len(order.demoted)
        if depth >= len(best_first) or in_place >= parsed.page_end:
            return order
        depth *= 2


def _order_best(
    tx: Connection, parsed: ParsedQuery, best: Sequence[int], known: Mapping[int, SummaryHead]
) -> CandidateOrder:
    unread = [number for number in best if number not in known]
    heads = {**known, **(summaries.summary_heads(tx, unread) if unread else {})}
    wanted = parsed.question.filter
    dropped: dict[int, str] = {}
    for number in best:
        head = heads.get(number)
        if head is None:
            dropped[number] = "forgotten"
        elif wanted.was_superseded(head.superseded_at):
            dropped[number] = f"superseded by #{head.superseded_by}"
    visible = [number for number in best if number not in dropped]
    diversity = parsed.profile.diversity
    texts = {}
    if diversity.jaccard is not None:
        texts = {number: f"{heads[number].title}\n{heads[number].body}" for number in visible}
    stories = {number: _name_story(heads[number]) for number in visible}
    ids, demoted = diversify(visible, stories, texts, diversity)
    return CandidateOrder(ids, demoted, dropped, heads)


def _name_story(head: SummaryHead) -> str | None:
    """Name a memory's story: a turn's work is one, its statements another, so that the agent's account hides no decision."""
    is_statement = head.kind in CLAIM_KINDS
    return f"{head.episode}, stated" if head.episode and is_statement else head.episode


def diversify(
    order: Sequence[int],
    stories: Mapping[int, str | None],
    texts: Mapping[int, str],
    diversity: DiversitySettings,
) -> tuple[list[int], dict[int, str]]:
    """Reorder summary ids, best first, so that no story fills the answer; and why each was demoted."""
    in_place: list[int] = []
    demoted: dict[int, str] = {}
    of_story: dict[str, list[int]] = {}
    pairs: list[tuple[int, frozenset[str]]] = []
    for number in order:
        story = stories.get(number)
        same = of_story.setdefault(story, []) if story else []
        if diversity.per_episode and len(same) >= diversity.per_episode:
            demoted[number] = f"diversity: same turn as #{same[0]}"
            continue
        if diversity.jaccard is not None:
            own = bigrams(texts.get(number, ""))
            like = next((n for n, its in pairs if jaccard(own, its) > diversity.jaccard), None)
            if like is not None:
                demoted[number] = f"diversity: like #{like}"
                continue
            pairs.append((number, own))
        same.append(number)
        in_place.append(number)
    return in_place + [number for number in order if number in demoted], demoted


def fold_alike(order: CandidateOrder, near: frozenset[frozenset[int]]) -> CandidateOrder:
    """Drop what says the same as the one before it, where three or more in a row do."""
    triples = zip(order.ids, order.ids[1:], order.ids[2:], strict=False)
    if not any({frozenset({a, b}), frozenset({a, c})} <= near for a, b, c in triples):
        return order  # comparing texts is slow, and most pages have no three in a row
    runs: list[list[int]] = []
    for number in order.ids:
        first = runs[-1][0] if runs else number
        if frozenset({first, number}) in near and _is_alike(
            order.heads[first], order.heads[number]
        ):
            runs[-1].append(number)
        else:
            runs.append([number])
    alike = {run[0]: tuple(run[1:]) for run in runs if len(run) >= _ALIKE_MIN}
    dropped = {n: f"{_ALIKE} as #{first}" for first, others in alike.items() for n in others}
    ids = [number for number in order.ids if number not in dropped]
    return replace(order, ids=ids, dropped={**order.dropped, **dropped}, alike=alike)


def _is_alike(one: SummaryHead, other: SummaryHead) -> bool:
    """Return whether one of two memories says all that the other does, and nothing turned or of another value."""
    texts = (statement_text(one.title, one.body), statement_text(other.title, other.body))
    fewer, more = sorted((set(content_stems(text)) for text in texts), key=len)
    if not fewer <= more or len(fewer) < _ALIKE_SHARE_MIN * len(more):
        return False
    return _TURNING.isdisjoint(compare(*texts).aspects)


def bigrams(text: str) -> frozenset[str]:
    """The pairs of neighbouring words of a text."""
    tokens = normalised(text).split()
    return frozenset(f"{a} {b}" for a, b in itertools.pairwise(tokens))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """|a ∩ b| / |a ∪ b|; 0 if both are empty."""
    union = len(a | b)
    return len(a & b) / union if union else 0.0


# ── The page ─────────────────────────────────────────────────────────────────────────────────────


class Match(NamedTuple):
    """A memory of the page, the passage that matched, and how."""

    summary: Summary
    passage_id: int
    parts: tuple[ScorePart, ...]
    ranks: Mapping[str, int] = MappingProxyType({})
    """Retriever → its rank, from 1."""
    cosine: float | None = None
    recency: float | None = None
    coverage: float | None = None
    remarks: Remarks = Remarks()
    alike: tuple[int, ...] = ()


def fetch_hits(
    tx: Connection,
    parsed: ParsedQuery,
    candidates: ScoredCandidates,
    page: Mapping[int, int],
    remarks: Mapping[int, Remarks],
    alike: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
) -> tuple[Hit, ...]:
    """A hit for each entry of `page`, in its order: summary id → candidate index; with what is to be said of each."""
    found = links.with_final_superseders(tx, summaries.summaries_by_ids(tx, list(page)))
    places = list(page.values())
    all_ranks = {name: ranks[places].tolist() for name, ranks in candidates.ranks().items()}
    steps = [(name, op, values[places].tolist()) for name, op, values in candidates.steps]
    cosines, recency = candidates.cosines[places].tolist(), candidates.recency[places].tolist()
    coverage = None if candidates.coverage is None else candidates.coverage[places].tolist()
    matches = [
        Match(
            found[number],
            candidates.passage_ids[i],
            make_parts([(name, op, values[row]) for name, op, values in steps]),
            {name: ranks[row] for name, ranks in all_ranks.items() if ranks[row]},
            none_if_nan(cosines[row]),
            none_if_nan(recency[row]),
            None if coverage is None else coverage[row],
            remarks.get(number, Remarks()),
            alike.get(number, ()),
        )
        for row, (number, i) in enumerate(page.items())
    ]
    return tuple(make_hits(tx, parsed, matches))


def make_hits(tx: Connection, parsed: ParsedQuery, matches: Sequence[Match]) -> list[Hit]:
    """The hits of a page, with their snippets."""
    is_whole = parsed.question.whole_passages
    replaced = {n for one in matches if (n := one.summary.superseded_by) is not None}
    superseders = summaries.summary_heads(tx, sorted(replaced)) if replaced else {}
    places = summaries.shown_places(tx, {one.summary.id: one.passage_id for one in matches})
    hits = []
    for match in matches:
        summary, ranks = match.summary, match.ranks
        project, session_title, start, stop = places[summary.id]
        passage = drop_content(summary.body[start:stop])
        superseder = superseders.get(summary.superseded_by or 0)
        hits.append(
            Hit(
                summary=summary,
                project=project,
                session_title=session_title,
                snippet=passage if is_whole else make_snippet(summary.title, passage, parsed.terms),
                score=apply_parts(match.parts),
                parts=match.parts,
                channels=tuple(ranks),
                lexical_rank=ranks.get("lexical"),
                vector_rank=ranks.get("vector"),
                topic_rank=ranks.get("topic"),
                cosine=match.cosine,
                recency=match.recency,
                coverage=match.coverage,
                older_value=match.remarks.older_value,
                replaces=match.remarks.replaces,
                contradiction=match.remarks.contradiction,
                replaced_by=superseder and one_line(superseder.title, _TITLE_CHARACTERS_MAX),
                alike=match.alike,
            )
        )
    return hits


def none_if_nan(value: float) -> float | None:
    """The value, or None for NaN."""
    return None if math.isnan(value) else float(value)


# ── Snippets ─────────────────────────────────────────────────────────────────────────────────────


def make_snippet(
    title: str, passage: str, terms: QueryTerms, limit: int = SNIPPET_CHARACTERS_MAX
) -> str:
    """The sentences of a passage that answer the question best, on one line."""
    folded_title = fold(title)
    sentences = split_sentences(passage)
    new = [one for one in sentences if not _repeats_title(fold(one), folded_title)] or sentences
    if len(new) == 1 and len(new[0]) <= limit:
        return one_line(new[0], limit)  # most have one sentence: stemming is slow
    return _answer_within(new, frozenset((*map(stem, terms.words), *terms.weights)), limit)


def shorten_snippet(snippet: str, terms: Collection[str], limit: int) -> str:
    """Cut a snippet to what answers best in fewer characters; `terms` are the question's that its memory has."""
    sentences = [one for part in snippet.split(_GAP) for one in split_sentences(part)]
    return _answer_within(sentences, frozenset(terms), limit)


def _answer_within(sentences: Sequence[str], wanted: frozenset[str], limit: int) -> str:
    """The sentences with most of these stems that fit; of one that is longer than the limit, what is around its words."""
    if not sentences:
        return ""
    # Stemming is slow, and a word begins as its stem does, but for its last letter.
    begins = tuple([term[:-1] if len(term) > 2 else term for term in wanted])  # noqa: PLR2004
    flat = [" ".join(sentence.split()) for sentence in sentences]
    are_plain = [one.isascii() or _FOREIGN.search(one) is None for one in flat]
    words = [
        _find_words(one if is_plain else fold(one), wanted, begins)
        for one, is_plain in zip(flat, are_plain, strict=True)
    ]
    chosen = [0]
    if len(flat) > 1:
        has = [frozenset(stemmed for *_, stemmed in own) for own in words]
        chosen = _choose_sentences(has, [len(one) for one in flat], limit)
    if len(flat[best := chosen[0]]) > limit:
        found = words[best] if are_plain[best] else _find_words(flat[best], wanted, begins)
        return _cut_around(flat[best], found, limit)
    line = ""
    for i in chosen:
        line += ("" if not line else " " if i - 1 in chosen else _GAP) + flat[i]
    return line


def _choose_sentences(
    has: Sequence[frozenset[str]], lengths: Sequence[int], limit: int
) -> list[int]:
    """The sentence with most of the question, one or two that add to it, then what follows; whole, and in their order."""
    best = max(range(len(has)), key=lambda i: len(has[i]))
    chosen, covered, room = [best], has[best], limit - lengths[best]
    while len(chosen) < _SENTENCES_MAX:
        fitting = [i for i in range(len(has)) if lengths[i] + len(_GAP) <= room]
        more = max(
            fitting, key=lambda i: (len(has[i] - covered), i == chosen[-1] + 1), default=best
        )
        if not has[more] - covered:
            break
        chosen.append(more)
        covered, room = covered | has[more], room - lengths[more] - len(_GAP)
    following = best + 1
    while following < len(has):
        if following not in chosen:
            if (room := room - lengths[following] - 1) < 0:
                break
            chosen.append(following)
        following += 1
    return sorted(chosen)


def _cut_around(sentence: str, found: Sequence[tuple[int, int, str]], limit: int) -> str:
    """The part of a long sentence with most of these words, from clause to clause where that is possible."""
    room = limit - 2  # for the ellipses
    # A quarter stays for what stands before the words, as much for what follows them.
    reach = room * 3 // 4
    most, first, last, after = 0, 0, 0, 0
    for i, (start, _, _) in enumerate(found):
        while after < len(found) and found[after][1] <= start + reach:
            after += 1
        if after - i > most and (count := len({word[2] for word in found[i:after]})) > most:
            most, first, last = count, start, found[after - 1][1]
    word_end = (sentence + " ").find(" ", last)
    last = word_end if word_end - first <= reach else max(sentence.rfind(" ", 0, last), first + 1)
    if last <= reach:
        start = 0
    elif len(sentence) - first <= room:  # rather to its end than from its beginning
        start = _find_start(sentence, len(sentence) - room, first)
    else:
        start = _find_start(sentence, first - max(room - (last - first), 0) // 4, first)
    stop = start + room
    if stop < len(sentence):
        stop = _find_end(sentence, start, last, stop)
    head, tail = "…" if start else "", "…" if stop < len(sentence) else ""
    return f"{head}{sentence[start:stop].strip(' ,;:')}{tail}"


def _find_start(sentence: str, earliest: int, first: int) -> int:
    """Find where a clause begins from `earliest` to `first`, else a word."""
    earliest = max(earliest, 0)
    if not earliest or sentence[earliest - 1] == " ":
        return earliest
    before = sentence[earliest:first]
    clauses = [one.end() for one in _CLAUSE_END.finditer(before)]
    return earliest + (clauses[0] if clauses else before.find(" ") + 1 or len(before))


def _find_end(sentence: str, start: int, least: int, most: int) -> int:
    """Find where a clause ends from `least` to `most`, if that uses half the room, else a word; at a whole place if there is one."""
    half = max(least, (start + most) // 2)
    clauses = [one.start() for one in _CLAUSE_END.finditer(sentence, half, most)]
    spaces = _find_spaces(sentence, least, most)
    ends = itertools.chain(reversed(clauses), spaces)
    whole = (end for end in ends if _is_whole(sentence[start:end]))
    return next(whole, max(sentence.rfind(" ", start, most), least))


def _find_spaces(sentence: str, least: int, most: int) -> Iterator[int]:
    """Yield the places of the spaces from `least` to `most`, the last first."""
    while (place := sentence.rfind(" ", least, most + 1)) >= 0:
        yield place
        most = place - 1


def _is_whole(text: str) -> bool:
    """Return whether a text ends neither within code or brackets nor after a word that needs another one."""
    is_open = text.count("`") % 2 or text.count("(") > text.count(")")
    return not is_open and not is_stop_word(text.rpartition(" ")[2])


def _repeats_title(sentence: str, title: str) -> bool:
    label = _LABEL.match(sentence)
    return sentence[label.end() if label else 0 :].rstrip(".!?") in title


def _find_words(
    sentence: str, wanted: frozenset[str], begins: tuple[str, ...]
) -> list[tuple[int, int, str]]:
    """The start, the end and the stem of each word with one of these stems, which begins with one of `begins`.

    Only where one of them stands are the words told apart.
    """
    lowered = sentence.replace("İ", "I").lower()  # the one letter that becomes two
    near = set() if sentence.isascii() else {one.start() for one in _FOREIGN.finditer(sentence)}
    is_plain = not near
    for begin in begins:
        place = lowered.find(begin)
        while place >= 0:
            if not (place and lowered[place - 1].isalpha()):
                near.add(place)
            place = lowered.find(begin, place + 1)
    found: list[tuple[int, int, str]] = []
    spaced, end = f"{sentence} ", 0
    for place in sorted(near):
        if place < end:
            continue
        before = lowered[place - 1] if place else " "
        if is_plain and before != "." and not before.isalnum():
            one = _TOKEN.match(lowered, place)  # a word begins here
            if one and one[0].startswith(begins) and (stemmed := stem(one[0])) in wanted:
                found.append((place, one.end(), stemmed))
        else:
            start = max(sentence.rfind(" ", end, place) + 1, end)
            end = spaced.find(" ", place)
            found = [word for word in found if word[0] < start]  # the others are told apart again
            for one in _TOKEN.finditer(lowered if is_plain else sentence, start, end):
                token = one[0] if is_plain else fold(one[0])
                if token.startswith(begins) and (stemmed := stem(token)) in wanted:
                    found.append((one.start(), one.end(), stemmed))
    return found


# ── Verbatim turns ───────────────────────────────────────────────────────────────────────────────


def find_turns(tx: Connection, parsed: ParsedQuery) -> tuple[Turn, ...]:
    """The turns of conversations that full text ranks best, or cosine where the profile wants it; `k`, at most 20.

    Filtered by project, session and time; a turn has no kind, tag or source. A question without
    words finds none.
    """
    expression, question = fts_expression(parsed.terms), parsed.question
    if not expression:
        return ()
    bounds = [bound for bound in (question.until, question.as_of) if bound is not None]
    where = events.TurnFilter(
        question.project_ids, question.session_id, question.since, min(bounds, default=None)
    )
    by_cosine = parsed.profile.turns == "cosine"
    if by_cosine:
        found = events.latest_turns(tx, where, _COMPARED_TURNS)
    else:
        found = events.match_turns(tx, expression, where, min(parsed.k, TURNS_MAX))
    vectors = HashingEmbedder().embed([question.text, *(spoken.text for spoken in found)])
    cosines = (vectors[1:] @ vectors[0]).tolist()
    pairs = list(zip(found, cosines, strict=True))
    if by_cosine:
        pairs = sorted((pair for pair in pairs if pair[1] > 0), key=lambda pair: -pair[1])
    return tuple(
        Turn(
            event_id=spoken.event_id,
            session_title=None
            if spoken.session_title is None
            else one_line(spoken.session_title, _TITLE_CHARACTERS_MAX),
            role=spoken.role,
            at=spoken.at,
            snippet=make_snippet("", spoken.text, parsed.terms, TURN_SNIPPET_CHARACTERS_MAX),
            rank=rank,
            distance=round(1.0 - cosine, 4),
        )
        for rank, (spoken, cosine) in enumerate(pairs[: min(parsed.k, TURNS_MAX)], start=1)
    )
