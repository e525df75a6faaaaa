"""The daemon's Unix socket: bind it, accept this user's connections, watch its file, shut down.

Each connection is a task whose failure does not reach the others. When the listener is cancelled, it accepts
no more, lets open requests be answered and removes the socket file. If the file was removed by someone else
(a cleaner of temporary files), it binds again; if the vault was deleted too, the daemon stops, because a
process that no client can reach would hold the vault's lock.
"""

import contextlib
import errno
import os
import resource
import socket
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from memd import log
from memd.errors import UNEXPECTED_ERRORS, Broken, ConfigError
from memd.paths import SOCKET_PATH_MAX, private_dir
from memd.server import jsonrpc
from memd.server.connection import (
    CONNECTION_LIMITS,
    ClientConnection,
    ConnectionLimits,
    FairScheduler,
    Handlers,
    McpEndpoint,
    SocketStream,
)
from memd.server.control import Control
from memd.server.scope import Caller
from memd.server.service import MemoryService

CONNECTIONS_MAX = 1_024
"""A session has one or two, and each command and hook one while it lasts: hundreds of sessions have room."""
WATCH_S = 60.0
"""Seconds between two checks that the socket file is still there."""
DESCRIPTORS_RESERVED = 128
"""File descriptors that connections leave to the vault, the log, the spool and the embedding server."""
_BACKLOG = 1_024
_ACCEPT_RETRY_S = 0.1
_NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""The system is out of descriptors or memory for a moment."""
_CLIENT_LEFT = frozenset({errno.EAGAIN, errno.ECONNABORTED, errno.EINTR, errno.EPROTO})
"""The client went away before it was accepted."""
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2
_XUCRED_BYTES = 76


class SocketFile:
    """The file of a listening socket. Its methods block: call them in a thread.

    The caller holds the vault's lock, so a socket file that exists belongs to a dead daemon, which is
    replaced, or to a service manager, which is left alone.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity: tuple[int, int] | None = None

    def bind(self) -> socket.socket:
        """Listen there, with mode 0600 from the first moment. ConfigError or Broken if that fails."""
        raw = os.fsencode(self._path)
        if len(raw) > SOCKET_PATH_MAX:
            raise ConfigError(
                f"the socket's path has {len(raw)} bytes, more than the {SOCKET_PATH_MAX} that the"
                f" system takes: {self._path}. Set MEMD_HOME or XDG_RUNTIME_DIR to a shorter directory."
            )
        try:
            _clear_path(self._path)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            umask = os.umask(0o177)
            try:
                listening.bind(self._path)
            finally:
                os.umask(umask)
            listening.listen(_BACKLOG)
            listening.setblocking(False)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise Broken(f"memd cannot listen at {self._path}: {reason}") from error
        self._identity = _file_identity(self._path)
        return listening

    def is_ours(self) -> bool:
        """Return whether a client that connects there reaches the socket that was bound."""
        return self._identity is not None and _file_identity(self._path) == self._identity

    def remove(self) -> None:
        """Remove the file, unless another socket has replaced it."""
        if self.is_ours():
            with contextlib.suppress(OSError):
                Path(self._path).unlink()


class Listener:
    """The server's worker. `run` raises ConfigError or Broken if it cannot listen at `socket_path`.

    A socket that a service manager `passed` listens already and stays the manager's: it is never removed.
    """

    name = "listener"

    def __init__(
        self,
        service: MemoryService,
        socket_path: str,
        *,
        clock: Callable[[], int],
        limits: ConnectionLimits = CONNECTION_LIMITS,
        connections: int = CONNECTIONS_MAX,
        passed: socket.socket | None = None,
    ) -> None:
        self._app = service.app
        self._path = socket_path
        self._file = SocketFile(socket_path)
        self._passed = passed
        self._clock = clock
        self._handlers = Handlers(McpEndpoint(service), Control(service))
        self._scheduler = FairScheduler()
        self._limits = limits
        self._log = log.get(self.name)
        self._open: set[ClientConnection] = set()
        self._accepted = 0
        self._refused = 0
        self._since: int | None = None
        self._connections_wanted = self._connections_max = connections
        self.listening = anyio.Event()
        """Set once clients can connect."""

    async def run(self) -> None:
        """Listen until cancelled."""
        listening = await self._open_socket()
        self._connections_max = raise_descriptor_limit(self._connections_wanted)
        self._since = self._clock()
        self._log.info("listening_started", path=self._path)
        self.listening.set()
        try:
            async with anyio.create_task_group() as tasks:
                try:
                    while True:
                        await self._accept_while_reachable(listening, tasks)
                        listening.close()
                        listening = await self._open_socket()
                finally:
                    listening.close()
                    for connection in tuple(self._open):
                        connection.finish()
        finally:
            self._since = None
            self.listening = anyio.Event()
            self._file.remove()

    def status(self) -> dict[str, object]:
        """Connections now, and calls since the start."""
        control, mcp = self._handlers.control, self._handlers.mcp
        return {
            "socket": self._path,
            "since": self._since,
            "connections": len(self._open),
            "accepted": self._accepted,
            "refused": self._refused,
            "tool_calls": mcp.calls,
            "control_calls": control.calls,
            "failures": mcp.failures + control.failures,
        }

    async def _open_socket(self) -> socket.socket:
        if self._passed is not None:
            return self._passed.dup()
        return await anyio.to_thread.run_sync(self._file.bind)

    async def _accept_while_reachable(
        self, listening: socket.socket, tasks: anyio.abc.TaskGroup
    ) -> None:
        """Accept connections until the socket file was removed."""
        with anyio.CancelScope() as accepting:
            tasks.start_soon(self._watch_file, accepting)
            try:
                await self._accept_connections(listening, tasks)
            finally:
                accepting.cancel()
        if self._app.db.is_file_lost():
            self._log.error("vault_removed", path=self._app.db.path)
            self._app.shutdown()
            await anyio.sleep_forever()
        self._log.warning("socket_removed", path=self._path)

    async def _watch_file(self, accepting: anyio.CancelScope) -> None:
        while self._passed is None and not accepting.cancel_called:
            await anyio.sleep(WATCH_S)
            if not await anyio.to_thread.run_sync(self._file.is_ours):
                accepting.cancel()

    async def _accept_connections(
        self, listening: socket.socket, tasks: anyio.abc.TaskGroup
    ) -> None:
        while True:
            await anyio.wait_readable(listening)
            try:
                client, _ = listening.accept()
            except OSError as error:
                if error.errno not in _NO_RESOURCES | _CLIENT_LEFT:
                    raise
                if error.errno in _NO_RESOURCES:
                    self._log.warning("accept_failed", reason=os.strerror(error.errno or 0))
                    await anyio.sleep(_ACCEPT_RETRY_S)
                continue
            self._admit_client(client, tasks)

    def _admit_client(self, client: socket.socket, tasks: anyio.abc.TaskGroup) -> None:
        stream = SocketStream(client)
        try:
            uid, process = peer_credentials(client)
        except OSError:
            stream.close()
            return
        reason = self._why_refused(uid)
        if reason is not None:
            self._refused += 1
            self._log.warning("connection_refused", reason=reason)
            stream.send_last(jsonrpc.error_line(None, jsonrpc.SERVER_ERROR, reason))
            stream.close()
            return
        self._accepted += 1
        self._app.ingestor.notice_client()
        caller = Caller(uid=uid, pid=process, connection=self._accepted)
        connection = ClientConnection(stream, self._handlers, self._limits, self._scheduler, caller)
        self._open.add(connection)
        tasks.start_soon(self._serve_connection, connection, stream)

    def _why_refused(self, uid: int | None) -> str | None:
        """Return the reason to refuse this client; None if it is admitted."""
        if uid is not None and uid != os.getuid():
            return "this memd belongs to another user"
        if len(self._open) >= self._connections_max:
            remedy = "close some"
            if self._connections_max < self._connections_wanted:
                remedy += " or raise the limit of open files (ulimit -n)"
            return f"memd has {len(self._open)} connections already; {remedy}"
        return None

    async def _serve_connection(self, connection: ClientConnection, stream: SocketStream) -> None:
        """Serve one connection, and keep its failure from the others."""
        # Shielded: at shutdown `finish` ends it, after its responses were sent.
        with anyio.CancelScope(shield=True):
            try:
                await connection.serve()
            except* OSError as lost:
                # The client closed the connection or did not read, which is no error of memd's.
                self._log.debug("connection_lost", reason=type(lost.exceptions[0]).__name__)
            except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._log.debug("connection_lost", reason="the session ended")
            except* UNEXPECTED_ERRORS:
                self._log.exception("connection_failed")
            finally:
                stream.close()
                self._open.discard(connection)


def peer_credentials(sock: socket.socket) -> tuple[int | None, int | None]:
    """(uid, process id) of the other end; None where the system does not say."""
    if sys.platform == "darwin":
        record = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        (process,) = struct.unpack("i", sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))
        return struct.unpack_from("2I", record)[1], process
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        process, uid, _ = struct.unpack(
            "3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        )
        return uid, process
    return None, None


def raise_descriptor_limit(connections: int) -> int:
    """Raise the limit of open files as far as needed; return how many connections it allows.

    Without descriptors not only `accept` fails: no file can be opened either, so some stay reserved.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + DESCRIPTORS_RESERVED
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    # Some systems refuse a limit below the one that they report.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    # An idle daemon has some thirty open: half of a low limit is enough, and one connection is not.
    reserved = min(DESCRIPTORS_RESERVED, soft // 2)
    return max(1, min(connections, soft - reserved))


def _clear_path(path: str) -> None:
    """Check the directory, and remove the socket of a dead daemon."""
    directory = Path(private_dir(str(Path(path).parent)))
    found = directory.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise Broken(f"{directory} is not this user's alone; memd does not put its socket there")
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(Path(path).lstat().st_mode):
            raise ConfigError(f"{path} is in the way and no socket; move it away")
        if _has_listener(path):
            raise ConfigError(
                f"a service manager listens at {path}: it starts memd by itself when a client"
                " connects. To run memd by hand, run `systemctl --user stop memd.socket` first"
            )
        Path(path).unlink()


def _has_listener(path: str) -> bool:
    """Return whether a process listens at this socket. It is no daemon, which would hold the vault's lock."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)
        try:
            caller.connect(path)
        except BlockingIOError:
            return True  # its queue is full
        except ConnectionRefusedError:
            return False
    return True


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
