"""Vector matrix of one space. Pure.

Up to 4,096 rows an exact float32 product with all of them is fastest. Beyond, rows are bytes and bits, and the bits
select the rows that are scored (quantization.py).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Rows, widen
from memd.index.quantization import BinaryCodes, Floats, VectorRows
from memd.store.filter import Mask

EXACT_ROWS_MAX = 4_096
_CAPACITY_MIN = 64
_ENCODED_ROWS = 128
"""Rows that are encoded at a time."""
VECTOR_PARTS = frozenset({"vectors", "values", "scales", "codes", "planes"})
"""Arrays of a snapshot whose rows never change once they have vectors."""


class VectorMatrix:
    """Vectors of length 1; a row without a vector is all zeros and is never found.

    A row is `known` once its text was embedded, also if that gave no vector.
    """

    def __init__(self, dimensions: int, *, rows: int = 0, exact_max: int = EXACT_ROWS_MAX) -> None:
        """Make room for `rows` rows and an eighth more."""
        capacity = max(_CAPACITY_MIN, rows + rows // 8)
        self.dimensions = dimensions
        self.n = 0
        self._exact_max = exact_max
        self._rows = (BinaryCodes if rows > exact_max else ExactVectors)(dimensions, capacity)
        self._filled = np.zeros(capacity, np.bool_)
        self._known = np.zeros(capacity, np.bool_)

    @property
    def known(self) -> Mask:
        """A mask, (n,), of the rows that were embedded."""
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
            capacity = self.n + self.n // 4
            self._rows.grow(capacity)
            self._filled = widen(self._filled, capacity)
            self._known = widen(self._known, capacity)
        if self.n > self._exact_max and isinstance(self._rows, ExactVectors):
            self._encode_rows(first)

    def put(self, rows: Rows, vectors: VectorRows) -> None:
        """Give these rows their vectors, (len(rows), dimensions); a row of zeros has none."""
        self._rows.put(rows, vectors)
        self._filled[rows] = vectors.any(axis=1)
        self._known[rows] = True

    def _encode_rows(self, count: int) -> None:
        coded = BinaryCodes(self.dimensions, len(self._filled))
        for first in range(0, count, _ENCODED_ROWS):
            rows = np.arange(first, min(first + _ENCODED_ROWS, count))
            coded.put(rows, self._rows.vectors(rows))
        self._rows = coded

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot: of n rows, but `planes` is (planes, n)."""
        return {
            **self._rows.parts(self.n),
            "filled": self._filled[: self.n],
            "known": self._known[: self.n],
        }

    def restore(self, n: int, parts: Mapping[str, NDArray[Any]]) -> None:
        """Use the arrays of a snapshot of n rows. They may be longer, with zeros behind: new rows go there."""
        self.n = n
        self._rows = (ExactVectors if "vectors" in parts else BinaryCodes)(self.dimensions, 0)
        # Plain views: slicing a memmap is slow.
        plain = {name: np.asarray(part) for name, part in parts.items()}
        self._rows.restore(plain)
        self._filled, self._known = plain["filled"], plain["known"]

    def retire(self, rows: Rows) -> None:
        """Hide these rows from searches."""
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

    def likeness(self, rows: Rows) -> Floats:
        """Return the cosine of each of these rows, a few, with each of them."""
        return self._rows.likeness(rows)

    def cosines(self, query: Floats, rows: Rows | None = None) -> Floats:
        """Return the cosine of every row, or of these, with a vector of length 1; 0 without a vector."""
        wanted = np.arange(self.n) if rows is None else rows
        found = self._rows.products(query, wanted)
        return np.where(self._filled[wanted], found, np.float32(0))

    def top(self, query: Floats, count: int, mask: Mask | None = None) -> tuple[Rows, Floats]:
        """Find the `count` nearest rows that have a vector, and their cosines; `mask`, (n,), says which are visible.

        Nearest first, of equal ones the lower row.
        """
        seen = self._filled[: self.n] if mask is None else self._filled[: self.n] & mask
        rows = self._rows.nearest(query, count, seen)
        return _sort_nearest(rows, self._rows.products(query, rows), count)


def _sort_nearest(rows: Rows, cosines: Floats, count: int) -> tuple[Rows, Floats]:
    if len(rows) > count:
        weakest = np.partition(cosines, len(rows) - count)[len(rows) - count]
        kept = np.flatnonzero(cosines >= weakest)
        rows, cosines = rows[kept], cosines[kept]
    order = np.lexsort((rows, -cosines))[:count]
    return rows[order], cosines[order]


class ExactVectors:
    """Vectors as they are, in float32."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._vectors = np.zeros((capacity, dimensions), np.float32)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        self._vectors = widen(self._vectors, capacity)

    def parts(self, n: int) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot of the first n rows."""
        return {"vectors": self._vectors[:n]}

    def restore(self, parts: Mapping[str, NDArray[Any]]) -> None:
        """Use the arrays of a snapshot."""
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

    def likeness(self, rows: Rows) -> Floats:
        """Return the product of each of these rows with each of them."""
        return self._vectors[rows] @ self._vectors[rows].T

    def nearest(self, _query: Floats, _count: int, seen: Mask) -> Rows:
        """Return all visible rows: each is scored."""
        return np.flatnonzero(seen)

    def products(self, query: Floats, rows: Rows) -> Floats:
        """Return the product of each of these rows with the query."""
        if not len(rows):
            return np.zeros(0, np.float32)
        if len(rows) < len(self._vectors) // 4:
            return np.asarray(self._vectors[rows] @ query, np.float32)
        return np.asarray((self._vectors[: int(rows.max()) + 1] @ query)[rows], np.float32)
