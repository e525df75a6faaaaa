"""Read-only access to another program's SQLite file: its tables, and their rows as text.

Nothing is written to the file or left beside it. Its write-ahead log is read, too. Rows are fetched
page by page, so that the other program never waits for longer than a page takes.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from memd.errors import BadRequest, Broken

BUSY_TIMEOUT_MS = 3_000
"""How long to wait for the other program's lock before giving up."""
_PAGE_ROWS = 200
"""Rows fetched at a time."""
_CELL_CHARACTERS_MAX = 400_000
"""Longer texts are cut off."""
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_WRITE_VERSION_AT, _WRITE_VERSION_WAL = 18, 2
"""Where the header says how the file is written, and its value for a write-ahead log."""


class ForeignDatabase:
    """An open file of another program."""

    def __init__(self, path: str, connection: apsw.Connection) -> None:
        self.path = path
        self._connection = connection

    def tables(self) -> dict[str, tuple[str, ...]]:
        """Table → its columns."""
        rows = self._fetch_rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {str(name): self._read_columns(str(name)) for (name,) in rows}

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        return int(self._fetch_rows(f"SELECT count(*) FROM {_quote_name(table)}")[0][0])

    def rows(self, table: str, **where: str) -> Iterator[dict[str, str | None]]:
        """The rows of a table in order, those with these values: column → value as text, None for NULL."""
        columns = self._read_columns(table)
        chosen = "".join(f" AND {_quote_name(column)} = ?" for column in where)
        cells = ", ".join(
            f"CAST(substr({_quote_name(column)}, 1, {_CELL_CHARACTERS_MAX}) AS BLOB)"
            for column in columns
        )
        query = (
            f"SELECT rowid, {cells} FROM {_quote_name(table)} WHERE rowid > ?{chosen}"
            f" ORDER BY rowid LIMIT {_PAGE_ROWS}"
        )
        last = -(2**63)
        while page := self._fetch_rows(query, last, *where.values()):
            for row in page:
                last = int(row[0])
                texts = (
                    cell.decode("utf-8", "replace") if isinstance(cell, bytes) else None
                    for cell in row[1:]
                )
                yield dict(zip(columns, texts, strict=True))

    def _read_columns(self, table: str) -> tuple[str, ...]:
        rows = self._fetch_rows(f"PRAGMA table_info({_quote_name(table)})")
        return tuple(str(row[1]) for row in rows)

    def _fetch_rows(self, query: str, *values: int | str) -> list[Any]:
        with _translate_errors(self.path):
            return self._connection.execute(query, values).fetchall()


@contextlib.contextmanager
def open_foreign(path: str) -> Iterator[ForeignDatabase]:
    """Open a file for reading. BadRequest if it is not an SQLite file, Broken if it cannot be read now."""
    file = Path(path)
    with file.open("rb") as opened:
        header = opened.read(_HEADER_BYTES)
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise BadRequest(f"{file} is not an SQLite database")
    log = Path(f"{path}-wal")
    # A WAL file without a log is not open anywhere. Opened as immutable, it gets no files beside it.
    is_idle = header[_WRITE_VERSION_AT] == _WRITE_VERSION_WAL and not log.exists()
    before = _size_and_time(file)
    uri = f"file:{quote(str(file.absolute()))}?{'immutable=1' if is_idle else 'mode=ro'}"
    with _translate_errors(path):
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    with contextlib.closing(connection):
        with _translate_errors(path):
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.pragma("query_only", 1)
        yield ForeignDatabase(path, connection)
    if is_idle and (log.exists() or _size_and_time(file) != before):
        raise Broken(f"{path} was written to while it was read; import it again")


def _size_and_time(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextlib.contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    """Raise SQLite's errors with a message about a file that is not ours."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise Broken(
            f"{path} is locked by another program; close that, or import it later"
        ) from error
    except apsw.NotADBError as error:
        raise BadRequest(f"{path} is not an SQLite database, or is encrypted") from error
    except apsw.Error as error:
        raise Broken(f"{path} could not be read: {error}") from error
