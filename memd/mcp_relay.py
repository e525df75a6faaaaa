"""An MCP session that outlives its daemon: decides which line goes to whom. No I/O, no clock.

A relay is in one of three states:

    AWAY      there is no connection; requests wait.
    GREETING  connected again; the client's handshake was replayed, its answer is awaited; requests wait.
    READY     lines go through unchanged.

While READY, nothing is parsed on the way: `json` takes longer to import than the first answer may take
longer. What went through is parsed by `catch_up`, when nobody waits or when the connection is lost.
"""

TYPE_CHECKING = False  # `typing` would delay the first answer
if TYPE_CHECKING:
    from typing import Any

WAITING_MAX = 64
"""Requests that may wait for a daemon. Further ones are refused at once."""
WAITING_BYTES_MAX = 8 * 1024 * 1024
RETRYABLE = -32010
"""The error code of a request that was not answered. In the range that JSON-RPC and MCP leave to servers;
the first codes of it mean "connection closed" and "timeout" to the SDKs, whose clients then give up."""
INVALID_REQUEST = -32600
PARSE_ERROR = -32700
_BACKLOG_LINES_MAX = 256
_BACKLOG_BYTES_MAX = 4 * 1024 * 1024
_REPEATABLE = frozenset(
    {
        "initialize", "ping", "prompts/list", "resources/list", "resources/templates/list",
        "server/discover", "tools/list",
    }
)  # fmt: skip
"""Methods that change nothing, so that the next daemon may be asked without the client knowing."""
_HANDSHAKES = frozenset({"initialize", "server/discover"})
_REFUSAL = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,'
"""How a daemon begins that does not admit a connection, or ends one that holds too much."""
_INTERRUPTED = (
    "memd was restarted or ended while this call was open, so it may or may not have been done;"
    " call again"
)
_INCOMPATIBLE = (
    "memd was replaced by a version that does not continue this session; connect to it again"
)
_TOO_LONG = "this line is longer than memd takes; send less at once, in several calls"
_EDGE_BYTES = 512
"""What is kept of the beginning and the end of a line that is too long, for the id of its request."""
_PLAIN = frozenset(range(0x20, 0x7F)) - {0x22, 0x5C}
"""Printable ASCII that needs no escape in JSON."""

Key = tuple[bool, str | int | float]
"""A request's id, with whether it is a text."""


class LongLine(bytes):
    """The first and the last bytes of a line that is longer than the limit."""


class LineCutter:
    """Cuts a stream into lines, each with its line end; a line above the limit becomes a `LongLine`."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._is_long = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        *ended, rest = chunk.split(b"\n")
        lines = []
        for part in ended:
            self._grow(part)
            lines.append(self.take_rest(b"\n"))
        self._grow(rest)
        return lines

    def take_rest(self, end: bytes = b"") -> bytes:
        """Remove and return the line in hand, with this line end."""
        line = LongLine(self._rest) if self._is_long else bytes(self._rest + end)
        self._rest, self._is_long = bytearray(), False
        return line

    def _grow(self, part: bytes) -> None:
        self._rest += part
        if self._limit is not None and len(self._rest) > (0 if self._is_long else self._limit):
            self._is_long = True
            del self._rest[_EDGE_BYTES:-_EDGE_BYTES]


class State:
    """See the module's docstring. No Enum, because `enum` takes longer to load than the whole proxy."""

    AWAY = "away"
    GREETING = "greeting"
    READY = "ready"


class _OpenCall:
    """A request of the client that is not answered yet."""

    __slots__ = ("end", "key", "line", "method")

    def __init__(self, line: bytes, end: int | None, key: Key, method: str) -> None:
        self.line = line
        self.end = end
        """How many bytes the daemon has received once it has this line; None while the line waits."""
        self.key = key
        self.method = method


class McpRelay:
    """The bytes that are due to the client and to the daemon, and what each of them still expects.

    The owner passes on what arrives (`take_client_line`, `take_daemon_line`), writes what is due
    (`to_client`, `to_daemon`), and says when a connection begins (`on_connected`) and ends (`on_disconnected`).
    """

    def __init__(self, preface: bytes) -> None:
        self.to_client = bytearray()
        self.to_daemon = bytearray()
        self.state = State.AWAY
        self.is_acknowledged = False
        """Whether the daemon at this connection has answered something."""
        self.is_incompatible = False
        """Whether a new daemon refused the handshake: all is answered, and the session is to be ended."""
        self._preface = preface
        self._added = self._sent = 0
        """Bytes put into `to_daemon` on this connection, and taken from it."""
        self._backlog: list[tuple[bytes, int | None]] = []
        """Lines to parse, in order: of the client with their end, of the daemon with None."""
        self._backlog_bytes = 0
        self._open: dict[Key, _OpenCall] = {}
        self._handshake: tuple[Key, bytes] | None = None
        self._version: object = None
        self._initialized: bytes | None = None
        self._refusal: bytes | None = None
        self._complaint: str | None = None

    # ── Lines ────────────────────────────────────────────────────────────────────────────────────

    def take_client_line(self, line: bytes) -> None:
        """Pass a line to the daemon, or have it wait, or answer it."""
        if isinstance(line, LongLine):
            key = _find_id(line)
            self._answer("null" if key is None else _quote_id(key), INVALID_REQUEST, _TOO_LONG)
        elif self.state == State.READY:
            self._send(line)
            self._put_off(line, self._added)
        else:
            self._queue(line)

    def take_daemon_line(self, line: bytes) -> None:
        """Pass a line to the client, unless it answers what the relay itself asked."""
        if self.state == State.GREETING:
            self._take_greeting(_parse(line))
        elif not self.is_acknowledged and line.startswith(_REFUSAL):
            # The connection ends now. Its successor may do better, so the client is not told yet.
            self._refusal = line
        else:
            self.is_acknowledged = True
            self.to_client += line
            self._put_off(line, None)

    def drop_sent(self, count: int) -> None:
        """Take the first bytes from `to_daemon`: the daemon's socket has them."""
        del self.to_daemon[:count]
        self._sent += count

    @property
    def has_backlog(self) -> bool:
        """Return whether `catch_up` has something to do."""
        return bool(self._backlog)

    def catch_up(self) -> None:
        """Parse what went through: which requests are open, and how a session is begun anew."""
        backlog, self._backlog, self._backlog_bytes = self._backlog, [], 0
        for line, end in backlog:
            value = _parse(line)
            if end is not None:
                self._note_call(line, value, end)
                continue
            self._note_answer(value)

    # ── Connections ──────────────────────────────────────────────────────────────────────────────

    def on_connected(self) -> None:
        """Use the new connection: say who calls, and replay the handshake or send what waits."""
        self.to_daemon = bytearray(self._preface)
        self._added, self._sent = len(self._preface), 0
        self.is_acknowledged = False
        self._refusal = self._complaint = None
        if self._handshake is None:
            self._become_ready()
        else:
            self.state = State.GREETING
            self._send(self._handshake[1])

    def on_disconnected(self, silence: str | None = None) -> None:
        """Answer what may have been done on the connection that ended; the rest waits for the next one.

        `silence`: why it was given up, if it was not the daemon that ended it.
        """
        self.catch_up()
        self.state = State.AWAY
        self.to_daemon.clear()
        if self._refusal is not None:
            self._note_answer(_parse(self._refusal))
        for opened in list(self._open.values()):
            if opened.end is None:
                continue
            # Without its last byte, which is its line end, a line may still be complete.
            is_sent = self._sent >= opened.end - (len(opened.line) - len(opened.line.rstrip()))
            opened.end = None
            if is_sent and opened.method not in _REPEATABLE:
                closed = f"memd closed the connection: {self._complaint}"
                message = closed if self._complaint else _INTERRUPTED
                if silence:
                    message = f"{silence}; this call may or may not have been done"
                self._refuse(opened, message, done="unknown")

    @property
    def complaint(self) -> str | None:
        """The reason that the daemon ended the last connection, in its words."""
        return self._complaint

    @property
    def has_open(self) -> bool:
        """Return whether requests are not answered yet."""
        return bool(self._open)

    @property
    def has_waiting(self) -> bool:
        """Return whether requests wait for a daemon."""
        return any(opened.end is None for opened in self._open.values())

    def refuse_waiting(self, message: str) -> None:
        """Answer every request that waits: nothing of it was done."""
        for opened in list(self._open.values()):
            if opened.end is None:
                self._refuse(opened, message)

    def release_refusal(self) -> None:
        """Tell the client the refusal of the last connection, because there will be no other one."""
        self.to_client += self._refusal or b""
        self._refusal = None

    # ── Inside ───────────────────────────────────────────────────────────────────────────────────

    def _send(self, line: bytes) -> None:
        self.to_daemon += line
        self._added += len(line)

    def _put_off(self, line: bytes, end: int | None) -> None:
        """Keep a line for `catch_up`; too many of them are parsed at once."""
        self._backlog.append((line, end))
        self._backlog_bytes += len(line)
        if len(self._backlog) > _BACKLOG_LINES_MAX or self._backlog_bytes > _BACKLOG_BYTES_MAX:
            self.catch_up()

    def _queue(self, line: bytes) -> None:
        """Have a line wait for the next daemon. Notifications are about the last one, and dropped."""
        value = _parse(line)
        if value is None and line.strip():
            self._answer("null", PARSE_ERROR, "not JSON")
        opened = self._note_call(line, value, None)
        if opened is None:
            return
        waiting = [one for one in self._open.values() if one.end is None]
        if len(waiting) > WAITING_MAX or sum(len(one.line) for one in waiting) > WAITING_BYTES_MAX:
            self._refuse(
                opened, f"memd is away, and {len(waiting) - 1} calls wait for it; call again later"
            )

    def _note_call(self, line: bytes, message: "Any", end: int | None) -> _OpenCall | None:
        """Remember the request on a line of the client, or what its notification means."""
        method = message.get("method") if isinstance(message, dict) else None
        if not isinstance(method, str):
            return None
        if "id" not in message:
            self._note_notification(method, message, line)
        elif (key := _make_key(message["id"])) is not None:
            self._open[key] = _OpenCall(line, end, key, method)
            return self._open[key]
        return None

    def _note_notification(self, method: str, message: "dict[str, Any]", line: bytes) -> None:
        if method == "notifications/initialized":
            self._initialized = line
        elif method == "notifications/cancelled" and isinstance(message.get("params"), dict):
            # A cancelled request gets no answer.
            key = _make_key(message["params"].get("requestId"))
            if key is not None:
                self._open.pop(key, None)

    def _note_answer(self, message: "Any") -> None:
        """Close the request that a message of the daemon answers, and learn from the answer."""
        if not isinstance(message, dict) or "method" in message:
            return
        key, error = _make_key(message.get("id")), message.get("error")
        # An error without an id is why the connection ends, if nothing comes after it.
        self._complaint = None
        if key is None:
            self._complaint = str(error.get("message")) if isinstance(error, dict) else None
            return
        opened = self._open.pop(key, None)
        if opened is None:
            return
        result = message.get("result")
        if isinstance(result, dict) and opened.method in _HANDSHAKES:
            self._handshake = key, opened.line
            self._version = result.get("protocolVersion")

    def _take_greeting(self, message: "Any") -> None:
        """Read the answer to the replayed handshake, which the client has had from the last daemon."""
        assert self._handshake is not None
        if not isinstance(message, dict) or "method" in message:
            return
        if _make_key(message.get("id")) != self._handshake[0]:
            self._note_answer(message)
            return
        result = message.get("result")
        if isinstance(result, dict) and result.get("protocolVersion") == self._version:
            self.is_acknowledged = True
            self._become_ready()
            return
        self.is_incompatible = True
        self.state = State.AWAY
        self.refuse_waiting(_INCOMPATIBLE)

    def _become_ready(self) -> None:
        self.state = State.READY
        if self._handshake is not None and self._initialized is not None:
            self._send(self._initialized)
        for opened in self._open.values():
            self._send(opened.line)
            opened.end = self._added

    def _refuse(self, opened: _OpenCall, message: str, *, done: str = "no") -> None:
        """Answer a request with an error that allows to call again, and forget it."""
        data = f'{{"retryable":true,"done":"{done}"}}'
        del self._open[opened.key]
        self.to_client += _format_error(_quote_id(opened.key), RETRYABLE, message, data) + b"\n"

    def _answer(self, quoted_id: str, code: int, message: str) -> None:
        self.to_client += _format_error(quoted_id, code, message) + b"\n"


def quote_json(text: str) -> str:
    """The text as a JSON string in ASCII."""
    units = text.encode("utf-16-be", "surrogatepass")
    escaped = (
        chr(code) if code in _PLAIN else f"\\u{code:04x}"
        for code in (units[i] << 8 | units[i + 1] for i in range(0, len(units), 2))
    )
    return '"' + "".join(escaped) + '"'


def _parse(line: bytes) -> "Any":
    """The value on a line; None if it is not JSON."""
    import json  # noqa: PLC0415  # see the module's docstring

    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _make_key(value: object) -> Key | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return isinstance(value, str), value


def _quote_id(key: Key) -> str:
    is_text, value = key
    return quote_json(str(value)) if is_text else repr(value)


def _find_id(line: LongLine) -> Key | None:
    """The id of a request that was too long to keep, if it stands before or after everything else."""
    head, tail = line[:_EDGE_BYTES], line[-_EDGE_BYTES:].rstrip()
    start, end = head.find(b'"id":'), tail.rfind(b'"id":')
    parts = [tail[end + 5 : -1]] if end >= 0 and tail.endswith(b"}") else []
    if start >= 0 and not head[1:start].count(b"{"):
        parts.append(head[start + 5 :].partition(b",")[0])
    return next((key for part in parts if (key := _make_key(_parse(part))) is not None), None)


def _format_error(quoted_id: str, code: int, message: str, data: str | None = None) -> bytes:
    more = "" if data is None else f',"data":{data}'
    error = f'{{"code":{code},"message":{quote_json(message)}{more}}}'
    return f'{{"jsonrpc":"2.0","id":{quoted_id},"error":{error}}}'.encode("ascii")
