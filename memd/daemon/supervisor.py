"""Run the daemon's workers: restart those that crash, and shut down in order and in time."""

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

WorkerState = Literal["running", "backing off", "stopped"]

_ERROR_CHARACTERS_MAX = 300
_SIGNAL_EXIT_BASE = 128
"""A process that a signal ended exits with this plus the signal's number, by custom."""


class Worker(Protocol):
    """A background task of the daemon."""

    name: str

    async def run(self) -> None:
        """Work until cancelled. A worker that returns is done and is not started again."""

    def status(self) -> dict[str, object]:
        """Report what `memd status` shows of it, without waiting for anything."""


@dataclass(slots=True)
class SupervisedWorker:
    """A worker and how it has fared."""

    worker: Worker
    state: WorkerState = "running"
    restarts: int = 0
    last_error: str | None = None
    last_error_at_s: float | None = None
    """Seconds of the supervisor's clock."""
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    scope: anyio.CancelScope = field(init=False)
    stopped: anyio.Event = field(init=False)


class Supervisor:
    """Runs workers side by side: a crash is logged, backed off and retried, and stops no other worker.

    Only a ConfigError is passed on and ends the daemon: nothing but a change of the settings heals it.
    """

    def __init__(
        self,
        group: anyio.abc.TaskGroup,
        redact: Callable[[str], str],
        jitter: Callable[[], float],
        seconds: Callable[[], float],
    ) -> None:
        self.workers: list[SupervisedWorker] = []
        self.seconds = seconds
        """The monotonic clock of all times here."""
        self._group = group
        self._redact = redact
        self._jitter = jitter

    def start(self, worker: Worker) -> None:
        """Run this worker until the supervisor ends."""
        supervised = SupervisedWorker(worker)
        supervised.scope, supervised.stopped = anyio.CancelScope(), anyio.Event()
        self.workers.append(supervised)
        self._group.start_soon(self._run_repeatedly, supervised, name=worker.name)

    async def stop(self, worker: Worker) -> None:
        """Stop one worker and return once it has stopped; the others go on."""
        for supervised in self.workers:
            if supervised.worker is worker and supervised.state != "stopped":
                supervised.scope.cancel()
                await supervised.stopped.wait()

    async def _run_repeatedly(self, supervised: SupervisedWorker) -> None:
        try:
            with supervised.scope:
                while not await self._run_once(supervised):
                    supervised.state = "backing off"
                    await anyio.sleep(supervised.backoff.wait_s)
                    supervised.restarts += 1
        finally:
            supervised.state = "stopped"
            supervised.stopped.set()

    async def _run_once(self, supervised: SupervisedWorker) -> bool:
        """Run a worker until it returns (True) or crashes (False)."""
        started = self.seconds()
        supervised.state = "running"
        try:
            await supervised.worker.run()
        except ConfigError:
            raise
        except Exception as error:
            now = self.seconds()
            supervised.backoff = supervised.backoff.after_crash(now - started, self._jitter())
            supervised.last_error = self._redact(_describe_error(error))[:_ERROR_CHARACTERS_MAX]
            supervised.last_error_at_s = now
            # The log may be on the full disk that crashed the worker.
            with contextlib.suppress(Exception):
                log.get(supervised.worker.name).error(
                    "worker_crashed",
                    error=supervised.last_error,
                    crashes=supervised.backoff.crashes,
                    wait_s=round(supervised.backoff.wait_s, 3),
                    exc_info=error,
                )
            return False
        return True


def _describe_error(error: BaseException) -> str:
    """Name an error on one line; of a group, its first cause."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".replace("\n", " ")


@contextlib.asynccontextmanager
async def supervise(
    redact: Callable[[str], str],
    *,
    jitter: Callable[[], float] = random.random,
    seconds: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Supervisor]:
    """Provide a supervisor for this block. Leaving the block stops every worker."""
    async with anyio.create_task_group() as group:
        try:
            yield Supervisor(group, redact, jitter, seconds)
        finally:
            group.cancel_scope.cancel()


STOP_S = 2.0
"""Seconds that work in progress may take after a request to stop: everything acknowledged is on the disk before,
and a service manager waits for longer."""


class Shutdown:
    """The request to end the daemon. Create it on the event loop.

    The first request gives the workers `stop_s` seconds to finish; a second signal ends the process at
    once. That loses nothing that was acknowledged: it is committed and on the disk.
    """

    def __init__(self, stop_s: float) -> None:
        self._requested = anyio.Event()
        self._stop_s = stop_s
        self.is_by_signal = False
        """Whether a signal requested it, as Ctrl-C and service managers send."""
        self._deadline: threading.Timer | None = None

    @property
    def is_requested(self) -> bool:
        """Return whether the daemon is shutting down."""
        return self._requested.is_set()

    def request(self) -> None:
        """Request the shutdown and start its deadline. Returns at once."""
        if self.is_requested:
            return
        self._requested.set()
        # A thread, because the deadline must hold even if the event loop hangs.
        self._deadline = threading.Timer(self._stop_s, self._exit_late)
        self._deadline.daemon = True
        self._deadline.start()

    async def wait(self) -> None:
        """Return once the shutdown is requested."""
        await self._requested.wait()

    async def watch_signals(self) -> None:
        """Take the first SIGTERM or SIGINT as a request; exit at the second."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                if self.is_requested:
                    os._exit(_SIGNAL_EXIT_BASE + number)
                self.is_by_signal = True
                self.request()

    def complete(self) -> None:
        """Cancel the deadline: everything is closed."""
        if self._deadline is not None:
            self._deadline.cancel()

    def _exit_late(self) -> None:
        log.get("daemon").warning("work_abandoned", reason=f"not done within {self._stop_s} s")
        os._exit(0)
