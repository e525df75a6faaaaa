"""What a copy of the index is made of, and what it is once it is mapped. Pure.

Not here: files (copy.py), what the arrays mean (index.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MORE = 4
"""A quarter more rows fit behind those that there are."""
_ROOM_MIN = 1_024

SYMPTOMS = (LookupError, ValueError, ArithmeticError, TypeError, MemoryError)
"""What using numbers may raise that are not those that were written."""

Arrays = dict[str, NDArray[Any]]
Room = Callable[[str, int, np.dtype[Any]], NDArray[Any]]
"""Makes an array of this name, length and type on the disk."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One array as it is to be written."""

    array: NDArray[Any]
    grows: int | None = None
    """The axis along which rows will be appended; None: none will."""

    def room(self) -> tuple[int, ...]:
        """Tell the shape of the file."""
        shape = list(self.array.shape)
        if self.grows is not None:
            shape[self.grows] += max(_ROOM_MIN, shape[self.grows] // _MORE)
        return tuple(shape)


@dataclass(frozen=True, slots=True)
class Draft:
    """What a copy is made of."""

    layouts: Mapping[str, Layout]
    late: Callable[[Room], Mapping[str, Layout]]
    """Makes further arrays, the big ones of them in `Room`."""
    about: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy whose arrays can be used and written to."""

    about: Mapping[str, Any]
    """What was said of it when it was written."""
    arrays: Arrays
    """With the room that there is behind the data."""
