"""The ledger of received events, what was forgotten, which files were imported, and the vault's notes."""

import json
from collections.abc import Mapping

from apsw import Connection

from memd.store.queries import fetch_column, has_rows


def record_receipts(tx: Connection, source: str, entries: Mapping[tuple[str, str], int]) -> None:
    """Add to the ledger, (outcome, reason) → count, in the transaction of the events that it counts."""
    tx.executemany(
        "INSERT INTO receipts (source, outcome, reason, count) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT DO UPDATE SET count = count + ?4",
        [(source, outcome, reason, count) for (outcome, reason), count in entries.items()],
    )


def balance(tx: Connection) -> dict[str, int]:
    """received, stored, duplicate, filtered and refused, over all sources."""
    totals = dict.fromkeys(("received", "stored", "duplicate", "filtered", "refused"), 0)
    totals.update(tx.execute("SELECT outcome, sum(count) FROM receipts GROUP BY outcome"))
    return totals


def outcome_reasons(tx: Connection, outcome: str) -> dict[str, int]:
    """Reason → how many events had this outcome for it."""
    sql = (
        "SELECT reason, sum(count) FROM receipts WHERE outcome = ? GROUP BY reason ORDER BY 2 DESC"
    )
    return dict(tx.execute(sql, (outcome,)))


def unknown_kinds(tx: Connection) -> dict[str, int]:
    """Name, client and version of a kind of event that memd does not know → how many of it were stored."""
    return {kind: count for kind, count in outcome_reasons(tx, "stored").items() if kind}


def is_forgotten(tx: Connection, key: str) -> bool:
    """Return whether the row with this key was forgotten on purpose."""
    return has_rows(tx, "forgotten WHERE key = ?", (key,))


def has_forgotten(tx: Connection) -> bool:
    """Return whether anything at all was forgotten on purpose."""
    return has_rows(tx, "forgotten")


def record_forgotten(tx: Connection, key: str, now: int) -> None:
    """Remember, by its hash alone, that this was forgotten."""
    tx.execute("INSERT OR IGNORE INTO forgotten VALUES (?, ?)", (key, now))


def remove_forgotten(tx: Connection, key: str) -> None:
    """Accept this again, because a user or an agent stated it again on purpose."""
    tx.execute("DELETE FROM forgotten WHERE key = ?", (key,))


def imported_files(tx: Connection) -> dict[str, tuple[int, int]]:
    """Path → (size, modification time) of every file that was read to its end."""
    rows = tx.execute("SELECT path, size, modified_at FROM imports")
    return {path: (int(size), int(modified)) for path, size, modified in rows}


def mark_imported(tx: Connection, path: str, size: int, modified_at: int, now: int) -> None:
    """Remember that a file was read to its end, with its size and time of then."""
    tx.execute("INSERT OR REPLACE INTO imports VALUES (?, ?, ?, ?)", (path, size, modified_at, now))


FORGOTTEN = "forgotten:"
"""Begins the names of the notes that keep when something of a project was forgotten."""
REPOSITORY = "repository "
"""Begins the names of the notes by which a project's repository is known again: its first commit and its origins."""
TOLD = "told "
"""Begins the names of the notes that keep what sessions were told."""
UNTOLD = "untold "
"""Begins the names of the notes that keep why sessions were told nothing."""


def read_note(tx: Connection, key: str) -> str | None:
    """A note that the vault has about itself."""
    value = tx.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return None if value is None else str(value)


def write_note(tx: Connection, key: str, value: str) -> None:
    """Write a note, replacing the former one."""
    tx.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def drop_note(tx: Connection, key: str) -> None:
    """Remove a note."""
    tx.execute("DELETE FROM meta WHERE key = ?", (key,))


def drop_notes(tx: Connection, beginning: str) -> None:
    """Remove the notes whose names begin so."""
    tx.execute("DELETE FROM meta WHERE substr(key, 1, length(?1)) = ?1", (beginning,))


def note_names(tx: Connection, beginning: str) -> list[str]:
    """Return what follows this beginning in the names of the notes that have it."""
    sql = "SELECT substr(key, length(?1) + 1) FROM meta WHERE key >= ?1 AND key < ?1 || char(1114111) ORDER BY key"
    return fetch_column(tx, sql, (beginning,))


def note_forgotten(tx: Connection, project_id: int, *times: int) -> None:
    """Note when something of a project was forgotten: what stays of it are hashes, which tell of no project."""
    key = f"{FORGOTTEN}{project_id}"
    write_note(tx, key, json.dumps(sorted({*_read_times(tx, key), *times})))


def move_forgotten(tx: Connection, project_id: int, into: int | None) -> None:
    """Drop these notes of a project that goes, whose number another one will have; `into`: the one that it becomes part of."""
    key = f"{FORGOTTEN}{project_id}"
    times = _read_times(tx, key)
    if into is not None and times:
        note_forgotten(tx, into, *times)
    drop_note(tx, key)


def _read_times(tx: Connection, key: str) -> list[int]:
    found = json.loads(read_note(tx, key) or "[]")
    # Versions before noted the last time alone.
    return found if isinstance(found, list) else [found]


_WATCHED = "watched:"
"""Begins the names of the notes about watched folders."""
_MARK = "import:markdown:"
"""Before the paths of the notes in them."""


def watched_folders(tx: Connection) -> dict[str, bool]:
    """Folder that the user has watched → whether each heading in it makes a memory of its own."""
    return {path: read_note(tx, _WATCHED + path) == "headings" for path in note_names(tx, _WATCHED)}


def watch_folder(tx: Connection, path: str, *, by_headings: bool) -> None:
    """Have a folder watched from now on; split in another way, its files are read again."""
    if watched_folders(tx).get(path, False) is not by_headings:
        where = "UPDATE imports SET size = 0, modified_at = 0 WHERE substr(path, 1, ?1) = ?2"
        tx.execute(where, (len(begin := f"{_MARK}{path}/"), begin))
    write_note(tx, _WATCHED + path, "headings" if by_headings else "sections")


def count_imported(tx: Connection, path: str) -> int:
    """Count the notes in a folder that were read to their end and are still there."""
    begin = f"{_MARK}{path}/"
    where = "imports WHERE substr(path, 1, ?1) = ?2 AND modified_at > 0"
    return int(tx.execute(f"SELECT count(*) FROM {where}", (len(begin), begin)).get)


def unwatch_folder(tx: Connection, path: str) -> None:
    """Have a folder watched no more."""
    drop_note(tx, _WATCHED + path)


def probe_write(tx: Connection) -> None:
    """Write a row without meaning, to see whether the vault can be written."""
    write_note(tx, "touched", str(int(read_note(tx, "touched") or 0) + 1))
