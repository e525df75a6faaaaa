"""Who started the daemon: the socket that a service manager passes, and the news it waits for.

systemd listens in memd's place, hands the socket over (LISTEN_FDS) and hears of the daemon by
datagrams (NOTIFY_SOCKET): that it answers, that it is alive, that it leaves. launchd starts it and
hears nothing. Not here: what tells the managers to do so (setup/units.py).
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
"""What the labels of memd's launchd agents begin with."""
INDEX_WAIT_S = 60.0
"""An index that takes longer to read must not have a daemon killed that takes events all the while."""
_BEATS_PER_PERIOD = 2
"""In every period of the watchdog: one may be late."""


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """Who started this daemon, what it was given, and where news of it is wanted."""

    by: StartedBy = "hand"
    """`hand` is whatever is no service manager: a person, a hook, the stdio proxy."""
    door: socket.socket | None = None
    """Listens at the vault's socket path, and stays the manager's when the daemon is gone."""
    address: str | None = None
    """Where news goes; None if nobody waits for any."""
    watchdog_s: float | None = None
    """After so long without a beat, the manager takes the daemon for hung."""

    def tell(self, *news: str) -> None:
        """Send assignments such as `READY=1`, if somebody wants them. Never fails, never waits."""
        if self.address is None:
            return
        abstract = self.address.startswith("@")
        address = "\0" + self.address[1:] if abstract else self.address
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mail,
        ):
            mail.setblocking(False)
            mail.sendto("\n".join(news).encode(), address)


NO_MANAGER = ServiceManager()


class ManagerNotifier:
    """The room that speaks to the manager: once when memd answers, and then by beats.

    The beats come from the event loop, so that a loop that hangs is noticed, and the daemon replaced.
    """

    name = "herald"

    def __init__(
        self, starter: ServiceManager, listening: anyio.Event, index_read: anyio.Event
    ) -> None:
        self._starter = starter
        self._listening = listening
        self._index_read = index_read
        self._has_said_ready = False
        self._beats = 0

    async def run(self) -> None:
        """Speak until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._announce)
            if self._starter.watchdog_s is not None:
                tasks.start_soon(self._beat, self._starter.watchdog_s / _BEATS_PER_PERIOD)

    def status(self) -> dict[str, object]:
        """Tell whether the manager was told that memd is ready, and the `beats` so far."""
        return {"ready": self._has_said_ready, "beats": self._beats}

    async def _announce(self) -> None:
        await self._listening.wait()
        with anyio.move_on_after(INDEX_WAIT_S):
            await self._index_read.wait()
        whole = "" if self._index_read.is_set() else "; the index is still being read"
        self._starter.tell("READY=1", f"STATUS=answers{whole}")
        self._has_said_ready = True
        log.get(self.name).info("manager_told", reason=self._starter.by)

    async def _beat(self, period_s: float) -> None:
        while True:
            self._starter.tell("WATCHDOG=1")
            self._beats += 1
            await anyio.sleep(period_s)


def take_from_environment(
    environ: MutableMapping[str, str], pid: int, socket_path: str
) -> ServiceManager:
    """Read what the manager left for process `pid`, and take it out of the environment.

    Whatever this process starts would mistake it for its own. Raises ConfigError if a socket was
    passed that is not the vault's.
    """
    passed = _take_passed_descriptors(environ, pid)
    # Inherited from a service that we run inside of, its news is none of ours.
    is_ours = environ.pop("SYSTEMD_EXEC_PID", str(pid)) == str(pid)
    address = environ.pop("NOTIFY_SOCKET", None)
    address = address if is_ours else None
    watchdog_s = _take_watchdog_period(environ, pid)
    if passed:
        return ServiceManager(
            "systemd socket", _choose_socket(passed, socket_path), address, watchdog_s
        )
    if address is not None:
        return ServiceManager("systemd", None, address, watchdog_s)
    is_agent = environ.get("XPC_SERVICE_NAME", "").startswith(LAUNCHD_LABEL)
    return ServiceManager("launchd") if is_agent else NO_MANAGER


def _take_passed_descriptors(environ: MutableMapping[str, str], pid: int) -> dict[int, str]:
    """Descriptor → its name in the unit, of those that are meant for this process."""
    addressee = environ.pop("LISTEN_PID", "")
    count = environ.pop("LISTEN_FDS", "")
    names = environ.pop("LISTEN_FDNAMES", "").split(":")
    if addressee != str(pid) or not count.isdecimal():
        return {}
    numbers = range(FIRST_PASSED_FD, FIRST_PASSED_FD + int(count))
    return {number: names[at] if at < len(names) else "" for at, number in enumerate(numbers)}


def _take_watchdog_period(environ: MutableMapping[str, str], pid: int) -> float | None:
    period = environ.pop("WATCHDOG_USEC", "")
    addressee = environ.pop("WATCHDOG_PID", str(pid))
    if addressee != str(pid) or not period.isdecimal() or not int(period):
        return None
    return int(period) / 1_000_000


def _choose_socket(passed: dict[int, str], socket_path: str) -> socket.socket:
    """Return the passed socket that is the vault's; what else was passed is closed."""
    found: list[socket.socket] = []
    objections = []
    for number, name in passed.items():
        try:
            os.set_inheritable(number, False)
            door = socket.socket(fileno=number)
        except OSError as error:
            objections.append(f"{name or number} is {os.strerror(error.errno or 0).lower()}")
            continue
        objection = _explain_mismatch(door, socket_path)
        if objection is None and not found:
            door.setblocking(False)
            found.append(door)
        else:
            door.close()
            objections.append(f"{name or number} {objection}")
    if not found:
        raise ConfigError(
            f"the service manager passed no socket that listens at {socket_path}"
            f" ({'; '.join(objections) or 'none at all'}). `memd install systemd` sets it right"
        )
    return found[0]


def _explain_mismatch(door: socket.socket, socket_path: str) -> str | None:
    """Say why this cannot be the vault's socket; None if it is."""
    if door.family != socket.AF_UNIX or door.type != socket.SOCK_STREAM:
        return "is no Unix stream socket"
    if not door.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return "does not listen"
    place = door.getsockname()
    if os.path.realpath(place) != os.path.realpath(socket_path):
        return f"listens at {os.fsdecode(place)}"
    return None
