"""Changes of an answer's scores: precedence over others that match better, re-ranking, and a session's focus.

Of two memories of which one replaces a value of the other, what holds comes first; asked for what was before, the other does.
Of two that contradict each other the greater authority comes first, of the user's own words the later. The first of the two gets a
part of the score, `present`, `former` or `authority`, that lifts it just above the other; if no retriever found it, it is brought along.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np

from memd.belief.changes import StandingStatement, find_corrections
from memd.belief.decide import CLAIM_KINDS, VALUE_KINDS, are_twins
from memd.belief.standing import describe_contradiction, is_later_word
from memd.belief.values import (
    ReplacedValue,
    SetValues,
    asks_for_former,
    find_older_alternatives,
    find_older_values,
    read_set_values,
)
from memd.models import Authority, Kind, Summary
from memd.recall import Answer, ScorePart, apply_parts
from memd.recall.profiles import RerankSettings
from memd.recall.query import ParsedQuery
from memd.recall.ranking import ScoreStep
from memd.recall.retrievers import Floats
from memd.store import MemoryStanding, SummaryHead, judgments
from memd.store.database import Connection
from memd.text import content_stems, fold, normalised, stems, unique

DEPTH = 20
"""The candidates, best first, that are compared at least."""
_TOLD_MAX = 40
"""Candidates of which the texts are compared."""
_SAID_MAX = 3
"""Other memories that are named with one."""
_SAME_MATTER_MIN = 0.5
"""The least share of what an older statement says that a newer one about the same matter has, too."""
_TURNED_KINDS = CLAIM_KINDS | {Kind.TASK}
_GAIN = 1e-3
"""How far the first stands above the other, as a share of the other's score."""

Precedence = tuple[int, int, str]
"""(the first, the other, the part of the score)."""


@dataclass(frozen=True, slots=True)
class Remarks:
    """Remarks on a hit, in words; see Hit."""

    older_value: str | None = None
    replaces: str | None = None
    contradiction: str | None = None


@dataclass(frozen=True, slots=True)
class Relations:
    """Relations between the best candidates, and to other memories."""

    values: SetValues = field(default_factory=SetValues)
    against: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Candidate → the visible memories that contradict it."""
    standings: Mapping[int, MemoryStanding] = field(default_factory=dict)
    beside: Sequence[tuple[int, str, int]] = ()
    """Candidates with the title of another memory of the same words, and what replaced that."""

    def list_leading(self, find_terms: Callable[[int], frozenset[str]]) -> set[int]:
        """The memories that come before a candidate; `find_terms`: the terms of the question that a candidate has."""
        newer = {
            one.newer_id
            for one in self.values.replaced
            if _is_about_value(one, find_terms(one.older_id))
        }
        greater = {
            n
            for one, others in self.against.items()
            for n in others
            if self._is_greater(n, one) or self._is_later_word(n, one)
        }
        return newer | greater

    def _is_greater(self, one: int, other: int) -> bool:
        return self.standings[one].rank > self.standings[other].rank

    def _is_later_word(self, one: int, other: int) -> bool:
        return is_later_word(self.standings[one], self.standings[other])

    def _leads(self, one: int, other: int) -> bool:
        if self._is_later_word(other, one):
            return False
        return self._is_later_word(one, other) or self._rank(one) > self._rank(other)

    def _rank(self, number: int) -> tuple[tuple[float, bool], int]:
        return self.standings[number].rank, self.standings[number].at

    def is_users_pin(self, number: int) -> bool:
        """Return whether the user pinned a memory, which no edit of the agent's replaces."""
        standing = self.standings.get(number)
        return (
            standing is not None and (standing.pinned_by or Authority.TOOL_OUTPUT).speaker == "user"
        )

    def find_greater(self, known: Collection[int]) -> list[Precedence]:
        """The greater of two of these that contradict each other, before the lesser; of one authority or both the user's, the later."""
        return [
            (other, one, "authority" if self._is_greater(other, one) else "present")
            for one, others in self.against.items()
            for other in others
            if one in known and other in known and self._leads(other, one)
        ]

    def describe_contradictions(self) -> dict[int, str]:
        """Describe for each candidate what says otherwise, the greatest authority first."""
        said = {}
        for one, others in self.against.items():
            ranked = sorted(others, key=self._rank, reverse=True)
            said[one] = "; ".join(
                describe_contradiction(self.standings[one], self.standings[other])
                for other in ranked[:_SAID_MAX]
            )
        return said


def read_relations(tx: Connection, parsed: ParsedQuery, ids: Sequence[int]) -> Relations:
    """Read what the best candidates, and what they name, are to each other."""
    question = parsed.question
    values = read_set_values(tx, ids, question.as_of)
    against = judgments.visible_contradictions(tx, ids, question.project_ids)
    named = {*against, *(n for others in against.values() for n in others)}
    if named - against.keys():
        # What is brought along says for itself whom it contradicts.
        against = judgments.visible_contradictions(tx, named, question.project_ids)
        named |= {n for others in against.values() for n in others}
    named |= {one.older_id for one in values.replaced}
    standings = judgments.standings_of(tx, named) if named else {}
    if question.as_of is not None:
        against = {
            one: kept
            for one, others in against.items()
            if (kept := tuple(n for n in others if standings[n].at <= question.as_of))
        }
    return Relations(values, against, standings, judgments.replaced_beside(tx, ids))


def join_twins(tx: Connection, relations: Relations, heads: Sequence[SummaryHead]) -> Relations:
    """Let what contradicts a candidate contradict those, too, that say the same."""
    against = {one: set(others) for one, others in relations.against.items()}
    for one in heads:
        for twin in heads if one.id in relations.against else ():
            if twin.id not in against and _are_twins(one, twin):
                against[twin.id] = set(against[one.id])
                for other in against[one.id] & against.keys():
                    against[other].add(twin.id)
    new = against.keys() - relations.against.keys()
    if not new:
        return relations
    standings = {**relations.standings, **judgments.standings_of(tx, new)}
    return replace(
        relations,
        against={one: tuple(sorted(others)) for one, others in against.items()},
        standings=standings,
    )


def _are_twins(one: SummaryHead, other: SummaryHead) -> bool:
    """Return whether two memories say the same; most have too few words in common to be compared."""
    mine, theirs = frozenset(content_stems(one.title)), frozenset(content_stems(other.title))
    is_alike = 2 * len(mine & theirs) >= max(len(mine), len(theirs))
    return (
        is_alike
        and one.project_id == other.project_id
        and are_twins((one.title, one.body), (other.title, other.body))
    )


def find_precedence(
    parsed: ParsedQuery,
    relations: Relations,
    heads: Sequence[SummaryHead],
    known: Collection[int],
    find_terms: Callable[[int], frozenset[str]],
) -> tuple[list[Precedence], dict[int, Remarks]]:
    """Decide which of the candidates comes before which, and collect the remarks on each.

    `heads`: the best ones, best first. `known`: all candidates. `find_terms`: the terms of the question that one has.
    """
    stems = frozenset(parsed.terms.weights)
    is_former = asks_for_former(parsed.question.text)
    pairs: list[tuple[int, int]] = []
    older: dict[int, list[str]] = {}
    replaces: dict[int, list[str]] = {}
    for one in relations.values.replaced:
        if one.is_replaced:
            older.setdefault(one.older_id, []).append(str(one))
            replaces.setdefault(one.newer_id, []).append(one.told_by_newer)
        is_known = one.older_id in known and one.newer_id in known
        is_users = relations.is_users_pin(one.older_id)
        if is_known and not is_users and _is_asked_about(one, find_terms):
            pairs.append((one.newer_id, one.older_id))
    best = heads[:_TOLD_MAX]
    told = find_older_alternatives(best, parsed.question.text)
    told |= find_older_values(best, stems, relations.values.edges)
    for number, value in told.items():
        if number not in older:
            older[number] = [str(value)]
            pairs.append((value.newer_id, number))
    pairs += find_overtaken(best, find_terms) if parsed.intent.is_present else []
    pairs += _find_corrected(best)
    pairs += _find_replaced_with_twin(best, relations.beside, known)
    found = [
        (then, first, "former") if is_former else (first, then, "present") for first, then in pairs
    ]
    said = relations.describe_contradictions()
    remarks = {
        number: Remarks(
            "; ".join(unique(older[number])[:_SAID_MAX]) if number in older else None,
            "; ".join(unique(replaces[number])[-_SAID_MAX:]) if number in replaces else None,
            said.get(number),
        )
        for number in (older.keys() | replaces.keys() | said.keys())
    }
    greater = relations.find_greater(known)
    overruled = {(then, first) for first, then, _ in greater}
    return [*(one for one in found if one[:2] not in overruled), *greater], remarks


def find_overtaken(
    best: Sequence[SummaryHead], find_terms: Callable[[int], frozenset[str]]
) -> list[tuple[int, int]]:
    """Find pairs of a newer and an older statement of one matter: most of what the older says stands in the newer, too.

    Only for a question that asks for the present: among chats the newer of two is not what answers (measured).
    """
    stated = [one for one in best if one.kind in VALUE_KINDS or one.kind == Kind.CHANGE]
    stems = {one.id: frozenset(content_stems(one.title)) for one in stated}
    known = {one.id: find_terms(one.id) for one in stated}
    return [
        (newer.id, older.id)
        for older in stated
        for newer in stated
        if older.at < newer.at
        and older.kind in VALUE_KINDS
        and older.project_id == newer.project_id
        and known[older.id]
        and known[older.id] <= known[newer.id]
        and len(stems[older.id] & stems[newer.id]) >= _SAME_MATTER_MIN * len(stems[older.id])
    ]


def _find_corrected(best: Sequence[SummaryHead]) -> list[tuple[int, int]]:
    """Find pairs of a later statement that says that something turned, and the earlier one of the same subject."""
    stated = [
        StandingStatement(one.id, one.project_id, one.title, one.at, 0)
        for one in best
        if one.kind in _TURNED_KINDS
    ]
    return [(later, older) for older, later in find_corrections(stated).items()]


def _find_replaced_with_twin(
    best: Sequence[SummaryHead], beside: Sequence[tuple[int, str, int]], known: Collection[int]
) -> list[tuple[int, int]]:
    """Find pairs of what replaced a memory, and one of the same words that says most of what that said: `still to be tested`."""
    heads = {one.id: one for one in best}
    found = []
    for number, title, newer in beside:
        if number in heads and newer in known and newer != number:
            said = frozenset(content_stems(title))
            shared = said.intersection(content_stems(heads[number].title))
            if 0 < _SAME_MATTER_MIN * len(said) <= len(shared):
                found.append((newer, number))
    return found


def _is_asked_about(one: ReplacedValue, find_terms: Callable[[int], frozenset[str]]) -> bool:
    """Return whether the question, which the older memory matches, is about this value and not its other content."""
    older = find_terms(one.older_id)
    return _is_about_value(one, older) or (bool(older) and older <= find_terms(one.newer_id))


def _is_about_value(one: ReplacedValue, found: frozenset[str]) -> bool:
    """Return whether the older memory is only about this, or the question's match in it is mostly the setting's name."""
    named = found.intersection(content_stems(one.key[-1]))
    return one.is_only or (bool(named) and 2 * len(named) >= len(found))


def compute_lifts(
    scores: Mapping[int, float], precedence: Sequence[Precedence]
) -> dict[int, dict[str, float]]:
    """Compute what each part adds to a memory, so that each first one stands above the other. Cycles are left as they are."""
    now = dict(scores)
    lifts: dict[int, dict[str, float]] = {}
    for _ in range(len(precedence)):
        is_settled = True
        for first, then, part in precedence:
            if first in now and then in now and now[first] <= now[then]:
                gain = now[then] + abs(now[then]) * _GAIN - now[first] or _GAIN
                own = lifts.setdefault(first, {})
                own[part] = own.get(part, 0.0) + gain
                now[first] += gain
                is_settled = False
        if is_settled:
            break
    return lifts


PHRASE_CHARACTERS_MIN = 4
FOCUS_FACTOR = 1.4
_NOT_KEPT = "not kept by the reranker"
_GLOB = re.compile(r"[*?\[/]")


# ── Re-ranking ───────────────────────────────────────────────────────────────────────────────────


def rerank_by_terms(
    question: str, idfs: Mapping[str, float], texts: Sequence[str], weights: RerankSettings
) -> list[ScoreStep]:
    """Score each text by siftcoder's deterministic reranker, as steps of a score; `idfs`: term → idf.

    Σ tf/length · ln(1 + (N − df + ½)/(df + ½)) over the words of the question, + 0.1 for each word found, + 0.4 if the
    text has the whole question of four characters or more as it stands, − 0.01 · ln(1 + length), + 0.5 · the score so
    far. Length is in words. The publication leaves open, and memd decides: a word is memd's (stemmed, identifiers
    split), N and df count what the question may see, where the original takes the newest 2,000.
    """
    phrase = normalised(question)
    measured = [_measure_text(phrase, idfs, text) for text in texts]
    column = np.array(measured, dtype=np.float64).reshape(len(texts), 4).T
    return [
        ("rerank", "*", np.full(len(texts), weights.fused)),
        ("terms", "+", weights.terms * column[0]),
        ("matched", "+", weights.matched * column[1]),
        ("phrase", "+", weights.phrase * column[2]),
        ("brevity", "+", -weights.length * column[3]),
    ]


def _measure_text(
    phrase: str, idfs: Mapping[str, float], text: str
) -> tuple[float, int, bool, float]:
    """(Σ tf · idf, words found, whether it has the phrase, ln(1 + length))."""
    tokens = list(stems(text))
    found = [token for token in tokens if token in idfs]
    tfidf = sum(idfs[token] for token in found) / len(tokens) if tokens else 0.0
    has_phrase = len(phrase) >= PHRASE_CHARACTERS_MIN and f" {phrase} " in f" {normalised(text)} "
    return tfidf, len(set(found)), has_phrase, math.log1p(len(tokens))


def rerank_by_model(answer: Answer, scores: Sequence[float | None], offset: int, k: int) -> Answer:
    """The page of an answer whose hits, all of them, get a model's scores instead of their own, or are left out."""
    rated = []
    for hit, score in zip(answer.hits, scores, strict=True):
        if score is None:
            continue
        parts = (*hit.parts, ScorePart("rerank", 0.0, "*"), ScorePart("model", score))
        rated.append(replace(hit, parts=parts, score=apply_parts(parts)))
    lifts = compute_lifts({hit.summary.id: hit.score for hit in rated}, answer.precedence)
    for place, hit in enumerate(rated):
        if own := lifts.get(hit.summary.id):
            parts = (*hit.parts, *(ScorePart(name, value) for name, value in own.items()))
            rated[place] = replace(hit, parts=parts, score=apply_parts(parts))
    rated.sort(key=lambda hit: -hit.score)
    if not_kept := len(answer.hits) - len(rated):
        answer = replace(answer, suppressed={**answer.suppressed, _NOT_KEPT: not_kept})
    return cut_page(replace(answer, hits=tuple(rated)), offset, k)


def cut_page(answer: Answer, offset: int, k: int) -> Answer:
    """One page of a longer answer, its trace in the order of the hits."""
    rank = {hit.summary.id: rank for rank, hit in enumerate(answer.hits)}
    traced = []
    for one in answer.trace:
        if (place := rank.get(one.summary_id)) is not None:
            hit = answer.hits[place]
            verdict = "hit" if offset <= place < offset + k else f"rank {place + 1}"
            traced.append(replace(one, score=hit.score, parts=hit.parts, verdict=verdict))
        else:
            traced.append(replace(one, verdict=_NOT_KEPT) if one.is_hit else one)
    traced.sort(key=lambda one: rank.get(one.summary_id, len(rank)))
    return replace(answer, hits=answer.hits[offset : offset + k], trace=tuple(traced))


# ── Session focus ────────────────────────────────────────────────────────────────────────────────


def matches_focus(summary: Summary, patterns: Sequence[str], origins: Sequence[str] = ()) -> bool:
    """Return whether any of the patterns matches a memory, or the path of a file that it was imported from.

    One with `*`, `?`, `[` or `/` is a glob over the paths of its files and matches any end of one: `auth/*.py` matches
    `src/auth/tokens.py`. Any other is one word or several, to be found in a title, a body or a path where a word begins.
    """
    paths = [fold(path) for path in (*summary.files, *origins)]
    text = fold("\n".join((summary.title, summary.body, *paths)))
    return any(
        _matches_path(pattern, paths) if _GLOB.search(pattern) else _matches_text(pattern, text)
        for pattern in map(fold, patterns)
        if pattern.strip()
    )


def _matches_path(pattern: str, paths: Sequence[str]) -> bool:
    # A folder stands for everything in it.
    pattern = (pattern + "*" if pattern.endswith("/") else pattern).lstrip("/")
    return any(fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}") for path in paths)


def _matches_text(pattern: str, text: str) -> bool:
    words = r"\s+".join(re.escape(word) for word in pattern.split())
    return re.search(rf"(?<![^\W_]){words}", text) is not None


def focus_factors(matching: Sequence[bool], scores: Floats, factor: float = FOCUS_FACTOR) -> Floats:
    """The factor for candidates that match, else 1; a score below zero is divided by it, so that it rises too.

    The default is ClawMem's; a caller's own is siftcoder's `boostFn`.
    """
    raised = np.where(scores >= 0, factor, 1.0 / factor)
    return np.where(np.asarray(matching, dtype=np.bool_), raised, 1.0)
