"""The daemon as a process, from outside: its lock, its start, its end, the end of its log.

Standard library only, because `memd status` must start fast. Whether a daemon runs is decided by the
lock alone: the kernel frees it when the process ends. The file's text is only a note about the holder.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memd.errors import AlreadyRunning, Broken, ConfigError
from memd.launcher import make_daemon_environment
from memd.paths import Paths, mend_umask, private_dir

LOCK_WAIT_S = 0.5
"""`find_lock_holder` locks for an instant; a daemon that starts at that moment must not give up."""
START_TIMEOUT_S = 30.0
"""A start imports a second's worth of libraries, several seconds on a loaded machine."""
STOP_TIMEOUT_S = 10.0
"""A daemon that has not ended after this time is killed. Nothing acknowledged is lost by it."""
LOG_TAIL_LINES = 12
_LOG_TAIL_BYTES = 16_384
_POLL_S = 0.02
_STDERR_PREFIX = "memd: "
"""The command line begins its messages on stderr with this."""
_FREE_BYTES_MIN = 65_536
"""Free bytes on the disk without which no daemon can start."""
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that holds the lock of a vault. Both numbers are 0 if its note cannot be read."""

    pid: int
    started_at: int
    """UTC milliseconds."""
    why: str = ""
    """What it does if it is no daemon, such as `restore`; it must not be stopped then."""


@contextlib.contextmanager
def hold_lock(path: str, started_at: int, why: str = "") -> Iterator[LockHolder]:
    """Hold the lock of a vault for this block; raise AlreadyRunning if another process does."""
    private_dir(str(Path(path).parent))
    # The file is never unlinked: two processes could then hold locks on two files of one name. A link is
    # not followed: the note would overwrite the file that it leads to.
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    try:
        if not _acquire_lock(fd, LOCK_WAIT_S):
            raise AlreadyRunning(_explain_refusal(path, _read_holder(fd)))
        holder = LockHolder(os.getpid(), started_at, why)
        os.ftruncate(fd, 0)
        # A full disk has no room for the note; the lock holds without it.
        with contextlib.suppress(OSError):
            os.pwrite(fd, json.dumps(asdict(holder)).encode(), 0)
        yield holder
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def find_lock_holder(path: str) -> LockHolder | None:
    """Return the process that holds the lock, or None. Changes nothing."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _acquire_lock(fd, 0) else _read_holder(fd)
    finally:
        os.close(fd)


def _acquire_lock(fd: int, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A living daemon that wrote its note stays: waiting on would take over when it is stopped.
            if time.monotonic() >= deadline or _is_process_alive(_read_holder(fd).pid):
                return False
            time.sleep(_POLL_S)
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
        pass  # it belongs to another user
    return True


def _read_holder(fd: int) -> LockHolder:
    try:
        note = json.loads(os.pread(fd, 4096, 0))
        return LockHolder(int(note["pid"]), int(note["started_at"]), str(note.get("why", "")))
    except (ValueError, KeyError, TypeError):
        # The note is not written yet, or the disk was full.
        return LockHolder(0, 0)


def _explain_refusal(path: str, holder: LockHolder) -> str:
    process = f"pid {holder.pid}" if holder.pid else "another process"
    if holder.why:
        return f"a {holder.why} of this vault is in progress ({process} holds {path})"
    return f"a memd daemon already serves this vault ({process} holds {path})"


def spawn_daemon(paths: Paths, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start `memd serve` on this vault in a session of its own, with its output in the log."""
    mend_umask()
    private_dir(paths.state_dir)
    out = os.open(paths.log, _APPEND | os.O_NONBLOCK, 0o600)
    environment = make_daemon_environment(paths, dict(environ))
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
    is_ready: Callable[[], bool],
    log: str,
    timeout_s: float = START_TIMEOUT_S,
    *,
    since: int = 0,
) -> None:
    """Return once the daemon is ready; raise Broken with the end of its log if it fails.

    What stands in the log before byte `since` belongs to an earlier daemon.
    """
    deadline = time.monotonic() + timeout_s
    failure = f"the daemon (pid {process.pid}) does not answer after {timeout_s:.0f} s."
    while not is_ready():
        if (code := process.poll()) is not None:
            failure = f"the daemon ended as it started (exit {code})."
        if code is not None or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    else:
        return
    lines = "".join(f"\n  {line}" for line in read_log_tail(log, since=since))
    raise Broken(f"{failure} The end of {log}:{lines}" if lines else f"{failure} See {log}.")


def wait_until_unlocked(lock_path: str, timeout_s: float) -> bool:
    """Wait until the vault's lock is free; return whether it is."""
    return wait_until(lambda: find_lock_holder(lock_path) is None, timeout_s)


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Wait until the condition holds; return whether it does."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def kill_daemon(lock_path: str, stop_s: float = STOP_TIMEOUT_S) -> None:
    """End the process that holds the lock, first by SIGTERM; raise Broken if it survives SIGKILL."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        holder = _read_stable_holder(lock_path)
        if holder is None:
            return
        if not holder.pid:
            raise Broken(
                f"an unknown process holds {lock_path}; find it with `fuser {lock_path}` and end it"
            )
        try:
            os.kill(holder.pid, signal_number)
        except ProcessLookupError:
            pass  # it has ended; the lock becomes free
        except PermissionError:
            raise Broken(f"the daemon (pid {holder.pid}) belongs to another user") from None
        if wait_until_unlocked(lock_path, stop_s):
            return
    raise Broken("the daemon does not end; its disk may be hanging")


def _read_stable_holder(lock_path: str) -> LockHolder | None:
    """Read the note until it does not change any more.

    A new holder locks an instant before it writes its note; the pid of its predecessor may by now belong
    to any process.
    """
    first = find_lock_holder(lock_path)
    while first is not None:
        time.sleep(_POLL_S)
        second = find_lock_holder(lock_path)
        if second == first:
            return first
        first = second
    return None


def mark_stopped(path: str) -> None:
    """Note that the daemon ends on purpose, so that the proxies of open sessions do not start it again."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))


def unmark_stopped(path: str) -> None:
    """Remove that note, as a daemon runs or is wanted."""
    with contextlib.suppress(OSError):
        Path(path).unlink()


def remove_socket_directory(paths: Paths) -> None:
    """Remove the directory that only holds sockets, unless that of another vault is there."""
    if paths.socket_dir != paths.runtime_dir:
        with contextlib.suppress(OSError):
            Path(paths.socket_dir).rmdir()


def log_event(log: str, event: str, at: int) -> None:
    """Append an event to the log of a daemon that does not run, in its format. `at`: UTC ms."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000))
    line = {"room": "restore", "event": event, "level": "info", "timestamp": moment}
    _append_line(log, json.dumps(line))


def log_start_failure(log: str, message: str) -> None:
    """Append why no daemon could start, unless stderr is that log already."""
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(2), os.stat(log)):  # noqa: PTH116  # beside a descriptor's
            return
    _append_line(log, _STDERR_PREFIX + message.replace("\n", " "))


def read_start_failure(log: str) -> str | None:
    """Return why the last daemon did not start, from the end of its log; None if it started."""
    for line in reversed(read_log_tail(log)):
        if line.startswith("{"):
            return None  # an event of a running daemon or of a restore
        if line.startswith(_STDERR_PREFIX):
            return line.removeprefix(_STDERR_PREFIX)
    return None


def _append_line(log: str, line: str) -> None:
    """Append a line, if the log can be written."""
    with contextlib.suppress(OSError):
        handle = os.open(log, _APPEND, 0o600)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)


def log_size(path: str) -> int:
    """Return the bytes of a log; 0 if there is none."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def read_log_tail(path: str, since: int = 0) -> list[str]:
    """Return the last lines of a log, none from before byte `since`; none if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            # A log that is shorter than it was has been rotated: then all of it is new.
            file.seek(max(0, end - _LOG_TAIL_BYTES, since if since <= end else 0))
            return file.read().decode("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:]
    except OSError:
        return []


# ── Without a daemon: who holds the vault, what waits, and why none can start ────────────────────


def describe_absence(paths: Paths, reason: str) -> dict[str, Any]:
    """Return the fields of a status without a daemon; `reason` is why it could not be asked."""
    holder = find_lock_holder(paths.lock)
    if holder is not None:
        reason = (
            f"a daemon (pid {holder.pid}) holds the vault but does not answer; it may be starting;"
            " if it hangs, `memd restart` starts another"
        )
    elif obstacle := find_config_error(paths) or _find_start_failure(paths):
        reason = obstacle
    spooled = _list_sizes(paths.spools)
    vault = sum(_file_size(Path(paths.database + suffix)) for suffix in ("", "-wal"))
    return {
        "running": False,
        "health": "not running",
        "reasons": [reason],
        "pid": holder.pid if holder else None,
        "socket": paths.socket,
        "log": paths.log,
        "vault": {"name": paths.vault, "path": paths.database, "bytes": vault},
        "spool": {"bytes": sum(spooled), "files": len(spooled)},
    }


def find_config_error(paths: Paths) -> str | None:
    """Return why no daemon can start with the settings, with the file and what is wrong in it; None if they are valid."""
    try:
        if not Path(paths.config_file).exists():
            return None
    except OSError as error:  # such as a name that is too long
        return f"no daemon can start: {error}"
    from memd import config  # noqa: PLC0415  # only if there is a file, because pydantic loads slowly

    try:
        config.load_config(paths.config_file)
    except ConfigError as error:
        return f"no daemon can start: {error.message}"
    return None


def _find_start_failure(paths: Paths) -> str | None:
    """Return why the last daemon did not start or the next one cannot."""
    last_error = read_start_failure(paths.log)
    if last_error is not None:
        return f"the last daemon could not start: {last_error}"
    with contextlib.suppress(OSError):
        disk = os.statvfs(Path(paths.data_dir))
        problem = f"no daemon can start: the disk of {paths.data_dir}"
        if disk.f_flag & os.ST_RDONLY:
            return f"{problem} is mounted read-only; make it writable"
        if disk.f_bavail * disk.f_frsize < _FREE_BYTES_MIN:
            return f"{problem} is full; free some space"
    return None


def _list_sizes(directories: Sequence[str]) -> list[int]:
    """List the sizes of all files that are not empty."""
    sizes: list[int] = []
    for directory in directories:
        with contextlib.suppress(OSError):
            sizes += [size for path in Path(directory).iterdir() if (size := _file_size(path))]
    return sizes


def _file_size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
