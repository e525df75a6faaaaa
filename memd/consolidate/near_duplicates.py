"""Find pairs of similar memories: by the cosine of their vectors, or by one normalised text."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memd.belief.claims import FILLER_WORDS, join_title
from memd.belief.compare import Agreement, compare
from memd.index.columns import Rows
from memd.index.memory_index import MemoryIndex
from memd.index.quantization import Floats
from memd.models import Authority, Kind, Summary
from memd.text import content_stems, fold, is_stop_word, stem, words

_BLOCK_ROWS = 128
"""New rows per matrix product."""
_SLICE_ROWS = 512
"""Rows compared at a time. The index is locked only while they are copied, and the process keeps a part
of the memory of the largest slice: 60 MB for slices of 4,096 rows."""
PAIRS_PER_MEMORY_MAX = 8
"""Most similar pairs found per new memory: of a thousand copies a few are hidden per run."""
_COSINE_EPSILON = 1e-6

CosinePair = tuple[int, int, float]
"""(summary id, other summary id, cosine), the smaller id first."""


@dataclass(frozen=True, slots=True)
class SpaceRows:
    """The rows of an index in one space, one per passage, as they were when they were read."""

    summary_id: NDArray[np.int64]
    project_id: NDArray[np.int32]
    seq: NDArray[np.int32]
    live: NDArray[np.bool_]
    """False for removed and superseded rows."""
    vectors: Callable[[Rows], Floats]
    """The unit vectors of these rows, (m, dimensions); zeros for a row that has none."""
    is_current: Callable[[], bool] = lambda: True
    """Whether the index still has these rows; if not, the pairs found are worthless."""

    def find_comparable(self, summary_ids: Sequence[int]) -> set[int]:
        """Return the memories among these that have a vector for each passage."""
        rows = np.flatnonzero(np.isin(self.summary_id, list(summary_ids)) & self.live)
        lacking: set[int] = set()
        for first in range(0, len(rows), _SLICE_ROWS):
            part = rows[first : first + _SLICE_ROWS]
            has_vector = self.vectors(part).any(axis=1)
            lacking.update(self.summary_id[part[~has_vector]].tolist())
        return set(self.summary_id[rows].tolist()) - lacking

    def find_pairs(self, summary_ids: Sequence[int], threshold: float) -> list[CosinePair]:
        """The live memories of the same project whose cosine with one of these reaches the threshold.

        Each pair once. A memory of several passages is similar only to one of as many passages, and
        only as much as the least similar of them.
        """
        (*_, pairs) = self.search_pairs(summary_ids, threshold)
        return pairs

    def search_pairs(
        self, summary_ids: Sequence[int], threshold: float
    ) -> Iterator[list[CosinePair]]:
        """Do the work of `find_pairs` in steps of milliseconds; the last step yields all pairs."""
        heads = np.flatnonzero(self.live & (self.seq == 0))
        wanted = np.flatnonzero(np.isin(self.summary_id[heads], list(summary_ids)))
        if not len(wanted):
            yield []
            return
        threshold = max(threshold, _COSINE_EPSILON)
        passages = np.bincount(self.summary_id[self.live])[self.summary_id[heads]]
        groups = np.stack((self.project_id[heads].astype(np.int64), passages))
        best = _BestPairs(wanted, self.vectors(heads[wanted]), groups, threshold)
        for first in range(0, len(heads), _SLICE_ROWS):
            yield []
            best.add_slice(first, self.vectors(heads[first : first + _SLICE_ROWS]))
        yield []
        found: dict[tuple[int, int], float] = {}
        for new, other, cosine in zip(best.new, best.other, best.cosines.tolist(), strict=True):
            one, two = sorted(self.summary_id[heads[[wanted[new], other]]].tolist())
            if (one, two) not in found:
                found[one, two] = min(cosine, self._lowest_cosine(one, two), 1.0)
        yield [(*pair, cosine) for pair, cosine in found.items() if cosine >= threshold]

    def _lowest_cosine(self, one: int, other: int) -> float:
        """The lowest cosine of two memories' passages in order; 1 if both have a single one."""
        ours, theirs = self._find_passages(one), self._find_passages(other)
        if len(ours) == len(theirs) == 1:
            return 1.0
        if self.seq[ours].tolist() != self.seq[theirs].tolist():
            return 0.0
        return float(np.einsum("ij,ij->i", self.vectors(ours), self.vectors(theirs)).min())

    def _find_passages(self, summary_id: int) -> Rows:
        rows = np.flatnonzero((self.summary_id == summary_id) & self.live)
        return rows[np.argsort(self.seq[rows])]


class _BestPairs:
    """The most similar rows of each new row, gathered slice by slice."""

    def __init__(
        self, wanted: Rows, vectors: Floats, groups: NDArray[np.int64], threshold: float
    ) -> None:
        """`wanted`: the new rows among all; `groups`: (2, all rows); only equal columns are compared."""
        self._wanted, self._vectors, self._groups = wanted, vectors, groups
        self._threshold = threshold
        self.new, self.other = np.zeros((2, 0), np.intp)
        self.cosines: Floats = np.zeros(0, np.float32)

    def add_slice(self, offset: int, others: Floats) -> None:
        """Compare every new row with these rows, the first of which is row `offset` of all."""
        for first in range(0, len(self._vectors), _BLOCK_ROWS):
            cosines = self._vectors[first : first + _BLOCK_ROWS] @ others.T
            new, other = np.nonzero(cosines >= self._threshold)
            values, new, other = cosines[new, other], new + first, other + offset
            row = self._wanted[new]
            fits = (self._groups[:, row] == self._groups[:, other]).all(axis=0) & (row != other)
            if fits.any():
                self._keep_best(new[fits], other[fits], values[fits])

    def _keep_best(self, new: Rows, other: Rows, cosines: Floats) -> None:
        new, other = np.append(self.new, new), np.append(self.other, other)
        cosines = np.append(self.cosines, cosines)
        order = np.lexsort((other, -cosines, new))
        rank = np.arange(len(new)) - np.searchsorted(new[order], new[order])
        best = order[rank < PAIRS_PER_MEMORY_MAX]
        self.new, self.other, self.cosines = new[best], other[best], cosines[best]


def read_vector_rows(index: MemoryIndex, space: str) -> SpaceRows | None:
    """The rows of an index in one space; None while the space is being loaded.

    The columns are copied; vectors are read on demand, a slice at a time, so that a search never waits
    long for the index.
    """
    with index.lock:
        columns, matrix = index.columns, index.matrices.get(space)
        is_filling = space != index.learned and index.coverage(space) < 1
        if not index.loaded or matrix is None or is_filling:
            return None
        n, dimensions = columns.n, matrix.dimensions
        last = int(columns.passage_id[n - 1]) if n else 0
        summary_id, project_id = columns.summary_id.copy(), columns.project_id.copy()
        seq, live = columns.seq.copy(), columns.live & ~columns.retired

    def is_current() -> bool:
        # Passages are in order of id, so the last one is at its index only if all are.
        now = index.columns
        is_unmoved = now.n >= n and (not n or int(now.passage_id[n - 1]) == last)
        return space in index.matrices and is_unmoved

    def vectors(rows: Rows) -> Floats:
        with index.lock:
            if is_current():
                return index.matrices[space].vectors(rows)
        return np.zeros((len(rows), dimensions), np.float32)

    return SpaceRows(summary_id, project_id, seq, live, vectors, is_current)


_TIME_STAMP = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:\d\d:\d\d"
    r"|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
)


def hash_text(title: str, body: str) -> int:
    """A hash of 64 bits of the normalised text: without case, punctuation, order, filler and times.

    Equal texts are a candidate pair whatever their cosine. The hash may ignore more than two
    equal texts may differ in (`not`, every date), but never less.
    """
    bare = _TIME_STAMP.sub(" ", f"{title}\n{body}")
    folded = {fold(word) for word in words(bare) if not is_stop_word(word)}
    stems = sorted({stem(word) for word in folded - FILLER_WORDS})
    hashed = hashlib.blake2b(" ".join(stems).encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "little", signed=True)


COSINE_MIN = 0.45
"""Memories from this cosine are considered, in the space that is always complete."""
LEARNED_COSINE_MIN = 0.85
"""A learned cosine that makes a candidate by itself."""
_CANDIDATE_COSINE_MIN = 0.6
"""A cosine in the complete space that makes a candidate by itself."""
_SHARED_WORDS_MIN = 0.5
"""A share of common words that makes a candidate by itself."""
CANDIDATES_MAX = 3
_JUDGED_KINDS = frozenset(
    {Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK, Kind.NOTE}
)
"""Kinds that state something; what happened in a turn competes with nothing."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory and its cosine with a new one in both spaces; 0 where they were not compared."""

    summary: Summary
    cosine: float
    learned_cosine: float = 0.0


@dataclass(frozen=True, slots=True)
class JudgmentCandidate:
    """A memory that is similar to a new one, how much (0 to 1), and in what the two differ."""

    id: int
    title: str
    kind: Kind
    authority: Authority
    at: int
    likeness: float
    finding: str
    pinned_at: int | None = None
    """When it was pinned: nothing hides a pinned memory."""


def select_candidates(
    mine: Summary, near: Iterable[Neighbour], judged: Collection[int], now: int
) -> tuple[JudgmentCandidate, ...]:
    """The most similar memories that no rule and no judgment has resolved, best first."""
    found = (
        _make_candidate(mine, one)
        for one in near
        if {mine.kind, one.summary.kind} <= _JUDGED_KINDS
        and one.summary.id not in {mine.id, *judged}
        and one.summary.superseded_by is None
        and not one.summary.is_expired(now)
    )
    best = sorted(filter(None, found), key=lambda one: (-one.likeness, -one.id))
    return tuple(best[:CANDIDATES_MAX])


def _make_candidate(mine: Summary, near: Neighbour) -> JudgmentCandidate | None:
    other = near.summary
    our_text, their_text = (join_title(one.title, one.body) for one in (mine, other))
    ours, theirs = set(content_stems(our_text)), set(content_stems(their_text))
    shared = len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0
    is_near = near.cosine >= _CANDIDATE_COSINE_MIN or near.learned_cosine >= LEARNED_COSINE_MIN
    if not is_near and shared < _SHARED_WORDS_MIN:
        return None
    comparison = compare(their_text, our_text)
    if comparison.agreement is Agreement.SAME and other.kind is mine.kind:
        return None
    likeness = max(near.cosine, shared, near.learned_cosine)
    return make_candidate(other, likeness, comparison.reason)


def make_candidate(one: Summary, likeness: float, finding: str) -> JudgmentCandidate:
    """A memory to judge."""
    fields = one.id, one.title, one.kind, one.authority, one.at
    return JudgmentCandidate(*fields, round(likeness, 3), finding, one.pinned_at)
