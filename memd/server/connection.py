"""One connection from its first byte to its last: lines in, responses out, bounded and fair to the others.

The first call decides for good whether the connection speaks MCP or memd's control calls. When the client
closes its sending side, responses to its requests still arrive.
"""

import contextlib
import gc
import select
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from memd.capture.truncate import clean_id
from memd.paths import LINE_BYTES_MAX
from memd.server import jsonrpc
from memd.server.control import PLAIN_REPLY, PREFIX, Control
from memd.server.jsonrpc import Call, InvalidLine, LineSplitter, Message, Preface
from memd.server.scope import Caller
from memd.server.service import MemoryService

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from memd.server.tools import McpSession, ToolHandlers

REQUESTS_MAX = 16
"""Requests of one connection that run at a time. Further ones wait in the socket."""
PATIENCE_S = 0.1
"""Seconds after which the first call in the queue begins although other calls are still running."""
HELD_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of unfinished lines, and as many of unread responses, held for all connections together."""
LONG_LINE_BYTES = 32 * 1024
"""Bytes from which a line counts as long. Long lines are parsed one by one, with rests between them."""
LONG_LINE_REST = 30
"""Rest after a long line, in multiples of the time that its parsing blocked the event loop."""
UNFINISHED_BYTES = 64 * 1024
"""Bytes from which an unfinished line counts as held for its client."""
UNPAUSED_BYTES = 256 * 1024
"""Bytes without a pause after which a client takes turns with others that send as much."""
READERS_MAX = 2
"""Connections that send without a pause and may read on in one round of the event loop."""
LINES_PER_TURN = 64
"""Lines of one connection that are handled before other connections get a turn."""
RECEIVE_BYTES = 65_536
"""Bytes that are read from the socket at a time."""
DISCARD_S = 1.0
"""Seconds in which the rest of a line that is too long is read and dropped, so that its sender reads why."""
LINGER_S = 0.3
"""Seconds that the last responses of a connection may take once its requests have ended."""
DROPPED_S = 1.0
"""Seconds that a dropped connection stays open and unread, so that its client cannot return at once."""
_LINE_DROPPED = (
    "too many long lines are unfinished, and this one was the slowest; send it again later"
)
_READER_DROPPED = "too many responses are unread, and these for the longest; ask for less at once"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds of one connection."""

    line_bytes: int = LINE_BYTES_MAX
    drain_s: float = 5.0
    """How long open requests may run after the client has closed its sending side: `echo … | nc` gets its answer."""
    send_s: float = 10.0
    """How long a client may take to read one response before its connection is closed."""
    shutdown_s: float = 1.5
    """How long open requests may run when the daemon stops, within the two seconds that it has for that."""


CONNECTION_LIMITS = ConnectionLimits()


class McpEndpoint:
    """The MCP server, one for all connections. It imports the SDK when the first client needs it.

    The import takes about half of a daemon's start and of its memory; a daemon that only hooks and the command line
    talk to does without.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._loading = anyio.Lock()
        self._tools: ToolHandlers | None = None
        self._server: Server[Any] | None = None

    @property
    def calls(self) -> int:
        """Calls of tools since the start."""
        return self._tools.calls if self._tools else 0

    @property
    def failures(self) -> int:
        """Return the calls that failed."""
        return self._tools.failures if self._tools else 0

    async def open_session(
        self,
        caller: Caller,
        send: Callable[[bytes], Awaitable[None]],
        end_request: Callable[[], None],
    ) -> "McpSession":
        """Make the session of one client; the first one waits for the import."""
        async with self._loading:
            if self._server is None or self._tools is None:
                await anyio.to_thread.run_sync(_import_sdk)
                from memd.server.tools import ToolHandlers  # noqa: PLC0415  # see above

                self._tools = ToolHandlers(self._service)
                self._server = self._tools.make_server()
                gc.freeze()  # as at start: a collection that walked the SDK would take 30 ms
        from memd.server.tools import McpSession  # noqa: PLC0415  # see above

        return McpSession(self._server, self._tools, caller, send, end_request)


def _import_sdk() -> None:
    """Import in a worker thread, so that the event loop goes on answering."""
    import memd.server.tools  # noqa: F401, PLC0415


@dataclass(frozen=True, slots=True)
class Handlers:
    """Handlers of calls: the MCP server, and memd's control calls."""

    mcp: McpEndpoint
    control: Control


class HeldBytes:
    """Bytes held for connections. Above the limit, those that have held some for longest are dropped.

    A single connection may hold more: its own limits bound it.
    """

    def __init__(self, limit: int, reason: str) -> None:
        self._limit = limit
        self._reason = reason
        self._held: dict[Callable[[str], None], int] = {}
        self.total = 0

    def hold(self, drop: Callable[[str], None], size: int) -> None:
        """Set how many bytes are held for the connection that `drop` ends."""
        self.total += size - self._held.get(drop, 0)
        if not size:
            self._held.pop(drop, None)
            return
        self._held[drop] = size
        while self.total > self._limit and len(self._held) > 1:
            slowest = next(iter(self._held))
            self.total -= self._held.pop(slowest)
            slowest(self._reason)


class FairScheduler:
    """Shares the event loop between connections. All of it runs on the event loop's thread.

    A client that sends one call at a time never waits. A client that sends the next call before the last
    one was answered waits until no heavy call runs, first come, first served, so that thousands of its
    calls cost the others the time of one.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.incoming = HeldBytes(HELD_BYTES_MAX, _LINE_DROPPED)
        self.outgoing = HeldBytes(HELD_BYTES_MAX, _READER_DROPPED)
        self._patience_s = patience_s
        self._running: Counter[int] = Counter()
        self._is_idle = anyio.Event()
        self._queue = anyio.Lock()
        self._readers = anyio.Semaphore(READERS_MAX)
        self._parsing = anyio.Lock()
        self._next_parse_at = 0.0

    def is_running(self, client: int) -> bool:
        """Return whether a heavy call of this client is running."""
        return client in self._running

    def begin(self, client: int) -> None:
        """Count a heavy call of this client as running."""
        self._running[client] += 1

    def end(self, client: int) -> None:
        """Count it as answered or abandoned."""
        self._running[client] -= 1
        if not self._running[client]:
            del self._running[client]
        if not self._running:
            self._is_idle.set()

    async def wait_turn(self) -> None:
        """Wait until no heavy call runs; the first in the queue for `patience_s` seconds at most."""
        if not self._running and not self._queue.locked():
            return
        async with self._queue:
            if self._running:
                self._is_idle = anyio.Event()
                with anyio.move_on_after(self._patience_s):
                    await self._is_idle.wait()

    async def wait_to_read(self) -> None:
        """Wait for a turn among the connections that send without a pause."""
        async with self._readers:
            await anyio.lowlevel.checkpoint()

    async def parse_long_line(self, line: bytes) -> Message | None:
        """Parse a long line, once the event loop has had its rest from the one before."""
        async with self._parsing:
            await anyio.sleep_until(self._next_parse_at)
            began = anyio.current_time()
            message = jsonrpc.parse_line(line)
            ended = anyio.current_time()
            self._next_parse_at = ended + LONG_LINE_REST * (ended - began)
        return message


class SocketStream:
    """A connected, non-blocking Unix socket. One task may receive while another sends."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._has_sent_part = False
        """Whether half a line was sent: then nothing but its other half may follow."""
        self.unpaused_bytes = 0
        """Bytes received since the client last paused."""
        self.is_blocked = False
        """Whether the client does not read what it is sent."""

    async def receive(self) -> bytes:
        """The next bytes; none once the client has closed its sending side. An OSError if it broke."""
        has_waited = False
        while True:
            try:
                chunk = self._socket.recv(RECEIVE_BYTES)
            except BlockingIOError:
                self.unpaused_bytes = 0
                await anyio.wait_readable(self._socket)
                has_waited = True
            else:
                self.unpaused_bytes += len(chunk)
                if not has_waited:
                    await anyio.lowlevel.checkpoint()
                return chunk

    async def wait_readable(self) -> None:
        """Wait until `receive` returns at once."""
        await anyio.wait_readable(self._socket)

    def send_at_once(self, data: bytes) -> bytes:
        """Send what the kernel takes now; return the rest, for `send`. An OSError if it broke."""
        if self._has_sent_part:
            raise BrokenPipeError
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        self._has_sent_part = 0 < sent < len(data)
        return data[sent:]

    async def send(self, data: bytes, *, is_rest: bool = False) -> None:
        """Send all of it, and wait while the client does not read. An OSError if it broke.

        `is_rest`: `send_at_once` has sent the beginning.
        """
        if self._has_sent_part and not is_rest:
            raise BrokenPipeError
        # If this is cancelled, part of the line was sent.
        self._has_sent_part = True
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                self.is_blocked = True
                await anyio.wait_writable(self._socket)
        self._has_sent_part = self.is_blocked = False

    def send_last(self, data: bytes) -> None:
        """Send what the kernel takes of a last line, unless half a line was sent before it."""
        with contextlib.suppress(OSError):
            self.send_at_once(data)
        self._has_sent_part = True

    def hang_up(self) -> None:
        """End both directions; what was sent still arrives."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def is_closed_by_client(self) -> bool:
        """Return whether the client has closed both directions, not only its sending side."""
        poll = select.poll()
        poll.register(self._socket, 0)
        return any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll(0))

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self._socket.close()


class ClientConnection:
    """Run `serve` in a task; `finish` asks it to answer what is open and end."""

    def __init__(
        self,
        stream: SocketStream,
        handlers: Handlers,
        limits: ConnectionLimits,
        scheduler: FairScheduler,
        caller: Caller,
    ) -> None:
        self._stream = stream
        self._handlers = handlers
        self._limits = limits
        self._scheduler = scheduler
        # Elsewhere the end of what an `nc` sends may look like its leaving.
        is_told_apart = sys.platform == "linux"
        self._caller = (
            replace(caller, has_left=stream.is_closed_by_client) if is_told_apart else caller
        )
        self._drain_s = limits.drain_s
        self._reading = anyio.CancelScope()
        self._sending = anyio.Lock()
        self._client = caller.pid or id(self)
        self._slots = anyio.Semaphore(REQUESTS_MAX, fast_acquire=True)
        self._heavy_count = 0
        self._splitter = LineSplitter(limits.line_bytes)
        self._unread_bytes = 0
        self._tasks: anyio.abc.TaskGroup | None = None
        self._session: McpSession | None = None
        self._is_control = False
        self._is_first_line = True
        self._is_dropped = False
        self._is_answering = False
        """Whether the task that reads is answering a call."""
        self._is_finishing = False
        self._is_last_line = False
        """Whether the client has sent nothing after the line in hand yet."""

    async def serve(self) -> None:
        """Read until the client is done, then let open requests be answered. An OSError if it broke."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                with self._reading:
                    await self._read_lines()
                await self._wait_for_requests()
                tasks.cancel_scope.deadline = anyio.current_time() + LINGER_S
                if self._session is not None:
                    self._session.close()
        finally:
            self._splitter.take_rest()
            while self._heavy_count:
                self._end_request()
            self._scheduler.incoming.hold(self.drop, 0)
            self._scheduler.outgoing.hold(self.drop, 0)
        if self._is_dropped:
            await anyio.sleep(DROPPED_S)

    def drop(self, reason: str) -> None:
        """End now, with an error line if one can still be sent."""
        self._is_dropped = True
        self._stream.send_last(jsonrpc.error_line(None, jsonrpc.SERVER_ERROR, reason))
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    def finish(self) -> None:
        """Read no more; open requests have `shutdown_s` seconds left."""
        self._drain_s = min(self._drain_s, self._limits.shutdown_s)
        self._is_finishing = True
        if not self._is_answering:
            self._reading.cancel()

    async def _read_lines(self) -> None:
        splitter = self._splitter
        while chunk := await self._receive_chunk():
            lines = splitter.feed(chunk)
            for number, line in enumerate(lines, 1):
                self._is_last_line = number == len(lines)
                await self._handle_line(line)
                if not number % LINES_PER_TURN:
                    await self._scheduler.wait_to_read()
            held = splitter.held if splitter.held > UNFINISHED_BYTES else 0
            self._scheduler.incoming.hold(self.drop, held)
            if splitter.is_overfull:
                await self._reject_long_line()
                return
        await self._handle_line(splitter.take_rest())

    async def _receive_chunk(self) -> bytes:
        is_sending_much = self._stream.unpaused_bytes > UNPAUSED_BYTES
        if is_sending_much or self._splitter.held > UNFINISHED_BYTES:
            await self._stream.wait_readable()
            await self._scheduler.wait_to_read()
        return await self._stream.receive()

    async def _handle_line(self, line: bytes) -> None:
        if len(line) > LONG_LINE_BYTES:
            message = await self._scheduler.parse_long_line(line)
        else:
            message = jsonrpc.parse_line(line)
        if message is None:
            return
        match message:
            case Call():
                await self._handle_call(message)
            case Preface() if self._is_first_line:
                said = asdict(message)
                if message.session is not None:
                    said["session"] = clean_id(message.session)
                self._caller = replace(self._caller, **said)
            case Preface():
                await self._send_error("a preface may only be the first line")
            case InvalidLine():
                await self._send_error(message.message, message.code, message.id)
        self._is_first_line = False

    async def _handle_call(self, call: Call) -> None:
        assert self._tasks is not None  # made by `serve`
        control = self._handlers.control
        if self._session is None and not self._is_control:
            self._is_control = call.method.startswith(PREFIX)
            if not self._is_control:
                # A connection that speaks MCP is an agent's client.
                self._caller = replace(self._caller, speaker="agent")
                self._session = await self._handlers.mcp.open_session(
                    self._caller, self._send_line, self._end_request
                )
                self._tasks.start_soon(self._session.run)
        if self._is_control and call.method not in control.methods:
            names = ", ".join(control.methods)
            await self._reject_method(
                call, f"there is no method {call.method[:60]!r}; there are {names}"
            )
            return
        if not self._is_control and call.method.startswith(PREFIX):
            await self._reject_method(
                call, "this connection speaks MCP; open another one for memd's own calls"
            )
            return
        if call.id is not None or self._is_control:
            await self._begin_request(is_heavy=self._is_heavy(call))
        if self._session is not None:
            await self._session.handle(call)
        elif self._is_last_line and control.is_capture(call):
            # Nothing else is waiting for this client: a task would cost as much as the call.
            await self._answer_before_reading(call)
        else:
            self._tasks.start_soon(self._answer_control_call, call)

    async def _begin_request(self, *, is_heavy: bool) -> None:
        """Wait for this client's turn and for a slot, then count the request as running."""
        has_others = self._slots.value < REQUESTS_MAX
        if has_others or (is_heavy and self._scheduler.is_running(self._client)):
            await self._scheduler.wait_turn()
        if self._stream.is_blocked:
            async with self._sending:
                pass  # a client that does not read gets no further answers computed
        await self._slots.acquire()
        if is_heavy:
            self._heavy_count += 1
            self._scheduler.begin(self._client)

    def _end_request(self, *, is_heavy: bool = True) -> None:
        self._slots.release()
        if is_heavy:
            self._heavy_count -= 1
            self._scheduler.end(self._client)

    def _is_heavy(self, call: Call) -> bool:
        return not (self._is_control and self._handlers.control.is_light(call))

    async def _answer_control_call(self, call: Call) -> None:
        try:
            line = await self._handlers.control.reply(call, self._caller)
            if line is not None:
                await self._send_line(line)
                if line.startswith(PLAIN_REPLY):
                    self._stream.hang_up()  # a shell waits for it
                    self.finish()
        finally:
            self._end_request(is_heavy=self._is_heavy(call))

    async def _answer_before_reading(self, call: Call) -> None:
        """Answer in the task that reads, which `finish` lets do that first; a scope for it would cost time, too."""
        self._is_answering = True
        try:
            await self._answer_control_call(call)
        finally:
            self._is_answering = False
            if self._is_finishing:
                self._reading.cancel()

    async def _reject_method(self, call: Call, message: str) -> None:
        if call.id is not None:
            await self._send_error(message, jsonrpc.METHOD_NOT_FOUND, call.id)

    async def _reject_long_line(self) -> None:
        """Send the error, then read and drop the rest of the line for a moment."""
        limit = self._limits.line_bytes
        await self._send_error(
            f"a line may have {limit} bytes at most; send less at once, in several calls"
        )
        with anyio.move_on_after(DISCARD_S):
            while await self._receive_chunk():
                pass

    async def _send_error(
        self, message: str, code: int = jsonrpc.INVALID_REQUEST, call_id: jsonrpc.Id | None = None
    ) -> None:
        await self._send_line(jsonrpc.error_line(call_id, code, message))

    async def _send_line(self, line: bytes) -> None:
        """Send one line. A TimeoutError, which ends the connection, if the client does not read it."""
        rest = line if self._sending.locked() else self._stream.send_at_once(line)
        if not rest:
            return
        self._count_unread(len(rest))
        try:
            async with self._sending:
                with anyio.fail_after(self._limits.send_s):
                    await self._stream.send(rest, is_rest=len(rest) < len(line))
        finally:
            self._count_unread(-len(rest))

    def _count_unread(self, size: int) -> None:
        self._unread_bytes += size
        self._scheduler.outgoing.hold(self.drop, self._unread_bytes)

    async def _wait_for_requests(self) -> None:
        """Wait for open requests, unless no client is left to read the answers."""
        if self._session is not None and self._stream.is_closed_by_client():
            return
        with anyio.move_on_after(self._drain_s):
            for _ in range(REQUESTS_MAX):
                await self._slots.acquire()
