"""Which rows have a value in a column, found without walking all of them. Pure.

The rows up to some point lie in order of their values; those after it are walked, until they are too
many and are put in order, too. A value that changes in a row of the first kind makes that row a stray,
which is looked at besides. Not here: the column itself.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOOSE_MIN = 4_096
_LOOSE_SHARE = 64
_STRAYS_MAX = 1_024

Rows = NDArray[np.intp]
Column = NDArray[Any]


class Places:
    """Rows by value, for one column of whole numbers."""

    def __init__(self) -> None:
        self._keys: Column = np.zeros(0, np.int64)
        self._order: NDArray[np.int32] = np.zeros(0, np.int32)
        self._strays: set[int] = set()

    def changed(self, rows: Rows) -> None:
        """Take note that these rows have other values than before."""
        self._strays.update(rows[rows < len(self._order)].tolist())

    def rows(self, column: Column, values: Sequence[int] | NDArray[Any]) -> Rows:
        """Return the rows of the column that have one of these values, ascending."""
        if len(column) - len(self._order) > max(_LOOSE_MIN, len(column) // _LOOSE_SHARE) or (
            len(self._strays) > _STRAYS_MAX
        ):
            self._put_in_order(column)
        wanted = _distinct(values, column.dtype)
        if not len(wanted):
            return np.zeros(0, np.intp)
        return np.sort(np.concatenate([*self._in_order(wanted), self._loose(column, wanted)]))

    def _put_in_order(self, column: Column) -> None:
        order = np.argsort(column, kind="stable")
        self._keys, self._order = column[order], order.astype(np.int32)
        self._strays.clear()

    def _in_order(self, wanted: Column) -> list[Rows]:
        first = self._keys.searchsorted(wanted, "left").tolist()
        stop = self._keys.searchsorted(wanted, "right").tolist()
        found = [self._order[a:b] for a, b in zip(first, stop, strict=True) if a < b]
        if not self._strays or not found:
            return [rows.astype(np.intp) for rows in found]
        rows = np.concatenate(found)
        return [rows[~np.isin(rows, list(self._strays))].astype(np.intp)]

    def _loose(self, column: Column, wanted: Column) -> Rows:
        first = len(self._order)
        rows = first + np.flatnonzero(_is_in(column[first:], wanted))
        if not self._strays:
            return rows
        strays = np.fromiter(self._strays, np.intp, len(self._strays))
        return np.concatenate((strays[_is_in(column[strays], wanted)], rows))


def _distinct(values: Sequence[int] | NDArray[Any], dtype: np.dtype[Any]) -> Column:
    if len(values) == 1:
        return np.asarray(values, dtype)
    return np.unique(np.asarray(values, dtype))


def _is_in(column: Column, wanted: Column) -> NDArray[np.bool_]:
    if len(wanted) == 1:
        return np.asarray(column == wanted[0])
    places = np.minimum(wanted.searchsorted(column), len(wanted) - 1)
    return np.asarray(wanted[places] == column)
