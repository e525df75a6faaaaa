"""What can still be read of a damaged vault, row by row, into a new one. The damaged file is only copied.

Every page that is gone takes the rows along that stood on it, and no others: rows are read in order of
their numbers, past each place that cannot be read. Derived rows are left behind, for the index makes
them anew; what referred to a lost row gets a stand-in for it, or goes. Not here: the files (daemon/backup.py).
"""

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import apsw

from memd.errors import VaultCorrupt
from memd.models import EdgeType, EventKind, Kind, Tier
from memd.store import books, copies, grafting, sweeping
from memd.store.database import Connection, Database, translated

TRUTH = (  # what is referred to comes first
    "projects", "sessions", "events", "summaries", "runs", "supersessions", "edges", "judgments",
    "uses", "coactivations", "injections", "compactions", "switches", "aliases", "receipts",
    "forgotten", "imports",
)  # fmt: skip
DERIVED = (  # made anew by the rooms whose they are
    "changes", "terms", "passages", "vectors", "spaces", "entities", "cues", "forms", "saved",
    "unsaved", "labels", "meta",
)  # fmt: skip
_FARTHEST = 2**40  # no number of a row is as large
_AT = "BETWEEN 0 AND 253402300800000"


def _words(kind: type[StrEnum]) -> str:
    return "(" + ", ".join(f"'{one.value}'" for one in kind) + ")"


_SENSE = {
    "projects": f"id > 0 AND key <> '' AND created_at {_AT}",
    "sessions": f"id > 0 AND key <> '' AND project_id > 0 AND last_event_at {_AT}",
    "events": (
        f"id > 0 AND session_id > 0 AND kind IN {_words(EventKind)} AND json_valid(payload)"
        f" AND json_type(payload) = 'object' AND at {_AT}"
    ),
    "summaries": (
        f"id > 0 AND project_id > 0 AND kind IN {_words(Kind)} AND tier IN {_words(Tier)}"
        f" AND json_valid(tags) AND json_valid(files) AND at {_AT} AND title <> ''"
    ),
    "edges": f"type IN {_words(EdgeType)} AND json_valid(detail) AND at {_AT}",
    "receipts": "count >= 0 AND outcome IN ('received', 'stored', 'duplicate', 'filtered', 'refused')",
}
"""What a row must be to be one: what stood on a page that was another's is none."""
_NO_LESS = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?"
_STAND_INS = (
    "INSERT INTO projects SELECT DISTINCT {column}, 'salvaged/' || {column}, 'salvaged-' || {column},"
    " 'its own row could not be read', ?1 FROM {table}"
    " WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM projects)"
)
_SESSIONS = (
    "INSERT INTO sessions (id, uid, client, key, project_id, started_at, last_event_at)"
    " SELECT session_id, 'salvaged-' || session_id, 'salvaged', session_id,"
    " (SELECT id FROM projects ORDER BY id LIMIT 1), min(at), max(at) FROM {table}"
    " WHERE session_id IS NOT NULL AND session_id NOT IN (SELECT id FROM sessions) GROUP BY 1"
)


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What came of it: table → rows. `lost` counts what is known to be missing."""

    kept: dict[str, int]
    lost: dict[str, int]


def salvage(damaged: str, target: str, now: int) -> Salvaged:
    """Read what can be read of `damaged`, of which nobody else needs the file, into the vault `target`.

    `damaged` is a copy: it may be written to. `target` is made. VaultCorrupt if nothing can be read.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        Database(target, now).close()
        grafting.make_readable(damaged, target, TRUTH)
        with (
            grafting.source(damaged) as source,
            translated(),
            contextlib.closing(apsw.Connection(target)) as into,
        ):
            made = _pour(source, into, now)
    except BaseException:
        copies.discard(target)
        raise
    if not any(made.kept[name] for name in ("events", "summaries", "receipts")):
        copies.discard(target)
        raise VaultCorrupt(f"{damaged}: nothing of it can be read")
    return made


def forgotten(damaged: str) -> list[tuple[str, int]]:
    """(hash, when) of what was forgotten, as far as it can be read of a damaged copy."""
    found: list[tuple[str, int]] = []
    with contextlib.suppress(*grafting.UNREADABLE), grafting.source(damaged) as source:
        found += [
            (str(row[0]), int(row[1]))
            for row in _sorted(source, "forgotten", ("key", "at"))
            if not isinstance(row, int)
        ]
    return found


def _pour(source: Connection, into: Connection, now: int) -> Salvaged:
    into.pragma("foreign_keys", 0)
    into.execute("BEGIN IMMEDIATE")
    kept, lost = {}, {}
    for table in TRUTH:
        kept[table], lost[table] = _table(source, into, table)
    for table, count in _sift(into).items():
        kept[table] -= count
        lost[table] += count
    _stand_in(into, now)
    for table, count in _drop(into).items():
        kept[table] -= count
        lost[table] += count
    _close_books(into)
    _keep_numbers(source, into)
    into.execute("COMMIT")
    into.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return Salvaged(kept, {table: count for table, count in lost.items() if count})


def _table(source: Connection, into: Connection, table: str) -> tuple[int, int]:
    """Copy what can be read of a table; (rows copied, rows that could not be)."""
    columns = _columns(source, into, table)
    if not columns:
        return 0, 0
    has_numbers = (
        "WITHOUT ROWID"
        not in into.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
    )
    rows = _numbered if has_numbers else _sorted
    gap = 0
    insert = (
        f"INSERT OR IGNORE INTO {table} ({', '.join(columns)})"
        f" VALUES ({', '.join('?' * len(columns))})"
    )
    for row in rows(source, table, columns):
        if isinstance(row, int):
            gap += row
            continue
        try:
            into.execute(insert, row)
        except apsw.Error:
            gap += 1  # a value that is none of its column's
    kept = int(into.execute(f"SELECT count(*) FROM {table}").get)
    with contextlib.suppress(*grafting.UNREADABLE):
        # An index may be whole where its table is not.
        counted = int(source.execute(f"SELECT count(*) FROM {table}").get)
        gap = max(counted - kept, 0 if has_numbers and not gap else 1 if gap else 0)
    return kept, gap


def _columns(source: Connection, into: Connection, table: str) -> Sequence[str]:
    """The columns that both have: the damaged vault may be of an earlier schema."""
    theirs: set[str] = set()
    with contextlib.suppress(*grafting.UNREADABLE):
        theirs |= {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    return [row[1] for row in into.execute(f"PRAGMA table_info({table})") if row[1] in theirs]


def _numbered(
    source: Connection, table: str, columns: Sequence[str]
) -> Iterator[tuple[Any, ...] | int]:
    """The rows in order of their numbers; in between, how many numbers had to be passed over."""
    after = 0
    query = f"SELECT rowid, {', '.join(columns)} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY 1"
    while True:
        try:
            for row in source.execute(query, (after,)):
                if row[0] <= after:
                    raise apsw.CorruptError  # a page that leads back
                after = row[0]
                yield row[1:]
        except grafting.UNREADABLE:
            beyond = _beyond(source, table, after)
            if beyond is None:
                yield max(1, _last(source, table) - after)
                return
            yield beyond - after
            after = beyond
        else:
            return


def _last(source: Connection, table: str) -> int:
    """The highest number that a table ever gave, if that is known; else 0."""
    with contextlib.suppress(*grafting.UNREADABLE):
        found = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get
        return found if isinstance(found, int) else 0
    return 0


def _beyond(source: Connection, table: str, after: int) -> int | None:
    """The lowest number behind `after` from which on rows can be read again, less one."""
    low, step = after, 1
    while not _reads(source, table, after + step):
        low, step = after + step, step * 2
        if step > _FARTHEST:
            return None
    high = after + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _reads(source, table, middle) else (middle, high)
    return high


def _reads(source: Connection, table: str, after: int) -> bool:
    try:
        query = f"SELECT rowid, * FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY 1 LIMIT 1"
        found: Any = source.execute(query, (after,)).fetchall()
    except grafting.UNREADABLE:
        return False
    return bool(found and found[0][0] > after) or after >= _FARTHEST // 2


def _sorted(
    source: Connection, table: str, columns: Sequence[str]
) -> Iterator[tuple[Any, ...] | int]:
    """The rows from the first up to what cannot be read, then from the last down to it."""
    wanted = ", ".join(columns)
    try:
        yield from source.execute(f"SELECT {wanted} FROM {table}")
    except grafting.UNREADABLE:
        yield 1
        keys = source.execute(f"PRAGMA table_info({table})").fetchall()
        order = ", ".join(f"{row[1]} DESC" for row in keys if row[5])
        with contextlib.suppress(*grafting.UNREADABLE):
            yield from source.execute(f"SELECT {wanted} FROM {table} ORDER BY {order}")


def _sift(into: Connection) -> Counter[str]:
    """Take away rows that make no sense; table → rows."""
    gone: Counter[str] = Counter()
    for table, sense in _SENSE.items():
        into.execute(f"DELETE FROM {table} WHERE NOT coalesce({sense}, 0)")
        gone[table] = into.changes()
    return gone


def _stand_in(into: Connection, now: int) -> None:
    """Give what is referred to and lost a row of which only the number is true."""
    for table in ("sessions", "summaries", "aliases"):
        into.execute(_STAND_INS.format(table=table, column="project_id"), (now,))
    if not into.execute("SELECT count(*) FROM projects").get:
        into.execute(
            "INSERT INTO projects VALUES (1, 'global', 'global', 'salvaged', ?)", (now,)
        )
    for table in ("events", "summaries", "injections"):
        into.execute(_SESSIONS.format(table=table))
    into.execute("UPDATE supersessions SET run = NULL WHERE run NOT IN (SELECT id FROM runs)")


def _drop(into: Connection) -> Counter[str]:
    """Take away what the schema would have taken away with what is lost; table → rows."""
    gone: Counter[str] = Counter()
    for table, number in sweeping.broken(into):
        parent, column, there, _ = sweeping.reference(into, table, number)
        into.execute(
            f"DELETE FROM {table} WHERE {column} IS NOT NULL"
            f" AND {column} NOT IN (SELECT {there} FROM {parent})"
        )
        gone[table] += into.changes()
    into.execute(f"DELETE {sweeping.LOST_EDGE}")
    gone["edges"] += into.changes()
    return gone


def _close_books(into: Connection) -> None:
    """Where the books lost a page, begin them anew from the events that are there."""
    balance = books.balance(into)
    if 2 * balance["received"] == sum(balance.values()) > 0:
        return
    into.execute("DELETE FROM receipts")
    for outcome in ("received", "stored"):
        into.execute(
            "INSERT INTO receipts SELECT source, ?1, '', count(*) FROM events GROUP BY source",
            (outcome,),
        )


def _keep_numbers(source: Connection, into: Connection) -> None:
    """A number that somebody may have written down is never given again."""
    with contextlib.suppress(*grafting.UNREADABLE):
        for name, last in source.execute("SELECT name, seq FROM sqlite_sequence").fetchall():
            if name in TRUTH and isinstance(last, int):
                into.execute(
                    "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
                    (name, last),
                )
