"""What was worked out of the index and holds until it changes; and arrays to work in. Pure.

A search asks the same of the index again and again: which rows a project has, how long its sessions
are. Not here: any of these.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

KEPT_MAX = 16
_T = TypeVar("_T")


class Kept:
    """Values by key, of one version of the index; those asked for longest ago go first."""

    def __init__(self) -> None:
        self._version = -1
        self._values: dict[Hashable, object] = {}
        self._rooms: dict[str, NDArray[np.float32]] = {}

    def of(self, version: int, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return what `make` made for this key at this version of the index."""
        if version != self._version:
            self._values.clear()
            self._version = version
        value = self._values.pop(key) if key in self._values else make()
        self._values[key] = value
        if len(self._values) > KEPT_MAX:
            del self._values[next(iter(self._values))]
        return cast("_T", value)

    def room(self, name: str, size: int) -> NDArray[np.float32]:
        """Return an array of `size` with anything in it: it is the same one at every call.

        A fresh one of some megabytes costs more than what is written to it.
        """
        held = self._rooms.get(name)
        if held is None or len(held) < size:
            held = self._rooms[name] = np.empty(size + size // 4, np.float32)
        return held[:size]
