"""Whether a vault is damaged, or only could not be read when somebody tried. Writes nothing.

SQLite has one word for a page that makes no sense and for one that the disk refuses to give. The first
needs a backup; the second may be over in a second, and nothing may be thrown away for it.
"""

import os

import apsw

_BLOCK = 1 << 20
_kept_open: dict[str, int] = {}


def is_damaged(path: str) -> bool:
    """Whether the file can be read to its end, and SQLite finds it wrong even so."""
    try:
        handle = _handle(path)
        at = 0
        while block := os.pread(handle, _BLOCK, at):
            at += len(block)
    except OSError:
        return False
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            return bool(connection.execute("PRAGMA quick_check(1)").get != "ok")
        finally:
            connection.close()
    except (apsw.CorruptError, apsw.NotADBError):
        return True
    except apsw.Error:
        return False


def _handle(path: str) -> int:
    # Never closed: with it would go the locks that SQLite has on the same file in this process.
    if path not in _kept_open:
        _kept_open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return _kept_open[path]
