"""Hear of changes in watched folders as they happen: by inotify, FSEvents or the like, through the extra `watchfiles`.

Without it, or where the system has no more watches, the folders are only looked through from time to time.
"""

from collections.abc import Callable, Iterable
from contextlib import aclosing

import anyio

_DEBOUNCE_MS = 200
_STEP_MS = 250
_TIMEOUT_MS = 1_000
"""A stop waits for at most so long: the thread that listens cannot be interrupted."""


class FolderChanges:
    """Calls `on_change`, on the event loop, when something changes directly in one of the directories."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._directories: tuple[str, ...] = ()
        self._is_outdated = anyio.Event()
        """Set when the directories are others."""
        self.is_listening = False
        """False: nobody is told, so that somebody has to look."""
        self.problem = ""

    def watch(self, directories: Iterable[str]) -> None:
        """Listen to these directories instead of those before."""
        wanted = tuple(sorted(set(directories)))
        if wanted != self._directories:
            self._directories = wanted
            self._is_outdated.set()

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            self._is_outdated, self.problem = anyio.Event(), ""
            try:
                if self._directories:
                    await self._listen()
            except ImportError:
                self.problem = "looked at every few seconds; `pip install watchfiles` tells memd"
            except (OSError, RuntimeError) as error:
                self.problem = f"looked at every few seconds: {error}"
            self.is_listening = False
            await self._is_outdated.wait()

    async def _listen(self) -> None:
        import watchfiles  # noqa: PLC0415  # an extra, and loaded only if a folder is watched

        changes = watchfiles.awatch(
            *self._directories, watch_filter=None, recursive=False, stop_event=self._is_outdated,
            debounce=_DEBOUNCE_MS, step=_STEP_MS, rust_timeout=_TIMEOUT_MS,
        )  # fmt: skip
        self.is_listening = True
        self._on_change()  # what changed while nobody listened
        async with aclosing(changes):
            async for _ in changes:
                self._on_change()
