"""The work of an agent's hook: send one event to the daemon, or spool it. Standard library only, and little of it.

Without a client's name it is Claude Code's; the daemon looks at the payload, too. Every client gets the same promises.

The whole process may cost 1.5 times an empty one. `json` (with `re`) and `socket` alone would use that up, so the
payload is spliced into the request as text, and the reply is the plain one that hook.sh reads, too: what it prints
stands in it as it is. (A newline cannot occur inside a JSON string, so each one may become a blank.) What the daemon
has not acknowledged in time is redacted and spooled with an fsync; only then are heavier modules imported.

The hook prints only the `output` of the daemon's reply, context for the agent. If a session begins while no daemon
runs, it starts one and waits for it briefly. A prompt starts one that ended without being told to, and waits for nothing.
Whatever happens, the hook exits with status 0.

`MEMD_DISABLE=1` turns everything off, `MEMD_CAPTURE=0` capturing, `MEMD_INJECT=0` printing context, and
`MEMD_START=0` starting the daemon.
"""

import os
import time

from memd.paths import LINE_BYTES_MAX, Paths, is_mine, mend_umask, private_dir

CLIENT = "claude-code"
"""The client of a hook that is told none."""
BUDGET_S = 0.25
"""Seconds from the start to the daemon's acknowledgement; after that the event is spooled."""
CONTEXT_BUDGET_S = 0.4
"""The same if the reply may bring context, for which the daemon searches up to 0.2 s."""
START_WAIT_S = 2.0
"""Seconds from the start to the context of a session whose hook had to start the daemon."""
STDIN_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of a payload that are read. A payload that fits no line on the wire is truncated and spooled."""
STDIN_S = 1.5
"""Seconds to wait for the whole payload; less than the client's timeout for hooks, since a killed hook spools nothing."""
_SESSION_STARTS = (b'"SessionStart"', b'"sessionStart"')
_PROMPTS = (b'"UserPromptSubmit"', b'"userPromptSubmitted"')
_CONTEXT_EVENTS = (
    b'"PostToolUseFailure"', b'"postToolUseFailure"', b'"SubagentStart"', *_PROMPTS, *_SESSION_STARTS,
)  # fmt: skip
"""Events for whose context the daemon searches.
Quotes inside a JSON string are escaped, so these match whole strings, which are hardly ever other values."""
_TOLD_EVENTS = (b'"PostToolUse"', b'"postToolUse"', b'"Stop"')
"""Further events whose hook may print. A `Stop` makes the agent go on, and the daemon sees to it that this ends."""
_GUARDED = "PreToolUse"
"""The event before a tool runs: the daemon is asked about calls that have the words of a rule, and stores nothing."""
_MARK = b"\xef\xbb\xbf"
"""What some programs write before UTF-8."""
_STORED, _SHOWN, _END = b"memd ok .\n", b"memd ok {", b"} .\n"
"""The reply without context, and how one with context begins and ends."""
_REPLY_BYTES_MAX = 262_144
_BLOCK_BYTES = 1 << 18
_RETRY_S = 0.02
_UNSET = ("", "0")


def main(
    argv: list[str] | None = None, stdin: int = 0, environ: dict[str, str] | None = None
) -> int:
    """Deliver one payload from the descriptor `stdin`, and print context for the agent."""
    started = time.monotonic()
    try:
        variables = dict(os.environ) if environ is None else environ
        if variables.get("MEMD_DISABLE", "") in _UNSET:
            client, _, event = argv[0].rpartition(":") if argv else ("", "", "")
            sender = Sender(client, event, variables)
            handle = _guard_call if event == _GUARDED else _handle_event
            handle(stdin, sender, variables, started)
    except (Exception, KeyboardInterrupt):
        return 0
    return 0


class Sender:
    """The caller, as the hook was told: `client`, `event` if it is not in every payload, `directory`."""

    __slots__ = ("client", "directory", "event")

    def __init__(self, client: str, event: str, environ: dict[str, str]) -> None:
        """Take `client` for Claude Code if it is empty: only that client names the project's directory."""
        self.client = client or CLIENT
        self.event = (event or None) if client else None
        # Without it the daemon uses the payload's own.
        self.directory = None if client else environ.get("CLAUDE_PROJECT_DIR") or None

    def is_at(self, payload: bytes, events: tuple[bytes, ...]) -> bool:
        """Return whether this is one of these events."""
        told = f'"{self.event}"'.encode()
        return told in events or any(name in payload for name in events)


def _handle_event(stdin: int, sender: Sender, environ: dict[str, str], started: float) -> None:
    at = time.time_ns() // 1_000_000
    payload, is_whole = _read_payload(stdin, started + STDIN_S)
    captures = environ.get("MEMD_CAPTURE") != "0"
    may_print = environ.get("MEMD_INJECT") != "0"
    injects = may_print and sender.is_at(payload, _CONTEXT_EVENTS)
    if not payload or not (captures or injects):
        return
    paths = Paths(environ)
    is_absent, output = False, None
    is_object = is_whole and payload[:1] == b"{" and payload[-1:] == b"}"
    request = _make_request(payload, at, sender, environ) if is_object else b""
    if request and len(request) <= LINE_BYTES_MAX:
        budget = CONTEXT_BUDGET_S if injects else BUDGET_S
        is_absent, output = _send_request(request, paths.socket, started + budget)
    if captures and output is None:
        _spool_event(payload, at, sender, paths)
        _knock(paths.socket)
    if is_absent and sender.is_at(payload, _SESSION_STARTS + _PROMPTS):
        quiet = _make_request(payload, at, sender, {**environ, "MEMD_CAPTURE": "0"})
        output = _start_daemon(payload, quiet if injects else b"", sender, environ, started)
    is_shown = injects or (may_print and captures and sender.is_at(payload, _TOLD_EVENTS))
    _write_stdout(output if output and is_shown else b"")


def _guard_call(stdin: int, sender: Sender, environ: dict[str, str], started: float) -> None:
    """Print what the daemon says of a call before it runs; nothing if it is away, late, or has no rule about it."""
    from memd.injection.hook_watch import is_watched

    payload, is_whole = _read_payload(stdin, started + STDIN_S)
    paths = Paths(environ)
    if not is_whole or environ.get("MEMD_INJECT") == "0" or b'"session_id"' not in payload:
        return
    text = payload.decode("utf-8", "replace")
    session = text.partition('"session_id"')[2].lstrip(' :"').partition('"')[0]
    if not is_watched(paths.socket, session, text):
        return
    request = _make_request(payload, 0, sender, environ).replace(b"memd/capture", b"memd/guard", 1)
    _, output = _send_request(request, paths.socket, started + BUDGET_S)
    _write_stdout(output or b"")


def _read_payload(stdin: int, deadline: float) -> tuple[bytes, bool]:
    """Read the payload and whether it is complete. The rest of a huge one is read and dropped."""
    from select import select

    blocks: list[bytes] = []
    size = 0
    while select([stdin], [], [], max(deadline - time.monotonic(), 0.0))[0]:
        block = os.read(stdin, _BLOCK_BYTES)
        if not block:
            return _strip(blocks), size <= STDIN_BYTES_MAX
        if size <= STDIN_BYTES_MAX:
            blocks.append(block)
        size += len(block)
    return _strip(blocks), False


def _strip(blocks: list[bytes]) -> bytes:
    return b"".join(blocks).strip().removeprefix(_MARK).lstrip()


def _make_request(payload: bytes, at: int, sender: Sender, environ: dict[str, str]) -> bytes:
    from _json import encode_basestring_ascii as quoted

    place = "null" if sender.directory is None else quoted(sender.directory)
    event = "" if sender.event is None else f'"event":{quoted(sender.event)},'
    head = '{"jsonrpc":"2.0","id":1,"method":"memd/capture","params":{"client":'
    inject = "" if environ.get("MEMD_INJECT") == "0" else '"inject":true,'
    capture = '"capture":false,' if environ.get("MEMD_CAPTURE") == "0" else ""
    tail = f',"at":{at},"directory":{place}}}}}\n'
    flat = payload.replace(b"\r", b" ").replace(b"\n", b" ")
    begun = f'{head}{quoted(sender.client)},{event}{inject}{capture}"plain":true,"payload":'
    return begun.encode() + flat + tail.encode("ascii")


def _send_request(request: bytes, socket_path: str, deadline: float) -> tuple[bool, bytes | None]:
    """Return whether no daemon listens, and what is to be printed; None if nothing was acknowledged in time."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    connection = socket(AF_UNIX, SOCK_STREAM)
    reply = b""
    try:
        connection.settimeout(_seconds_left(deadline))
        connection.connect(socket_path)
        if not is_mine(connection):
            return False, None
        connection.settimeout(_seconds_left(deadline))
        connection.sendall(request)
        while not reply.endswith(b"\n") and len(reply) < _REPLY_BYTES_MAX:
            connection.settimeout(_seconds_left(deadline))
            block = connection.recv(65_536)
            if not block:
                break
            reply += block
    except (FileNotFoundError, ConnectionRefusedError):
        return True, None
    except OSError:
        return False, None
    finally:
        connection.close()
    if reply.startswith(_SHOWN) and reply.endswith(_END):
        return False, reply[len(_SHOWN) - 1 : 1 - len(_END)] + b"\n"
    return False, b"" if reply == _STORED else None


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _write_stdout(output: bytes) -> None:
    left = memoryview(output)
    while left:
        left = left[os.write(1, left) :]


def _start_daemon(
    payload: bytes, request: bytes, sender: Sender, environ: dict[str, str], started: float
) -> bytes | None:
    """Start the daemon for a session that begins; return the output of its reply to `request`, if in time.

    A prompt is answered at once. It starts no daemon that was stopped on purpose, and none where no vault is.
    """
    import json

    from memd import launcher

    paths = Paths(environ)
    # Elsewhere the word is a part of what was said. A client that leaves the name out has told it to its hook.
    name = f'"{json.loads(payload).get("hook_event_name") or sender.event or "SessionStart"}"'
    is_prompt = name.encode() in _PROMPTS
    if not is_prompt and name.encode() not in _SESSION_STARTS:
        return None
    if is_prompt and (os.access(paths.stopped, os.F_OK) or not os.access(paths.database, os.F_OK)):
        return None
    child = 0 if launcher.is_held(paths.lock) else launcher.start(paths, environ)
    if child is None or not request or is_prompt:
        return None
    deadline = started + START_WAIT_S
    while time.monotonic() < deadline:
        is_absent, output = _send_request(request, paths.socket, deadline)
        if not is_absent:
            return output
        # Our daemon may have exited because another is starting, which will answer.
        if (not child or launcher.has_ended(child)) and not launcher.is_awaited(paths):
            return None
        time.sleep(_RETRY_S)
    return None


def _spool_event(payload: bytes, at: int, sender: Sender, paths: Paths) -> None:
    """Redact the payload and append it to the spool."""
    import json

    from memd.capture import spool, truncate

    mend_umask()
    text = payload.decode("utf-8", "replace")
    try:
        value = json.loads(text)
        clean = truncate.clean_payload(value)
    except (ValueError, RecursionError):
        clean = {"raw": truncate.clean_payload(text)}
    request = {
        "client": sender.client, "payload": clean, "at": at, "directory": sender.directory,
        **({} if sender.event is None else {"event": sender.event}),
    }  # fmt: skip
    line = json.dumps(request, separators=(",", ":")).encode("ascii")
    reason = None
    for place in paths.spools:
        try:
            spool.append(place, line)
        except OSError as error:
            reason = reason or error.strerror
        else:
            return
    _log_loss(f"the spool cannot be written: {reason}", at, paths)


def _knock(socket_path: str) -> None:
    """Connect and leave: a daemon looks into the spool soon after a client came."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.setblocking(False)
    try:
        connection.connect(socket_path)
    except OSError:
        pass  # no daemon, or one that hangs: it looks at its start, or at the next client
    finally:
        connection.close()


def _log_loss(reason: str, at: int, paths: Paths) -> None:
    """Write one line about a lost event to the daemon's log, in its format."""
    import json

    entry = {
        "room": "hook",
        "reason": reason,
        "event": "event_lost",
        "level": "error",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000)),
    }
    private_dir(paths.state_dir)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    log = os.open(paths.log, flags, 0o600)
    try:
        os.write(log, json.dumps(entry).encode() + b"\n")
    finally:
        os.close(log)
