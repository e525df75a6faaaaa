"""What all connections share, and how none of them takes it from the others.

A turnstile for calls, a gate for those that send without a pause, one desk for long lines, and how much
may be held for clients that are slow to finish a line or to read an answer.
"""

from dataclasses import dataclass, field
from typing import Protocol

import anyio
import anyio.lowlevel

from memd.serve.turnstile import Turnstile

HELD_MAX = 64 * 1024 * 1024
"""Bytes of unfinished lines, and as many of unread answers, over all connections."""
_THROUGH_GATE = 2
_LATE_LINE = "too many long lines are on their way at once, and this one was the slowest; send it again later"
_LATE_READER = (
    "too many answers wait to be read, and these for the longest; ask for less at once"
)


class Holder(Protocol):
    """A connection, as far as this room lets go of it."""

    def let_go(self, reason: str) -> None:
        """End it now."""


class Load:
    """Bytes held for connections; when they are too many, who has held some for longest goes.

    One alone may have more: its own limits hold it.
    """

    def __init__(self, limit: int, reason: str) -> None:
        self._limit = limit
        self._reason = reason
        self._held: dict[Holder, int] = {}
        self.total = 0

    def hold(self, holder: Holder, size: int) -> None:
        """So much is held for it now; nothing any more with 0."""
        self.total += size - self._held.get(holder, 0)
        if not size:
            self._held.pop(holder, None)
            return
        self._held[holder] = size
        while self.total > self._limit and len(self._held) > 1:
            slowest = next(iter(self._held))
            self.total -= self._held.pop(slowest)
            slowest.let_go(self._reason)


@dataclass(frozen=True, slots=True)
class Commons:
    """One for each listener."""

    turnstile: Turnstile = field(default_factory=Turnstile)
    long_lines: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))
    incoming: Load = field(default_factory=lambda: Load(HELD_MAX, _LATE_LINE))
    outgoing: Load = field(default_factory=lambda: Load(HELD_MAX, _LATE_READER))
    gate: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(_THROUGH_GATE))

    async def pass_gate(self) -> None:
        """For who sends without a pause: only few of them go on in one round of the event loop."""
        async with self.gate:
            await anyio.lowlevel.checkpoint()
