"""Learned-vector evidence."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memd.index.memory_index import MemoryIndex
from memd.recall import retrievers
from memd.recall.profiles import LearnedSettings
from memd.recall.query import QueryVector
from memd.recall.retrievers import Floats, Mask, Rows

# MERGED from memd.recall.context:
# MERGED A memory's neighbours are evidence: the question stands in one turn, the answer in the next. Pure.
# MERGED
# MERGED What a candidate gains: a part of the lexical score of the previous and the next passage of its
# MERGED session, and of the session as a whole, scored by BM25 as if it were one document. On LoCoMo's dev
# MERGED turns this lifts recall@5 by nine points, more than a learned model does (`scripts/bench`). None of
# MERGED the published systems has it.


Rows_context = NDArray[np.int64]
Floats_context = NDArray[np.float64]
Mask_context = NDArray[np.bool_]


def add_neighbours(index: MemoryIndex, rows: Rows_context, mask: Mask_context) -> Rows_context:
    """`rows`, then those previous and next rows of theirs that are wanted too."""
    beside = np.concatenate(index.columns.neighbours(rows)).tolist()
    others = set(beside).difference(rows.tolist(), (-1,))
    more = np.array(sorted(others), dtype=np.int64)
    return np.concatenate((rows, more[mask[more]]))


def score_neighbours(
    index: MemoryIndex,
    rows: Rows_context,
    evidence: Mask_context,
    worth: Callable[[Rows_context], Floats_context],
) -> tuple[Floats_context, Floats_context]:
    """What the previous and the next row of each of `rows` are worth; 0 where there is none to be seen.

    `worth` tells it of rows.
    """
    beside = np.concatenate(index.columns.neighbours(rows)).astype(np.int64)
    there = np.flatnonzero((beside >= 0) & evidence[beside])
    shares = np.zeros(len(beside))
    shares[there] = worth(beside[there])
    return shares[: len(rows)], shares[len(rows) :]


# MERGED from memd.recall.meaning:
# MERGED What a learned space says of the rows: which are near to a question, and how near that is. Pure.
# MERGED
# MERGED A cosine says nothing by itself: unrelated texts are at .05 with one model and at .5 with another. So it
# MERGED is measured twice. To order candidates: a *share*, 0 at the mean of the rows that may be seen, 1 at the
# MERGED nearest. Every candidate has one, not only those in the leg's pool, or whoever just missed the pool would
# MERGED lose all of it. To tell whether anything fits at all: in deviations from sentences about nothing in
# MERGED particular. The rows themselves cannot tell: where all memories are about one thing, the nearest stands out
# MERGED from the others no more for a good question than for nonsense (measured), but well above such sentences.
# MERGED Not here: asking the model.


SAMPLE = 1_024
"""Of so many rows the mean is taken, evenly spaced: it is off by a thirtieth of their deviation."""
_FEW = 10
_SPREAD = 0.05
"""Of the way from the mean to 1: at least so much is a deviation, should the sentences be too alike."""
_SUPPOSED = 0.75
_TINY = 1e-6
UNRELATED = (
    "The bakery on the corner closes at six.",
    "A glacier moves a few metres a year.",
    "The violin was restored in Cremona.",
    "Tomatoes need a sunny wall.",
    "The referee added four minutes.",
    "Her passport expires in March.",
    "The bridge was painted green again.",
    "Penguins dive for krill.",
    "The invoice was paid twice.",
    "Rain delayed the last ferry.",
    "He learned to juggle in a week.",
    "The museum bought a bronze horse.",
    "Sugar dissolves faster in hot water.",
    "The senate rejected the bill.",
    "A dentist looks at the x-ray.",
    "The tent has a broken pole.",
    "fix: a typo in the readme",
    "Bump the version to 2.4.1.",
    "The linter complains about an unused import.",
    "xk7f qpl 0x3fd9 wvz",
    "The cache is cleared on every deploy.",
    "A test failed with a timeout on Windows.",
    "The parser skips blank lines.",
    "Rename the helper and its callers.",
    "The endpoint returns 404 for unknown users.",
    "She prefers tabs.",
    "def f(x): return x + 1",
    "The migration adds an index on email.",
    "Button colours follow the theme.",
    "zor blim ketta fuu",
    "Logs rotate at ten megabytes.",
    "Types are checked in CI.",
)
"""What a question is not about: half of it everyday life, half of it what stands in every repository."""


@dataclass(frozen=True, slots=True)
class LearnedEvidence:
    """What a learned space says of a question."""

    aim: QueryVector
    leads: bool
    """Whether it answers alone; else the hashing space is asked too."""
    rows: Rows
    """The nearest row of each of the nearest summaries that are near enough to come in by it alone."""
    cosines: Floats
    """Of `rows`."""
    mean: float
    """Of the rows that may be seen."""
    best: float
    """Of the nearest of them."""
    weight: float
    """What the share of the nearest one counts; while the space is being filled, less by what it lacks."""
    context: float
    """The same of the shares of neighbours."""

    def shares(self, cosines: Floats) -> Floats:
        """Give how far from the mean to the best each cosine is, 0 to 1; 0 for NaN: no vector."""
        reach = self.best - self.mean
        if reach < _TINY:
            return np.where(cosines >= self.best - _TINY, 1.0, 0.0)
        return np.fmin(np.fmax((cosines - self.mean) / reach, 0.0), 1.0)

    def steps(self, cosines: Floats) -> list[tuple[str, str, Floats]]:
        """What is added to each candidate by its cosine, and to those without one.

        What has no vector yet gets as much as the upper quarter of the others has at least: with nothing,
        a memory that is still to be embedded would fall behind all that are (with three in ten of a vault
        embedded, MRR on commit messages falls from 52.4 to 47.9; so it stays).
        """
        found, has_none = self.weight * self.shares(cosines), np.isnan(cosines)
        supposed = 0.0 if has_none.all() else float(np.quantile(found[~has_none], _SUPPOSED))
        return [("learned", "+", found), ("unlearned", "+", np.where(has_none, supposed, 0.0))]


def find_learned_evidence(
    index: MemoryIndex, aim: QueryVector, mask: Mask, learned: LearnedSettings, pool: int
) -> LearnedEvidence | None:
    """The rows near to a question, of those that `mask` lets be seen; None if none has a vector."""
    matrix = index.matrices[aim.space]
    rows, cosines = retrievers.search_vectors(index, aim.space, aim.vector, mask, pool)
    if not len(rows):
        return None
    seen = np.flatnonzero(mask)
    some = matrix.cosines(aim.vector, seen[:: -(-len(seen) // SAMPLE)])
    mean = float(some[some != 0].mean()) if some.any() else float(cosines.mean())
    leads = aim.space == index.active
    trust = 1.0 if leads else float(np.count_nonzero(some)) / len(some)
    kept = cosines >= cosine_floor(aim.unrelated, len(seen), learned)
    leg = retrievers.nearest_summaries(index, rows[kept], cosines[kept], pool)
    weights = (trust * learned.weight, trust * learned.context)
    return LearnedEvidence(aim, leads, *leg, mean, float(cosines[0]), *weights)


def cosine_floor(
    unrelated: NDArray[np.float32] | None, count: int, learned: LearnedSettings
) -> float:
    """The cosine that a row must have to come in by its meaning alone; no row has infinity.

    `unrelated` are the question's cosines with sentences that it is not about. Of `count` draws at
    random the highest lies about √(2 ln count) deviations above the mean: so must the floor. Few
    memories are taken for ten, or every question would have something to do with the only one.
    """
    if unrelated is None:
        return math.inf
    deviations = learned.floor + math.sqrt(2.0 * math.log(max(count, _FEW)))
    mean = float(unrelated.mean())
    return mean + deviations * max(float(unrelated.std()), _SPREAD * (1.0 - mean))


def cosines_of(
    index: MemoryIndex, found: LearnedEvidence, rows: Rows, of_leg: Floats | None
) -> Floats:
    """The cosine of each candidate, by its nearest passage as far as the leg knows it; NaN: no vector.

    `of_leg` are the leg's, NaN for a candidate that is not in it; None if nothing is.
    """
    own = _cosines(index, found, rows)
    return own if of_leg is None else np.asarray(np.fmax(own, of_leg), np.float64)


def _cosines(index: MemoryIndex, found: LearnedEvidence, rows: Rows) -> Floats:
    own = index.matrices[found.aim.space].cosines(found.aim.vector, rows).astype(np.float64)
    return np.where(own == 0.0, np.nan, own)


def share_of_neighbours(
    index: MemoryIndex, found: LearnedEvidence, rows: Rows, evidence: Mask
) -> tuple[Floats, Floats]:
    """The shares of the previous and the next row of each of `rows`; 0 where there is none to be seen."""
    return score_neighbours(
        index, rows, evidence, lambda others: found.shares(_cosines(index, found, others))
    )
