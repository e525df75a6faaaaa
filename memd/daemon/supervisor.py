"""Restart workers; graceful shutdown."""

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import anyio
import anyio.abc

from memd import log
from memd.embeddings.circuit_breaker import RestartBackoff
from memd.errors import ConfigError

# MERGED from memd.daemon.supervise:
# MERGED Keeps the rooms running: a crash is logged, backed off and retried, and never takes the house down.
# MERGED
# MERGED A room is kept from `keep` to the end of the house. It may return, and is then done. Only a
# MERGED ConfigError is passed on, and ends the house. Not here: how long to wait (circuit_breaker.py), or what a
# MERGED room does.


WorkerState = Literal["running", "backing off", "stopped"]
_ERROR_CHARACTERS = 300


class Worker(Protocol):
    """A doer that runs for ever."""

    name: str

    async def run(self) -> None:
        """Work until cancelled."""

    def status(self) -> dict[str, object]:
        """Tell what it is about, cheaply."""


@dataclass(slots=True)
class SupervisedWorker:
    """A room, and how it has fared."""

    room: Worker
    state: WorkerState = "running"
    restarts: int = 0
    last_error: str | None = None
    last_error_at: float | None = None
    """By the house's clock, in seconds."""
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    scope: anyio.CancelScope = field(init=False)
    ended: anyio.Event = field(init=False)


class Supervisor:
    """The rooms under one roof. `supervise` opens one."""

    def __init__(
        self,
        group: anyio.abc.TaskGroup,
        redact: Callable[[str], str],
        jitter: Callable[[], float],
        seconds: Callable[[], float],
    ) -> None:
        self.rooms: list[SupervisedWorker] = []
        self._group = group
        self._redact = redact
        self._jitter = jitter
        self.seconds = seconds

    def keep(self, room: Worker) -> None:
        """Run this room, again and again if need be, until the house closes."""
        kept = SupervisedWorker(room)
        kept.scope, kept.ended = anyio.CancelScope(), anyio.Event()
        self.rooms.append(kept)
        self._group.start_soon(self._keep, kept, name=room.name)

    async def stop(self, room: Worker) -> None:
        """Stop one room and return once it has stopped; the others go on."""
        for kept in self.rooms:
            if kept.room is room and kept.state != "stopped":
                kept.scope.cancel()
                await kept.ended.wait()

    async def _keep(self, kept: SupervisedWorker) -> None:
        try:
            with kept.scope:
                while not await self._run_once(kept):
                    kept.state = "backing off"
                    await anyio.sleep(kept.backoff.wait_s)
                    kept.restarts += 1
        finally:
            kept.state = "stopped"
            kept.ended.set()

    async def _run_once(self, kept: SupervisedWorker) -> bool:
        """Run a room until it returns (True) or crashes (False)."""
        started = self.seconds()
        kept.state = "running"
        try:
            await kept.room.run()
        except ConfigError:
            # Nothing heals it but a person, who is better told at once than after a minute's waits.
            raise
        except Exception as error:
            now = self.seconds()
            kept.backoff = kept.backoff.after_crash(now - started, self._jitter())
            kept.last_error = self._told(error)
            kept.last_error_at = now
            self._report(kept, error)
            return False
        return True

    def _told(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        return self._redact(text)[:_ERROR_CHARACTERS]

    def _report(self, kept: SupervisedWorker, error: Exception) -> None:
        with contextlib.suppress(
            Exception
        ):  # a log on a full disk is no reason to stop, either
            log.get(kept.room.name).error(
                "room_crashed",
                error=kept.last_error,
                crashes=kept.backoff.crashes,
                wait_s=round(kept.backoff.wait_s, 3),
                exc_info=error,
            )


@contextlib.asynccontextmanager
async def supervise(
    redact: Callable[[str], str],
    *,
    jitter: Callable[[], float] = random.random,
    seconds: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Supervisor]:
    """Open a house to keep rooms in. Leaving the block stops every room."""
    async with anyio.create_task_group() as group:
        house = Supervisor(group, redact, jitter, seconds)
        try:
            yield house
        finally:
            group.cancel_scope.cancel()


# MERGED from memd.daemon.leave:
# MERGED How the daemon leaves: asked by a signal or a caller, in order and in time; asked twice, at once.
# MERGED
# MERGED Leaving at once is safe, only rude: whatever was acknowledged is committed and on the disk. Not here:
# MERGED the order in which rooms are closed (wiring.py).


_SIGNAL_EXIT_BASE = 128
"""A process that a signal ended exits with this plus the signal's number, by custom."""


class Shutdown:
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
                    os._exit(_SIGNAL_EXIT_BASE + number)
                self.ask()

    def done(self) -> None:
        """Call off the deadline: everything is closed."""
        if self._deadline is not None:
            self._deadline.cancel()

    def _force(self) -> None:
        log.get("daemon").warning("work_abandoned", reason=f"not done within {self._stop_s} s")
        os._exit(0)
