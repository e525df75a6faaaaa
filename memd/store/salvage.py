"""Copy what can still be read of a damaged vault, row by row, into a new one.

Derived tables are left out, because the index computes them again.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from memd.errors import VaultCorrupt
from memd.models import EdgeType, EventKind, Kind, Tier
from memd.store import backup, integrity, ledger
from memd.store.database import Connection, Database, translate_errors
from memd.store.queries import count_rows, insert_row

NUMBERED = (
    "projects", "sessions", "events", "summaries", "runs", "supersessions", "edges", "judgments",
    "uses", "injections", "told", "asks", "reviews", "enforced", "compactions", "unknown_fields",
)  # fmt: skip
KEYED = ("coactivations", "costs", "switches", "aliases", "receipts", "forgotten", "imports")
"""Tables without row numbers: read from the first row up to the first that cannot be read."""
_GAP_ROWS_MAX = 30_000
"""Row numbers tried in a row before the rest of a table is given up: what one interior page leads to."""
_UNREADABLE = (apsw.Error, UnicodeDecodeError, OverflowError, MemoryError)
_VALID = {
    "events": f"json_valid(payload) AND kind IN {tuple(map(str, EventKind))}",
    "summaries": (
        f"json_valid(tags) AND json_valid(files) AND kind IN {tuple(map(str, Kind))}"
        f" AND tier IN {tuple(map(str, Tier))}"
    ),
    "edges": f"json_valid(detail) AND type IN {tuple(map(str, EdgeType))}",
}
"""What memd can read; other rows come from pages that were overwritten in part."""
_LOST_PROJECTS = (
    "INSERT INTO projects SELECT DISTINCT project_id, 'salvaged/' || project_id,"
    " 'salvaged-' || project_id, 'its own row could not be read', ? FROM {table}"
    " WHERE project_id NOT IN (SELECT id FROM projects)"
)
_LOST_SESSIONS = (
    "INSERT INTO sessions (id, uid, client, key, project_id, started_at, last_event_at)"
    " SELECT session_id, 'salvaged-' || session_id, 'salvaged', session_id,"
    " (SELECT id FROM projects ORDER BY id LIMIT 1), min(at), max(at) FROM {table}"
    " WHERE session_id IS NOT NULL AND session_id NOT IN (SELECT id FROM sessions) GROUP BY 1"
)


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Table → rows. `lost` counts what is known to be missing."""

    copied: dict[str, int]
    lost: dict[str, int]


def salvage(damaged: str, target: str, now: int) -> Salvaged:
    """Copy what can be read of `damaged`, itself a copy, into the new vault `target`.

    Raises VaultCorrupt if nothing can be read; then there is no `target`.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        Database(target, now).close()
        with (
            translate_errors(),
            _open_damaged(damaged) as source,
            contextlib.closing(apsw.Connection(target)) as into,
        ):
            made = _copy_tables(source, into, now)
    except BaseException:
        backup.remove_vault_file(target)
        raise
    if not any(made.copied[name] for name in ("events", "summaries", "receipts")):
        backup.remove_vault_file(target)
        raise VaultCorrupt(
            f"{damaged}: nothing of it can be read; `memd restore FILE` takes a backup"
        )
    return made


def salvage_forgotten(damaged: str) -> list[tuple[str, int]]:
    """(hash, when) of what was forgotten, as far as it can be read of a damaged copy."""
    found: list[tuple[str, int]] = []
    with contextlib.suppress(*_UNREADABLE), _open_damaged(damaged) as source:
        for key, at in source.execute("SELECT key, at FROM forgotten"):
            found.append((str(key), int(at)))
    return found


@contextlib.contextmanager
def _open_damaged(path: str) -> Iterator[Connection]:
    with contextlib.closing(apsw.Connection(path)) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        # With it SQLite reads a file that is shorter than it says, and a schema with gaps.
        connection.pragma("writable_schema", 1)
        connection.pragma("query_only", 1)
        yield connection


def _copy_tables(source: Connection, into: Connection, now: int) -> Salvaged:
    into.pragma("foreign_keys", 0)
    into.execute("BEGIN IMMEDIATE")
    expected = {table: _copy_rows(source, into, table) for table in NUMBERED + KEYED}
    for table, condition in _VALID.items():
        into.execute(f"DELETE FROM {table} WHERE NOT coalesce({condition}, 0)")
    _replace_lost_parents(into, now)
    integrity.remove_orphans(into)
    _balance_ledger(into)
    # A number that a user may have written down is never given again.
    with contextlib.suppress(*_UNREADABLE):
        into.executemany(
            "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1 AND ?2 > 0",
            source.execute("SELECT name, CAST(seq AS INTEGER) FROM sqlite_sequence").fetchall(),
        )
    into.execute("COMMIT")
    into.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    copied = {table: count_rows(into, table) for table in expected}
    lost = {table: count - copied[table] for table, count in expected.items()}
    return Salvaged(copied, {table: count for table, count in lost.items() if count > 0})


def _copy_rows(source: Connection, into: Connection, table: str) -> int:
    """Copy what can be read of a table; how many rows it had at least."""
    theirs: set[str] = set()
    with contextlib.suppress(*_UNREADABLE):
        theirs |= {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    names = [row[1] for row in into.execute(f"PRAGMA table_info({table})") if row[1] in theirs]
    if not names:  # an earlier schema, or nothing that names the table
        return 0
    columns = ", ".join(names)
    has_gap = False
    for row in _read_rows(source, table, columns):
        try:
            if row:
                insert_row(into, table, dict(zip(names, row, strict=True)), or_ignore=True)
            else:
                has_gap = True
        except apsw.Error:  # a value that does not fit its column
            has_gap = True
    found = count_rows(into, table) + has_gap
    with contextlib.suppress(*_UNREADABLE):
        # An index may be whole where its table is not.
        return max(found, count_rows(source, table))
    return found


def _read_rows(source: Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that can be read, and an empty one for each place where some cannot."""
    if table in KEYED:
        try:
            yield from source.execute(f"SELECT {columns} FROM {table}")
        except _UNREADABLE:
            yield ()
        return
    query = f"SELECT rowid, {columns} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
    after = failures = 0
    while failures < _GAP_ROWS_MAX:
        try:
            for row in source.execute(query, (after,)):
                if row[0] <= after:
                    raise apsw.CorruptError  # a page that leads back
                after, failures = row[0], 0
                yield row[1:]
        except _UNREADABLE:
            if not failures:
                yield ()
            after, failures = after + 1, failures + 1
        else:
            return


def _replace_lost_parents(into: Connection, now: int) -> None:
    """Give each project and session that is lost but referred to a row of which only the id is true."""
    for table in ("sessions", "summaries", "aliases"):
        into.execute(_LOST_PROJECTS.format(table=table), (now,))
    if not count_rows(into, "projects"):
        into.execute("INSERT INTO projects VALUES (1, 'global', 'global', 'salvaged', ?)", (now,))
    for table in ("events", "summaries", "injections"):
        into.execute(_LOST_SESSIONS.format(table=table))
    into.execute("UPDATE supersessions SET run = NULL WHERE run NOT IN (SELECT id FROM runs)")


def _balance_ledger(into: Connection) -> None:
    """Count receipts again from the events that are there, if some were lost."""
    balance = ledger.balance(into)
    if 2 * balance["received"] == sum(balance.values()) > 0:
        return
    into.execute("DELETE FROM receipts")
    for outcome in ("received", "stored"):
        into.execute(
            "INSERT INTO receipts SELECT source, ?, '', count(*) FROM events GROUP BY source",
            (outcome,),
        )
