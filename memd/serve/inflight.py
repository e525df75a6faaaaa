"""How many requests of a connection are unanswered, and the moments when there is room, or none left.

Not here: which requests they are; every one of them ends exactly once, answered or not.
"""

import anyio

from memd.serve.turnstile import Turnstile

LIGHT_MAX = 16
"""Light calls of one connection that are at work together: what is captured or remembered shares a commit."""


class InFlight:
    """Two counts with ceilings, of heavy and of light calls. All on the event loop's thread."""

    def __init__(self, limit: int, turnstile: Turnstile, client: int) -> None:
        self._limit = limit
        self._turnstile = turnstile
        self._client = client
        self._changed: anyio.Event | None = None
        """Made by the first who waits: most calls wait for nobody."""
        self._heavy = 0
        self._light = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return self._heavy + self._light

    async def turn(self, *, is_light: bool = False) -> None:
        """Wait until there is room for one more, and it is this client's turn."""
        while self.count >= (LIGHT_MAX if is_light else self._limit):
            await self._change()
        if self.count or (not is_light and self._turnstile.is_at_work(self._client)):
            await self._turnstile.turn()

    def enter(self, *, is_light: bool = False) -> None:
        """One more."""
        if is_light:
            self._light += 1
        else:
            self._heavy += 1
            self._turnstile.begin(self._client)

    def leave(self, *, is_light: bool = False) -> None:
        """One less."""
        if is_light:
            self._light -= 1
        else:
            self._heavy -= 1
            self._turnstile.end(self._client)
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def abandon(self) -> None:
        """The connection has ended: nobody waits for what it still has at work."""
        while self._heavy:
            self.leave()

    async def empty(self) -> None:
        """Wait until every one has ended."""
        while self.count:
            await self._change()

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()
