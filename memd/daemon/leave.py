"""How the daemon leaves: asked by a signal or a caller, in order and in time; asked twice, at once.

Leaving at once is safe, only rude: whatever was acknowledged is committed and on the disk. Not here:
the order in which rooms are closed (wiring.py).
"""

import os
import signal
import threading

import anyio

from memd import log

_SIGNALLED = 128
"""A process that a signal ended exits with this plus the signal's number, by custom."""


class Leave:
    """The moment when the daemon is asked to leave. Create it on the event loop."""

    def __init__(self, stop_s: float) -> None:
        self._asked = anyio.Event()
        self._stop_s = stop_s
        self._deadline: threading.Timer | None = None

    @property
    def is_asked(self) -> bool:
        """Whether the daemon is on its way out."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Ask the daemon to leave: from now on it has `stop_s` seconds. Returns at once."""
        if self.is_asked:
            return
        self._asked.set()
        # A thread, for the deadline must hold even if the event loop does not turn any more.
        self._deadline = threading.Timer(self._stop_s, self._force)
        self._deadline.daemon = True
        self._deadline.start()

    async def wait(self) -> None:
        """Return once asked."""
        await self._asked.wait()

    async def heed_signals(self) -> None:
        """Take SIGTERM and SIGINT for being asked, and a second one for being told."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                if self.is_asked:
                    os._exit(_SIGNALLED + number)
                self.ask()

    def done(self) -> None:
        """Call off the deadline: everything is closed."""
        if self._deadline is not None:
            self._deadline.cancel()

    def _force(self) -> None:
        log.get("daemon").warning("work_abandoned", reason=f"not done within {self._stop_s} s")
        os._exit(0)
