"""`memd mcp`: carries lines between an MCP client's stdio and the daemon's socket. Standard library only.

It adds one line at the start of each connection, the preface, that says who is calling. It waits for a daemon
that is starting, starts one if none runs, and outlives it: a session goes on with the next daemon. What a
session needs for that is in mcp_relay.py; here are the descriptors and the time. The proxy ends when the
client closes its side, stops reading, sends a signal or dies.

`signal` and `socket` would import `enum` and what that needs: a quarter of the time to the first answer.
"""

import _signal as signal  # type: ignore[import-not-found]  # not in the stubs; `signal` would import `enum`
import os
import select
import time
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket

from memd import launcher
from memd.mcp_relay import LineCutter, McpRelay, State, quote_json
from memd.paths import LINE_BYTES_MAX, PING, SILENCE_S, VAULT_DEFAULT, Paths, is_inside, is_mine

WAIT_S = 10.0
"""Seconds to wait for the daemon at the start."""
QUEUE_S = 20.0
"""Seconds that a request waits for a daemon that went away, or that the proxy has started."""
STOPPED_S = 3.0
"""The same after `memd stop`: `memd start` may follow it at once."""
START_AFTER_S = 1.0
"""Seconds before the proxy starts another daemon: `memd restart` and service managers do it themselves."""
START_EVERY_S = 30.0
"""Seconds between two starts by one proxy, as a daemon that cannot start would be started by every call."""
PARENT_S = 5.0
"""Seconds between two checks that the parent lives. Its death usually closes our input first."""
_RETRY_S = 0.05
_RETRY_S_MAX = 1.0
_CATCH_UP_S = 0.05
"""Seconds without traffic after which what went through is parsed."""
_CHUNK_BYTES = 65_536
_PENDING_BYTES_MAX = 262_144
"""Bytes that may wait in one direction before we stop reading what is to follow them."""
_PIPE_BYTES = 4_096
"""Bytes that a pipe ready for writing takes without blocking (PIPE_BUF)."""


def main(_argv: "tuple[()] | list[str]" = ()) -> int:
    """Serve until the client is gone, and return 0. Without a daemon at the start: a line on stderr, and 1.

    No argument says anything: `--vault` is MEMD_VAULT by now (`memd.__main__`).
    """
    signal.signal(signal.SIGINT, _exit_silently)
    signal.signal(signal.SIGTERM, _exit_silently)
    parent = os.getppid()
    try:
        paths = Paths(os.environ)
    except ValueError as error:
        return _print_error(str(error))
    if _is_disabled(paths):
        return _print_error("memd is switched off for this program (MEMD_DISABLE=1)")
    if home := os.environ.get("MEMD_HOME"):
        # To start a daemon is to leave this directory, and another one may have to be started.
        os.environ["MEMD_HOME"] = os.path.abspath(home)
    preface = _make_preface(os.environ)
    finder = _DaemonFinder(paths)
    link = finder.wait_for_first()
    if link is None:
        return _print_error(finder.explain_absence())
    proxy = _Proxy(link, McpRelay(preface), finder)
    proxy.run(parent)
    if proxy.is_incompatible:
        return _print_error("memd was replaced by a version that does not continue this session")
    return 0


def _is_disabled(paths: Paths) -> bool:
    """Return whether an agent runs this that memd itself has started; clients may hide the variable from servers."""
    is_set = os.environ.get("MEMD_DISABLE", "") not in ("", "0")
    return is_set or is_inside(_current_directory() or "", paths.find_writer_dirs())


def _exit_silently(_: int, __: object) -> None:
    # The client has given up: no traceback, no clean-up, exit status 0.
    os._exit(0)


def _print_error(message: str) -> int:
    os.write(2, (message + "\n").encode("utf-8", "replace"))
    return 1


def _make_preface(environ: "os._Environ[str]") -> bytes:
    """The caller, as one line of JSON; importing `json` would delay the first answer."""
    session = environ.get("CLAUDE_CODE_SESSION_ID")
    fields = {
        "cwd": _current_directory(),
        "project": environ.get("CLAUDE_PROJECT_DIR"),
        "session": session,
        "client": environ.get("MEMD_CLIENT") or ("claude-code" if session else None),
    }
    members = "".join(f',"{name}":{quote_json(text)}' for name, text in fields.items() if text)
    return b'{"memd":1' + members.encode("ascii") + b"}\n"


def _current_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


class _DaemonFinder:
    """Connects to the daemon, and starts one where that is allowed.

    A session that begins starts a daemon whenever none runs. Later, a daemon that died is started again by
    the next request; one that was stopped on purpose, or whose vault is gone, is not.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._away_since: float | None = None
        self._patient_until = 0.0
        self._has_found = False
        """Whether a daemon was found since the last one was lost."""
        self._delay_s = _RETRY_S
        self._next_at = 0.0
        self._child: int | None = None
        self._started_at = -START_EVERY_S
        self._is_absent = False

    def wait_for_first(self) -> socket | None:
        """A connection to the daemon, started if need be; None after `WAIT_S` seconds without one."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() <= deadline:
            link = self._connect()
            if link is not None:
                return link
            if self._is_absent and self._started_at < 0:
                self._start(time.monotonic())
            time.sleep(_RETRY_S)
        return None

    def note_loss(self, now: float) -> None:
        """The connection was lost, or refused. Ask again soon; after another refusal, later."""
        if self._away_since is None:
            self._away_since = now
            self._delay_s = _RETRY_S
            self._patient_until = 0.0
            self._has_found = False
            self._next_at = now + _RETRY_S

    def note_link(self, now: float) -> None:
        """A daemon was found: it has as long to answer as one that was away, however long that was. Once, if it closes again."""
        if not self._has_found:
            self._has_found = True
            self._patient_until = now + QUEUE_S

    def note_success(self) -> None:
        """The daemon at the other end answers."""
        self._away_since = None

    def note_request(self, now: float) -> None:
        """A request came while no daemon answered: look for one at once."""
        self._next_at = now
        self._delay_s = _RETRY_S
        if now >= self.give_up_at() and launcher.is_awaited(self._paths):
            self._patient_until = now + QUEUE_S

    def find(self, now: float, *, is_needed: bool) -> socket | None:
        """A connection, if it is time to try and there is one. If it `is_needed`, start a daemon."""
        if now < self._next_at:
            return None
        self._next_at = now + self._delay_s
        self._delay_s = min(2 * self._delay_s, _RETRY_S_MAX)
        if not is_needed:
            if now >= self.give_up_at():
                self._next_at = now + PARENT_S
            if self._is_stopped():
                # A connection makes a service manager start the daemon that was stopped on purpose.
                return None
        link = self._connect()
        if link is None and is_needed and self._may_start(now):
            self._start(now)
        return link

    def next_at(self, *, is_needed: bool) -> float:
        """The time at which `find` is to be called again, or requests are to be given up."""
        return min(self._next_at, self.give_up_at()) if is_needed else self._next_at

    def give_up_at(self) -> float:
        """Until when requests wait."""
        if self._away_since is None:
            return float("inf")
        if self._has_start_failed():
            return 0.0
        away_s = STOPPED_S if self._is_stopped() else QUEUE_S
        return max(self._away_since + away_s, self._patient_until)

    def ping(self) -> socket | None:
        """A connection of its own on which the daemon was pinged; None if it takes none."""
        probe = self._connect()
        if probe is not None:
            try:
                probe.send(PING)
            except OSError:
                probe.close()
                return None
        return probe

    def explain_silence(self) -> str:
        """Name the fault of a daemon that holds its socket and says nothing, and what to do."""
        return f"memd does not answer (it hangs or is overloaded); `{self._command('status')}` says more, call again later"

    def explain_absence(self) -> str:
        """Explain that there is no daemon, and what to do."""
        start = self._command("start")
        if self._is_stopped() and self._away_since is not None:
            return f"memd was stopped; run `{start}`, then call again"
        if self._has_start_failed():
            return f"memd does not start; run `{self._command('doctor')}` to see why"
        if launcher.is_awaited(self._paths):
            return "memd is starting or being restored, and does not answer yet; call again in a minute"
        where = f"nothing answers at {self._paths.socket}"
        return f"memd is not running ({where}); start it with `{start}`"

    def _command(self, word: str) -> str:
        vault = self._paths.vault
        return f"memd {word}" if vault == VAULT_DEFAULT else f"memd --vault {vault} {word}"

    def _connect(self) -> socket | None:
        link = socket(AF_UNIX, SOCK_STREAM)
        # A full queue of connections must not block: the client may leave meanwhile.
        link.setblocking(False)
        try:
            link.connect(self._paths.socket)
            if is_mine(link):
                self._child, self._started_at = None, -START_EVERY_S
                return link
        except OSError as error:
            self._is_absent = isinstance(error, FileNotFoundError | ConnectionRefusedError)
        link.close()
        return None

    def _is_stopped(self) -> bool:
        return os.path.exists(self._paths.stopped)

    def _may_start(self, now: float) -> bool:
        return (
            self._is_absent
            and self._away_since is not None
            and now >= self._away_since + START_AFTER_S
            and now >= self._started_at + START_EVERY_S
            and not self._is_stopped()
            and os.path.exists(self._paths.database)
            and not launcher.is_awaited(self._paths)
        )

    def _start(self, now: float) -> None:
        # No one waits for this child: let the kernel reap it.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self._started_at = now
        self._child = launcher.start(self._paths, os.environ)
        if self._child:
            self._patient_until = now + QUEUE_S

    def _has_start_failed(self) -> bool:
        if not self._child or launcher.is_awaited(self._paths):
            return False
        return launcher.has_ended(self._child)


class _Pulse:
    """A check of whether a silent daemon lives: one that works on a call answers a ping on another connection meanwhile."""

    def __init__(self, finder: _DaemonFinder) -> None:
        self.probe: socket | None = None
        self.due_at = 0.0
        """When the daemon is to be pinged, or the answer to it is due."""
        self._finder = finder
        self._is_pinged = False

    def note_life(self, now: float) -> None:
        """The daemon has said something, or nothing is expected of it."""
        if self.probe is not None:
            self.probe.close()
            self.probe = None
        self._is_pinged = False
        self.due_at = now + SILENCE_S

    def take_answer(self, now: float) -> None:
        """Read what the ping brought: whatever it is, even that no more connections are taken, it is a sign of life."""
        assert self.probe is not None
        try:  # noqa: SIM105  # `contextlib` would delay the first answer
            self.probe.recv(_CHUNK_BYTES)
        except OSError:
            pass
        self.note_life(now)

    def is_lost(self, now: float) -> bool:
        """Return whether it has not even answered a ping; pings it in time."""
        if now < self.due_at or self._is_pinged:
            return now >= self.due_at
        self.probe = self._finder.ping()
        self._is_pinged = True
        self.due_at = now + SILENCE_S
        return False


class _Proxy:
    """The descriptors: what is read from them goes to the relay, what it has for them is written."""

    def __init__(self, link: socket, relay: McpRelay, finder: _DaemonFinder) -> None:
        self._link: socket | None = None
        self._relay = relay
        self._finder = finder
        self._pulse = _Pulse(finder)
        self._client_lines = LineCutter(LINE_BYTES_MAX)
        self._daemon_lines = LineCutter()
        self._is_input_open = True
        self._is_shut_down = False
        self._adopt(link)

    @property
    def is_incompatible(self) -> bool:
        """Return whether a new daemon did not continue the session."""
        return self._relay.is_incompatible

    def run(self, parent: int) -> None:
        """Serve until the client is gone and has had all its answers."""
        try:
            while not self._is_over():
                readable, writable = self._wait_until_ready()
                if not (readable or writable):
                    if os.getppid() != parent:
                        return
                    self._relay.catch_up()
                if self._pulse.probe in readable:
                    self._pulse.take_answer(time.monotonic())
                if self._link in readable:
                    self._read_socket()
                if self._link in writable:
                    self._write_socket()
                if 1 in writable and not self._write_stdout():
                    return
                if 0 in readable:
                    self._read_stdin()
                self._tend_link(time.monotonic())
        finally:
            if self._link is not None:
                self._link.close()

    def _is_over(self) -> bool:
        has_no_more = self._relay.is_incompatible or (
            self._link is None and not self._is_input_open
        )
        return has_no_more and not self._relay.to_client

    def _wait_until_ready(self) -> tuple[list[int | socket], list[int | socket]]:
        relay, link = self._relay, self._link
        readers: list[int | socket] = []
        writers: list[int | socket] = []
        pending = relay.to_client if link is None else relay.to_daemon
        if self._is_input_open and len(pending) < _PENDING_BYTES_MAX:
            readers.append(0)
        if link is not None and len(relay.to_client) < _PENDING_BYTES_MAX:
            readers.append(link)
        if self._pulse.probe is not None:
            readers.append(self._pulse.probe)
        if link is not None and relay.to_daemon:
            writers.append(link)
        if relay.to_client:
            writers.append(1)
        readable, writable, _ = select.select(readers, writers, [], self._find_timeout())
        return readable, writable

    def _find_timeout(self) -> float:
        if self._relay.has_backlog:
            return _CATCH_UP_S
        now = time.monotonic()
        if self._link is not None and self._relay.state == State.READY:
            return min(max(self._pulse.due_at - now, 0.0), PARENT_S)
        is_needed = self._relay.has_waiting
        at = self._finder.give_up_at() if self._link else self._finder.next_at(is_needed=is_needed)
        return min(max(at - now, 0.0), PARENT_S) if is_needed or self._link is None else PARENT_S

    def _tend_link(self, now: float) -> None:
        """Find the next daemon if the last one has gone or hangs, or refuse what waits for it."""
        if self._relay.state != State.READY or not self._relay.has_open:
            self._pulse.note_life(now)
        elif self._pulse.is_lost(now):
            self._pulse.note_life(now)
            self._disconnect(self._finder.explain_silence())
            self._relay.refuse_waiting(self._finder.explain_silence())
        if self._link is not None and self._relay.is_acknowledged:
            self._finder.note_success()
        elif self._link is None and self._is_input_open:
            link = self._finder.find(now, is_needed=self._relay.has_waiting)
            if link is not None:
                self._adopt(link)
                self._finder.note_link(now)
        if self._relay.has_waiting and now >= self._finder.give_up_at():
            self._relay.refuse_waiting(self._explain_silence())

    def _explain_silence(self) -> str:
        if self._link is not None:
            return self._finder.explain_silence()
        if self._relay.complaint:
            return f"memd closed the connection: {self._relay.complaint}"
        return self._finder.explain_absence()

    def _adopt(self, link: socket) -> None:
        self._link = link
        self._daemon_lines = LineCutter()
        self._relay.on_connected()

    def _disconnect(self, silence: str | None = None) -> None:
        """The daemon has closed the connection, or hangs. Half a line of it is worth nothing."""
        if self._link is None:
            return
        self._link.close()
        self._link = None
        self._relay.on_disconnected(silence)
        self._finder.note_loss(time.monotonic())
        if not self._is_input_open:
            self._relay.release_refusal()
            self._relay.refuse_waiting(self._explain_silence())

    def _read_socket(self) -> None:
        assert self._link is not None
        try:
            chunk = self._link.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._disconnect()
            return
        self._pulse.note_life(time.monotonic())
        for line in self._daemon_lines.feed(chunk):
            self._relay.take_daemon_line(line)
        if self._relay.is_incompatible:
            self._is_input_open = False

    def _write_socket(self) -> None:
        if self._link is None:
            return
        try:
            sent = self._link.send(self._relay.to_daemon[:_CHUNK_BYTES])
        except BlockingIOError:
            return
        except OSError:
            # The daemon reads no more; what it has sent already is still to be read.
            self._relay.to_daemon.clear()
            return
        self._relay.drop_sent(sent)
        self._close_if_all_sent()

    def _write_stdout(self) -> bool:
        """Write what a pipe takes at once; False if the client no longer reads."""
        try:
            sent = os.write(1, self._relay.to_client[:_PIPE_BYTES])
        except BlockingIOError:
            return True
        except OSError:
            return False
        del self._relay.to_client[:sent]
        return True

    def _read_stdin(self) -> None:
        try:
            chunk = os.read(0, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        lines = self._client_lines.feed(chunk) if chunk else [self._client_lines.take_rest()]
        for line in filter(None, lines):
            self._relay.take_client_line(line)
        if self._link is None and self._relay.has_waiting:
            self._finder.note_request(time.monotonic())
        if chunk:
            return
        self._is_input_open = False
        if self._relay.state != State.READY:
            # The client leaves, and does not wait for a daemon that may come back.
            self._disconnect()
            self._relay.refuse_waiting(self._explain_silence())
        self._close_if_all_sent()

    def _close_if_all_sent(self) -> None:
        """Close our sending side once the client has closed its own and all is sent. Answers still come."""
        is_all_sent = self._relay.state == State.READY and not self._relay.to_daemon
        if self._link is None or self._is_input_open or not is_all_sent or self._is_shut_down:
            return
        self._is_shut_down = True
        try:
            self._link.shutdown(SHUT_WR)
        except OSError:
            self._disconnect()


if __name__ == "__main__":
    raise SystemExit(main())
