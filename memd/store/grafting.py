"""The names of a damaged vault's tables made readable, with the first pages of a sound one. Only of a copy.

Not here: reading the tables (salvage.py).
"""

import contextlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from memd.errors import VaultCorrupt
from memd.store.database import Connection

_HEADER = 100
_PAGE = 4096
UNREADABLE = (apsw.Error, UnicodeDecodeError, OverflowError, MemoryError)
"""What reading damage raises."""


def make_readable(damaged: str, sound: str, tables: Sequence[str]) -> None:
    """Where the first bytes are none of a vault's, put in those of one; or all that names its tables.

    The pages that name the tables are the first that a vault gets, so a new one has them in the same places
    as one that was begun by the same memd. VaultCorrupt if `tables` are not among the names then.
    """
    with contextlib.closing(apsw.Connection(sound)) as connection:
        naming: list[tuple[Any, ...]] = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'sqlite_schema' ORDER BY pageno"
        ).fetchall()
    first = [(1, _PAGE)]
    for pages in ([], [(1, _HEADER)], first, [(int(page), _PAGE) for (page,) in naming]):
        _graft(damaged, sound, pages)
        with contextlib.suppress(*UNREADABLE), source(damaged) as opened:
            names = {row[0] for row in opened.execute("SELECT name FROM sqlite_schema")}
            if set(tables) <= names:
                return
    raise VaultCorrupt(
        f"{damaged}: not even the names of its tables can be read. `memd restore FILE` takes a backup"
    )


def _graft(damaged: str, sound: str, pages: Sequence[tuple[int, int]]) -> None:
    """Put (number, bytes) of pages from a sound vault into a damaged one that is long enough."""
    count = -(-Path(damaged).stat().st_size // _PAGE)
    with Path(sound).open("rb") as source, Path(damaged).open("r+b") as into:
        for number, length in pages:
            if number > count:
                continue
            source.seek((number - 1) * _PAGE)
            held = bytearray(source.read(length))
            if number == 1:
                # As many pages as there are, none of them free, and a count that vouches for that.
                struct.pack_into(">III", held, 28, count, 0, 0)
                held[92:96] = held[24:28]
            into.seek((number - 1) * _PAGE)
            into.write(held)


@contextlib.contextmanager
def source(path: str) -> Iterator[Connection]:
    """A damaged copy, to be read as far as that goes."""
    connection = apsw.Connection(path)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # With it SQLite reads a file that is shorter than it says, and a schema with gaps.
        connection.pragma("writable_schema", 1)
        connection.pragma("query_only", 1)
        yield connection
    finally:
        connection.close()
