"""One daemon per vault: a file lock that says who holds it, and dies with its process.

Standard library only, for the command line asks it too. The lock is the kernel's (`flock`); what
stands in the file is only a note about its holder. Not here: the socket, which is replaced by
whoever holds the lock and by nobody else.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from memd.errors import AlreadyRunning
from memd.paths import private_dir

PATIENCE_S = 0.5
"""`holder` looks by locking for an instant; a daemon that starts just then must not give up."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who serves a vault. Both are 0 when the note could not be read."""

    pid: int
    started_at: int
    """UTC milliseconds."""
    why: str = ""
    """What holds it if that is no daemon: `restore`. Then there is nothing to be ended."""


@contextlib.contextmanager
def held(path: str, started_at: int, why: str = "") -> Iterator[Holder]:
    """Hold the lock of a vault for this block; raise AlreadyRunning if another process does."""
    private_dir(str(Path(path).parent))
    fd = _open(path)
    try:
        if not _lock(fd, PATIENCE_S):
            raise AlreadyRunning(_refusal(path, _read(fd)))
        me = Holder(os.getpid(), started_at, why)
        os.ftruncate(fd, 0)
        # On a full disk nobody is told who holds it; it is held all the same.
        with contextlib.suppress(OSError):
            os.pwrite(fd, json.dumps(asdict(me)).encode(), 0)
        yield me
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def holder(path: str) -> Holder | None:
    """Tell who holds the lock, or None if nobody does. Leaves no trace."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _lock(fd, 0) else _read(fd)
    finally:
        os.close(fd)


def _open(path: str) -> int:
    # Never unlinked: two processes could then hold locks on two files of one name. Never followed:
    # the note would be written over whatever a link leads to.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _lock(fd: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A daemon has signed and stays; who waited for it would take over when it is stopped.
            if time.monotonic() >= deadline or _is_alive(_read(fd).pid):
                return False
            time.sleep(0.02)
        else:
            return True


def _is_alive(pid: int) -> bool:
    if not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's, and alive
    return True


def _read(fd: int) -> Holder:
    try:
        note = json.loads(os.pread(fd, 4096, 0))
        return Holder(int(note["pid"]), int(note["started_at"]), str(note.get("why", "")))
    except (ValueError, KeyError, TypeError):
        # Between taking the lock and writing the note, or a disk that was full.
        return Holder(0, 0)


def _refusal(path: str, other: Holder) -> str:
    who = f"pid {other.pid}" if other.pid else "another process"
    if other.why:
        return f"a {other.why} of this vault is under way ({who} holds {path})"
    return f"a memd daemon already serves this vault ({who} holds {path})"
