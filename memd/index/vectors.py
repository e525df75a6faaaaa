"""Vectors of one space, row by row, and which of them are nearest to a question. Pure.

Up to 4,096 rows an exact float32 product over all of them is quickest. Beyond, rows are bytes and bits,
and a first look at the bits says which are worth a product (binary_codes.py).
Not here: which rows a question may see.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.index.binary_codes import BinaryCodes, Mask
from memd.index.columns import Rows
from memd.index.quantization import Floats, VectorRows

EXACT_MAX = 4_096
_ROWS_FIRST = 64
_ENCODED_AT_ONCE = 128

VECTOR_PARTS = frozenset({"vectors", "values", "scales", "planes"})
"""The saved arrays whose rows are never written again once they have vectors."""

_T = TypeVar("_T", bound=np.generic)


class VectorMatrix:
    """Vectors of length 1; a row without a vector is all zeros and is never found.

    A row is known once its text was embedded, also when there was nothing in it to make a vector of.
    """

    def __init__(self, dimensions: int, *, rows: int = 0, exact_max: int = EXACT_MAX) -> None:
        """Make room for `rows` rows and an eighth more."""
        capacity = max(_ROWS_FIRST, rows + rows // 8)
        self.dimensions = dimensions
        self.n = 0
        self._exact_max = exact_max
        self._rows = (BinaryCodes if rows > exact_max else ExactVectors)(dimensions, capacity)
        self._filled = np.zeros(capacity, np.bool_)
        self._known = np.zeros(capacity, np.bool_)

    @property
    def known(self) -> Mask:
        """Which rows were embedded, (n,)."""
        return self._known[: self.n]

    def append(self, vectors: VectorRows) -> None:
        """Add (m, dimensions) rows that were embedded; a row of zeros has no vector."""
        first = self.n
        self.extend(len(vectors))
        self.put(np.arange(first, self.n), vectors)

    def extend(self, count: int) -> None:
        """Add rows that were not embedded yet."""
        first, self.n = self.n, self.n + count
        if self.n > len(self._filled):
            self._make_room(self.n + self.n // 4)
        if self.n > self._exact_max and isinstance(self._rows, ExactVectors):
            self._encode(first)

    def put(self, rows: Rows, vectors: VectorRows) -> None:
        """Give these rows their vectors, (len(rows), dimensions); a row of zeros has none."""
        self._rows.put(rows, vectors)
        self._filled[rows] = vectors.any(axis=1)
        self._known[rows] = True

    def _make_room(self, capacity: int) -> None:
        self._rows.grow(capacity)
        self._filled = _wider(self._filled, capacity)
        self._known = _wider(self._known, capacity)

    def _encode(self, count: int) -> None:
        coded = BinaryCodes(self.dimensions, len(self._filled))
        for first in range(0, count, _ENCODED_AT_ONCE):
            rows = np.arange(first, min(first + _ENCODED_AT_ONCE, count))
            coded.put(rows, self._rows.vectors(rows))
        self._rows = coded

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return what has to be saved: arrays of n rows, but `planes` is (planes, n)."""
        return {
            **self._rows.parts(self.n),
            "filled": self._filled[: self.n],
            "known": self._known[: self.n],
        }

    def restore(self, n: int, parts: Mapping[str, NDArray[Any]]) -> None:
        """Take over arrays that were saved when there were n rows.

        They may be longer, with zeros after the n: then rows are written into them.
        """
        self.n = n
        self._rows = (BinaryCodes if "planes" in parts else ExactVectors)(self.dimensions, 0)
        # Plain views, for what numpy does at every slice of a map is felt.
        plain = {name: np.asarray(part) for name, part in parts.items()}
        self._rows.restore(plain)
        self._filled, self._known = plain["filled"], plain["known"]

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
        rows = self._rows.nearest(query, count, seen)
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


class ExactVectors:
    """Vectors as they are, in float32."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._vectors = np.zeros((capacity, dimensions), np.float32)

    def grow(self, capacity: int) -> None:
        """Make room for so many rows in all."""
        self._vectors = _wider(self._vectors, capacity)

    def parts(self, n: int) -> dict[str, NDArray[Any]]:
        """Return what has to be saved of the first n rows."""
        return {"vectors": self._vectors[:n]}

    def restore(self, parts: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was saved."""
        self._vectors = parts["vectors"]

    def put(self, rows: Rows, vectors: VectorRows) -> None:
        """Write these rows."""
        self._vectors[rows] = vectors

    def keep(self, kept: Rows) -> None:
        """Keep only these rows."""
        self._vectors = self._vectors[kept]

    def vectors(self, rows: Rows) -> Floats:
        """Return these rows."""
        return self._vectors[rows]

    def nearest(self, _query: Floats, _count: int, seen: Mask) -> Rows:
        """Return all rows that are seen: none is left out before its product is known."""
        return np.flatnonzero(seen)

    def products(self, query: Floats, rows: Rows) -> Floats:
        """Return the product of each of these rows with the query."""
        if not len(rows):
            return np.zeros(0, np.float32)
        if len(rows) < len(self._vectors) // 4:
            return np.asarray(self._vectors[rows] @ query, np.float32)
        return np.asarray((self._vectors[: int(rows.max()) + 1] @ query)[rows], np.float32)
