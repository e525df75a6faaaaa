"""Where events wait while no daemon answers: files of lines, fsynced before they are promised.

Standard library only, for the hook. Every hook appends to one active file under a lock; whoever
drains takes that file away under the same lock, so nobody ever writes into a file that is being
read, and a file that was read may simply be removed. A hook that cannot have the lock in time writes
a file of its own. A line is one JSON object, already redacted. Beside the directory lies
a reserve of space, which is given up to the first lines for which there is no room any more. Not here:
what a line says.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from memd.paths import private_dir

LINE_BYTES_MAX = 8 * 1024 * 1024
SEGMENT_BYTES = 4 * 1024 * 1024
"""A larger active file is put aside, so that a drain that is interrupted repeats little."""
_ACTIVE = "active"
_LOCK = "lock"
_SUFFIX = ".jsonl"
_HOOK_PATIENCE_S = 0.5
_DRAIN_PATIENCE_S = 5.0
_RETRY_S = 0.005
_PRIVATE = 0o600
_KIND, _REGULAR = 0o170_000, 0o100_000
"""Of a mode. The module `stat` would say the same, at a price."""
RESERVE_BYTES = 2 * 1024 * 1024
_AMPLE = 16
"""A reserve is made where this many times as much is free: it must not be what fills the disk."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Measure(NamedTuple):
    """How much is waiting."""

    files: int
    bytes: int
    lines: int


def append(spool_dir: str, line: bytes) -> None:
    """Add one line (without its newline) and return once it will survive a power cut."""
    try:
        _append(spool_dir, line)
    except OSError as error:
        if error.errno not in _FULL or not give_up_reserve(spool_dir):
            raise
        _append(spool_dir, line)


def keep_reserve(spool_dir: str) -> bool:
    """Set space aside for when there is none; whether it is there now. Never raises OSError."""
    path = _reserve(spool_dir)
    try:
        if os.path.exists(path):
            return True
        disk = os.statvfs(os.path.dirname(path))
        if disk.f_bavail * disk.f_frsize < _AMPLE * RESERVE_BYTES:
            return False
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, _PRIVATE)
        try:
            _write_all(handle, bytes(RESERVE_BYTES))
        finally:
            os.close(handle)
    except OSError:
        return False
    return True


def give_up_reserve(spool_dir: str) -> bool:
    """Let the reserve go; whether there was one."""
    try:
        os.unlink(_reserve(spool_dir))
    except OSError:
        return False
    return True


def _reserve(spool_dir: str) -> str:
    return f"{spool_dir}.reserve"


def _append(spool_dir: str, line: bytes) -> None:
    if not os.path.isdir(spool_dir):
        private_dir(spool_dir)
        _sync_dir(os.path.dirname(spool_dir))
    with _locked(spool_dir, _HOOK_PATIENCE_S) as is_locked:
        if not is_locked:
            _write_alone(spool_dir, line)
            return
        path = os.path.join(spool_dir, _ACTIVE)
        if _write_line(path, line) >= SEGMENT_BYTES:
            os.rename(path, _next_segment(spool_dir))
            _sync_dir(spool_dir)


def drainable(spool_dir: str) -> list[str]:
    """The files to drain, oldest first. The active one is put aside and is the last of them."""
    if not os.path.isdir(spool_dir):
        return []
    with _locked(spool_dir, _DRAIN_PATIENCE_S) as is_locked:
        active = os.path.join(spool_dir, _ACTIVE)
        if is_locked and _size(active) > 0:
            os.rename(active, _next_segment(spool_dir))
        return [os.path.join(spool_dir, name) for name in _segments(spool_dir)]


def read(path: str) -> Iterator[bytes | None]:
    """The lines of a file, without newlines; None for one that is longer than any we write."""
    with open(path, "rb") as file:
        while line := file.readline(LINE_BYTES_MAX):
            if len(line) < LINE_BYTES_MAX or line.endswith(b"\n"):
                if stripped := line.strip():
                    yield stripped
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_BYTES_MAX)
            yield None


def remove(path: str) -> None:
    """Let go of a file whose events are committed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    _sync_dir(os.path.dirname(path))


def measure(spool_dir: str) -> Measure:
    """What is waiting, by looking."""
    files = total = lines = 0
    if os.path.isdir(spool_dir):
        for name in (*_segments(spool_dir), _ACTIVE):
            with (
                contextlib.suppress(OSError),
                open(os.path.join(spool_dir, name), "rb") as file,
            ):
                counted = [
                    (len(block), block.count(b"\n"))
                    for block in iter(lambda: file.read(1 << 20), b"")
                ]
                total += sum(size for size, _ in counted)
                lines += sum(count for _, count in counted)
                files += bool(counted)
    return Measure(files, total, lines)


@contextlib.contextmanager
def _locked(spool_dir: str, patience_s: float) -> Iterator[bool]:
    """Hold the spool's lock; False if somebody else held it for all of `patience_s`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(os.path.join(spool_dir, _LOCK), flags, _PRIVATE)
    try:
        yield _acquire(handle, time.monotonic() + patience_s)
    finally:
        os.close(handle)


def _acquire(handle: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_RETRY_S)
        else:
            return True


def _write_line(path: str, line: bytes) -> int:
    """Append to the active file and fsync it; its size. What fails half-way is taken back."""
    is_new = not os.path.exists(path)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, _PRIVATE)
    try:
        before = os.fstat(handle).st_size
        # A writer that died in mid-line must not take this line down with it.
        is_torn = before > 0 and os.pread(handle, 1, before - 1) != b"\n"
        try:
            _write_all(handle, (b"\n" if is_torn else b"") + line + b"\n")
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)
            raise
        after = os.fstat(handle).st_size
    finally:
        os.close(handle)
    if is_new:
        _sync_dir(os.path.dirname(path))
    return after


def _write_alone(spool_dir: str, line: bytes) -> None:
    """Write a file of one's own, which appears only when it is whole."""
    name = f"own-{time.time_ns():020d}-{os.getpid()}"
    hidden = os.path.join(spool_dir, f".{name}")
    handle = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
    try:
        _write_all(handle, line + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    os.rename(hidden, os.path.join(spool_dir, name + _SUFFIX))
    _sync_dir(spool_dir)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _segments(spool_dir: str) -> list[str]:
    """Names of the files put aside: the numbered ones in order, then those of single hooks."""
    names = [name for name in os.listdir(spool_dir) if name.endswith(_SUFFIX)]
    return sorted(name for name in names if _is_file(os.path.join(spool_dir, name)))


def _is_file(path: str) -> bool:
    """Whether it can be read to its end: no pipe, and no link to what somebody else writes."""
    try:
        return os.lstat(path).st_mode & _KIND == _REGULAR
    except OSError:
        return False


def _next_segment(spool_dir: str) -> str:
    """A name after all that are there. Only under the lock."""
    numbers = [
        int(stem) for name in _segments(spool_dir) if (stem := name[: -len(_SUFFIX)]).isdigit()
    ]
    return os.path.join(spool_dir, f"{max(numbers, default=0) + 1:012d}{_SUFFIX}")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _sync_dir(path: str) -> None:
    with contextlib.suppress(OSError):  # some file systems cannot; the file itself is synced
        handle = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
