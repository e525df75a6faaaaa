"""Run the daemon's workers: restart those that crash, shut down in order and in time, and work with the service manager.

systemd listens in memd's place, passes the socket (LISTEN_FDS) and reads messages about the daemon (NOTIFY_SOCKET): it
answers, it is alive, it stops. launchd starts the daemon and reads nothing.
"""

import contextlib
import os
import random
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import anyio
import anyio.abc

from memd import log
from memd.embeddings import RestartBackoff
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


StartedBy = Literal["hand", "systemd", "systemd socket", "launchd"]

FIRST_PASSED_FD = 3
"""The number of the first passed descriptor, after stdin, stdout and stderr."""
LAUNCHD_LABEL = "local.memd"
"""The labels of memd's launchd agents begin with this."""
INDEX_WAIT_S = 60.0
"""The daemon reports ready after this time even if the index is still loading: it takes events."""
_BEATS_PER_PERIOD = 2
"""Watchdog messages in each period: one of them may be late."""


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """The starter of this daemon, and the socket that it passed."""

    started_by: StartedBy = "hand"
    """`hand` is whatever is no service manager: a user, a hook, the stdio proxy."""
    listening_socket: socket.socket | None = None
    """Listens at the vault's socket path, and stays the manager's when the daemon ends."""
    notify_address: str | None = None
    """Where the manager reads messages; None if it reads none."""
    watchdog_s: float | None = None
    """The manager restarts a daemon that sends no watchdog message for this long."""

    def notify(self, *assignments: str) -> None:
        """Send assignments such as `READY=1` if the manager reads them. Never fails, never waits."""
        if self.notify_address is None:
            return
        address = self.notify_address
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        ):
            sender.setblocking(False)
            # A leading @ stands for the NUL byte of an abstract address.
            sender.sendto(
                "\n".join(assignments).encode(),
                "\0" + address[1:] if address.startswith("@") else address,
            )


NO_MANAGER = ServiceManager()


class ManagerNotifier:
    """The worker that tells the service manager that memd is ready, and then that it is alive.

    The watchdog messages are sent from the event loop, so that the manager replaces a daemon that hangs.
    """

    name = "herald"

    def __init__(
        self, manager: ServiceManager, listening: anyio.Event, index_loaded: anyio.Event
    ) -> None:
        self._manager = manager
        self._listening = listening
        self._index_loaded = index_loaded
        self._is_ready_sent = False
        self._beats = 0

    async def run(self) -> None:
        """Report ready once, then send watchdog messages until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._report_ready)
            if self._manager.watchdog_s is not None:
                tasks.start_soon(self._send_beats, self._manager.watchdog_s / _BEATS_PER_PERIOD)

    def status(self) -> dict[str, object]:
        """Report whether READY was sent, and the number of watchdog messages so far."""
        return {"ready": self._is_ready_sent, "beats": self._beats}

    async def _report_ready(self) -> None:
        await self._listening.wait()
        with anyio.move_on_after(INDEX_WAIT_S):
            await self._index_loaded.wait()
        loading = "" if self._index_loaded.is_set() else "; the index is still loading"
        self._manager.notify("READY=1", f"STATUS=answers{loading}")
        self._is_ready_sent = True
        log.get(self.name).info("manager_notified", reason=self._manager.started_by)

    async def _send_beats(self, period_s: float) -> None:
        while True:
            self._manager.notify("WATCHDOG=1")
            self._beats += 1
            await anyio.sleep(period_s)


def take_from_environment(
    environ: MutableMapping[str, str], pid: int, socket_path: str
) -> ServiceManager:
    """Read what the manager left for process `pid`, and remove it from the environment.

    A process that this one starts would take it for its own. Raises ConfigError if a socket was passed
    that is not the vault's.
    """
    passed = _take_passed_descriptors(environ, pid)
    # A daemon that runs inside another service inherits that service's address.
    is_ours = environ.pop("SYSTEMD_EXEC_PID", str(pid)) == str(pid)
    address = environ.pop("NOTIFY_SOCKET", None)
    address = address if is_ours else None
    watchdog_s = _take_watchdog_period(environ, pid)
    if passed:
        listening = _choose_socket(passed, socket_path)
        return ServiceManager("systemd socket", listening, address, watchdog_s)
    if address is not None:
        return ServiceManager("systemd", None, address, watchdog_s)
    is_agent = environ.get("XPC_SERVICE_NAME", "").startswith(LAUNCHD_LABEL)
    return ServiceManager("launchd") if is_agent else NO_MANAGER


def _take_passed_descriptors(environ: MutableMapping[str, str], pid: int) -> dict[int, str]:
    """Return descriptor → its name in the unit, of those that were passed to this process."""
    addressee = environ.pop("LISTEN_PID", "")
    count = environ.pop("LISTEN_FDS", "")
    names = environ.pop("LISTEN_FDNAMES", "").split(":")
    if addressee != str(pid) or not count.isdecimal():
        return {}
    names += [""] * int(count)
    return {FIRST_PASSED_FD + at: names[at] for at in range(int(count))}


def _take_watchdog_period(environ: MutableMapping[str, str], pid: int) -> float | None:
    period_us = environ.pop("WATCHDOG_USEC", "")
    addressee = environ.pop("WATCHDOG_PID", str(pid))
    if addressee != str(pid) or not period_us.isdecimal() or not int(period_us):
        return None
    return int(period_us) / 1_000_000


def _choose_socket(passed: dict[int, str], socket_path: str) -> socket.socket:
    """Return the passed socket that is the vault's; close all others."""
    chosen: socket.socket | None = None
    rejected = []
    for number, name in passed.items():
        try:
            os.set_inheritable(number, False)
            candidate = socket.socket(fileno=number)
        except OSError as error:
            rejected.append(f"{name or number} is {os.strerror(error.errno or 0).lower()}")
            continue
        mismatch = _explain_mismatch(candidate, socket_path)
        if mismatch is None and chosen is None:
            candidate.setblocking(False)
            chosen = candidate
        else:
            candidate.close()
            rejected.append(f"{name or number} {mismatch}")
    if chosen is None:
        raise ConfigError(
            f"the service manager passed no socket that listens at {socket_path}"
            f" ({'; '.join(rejected) or 'none at all'}); run `memd install systemd`"
        )
    return chosen


def _explain_mismatch(candidate: socket.socket, socket_path: str) -> str | None:
    """Say why this cannot be the vault's socket; None if it is."""
    if candidate.family != socket.AF_UNIX or candidate.type != socket.SOCK_STREAM:
        return "is no Unix stream socket"
    if not candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return "does not listen"
    place = candidate.getsockname()
    if os.path.realpath(place) != os.path.realpath(socket_path):
        return f"listens at {os.fsdecode(place)}"
    return None
