"""Learned vectors: which rows are near to a question, and how much that is worth.

A cosine says nothing by itself: with one model unrelated texts are at .05, with another at .5. So it is
measured twice, both times in deviations from the mean. To order candidates: of the question's cosines with
the rows that may be seen. The nearest of 5,000 chat turns stands 3 above, the nearest of as many functions 6:
there the model knows what it says. To decide whether a memory matches at all: of those with sentences about
nothing in particular. The rows themselves cannot decide that: where all memories are about one thing, the nearest
stands out no more for a good question than for nonsense (measured), but well above such sentences.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memd.embeddings.hashing import weigh_question
from memd.index.memory_index import MemoryIndex
from memd.recall import retrievers
from memd.recall.profiles import LearnedSettings
from memd.recall.query import QueryVector
from memd.recall.retrievers import VAULT_ROWS_MIN, Floats, IndexedQuery, Rows
from memd.store.filter import Mask

SAMPLE_ROWS = 1_024
"""The mean is taken of this many rows, evenly spaced: it is off by a thirtieth of their deviation."""
_COUNT_MIN = 10
"""Fewer memories are taken for this many, or every question would match the only one."""
_DEVIATION_MIN = 0.05
"""The least deviation, as a share of the way from the mean to 1, should the sentences be too alike."""
_POSSIBLE_MIN = 2.7
"""The least deviations of what may be meant, however few memories there are: of 200 paraphrases whose answer is among
the five nearest four in a hundred are below; of questions about other things more than half."""
_ASSUMED_QUANTILE = 0.75
_DEVIATION_LEAST = 1e-3
_MISSPELT = (-6.0, 6.0, 1.5, 0.8)
"""Log odds that strange words are misspelt: to begin with, for how few are new, for how many were corrected, for each
deviation beyond the best by chance. Fitted to questions as asked and misspelt of five sets, each left out in turn: 93 of
100 pairs in the right order."""
_COMMON_MIN = 1.0
"""The deviations above unrelated sentences at which the mean memory says nothing yet; one more says all. Questions in a
language that the model hardly knows, about chats and about code are at 2 to 4, paraphrases at most at 0.6."""
_EXCESS_MAX = 5.0
_SURE = 1.25
_FAR, _CONVEXITY = 5.0, 1.5
"""Deviations at which a cosine is worth the whole weight; and the exponent that makes middling ones worth little."""
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
"""Sentences that no question is about: half of them everyday life, half of them from any repository."""


@dataclass(frozen=True, slots=True)
class LearnedMatch:
    """Cosines of a question with the rows of a learned space."""

    query: QueryVector
    leads: bool
    """Whether it is the vector retriever; else the hashing space is, and this stands beside it."""
    rows: Rows
    """The nearest row of each of the nearest summaries that are near the question, best first."""
    cosines: Floats
    """Of `rows`."""
    meant: Rows
    """Those of `rows` that match by their meaning alone."""
    mean: float
    """The mean cosine of the rows that may be seen."""
    deviation: float
    """Its standard deviation."""
    may_be_meant: bool
    """Whether the nearest row stands so far above unrelated sentences that it may be the answer."""
    weight: float
    """The worth of a row that stands out by `_FAR` deviations; less while the space is being filled."""
    settings: LearnedSettings
    spelling: QueryVector | None = None
    """The question in the hashing space, which a leading space leaves in second place."""
    common: float = 0.0
    """How sure it is that the question is near to all memories alike, 0 to 1; see `measure_common`."""
    misspelt: float = 0.0
    """The share of the question that no model can read; see `measure_misspelling`."""
    spelt_alike: Rows | None = None
    """The nearest row of each of the nearest summaries in the hashing space, if anything is misspelt."""

    def scale_above_mean(self, cosines: Floats) -> Floats:
        """Scale each cosine by how far it stands above the mean: 1 at `_FAR` deviations, 0 at the mean and for NaN: no vector."""
        return np.fmax((cosines - self.mean) / (_FAR * self.deviation), 0.0) ** _CONVEXITY

    def steps(self, cosines: Floats) -> list[tuple[str, str, Floats]]:
        """The steps that score candidates by their cosine, and those that have none.

        A row that has no vector yet gets what at least the upper quarter of the others has: with nothing,
        a memory that is still to be embedded would rank behind all that are (with three in ten of a vault
        embedded, MRR on commit messages would fall from 52.4 to 47.9).
        """
        is_missing = np.isnan(cosines)
        weight = self.weight * (1.0 - self.misspelt)
        found = np.where(is_missing, 0.0, weight * self.scale_above_mean(cosines))
        assumed = (
            0.0 if is_missing.all() else float(np.quantile(found[~is_missing], _ASSUMED_QUANTILE))
        )
        return [("learned", "+", found), ("unlearned", "+", np.where(is_missing, assumed, 0.0))]


def match_learned(
    index: MemoryIndex,
    query: QueryVector,
    mask: Mask,
    learned: LearnedSettings,
    pool: int,
    spelling: QueryVector | None = None,
) -> LearnedMatch | None:
    """Match the rows that `mask` lets be seen; None if none of them has a vector."""
    rows, cosines = retrievers.search_vectors(index, query, mask, pool)
    if not len(rows):
        return None
    visible = np.flatnonzero(mask)
    sample = visible[:: -(-len(visible) // SAMPLE_ROWS)]
    sampled = index.matrices[query.space].cosines(query.vector, sample)
    known = sampled[sampled != 0] if sampled.any() else cosines
    if query.unrelated is not None and len(known) < VAULT_ROWS_MIN:
        known = np.concatenate([known, query.unrelated])  # a few memories have no distribution
    mean, deviation = float(known.mean()), max(float(known.std()), _DEVIATION_LEAST)
    leads = query.space == index.active
    trust = 1.0 if leads else float(np.count_nonzero(sampled)) / len(sampled)
    near = cosines >= cosine_floor(query.unrelated, 1, learned.near)
    nearest, nearest_cosines = retrievers.nearest_summaries(index, rows[near], cosines[near], pool)
    count = max(len(visible), _COUNT_MIN)
    matching = nearest_cosines >= cosine_floor(query.unrelated, count, learned.floor)
    possible = cosine_floor(query.unrelated, count, learned.possible)
    excess = (float(cosines[0]) - mean) / deviation - _best_by_chance(count)
    return LearnedMatch(
        query=query,
        leads=leads,
        rows=nearest,
        cosines=nearest_cosines,
        meant=nearest[matching],
        mean=mean,
        deviation=deviation,
        may_be_meant=float(cosines[0])
        >= max(possible, cosine_floor(query.unrelated, 1, _POSSIBLE_MIN)),
        weight=trust * learned.weight,
        settings=learned,
        spelling=spelling,
        common=measure_common(query.unrelated, mean, excess),
    )


def measure_common(unrelated: NDArray[np.float32] | None, mean: float, excess: float) -> float:
    """Rate how surely a question is near to all memories alike, 0 to 1.

    If the mean of its cosines with them stands above unrelated sentences, the model sees in it what all have in common: a
    language that it hardly knows, or that all are chats. That tells none of them from the others, unless one stands
    out by an `excess` of deviations beyond the best by chance; words may.
    """
    if unrelated is None:
        return 0.0
    above = (mean - float(unrelated.mean())) / _measure_deviation(unrelated)
    is_common, stands_out = (min(max(it, 0.0), 1.0) for it in (above - _COMMON_MIN, excess))
    return is_common * (1.0 - stands_out)


def _best_by_chance(count: int) -> float:
    """About how many deviations above the mean the highest of `count` draws at random lies."""
    return math.sqrt(2.0 * math.log(count))


def find_misspelt(
    query: IndexedQuery, match: LearnedMatch, hashing: QueryVector, mask: Mask, pool: int
) -> LearnedMatch:
    """The match with what is spelt like the question, as far as that is misspelt."""
    misspelt = measure_misspelling(query, hashing.space)
    if not misspelt:
        return match
    rows, _ = retrievers.find_nearest(query, hashing, mask, pool)
    return replace(match, misspelt=misspelt, spelt_alike=rows)


def measure_misspelling(query: IndexedQuery, space: str) -> float:
    """The share of a question's words that are likely misspelt, 0 to 1: a model cannot read these.

    A word that no memory has is either another word for the same, which a model can read, or misspelt. Misspelt ones
    are near a word of some memory: within an edit or two, or by their n-grams in the hashing space. And where few words
    are new, as the vault has many times as many words as different ones, a question has few new words by chance.
    """
    asked, strange, index = query.parsed.terms.spelt, query.terms.strange, query.index
    if not strange:
        return 0.0
    matrix, wanted = index.matrices[space], query.visible.wanted
    vector = weigh_question(" ".join(strange), lambda _: 1.0)
    _, nearest = matrix.top(vector, 1, wanted)
    if not len(nearest):
        return 0.0
    visible = np.flatnonzero(wanted)
    sample = matrix.cosines(vector, visible[:: -(-len(visible) // SAMPLE_ROWS)])
    deviation = max(float(sample.std()), matrix.dimensions**-0.5)
    excess = (float(nearest[0]) - float(sample.mean())) / deviation
    excess -= _best_by_chance(max(len(visible), _COUNT_MIN))
    share = len(strange) / len(asked)
    words = float(index.columns.length.sum())
    surprise = share * math.log(max(words / max(len(index.vocabulary), 1), 1.0))
    corrected = len(query.terms.corrected) / len(strange)
    facts = (1.0, min(surprise, 1.0), corrected, min(excess, _EXCESS_MAX))
    log_odds = sum(weight * fact for weight, fact in zip(_MISSPELT, facts, strict=True))
    return share * min(_SURE / (1.0 + math.exp(-log_odds)), 1.0)


def cosine_floor(unrelated: NDArray[np.float32] | None, count: int, deviations: float) -> float:
    """The cosine that the best of `count` rows must have to stand out by a number of deviations; infinity if that is unknown.

    `unrelated` are the question's cosines with sentences that it is not about.
    """
    if unrelated is None:
        return math.inf
    deviations += _best_by_chance(count)
    return float(unrelated.mean()) + deviations * _measure_deviation(unrelated)


def _measure_deviation(unrelated: NDArray[np.float32]) -> float:
    return max(float(unrelated.std()), _DEVIATION_MIN * (1.0 - float(unrelated.mean())))


def measure_cosines(index: MemoryIndex, learned: LearnedMatch, rows: Rows) -> Floats:
    """The cosine of each of `rows`; NaN for a row that has no vector."""
    matrix = index.matrices[learned.query.space]
    cosines = matrix.cosines(learned.query.vector, rows).astype(np.float64)
    return np.where(cosines == 0.0, np.nan, cosines)
