"""Online backup: copies of a vault, and their verification and upgrade.

A copy is taken page by page from one snapshot, so it is the vault at one moment, and writers do not
wait for it.
"""

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from memd.errors import BadRequest, VaultCorrupt, VaultError
from memd.models import TITLE_EVENT, EventKind
from memd.paths import flush
from memd.store import database, erasure, events, fulltext, ledger, links, projects
from memd.store.database import BUSY_TIMEOUT_MS, Connection, open_database, translate_errors
from memd.store.queries import count_rows, fetch_all, fetch_column, has_rows, row_id

_PAGES_PER_STEP = 256
"""Pages copied at a time: a megabyte."""
Progress = Callable[[int, int], None]
"""Called with the pages that are done and all pages."""
RowCounts = dict[str, int]
"""Table → number of rows."""


@contextlib.contextmanager
def read_snapshot(path: str) -> Iterator[Connection]:
    """A connection in a read transaction, which may run in another process than the daemon.

    Raises BadRequest without a vault, or a VaultError.
    """
    if not Path(path).is_file() or not Path(path).stat().st_size:
        raise BadRequest(f"there is no vault at {path} yet")
    database.check_header(path)
    with _open_file(path) as connection:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.pragma("temp_store", 2)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield connection


@contextlib.contextmanager
def _open_file(path: str, flags: int = apsw.SQLITE_OPEN_READWRITE) -> Iterator[Connection]:
    with translate_errors(), contextlib.closing(apsw.Connection(path, flags=flags)) as one:
        yield one


def require_current_schema(connection: Connection) -> None:
    """Raise VaultError unless the vault has the schema of this memd."""
    version, ours = int(connection.pragma("user_version")), len(database.migrations())
    if version != ours:
        raise VaultError(
            f"the vault has schema {version}, this memd {ours}; `memd restart` brings it up to date"
        )


def copy_vault(vault: str, target: str, progress: Progress) -> RowCounts:
    """Copy a vault to a file that must not exist; the rows counted in the snapshot.

    The copy is verified: SQLite's own check passes, and it has as many rows. Raises BadRequest
    without a vault, FileExistsError, or a VaultError; then there is no file.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        with read_snapshot(vault) as source:
            expected = _count_tables(source)
            _copy_pages(source, target, progress)
        _check_copy(target, expected)
        _sync_file(target)
    except BaseException:
        remove_vault_file(target)
        raise
    return expected


def _check_copy(target: str, expected: RowCounts) -> None:
    if verify_vault(target) != expected:
        raise VaultCorrupt("the copy does not have as many rows as the vault; it was removed")


def _copy_pages(source: Connection, target: str, progress: Progress) -> None:
    # The source is a snapshot, so writes to the vault do not make the backup start again.
    with _open_file(target) as into:
        into.pragma("synchronous", 0)
        with into.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES_PER_STEP)
                progress(backup.page_count - backup.remaining, backup.page_count)
        # Without a write-ahead log, everything is in the one file.
        into.pragma("journal_mode", "delete")


def verify_vault(path: str) -> RowCounts:
    """Check a vault's file without changing it, and count its rows. VaultCorrupt or another VaultError."""
    database.check_header(path)
    if not Path(path).is_file() or not Path(path).stat().st_size:
        raise VaultCorrupt(f"{path} is empty")
    with _open_file(path, apsw.SQLITE_OPEN_READONLY) as connection:
        verdict = connection.execute("PRAGMA integrity_check(1)").get
        if verdict != "ok":
            raise VaultCorrupt(f"{path} is damaged: {verdict}")
        if connection.execute("PRAGMA foreign_key_check").fetchall():
            raise VaultCorrupt(f"{path} is damaged: rows refer to rows that are missing")
        return _count_tables(connection)


def _count_tables(connection: Connection) -> RowCounts:
    sql = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        " AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    )
    return {name: count_rows(connection, f'"{name}"') for name in fetch_column(connection, sql)}


def fold_wal(path: str) -> None:
    """Move a vault's write-ahead log into its file. No other process may have it open."""
    with _open_file(path) as connection:
        # Before its first read, SQLite does not know that there is a log.
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def read_forgotten(path: str) -> list[tuple[str, int]]:
    """(hash, time) of everything that was forgotten in a vault, read from a snapshot."""
    with read_snapshot(path) as connection:
        return fetch_all(connection, "SELECT key, at FROM forgotten ORDER BY key")


def upgrade_copy(path: str, forgotten: Sequence[tuple[str, int]], now: int) -> int:
    """Migrate a copy to our schema and erase in it what was forgotten since; how many memories.

    `forgotten`: (hash, time) of what was forgotten in the vault that the copy replaces.
    """
    with open_database(path, now) as database:
        erased = database.write_now(lambda tx: _erase_forgotten(tx, forgotten))
        # The snapshot beside the vault belongs to the vault that the copy replaces.
        database.write_now(fulltext.invalidate_snapshot)
    if erased.total():
        purge_copy(path, now)
    return erased["summary"]


def purge_copy(path: str, now: int) -> None:
    """Rewrite a copy, so that no byte of what was erased or rewritten is left in it."""
    with open_database(path, now) as database:
        database.write_now(fulltext.purge_passages)
        database.write_now(events.purge_turns)
    # SQLite overwrites deleted rows, but not what it moved from page to page before.
    with _open_file(path) as connection:
        connection.pragma("temp_store", 2)
        connection.execute("VACUUM")


# ── What was scrubbed since ────────────────────────────────────────────────────────────────────

SECRETS_SCRUBBED_NOTE = "secrets scrubbed"
"""The note of by which version of the rules of redaction all of a vault was written or scrubbed."""
_SAME_ROW = {
    "events": "c.key = p.key",
    "summaries": "c.uid = p.uid",
    "sessions": "c.uid = p.uid",
    "projects": "c.key = p.key",
    "edges": (
        "c.from_kind = p.from_kind AND c.from_id = p.from_id AND c.type = p.type"
        " AND c.to_kind = p.to_kind AND c.to_id = p.to_id"
    ),
    **dict.fromkeys(
        ("sync_records", "unknown_fields"),
        "c.kind = p.kind AND c.one = p.one AND c.link = p.link AND c.other = p.other",
    ),
}
"""How a row of a copy (c) is recognised in the vault (p); the others have the same id and time."""
_WAS_ERASED = "(instr(p.{0}, '[REDACTED:') OR p.{0} = '" + erasure.FORGOTTEN + "' OR p.{0} IS NULL)"
_LOST_QUOTE = (
    "({0} ->> '$.quote' IS NULL AND c.detail ->> '$.quote' IS NOT NULL"
    " OR {0} ->> '$.reason' IS NULL AND c.detail ->> '$.reason' IS NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class ChangedText:
    """A text of a copy that was scrubbed or forgotten in the vault since. `now` None: it is NULL there."""

    table: str
    id: int
    """The row in the copy."""
    column: str
    then: str
    now: str | None
    is_json: bool


def read_changed(path: str, vault: str) -> list[ChangedText]:
    """The texts of a copy in whose place the vault has a placeholder or nothing. Raises a VaultError."""
    found = []
    with _open_file(path) as copy:
        copy.execute("ATTACH ? AS present", (vault,))
        for table in erasure.TEXT_TABLES:
            same = _SAME_ROW.get(table.name, "c.id = p.id AND c.at = p.at")
            for column in table.columns:
                erased = _WAS_ERASED.format(column)
                if (table.name, column) == ("edges", "detail"):
                    erased = f"({erased} OR {_LOST_QUOTE.format('p.detail')})"
                rows = copy.execute(
                    f"SELECT c.id, c.{column}, p.{column} FROM main.{table.name} c"
                    f" JOIN present.{table.name} p ON {same}"
                    f" WHERE c.{column} IS NOT p.{column} AND c.{column} IS NOT NULL AND {erased}"
                )
                found += [
                    ChangedText(table.name, int(number), column, then, now, column in table.json)
                    for number, then, now in rows
                ]
    return found


def has_scrubbed_secrets(vault: str) -> bool:
    """Return whether the rules of redaction were applied to all of a vault. Raises a VaultError."""
    with read_snapshot(vault) as tx:
        return ledger.read_note(tx, SECRETS_SCRUBBED_NOTE) is not None


def note_scrubbed_secrets(tx: Connection, version: int) -> None:
    """Note that this version of the rules of redaction was applied to all of this vault."""
    ledger.write_note(tx, SECRETS_SCRUBBED_NOTE, str(version))


def note_rules_of_empty(tx: Connection, version: int) -> None:
    """Note the rules of redaction by which all of an empty vault will be written."""
    if not _is_used(tx):
        note_scrubbed_secrets(tx, version)


def _is_used(tx: Connection) -> bool:
    return has_rows(tx, "events") or has_rows(tx, "summaries")


def may_predate_redaction_rules(tx: Connection, version: int) -> bool:
    """Return whether something in a vault may have been written by rules of redaction before this version."""
    noted = ledger.read_note(tx, SECRETS_SCRUBBED_NOTE)
    return int(noted or -1) < version and _is_used(tx)


def write_changed(tx: Connection, changed: Sequence[ChangedText]) -> None:
    """Write into a copy what the vault has now."""
    tables = {table.name: table for table in erasure.TEXT_TABLES}
    for one in changed:
        if one.now is None:
            tx.execute(f"UPDATE {one.table} SET {one.column} = NULL WHERE id = ?", (one.id,))
            continue
        for row in erasure.texts_by_ids(tx, tables[one.table], [one.id]):
            erasure.write_texts(tx, tables[one.table], row, {one.column: one.now})


def _erase_forgotten(tx: Connection, forgotten: Sequence[tuple[str, int]]) -> Counter[str]:
    """Erase rows, the nodes that only they were linked with, and sessions' text; what, by kind."""
    erased: Counter[str] = Counter()
    nodes: set[tuple[str, str]] = set()
    for key, at in forgotten:
        for kind in ("event", "summary"):
            number = row_id(tx, kind, key)
            if number is not None:
                nodes |= links.neighbours(tx, kind, str(number))
                _erase_row(tx, kind, number, at)
                erased[kind] += 1
        ledger.record_forgotten(tx, key, at)
    links.drop_orphan_nodes(tx, nodes)
    erasure.erase_forgotten_names(tx, {key for key, _ in forgotten})
    for key, _ in forgotten:
        session_id = row_id(tx, "session", key)
        if session_id is not None:
            projects.forget_session(tx, session_id)
            erased["session"] += 1
    return erased


def _erase_row(tx: Connection, kind: str, number: int, at: int) -> None:
    if kind == "summary":
        erasure.delete_memory(tx, number)
        return
    event = events.events_by_ids(tx, [number])[number]
    if event.kind is EventKind.PROMPT or event.name == TITLE_EVENT:
        # The session's title is made of a prompt, and this may be the one.
        projects.clear_title(tx, event.session_id)
    links.drop_node(tx, "event", str(number))
    events.forget_events(tx, [number], at)


def copy_file(path: str, target: str) -> None:
    """Copy a file that is not being written, byte by byte. FileExistsError if the target exists."""
    with Path(path).open("rb") as source, Path(target).open("xb") as into:
        os.fchmod(into.fileno(), 0o600)
        shutil.copyfileobj(source, into)
    _sync_file(target)


def remove_vault_file(path: str) -> None:
    """Remove a vault's file and the files that SQLite put beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(path + suffix).unlink(missing_ok=True)


def _sync_file(path: str) -> None:
    try:
        flush(path)
    except OSError as error:
        raise VaultError(f"{path} cannot be written to the disk: {error.strerror}") from error
