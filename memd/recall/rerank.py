"""Second-stage re-ranking, session focus."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from memd.models import Summary
from memd.recall.profiles import RerankSettings
from memd.recall.retrievers import Floats
from memd.recall.types import Answer, Hit, ScorePart, apply_parts
from memd.text import fold, normalised, stems

# MERGED from memd.recall.rerank:
# MERGED A second look at the candidates: a formula over their words, or the scores of a model. Pure.
# MERGED
# MERGED The formula is siftcoder's deterministic reranker: Σ tf/length · ln(1 + (N − df + ½)/(df + ½)) over the
# MERGED words asked, + 0.1 for each that is there, + 0.4 if the whole question of four characters or more stands
# MERGED there as it is, − 0.01 · ln(1 + length), + 0.5 · the score so far. Length is in words. Open in the
# MERGED publication, and decided here: a word is memd's (stemmed, identifiers split), N and df count what the
# MERGED question may see, where the original takes the newest 2,000. Proximity is ours and 0 unless a profile
# MERGED says: 1 if the words that were found stand side by side, less the further they are apart. Not here:
# MERGED asking the model (recaller.py).


PHRASE_CHARACTERS_MIN = 4
Steps = list[tuple[str, str, Floats]]


def rerank_by_terms(
    question: str, rarities: Mapping[str, float], texts: Sequence[str], weights: RerankSettings
) -> Steps:
    """What the formula makes of each text, as steps of a score; `rarities`: term → idf."""
    looked = [_look(question, rarities, text) for text in texts]
    column = np.array(looked, dtype=np.float64).reshape(len(texts), 5).T
    return [
        ("rerank", "*", np.full(len(texts), weights.fused)),
        ("terms", "+", weights.terms * column[0]),
        ("matched", "+", weights.matched * column[1]),
        ("phrase", "+", weights.phrase * column[2]),
        ("brevity", "+", -weights.length * column[3]),
        ("proximity", "+", weights.proximity * column[4]),
    ]


def _look(
    question: str, rarities: Mapping[str, float], text: str
) -> tuple[float, int, bool, float, float]:
    """(Σ tf · idf, words found, whether the question stands there, ln(1 + length), proximity)."""
    tokens = list(stems(text))
    length = len(tokens)
    places = [(place, token) for place, token in enumerate(tokens) if token in rarities]
    found = {token for _, token in places}
    tfidf = sum(rarities[token] for _, token in places) / length if length else 0.0
    asked = normalised(question)
    whole = len(asked) >= PHRASE_CHARACTERS_MIN and f" {asked} " in f" {normalised(text)} "
    return tfidf, len(found), whole, math.log1p(length), proximity(places)


def proximity(places: Sequence[tuple[int, str]]) -> float:
    """(n − 1)/(width − 1) of the narrowest window with all n words, in order of place; 0 below two words."""
    wanted = len({word for _, word in places})
    if wanted <= 1:
        return 0.0
    last: dict[str, int] = {}
    width = math.inf
    for place, word in places:
        last[word] = place
        if len(last) == wanted:
            width = min(width, place - min(last.values()))
    return (wanted - 1) / max(width, wanted - 1)


def rerank_by_model(answer: Answer, scores: Sequence[float], offset: int, k: int) -> Answer:
    """The page of an answer whose hits, all of them, got these scores of a model instead of their own."""
    rated = [_rated(hit, score) for hit, score in zip(answer.hits, scores, strict=True)]
    return cut_page(
        replace(answer, hits=tuple(sorted(rated, key=lambda h: -h.score))), offset, k
    )


def _rated(hit: Hit, score: float) -> Hit:
    parts = (*hit.parts, ScorePart("rerank", 0.0, "*"), ScorePart("model", score))
    return replace(hit, parts=parts, score=apply_parts(parts))


def cut_page(answer: Answer, offset: int, k: int) -> Answer:
    """One page of a longer answer, its trace in order of the hits."""
    shown = answer.hits[offset : offset + k]
    place = {hit.summary.id: rank for rank, hit in enumerate(answer.hits)}
    hits = {hit.summary.id: hit for hit in answer.hits}
    traced = []
    for one in answer.trace:
        hit = hits.get(one.summary_id)
        if hit is None:
            traced.append(one)
            continue
        rank = place[one.summary_id]
        verdict = "hit" if offset <= rank < offset + k else f"rank {rank + 1}"
        traced.append(replace(one, score=hit.score, parts=hit.parts, verdict=verdict))
    traced.sort(key=lambda one: place.get(one.summary_id, len(place)))
    return replace(answer, hits=shown, trace=tuple(traced))


# MERGED from memd.recall.focus:
# MERGED What a session is about: words and globs that weigh the hits up which they fit. Pure.
# MERGED
# MERGED A pattern with `*`, `?`, `[` or `/` is a glob over the paths of a memory's files, of which it may fit
# MERGED any end: `auth/*.py` fits `src/auth/tokens.py`. Any other is a word or several, to stand in a title, a
# MERGED body or a path where a word begins: `report` fits `reports`, not `reporting-line`'s second half. The
# MERGED factor is ClawMem's 1.4; what does not fit is left as it is, and where nothing fits, so is everything.


FACTOR = 1.4
_GLOB = re.compile(r"[*?\[/]")


def matches_focus(summary: Summary, patterns: Sequence[str]) -> bool:
    """Whether any of the patterns fits."""
    paths = [fold(path) for path in summary.files]
    text = fold("\n".join((summary.title, summary.body, *paths)))
    return any(
        _in_paths(pattern, paths) if _GLOB.search(pattern) else _in_text(pattern, text)
        for pattern in map(fold, patterns)
        if pattern.strip()
    )


def _in_paths(pattern: str, paths: Sequence[str]) -> bool:
    # A folder means all that is in it.
    pattern = (pattern + "*" if pattern.endswith("/") else pattern).lstrip("/")
    return any(
        fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}") for path in paths
    )


def _in_text(pattern: str, text: str) -> bool:
    words = r"\s+".join(re.escape(word) for word in pattern.split())
    return re.search(rf"(?<![^\W_]){words}", text) is not None


def focus_factors(fitting: Sequence[bool], scores: Floats) -> Floats:
    """1.4 for what fits, else 1; a score below zero is divided, so that it rises too. Shape (m,)."""
    raised = np.where(scores >= 0, FACTOR, 1.0 / FACTOR)
    return np.where(np.asarray(fitting, dtype=np.bool_), raised, 1.0)
