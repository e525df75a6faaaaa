"""Vectors by dimension, a byte a value: quick where most dimensions of a question are zero. Pure.

A question of some words touches a tenth of the hashing space's dimensions. Then a tenth of the bytes gives
a product of every row, in a third of the time that bits take at 10,000 rows. Beside the coded rows, never
saved, and off by a little: it says which rows may be near. Not here: what they are worth (binary_codes.py).
"""

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Rows
from memd.index.quantization import Floats, Vectors, quantized
from memd.index.topk import highest

_AT_ONCE = 4_096
"""Rows that are read as float32 at a time."""
_SPARE = 4
"""One more for so many wanted: what is a product less here may be a product more in truth."""

Mask = NDArray[np.bool_]


class Plain:
    """A byte a value and one scale a row, (dimensions, capacity) and (capacity,)."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._values = np.zeros((dimensions, capacity), np.int8)
        self._scales = np.zeros(capacity, np.float32)

    def put(self, rows: Rows, vectors: Vectors) -> None:
        """Write these rows, (len(rows), dimensions)."""
        values, self._scales[rows] = quantized(np.asarray(vectors, np.float32))
        self._values[:, rows] = values.T

    def near(self, query: Floats, count: int, seen: Mask) -> Rows:
        """Return the rows, ascending, of those seen, (n,), among which the `count` nearest are.

        Fewer than `count` if no more have anything of the question.
        """
        products = self._products(query, len(seen))
        products *= seen
        return highest(products, count + count // _SPARE)[0]

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
