"""The front door itself: the Unix socket, who may come in, and how the house closes.

One task a connection; what goes wrong in one stays there. When the listener is cancelled, it takes
no new connections, lets answers in flight leave, and removes the socket if it is still its own. If
somebody else removed it (a cleaner of temporary files), it listens there anew, and if the vault is gone
with it the daemon leaves: a process that nobody can reach would hold the lock for ever. Not here: the
socket's file (address.py).
"""

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterator

import anyio
import anyio.abc
import anyio.to_thread

from memd import log
from memd.config import ServeConfig
from memd.serve import border, descriptors, framing
from memd.serve.address import Address
from memd.serve.app import App
from memd.serve.commons import Commons
from memd.serve.connection import Connection, Limits, Vocabularies
from memd.serve.control import Control
from memd.serve.errands import Desk
from memd.serve.scope import Caller
from memd.serve.tools import Tools
from memd.serve.wire import Wire, peer

SEND_S = 10.0
"""A client that takes longer to read what it asked for is let go."""
LEAVE_S = 1.5
"""How long answers in flight may take when the house closes."""
LOOK_S = 10.0
"""How often the listener looks whether it can still be reached."""
_BUSY = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Out of descriptors or memory, for a moment."""
_GONE = frozenset({errno.EAGAIN, errno.ECONNABORTED, errno.EINTR, errno.EPROTO})
"""The client gave up before it was let in."""
_PAUSE_S = 0.1


class Listener:
    """The doer of the room. `run` raises ConfigError or Broken if it cannot listen at `socket_path`.

    A socket that a manager `passed` on listens already, and stays the manager's: it outlives this room,
    and the process.
    """

    name = "listener"

    def __init__(
        self,
        app: App,
        config: ServeConfig,
        socket_path: str,
        *,
        clock: Callable[[], int],
        send_s: float = SEND_S,
        passed: socket.socket | None = None,
    ) -> None:
        desk = Desk(app, config.min_event_s)
        self._config = config
        self._app = app
        self._path = socket_path
        self._address = Address(socket_path)
        self._passed = passed
        self._clock = clock
        self._tools = Tools(desk)
        self._speaks = Vocabularies(self._tools.server(), Control(desk))
        self._commons = Commons()
        self._limits = Limits(config.line_bytes, config.drain_s, send_s, LEAVE_S)
        self._log = log.get(self.name)
        self._open: set[Connection] = set()
        self._accepted = 0
        self._refused = 0
        self._since: int | None = None
        self._most = config.connections
        self.listening = anyio.Event()
        """Set once clients can connect."""

    async def run(self) -> None:
        """Listen until cancelled."""
        door = await self._opened()
        self._most = descriptors.provide(self._config.connections)
        self._since = self._clock()
        self._log.info("listening_started", path=self._path)
        self.listening.set()
        try:
            async with anyio.create_task_group() as tasks:
                try:
                    while True:
                        await self._accept_while_reached(door, tasks)
                        door.close()
                        door = await self._opened()
                finally:
                    door.close()
                    for connection in tuple(self._open):
                        connection.leave()
        finally:
            self._since = None
            self.listening = anyio.Event()
            self._address.give_back()

    async def _opened(self) -> socket.socket:
        if self._passed is not None:
            return self._passed.dup()
        return await anyio.to_thread.run_sync(self._address.take)

    async def _accept_while_reached(
        self, door: socket.socket, tasks: anyio.abc.TaskGroup
    ) -> None:
        """Let clients in, until somebody has taken the socket's file away."""
        with anyio.CancelScope() as lost:
            tasks.start_soon(self._watch, lost)
            try:
                await self._accept(door, tasks)
            finally:
                lost.cancel()
        if self._app.db.is_gone():
            self._log.error("vault_gone", path=self._app.db.path)
            self._app.shutdown()
            await anyio.sleep_forever()
        self._log.warning("socket_gone", path=self._path)

    async def _watch(self, lost: anyio.CancelScope) -> None:
        while self._passed is None and not lost.cancel_called:
            await anyio.sleep(LOOK_S)
            if not await anyio.to_thread.run_sync(self._address.is_ours):
                lost.cancel()

    def status(self) -> dict[str, object]:
        """Connections now, and calls since the start."""
        control = self._speaks.control
        return {
            "socket": self._path,
            "since": self._since,
            "connections": len(self._open),
            "accepted": self._accepted,
            "refused": self._refused,
            "tool_calls": self._tools.calls,
            "control_calls": control.calls,
            "failures": self._tools.failures + control.failures,
        }

    async def _accept(self, door: socket.socket, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            await anyio.wait_readable(door)
            try:
                client, _ = door.accept()
            except OSError as error:
                if error.errno not in _BUSY | _GONE:
                    raise
                if error.errno in _BUSY:
                    self._log.warning("accept_failed", reason=os.strerror(error.errno or 0))
                    await anyio.sleep(_PAUSE_S)
                continue
            self._admit(client, tasks)

    def _admit(self, client: socket.socket, tasks: anyio.abc.TaskGroup) -> None:
        wire = Wire(client)
        try:
            uid, process = peer(client)
        except OSError:
            wire.close()
            return
        reason = self._objection(uid)
        if reason is not None:
            self._refused += 1
            self._log.warning("connection_refused", reason=reason)
            _say_no(client, reason)
            wire.close()
            return
        self._accepted += 1
        connection = Connection(
            wire, self._speaks, self._limits, self._commons, Caller(uid=uid, pid=process)
        )
        self._open.add(connection)
        tasks.start_soon(self._serve, connection, wire)

    def _objection(self, uid: int | None) -> str | None:
        """Why this client may not come in; None if it may."""
        if uid is not None and uid != os.getuid():
            return "this memd belongs to another user"
        if len(self._open) >= self._most:
            limit = (
                "serve.connections"
                if self._most == self._config.connections
                else "the limit of open files (ulimit -n)"
            )
            return (
                f"memd has {len(self._open)} connections already; close some or raise {limit}"
            )
        return None

    async def _serve(self, connection: Connection, wire: Wire) -> None:
        # Shielded: when the house closes, `leave` ends it, after its answers have left.
        with anyio.CancelScope(shield=True):
            try:
                with self._contained():
                    await connection.serve()
            finally:
                wire.close()
                self._open.discard(connection)

    @contextlib.contextmanager
    def _contained(self) -> Iterator[None]:
        """Keep the failure of one connection from the others."""
        try:
            yield
        except* OSError as lost:
            # The client went away, or did not read: its right, and no news.
            self._log.debug("connection_lost", reason=type(lost.exceptions[0]).__name__)
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._log.debug("connection_lost", reason="the session ended")
        except* border.UNEXPECTED:
            self._log.exception("connection_failed")


def _say_no(client: socket.socket, reason: str) -> None:
    """One error line, if there is room for it at once."""
    with contextlib.suppress(OSError):
        client.send(framing.error_line(None, framing.BROKEN, reason))
