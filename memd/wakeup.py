"""A wake-up for a background task that coalesces: a hundred calls of `set` wake it once."""

import anyio


class AutoResetEvent:
    """An event for one waiting task, reset as soon as it wakes. All on the event loop's thread."""

    def __init__(self) -> None:
        self._is_set = False
        self._event: anyio.Event | None = None

    def set(self) -> None:
        """Wake the waiting task, now or when it next waits."""
        self._is_set = True
        if self._event is not None:
            self._event.set()

    @property
    def is_set(self) -> bool:
        """Return whether `set` was called and no task has woken yet."""
        return self._is_set

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until set, or for `timeout_s` seconds; return whether it was set."""
        if not self._is_set:
            self._event = anyio.Event()
            with anyio.move_on_after(timeout_s):
                await self._event.wait()
            self._event = None
        was_set, self._is_set = self._is_set, False
        return was_set
