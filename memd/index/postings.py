"""Inverted index and exact BM25 in numpy.

Postings lie in a few immutable segments, each sorted by term and row like a sparse matrix in CSR form and covering
the rows after those of the previous one. An append makes a small segment; one that is not four times as big as its
successor is merged with it, so that segments are few and a posting is copied a few times at most.
A retired row keeps its postings until `compact`, scores 0 and counts for nothing. Terms in every eighth row or more
also have a dense array, a byte per row, which is faster to add up than a list of nearly all rows.

    score(row) = Σ weight · idf · tf·(k1 + 1) / (tf + k1·(1 - b + b·length/average)), with
    tf = title_weight·(in title) + (in body) and idf = ln(1 + (N - df + ½)/(df + ½))

(Robertson and Zaragoza, 2009; the idf as in Lucene, never negative).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Rows, widen
from memd.index.quantization import Floats
from memd.store.filter import Mask
from memd.store.fulltext import POSTING

ByteCounts = NDArray[np.uint8]
TermNumbers = NDArray[np.uint32]
Starts = NDArray[np.int64]
RowNumbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Segment:
    """Postings of consecutive rows, sorted by (term, row)."""

    terms: TermNumbers
    """Each term once, ascending."""
    starts: Starts
    """Where a term's postings begin; one longer than `terms`."""
    rows: RowNumbers
    title: ByteCounts
    body: ByteCounts

    def slice(self, term: int) -> slice:
        """Return the slice of this term's postings."""
        at = int(self.terms.searchsorted(np.uint32(term)))
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))


ARRAY_NAMES = ("terms", "starts", "rows", "title", "body")
"""The arrays of a segment."""


def build_segment(
    terms: TermNumbers, rows: RowNumbers, title: ByteCounts, body: ByteCounts
) -> Segment:
    """Sort postings, which come in order of row, by term."""
    order = np.argsort(terms, kind="stable")
    ordered = terms[order]
    firsts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + np.uint32(1)))
    starts = np.append(firsts, len(ordered))
    return Segment(ordered[firsts], starts, rows[order], title[order], body[order])


def join_segments(segments: Sequence[Segment]) -> Segment:
    """Merge consecutive segments."""
    terms = np.concatenate([np.repeat(one.terms, np.diff(one.starts)) for one in segments])
    rows = np.concatenate([one.rows for one in segments])
    title = np.concatenate([one.title for one in segments])
    return build_segment(terms, rows, title, np.concatenate([one.body for one in segments]))


def renumber_rows(one: Segment, mapping: RowNumbers) -> Segment:
    """Replace row numbers, whose order stays; drop rows whose new number is -1."""
    new = mapping[one.rows]
    stay = new >= 0
    terms = np.repeat(one.terms, np.diff(one.starts))[stay]
    return build_segment(terms, new[stay], one.title[stay], one.body[stay])


ROW_PARTS = ("lengths", "live")
"""Arrays of a snapshot with one element per row."""
_MERGE_RATIO = 4
_SEGMENT_MIN = 4_096
"""Postings of a segment that is never merged with smaller ones."""
_STEP = 1 << 15
"""Postings or rows that are scored in one step, so that intermediate arrays stay in the cache."""
_DENSE_SHARE, _DENSE_MIN = 8, 4_096
"""A term has a dense array if it is in one of this many rows, and in at least the minimum."""
_DENSE_TERMS_MAX = 64
"""Dense arrays that are cached: a megabyte each with a million rows."""
_DENSE_BYTES_AT_REST = 1 << 21
"""Bytes of dense arrays that are kept at rest."""
_JOINED_MAX = 1 << 16
"""Combinations of counts of several dense terms whose worth is looked up in one step."""
_BYTE_MAX = 255
_COUNTS = np.arange(_BYTE_MAX + 1, dtype=np.float32)
"""What a dense array can hold."""
_TERMS_CACHED_MAX = 1_024
"""Terms whose slices are cached."""

_N = TypeVar("_N", bound=np.generic)
Piece = tuple[Segment, slice, int]
"""A term's postings in a segment, or some of them, and the term's position in the query."""


class PostingsChunk(NamedTuple):
    """Some postings of several terms."""

    rows: Rows
    """Dead ones too; ascending within a term."""
    tf: Floats
    """Per posting."""
    places: NDArray[np.intp]
    sizes: Sequence[int]
    """The positions of the terms, and the number of postings of each, in order."""

    def spread(self, values: NDArray[_N]) -> NDArray[_N]:
        """Return for each posting its term's value."""
        return np.repeat(values[self.places], self.sizes)


class DenseCounts(NamedTuple):
    """Counts of a frequent term in each row of the first segment, up to the last row that has it."""

    counts: ByteCounts
    highest: int


class InvertedIndex:
    """The postings of the index's rows."""

    def __init__(self) -> None:
        self.n = 0
        """The number of rows, retired ones included."""
        self._segments: list[Segment] = []
        self._lengths = np.zeros(0, np.float32)
        self._live = np.zeros(0, np.bool_)
        self._dead: Rows | None = np.zeros(0, np.intp)
        self._norms: dict[tuple[float, float], Floats] = {}
        self._dense_arrays: dict[tuple[int, float], DenseCounts] = {}
        self._slices: dict[int, list[tuple[Segment, slice]]] = {}

    def append(self, blobs: Sequence[bytes], lengths: Sequence[int]) -> None:
        """Append one row per blob of postings, in the store's format."""
        found = np.frombuffer(b"".join(blobs), POSTING)
        sizes = np.array([len(blob) // POSTING.itemsize for blob in blobs], np.int64)
        first, self.n = self.n, self.n + len(blobs)
        rows = np.repeat(np.arange(first, self.n, dtype=np.int32), sizes)
        if len(found):
            self._segments.append(build_segment(found["term"], rows, found["title"], found["body"]))
            self._merge_segments()
        if self.n > len(self._live):
            capacity = self.n + self.n // 4
            self._lengths = widen(self._lengths, capacity)
            self._live = widen(self._live, capacity)
        self._lengths[first : self.n] = lengths
        self._live[first : self.n] = True
        self._norms.clear()
        self._slices.clear()

    def _merge_segments(self) -> None:
        count = 1
        size = len(self._segments[-1].rows)
        for one in reversed(self._segments[:-1]):
            if len(one.rows) >= max(_MERGE_RATIO * size, _SEGMENT_MIN):
                break
            count += 1
            size += len(one.rows)
        if count > 1:
            if count == len(self._segments):
                self._dense_arrays.clear()
            self._segments[-count:] = [join_segments(self._segments[-count:])]

    def retire(self, rows: Rows) -> None:
        """Make these rows score 0 and count for nothing."""
        if len(rows):
            self._live[rows] = False
            self._dead = None
            self._norms.clear()

    def compact(self, mapping: NDArray[np.int32]) -> None:
        """Drop the retired rows; `mapping` has each row's new number, -1 for none."""
        kept = mapping >= 0
        self._lengths = self._lengths[: self.n][kept]
        self._live = self._live[: self.n][kept]
        self.n = len(self._live)
        self._dead = None
        self._norms.clear()
        self._dense_arrays.clear()
        self._slices.clear()
        whole = [renumber_rows(one, mapping) for one in self._segments]
        self._segments = [one for one in whole if len(one.rows)]

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot: `ROW_PARTS` of n rows, and each segment's."""
        rows = (self._lengths[: self.n], self._live[: self.n])
        return dict(zip(ROW_PARTS, rows, strict=True)) | {
            f"{number}.{name}": getattr(one, name)
            for number, one in enumerate(self._segments)
            for name in ARRAY_NAMES
        }

    def restore(self, n: int, parts: Mapping[str, NDArray[Any]]) -> None:
        """Use the arrays of a snapshot of n rows. `ROW_PARTS` may be longer: new rows go there."""
        self.__init__()  # type: ignore[misc]  # forget the rows there were
        self.n = n
        self._lengths, self._live = (parts[name] for name in ROW_PARTS)
        self._dead = None
        count = (len(parts) - len(ROW_PARTS)) // len(ARRAY_NAMES)
        self._segments = [
            Segment(**{name: parts[f"{number}.{name}"] for name in ARRAY_NAMES})
            for number in range(count)
        ]

    def terms(self) -> Iterable[int]:
        """Return every term with a posting, if only in a retired row."""
        return {term for one in self._segments for term in one.terms.tolist()}

    def _find_slices(self, term: int) -> list[tuple[Segment, slice]]:
        """Return the segments with a term and where its postings lie; cached, because one query asks repeatedly."""
        known = self._slices.get(term)
        if known is None:
            if len(self._slices) == _TERMS_CACHED_MAX:
                self._slices.clear()
            found = ((one, one.slice(term)) for one in self._segments)
            known = self._slices[term] = [(one, at) for one, at in found if at.stop > at.start]
        return known

    def size(self, term: int) -> int:
        """Count the postings of a term, those in retired rows included."""
        return sum(at.stop - at.start for _, at in self._find_slices(term))

    def term(self, term: int) -> tuple[Rows, ByteCounts, ByteCounts]:
        """Return the live rows with a term, ascending, and its counts in their title and body."""
        none = np.zeros(0, np.uint8)
        pieces = self._find_slices(term)
        rows = np.concatenate([np.zeros(0, np.intp), *(one.rows[at] for one, at in pieces)])
        title = np.concatenate([none, *(one.title[at] for one, at in pieces)])
        body = np.concatenate([none, *(one.body[at] for one, at in pieces)])
        live = self._live[rows]
        return rows[live], title[live], body[live]

    def rows_of(self, term: int) -> Rows:
        """Return the live rows with a term, ascending."""
        return self.term(term)[0]

    def frequencies(self, terms: Sequence[int], title_weight: float) -> Iterator[PostingsChunk]:
        """Yield the postings of these terms in chunks, those in retired rows included."""
        pieces = ((*piece, i) for i, term in enumerate(terms) for piece in self._find_slices(term))
        return _read_chunks(pieces, title_weight)

    def df(self, term: int, among: Mask | None = None) -> int:
        """Count the live rows with a term, or those `among` a mask of live rows."""
        mask = self._live if among is None else among
        if among is None and not len(self._dead_rows()):
            return self.size(term)
        return sum(
            int(np.count_nonzero(mask[one.rows[start : min(start + _STEP, at.stop)]]))
            for one, at in self._find_slices(term)
            for start in range(at.start, at.stop, _STEP)
        )

    def contains(self, term: int, rows: Rows) -> Mask:
        """Return a mask of those rows, few and in any order, that contain a term; dead or not."""
        wanted = rows.astype(np.int32)
        found = np.zeros(len(rows), np.bool_)
        for one, at in self._find_slices(term):
            having = one.rows[at]
            found |= having.take(having.searchsorted(wanted), mode="clip") == wanted
        return found

    def terms_in(self, row: int, terms: Iterable[int]) -> list[int]:
        """Return those of the terms that a row contains; none if it is dead."""
        if not self._live[row]:
            return []
        rows = np.array([row])
        return [term for term in terms if self.contains(term, rows)[0]]

    def scores(
        self,
        terms: Mapping[int, float],
        *,
        k1: float,
        b: float,
        title_weight: float,
        among: "TermStatistics | None" = None,
        out: Floats | None = None,
    ) -> Floats:
        """Return the BM25 of every row, (n,), for term number → weight in the query, in `out` if given.

        `among` has the document frequencies to use; by default those of all rows.
        """
        scores = np.empty(self.n, np.float32) if out is None else out
        scores.fill(0)
        counted = among or TermStatistics(self._live[: self.n], self.df)
        worths = {term: weight * counted.idf(term) * (k1 + 1) for term, weight in terms.items()}
        norms = self._length_norms(k1, b)
        weights = np.array(list(worths.values()), np.float32)
        for chunk in self.frequencies(list(worths), title_weight):
            worth = chunk.spread(weights)
            worth *= chunk.tf
            np.add(chunk.tf, norms[chunk.rows], out=chunk.tf)
            worth /= chunk.tf
            np.add.at(scores, chunk.rows, worth)
        if len(dead := self._dead_rows()):
            scores[dead] = 0
        return scores

    def add_logarithms(
        self, terms: Mapping[int, tuple[float, float]], *, title_weight: float, out: Floats
    ) -> Floats:
        """Return Σ weight·ln(1 + tf/expected) of every row, (n,), in `out`: term number → (weight, expected)."""
        order, dense, chunks = self._walk(terms, title_weight)
        weights = np.array([terms[term][0] for term in order], np.float32)
        expected = np.array([terms[term][1] for term in order], np.float32)
        worths = [
            (one, weight * np.log1p(_COUNTS / chance))
            for one, weight, chance in zip(dense, weights, expected, strict=False)
        ]
        _write_dense_worths(worths, out)
        for chunk in chunks:
            worth = np.log1p(chunk.tf / chunk.spread(expected))
            worth *= chunk.spread(weights)
            np.add.at(out, chunk.rows, worth)
        if len(dead := self._dead_rows()):
            out[dead] = 0
        return out

    def _walk(
        self, terms: Iterable[int], title_weight: float
    ) -> tuple[list[int], list[DenseCounts], Iterator[PostingsChunk]]:
        """Return the terms in the order to add them up, the counts of the dense ones, which come first, and the rest.

        Dense terms first, then the others, whatever the segment: equal rows must get equal roundings.
        """
        dense = {term: self._dense_counts(term, title_weight) for term in terms}
        order = sorted(dense, key=lambda term: dense[term] is None)
        pieces = (
            (one, at, place)
            for place, term in enumerate(order)
            for one, at in self._find_slices(term)
            if dense[term] is None or one is not self._segments[0]
        )
        counts = [found for term in order if (found := dense[term]) is not None]
        return order, counts, _read_chunks(pieces, title_weight)

    def count_terms(self, terms: Sequence[int], rows: Rows, title_weight: float) -> Floats:
        """Return how often each of those rows, few and in any order, has each term, (len(terms), m); dead or not."""
        counts = np.zeros((len(terms), len(rows)), np.float32)
        # In order, because searching for one after the other finds the same places in the cache.
        order = np.argsort(rows)
        wanted = rows[order].astype(np.int32)
        for own, term in zip(counts, terms, strict=True):
            dense = self._dense_counts(term, title_weight)
            if dense is not None:
                own[: len(wanted)] = dense.counts.take(wanted, mode="clip")
                own[wanted >= len(dense.counts)] = 0
            for one, at in self._find_slices(term):
                if dense is not None and one is self._segments[0]:
                    continue
                having = one.rows[at]
                places = having.searchsorted(wanted)
                is_there = having.take(places, mode="clip") == wanted
                found = places[is_there]
                own[is_there] = title_weight * one.title[at][found] + one.body[at][found]
        in_order = np.empty_like(counts)
        in_order[:, order] = counts
        return in_order

    def _dead_rows(self) -> Rows:
        if self._dead is None:
            self._dead = np.flatnonzero(~self._live[: self.n])
        return self._dead

    def _length_norms(self, k1: float, b: float) -> Floats:
        """Return k1·(1 - b + b·length/average), (n,); cached until rows change."""
        if (k1, b) not in self._norms:
            lengths, live = self._lengths[: self.n], self._live[: self.n]
            count = self.n - len(self._dead_rows())
            total = lengths.sum(dtype=np.float64, where=True if count == self.n else live)
            norms = lengths / np.float32(total / count if total else 1.0)
            norms *= np.float32(b)
            norms += np.float32(1 - b)
            norms *= np.float32(k1)
            # Never 0, because 0/0 of a passage without length would be NaN.
            self._norms[k1, b] = np.maximum(norms, np.float32(1e-9), out=norms)
        return self._norms[k1, b]

    def release_memory(self) -> None:
        """Drop the dense arrays but for a few used last; they are made again when they are asked for."""
        kept = sum(one.counts.nbytes for one in self._dense_arrays.values())
        while kept > _DENSE_BYTES_AT_REST:
            kept -= self._dense_arrays.pop(next(iter(self._dense_arrays))).counts.nbytes

    def _dense_counts(self, term: int, title_weight: float) -> DenseCounts | None:
        """Return the tf of a frequent term in the first segment's rows; None for other terms."""
        known = self._dense_arrays.pop((term, title_weight), None)
        if known is None:
            known = self._make_dense(term, title_weight)
            if known is None:
                return None
            if len(self._dense_arrays) == _DENSE_TERMS_MAX:
                del self._dense_arrays[next(iter(self._dense_arrays))]
        self._dense_arrays[term, title_weight] = known
        return known

    def _make_dense(self, term: int, title_weight: float) -> DenseCounts | None:
        pieces = self._find_slices(term)
        if not pieces or pieces[0][0] is not self._segments[0]:
            return None
        one, at = pieces[0]
        if at.stop - at.start < max(_DENSE_MIN, self.n // _DENSE_SHARE):
            return None
        dense, highest = np.zeros(int(one.rows[at.stop - 1]) + 1, np.uint8), 0
        for chunk in _read_chunks([(one, at, 0)], title_weight):
            highest = max(highest, int(chunk.tf.max()))
            if highest > _BYTE_MAX or not float(title_weight).is_integer():
                return None
            dense[chunk.rows] = chunk.tf
        return DenseCounts(dense, highest)


def idf(count: int, having: int) -> float:
    """Return the inverse document frequency of a term that `having` of `count` rows contain."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


class TermStatistics:
    """Document frequencies among the rows of a mask, cached; valid until rows change.

    A term that is common in one project may be rare in the vault. `frequency` counts the rows of a mask that
    contain a term; without a mask, all live rows.
    """

    def __init__(self, mask: Mask, frequency: Callable[[int, Mask | None], int]) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self._frequency = frequency
        self._df: dict[int, int] = {}

    @property
    def is_everything(self) -> bool:
        """Return whether the mask has all rows."""
        return self.count == len(self.mask)

    def df(self, term: int) -> int:
        """Count the rows that contain a term."""
        known = self._df.get(term)
        if known is None:
            known = self._frequency(term, None if self.is_everything else self.mask)
            self._df[term] = known
        return known

    def idf(self, term: int) -> float:
        """Return a term's inverse document frequency."""
        return idf(self.count, self.df(term))


def _read_chunks(pieces: Iterable[Piece], title_weight: float) -> Iterator[PostingsChunk]:
    """Yield chunks of up to `_STEP` postings; those of rare terms share one."""
    gathered: list[Piece] = []
    size = 0
    for one, at, place in pieces:
        for start in range(at.start, at.stop, _STEP):
            part = slice(start, min(start + _STEP, at.stop))
            if size + part.stop - part.start > _STEP:
                yield _read_chunk(gathered, title_weight)
                gathered, size = [], 0
            gathered.append((one, part, place))
            size += part.stop - part.start
    if gathered:
        yield _read_chunk(gathered, title_weight)


def _read_chunk(pieces: Sequence[Piece], title_weight: float) -> PostingsChunk:
    rows = np.concatenate([one.rows[at] for one, at, _ in pieces], dtype=np.intp)
    tf = np.concatenate([one.title[at] for one, at, _ in pieces], dtype=np.float32)
    tf *= np.float32(title_weight)
    tf += np.concatenate([one.body[at] for one, at, _ in pieces])
    places = np.array([place for *_, place in pieces])
    return PostingsChunk(rows, tf, places, [at.stop - at.start for _, at, _ in pieces])


def _write_dense_worths(words: Sequence[tuple[DenseCounts, Floats]], scores: Floats) -> None:
    """Write for every row the sum of what the counts of dense terms are worth there.

    To look up one sum for a combination of counts is several times as fast as to look up and add what each is worth.
    The first terms are joined so, as many as their combinations allow; adding in the same order, the table has the
    same roundings. Some rows at a time, so that these stay in the cache.
    """
    if not words:
        scores.fill(0)
        return
    table, joined = np.zeros(1, np.float32), 0
    for one, worth_of_count in words:
        if len(table) * (one.highest + 1) > _JOINED_MAX:
            break
        table = np.add.outer(table, worth_of_count[: one.highest + 1]).ravel()
        joined += 1
    places, own_places = np.empty((2, _STEP), np.uint16)
    worth = np.empty(_STEP, np.float32)
    for first in range(0, len(scores), _STEP):
        found = scores[first : first + _STEP]
        place = places[: len(found)]
        place.fill(0)
        for one, _ in words[:joined]:
            some = one.counts[first : first + _STEP]
            np.copyto(own_places[: len(some)], some)
            np.multiply(place, one.highest + 1, out=place)
            place[: len(some)] += own_places[: len(some)]
        np.take(table, place, out=found, mode="clip")
        for one, worth_of_count in words[joined:]:
            some = one.counts[first : first + _STEP]
            own = worth[: len(some)]
            np.take(worth_of_count, some, out=own, mode="clip")
            found[: len(some)] += own
