"""A wake-up that coalesces: ring it a hundred times and the sleeper wakes once. No polling."""

import anyio


class Bell:
    """One sleeper, many ringers, all on the event loop's thread."""

    def __init__(self) -> None:
        self._rung = False
        self._event: anyio.Event | None = None

    def ring(self) -> None:
        """Wake the sleeper, now or when it next lies down."""
        self._rung = True
        if self._event is not None:
            self._event.set()

    @property
    def is_rung(self) -> bool:
        """Whether somebody rang and nobody has woken yet."""
        return self._rung

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until rung, or for `timeout_s` seconds; whether it was rung."""
        if not self._rung:
            self._event = anyio.Event()
            with anyio.move_on_after(timeout_s):
                await self._event.wait()
            self._event = None
        rung, self._rung = self._rung, False
        return rung
