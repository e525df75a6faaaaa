"""Another program's SQLite file, read only: its tables, and their rows as text.

Nothing is written to it or left beside it by us. What its owner has not folded into the file yet (the
write-ahead log) is read, too; rows are fetched page by page, so that the owner is never held up for
longer than a page takes. Not here: what the rows mean.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from memd.errors import BadRequest, Broken

BUSY_TIMEOUT_MS = 3_000
_PAGE = 200
_CELL_CHARACTERS = 400_000
_HEADER = 100
_MAGIC = b"SQLite format 3\0"
_WAL_AT, _WAL = 18, 2


class ForeignDatabase:
    """An open file of another program."""

    def __init__(self, path: str, connection: apsw.Connection) -> None:
        self.path = path
        self._connection = connection

    def tables(self) -> dict[str, tuple[str, ...]]:
        """Each table and its columns."""
        with _told(self.path):
            names = [
                str(name)
                for (name,) in self._connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            ]
            return {name: self._columns(name) for name in names}

    def count(self, table: str) -> int:
        """How many rows a table has."""
        with _told(self.path):
            found: Any = self._connection.execute(f"SELECT count(*) FROM {_name(table)}").get
            return int(found)

    def rows(self, table: str) -> Iterator[dict[str, str | None]]:
        """The rows of a table in order: column → value as text, None for NULL."""
        columns = self._columns(table)
        cells = ", ".join(
            f"CAST(substr({_name(column)}, 1, {_CELL_CHARACTERS}) AS BLOB)"
            for column in columns
        )
        query = f"SELECT rowid, {cells} FROM {_name(table)} WHERE rowid > ? ORDER BY rowid LIMIT {_PAGE}"
        last = -(2**63)
        while True:
            with _told(self.path):
                page: list[Any] = self._connection.execute(query, (last,)).fetchall()
            for row in page:
                last = int(row[0])
                yield dict(zip(columns, map(_text, row[1:]), strict=True))
            if len(page) < _PAGE:
                return

    def _columns(self, table: str) -> tuple[str, ...]:
        with _told(self.path):
            rows = self._connection.execute(f"PRAGMA table_info({_name(table)})")
            return tuple(str(row[1]) for row in rows)


@contextlib.contextmanager
def open_foreign(path: str) -> Iterator[ForeignDatabase]:
    """Open a file to read. BadRequest if it is no SQLite file, Broken if it cannot be read now."""
    file = Path(path)
    header = _header(file)
    log = Path(f"{path}-wal")
    # Without a log nobody has it open: to take it for unchangeable leaves no files beside it.
    is_still = header[_WAL_AT] == _WAL and not log.exists()
    before = _stamp(file)
    uri = f"file:{quote(str(file.absolute()))}?{'immutable=1' if is_still else 'mode=ro'}"
    with _told(path):
        connection = apsw.Connection(
            uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
    try:
        with _told(path):
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.pragma("query_only", 1)
        yield ForeignDatabase(path, connection)
    finally:
        connection.close()
    if is_still and (log.exists() or _stamp(file) != before):
        raise Broken(f"{path} was written to while it was read; import it once more")


def _header(file: Path) -> bytes:
    with file.open("rb") as opened_file:
        header = opened_file.read(_HEADER)
    if not header.startswith(_MAGIC) or len(header) < _HEADER:
        raise BadRequest(f"{file} is no SQLite database")
    return header


def _stamp(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn SQLite's errors into words about a file that is not ours."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise Broken(
            f"{path} is locked by another program; close that, or import it later"
        ) from error
    except apsw.NotADBError as error:
        raise BadRequest(f"{path} is no SQLite database, or an encrypted one") from error
    except apsw.Error as error:
        raise Broken(f"{path} could not be read: {error}") from error


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(cell: object) -> str | None:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else None
