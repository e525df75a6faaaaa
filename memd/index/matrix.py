"""Vectors of one space, row by row, and which of them are nearest to a question. Pure.

Up to 4,096 rows an exact float32 product over all of them is quickest. Beyond, a row takes a byte a
dimension and one scale, a quarter of float32: its cosines are off by 3e-4 on average and by less than
4e-3 (both in a test), its length stays 1, and equal vectors stay equal. Before that a vector is
rotated, so that no single large value makes all others coarse; the hashing space is full of those.
The signs of the rotated values, a bit each, make a first pass: it counts the bits in which a row
differs from the question, those of the question's large values three times, and 1,500 survivors are
scored in full. (Random rotations for signs: Ailon and Chazelle, 2006. Without one recall@50 is .15
in the hashing space; so it is .99, and .92 to .97 if all bits count the same.)
Not here: which rows a question may see.
"""

import hashlib
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Rows

EXACT_MAX = 4_096
_CANDIDATES = 1_500
_EXACT_SHARE = 2
"""When a mask leaves fewer than this times the candidates, the first pass is not worth it."""
_LARGE_SHARE = 1 / 3
"""Of a question's values, how many count as large; large bits weigh 1 + 2."""
_BLOCK = 128
"""Rows that are read as float32 at a time: what is bigger than a cache is slower, and leaves holes."""
_CODE_BLOCK = 65_536
_ROWS_FIRST = 64
_WORD = 64
_UNITS = 127

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Vectors = NDArray[np.float32] | NDArray[np.float16]
_T = TypeVar("_T", bound=np.generic)


class Matrix:
    """Vectors of length 1; a row without a vector is all zeros and is never found.

    A row is known once its text was embedded, also when there was nothing in it to make a vector of.
    """

    def __init__(self, dimensions: int, *, rows: int = 0, exact_max: int = EXACT_MAX) -> None:
        """Make room for `rows` rows and an eighth more."""
        capacity = max(_ROWS_FIRST, rows + rows // 8)
        self.dimensions = dimensions
        self.n = 0
        self._exact_max = exact_max
        self._rows = (Coded if rows > exact_max else Exact)(dimensions, capacity)
        self._filled = np.zeros(capacity, np.bool_)
        self._known = np.zeros(capacity, np.bool_)

    @property
    def known(self) -> Mask:
        """Which rows were embedded, (n,)."""
        return self._known[: self.n]

    def append(self, vectors: Vectors) -> None:
        """Add (m, dimensions) rows that were embedded; a row of zeros has no vector."""
        first = self.n
        self.extend(len(vectors))
        self.put(np.arange(first, self.n), vectors)

    def extend(self, count: int) -> None:
        """Add rows that were not embedded yet."""
        first, self.n = self.n, self.n + count
        if self.n > len(self._filled):
            self._make_room(self.n + self.n // 4)
        if self.n > self._exact_max and isinstance(self._rows, Exact):
            self._encode(first)

    def put(self, rows: Rows, vectors: Vectors) -> None:
        """Give these rows their vectors, (len(rows), dimensions); a row of zeros has none."""
        self._rows.put(rows, vectors)
        self._filled[rows] = vectors.any(axis=1)
        self._known[rows] = True

    def _make_room(self, capacity: int) -> None:
        self._rows.grow(capacity)
        self._filled = _wider(self._filled, capacity)
        self._known = _wider(self._known, capacity)

    def _encode(self, count: int) -> None:
        coded = Coded(self.dimensions, len(self._filled))
        for first in range(0, count, _BLOCK):
            rows = np.arange(first, min(first + _BLOCK, count))
            coded.put(rows, self._rows.vectors(rows))
        self._rows = coded

    def retire(self, rows: Rows) -> None:
        """Let these rows not be found any more."""
        self._filled[rows] = False
        self._known[rows] = False

    def compact(self, mapping: NDArray[np.int32]) -> None:
        """Drop the rows whose new number is -1."""
        kept = np.flatnonzero(mapping >= 0)
        self._rows.keep(kept)
        self._filled, self._known = self._filled[kept], self._known[kept]
        self.n = len(kept)

    def vectors(self, rows: Rows) -> Floats:
        """Return the vectors of these rows, (len(rows), dimensions)."""
        return self._rows.vectors(rows)

    def cosines(self, query: Floats, rows: Rows | None = None) -> Floats:
        """Return the cosine of every row, or of these, with a vector of length 1; 0 without a vector."""
        wanted = np.arange(self.n) if rows is None else rows
        found = self._rows.products(query, wanted)
        return np.where(self._filled[wanted], found, np.float32(0))

    def top(self, query: Floats, count: int, mask: Mask | None = None) -> tuple[Rows, Floats]:
        """Find the `count` nearest rows that have a vector, and their cosines.

        Nearest first, of equal ones the lower row. `mask`, (n,), says which rows may be seen.
        """
        seen = self._filled[: self.n] if mask is None else self._filled[: self.n] & mask
        rows = self._rows.nearest(query, max(_CANDIDATES, 4 * count), np.flatnonzero(seen))
        return _best(rows, self._rows.products(query, rows), count)


def _best(rows: Rows, cosines: Floats, count: int) -> tuple[Rows, Floats]:
    if len(rows) > count:
        weakest = np.partition(cosines, len(rows) - count)[len(rows) - count]
        kept = np.flatnonzero(cosines >= weakest)
        rows, cosines = rows[kept], cosines[kept]
    order = np.lexsort((rows, -cosines))[:count]
    return rows[order], cosines[order]


def _wider(array: NDArray[_T], capacity: int) -> NDArray[_T]:
    """Copy to a longer one; what is beyond is zero, and not resident before it is written."""
    wider = np.zeros((capacity, *array.shape[1:]), array.dtype)
    wider[: len(array)] = array
    return wider


class Exact:
    """Vectors as they are, in float32."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._vectors = np.zeros((capacity, dimensions), np.float32)

    def grow(self, capacity: int) -> None:
        """Make room for so many rows in all."""
        self._vectors = _wider(self._vectors, capacity)

    def put(self, rows: Rows, vectors: Vectors) -> None:
        """Write these rows."""
        self._vectors[rows] = vectors

    def keep(self, kept: Rows) -> None:
        """Keep only these rows."""
        self._vectors = self._vectors[kept]

    def vectors(self, rows: Rows) -> Floats:
        """Return these rows."""
        return self._vectors[rows]

    def nearest(self, _query: Floats, _count: int, rows: Rows) -> Rows:
        """Return all of these rows: none is left out before its product is known."""
        return rows

    def products(self, query: Floats, rows: Rows) -> Floats:
        """Return the product of each of these rows with the query."""
        if not len(rows):
            return np.zeros(0, np.float32)
        if len(rows) < len(self._vectors) // 4:
            return np.asarray(self._vectors[rows] @ query, np.float32)
        return np.asarray((self._vectors[: int(rows.max()) + 1] @ query)[rows], np.float32)


class Coded:
    """Rotated vectors: a byte a value, one scale a row, and the signs apart, an array per 64 of them."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._rotation = Rotation(dimensions)
        width = self._rotation.width
        self._values = np.zeros((capacity, width), np.int8)
        self._scales = np.zeros(capacity, np.float32)
        self._planes = np.zeros((width // _WORD, capacity), np.uint64)
        self._block = np.empty((_BLOCK, width), np.float32)
        """Where rows are read to; made once, for the system's pages cost as much as the products."""

    def grow(self, capacity: int) -> None:
        """Make room for so many rows in all."""
        self._values, self._scales = (
            _wider(self._values, capacity),
            _wider(self._scales, capacity),
        )
        planes = np.zeros((len(self._planes), capacity), np.uint64)
        planes[:, : self._planes.shape[1]] = self._planes
        self._planes = planes

    def put(self, rows: Rows, vectors: Vectors) -> None:
        """Write these rows."""
        for start in range(0, len(vectors), _BLOCK):
            rotated = self._rotation.forward(vectors[start : start + _BLOCK])
            at = rows[start : start + _BLOCK]
            highest = np.abs(rotated).max(axis=1, keepdims=True, initial=0)
            values = np.rint(rotated * (_UNITS / np.where(highest > 0, highest, 1)))
            length = np.sqrt(np.square(values).sum(axis=1))
            self._values[at] = values
            self._scales[at] = 1 / np.where(length > 0, length, 1)
            self._planes[:, at] = _packed(rotated > 0).T

    def keep(self, kept: Rows) -> None:
        """Keep only these rows."""
        self._values, self._scales = self._values[kept], self._scales[kept]
        self._planes = self._planes[:, kept]

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
        wanted = self._rotation.forward(query[np.newaxis, :])[0]
        found = np.empty(len(rows), np.float32)
        block = self._block
        for first in range(0, len(rows), _BLOCK):
            some = rows[first : first + _BLOCK]
            block[: len(some)] = self._values[some]
            np.dot(block[: len(some)], wanted, out=found[first : first + len(some)])
        return found * self._scales[rows]

    def nearest(self, query: Floats, count: int, rows: Rows) -> Rows:
        """Return those `count` of these rows whose signs differ least from the query's, ascending."""
        if len(rows) <= _EXACT_SHARE * count:
            return rows
        distances = self._distances(query, int(rows[-1]) + 1)[rows]
        # Counting is quicker than sorting: find the distance within which `count` rows lie.
        limit = int(np.searchsorted(np.cumsum(np.bincount(distances)), count))
        within = np.flatnonzero(distances <= limit)
        # Of those that tie at the limit the newest, or a thousand copies would be a thousand products.
        at_limit = np.flatnonzero(distances[within] == limit)
        return rows[np.delete(within, at_limit[: len(within) - count])]

    def _distances(self, query: Floats, n: int) -> NDArray[np.uint16]:
        """Count the bits in which each of the first n rows differs from the query, large ones thrice."""
        wanted = self._rotation.forward(query[np.newaxis, :])[0]
        size = np.abs(wanted)
        least = int(len(size) * (1 - _LARGE_SHARE))
        signs, large = _packed(wanted > 0), _packed(size > np.partition(size, least)[least])
        distances = np.zeros(n, np.uint16)
        for first in range(0, n, _CODE_BLOCK):
            found = distances[first : first + _CODE_BLOCK]
            planes = self._planes[:, first : first + len(found)]
            for plane, sign, big in zip(planes, signs, large, strict=True):
                differing = plane ^ sign
                count = np.bitwise_count(differing)
                differing &= big
                twice = np.bitwise_count(differing)
                twice += twice
                count += twice
                found += count
        return distances


def _packed(bits: Mask) -> NDArray[np.uint64]:
    """64 bits to a word."""
    return np.packbits(bits, axis=-1).view(np.uint64)


class Rotation:
    """A rotation that mixes all dimensions and costs little, the same everywhere.

    Twice: random signs, then a Hadamard transform within blocks of a power of two; in between, every
    block gets a part of every other.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.width = -(-dimensions // _WORD) * _WORD
        """Of the rotated vectors: the dimensions, filled up to whole words."""
        side = self.width & -self.width
        self._blocks = self.width // side
        # The transform of a product of two sides is two small products: H(a) · X · H(b).
        half = 1 << (side.bit_length() // 2)
        self._left, self._right = _hadamard(half), _hadamard(side // half)
        self._signs = _signs(2 * self.width).reshape(2, self.width)

    def forward(self, vectors: Vectors) -> Floats:
        """Rotate (m, dimensions) to (m, width)."""
        padded = np.zeros((len(vectors), self.width), np.float32)
        padded[:, : self.dimensions] = vectors
        mixed = self._mixed(padded * self._signs[0])
        return self._mixed(self._dealt(mixed, self._blocks) * self._signs[1])

    def back(self, rotated: Floats) -> Floats:
        """Rotate (m, width) back to (m, dimensions)."""
        mixed = self._mixed(rotated) * self._signs[1]
        dealt = self._dealt(mixed, self.width // self._blocks)
        vectors: Floats = self._mixed(dealt) * self._signs[0]
        return vectors[:, : self.dimensions]

    def _mixed(self, rows: Floats) -> Floats:
        grid = rows.reshape(-1, len(self._left), len(self._right))
        return np.asarray((self._left @ grid @ self._right).reshape(rows.shape), np.float32)

    def _dealt(self, rows: Floats, piles: int) -> Floats:
        """Take the first of each pile, then the second of each, and so on."""
        dealt = rows.reshape(len(rows), piles, self.width // piles).swapaxes(1, 2)
        return np.ascontiguousarray(dealt).reshape(rows.shape)


def _hadamard(side: int) -> Floats:
    """Build the Hadamard matrix of a power of two, scaled to be a rotation."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < side:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.float32(np.sqrt(side))


def _signs(count: int) -> Floats:
    """Draw random signs, the same everywhere: ±1, (count,)."""
    stream = hashlib.shake_128(b"memd rotation 2").digest(count // 8)
    bits = np.unpackbits(np.frombuffer(stream, np.uint8))
    return np.where(bits, np.float32(1), np.float32(-1))
