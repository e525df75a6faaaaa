"""Numbered migrations, from whatever version a vault has to ours, each in one transaction.

A vault has `application_id` "memd" and `user_version`, the number of its last migration. Both are in
the first hundred bytes of the file, so a foreign, damaged or newer file is refused after a plain
read: opening it with SQLite might already change it.
"""

import functools
import struct
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from memd.errors import VaultCorrupt, VaultForeign, VaultNewer
from memd.store.fulltext import POSTING, pack_postings
from memd.store.speakers import store_speakers

APPLICATION_ID = int.from_bytes(b"memd", "big")
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_QUICK_CHECK_BYTES_MAX = 64 * 1024 * 1024
"""A larger file is checked by `memd doctor` instead of at every start."""
_BLOCK_PASSAGES = 1_000
"""Passages that are repacked at a time."""


def repack_postings(connection: apsw.Connection) -> None:
    """Rewrite the postings of every passage, from six bytes each to about two."""
    last = 0
    block: list[tuple[Any, ...]]
    while block := connection.execute(
        "SELECT id, postings FROM passages WHERE id > ? ORDER BY id LIMIT ?",
        (last, _BLOCK_PASSAGES),
    ).fetchall():
        last = block[-1][0]
        sizes = [len(blob) // POSTING.itemsize for _, blob in block]
        packed = pack_postings(np.frombuffer(b"".join(blob for _, blob in block), POSTING), sizes)
        connection.executemany(
            "UPDATE passages SET postings = ? WHERE id = ?",
            [(new, number) for (number, _), new in zip(block, packed, strict=True)],
        )


_PYTHON_STEPS: Mapping[int, Callable[[apsw.Connection], None]] = {
    5: repack_postings,
    6: store_speakers,
}
"""What a migration does after its SQL, in the same transaction."""


@functools.cache
def migrations() -> tuple[str, ...]:
    """Every migration's SQL in order; the first brings an empty file to version 1."""
    folder = resources.files(__package__) / "migrations"
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return tuple((folder / name).read_text(encoding="utf-8") for name in names)


def check_header(path: str) -> None:
    """Refuse a file that is not a vault we can open, without writing.

    Raises VaultForeign, VaultNewer or VaultCorrupt. A file that is missing or empty is fine.
    """
    try:
        with Path(path).open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return
    if not header:
        return
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise VaultCorrupt(
            f"{path} is not an SQLite database, or its beginning is damaged. Nothing was changed."
        )
    (version,) = struct.unpack_from(">I", header, 60)
    (application,) = struct.unpack_from(">I", header, 68)
    # A crash in the very first transaction leaves an id of 0, and the rest in the log.
    was_interrupted = application == 0 and Path(path + "-wal").exists()
    if application != APPLICATION_ID and not was_interrupted:
        raise VaultForeign(f"{path} is a database of another program. Nothing was changed.")
    if version > len(migrations()):
        raise VaultNewer(
            f"{path} has schema {version}; this memd knows {len(migrations())}. "
            "Nothing was changed; update memd."
        )


def migrate(connection: apsw.Connection, now: int) -> None:
    """Bring an open vault to our version; raise VaultNewer, VaultForeign or VaultCorrupt."""
    version = int(connection.pragma("user_version"))
    application = int(connection.pragma("application_id"))
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if application != APPLICATION_ID and (application or tables):
        raise VaultForeign
    if version > len(migrations()):
        raise VaultNewer
    _quick_check(connection)
    for number, sql in enumerate(migrations()[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(sql)
            if number in _PYTHON_STEPS:
                _PYTHON_STEPS[number](connection)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", number)
            _check_references(connection, number)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    if version < len(migrations()):
        # `check_header` reads the file, not the write-ahead log.
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('created_at', ?)", (str(now),))


def _check_references(connection: apsw.Connection, number: int) -> None:
    if list(connection.execute("PRAGMA foreign_key_check")):
        raise VaultCorrupt(f"migration {number} would break references; the vault is unchanged")


def _quick_check(connection: apsw.Connection) -> None:
    size = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
    if size > _QUICK_CHECK_BYTES_MAX:
        return
    verdict = connection.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        finding = " ".join(str(verdict).split())
        raise VaultCorrupt(f"SQLite found damage: {finding}. Nothing was changed.")
