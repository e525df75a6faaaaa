"""Whose call begins next, over all connections.

Who asks one thing at a time never waits here. A process that has sent the next call before the last one
was answered waits until nothing heavy is at work, first come, first served: so ten thousand calls of one
client cost the others a single call's time, on one connection or on many. Some calls take long: after a
while the first who waits begins all the same. Not here: how many calls one connection may have open
(inflight.py).
"""

from collections import Counter, deque
from dataclasses import dataclass, field

import anyio

PATIENCE_S = 0.1
"""After so long the first who waits begins, whatever else is at work."""


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """One who waits: told when it is the first, and when it may go."""

    first: anyio.Event = field(default_factory=anyio.Event)
    go: anyio.Event = field(default_factory=anyio.Event)


class Turnstile:
    """How much is at work, and who waits for it to end. All on the event loop's thread."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._heavy: Counter[int] = Counter()
        self._waiting: deque[_Place] = deque()

    def is_at_work(self, client: int) -> bool:
        """Whether a heavy call of this client is at work."""
        return client in self._heavy

    def begin(self, client: int) -> None:
        """A heavy call is at work from now on."""
        self._heavy[client] += 1

    def end(self, client: int) -> None:
        """It is answered, or given up."""
        self._heavy[client] -= 1
        if not self._heavy[client]:
            del self._heavy[client]
        if not self._heavy and self._waiting:
            self._waiting[0].go.set()

    async def turn(self) -> None:
        """Wait until it is this one's turn; the first in line only for as long as its patience lasts."""
        if not self._heavy and not self._waiting:
            return
        mine = _Place()
        self._waiting.append(mine)
        try:
            if self._waiting[0] is not mine:
                await mine.first.wait()
            if self._heavy:
                with anyio.move_on_after(self._patience_s):
                    await mine.go.wait()
        finally:
            self._waiting.remove(mine)
            if self._waiting:
                self._waiting[0].first.set()
