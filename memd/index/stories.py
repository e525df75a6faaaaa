"""Which row comes before and after another in the story of its session. Pure.

Worked out a session at a time, when one is asked for, and kept until one of its rows changes: ordering
all rows of a big index anew after every change would cost half a second. Not here: which rows a session
has.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]
Sides = tuple[NDArray[np.int32], NDArray[np.int32]]


class Stories:
    """The previous and the next row of each row, -1 for none."""

    def __init__(self) -> None:
        self._previous = np.zeros(0, np.int32)
        self._next = np.zeros(0, np.int32)
        self._known: set[int] = set()

    def forget(self, sessions: NDArray[np.int32]) -> None:
        """Take note that rows of these sessions came, went or changed."""
        if self._known:
            self._known.difference_update(sessions.tolist())

    def beside(
        self,
        rows: Rows,
        sessions: NDArray[np.int32],
        told: Callable[[list[int]], Rows],
    ) -> Sides:
        """Return for each of `rows` the previous and the next of its session, (m,) each; -1: none.

        `sessions` are those of all rows, 0: none. `told` gives the live rows of some sessions, session
        by session, each in the order of its story.
        """
        if len(self._previous) < len(sessions):
            self._widen(len(sessions) + len(sessions) // 4)
        own = sessions[rows]
        unknown = set(own.tolist()) - self._known - {0}
        if unknown:
            self._learn(told(list(unknown)), sessions)
            self._known |= unknown
        has_none = own == 0
        return (
            np.where(has_none, np.int32(-1), self._previous[rows]),
            np.where(has_none, np.int32(-1), self._next[rows]),
        )

    def _widen(self, capacity: int) -> None:
        for name in ("_previous", "_next"):
            wider = np.zeros(capacity, np.int32)
            old = getattr(self, name)
            wider[: len(old)] = old
            setattr(self, name, wider)

    def _learn(self, ordered: Rows, sessions: NDArray[np.int32]) -> None:
        own = sessions[ordered]
        together = own[:-1] == own[1:]
        before, after = ordered[:-1][together], ordered[1:][together]
        self._previous[ordered] = self._next[ordered] = -1
        self._previous[after], self._next[before] = before, after
