"""What the agent's client runs on every event: hands it to the daemon, or to the spool. Always silent.

Standard library only, and little of it. The whole process may cost 2.5 times an empty one, and
`json` (with `re`) and `socket` alone would take that; so a payload is spliced into the request as
the text it is, and the reply is only looked at. A newline cannot stand inside a JSON string, so
every one of them is a blank. What the daemon has not acknowledged in time is redacted and spooled
with an fsync; only then are the heavier modules loaded. An agent is never held up or told anything:
exit 0, no output, whatever happens.
"""

import os
import sys
import time

if not __package__:  # run as a file: `python -I -S …/memd/hook.py`
    _HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [
        _HOME,
        *(p for p in sys.path if p != os.path.dirname(os.path.abspath(__file__))),
    ]

CLIENT = "claude-code"
BUDGET_S = 0.25
"""From the start to the daemon's acknowledgement. Past it the event goes to the spool."""
STDIN_BYTES_MAX = 16 * 1024 * 1024
STDIN_S = 1.5
"""A client that has not finished its payload by then is not waited for. Less than the timeout that it
gives its hooks: who is killed while waiting spools nothing."""
_REPLY_BYTES_MAX = 65_536
_BLOCK = 1 << 18
_OFF = ("", "0")


def main(
    argv: list[str] | None = None, stdin: int = 0, environ: dict[str, str] | None = None
) -> int:
    """Take one payload from the descriptor `stdin`. `argv` may name the event; it is not needed."""
    started = time.monotonic()
    try:
        known = dict(os.environ) if environ is None else environ
        if known.get("MEMD_DISABLE", "") in _OFF:
            _take(argv or [], stdin, known, started)
    except (Exception, KeyboardInterrupt):
        return 0
    return 0


def _take(argv: list[str], stdin: int, environ: dict[str, str], started: float) -> None:
    at = time.time_ns() // 1_000_000
    payload, is_whole = _read(stdin, started + STDIN_S)
    if not payload:
        return
    # Without it the daemon takes the payload's own `cwd`; this process may run anywhere.
    directory = environ.get("CLAUDE_PROJECT_DIR") or None
    reply = None
    if is_whole and payload[:1] == b"{" and payload[-1:] == b"}":
        reply = _send(_request(payload, at, directory), environ, started + BUDGET_S)
    if reply is None:
        _spool(payload, at, directory, environ)
        return
    _inject(argv, reply)


def _inject(argv: list[str], reply: bytes) -> None:
    """The seam for context: what the daemon wants the agent to know would be printed here."""


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


def _request(payload: bytes, at: int, directory: str | None) -> bytes:
    from _json import encode_basestring_ascii as quoted

    place = "null" if directory is None else quoted(directory)
    head = f'{{"jsonrpc":"2.0","id":1,"method":"memd/capture","params":{{"client":"{CLIENT}",'
    tail = f',"at":{at},"directory":{place}}}}}\n'
    flat = payload.replace(b"\r", b" ").replace(b"\n", b" ")
    return head.encode() + b'"payload":' + flat + tail.encode("ascii")


def _send(request: bytes, environ: dict[str, str], deadline: float) -> bytes | None:
    """The daemon's reply if it acknowledges in time, else None."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    from memd.paths import Paths

    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(_left(deadline))
        connection.connect(Paths(environ).socket)
        connection.settimeout(_left(deadline))
        connection.sendall(request)
        reply = b""
        while not reply.endswith(b"\n") and len(reply) < _REPLY_BYTES_MAX:
            connection.settimeout(_left(deadline))
            block = connection.recv(4096)
            if not block:
                return None
            reply += block
    except OSError:
        return None
    finally:
        connection.close()
    # Quotes inside a JSON text are escaped, so these can only be keys.
    return reply if b'"outcome"' in reply and b'"error":' not in reply else None


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _spool(payload: bytes, at: int, directory: str | None, environ: dict[str, str]) -> None:
    """Redact the payload and write it down until a daemon comes."""
    import json

    from memd.capture import bound, spool
    from memd.paths import Paths

    text = payload.decode("utf-8", "replace")
    try:
        value = json.loads(text)
        kept = bound.clean(value)
    except (ValueError, RecursionError):
        kept = {"raw": bound.clean(text)}
    line = {"client": CLIENT, "payload": kept, "at": at, "directory": directory}
    spool.append(
        Paths(environ).spool_dir, json.dumps(line, separators=(",", ":")).encode("ascii")
    )


if __name__ == "__main__":
    # Nothing is open and nothing is buffered: leave without tidying up the interpreter.
    os._exit(main(sys.argv[1:]))
