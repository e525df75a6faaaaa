"""Vectors of one space, row by row, and which of them are nearest to a question. Pure.

Up to 20,000 rows an exact float32 product over all of them is quickest. Beyond, each vector also has
a code of one bit a dimension: a first pass counts differing bits, and some 2,000 survivors are scored
in full. Then the vectors themselves are kept as int16 in units of 1/32767: half the memory of float32,
about as fine as the float16 that the vault holds (4e-5 on a cosine), and numpy reads it several
times as fast. A vector is rotated before its signs are taken: the hashing space is so sparse that
most of its signs would say nothing (recall@50 .15 without, .97 and more with; the rotation is a
Hadamard transform after random signs, as in Ailon and Chazelle, 2006).
Not here: which rows a question may see.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Rows

EXACT_MAX = 4_096
_CANDIDATES = 2_000
_EXACT_SHARE = 2
"""When a mask leaves fewer than this times the candidates, the first pass is not worth it."""
_BLOCK = 4_096
_ROWS_FIRST = 64
_WORD = 64
_UNITS = 32_767

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Vectors = NDArray[np.float32] | NDArray[np.float16]
Stored = NDArray[Any]
"""float32, or int16 in units of 1/32767."""


class Matrix:
    """Vectors of length 1; a row without a vector is all zeros and is never found."""

    def __init__(self, dimensions: int, *, rows: int = 0, exact_max: int = EXACT_MAX) -> None:
        """Make room for `rows` rows and a quarter more."""
        capacity = max(_ROWS_FIRST, rows + rows // 4)
        self.dimensions = dimensions
        self.n = 0
        self._exact_max = exact_max
        self._codes = Codes(dimensions) if rows > exact_max else None
        self._vectors: Stored = np.zeros((capacity, dimensions), self._type())
        self._filled = np.zeros(capacity, np.bool_)

    def _type(self) -> type[np.float32 | np.int16]:
        return np.float32 if self._codes is None else np.int16

    def append(self, vectors: Vectors) -> None:
        """Add (m, dimensions) rows; a row of zeros is a missing vector."""
        first, self.n = self.n, self.n + len(vectors)
        if self.n > len(self._filled):
            # Memory that was never written to is not resident, so doubling is cheap.
            self._make_room(max(self.n, 2 * len(self._filled)))
        self._vectors[first : self.n] = _stored(vectors, self._vectors.dtype)
        self._filled[first : self.n] = vectors.any(axis=1)
        if self._codes is not None:
            self._codes.append(vectors.astype(np.float32))
        elif self.n > self._exact_max:
            self._encode()

    def _make_room(self, capacity: int) -> None:
        wider = np.zeros((capacity, self.dimensions), self._vectors.dtype)
        wider[: len(self._vectors)] = self._vectors
        self._vectors = wider
        self._filled = np.append(self._filled, np.zeros(capacity - len(self._filled), np.bool_))

    def _encode(self) -> None:
        self._codes = Codes(self.dimensions)
        small: Stored = np.zeros(self._vectors.shape, np.int16)
        for first in range(0, self.n, _BLOCK):
            block = self._vectors[first : min(first + _BLOCK, self.n)]
            self._codes.append(block)
            small[first : first + len(block)] = _stored(block, small.dtype)
        self._vectors = small

    def retire(self, rows: Rows) -> None:
        """Let these rows not be found any more."""
        self._filled[rows] = False

    def compact(self, mapping: NDArray[np.int32]) -> None:
        """Drop the rows whose new number is -1."""
        kept = np.flatnonzero(mapping >= 0)
        self._vectors, self._filled = self._vectors[kept], self._filled[kept]
        self.n = len(kept)
        if self._codes is not None:
            self._codes.compact(kept)

    def vectors(self, rows: Rows) -> Floats:
        """Return the vectors of these rows, (len(rows), dimensions)."""
        return _read(self._vectors[rows])

    def cosines(self, query: Floats) -> Floats:
        """Return the exact cosine of every row with a vector of length 1, (n,)."""
        found = np.empty(self.n, np.float32)
        for first in range(0, self.n, _BLOCK):
            block = self._vectors[first : min(first + _BLOCK, self.n)]
            found[first : first + len(block)] = _product(block, query)
        return np.where(self._filled[: self.n], found, np.float32(0))

    def top(self, query: Floats, count: int, mask: Mask | None = None) -> tuple[Rows, Floats]:
        """Find the `count` nearest rows that have a vector, and their cosines.

        Nearest first, of equal ones the lower row. `mask`, (n,), says which rows may be seen.
        """
        seen = self._filled[: self.n] if mask is None else self._filled[: self.n] & mask
        rows = np.flatnonzero(seen)
        survivors = max(_CANDIDATES, 4 * count)
        if self._codes is not None and len(rows) > _EXACT_SHARE * survivors:
            rows = self._codes.nearest(query, survivors, rows)
        if self._codes is not None or len(rows) < self.n // 4:
            cosines = _product(self._vectors[rows], query)
        else:
            cosines = (self._vectors[: self.n] @ query)[rows]
        return _best(rows, cosines, count)


def _stored(vectors: Vectors, dtype: np.dtype[Any]) -> Stored:
    return np.rint(vectors.astype(np.float32) * _UNITS) if dtype == np.int16 else vectors


def _read(stored: Stored) -> Floats:
    if stored.dtype == np.int16:
        return stored.astype(np.float32) * np.float32(1 / _UNITS)
    return stored


def _product(stored: Stored, query: Floats) -> Floats:
    found: Floats = stored.astype(np.float32, copy=False) @ query
    return found if stored.dtype == np.float32 else found * np.float32(1 / _UNITS)


def _best(rows: Rows, cosines: Floats, count: int) -> tuple[Rows, Floats]:
    if len(rows) > count:
        weakest = np.partition(cosines, len(rows) - count)[len(rows) - count]
        kept = np.flatnonzero(cosines >= weakest)
        rows, cosines = rows[kept], cosines[kept]
    order = np.lexsort((rows, -cosines))[:count]
    return rows[order], cosines[order]


class Codes:
    """One bit a dimension: the sign after a rotation. Bit planes, one array per 64 bits of the code."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._padded = max(_WORD, 1 << (dimensions - 1).bit_length())
        side = 1 << (self._padded.bit_length() // 2)
        self._left, self._right = _hadamard(side), _hadamard(self._padded // side)
        self._signs = _signs(self._padded)
        self._planes = np.zeros((self._padded // _WORD, _ROWS_FIRST), np.uint64)
        self._n = 0

    def append(self, vectors: Floats) -> None:
        """Encode (m, dimensions) rows."""
        first, self._n = self._n, self._n + len(vectors)
        if self._n > self._planes.shape[1]:
            wider = np.zeros(
                (len(self._planes), max(self._n, 2 * self._planes.shape[1])), np.uint64
            )
            wider[:, :first] = self._planes[:, :first]
            self._planes = wider
        self._planes[:, first : self._n] = self._encoded(vectors).T

    def compact(self, kept: Rows) -> None:
        """Keep only these rows."""
        self._planes = self._planes[:, kept]
        self._n = len(kept)

    def nearest(self, query: Floats, count: int, rows: Rows) -> Rows:
        """Find those `count` of these rows whose codes differ least from the query's, ascending."""
        wanted = self._encoded(query[np.newaxis, :])[0]
        distances = np.zeros(self._n, np.uint16)
        for plane, word in zip(self._planes, wanted, strict=True):
            distances += np.bitwise_count(plane[: self._n] ^ word)
        seen = distances[rows]
        # Counting is quicker than sorting: find the distance within which `count` rows lie.
        within = np.cumsum(np.bincount(seen, minlength=self._padded + 1))
        limit = int(np.searchsorted(within, count))
        nearer, at_limit = rows[seen < limit], rows[seen == limit]
        # Of those that tie at the limit the newest, or a thousand copies would be a thousand products.
        return np.sort(
            np.concatenate((nearer, at_limit[len(at_limit) - (count - len(nearer)) :]))
        )

    def _encoded(self, vectors: Floats) -> NDArray[np.uint64]:
        """Take the signs of the rotated rows, 64 to a word: (m, words)."""
        padded = np.zeros((len(vectors), self._padded), np.float32)
        padded[:, : self._dimensions] = vectors
        padded *= self._signs
        # The transform of a product of two sides is two small products: H(side) · X · H(side').
        grid = padded.reshape(len(vectors), len(self._left), len(self._right))
        rotated = (self._left @ grid @ self._right).reshape(len(vectors), self._padded)
        return np.packbits(rotated > 0, axis=1).view(np.uint64)


def _hadamard(side: int) -> Floats:
    """Build the Hadamard matrix of a power of two, without its scale: only signs matter here."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < side:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def _signs(count: int) -> Floats:
    """Draw random signs, the same everywhere: ±1, (count,)."""
    stream = hashlib.shake_128(b"memd rotation 1").digest(count // 8)
    return (np.unpackbits(np.frombuffer(stream, np.uint8)).astype(np.float32) * 2 - 1).astype(
        np.float32
    )
