"""The books, what was forgotten, which files were imported, and the vault's own notes."""

from collections.abc import Mapping

import apsw


def record_receipts(
    tx: apsw.Connection, source: str, entries: Mapping[tuple[str, str], int]
) -> None:
    """Add to the books: (outcome, reason) → how many. In the transaction of what they count."""
    tx.executemany(
        "INSERT INTO receipts (source, outcome, reason, count) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT DO UPDATE SET count = count + ?4",
        [(source, outcome, reason, count) for (outcome, reason), count in entries.items()],
    )


def balance(tx: apsw.Connection) -> dict[str, int]:
    """received, stored, duplicate, filtered and refused, over all sources."""
    books = dict.fromkeys(("received", "stored", "duplicate", "filtered", "refused"), 0)
    for outcome, count in tx.execute(
        "SELECT outcome, sum(count) FROM receipts GROUP BY outcome"
    ):
        books[outcome] = int(count)
    return books


def outcome_reasons(tx: apsw.Connection, outcome: str) -> dict[str, int]:
    """Why events had this outcome, and how often."""
    rows = tx.execute(
        "SELECT reason, sum(count) FROM receipts WHERE outcome = ? GROUP BY reason ORDER BY 2 DESC",
        (outcome,),
    )
    return {reason: int(count) for reason, count in rows}


def is_forgotten(tx: apsw.Connection, key: str) -> bool:
    """Whether what has this key was forgotten on purpose."""
    return bool(tx.execute("SELECT EXISTS (SELECT 1 FROM forgotten WHERE key = ?)", (key,)).get)


def has_forgotten(tx: apsw.Connection) -> bool:
    """Whether anything at all was forgotten on purpose."""
    return bool(tx.execute("SELECT EXISTS (SELECT 1 FROM forgotten)").get)


def record_forgotten(tx: apsw.Connection, key: str, now: int) -> None:
    """Remember, by its hash alone, that this was forgotten."""
    tx.execute("INSERT OR IGNORE INTO forgotten VALUES (?, ?)", (key, now))


def remove_forgotten(tx: apsw.Connection, key: str) -> None:
    """Somebody said it again, on purpose."""
    tx.execute("DELETE FROM forgotten WHERE key = ?", (key,))


def imported_files(tx: apsw.Connection) -> dict[str, tuple[int, int]]:
    """Path → (size, modification time) of every file that was read to its end."""
    rows = tx.execute("SELECT path, size, modified_at FROM imports")
    return {path: (int(size), int(modified)) for path, size, modified in rows}


def mark_imported(
    tx: apsw.Connection, path: str, size: int, modified_at: int, now: int
) -> None:
    """Remember that a file was read to its end, as it was then."""
    tx.execute(
        "INSERT OR REPLACE INTO imports VALUES (?, ?, ?, ?)", (path, size, modified_at, now)
    )


def probe_write(tx: apsw.Connection) -> None:
    """Write one row that means nothing, to see whether that is possible."""
    write_note(tx, "touched", str(int(read_note(tx, "touched") or 0) + 1))


def read_note(tx: apsw.Connection, key: str) -> str | None:
    """A note that the vault keeps about itself."""
    value = tx.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return None if value is None else str(value)


def write_note(tx: apsw.Connection, key: str, value: str) -> None:
    """Keep a note."""
    tx.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
