"""`memd mcp`: the stdio door. Pumps bytes between a client's pipes and the daemon's socket.

It understands nothing of what it carries, so it never has to change with the protocol. What it adds
is one line at the start that says who is calling. It waits for a daemon that is starting, starts one
if there is none, and leaves without a word when either side is done. Standard library only: the
client waits for its first answer. Not here: MCP.
"""

import os
import select
import signal
import socket
import sys
import time

from memd import launch
from memd.paths import Paths, is_mine

WAIT_S = 10.0
"""How long to wait for the daemon."""
PARENT_S = 5.0
"""How often to look whether the parent is still there; its death usually closes our input first."""
_RETRY_S = 0.05
_CHUNK = 65_536
_PENDING_MAX = 262_144
"""Bytes that may wait in one direction before we stop reading from its other end."""
_PLAIN = frozenset(range(0x20, 0x7F)) - {0x22, 0x5C}
"""Printable ASCII that needs no escape in JSON."""
_PIPE_CHUNK = 4_096
"""What a pipe that is ready for writing takes without blocking (PIPE_BUF)."""


def main(argv: list[str] | None = None) -> int:
    """Carry bytes until one side is done: 0. Without a daemon: a line on stderr, and 1."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    parent = os.getppid()
    try:
        paths = Paths(os.environ, _vault(sys.argv[1:] if argv is None else argv))
    except ValueError as error:
        return _complain(str(error))
    preface = _preface(os.environ)
    link = _connect(paths)
    if link is None:
        return _complain(
            f"memd is not running (nothing answers at {paths.socket}); start it with `memd start`"
        )
    with link:
        _Pump(link, preface).carry(parent)
    return 0


def _leave(_: int, __: object) -> None:
    # The client has given up: no traceback, no clean-up, no exit status to wonder about.
    os._exit(0)


def _complain(message: str) -> int:
    os.write(2, (message + "\n").encode("utf-8", "replace"))
    return 1


def _vault(argv: list[str]) -> str | None:
    for position, word in enumerate(argv):
        if word == "--vault" and position + 1 < len(argv):
            return argv[position + 1]
        if word.startswith("--vault="):
            return word.removeprefix("--vault=")
    return None


def _preface(environ: "os._Environ[str]") -> bytes:
    """Who is calling, as one line of JSON, written without the weight of a JSON library."""
    session = environ.get("CLAUDE_CODE_SESSION_ID")
    fields = {
        "cwd": _cwd(),
        "project": environ.get("CLAUDE_PROJECT_DIR"),
        "session": session,
        "client": environ.get("MEMD_CLIENT") or ("claude-code" if session else None),
    }
    told = "".join(f',"{name}":{_quoted(text)}' for name, text in fields.items() if text)
    return b'{"memd":1' + told.encode("ascii") + b"}\n"


def _cwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _quoted(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    escaped = (
        chr(code) if code in _PLAIN else f"\\u{code:04x}"
        for code in (units[i] << 8 | units[i + 1] for i in range(0, len(units), 2))
    )
    return '"' + "".join(escaped) + '"'


def _connect(paths: Paths) -> socket.socket | None:
    """A connection to the daemon, started if need be; None after `WAIT_S` seconds without one."""
    deadline = time.monotonic() + WAIT_S
    has_started = False
    while True:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(paths.socket)
        except OSError as error:
            link.close()
            is_absent = isinstance(error, FileNotFoundError | ConnectionRefusedError)
            if is_absent and not has_started:
                has_started = True
                # Whoever starts a child must bury it; nobody waits for this one.
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
                launch.start(paths, os.environ)
        else:
            if not is_mine(link):
                link.close()
                return None
            link.setblocking(False)
            return link
        if time.monotonic() > deadline:
            return None
        time.sleep(_RETRY_S)


class _Pump:
    """Bytes on their way, in both directions, and which ends are still open."""

    def __init__(self, link: socket.socket, first: bytes) -> None:
        self._link = link
        self._to_daemon = bytearray(first)
        self._to_client = bytearray()
        self._is_input_open = True
        self._is_link_open = True
        self._has_said_all = False

    def carry(self, parent: int) -> None:
        """Until the daemon is done and all of it is delivered, or the client is gone."""
        while self._is_link_open or self._to_client:
            readable, writable = self._ready()
            if not (readable or writable) and os.getppid() != parent:
                return
            if self._link in readable:
                self._receive()
            if self._link in writable:
                self._send()
            if 1 in writable and not self._deliver():
                return
            if 0 in readable:
                self._take()

    def _ready(self) -> tuple[list[int | socket.socket], list[int | socket.socket]]:
        readers: list[int | socket.socket] = []
        writers: list[int | socket.socket] = []
        if self._is_input_open and self._is_link_open and len(self._to_daemon) < _PENDING_MAX:
            readers.append(0)
        if self._is_link_open and len(self._to_client) < _PENDING_MAX:
            readers.append(self._link)
        if self._is_link_open and self._to_daemon:
            writers.append(self._link)
        if self._to_client:
            writers.append(1)
        readable, writable, _ = select.select(readers, writers, [], PARENT_S)
        return readable, writable

    def _receive(self) -> None:
        try:
            chunk = self._link.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._to_client += chunk
        self._is_link_open = bool(chunk)

    def _send(self) -> None:
        try:
            sent = self._link.send(self._to_daemon[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:
            # The daemon takes no more; what it has said already is still to be read.
            sent = len(self._to_daemon)
            self._is_input_open = False
        del self._to_daemon[:sent]
        self._say_all()

    def _deliver(self) -> bool:
        """Hand on what a pipe takes at once; False if nobody reads it any more."""
        try:
            sent = os.write(1, self._to_client[:_PIPE_CHUNK])
        except BlockingIOError:
            return True
        except OSError:
            return False
        del self._to_client[:sent]
        return True

    def _take(self) -> None:
        try:
            chunk = os.read(0, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._to_daemon += chunk
        self._is_input_open = bool(chunk)
        self._say_all()

    def _say_all(self) -> None:
        """Once the client has closed its side and all is sent, close ours: the answers still come."""
        if self._is_input_open or self._to_daemon or self._has_said_all:
            return
        self._has_said_all = True
        try:
            self._link.shutdown(socket.SHUT_WR)
        except OSError:
            self._is_link_open = False


if __name__ == "__main__":
    raise SystemExit(main())
