"""Append-only spool for events while no daemon answers; each line is fsynced before `append` returns.

Every hook appends to one active file under a lock. The daemon renames that file under the same lock before it
reads it, so a file is never written and read at once and may be deleted once read. A hook that does not get the
lock in time writes a file of its own. A line is one JSON object, already redacted. A reserve file beside the
directory is deleted to free space when the disk is full. Standard library only: the hook imports it.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memd.paths import flush, private_dir

LINE_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of a line that is read; a longer one is not ours."""
SEGMENT_BYTES = 4 * 1024 * 1024
"""Bytes from which the active file is closed, so that an interrupted drain repeats little."""
RESERVE_BYTES = 2 * 1024 * 1024
"""Bytes of the reserve file."""
_ACTIVE = "active"
_LOCK = "lock"
_SUFFIX = ".jsonl"
_UNFINISHED_PREFIX = ".own-"
"""What the file of a single hook is called until it is complete."""
_HOOK_LOCK_S = 0.5
_DRAIN_LOCK_S = 5.0
"""Seconds that a hook, and a drain, wait for the lock."""
_RETRY_S = 0.005
_FILE_MODE = 0o600
_TYPE_MASK, _REGULAR_FILE = 0o170_000, 0o100_000
"""Bits of `st_mode`; importing `stat` for them would cost the hook time."""
_FREE_FACTOR_MIN = 16
"""How many times the reserve must be free on the disk before it is made."""
_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})


class SpoolSize(NamedTuple):
    """Files, bytes and lines that wait to be drained."""

    files: int
    bytes: int
    lines: int


def append(spool_dir: str, line: bytes) -> None:
    """Append one line (without its newline) and return once it survives a power failure."""
    try:
        _append_line(spool_dir, line)
    except OSError as error:
        if error.errno not in _FULL_ERRORS or not give_up_reserve(spool_dir):
            raise
        _append_line(spool_dir, line)


def keep_reserve(spool_dir: str) -> bool:
    """Create the reserve file if the disk has space; return whether it exists. Never raises OSError."""
    path = _reserve_path(spool_dir)
    try:
        if os.path.exists(path):
            return True
        disk = os.statvfs(os.path.dirname(path))
        if disk.f_bavail * disk.f_frsize < _FREE_FACTOR_MIN * RESERVE_BYTES:
            return False
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, _FILE_MODE)
        try:
            _write_all(handle, bytes(RESERVE_BYTES))
        finally:
            os.close(handle)
    except OSError:
        return False
    return True


def give_up_reserve(spool_dir: str) -> bool:
    """Delete the reserve file; return whether there was one."""
    try:
        os.unlink(_reserve_path(spool_dir))
    except OSError:
        return False
    return True


def _reserve_path(spool_dir: str) -> str:
    return f"{spool_dir}.reserve"


def _append_line(spool_dir: str, line: bytes) -> None:
    is_new = not os.path.isdir(spool_dir)
    private_dir(spool_dir)  # root could write into another user's, who could not read it then
    if is_new:
        _sync_dir(os.path.dirname(spool_dir))
    with _lock(spool_dir, _HOOK_LOCK_S) as is_locked:
        if not is_locked:
            _write_own_file(spool_dir, line)
            return
        path = os.path.join(spool_dir, _ACTIVE)
        if _write_line(path, line) >= SEGMENT_BYTES:
            os.rename(path, _next_segment(spool_dir))
            _sync_dir(spool_dir)


def drainable(spool_dir: str) -> list[str]:
    """Return the files to drain, oldest first. The active file is closed and becomes the last of them."""
    if not os.path.isdir(spool_dir):
        return []
    with _lock(spool_dir, _DRAIN_LOCK_S) as is_locked:
        active = os.path.join(spool_dir, _ACTIVE)
        if is_locked and os.path.exists(active) and os.path.getsize(active):
            os.rename(active, _next_segment(spool_dir))
        return [os.path.join(spool_dir, name) for name in _list_segments(spool_dir)]


def read(path: str) -> Iterator[bytes | None]:
    """Yield the lines of a file, without newlines; None for one longer than `LINE_BYTES_MAX`."""
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
    """Delete a file whose events are committed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    _sync_dir(os.path.dirname(path))


def list_unfinished(spool_dir: str) -> list[str]:
    """Return the files of single hooks that died before they could give them their name."""
    with contextlib.suppress(OSError):
        found = [name for name in os.listdir(spool_dir) if name.startswith(_UNFINISHED_PREFIX)]
        return [
            os.path.join(spool_dir, name) for name in sorted(found) if not _is_being_written(name)
        ]
    return []


def erase_unfinished(spool_dir: str, is_wanted: Callable[[str], bool], *, erases: bool) -> int:
    """Erase the lines that `is_wanted` accepts from unfinished files, which no drain reads; how many there are.

    Without `erases` they are only counted. Raises OSError.
    """
    return sum(_erase_from_file(path, is_wanted, erases) for path in list_unfinished(spool_dir))


def _erase_from_file(path: str, is_wanted: Callable[[str], bool], erases: bool) -> int:
    with open(path, "rb") as file:
        lines = file.readlines()
    kept = [line for line in lines if not is_wanted(line.decode("utf-8", "replace"))]
    count = len(lines) - len(kept)
    if erases and count and kept:
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            _write_all(handle, b"".join(kept))
            os.ftruncate(handle, sum(map(len, kept)))
            os.fsync(handle)
        finally:
            os.close(handle)
    elif erases and count:
        remove(path)
    return count


def _is_being_written(name: str) -> bool:
    """Return whether the process that an unfinished file is named after still runs."""
    pid = name.rpartition("-")[2]
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's, and alive
    return True


def measure(spool_dir: str) -> SpoolSize:
    """Count what waits to be drained."""
    files = total = lines = 0
    if os.path.isdir(spool_dir):
        for name in (*_list_segments(spool_dir), _ACTIVE):
            with contextlib.suppress(OSError), open(os.path.join(spool_dir, name), "rb") as file:
                counted = [
                    (len(block), block.count(b"\n"))
                    for block in iter(lambda: file.read(1 << 20), b"")
                ]
                total += sum(size for size, _ in counted)
                lines += sum(count for _, count in counted)
                files += bool(counted)
    return SpoolSize(files, total, lines)


@contextlib.contextmanager
def _lock(spool_dir: str, timeout_s: float) -> Iterator[bool]:
    """Hold the spool's lock; yield False if another process held it for all of `timeout_s`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(os.path.join(spool_dir, _LOCK), flags, _FILE_MODE)
    try:
        yield _acquire_lock(handle, time.monotonic() + timeout_s)
    finally:
        os.close(handle)


def _acquire_lock(handle: int, deadline: float) -> bool:
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
    """Append to the active file, fsync it and return its size. A partial write is undone."""
    is_new = not os.path.exists(path)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, _FILE_MODE)
    try:
        before = os.fstat(handle).st_size
        # A writer may have died in the middle of a line; start a new one.
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


def _write_own_file(spool_dir: str, line: bytes) -> None:
    """Write a separate file, renamed into place once it is complete."""
    name = f"own-{time.time_ns():020d}-{os.getpid()}"
    hidden = os.path.join(spool_dir, f".{name}")
    handle = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
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


def _list_segments(spool_dir: str) -> list[str]:
    """Return the names of closed files: the numbered ones in order, then those of single hooks."""
    names = [name for name in os.listdir(spool_dir) if name.endswith(_SUFFIX)]
    return sorted(name for name in names if _is_regular_file(os.path.join(spool_dir, name)))


def _is_regular_file(path: str) -> bool:
    """Return whether this is a regular file: no pipe, no link."""
    try:
        return os.lstat(path).st_mode & _TYPE_MASK == _REGULAR_FILE
    except OSError:
        return False


def _next_segment(spool_dir: str) -> str:
    """Return a path after all existing ones. Call it under the lock."""
    numbers = [
        int(stem) for name in _list_segments(spool_dir) if (stem := name[: -len(_SUFFIX)]).isdigit()
    ]
    return os.path.join(spool_dir, f"{max(numbers, default=0) + 1:012d}{_SUFFIX}")


def _sync_dir(path: str) -> None:
    with contextlib.suppress(OSError):  # some file systems cannot; the file itself is synced
        flush(path or ".")
