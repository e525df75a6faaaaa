"""`memd mcp`: copies bytes between an MCP client's stdio and the daemon's socket. Standard library only.

It does not parse what it copies, so it never changes with the protocol. It adds one line at the start,
the preface, that says who is calling. It waits for a daemon that is starting, starts one if none runs,
and exits silently when either side has closed.
"""

import os
import select
import signal
import socket
import sys
import time

from memd import launcher
from memd.paths import Paths, is_mine

WAIT_S = 10.0
"""Seconds to wait for the daemon."""
PARENT_S = 5.0
"""Seconds between two checks that the parent lives. Its death usually closes our input first."""
_RETRY_S = 0.05
_CHUNK_BYTES = 65_536
_PENDING_BYTES_MAX = 262_144
"""Bytes that may wait in one direction before we stop reading what is to follow them."""
_PLAIN = frozenset(range(0x20, 0x7F)) - {0x22, 0x5C}
"""Printable ASCII that needs no escape in JSON."""
_PIPE_BYTES = 4_096
"""Bytes that a pipe ready for writing takes without blocking (PIPE_BUF)."""


def main(argv: list[str] | None = None) -> int:
    """Copy bytes until one side closes, and return 0. Without a daemon: a line on stderr, and 1."""
    signal.signal(signal.SIGINT, _exit_silently)
    signal.signal(signal.SIGTERM, _exit_silently)
    parent = os.getppid()
    try:
        paths = Paths(os.environ, _find_vault(sys.argv[1:] if argv is None else argv))
    except ValueError as error:
        return _print_error(str(error))
    preface = _make_preface(os.environ)
    link = _connect(paths)
    if link is None:
        return _print_error(
            f"memd is not running (nothing answers at {paths.socket}); start it with `memd start`"
        )
    with link:
        _Proxy(link, preface).run(parent)
    return 0


def _exit_silently(_: int, __: object) -> None:
    # The client has given up: no traceback, no clean-up, exit status 0.
    os._exit(0)


def _print_error(message: str) -> int:
    os.write(2, (message + "\n").encode("utf-8", "replace"))
    return 1


def _find_vault(argv: list[str]) -> str | None:
    for position, word in enumerate(argv):
        if word == "--vault" and position + 1 < len(argv):
            return argv[position + 1]
        if word.startswith("--vault="):
            return word.removeprefix("--vault=")
    return None


def _make_preface(environ: "os._Environ[str]") -> bytes:
    """Who is calling, as one line of JSON; importing `json` would delay the first answer."""
    session = environ.get("CLAUDE_CODE_SESSION_ID")
    fields = {
        "cwd": _current_directory(),
        "project": environ.get("CLAUDE_PROJECT_DIR"),
        "session": session,
        "client": environ.get("MEMD_CLIENT") or ("claude-code" if session else None),
    }
    members = "".join(f',"{name}":{_quote_json(text)}' for name, text in fields.items() if text)
    return b'{"memd":1' + members.encode("ascii") + b"}\n"


def _current_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _quote_json(text: str) -> str:
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
                # No one waits for this child: let the kernel reap it.
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
                launcher.start(paths, os.environ)
        else:
            if not is_mine(link):
                link.close()
                return None
            link.setblocking(False)
            return link
        if time.monotonic() > deadline:
            return None
        time.sleep(_RETRY_S)


class _Proxy:
    """Bytes to copy in both directions, and which ends are open."""

    def __init__(self, link: socket.socket, first: bytes) -> None:
        self._link = link
        self._to_daemon = bytearray(first)
        self._to_client = bytearray()
        self._is_input_open = True
        self._is_link_open = True
        self._has_closed = False

    def run(self, parent: int) -> None:
        """Copy until the daemon has closed and all is delivered, or until the client is gone."""
        while self._is_link_open or self._to_client:
            readable, writable = self._wait_until_ready()
            if not (readable or writable) and os.getppid() != parent:
                return
            if self._link in readable:
                self._read_socket()
            if self._link in writable:
                self._write_socket()
            if 1 in writable and not self._write_stdout():
                return
            if 0 in readable:
                self._read_stdin()

    def _wait_until_ready(self) -> tuple[list[int | socket.socket], list[int | socket.socket]]:
        readers: list[int | socket.socket] = []
        writers: list[int | socket.socket] = []
        if self._is_input_open and self._is_link_open and len(self._to_daemon) < _PENDING_BYTES_MAX:
            readers.append(0)
        if self._is_link_open and len(self._to_client) < _PENDING_BYTES_MAX:
            readers.append(self._link)
        if self._is_link_open and self._to_daemon:
            writers.append(self._link)
        if self._to_client:
            writers.append(1)
        readable, writable, _ = select.select(readers, writers, [], PARENT_S)
        return readable, writable

    def _read_socket(self) -> None:
        try:
            chunk = self._link.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._to_client += chunk
        self._is_link_open = bool(chunk)

    def _write_socket(self) -> None:
        try:
            sent = self._link.send(self._to_daemon[:_CHUNK_BYTES])
        except BlockingIOError:
            return
        except OSError:
            # The daemon reads no more; what it has sent already is still to be read.
            sent = len(self._to_daemon)
            self._is_input_open = False
        del self._to_daemon[:sent]
        self._close_if_all_sent()

    def _write_stdout(self) -> bool:
        """Write what a pipe takes at once; False if the client no longer reads."""
        try:
            sent = os.write(1, self._to_client[:_PIPE_BYTES])
        except BlockingIOError:
            return True
        except OSError:
            return False
        del self._to_client[:sent]
        return True

    def _read_stdin(self) -> None:
        try:
            chunk = os.read(0, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._to_daemon += chunk
        self._is_input_open = bool(chunk)
        self._close_if_all_sent()

    def _close_if_all_sent(self) -> None:
        """Close our sending side once the client has closed its own and all is sent. Answers still come."""
        if self._is_input_open or self._to_daemon or self._has_closed:
            return
        self._has_closed = True
        try:
            self._link.shutdown(socket.SHUT_WR)
        except OSError:
            self._is_link_open = False


if __name__ == "__main__":
    raise SystemExit(main())
