"""Work with the service manager that started the daemon.

systemd listens in memd's place, passes the socket (LISTEN_FDS) and reads messages about the daemon
(NOTIFY_SOCKET): it answers, it is alive, it stops. launchd starts the daemon and reads nothing.
"""

import contextlib
import os
import socket
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Literal

import anyio

from memd import log
from memd.errors import ConfigError

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
