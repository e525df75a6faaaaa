"""Re-ranking: a formula over the candidates' words, a model's scores, and the focus of a session.

The formula is siftcoder's deterministic reranker: Σ tf/length · ln(1 + (N − df + ½)/(df + ½)) over the words
of the question, + 0.1 for each word found, + 0.4 if the text has the whole question of four characters or
more as it stands, − 0.01 · ln(1 + length), + 0.5 · the score so far. Length is in words. The publication
leaves open, and memd decides: a word is memd's (stemmed, identifiers split), N and df count what the question
may see, where the original takes the newest 2,000.

A focus pattern with `*`, `?`, `[` or `/` is a glob over the paths of a memory's files and matches any end of
one: `auth/*.py` matches `src/auth/tokens.py`. Any other is one word or several, to be found in a title, a
body or a path where a word begins. The factor is ClawMem's 1.4; scores of other memories do not change. A caller
may name patterns with factors of its own, which is siftcoder's `boostFn`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from memd.models import Summary
from memd.recall.precedence import compute_lifts
from memd.recall.profiles import RerankSettings
from memd.recall.ranking import ScoreStep
from memd.recall.retrievers import Floats
from memd.recall.types import Answer, ScorePart, apply_parts
from memd.text import fold, normalised, stems

PHRASE_CHARACTERS_MIN = 4
FOCUS_FACTOR = 1.4
_NOT_KEPT = "not kept by the reranker"
_GLOB = re.compile(r"[*?\[/]")


def rerank_by_terms(
    question: str, idfs: Mapping[str, float], texts: Sequence[str], weights: RerankSettings
) -> list[ScoreStep]:
    """Score each text by the formula, as steps of a score; `idfs`: term → idf."""
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
    """Return whether any of the patterns matches a memory, or the path of a file that it was imported from."""
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
    """The factor for candidates that match, else 1; a score below zero is divided by it, so that it rises too."""
    raised = np.where(scores >= 0, factor, 1.0 / factor)
    return np.where(np.asarray(matching, dtype=np.bool_), raised, 1.0)
