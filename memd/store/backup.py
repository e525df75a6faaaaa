"""Online backup, snapshots, verification."""

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from memd.errors import BadRequest, VaultCorrupt, VaultError
from memd.models import EventKind
from memd.store import (
    events,
    fulltext,
    ledger,
    links,
    migrate,
    projects,
    queries,
    summaries,
    turns,
)
from memd.store.database import BUSY_TIMEOUT_MS, Connection, Database, translate_errors

# MERGED from memd.store.snapshot:
# MERGED A vault as it stands at one moment, for as long as the block lasts, whoever writes meanwhile.
# MERGED
# MERGED In the write-ahead log a reader's snapshot holds up no writer. Another process may do this while a
# MERGED daemon serves. Not here: what is read from it (departures.py, copies.py).


@contextlib.contextmanager
def read_snapshot(path: str) -> Iterator[Connection]:
    """A connection in a read transaction. BadRequest if there is no vault; else a VaultError."""
    if not Path(path).is_file() or not Path(path).stat().st_size:
        raise BadRequest(f"there is no vault at {path} yet")
    migrate.check_header(path)
    with translate_errors():
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.pragma("temp_store", 2)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            yield connection
        finally:
            connection.close()


def require_current_schema(connection: Connection) -> None:
    """Raise VaultError unless the vault has the schema of this memd."""
    version = int(connection.pragma("user_version"))
    if version != len(migrate.migrations()):
        raise VaultError(
            f"the vault has schema {version}, this memd {len(migrate.migrations())};"
            " `memd restart` brings it up to date"
        )


# MERGED from memd.store.copies:
# MERGED Copies of a vault: made while it is written to, and proved whole before anybody relies on them.
# MERGED
# MERGED A copy is taken from one snapshot, page by page, so it is the vault of one moment and nobody waits for
# MERGED it. Not here: where copies lie and what they are called (daemon/backup.py).


_PAGES = 256
"""Pages a slice: a megabyte."""
Progress = Callable[[int, int], None]
"""Told the pages done and the pages there are."""
RowCounts = dict[str, int]


def copy_vault(vault: str, target: str, progress: Progress) -> RowCounts:
    """Copy a vault to a file that must not exist; table → rows, as counted in the snapshot.

    The copy is proved: it is whole by SQLite's own check, and has as many rows. Raises BadRequest
    without a vault, FileExistsError, or a VaultError; then there is no file.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        with read_snapshot(vault) as source:
            expected = _counts(source)
            _copy_pages(source, target, progress)
        _compare(verify_vault(target), expected)
        _flush(target)
    except BaseException:
        remove_vault_file(target)
        raise
    return expected


def _compare(found: RowCounts, expected: RowCounts) -> None:
    if found != expected:
        raise VaultCorrupt("the copy has not as many rows as the vault; it was not kept")


def _copy_pages(source: Connection, target: str, progress: Progress) -> None:
    # Of a snapshot, whoever writes to the vault meanwhile does not make the copy begin anew.
    with translate_errors():
        into = apsw.Connection(target, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            into.pragma("synchronous", 0)
            with into.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(_PAGES)
                    progress(backup.page_count - backup.remaining, backup.page_count)
            # One file that is all of it.
            into.pragma("journal_mode", "delete")
        finally:
            into.close()


def verify_vault(path: str) -> RowCounts:
    """Check a vault's file without changing it; table → rows. VaultCorrupt or another VaultError."""
    migrate.check_header(path)
    if not Path(path).is_file() or not Path(path).stat().st_size:
        raise VaultCorrupt(f"{path} is empty")
    with translate_errors():
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            verdict = connection.execute("PRAGMA integrity_check(1)").get
            if verdict != "ok":
                raise VaultCorrupt(f"{path} is damaged: {verdict}")
            if connection.execute("PRAGMA foreign_key_check").fetchall():
                raise VaultCorrupt(f"{path} is damaged: rows refer to rows that are missing")
            return _counts(connection)
        finally:
            connection.close()


def _counts(connection: Connection) -> RowCounts:
    names: list[tuple[Any, ...]] = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        " AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    ).fetchall()
    return {
        name: int(connection.execute(f'SELECT count(*) FROM "{name}"').get) for (name,) in names
    }


def fold_wal(path: str) -> None:
    """Put what stands in a vault's write-ahead log into its file. Nobody else may have it open."""
    with translate_errors():
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            # Before it has read anything, SQLite does not know that there is a log.
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.close()


def read_forgotten(path: str) -> list[tuple[str, int]]:
    """(hash, when) of everything that was forgotten in a vault, read from a snapshot."""
    with read_snapshot(path) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            "SELECT key, at FROM forgotten ORDER BY key"
        ).fetchall()
    return [(key, at) for key, at in rows]


def upgrade_copy(path: str, gone: Sequence[tuple[str, int]], now: int) -> int:
    """Give a copy our schema, and erase in it what was forgotten since; how many memories went.

    `gone`: (hash, when) of what the vault has forgotten that the copy takes the place of.
    """
    database = Database(path, now)
    try:
        erased = database.write_now(lambda tx: _erase_all(tx, gone))
        # What lies beside the vault was made of the one that this takes the place of.
        database.write_now(fulltext.invalidate_snapshot)
        if erased.total():
            database.write_now(fulltext.purge_passages)
            database.write_now(turns.purge_turns)
    finally:
        database.close()
    if erased.total():
        _compact(path)
    return erased["summary"]


def _erase_all(tx: Connection, gone: Sequence[tuple[str, int]]) -> Counter[str]:
    """What was erased, by kind; and with it what it alone was linked with, and a session's words."""
    erased: Counter[str] = Counter()
    nodes: set[tuple[str, str]] = set()
    for key, at in gone:
        for kind in ("event", "summary"):
            number = queries.row_id(tx, kind, key)
            if number is not None:
                nodes |= links.neighbours(tx, kind, str(number))
                _erase(tx, kind, number, at)
                erased[kind] += 1
        ledger.record_forgotten(tx, key, at)
    links.drop_orphan_nodes(tx, nodes)
    for key, _ in gone:
        session_id = queries.row_id(tx, "session", key)
        if session_id is not None:
            projects.forget_session(tx, session_id)
            erased["session"] += 1
    return erased


def _erase(tx: Connection, kind: str, number: int, at: int) -> None:
    if kind == "summary":
        fulltext.remove_passages(tx, number)
        summaries.delete_summary(tx, number)
        return
    event = events.events_by_ids(tx, [number])[number]
    if event.kind is EventKind.PROMPT:
        # A session is titled with the words of a prompt; nobody knows of which one.
        projects.clear_title(tx, event.session_id)
    links.drop_node(tx, "event", str(number))
    events.forget_events(tx, [number], at)


def _compact(path: str) -> None:
    """Write the file anew: what was moved from page to page before it was erased is in it still."""
    with translate_errors():
        connection = apsw.Connection(path)
        try:
            connection.pragma("temp_store", 2)
            connection.execute("VACUUM")
        finally:
            connection.close()


def copy_file(path: str, target: str) -> None:
    """Copy a file that nobody writes to, byte by byte. FileExistsError if there is such a file."""
    with Path(path).open("rb") as source, Path(target).open("xb") as into:
        os.fchmod(into.fileno(), 0o600)
        shutil.copyfileobj(source, into)
    _flush(target)


def remove_vault_file(path: str) -> None:
    """Remove a copy with all that SQLite put beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(path + suffix).unlink(missing_ok=True)


def _flush(path: str) -> None:
    """Have the file on the disk before it gets its name."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        raise VaultError(f"{path} cannot be written to the disk: {error.strerror}") from error
    finally:
        os.close(handle)
