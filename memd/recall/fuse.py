"""Several rankings into one, each leg's share kept apart so that a score can explain itself. Pure.

A leg is (candidate indexes, scores), best first. Reciprocal rank fusion: weight/(k + rank), rank
from 1 (Cormack, Clarke and Büttcher 2009). `max`: weight × score/best. `zscore`: weight × (score −
mean)/deviation over that leg's own candidates. `squared`, MemU's: weight × cosine² for the vector
leg, for the others weight/(1 + 0.2 · (rank − 1)). A leg that did not return a candidate adds nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one leg found: candidate indexes (p,) int64, best first, and their scores (p,)."""

    candidates: NDArray[np.int64]
    scores: Floats

    def ranks(self, count: int) -> NDArray[np.int64]:
        """Rank from 1 per candidate, shape (count,); 0 where the leg did not return it."""
        ranks = np.zeros(count, dtype=np.int64)
        ranks[self.candidates] = np.arange(1, len(self.candidates) + 1)
        return ranks

    def values(self, count: int) -> Floats:
        """Score per candidate, shape (count,); NaN where the leg did not return it."""
        values = np.full(count, np.nan)
        values[self.candidates] = self.scores
        return values


def shares(
    rankings: Mapping[str, Ranking],
    weights: Mapping[str, float],
    *,
    fusion: str,
    rrf_k: int,
    count: int,
) -> dict[str, Floats]:
    """Leg → what it adds to each of `count` candidates, shape (count,)."""
    result = {}
    for leg, ranking in rankings.items():
        weight = weights.get(leg, 0.0)
        added = np.zeros(count)
        if weight > 0 and len(ranking.candidates):
            added[ranking.candidates] = weight * _standing(leg, ranking.scores, fusion, rrf_k)
        result[leg] = added
    return result


def _standing(leg: str, scores: Floats, fusion: str, rrf_k: int) -> Floats:
    if fusion == "rrf":
        return np.asarray(1.0 / (rrf_k + np.arange(1, len(scores) + 1)), dtype=np.float64)
    if fusion == "max":
        best = float(scores.max())
        return np.maximum(scores, 0.0) / best if best > _TINY else np.zeros(len(scores))
    if fusion == "squared":
        if leg == "vector":
            return np.square(np.maximum(scores, 0.0))
        return np.asarray(1.0 / (1.0 + 0.2 * np.arange(len(scores))), dtype=np.float64)
    deviation = float(scores.std())
    return (scores - scores.mean()) / deviation if deviation > _TINY else np.zeros(len(scores))
