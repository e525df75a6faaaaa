"""Start, stop, pid lock."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from memd.errors import AlreadyRunning, Broken
from memd.paths import Paths, private_dir

# MERGED from memd.daemon.lock:
# MERGED One daemon per vault: a file lock that says who holds it, and dies with its process.
# MERGED
# MERGED Standard library only, for the command line asks it too. The lock is the kernel's (`flock`); what
# MERGED stands in the file is only a note about its holder. Not here: the socket, which is replaced by
# MERGED whoever holds the lock and by nobody else.


LOCK_WAIT_S = 0.5
"""`holder` looks by locking for an instant; a daemon that starts just then must not give up."""


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who serves a vault. Both are 0 when the note could not be read."""

    pid: int
    started_at: int
    """UTC milliseconds."""
    why: str = ""
    """What holds it if that is no daemon: `restore`. Then there is nothing to be ended."""


@contextlib.contextmanager
def hold_lock(path: str, started_at: int, why: str = "") -> Iterator[LockHolder]:
    """Hold the lock of a vault for this block; raise AlreadyRunning if another process does."""
    private_dir(str(Path(path).parent))
    fd = _open_lock_file(path)
    try:
        if not _acquire_lock(fd, LOCK_WAIT_S):
            raise AlreadyRunning(_explain_refusal(path, _read_holder(fd)))
        me = LockHolder(os.getpid(), started_at, why)
        os.ftruncate(fd, 0)
        # On a full disk nobody is told who holds it; it is held all the same.
        with contextlib.suppress(OSError):
            os.pwrite(fd, json.dumps(asdict(me)).encode(), 0)
        yield me
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def find_lock_holder(path: str) -> LockHolder | None:
    """Tell who holds the lock, or None if nobody does. Leaves no trace."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _acquire_lock(fd, 0) else _read_holder(fd)
    finally:
        os.close(fd)


def _open_lock_file(path: str) -> int:
    # Never unlinked: two processes could then hold locks on two files of one name. Never followed:
    # the note would be written over whatever a link leads to.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _acquire_lock(fd: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A daemon has signed and stays; who waited for it would take over when it is stopped.
            if time.monotonic() >= deadline or _is_process_alive(_read_holder(fd).pid):
                return False
            time.sleep(0.02)
        else:
            return True


def _is_process_alive(pid: int) -> bool:
    if not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's, and alive
    return True


def _read_holder(fd: int) -> LockHolder:
    try:
        note = json.loads(os.pread(fd, 4096, 0))
        return LockHolder(int(note["pid"]), int(note["started_at"]), str(note.get("why", "")))
    except (ValueError, KeyError, TypeError):
        # Between taking the lock and writing the note, or a disk that was full.
        return LockHolder(0, 0)


def _explain_refusal(path: str, other: LockHolder) -> str:
    who = f"pid {other.pid}" if other.pid else "another process"
    if other.why:
        return f"a {other.why} of this vault is under way ({who} holds {path})"
    return f"a memd daemon already serves this vault ({who} holds {path})"


# MERGED from memd.daemon.process:
# MERGED The daemon as a process, from outside: started detached, waited for, asked to end, ended.
# MERGED
# MERGED Standard library only, for the command line uses it. Whether a daemon lives is asked of its lock,
# MERGED never of a process list. Not here: talking to it (client.py).


START_TIMEOUT_S = 30.0
"""A first start imports a second's worth of libraries; a loaded machine takes several."""
STOP_TIMEOUT_S = 10.0
"""After this long without an end, a daemon is killed. Nothing acknowledged is lost by it."""
LOG_TAIL_LINES = 12
_POLL_S = 0.02
_TAIL_BYTES = 16_384
_STDERR_PREFIX = "memd: "
"""How the command line begins what it says on stderr."""


def spawn_daemon(paths: Paths, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start `memd serve` on this vault in a session of its own, its output in the log."""
    private_dir(paths.state_dir)
    flags = (
        os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    )
    out = os.open(paths.log, flags, 0o600)
    environment = {**environ, "MEMD_VAULT": paths.vault}
    if home := environ.get("MEMD_HOME"):
        environment["MEMD_HOME"] = str(Path(home).absolute())
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "memd", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            cwd=paths.state_dir,
            start_new_session=True,
        )
    finally:
        os.close(out)


def wait_until_ready(
    process: subprocess.Popen[bytes],
    ready: Callable[[], bool],
    log: str,
    timeout_s: float = START_TIMEOUT_S,
    *,
    since: int = 0,
) -> None:
    """Return once `ready` says so; raise Broken with the log's last lines if that cannot be.

    Of the log only what stands behind byte `since` is told: what came before was another daemon's.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if ready():
            return
        if (code := process.poll()) is not None:
            raise Broken(
                f"the daemon ended as it started (exit {code}).{_quote_log_tail(log, since)}"
            )
        time.sleep(_POLL_S)
    raise Broken(
        f"the daemon (pid {process.pid}) does not answer after {timeout_s:.0f} s.{_quote_log_tail(log, since)}"
    )


def wait_until_unlocked(lock_path: str, timeout_s: float) -> bool:
    """Whether the vault's lock became free within this time."""
    return wait_until(lambda: find_lock_holder(lock_path) is None, timeout_s)


def wait_until(holds: Callable[[], bool], timeout_s: float) -> bool:
    """Whether this became true within this time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def kill_daemon(lock_path: str, stop_s: float = STOP_TIMEOUT_S) -> None:
    """End whoever holds the lock: a request, then force. Raise Broken if it outlives both."""
    for signal_number, patience_s in ((signal.SIGTERM, stop_s), (signal.SIGKILL, stop_s)):
        holder = _read_stable_holder(lock_path)
        if holder is None:
            return
        if not holder.pid:
            raise Broken(
                f"some process holds {lock_path} without saying who it is; end it by hand"
            )
        try:
            os.kill(holder.pid, signal_number)
        except ProcessLookupError:
            pass  # it ended meanwhile; the lock will say so
        except PermissionError:
            raise Broken(f"the daemon (pid {holder.pid}) belongs to another user") from None
        if wait_until_unlocked(lock_path, patience_s):
            return
    raise Broken("the daemon does not end; its disk may be hanging")


def log_event(log: str, event: str, at: int) -> None:
    """Add a line to a log that is nobody's just now, as a daemon would write it. `at`: UTC ms."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000))
    told = {"room": "restore", "event": event, "level": "info", "timestamp": moment}
    _append_line(log, json.dumps(told))


def read_start_failure(log: str) -> str | None:
    """Why the last daemon did not start, as it said at the end of a log; None if it did."""
    for line in reversed(read_log_tail(log)):
        if line.startswith("{"):
            return None  # a daemon that ran, or a restore: then this is over
        if line.startswith(_STDERR_PREFIX):
            return line.removeprefix(_STDERR_PREFIX)
    return None


def log_start_failure(log: str, message: str) -> None:
    """Have the log say why no daemon could start, unless our stderr is that log already."""
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(2), os.stat(log)):  # noqa: PTH116  # beside a descriptor's
            return
    _append_line(log, _STDERR_PREFIX + message.replace("\n", " "))


def _append_line(log: str, line: str) -> None:
    """Add a line; where that cannot be, there is nobody to tell."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(OSError):
        handle = os.open(log, flags, 0o600)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)


def log_size(path: str) -> int:
    """Tell how long a log is by now; 0 if there is none."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def read_log_tail(path: str, lines: int = LOG_TAIL_LINES, since: int = 0) -> list[str]:
    """Read the last lines of a log, none of them before byte `since`; none if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            # A log that is shorter than it was has been turned over: then all of it is new.
            file.seek(max(0, end - _TAIL_BYTES, since if since <= end else 0))
            return file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []


def _read_stable_holder(lock_path: str) -> LockHolder | None:
    """Read the note until it stands still.

    A new holder's lock comes an instant before its note, and the number that its predecessor left
    could by now be an innocent process.
    """
    first = find_lock_holder(lock_path)
    while first is not None:
        time.sleep(_POLL_S)
        second = find_lock_holder(lock_path)
        if second == first:
            return first
        first = second
    return None


def _quote_log_tail(log: str, since: int) -> str:
    lines = read_log_tail(log, since=since)
    return (
        f" The end of {log}:\n" + "\n".join(f"  {line}" for line in lines)
        if lines
        else f" See {log}."
    )
