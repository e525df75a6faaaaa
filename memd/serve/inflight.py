"""How many requests of a connection are unanswered, and the moments when there is room, or none left.

Not here: which requests they are; every one of them ends exactly once, answered or not.
"""

import anyio


class InFlight:
    """A count with a ceiling. All on the event loop's thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = anyio.Event()
        self.count = 0

    async def enter(self) -> None:
        """One more, once there is room for it."""
        while self.count >= self._limit:
            await self._changed.wait()
        self.count += 1

    def leave(self) -> None:
        """One less."""
        self.count -= 1
        self._changed.set()
        self._changed = anyio.Event()

    async def empty(self) -> None:
        """Wait until every one has ended."""
        while self.count:
            await self._changed.wait()
