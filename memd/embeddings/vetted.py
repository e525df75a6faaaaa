"""Vectors from outside: refused with a reason, or made rows of length 1 that may be stored. Pure.

A vector that is not a number, not of its space's length or no direction at all would poison every
later comparison, so it never gets past here. Not here: asking for them, or what to do without.
"""

import math

import numpy as np
from numpy.typing import NDArray

from memd.embeddings.ports import Vectors
from memd.embeddings.provider import Refused

Numbers = NDArray[np.float64]
_ROWS_AND_COLUMNS = 2


def vetted(raw: object, count: int, *, cut: int = 0, dimensions: int = 0) -> Vectors | Refused:
    """Return (count, dimensions) float32, `count` at least 1, in the order of the reply, each row of length 1.

    `cut` keeps the first so many values of each vector, 0 all; `dimensions` is what must be left, 0
    whatever the reply has.
    """
    rows = _numbers(raw, count)
    if isinstance(rows, Refused):
        return rows
    rows = rows[:, :cut] if cut else rows
    if dimensions and rows.shape[1] != dimensions:
        return Refused(f"vectors of {rows.shape[1]} values came, not of {dimensions}")
    return _directions(rows)


def _numbers(raw: object, count: int) -> Numbers | Refused:
    if not isinstance(raw, list):
        return Refused("the reply has no vectors")
    if len(raw) != count:
        return Refused(f"{len(raw)} vectors came for {count} texts")
    if len({len(row) if isinstance(row, list) else 0 for row in raw}) != 1:
        return Refused("the vectors are of different lengths")
    try:
        found = np.asarray(raw)
    except ValueError:
        found = np.empty(0, object)
    if found.dtype.kind not in "iuf" or found.ndim != _ROWS_AND_COLUMNS or not found.shape[1]:
        return Refused("the vectors hold something that is not a number, or nothing")
    return found.astype(np.float64)


def _directions(rows: Numbers) -> Vectors | Refused:
    largest = np.abs(rows).max(axis=1, initial=0.0)
    # A number that float32 cannot hold is no embedding, either.
    if not np.isfinite(largest).all() or (largest > _FLOAT32_MAX).any():
        return Refused("a vector is not finite")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if (lengths < _SHORTEST).any():
        return Refused("a vector is all zeros")
    found: Vectors = (rows / lengths).astype(np.float32)
    return found


_FLOAT32_MAX = float(np.finfo(np.float32).max)
_SHORTEST = math.sqrt(float(np.finfo(np.float32).tiny))
"""Below this the direction is noise."""
