"""Inverted index and BM25."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.index import segment
from memd.index.columns import Rows
from memd.index.segment import ByteCounts, Segment
from memd.store.fulltext import POSTING

# MERGED from memd.index.among:
# MERGED How rare words are among some rows: what is common in one project may be rare in the vault. Pure.
# MERGED
# MERGED Not here: which rows these are.


Mask = NDArray[np.bool_]


def idf(count: int, having: int) -> float:
    """How much it says that a word stands somewhere which `having` of `count` rows have."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


class TermStatistics:
    """The rows over which rarity is counted, by a mask of all; to be made anew when rows change.

    `frequency` counts the rows of a mask that have a term; of no mask, those of all that live. What was
    counted once is remembered.
    """

    def __init__(self, mask: Mask, frequency: Callable[[int, Mask | None], int]) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self._frequency = frequency
        self._df: dict[int, int] = {}

    @property
    def is_everything(self) -> bool:
        """Whether no row is left out."""
        return self.count == len(self.mask)

    def df(self, term: int) -> int:
        """Count those of these rows that have a term."""
        known = self._df.get(term)
        if known is None:
            known = self._frequency(term, None if self.is_everything else self.mask)
            self._df[term] = known
        return known

    def idf(self, term: int) -> float:
        """Tell how much a term says."""
        return idf(self.count, self.df(term))


# MERGED from memd.index.postings:
# MERGED Exact BM25 in numpy: which passages a word stands in, and what that is worth. Pure.
# MERGED
# MERGED Postings lie in a few segments, each covering the rows after those of the one before. An append makes a
# MERGED small segment; one that is not four times as big as its successor is merged with it, so there are few,
# MERGED and a posting is moved a few times at most. A retired row keeps its postings until `compact`, scores 0
# MERGED and counts for nothing. The words that stand in every eighth row or more are also kept row by row, a
# MERGED byte a row, which is quicker to walk than a list of nearly all rows.
# MERGED
# MERGED score(row) = Σ weight · idf · tf·(k1 + 1) / (tf + k1·(1 - b + b·length/average)), with
# MERGED tf = title_weight·(in title) + (in body) and idf = ln(1 + (N - df + ½)/(df + ½))
# MERGED (Robertson and Zaragoza, 2009; the idf as in Lucene, never negative). Not here: what a word is.


ROW_PARTS = ("lengths", "live")
"""The saved arrays that have a place per row."""
_MERGE_RATIO = 4
_SEGMENT_MIN = 4_096
_AT_ONCE = 1 << 15
"""Postings or rows whose worth is worked out in one step: what is in between stays in the cache."""
_COMMON_SHARE = 8
_COMMON_MIN = 4_096
_COMMON_MAX = 32
"""Common words that are kept row by row: a megabyte each with a million rows."""
_BYTE_MAX = 255
_FOUND_MAX = 1_024
"""Words whose places are kept at hand."""

Floats = NDArray[np.float32]
_N = TypeVar("_N", bound=np.generic)
Piece = tuple[Segment, slice, int]
"""A term's postings in a segment, or some of them, and the place of the term among those asked for."""


class PostingsChunk(NamedTuple):
    """Some postings of several terms."""

    rows: Rows
    """Dead ones too; ascending within a term."""
    tf: Floats
    """Per posting."""
    places: NDArray[np.intp]
    sizes: Sequence[int]
    """The place of a term, and how many of the postings are its; then the next."""

    def spread(self, values: NDArray[_N]) -> NDArray[_N]:
        """Give each posting the value at its term's place."""
        return np.repeat(values[self.places], self.sizes)


class InvertedIndex:
    """The postings of the index's rows, in step with its columns."""

    def __init__(self) -> None:
        self.n = 0
        """How many rows there are, retired ones too."""
        self._segments: list[Segment] = []
        self._lengths = np.zeros(0, np.float32)
        self._live = np.zeros(0, np.bool_)
        self._dead: Rows | None = np.zeros(0, np.intp)
        self._norms: dict[tuple[float, float], Floats] = {}
        self._common: dict[tuple[int, float], ByteCounts] = {}
        self._found: dict[int, list[tuple[Segment, slice]]] = {}

    def append(self, blobs: Sequence[bytes], lengths: Sequence[int]) -> None:
        """Add one row per blob of postings, as the store keeps them."""
        found = np.frombuffer(b"".join(blobs), POSTING)
        sizes = np.array([len(blob) // POSTING.itemsize for blob in blobs], np.int64)
        first, self.n = self.n, self.n + len(blobs)
        rows = np.repeat(np.arange(first, self.n, dtype=np.int32), sizes)
        if len(found):
            self._segments.append(
                segment.build_segment(found["term"], rows, found["title"], found["body"])
            )
            self._merge()
        self._lengths = _room(self._lengths, self.n)
        self._live = _room(self._live, self.n)
        self._lengths[first : self.n] = lengths
        self._live[first : self.n] = True
        self._norms.clear()
        self._found.clear()

    def _merge(self) -> None:
        count = 1
        size = len(self._segments[-1].rows)
        for one in reversed(self._segments[:-1]):
            if len(one.rows) >= max(_MERGE_RATIO * size, _SEGMENT_MIN):
                break
            count += 1
            size += len(one.rows)
        if count > 1:
            if count == len(self._segments):
                self._common.clear()
            self._segments[-count:] = [segment.join_segments(self._segments[-count:])]

    def retire(self, rows: Rows) -> None:
        """Let these rows count for nothing any more."""
        if len(rows):
            self._live[rows] = False
            self._dead = None
            self._norms.clear()

    def compact(self, mapping: NDArray[np.int32]) -> None:
        """Drop the retired rows; `mapping` tells each row's new number, -1 for none."""
        kept = mapping >= 0
        self._lengths = self._lengths[: self.n][kept]
        self._live = self._live[: self.n][kept]
        self.n = len(self._live)
        self._dead = None
        self._norms.clear()
        self._common.clear()
        self._found.clear()
        whole = [segment.renumber_rows(one, mapping) for one in self._segments]
        self._segments = [one for one in whole if len(one.rows)]

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return what has to be saved: `ROW_PARTS` of n rows, and each segment's arrays."""
        rows = (self._lengths[: self.n], self._live[: self.n])
        return dict(zip(ROW_PARTS, rows, strict=True)) | {
            f"{number}.{name}": getattr(one, name)
            for number, one in enumerate(self._segments)
            for name in segment.ARRAY_NAMES
        }

    def restore(self, n: int, parts: Mapping[str, NDArray[Any]]) -> None:
        """Take over arrays that were saved when there were n rows.

        `ROW_PARTS` may be longer: then rows are appended into them. The others have no room.
        """
        self.__init__()  # type: ignore[misc]  # begin anew: nothing of before may be left
        self.n = n
        self._lengths, self._live = (parts[name] for name in ROW_PARTS)
        self._dead = None
        count = (len(parts) - len(ROW_PARTS)) // len(segment.ARRAY_NAMES)
        self._segments = [
            Segment(**{name: parts[f"{number}.{name}"] for name in segment.ARRAY_NAMES})
            for number in range(count)
        ]

    def terms(self) -> Iterable[int]:
        """List every term that stands somewhere, if only in a retired row."""
        return {term for one in self._segments for term in one.terms.tolist()}

    def _pieces(self, term: int) -> list[tuple[Segment, slice]]:
        """Where a term's postings lie; kept, for those of one question are asked for again and again."""
        known = self._found.get(term)
        if known is None:
            if len(self._found) == _FOUND_MAX:
                self._found.clear()
            found = ((one, one.slice(term)) for one in self._segments)
            known = self._found[term] = [(one, at) for one, at in found if at.stop > at.start]
        return known

    def size(self, term: int) -> int:
        """Count the postings of a term, those in retired rows too."""
        return sum(at.stop - at.start for _, at in self._pieces(term))

    def term(self, term: int) -> tuple[Rows, ByteCounts, ByteCounts]:
        """Return the live rows with a term, ascending, and how often it is in their title and body."""
        none = np.zeros(0, np.uint8)
        pieces = self._pieces(term)
        rows = np.concatenate([np.zeros(0, np.intp), *(one.rows[at] for one, at in pieces)])
        title = np.concatenate([none, *(one.title[at] for one, at in pieces)])
        body = np.concatenate([none, *(one.body[at] for one, at in pieces)])
        live = self._live[rows]
        return rows[live], title[live], body[live]

    def rows_of(self, term: int) -> Rows:
        """Return the live rows with a term, ascending."""
        return self.term(term)[0]

    def frequencies(self, terms: Sequence[int], title_weight: float) -> Iterator[PostingsChunk]:
        """Read the postings of these terms, those in retired rows too, in portions."""
        pieces = ((*piece, i) for i, term in enumerate(terms) for piece in self._pieces(term))
        return _portions(pieces, title_weight)

    def df(self, term: int, among: Mask | None = None) -> int:
        """Count the live rows with a term, or those `among` some live ones."""
        mask = self._live if among is None else among
        if among is None and not len(self._dead_rows()):
            return self.size(term)
        return sum(
            int(np.count_nonzero(mask[one.rows[start : min(start + _AT_ONCE, at.stop)]]))
            for one, at in self._pieces(term)
            for start in range(at.start, at.stop, _AT_ONCE)
        )

    def contains(self, term: int, rows: Rows) -> Mask:
        """Tell of each of these rows, few and in any order, whether it has a term; dead or not."""
        return self.find_term(term, rows)[0]

    def find_term(self, term: int, rows: Rows) -> tuple[Mask, Mask]:
        """Tell of each of these rows, as `contains`, whether a term is in it, and whether in its title."""
        found, in_title = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        wanted = rows.astype(np.int32)
        for one, at in self._pieces(term):
            having = one.rows[at]
            places = having.searchsorted(wanted)
            is_there = having.take(places, mode="clip") == wanted
            found |= is_there
            in_title |= is_there & (one.title[at].take(places, mode="clip") > 0)
        return found, in_title

    def terms_in(self, row: int, terms: Iterable[int]) -> list[int]:
        """Return those of these terms that stand in a live row."""
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
        among: TermStatistics | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """BM25 of every row, (n,), for term number → weight in the query; see the top of the file.

        Rarity is counted `among` these rows, else over all. They are written to `out`, if given.
        """
        scores = np.empty(self.n, np.float32) if out is None else out
        scores.fill(0)
        counted = among or TermStatistics(self._live[: self.n], self.df)
        worths = {term: weight * counted.idf(term) * (k1 + 1) for term, weight in terms.items()}
        norms = self._norm(k1, b)
        # First the common ones, then the others, in whatever segment: equal rows must not differ by a
        # rounding.
        dense = {term: self._dense(term, title_weight) for term in terms}
        order = sorted(terms, key=lambda term: dense[term] is None)
        weights = np.array([worths[term] for term in order], np.float32)
        pairs = ((dense[term], weight) for term, weight in zip(order, weights, strict=True))
        _add_dense([(tf, weight) for tf, weight in pairs if tf is not None], norms, scores)
        pieces = (
            (one, at, place)
            for place, term in enumerate(order)
            for one, at in self._pieces(term)
            if dense[term] is None or one is not self._segments[0]
        )
        for portion in _portions(pieces, title_weight):
            worth = portion.spread(weights)
            worth *= portion.tf
            np.add(portion.tf, norms[portion.rows], out=portion.tf)
            worth /= portion.tf
            np.add.at(scores, portion.rows, worth)
        if len(dead := self._dead_rows()):
            scores[dead] = 0
        return scores

    def _dead_rows(self) -> Rows:
        if self._dead is None:
            self._dead = np.flatnonzero(~self._live[: self.n])
        return self._dead

    def _norm(self, k1: float, b: float) -> Floats:
        """Return k1·(1 - b + b·length/average), (n,), kept until a row comes or goes."""
        if (k1, b) not in self._norms:
            lengths, live = self._lengths[: self.n], self._live[: self.n]
            count = self.n - len(self._dead_rows())
            total = lengths.sum(dtype=np.float64, where=True if count == self.n else live)
            norms = lengths / np.float32(total / count if total else 1.0)
            norms *= np.float32(b)
            norms += np.float32(1 - b)
            norms *= np.float32(k1)
            # Never 0: a word that counts nothing in a passage without length is worth 0, not NaN.
            self._norms[k1, b] = np.maximum(norms, np.float32(1e-9), out=norms)
        return self._norms[k1, b]

    def _dense(self, term: int, title_weight: float) -> ByteCounts | None:
        """Return a common word's tf in the rows up to the last it has in the first segment, else None."""
        known = self._common.pop((term, title_weight), None)
        if known is None:
            known = self._laid_out(term, title_weight)
            if known is None:
                return None
            if len(self._common) == _COMMON_MAX:
                del self._common[next(iter(self._common))]
        self._common[term, title_weight] = known
        return known

    def _laid_out(self, term: int, title_weight: float) -> ByteCounts | None:
        pieces = self._pieces(term)
        if not pieces or pieces[0][0] is not self._segments[0]:
            return None
        one, at = pieces[0]
        if at.stop - at.start < max(_COMMON_MIN, self.n // _COMMON_SHARE):
            return None
        dense = np.zeros(int(one.rows[at.stop - 1]) + 1, np.uint8)
        for portion in _portions([(one, at, 0)], title_weight):
            if portion.tf.max() > _BYTE_MAX or not float(title_weight).is_integer():
                return None
            dense[portion.rows] = portion.tf
        return dense


def _room(array: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the array itself if it has n places, else one with a quarter more."""
    if n <= len(array):
        return array
    wider = np.zeros(n + n // 4, array.dtype)
    wider[: len(array)] = array
    return wider


def _portions(pieces: Iterable[Piece], title_weight: float) -> Iterator[PostingsChunk]:
    """Read postings so many at a time; those of rare words together."""
    gathered: list[Piece] = []
    size = 0
    for one, at, place in pieces:
        for start in range(at.start, at.stop, _AT_ONCE):
            part = slice(start, min(start + _AT_ONCE, at.stop))
            if size + part.stop - part.start > _AT_ONCE:
                yield _read(gathered, title_weight)
                gathered, size = [], 0
            gathered.append((one, part, place))
            size += part.stop - part.start
    if gathered:
        yield _read(gathered, title_weight)


def _read(pieces: Sequence[Piece], title_weight: float) -> PostingsChunk:
    rows = np.concatenate([one.rows[at] for one, at, _ in pieces], dtype=np.intp)
    tf = np.concatenate([one.title[at] for one, at, _ in pieces], dtype=np.float32)
    tf *= np.float32(title_weight)
    tf += np.concatenate([one.body[at] for one, at, _ in pieces])
    places = np.array([place for *_, place in pieces])
    return PostingsChunk(rows, tf, places, [at.stop - at.start for _, at, _ in pieces])


def _add_dense(
    words: Sequence[tuple[ByteCounts, np.float32]], norms: Floats, scores: Floats
) -> None:
    """Add what words of these tf and weights are worth, each to its rows from the first on.

    Some rows at a time and word after word: then these rows stay in the cache.
    """
    worth, below = np.empty((2, _AT_ONCE), np.float32)
    for first in range(0, max((len(tf) for tf, _ in words), default=0), _AT_ONCE):
        for tf, weight in words:
            size = len(tf[first : first + _AT_ONCE])
            some, own, under = slice(first, first + size), worth[:size], below[:size]
            np.copyto(own, tf[some])
            np.add(own, norms[some], out=under)
            own *= weight
            own /= under
            scores[some] += own
