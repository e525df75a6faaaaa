"""Candidate pairs by cosine or normalised text."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memd.consolidate.claims import FILLER_WORDS
from memd.consolidate.compare import Agreement, compare
from memd.index.columns import Rows
from memd.index.memory_index import MemoryIndex
from memd.index.quantization import Floats
from memd.models import Kind, Summary
from memd.text import content_stems, fold, is_stop_word, stem, words

# MERGED from memd.consolidate.nearest:
# MERGED Which memories look like which: cosines of new rows with all rows, block by block.
# MERGED
# MERGED The memories of an agent repeat themselves, so the number of pairs is bounded per new memory: of a
# MERGED thousand copies a few are paired now, those are hidden, and nothing is lost by not having seen the
# MERGED others. A memory of several passages is like another one only if it has as many and each is like its
# MERGED counterpart. Not here: what a pair leads to (decide.py).


_BLOCK_ROWS = 128
"""New rows per product."""
_SLICE_ROWS = 512
"""Rows that are compared at a time; the index is locked only while they are copied. Small, because
what a tick takes and gives back stays with the process in part: 60 MB for slices of 4,096."""
PAIRS_PER_MEMORY_MAX = 8
"""Pairs per new memory, the most alike first."""

CosinePair = tuple[int, int, float]
"""(summary id, other summary id, cosine), the smaller id first."""


class NearestRows(Protocol):
    """What consolidation needs of an index."""

    def indexed(self, summary_ids: Sequence[int]) -> set[int]:
        """Those that can be compared by now."""
        ...

    def looking(
        self, summary_ids: Sequence[int], threshold: float
    ) -> Iterator[list[CosinePair]]:
        """Step by step: live memories of the same project as one of these, alike by the threshold."""
        ...

    @property
    def is_current(self) -> Callable[[], bool]:
        """Whether the rows are still those; if not, what was found means nothing."""
        ...


@dataclass(frozen=True, slots=True)
class VectorRows:
    """One row per passage. `live` is False for what is dead or superseded. Conforms to NearestRows."""

    summary_id: NDArray[np.int64]
    project_id: NDArray[np.int32]
    seq: NDArray[np.int32]
    live: NDArray[np.bool_]
    vectors: Callable[[Rows], Floats]
    """The vectors of these rows, (m, dimensions), of length 1; all zeros where there is none."""
    is_current: Callable[[], bool] = lambda: True
    """Whether the rows are still those; if not, what was found since means nothing."""

    def indexed(self, summary_ids: Sequence[int]) -> set[int]:
        """Those with a vector for each of their passages."""
        rows = np.flatnonzero(np.isin(self.summary_id, list(summary_ids)) & self.live)
        has = np.zeros(len(rows), np.bool_)
        for first in range(0, len(rows), _SLICE_ROWS):
            has[first : first + _SLICE_ROWS] = self.vectors(
                rows[first : first + _SLICE_ROWS]
            ).any(axis=1)
        found = self.summary_id[rows]
        return set(found.tolist()) - set(found[~has].tolist())

    def pairs(self, summary_ids: Sequence[int], threshold: float) -> list[CosinePair]:
        """The pairs of these memories with any, each pair once."""
        (*_, found) = self.looking(summary_ids, threshold)
        return found

    def looking(
        self, summary_ids: Sequence[int], threshold: float
    ) -> Iterator[list[CosinePair]]:
        """`pairs` in steps of milliseconds: nothing again and again, and at last all that was found."""
        heads = np.flatnonzero(self.live & (self.seq == 0))
        wanted = heads[np.isin(self.summary_id[heads], list(summary_ids))]
        if not len(wanted):
            yield []
            return
        passages = np.bincount(self.summary_id[self.live])[self.summary_id[heads]]
        group = np.stack((self.project_id[heads].astype(np.int64), passages))
        places = np.searchsorted(heads, wanted)
        near = _Near(self.vectors(wanted), places, group[:, places], threshold)
        for first in range(0, len(heads), _SLICE_ROWS):
            yield []
            part = slice(first, first + _SLICE_ROWS)
            near.look(first, self.vectors(heads[part]), group[:, part])
        yield []
        yield self._checked(near.found(), wanted, heads, threshold)

    def _checked(
        self,
        near: Iterable[tuple[int, int, float]],
        wanted: Rows,
        heads: Rows,
        threshold: float,
    ) -> list[CosinePair]:
        found = {}
        for new, other, cosine in near:
            one, two = int(self.summary_id[wanted[new]]), int(self.summary_id[heads[other]])
            pair = (min(one, two), max(one, two))
            if pair in found:
                continue
            lowest = min(cosine, self._lowest(one, two))
            found[pair] = lowest if lowest >= threshold else 0.0
        return [(*pair, min(cosine, 1.0)) for pair, cosine in found.items() if cosine > 0]

    def _lowest(self, one: int, other: int) -> float:
        """The lowest cosine of two memories' passages, each with its counterpart; 0 if one lacks any."""
        ours, theirs = self._passages(one), self._passages(other)
        if len(ours) == len(theirs) == 1:
            return 1.0
        if self.seq[ours].tolist() != self.seq[theirs].tolist():
            return 0.0
        products = np.einsum("ij,ij->i", self.vectors(ours), self.vectors(theirs))
        return float(products.min())

    def _passages(self, summary_id: int) -> Rows:
        rows = np.flatnonzero((self.summary_id == summary_id) & self.live)
        return rows[np.argsort(self.seq[rows])]


class _Near:
    """The best few rows for each new row, gathered slice by slice."""

    def __init__(
        self, vectors: Floats, places: Rows, groups: NDArray[np.int64], threshold: float
    ) -> None:
        self._vectors = vectors
        self._places = places
        self._groups = groups
        self._threshold = threshold
        self._best: tuple[Rows, Rows, Floats] = (
            np.zeros(0, np.intp),
            np.zeros(0, np.intp),
            np.zeros(0, np.float32),
        )

    def look(self, offset: int, others: Floats, groups: NDArray[np.int64]) -> None:
        """Compare every new row with these, the first of which is row `offset` of all."""
        for first in range(0, len(self._vectors), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            cosines = self._vectors[block] @ others.T
            new, other = np.nonzero(cosines >= max(self._threshold, 1e-6))
            alike = (self._groups[:, new + first] == groups[:, other]).all(axis=0)
            if alike.any():
                new, other = new[alike], other[alike]
                self._keep(new + first, other + offset, cosines[new, other])

    def _keep(self, new: Rows, other: Rows, cosines: Floats) -> None:
        others = self._places[new] != other
        new, other, cosines = new[others], other[others], cosines[others]
        new, other = np.append(self._best[0], new), np.append(self._best[1], other)
        cosines = np.append(self._best[2], cosines)
        order = np.lexsort((other, -cosines, new))
        new, other, cosines = new[order], other[order], cosines[order]
        rank = np.arange(len(new)) - np.searchsorted(new, new)
        kept = rank < PAIRS_PER_MEMORY_MAX
        self._best = (new[kept], other[kept], cosines[kept])

    def found(self) -> list[tuple[int, int, float]]:
        """(place among the new rows, place among all, cosine)."""
        new, other, cosines = self._best
        return list(zip(new.tolist(), other.tolist(), cosines.tolist(), strict=True))


def read_vector_rows(index: MemoryIndex, space: str) -> VectorRows | None:
    """What an index holds of one space, as it is now; None while it is being loaded.

    The columns are copied; the vectors are read when asked for, a slice at a time, so that a search
    never waits for long. When the index closes its gaps in between, `is_current` turns False.
    """
    with index.lock:
        columns, matrix = index.columns, index.matrices.get(space)
        is_filling = space != index.learned and index.coverage(space) < 1
        if not index.loaded or matrix is None or is_filling:
            return None
        n, dimensions = columns.n, matrix.dimensions
        last = int(columns.passage_id[n - 1]) if n else 0
        summary_id, project_id, seq = (
            columns.summary_id.copy(), columns.project_id.copy(), columns.seq.copy(),
        )  # fmt: skip
        live = columns.live & ~columns.superseded

    def is_current() -> bool:
        # Passages are in order of id, so the last one is in its place only if all are.
        now = index.columns
        return (
            space in index.matrices
            and now.n >= n
            and (not n or int(now.passage_id[n - 1]) == last)
        )

    def vectors(rows: Rows) -> Floats:
        with index.lock:
            if is_current():
                return index.matrices[space].vectors(rows)
        return np.zeros((len(rows), dimensions), np.float32)

    return VectorRows(summary_id, project_id, seq, live, vectors, is_current)


# MERGED from memd.consolidate.form:
# MERGED What a text says when its dress is taken off: case, punctuation, order, filler, times of writing. Pure.
# MERGED
# MERGED Two texts of one form are a candidate pair whatever their cosine; guards decide what they are. So a
# MERGED form may forget more than may differ (`not` and every date, for example), never less.


_STAMP = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:\d\d:\d\d"
    r"|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
)


def hash_form(title: str, body: str) -> int:
    """A number of 64 bits that texts of one form share."""
    bare = _STAMP.sub(" ", f"{title}\n{body}")
    folded = {fold(word) for word in words(bare) if not is_stop_word(word)}
    said = {stem(word) for word in folded - FILLER_WORDS}
    hashed = hashlib.blake2b(" ".join(sorted(said)).encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "little", signed=True)


# MERGED from memd.consolidate.candidates:
# MERGED Which live memories say something like a new one, so that somebody has to say what they are to it. Pure.
# MERGED
# MERGED Likeness proposes and the guards say what differs; nothing is hidden by it. Left out is what a rule
# MERGED has decided or is going to: what is hidden or over, what says the same, and every pair that somebody
# MERGED has judged. Not here: finding what is near (nearest.py), what a judgment does (judging.py).


COSINE_MIN = 0.45
"""Cosine from which a memory is looked at in the space that is always there."""
LEARNED_COSINE_MIN = 0.85
"""The same in a learned space; it alone makes a candidate."""
_ALIKE_COSINE_MIN = 0.6
"""Cosine, in the space that is always there, from which it is a candidate."""
_SHARED_WORDS_MIN = 0.5
"""Or: this part of the words of both."""
CANDIDATES_MAX = 3
_TELLING = frozenset(
    {Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK, Kind.NOTE}
)
"""Kinds that state something; what happened in a turn competes with nothing."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory and its cosine with the new one in both spaces; 0 where they were not compared."""

    summary: Summary
    cosine: float
    learned: float = 0.0


@dataclass(frozen=True, slots=True)
class JudgmentCandidate:
    """A memory that is like the new one, how much (0 to 1), and what the guards say of the two."""

    id: int
    title: str
    kind: Kind
    at: int
    likeness: float
    finding: str
    pinned_at: int | None = None
    """Since when somebody keeps it on top: then nothing hides it."""


def select_candidates(
    mine: Summary, near: Iterable[Neighbour], judged: Collection[int], now: int
) -> tuple[JudgmentCandidate, ...]:
    """The most alike of those that no rule and nobody has decided about, the first of them."""
    if mine.kind not in _TELLING:
        return ()
    found = [
        candidate
        for one in near
        if _is_open(mine, one.summary, now) and one.summary.id not in judged
        if (candidate := _candidate(mine, one)) is not None
    ]
    return tuple(sorted(found, key=lambda one: (-one.likeness, -one.id))[:CANDIDATES_MAX])


def _is_open(mine: Summary, other: Summary, now: int) -> bool:
    is_over = other.expires_at is not None and other.expires_at <= now
    return (
        other.id != mine.id
        and other.kind in _TELLING
        and other.superseded_by is None
        and not is_over
    )


def _candidate(mine: Summary, one: Neighbour) -> JudgmentCandidate | None:
    ours, theirs = _said(mine), _said(one.summary)
    shared = _shared(ours, theirs)
    if (
        one.cosine < _ALIKE_COSINE_MIN
        and shared < _SHARED_WORDS_MIN
        and one.learned < LEARNED_COSINE_MIN
    ):
        return None
    finding = compare(theirs, ours)
    if finding.verdict is Agreement.SAME and one.summary.kind is mine.kind:
        return None
    other = one.summary
    likeness = round(max(one.cosine, shared, one.learned), 3)
    return JudgmentCandidate(
        other.id,
        other.title,
        other.kind,
        other.at,
        likeness,
        finding.reason,
        other.pinned_at,
    )


def _said(summary: Summary) -> str:
    """What it says, once: a title that only repeats the beginning of the body is left out."""
    if summary.body.startswith(summary.title.rstrip("…")):
        return summary.body
    return f"{summary.title}\n{summary.body}"


def _shared(one: str, other: str) -> float:
    ours, theirs = set(content_stems(one)), set(content_stems(other))
    return len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0
