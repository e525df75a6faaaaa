"""1-bit codes with exact re-scoring."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Rows
from memd.index.quantization import WORD_BITS, Floats, Rotation, VectorRows, quantize
from memd.index.topk import top_rows

# MERGED from memd.index.plain:
# MERGED Vectors by dimension, a byte a value: quick where most dimensions of a question are zero. Pure.
# MERGED
# MERGED A question of some words touches a tenth of the hashing space's dimensions. Then a tenth of the bytes gives
# MERGED a product of every row, in a third of the time that bits take at 10,000 rows. Beside the coded rows, never
# MERGED saved, and off by a little: it says which rows may be near. Not here: what they are worth (binary_codes.py).


_AT_ONCE = 4_096
"""Rows that are read as float32 at a time."""
_SPARE = 4
"""One more for so many wanted: what is a product less here may be a product more in truth."""

Mask = NDArray[np.bool_]


class DimensionMajorVectors:
    """A byte a value and one scale a row, (dimensions, capacity) and (capacity,)."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._values = np.zeros((dimensions, capacity), np.int8)
        self._scales = np.zeros(capacity, np.float32)

    def put(self, rows: Rows, vectors: VectorRows) -> None:
        """Write these rows, (len(rows), dimensions)."""
        values, self._scales[rows] = quantize(np.asarray(vectors, np.float32))
        self._values[:, rows] = values.T

    def near(self, query: Floats, count: int, seen: Mask) -> Rows:
        """Return the rows, ascending, of those seen, (n,), among which the `count` nearest are.

        Fewer than `count` if no more have anything of the question.
        """
        products = self._products(query, len(seen))
        products *= seen
        return top_rows(products, count + count // _SPARE)[0]

    def _products(self, query: Floats, n: int) -> Floats:
        """Return about the product of the first n rows with a question."""
        touched = np.flatnonzero(query)
        weights = query[touched]
        found = np.empty(n, np.float32)
        for first in range(0, n, _AT_ONCE):
            some = slice(first, min(first + _AT_ONCE, n))
            np.dot(weights, self._values[touched, some].astype(np.float32), out=found[some])
        found *= self._scales[:n]
        return found


# MERGED from memd.index.binary_codes:
# MERGED Rotated vectors, a byte a value and a bit a value, and which of them are nearest to a question. Pure.
# MERGED
# MERGED A row takes a byte a dimension and one scale, a quarter of float32: its cosines are off by 3e-4 on
# MERGED average and by less than 4e-3 (both in a test), its length stays 1, and equal vectors stay equal. The
# MERGED bits, whether a value is above the mean of the first rows, lie in planes: one array for every 64
# MERGED dimensions. Three passes, each finer, slower by the row, and over fewer rows, find the nearest:
# MERGED - coarse: in how many bits of the four planes that hold most of the question a row differs from it; if
# MERGED   that leaves too many rows that may be near, four more planes, the larger half of the question there.
# MERGED - fine: all bits, those of the question's larger third counted three times.
# MERGED - full: products of the bytes.
# MERGED While rows are few, a question of which most dimensions are zero needs no bits (plain.py).
# MERGED Recall@50 is .99 at 10,000 and 100,000 rows, at a million .996 where neighbours stand out and .98 in the
# MERGED hashing space, where they do not. (A bit against the sign, not the mean, leaves a fifth to twice as many
# MERGED rows to look at in the hashing space; which planes come first matters less, up to a quarter.)
# MERGED Not here: which rows a question may see (vectors.py), what a rotation is (quantization.py).


_FIRST_PLANES = 4
"""Whose 256 bits are the coarse distance; it fits in a byte but for what is the question's opposite."""
_SECOND_SHARE = 1 / 2
"""Of the question's values in four more planes, how many are counted when the first do not tell enough."""
_LARGE_SHARE = 1 / 3
"""Of a question's values, how many count as large; large bits weigh 1 + 2."""
_COARSE_SPREAD, _FINE_SPREAD = 28, 42
"""How far beyond the wanted ones chance may put a row: 3.5 deviations of the sum of 256 bits, and 1.6 of
that of all, of which the large weigh thrice. Where neighbours stand out, few rows are that near."""
_SURVIVORS, _SURVIVORS_MIN = 45, 8_000
"""Rows that the coarse pass leaves at most, times the square root of all that are seen."""
_COUNT_MIN = 200
"""Of the nearest, how many say what is near; of fewer, chance would speak too loud."""
_CANDIDATE_BYTES = 80 * 768
"""Of the rows that are scored in full at most, times the cube root of all that are seen. Rows of fewer
dimensions have fewer bits to be found by: more of them are scored at the same cost."""
_COARSE_FROM = 20_000
"""Rows: of fewer, the fine pass over all of them is quicker."""
_PLAIN_MAX = 20_000
"""Rows: of more, and"""
_PLAIN_SHARE = 1 / 4
"""of questions that touch more of the dimensions, the bits are quicker."""
_SETTLED_AT = 2_048
"""Rows: of so many, the mean is near that of all."""
_SPARSE_SHARE = 4
"""When a mask leaves less than one in so many rows, these are gathered, and no others read."""
_SAMPLE = 32_768
"""Of more rows than that, so many tell nearly how far to look."""
_ALL = ~np.uint64(0)
_BLOCK = 128
"""Rows that are read as float32 at a time: what is bigger than a cache is slower, and leaves holes."""
_STEP = 16_384
"""Rows whose signs are compared at a time."""

BitWords = NDArray[np.uint64]
Distances = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class _Plane:
    """What a question compares with one plane."""

    number: int
    signs: np.uint64
    chosen: np.uint64
    """Of the coarse pass."""
    large: np.uint64
    """Of the fine pass."""


class BinaryCodes:
    """Vectors of length 1; a row that was not put is zeros. For one caller at a time: it has scratch."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._question: tuple[Floats, Floats] | None = None
        self._rotation = Rotation(dimensions)
        self._plain: DimensionMajorVectors | None = None
        """Made when first asked for."""
        width = self._rotation.width
        self._values = np.zeros((capacity, width), np.int8)
        self._scales = np.zeros(capacity, np.float32)
        self._planes = np.zeros((width // WORD_BITS, capacity), np.uint64)
        self._centre = np.zeros(width, np.float32)
        self._until_settled = _SETTLED_AT
        # Made once, for the system's pages cost as much as what is written to them.
        self._bytes = np.empty((_BLOCK, width), np.int8)
        self._floats = np.empty((_BLOCK, width), np.float32)
        self._words = np.empty(_STEP, np.uint64)
        self._counts = np.empty((2, _STEP), np.uint8)
        self._distances = np.empty(0, np.uint8)

    def parts(self, n: int) -> dict[str, NDArray[Any]]:
        """Return what has to be saved of the first n rows."""
        return {
            "values": self._values[:n],
            "scales": self._scales[:n],
            "planes": self._planes[:, :n],
            "centre": self._centre,
        }

    def restore(self, parts: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was saved."""
        self._values, self._scales = parts["values"], parts["scales"]
        self._planes = parts["planes"]
        self._plain = None
        self._centre = parts["centre"][: self._rotation.width]
        self._until_settled = 0 if self._centre.any() else _SETTLED_AT

    def grow(self, capacity: int) -> None:
        """Make room for so many rows in all."""
        n, width = self._values.shape
        values = np.zeros((capacity, width), np.int8)
        scales = np.zeros(capacity, np.float32)
        planes = np.zeros((len(self._planes), capacity), np.uint64)
        values[:n], scales[:n], planes[:, :n] = self._values, self._scales, self._planes
        self._values, self._scales, self._planes = values, scales, planes
        self._plain = None

    def put(self, rows: Rows, vectors: VectorRows) -> None:
        """Write these rows."""
        for start in range(0, len(vectors), _BLOCK):
            rotated = self._rotation.forward(vectors[start : start + _BLOCK])
            at = rows[start : start + _BLOCK]
            self._values[at], self._scales[at] = quantize(rotated)
            self._sign(at)
        if self._plain is not None:
            self._plain.put(rows, vectors)
        if self._until_settled > 0:
            self._until_settled -= len(vectors)
            if self._until_settled <= 0:
                self._settle()

    def _sign(self, rows: Rows) -> None:
        """Tell of each value of a few rows whether it is above the centre."""
        floats = self._values[rows] * self._scales[rows, np.newaxis]
        self._planes[:, rows] = _packed(floats > self._centre).T

    def _settle(self) -> None:
        """Take the mean of the rows that are there for the centre, now and for good."""
        rows = np.flatnonzero(self._scales)
        sums = np.zeros(len(self._centre), np.float64)
        for some in _blocks(rows):
            sums += self._scales[some] @ self._values[some]
        self._centre = (sums / max(len(rows), 1)).astype(np.float32)
        for some in _blocks(rows):
            self._sign(some)

    def keep(self, kept: Rows) -> None:
        """Keep only these rows."""
        self._values, self._scales = self._values[kept], self._scales[kept]
        self._planes = self._planes[:, kept]
        self._plain = None

    def vectors(self, rows: Rows) -> Floats:
        """Return these rows, nearly as they were given."""
        found = np.empty((len(rows), self._rotation.dimensions), np.float32)
        for first in range(0, len(rows), _BLOCK):
            some = rows[first : first + _BLOCK]
            rotated = self._values[some] * self._scales[some, np.newaxis]
            found[first : first + len(some)] = self._rotation.back(rotated)
        return found

    def products(self, query: Floats, rows: Rows) -> Floats:
        """Return the product of each of these rows with the query."""
        wanted = self._rotated(query)
        found = np.empty(len(rows), np.float32)
        for first in range(0, len(rows), _BLOCK):
            some = rows[first : first + _BLOCK]
            values, floats = self._bytes[: len(some)], self._floats[: len(some)]
            # With "clip" nothing is checked on the way, and `out` is written to directly.
            np.take(self._values, some, axis=0, out=values, mode="clip")
            np.copyto(floats, values)
            np.dot(floats, wanted, out=found[first : first + len(some)])
        return found * self._scales[rows]

    def _rotated(self, query: Floats) -> Floats:
        """Return a question as the rows are; kept, for each is asked for twice."""
        if self._question is None or self._question[0] is not query:
            self._question = (query, self._rotation.forward(query[np.newaxis, :])[0])
        return self._question[1]

    def nearest(self, query: Floats, count: int, seen: Mask) -> Rows:
        """Return the rows, ascending, among which the `count` nearest of those seen, (n,), are likely."""
        count = max(count, _COUNT_MIN)
        total = int(np.count_nonzero(seen))
        most = max(4 * count, int(_CANDIDATE_BYTES / self._rotation.width * total ** (1 / 3)))
        if total <= 2 * most:
            return np.flatnonzero(seen)
        rows: Rows | None
        is_sparse = np.count_nonzero(query) <= _PLAIN_SHARE * len(query)
        if is_sparse and len(self._scales) <= _PLAIN_MAX:
            rows = self._by_dimension().near(query, count, seen)
            if len(rows) >= count:
                return rows
        planes = self._compared(query)
        rows = None
        if total > _COARSE_FROM:
            rows = self._survivors(planes, count, seen, total)
        elif total < len(seen):
            rows = np.flatnonzero(seen)
        distances = self._fine(planes, total if rows is None else len(rows), rows)
        within = _within(distances, count, _FINE_SPREAD, most)
        return within if rows is None else rows[within]

    def _by_dimension(self) -> DimensionMajorVectors:
        if self._plain is None:
            n = len(self._scales)
            plain = DimensionMajorVectors(self._rotation.dimensions, n)
            for rows in _blocks(np.arange(n)):
                plain.put(rows, self.vectors(rows))
            self._plain = plain
        return self._plain

    def _compared(self, query: Floats) -> list[_Plane]:
        """Read the question plane by plane; first the planes that hold most of it."""
        wanted = self._rotated(query)
        size = np.abs(wanted)
        signs, large = _packed(wanted > 0), _packed(size > _least(size, _LARGE_SHARE))
        by_plane = size.reshape(-1, WORD_BITS)
        order = np.argsort(-np.square(by_plane).sum(axis=1), kind="stable")
        second = order[_FIRST_PLANES : 2 * _FIRST_PLANES]
        chosen = np.full(len(signs), ~np.uint64(0))
        if len(second):
            chosen[second] = _packed(
                by_plane[second] > _least(by_plane[second], _SECOND_SHARE)
            ).ravel()
        return [_Plane(n, signs[n], chosen[n], large[n]) for n in order.tolist()]

    def _survivors(self, planes: list[_Plane], count: int, seen: Mask, total: int) -> Rows:
        """Return those of the rows that are seen whose coarse distance is small."""
        few = _SPARSE_SHARE * total < len(seen)
        rows = np.flatnonzero(seen) if few else None
        n = total if few else len(seen)
        if len(self._distances) < n:
            self._distances = np.empty(max(n, len(self._scales)), np.uint8)
        distances = self._distances[:n]
        hidden = None if few or total == n else seen.view(np.uint8) - np.uint8(1)
        most = max(_SURVIVORS_MIN, int(_SURVIVORS * total**0.5))
        distances[:] = 0
        for some in (planes[:_FIRST_PLANES], planes[_FIRST_PLANES : 2 * _FIRST_PLANES]):
            self._add_coarse(distances, some, rows)
            if hidden is not None:
                distances |= hidden
            if not _limit(distances, count, _COARSE_SPREAD, most)[1]:
                break
        within = _within(distances, count, _COARSE_SPREAD, most)
        return within if rows is None else rows[within]

    def _add_coarse(
        self, distances: NDArray[np.uint8], planes: list[_Plane], rows: Rows | None
    ) -> None:
        """Add the differing bits of those chosen, of these rows or of the first."""
        for first in range(0, len(distances), _STEP):
            found = distances[first : first + _STEP]
            counts = self._counts[0, : len(found)]
            for plane, words in self._read(planes, first, len(found), rows):
                if plane.chosen != _ALL:
                    np.bitwise_and(words, plane.chosen, out=words)
                np.bitwise_count(words, out=counts)
                np.add(found, counts, out=found)

    def _fine(self, planes: list[_Plane], n: int, rows: Rows | None) -> NDArray[np.uint16]:
        """Count the differing bits, large ones thrice, of these rows or of the first n."""
        distances = np.zeros(n, np.uint16)
        for first in range(0, n, _STEP):
            found = distances[first : first + _STEP]
            once, more = self._counts[:, : len(found)]
            for plane, words in self._read(planes, first, len(found), rows):
                np.bitwise_count(words, out=once)
                np.bitwise_and(words, plane.large, out=words)
                np.bitwise_count(words, out=more)
                np.add(more, more, out=more)
                np.add(once, more, out=once)
                np.add(found, once, out=found)
        return distances

    def _read(
        self, planes: list[_Plane], first: int, count: int, rows: Rows | None
    ) -> Iterator[tuple[_Plane, BitWords]]:
        """Yield plane by plane in which bits some rows differ from the question; always the same array."""
        words = self._words[:count]
        for plane in planes:
            column = self._planes[plane.number]
            if rows is None:
                np.bitwise_xor(column[first : first + count], plane.signs, out=words)
            else:
                np.take(column, rows[first : first + count], out=words, mode="clip")
                np.bitwise_xor(words, plane.signs, out=words)
            yield plane, words


def _within(distances: Distances, count: int, spread: int, most: int) -> Rows:
    """Where the distances are at most `spread` more than the `count` least, ascending; `most` of them.

    Of those that tie at the limit the last: a thousand copies would be a thousand products.
    """
    limit, _ = _limit(distances, count, spread, most)
    within = np.flatnonzero(distances <= limit)
    if len(within) < count:  # those in the sample were not like the others
        limit = int(np.partition(distances, count - 1)[count - 1])
        within = np.flatnonzero(distances <= limit)
    if len(within) > most:
        at_limit = np.flatnonzero(distances[within] == limit)
        within = np.delete(within, at_limit[: len(within) - most])
    return within


def _limit(distances: Distances, count: int, spread: int, most: int) -> tuple[int, bool]:
    """Return how far to look, and whether that is less far than it should be."""
    step = max(len(distances) // _SAMPLE, 1)
    # Counting is quicker than sorting.
    reached = np.cumsum(np.bincount(distances[::step]))
    wanted = (max(count // step, 1), max(most // step, 1))
    near, far = np.searchsorted(reached, wanted).tolist()
    return min(near + spread, far), near + spread > far


def _least(values: Floats, share: float) -> np.float32:
    """Find the value below which all but this share are."""
    place = int(values.size * (1 - share))
    return np.float32(np.partition(values.ravel(), place)[place])


def _blocks(rows: Rows) -> Iterator[Rows]:
    for first in range(0, len(rows), _BLOCK):
        yield rows[first : first + _BLOCK]


def _packed(bits: Mask) -> BitWords:
    """64 bits to a word."""
    return np.packbits(bits, axis=-1).view(np.uint64)
