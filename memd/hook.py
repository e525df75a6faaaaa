"""What the agent's client runs on every event: hands it to the daemon, or to the spool.

Standard library only, and little of it. The whole process may cost 2.5 times an empty one, and
`json` (with `re`) and `socket` alone would take that; so a payload is spliced into the request as
the text it is, and the reply is only looked at. A newline cannot stand inside a JSON string, so
every one of them is a blank. What the daemon has not acknowledged in time is redacted and spooled
with an fsync; only then are the heavier modules loaded.

It prints one thing: the `output` that the daemon's reply carries, context for the agent. A session
that begins while no daemon runs starts one and waits for it, a little; no other event does. An agent
is never held up or told anything else: exit 0, no other output, whatever happens.

`MEMD_DISABLE=1` turns all of it off, `MEMD_CAPTURE=0` the keeping, `MEMD_INJECT=0` the showing, and
`MEMD_START=0` the starting.
"""

import os
import sys
import time

if not __package__:  # run as a file: `python -I -S …/memd/hook.py`
    # A client that leaves ends the hooks beside it: this one still says what it was told. `signal`
    # itself would load `enum`.
    import _signal  # type: ignore[import-not-found]  # not in the stubs

    _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
    _HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [
        _HOME,
        *(p for p in sys.path if p != os.path.dirname(os.path.abspath(__file__))),
    ]

from memd.paths import LINE_BYTES_MAX, Paths, is_mine, private_dir

CLIENT = "claude-code"
BUDGET_S = 0.25
"""From the start to the daemon's acknowledgement. Past it the event goes to the spool."""
CONTEXT_BUDGET_S = 0.4
"""The same where context may come with it: the daemon looks for up to 0.2 s before it answers."""
START_WAIT_S = 2.0
"""From the start to the context of a session whose hook had to start the daemon."""
STDIN_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of a payload that are read. A payload that fits no line on the wire is truncated and spooled."""
STDIN_S = 1.5
"""A client that has not finished its payload by then is not waited for. Less than the timeout that it
gives its hooks: who is killed while waiting spools nothing."""
_BEGINS = b'"SessionStart"'
_SHOWS = (b'"UserPromptSubmit"', _BEGINS)
"""Whose hook may print. After a `Stop` it would make the agent go on, and stop again, for ever.
Quotes inside a JSON text are escaped: these are whole strings, and hardly ever another one's."""
_REPLY_BYTES_MAX = 262_144
_BLOCK = 1 << 18
_RETRY_S = 0.02
_OFF = ("", "0")


def main(
    argv: list[str] | None = None,  # noqa: ARG001  # the event's name, perhaps; the payload says it
    stdin: int = 0,
    environ: dict[str, str] | None = None,
) -> int:
    """Take one payload from the descriptor `stdin`, and print what the agent should know."""
    started = time.monotonic()
    try:
        known = dict(os.environ) if environ is None else environ
        if known.get("MEMD_DISABLE", "") in _OFF:
            _take(stdin, known, started)
    except (Exception, KeyboardInterrupt):
        return 0
    return 0


def _take(stdin: int, environ: dict[str, str], started: float) -> None:
    at = time.time_ns() // 1_000_000
    payload, is_whole = _read(stdin, started + STDIN_S)
    is_kept = environ.get("MEMD_CAPTURE") != "0"
    is_shown = environ.get("MEMD_INJECT") != "0" and any(name in payload for name in _SHOWS)
    if not payload or not (is_kept or is_shown):
        return
    paths = Paths(environ)
    # Without it the daemon takes the payload's own `cwd`; this process may run anywhere.
    directory = environ.get("CLAUDE_PROJECT_DIR") or None
    is_absent, reply = False, b""
    is_object = is_whole and payload[:1] == b"{" and payload[-1:] == b"}"
    request = _request(payload, at, directory, environ) if is_object else b""
    if request and len(request) <= LINE_BYTES_MAX:
        budget = CONTEXT_BUDGET_S if is_shown else BUDGET_S
        is_absent, reply = _send(request, paths.socket, started + budget)
    output = _output(reply) if is_shown else b""
    if is_kept and (output is None or b'"outcome"' not in reply):
        _spool(payload, at, directory, paths)
    if is_absent and _BEGINS in payload:
        asked = _request(payload, at, directory, {**environ, "MEMD_CAPTURE": "0"})
        output = _begin(payload, asked if is_shown else b"", paths, environ, started)
    _print(output or b"")


def _read(stdin: int, deadline: float) -> tuple[bytes, bool]:
    """What the client says, and whether that is all of it. The rest of a huge one is read away."""
    from select import select

    blocks: list[bytes] = []
    size = 0
    while select([stdin], [], [], max(deadline - time.monotonic(), 0.0))[0]:
        block = os.read(stdin, _BLOCK)
        if not block:
            return b"".join(blocks).strip(), size <= STDIN_BYTES_MAX
        if size <= STDIN_BYTES_MAX:
            blocks.append(block)
        size += len(block)
    return b"".join(blocks).strip(), False


def _request(payload: bytes, at: int, directory: str | None, environ: dict[str, str]) -> bytes:
    from _json import encode_basestring_ascii as quoted

    place = "null" if directory is None else quoted(directory)
    head = f'{{"jsonrpc":"2.0","id":1,"method":"memd/capture","params":{{"client":"{CLIENT}",'
    inject = "" if environ.get("MEMD_INJECT") == "0" else '"inject":true,'
    capture = '"capture":false,' if environ.get("MEMD_CAPTURE") == "0" else ""
    tail = f',"at":{at},"directory":{place}}}}}\n'
    flat = payload.replace(b"\r", b" ").replace(b"\n", b" ")
    return f'{head}{inject}{capture}"payload":'.encode() + flat + tail.encode("ascii")


def _send(request: bytes, socket_path: str, deadline: float) -> tuple[bool, bytes]:
    """Whether nobody listens there; and what was answered in time, unless it is an error."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    connection = socket(AF_UNIX, SOCK_STREAM)
    reply = b""
    try:
        connection.settimeout(_left(deadline))
        connection.connect(socket_path)
        if not is_mine(connection):
            return False, b""
        connection.settimeout(_left(deadline))
        connection.sendall(request)
        while not reply.endswith(b"\n") and len(reply) < _REPLY_BYTES_MAX:
            connection.settimeout(_left(deadline))
            block = connection.recv(65_536)
            if not block:
                break
            reply += block
    except (FileNotFoundError, ConnectionRefusedError):
        return True, b""
    except OSError:
        return False, b""
    finally:
        connection.close()
    # Quotes inside a JSON text are escaped, so this can only be a key.
    is_sound = reply.endswith(b"\n") and b'"error":' not in reply
    return False, reply if is_sound else b""


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _output(reply: bytes) -> bytes | None:
    """What a reply wants printed; None if it makes no sense."""
    if b'"output":' not in reply:
        return b""
    import json

    try:
        output = json.loads(reply)["result"]["output"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if not isinstance(output, dict):
        return b""
    return json.dumps(output, separators=(",", ":")).encode("ascii") + b"\n"


def _print(output: bytes) -> None:
    left = memoryview(output)
    while left:
        left = left[os.write(1, left) :]


def _begin(
    payload: bytes, request: bytes, paths: Paths, environ: dict[str, str], started: float
) -> bytes | None:
    """Start the daemon for a session that begins; what it then answers to `request`, if in time."""
    import json

    from memd import launcher

    if json.loads(payload).get("hook_event_name") != "SessionStart":
        return None
    child = 0 if launcher.is_held(paths.lock) else launcher.start(paths, environ)
    if child is None or not request:
        return None
    deadline = started + START_WAIT_S
    while time.monotonic() < deadline:
        is_absent, reply = _send(request, paths.socket, deadline)
        if not is_absent:
            return _output(reply)
        # Ours may have found that another is starting, and left: then the other one will answer.
        if (not child or launcher.has_ended(child)) and not launcher.is_awaited(paths):
            return None
        time.sleep(_RETRY_S)
    return None


def _spool(payload: bytes, at: int, directory: str | None, paths: Paths) -> None:
    """Redact the payload and write it down until a daemon comes."""
    import json

    from memd.capture import spool, truncate

    text = payload.decode("utf-8", "replace")
    try:
        value = json.loads(text)
        kept = truncate.clean_payload(value)
    except (ValueError, RecursionError):
        kept = {"raw": truncate.clean_payload(text)}
    said = {"client": CLIENT, "payload": kept, "at": at, "directory": directory}
    line = json.dumps(said, separators=(",", ":")).encode("ascii")
    reason = None
    for place in paths.spools:
        try:
            spool.append(place, line)
        except OSError as error:
            reason = reason or error.strerror
        else:
            return
    _complain(f"the spool cannot be written: {reason}", at, paths)


def _complain(reason: str, at: int, paths: Paths) -> None:
    """One line in the daemon's log, as it would write it, about an event that is lost."""
    import json

    told = {
        "room": "hook",
        "reason": reason,
        "event": "event_lost",
        "level": "error",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000)),
    }
    private_dir(paths.state_dir)
    flags = (
        os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    )
    log = os.open(paths.log, flags, 0o600)
    try:
        os.write(log, json.dumps(told).encode() + b"\n")
    finally:
        os.close(log)


if __name__ == "__main__":
    # Nothing is open and nothing is buffered: leave without tidying up the interpreter.
    os._exit(main(sys.argv[1:]))
