"""Selection, text rewriting, ageing, secure deletion."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import anyio.to_thread
import apsw

from memd.models import Kind
from memd.store import fulltext, ledger, summaries, turns
from memd.store.database import Database
from memd.text import PRIVATE, storable

# MERGED from memd.store.cleaning:
# MERGED What was erased leaves no byte: marked in the transaction that erases, cleaned up, and only then unmarked.
# MERGED
# MERGED The words of a deleted row stand on in the full texts' segments and in the write-ahead log until those are
# MERGED written anew. Whoever is killed on the way leaves the mark, and the next daemon cleans up. Not here: what is
# MERGED erased, and when to clean up (capture/cleanup.py, consolidate/eraser.py).


ErasureCause = Literal["forgotten", "private"]
"""Because somebody asked for it, or because a prompt came late that made its turn private."""
_KINDS: tuple[ErasureCause, ...] = ("forgotten", "private")
ErasureMarks = Mapping[ErasureCause, int]
COMPACT_BYTES_MAX = 128 * 1024 * 1024
"""Written anew within some two seconds, and as much memory for as long."""


def mark_erased(tx: apsw.Connection, what: ErasureCause) -> None:
    """Note that something was erased; in the transaction that erases it."""
    ledger.write_note(tx, f"erased {what}", str(_number(tx, f"erased {what}") + 1))
    fulltext.invalidate_snapshot(tx)


def pending_marks(tx: apsw.Connection) -> dict[ErasureCause, int]:
    """The marks of what was erased and not cleaned up behind; each time the number is another one."""
    found = {what: _number(tx, f"erased {what}") for what in _KINDS}
    return {what: n for what, n in found.items() if n != _number(tx, f"cleaned {what}")}


def has_redistilled_private(tx: apsw.Connection) -> bool:
    """Whether nothing is remembered any more of what private prompts took out: all is distilled anew."""
    pending = (
        "SELECT EXISTS (SELECT 1 FROM events WHERE distilled = 0 AND kind = 'prompt'"
        " AND payload ->> '$.prompt' = ?)"
    )
    return not fulltext.count_changes(tx) and not tx.execute(pending, (PRIVATE,)).get


async def clean_up(db: Database, over: ErasureMarks) -> None:
    """Write the full texts, the file and the log anew, and take these marks off.

    SQLite overwrites what is deleted, but not what it has moved from one page to another before that: a
    file that is not large is written anew for it, as by `memd vacuum`, which does it for any.
    They stay if a reader keeps the log from being emptied: then it is due again. Raises a VaultError.
    """
    await db.write(fulltext.purge_passages)
    await db.write(turns.purge_turns)
    if await anyio.to_thread.run_sync(db.size) <= COMPACT_BYTES_MAX:
        await db.compact()
    if await db.truncate_wal():
        await db.write(lambda tx: _unmark(tx, over))


def _unmark(tx: apsw.Connection, over: ErasureMarks) -> None:
    for what, number in over.items():
        ledger.write_note(tx, f"cleaned {what}", str(number))


def _number(tx: apsw.Connection, key: str) -> int:
    return int(ledger.read_note(tx, key) or 0)


# MERGED from memd.store.selecting:
# MERGED Which memories, events and sessions somebody means by a session, a project or a time. Reads only.
# MERGED
# MERGED Both ends of a time are included. Not here: what becomes of them.


@dataclass(frozen=True, slots=True)
class ErasureBounds:
    """Where and when; None means no bound. Times are UTC milliseconds."""

    project_id: int | None = None
    session_id: int | None = None
    since: int | None = None
    until: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all of a session or a project is meant, whenever it happened."""
        has_place = self.project_id is not None or self.session_id is not None
        return has_place and self.since is None and self.until is None


def summaries_within(tx: apsw.Connection, bounds: ErasureBounds) -> list[int]:
    """The ids of the summaries within these bounds, in order."""
    where, values = _where(bounds, "s")
    rows = tx.execute(f"SELECT s.id FROM summaries s WHERE {where} ORDER BY s.id", values)
    return [int(row[0]) for row in rows]


def summaries_containing(
    tx: apsw.Connection, bounds: ErasureBounds, words: tuple[str, ...]
) -> list[int]:
    """The ids of the summaries within these bounds in which every word stands, whatever its case."""
    where, values = _where(bounds, "s")
    wanted = [word.casefold() for word in words]
    rows: Iterator[tuple[int, str]] = tx.execute(
        "SELECT s.id, concat_ws(char(10), s.title, s.body, s.topic_key, s.tags, s.files)"
        f" FROM summaries s WHERE {where} ORDER BY s.id",
        values,
    )
    return [
        int(number)
        for number, text in rows
        if (folded := text.casefold()) and all(word in folded for word in wanted)
    ]


def events_within(tx: apsw.Connection, bounds: ErasureBounds) -> list[int]:
    """The ids of the events within these bounds, in order."""
    where, values = _where(bounds, "e", "n.project_id")
    rows = tx.execute(
        "SELECT e.id FROM events e JOIN sessions n ON n.id = e.session_id"
        f" WHERE {where} ORDER BY e.id",
        values,
    )
    return [int(row[0]) for row in rows]


def sessions_within(tx: apsw.Connection, bounds: ErasureBounds) -> list[int]:
    """The ids of the sessions that are meant as a whole, in order."""
    if not bounds.is_whole:
        return []
    rows = tx.execute(
        "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR id = ?2)"
        " ORDER BY id",
        (bounds.project_id, bounds.session_id),
    )
    return [int(row[0]) for row in rows]


def oldest_time(
    tx: apsw.Connection, memories: Sequence[int], happened: Sequence[int], begun: Sequence[int]
) -> int | None:
    """When the first of these summaries, events and sessions was kept, as far as is known.

    UTC milliseconds; None without any. No file that is older holds one of them.
    """
    found: list[int] = []
    for table, column, ids in (
        ("summaries", "min(at, created_at)", memories),
        ("events", "at", happened),
        ("sessions", "started_at", begun),
    ):
        sql = f"SELECT min({column}) FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
        first = tx.execute(sql, (json.dumps(ids),)).get
        found += [] if first is None else [int(first)]
    return min(found, default=None)


def _where(
    bounds: ErasureBounds, table: str, project: str = "s.project_id"
) -> tuple[str, tuple[int, ...]]:
    pairs = (
        (f"{project} =", bounds.project_id),
        (f"{table}.session_id =", bounds.session_id),
        (f"{table}.at >=", bounds.since),
        (f"{table}.at <=", bounds.until),
    )
    given = [(column, value) for column, value in pairs if value is not None]
    return " AND ".join(["1", *(f"{column} ?" for column, _ in given)]), tuple(
        value for _, value in given
    )


# MERGED from memd.store.texts:
# MERGED Where people's words stand in the vault, so that all of them can be read and rewritten in place.
# MERGED
# MERGED A rewritten summary is found by its new words, for triggers tell the index; a rewritten event's turn
# MERGED goes into the full text anew. Every text column of the schema is in `TABLES`, in `NAMES` or in
# MERGED `WORDLESS`, proven by a test. Not here: what is to be rewritten, and why.


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table with a row number, and its columns that hold words."""

    name: str
    columns: tuple[str, ...]
    json: frozenset[str] = frozenset()
    """Those of them that hold JSON."""


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row's words: column → text, NULL left out."""

    id: int
    texts: Mapping[str, str]


TEXT_TABLES = (
    TextTable("events", ("payload", "name", "tool"), frozenset({"payload"})),
    TextTable(
        "summaries",
        ("title", "body", "topic_key", "tags", "files"),
        frozenset({"tags", "files"}),
    ),
    TextTable("sessions", ("title", "directory")),
    TextTable("projects", ("name", "reason")),
    TextTable("supersessions", ("guard",)),
    TextTable("edges", ("from_id", "to_id", "rule", "detail"), frozenset({"detail"})),
    TextTable("injections", ("reason",)),
    TextTable("judgments", ("reason",)),
)
"""Truth that can be rewritten. What is derived of it follows."""
LOOKUP_COLUMNS = (
    ("projects", "key"),
    ("aliases", "key"),
    ("switches", "target"),
    ("imports", "path"),
    ("sessions", "key"),
)
"""Words by which something is found: changed, it would be another thing."""


def read_texts(tx: apsw.Connection, table: TextTable, after: int, limit: int) -> list[TextRow]:
    """The next rows behind a number, in order."""
    return _rows(tx, table, "id > ? ORDER BY id LIMIT ?", (after, limit))


def texts_by_ids(tx: apsw.Connection, table: TextTable, ids: Sequence[int]) -> list[TextRow]:
    """These rows; what is gone is left out."""
    return _rows(tx, table, f"id IN ({','.join('?' * len(ids))})", tuple(ids)) if ids else []


def _rows(
    tx: apsw.Connection, table: TextTable, where: str, values: tuple[int, ...]
) -> list[TextRow]:
    found = tx.execute(
        f"SELECT id, {', '.join(table.columns)} FROM {table.name} WHERE {where}", values
    )
    return [
        TextRow(
            int(row[0]),
            {c: str(v) for c, v in zip(table.columns, row[1:], strict=True) if v is not None},
        )
        for row in found
    ]


def write_texts(
    tx: apsw.Connection, table: TextTable, row: TextRow, changed: Mapping[str, str]
) -> None:
    """Put these texts in the place of a row's; nothing if nothing changed."""
    if not changed:
        return
    marks = ", ".join(f"{column} = ?" for column in changed)
    # Two edges whose nodes have become one are one.
    tx.execute(
        f"UPDATE OR REPLACE {table.name} SET {marks} WHERE id = ?",
        (*map(storable, changed.values()), row.id),
    )
    if table.name == "summaries":
        tx.execute("UPDATE summaries SET consolidated = 0 WHERE id = ?", (row.id,))
        now = {**row.texts, **changed}
        kind = tx.execute("SELECT kind FROM summaries WHERE id = ?", (row.id,)).get
        summaries.put_lookup_keys(tx, row.id, Kind(kind), now["title"], now["body"])


def lookup_names(tx: apsw.Connection) -> Iterator[tuple[str, str]]:
    """(table and column, text) of every word by which something is found."""
    for table, column in LOOKUP_COLUMNS:
        for (text,) in tx.execute(f"SELECT {column} FROM {table}"):
            yield f"{table}.{column}", str(text)


def compact_json(value: object) -> str:
    """A JSON value as the vault writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# MERGED from memd.store.ageing:
# MERGED What has become old: events to compact, memories to expire for good or to put away. Bounded reads.
# MERGED
# MERGED Not here: how old is old, and what is left of an event.


_WINDOW = 2_000
"""Ids looked at in one step: of most of them nothing is read but a time."""


@dataclass(frozen=True, slots=True)
class CompactableEvent:
    """One event that may be compacted, with what memories cite of it."""

    id: int
    payload: Mapping[str, Any]
    bytes: int
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IdleCriteria:
    """Which memories count as never missed. `at` and `created_at` before this time, UTC milliseconds."""

    before: int
    quality: float


def next_window(tx: apsw.Connection, after: int) -> int | None:
    """The last id of the next step behind an id; None if there is no event behind it."""
    found = tx.execute("SELECT min(id) FROM events WHERE id > ?", (after,)).get
    return None if found is None else int(found) + _WINDOW - 1


def events_to_compact(
    tx: apsw.Connection, window: tuple[int, int], before: int, spoken: Sequence[str], limit: int
) -> list[CompactableEvent]:
    """Distilled events in (after, last] from before a time that are not of these kinds, nor compacted."""
    rows = tx.execute(
        "SELECT e.id, e.payload FROM events e WHERE e.id > ? AND e.id <= ? AND e.at < ?"
        f" AND e.kind NOT IN ({','.join('?' * len(spoken))})"
        " AND NOT EXISTS (SELECT 1 FROM compactions c WHERE c.event_id = e.id)"
        " AND NOT EXISTS (SELECT 1 FROM events p WHERE p.distilled = 0"
        " AND p.session_id = e.session_id) ORDER BY e.id LIMIT ?",
        (*window, before, *spoken, limit),
    ).fetchall()
    return [
        CompactableEvent(number, json.loads(text), len(text.encode()), _quotes(tx, number))
        for number, text in ((int(str(row[0])), str(row[1])) for row in rows)
    ]


def _quotes(tx: apsw.Connection, event_id: int) -> tuple[str, ...]:
    rows = tx.execute(
        "SELECT detail ->> '$.quote' FROM edges WHERE to_kind = 'event' AND to_id = ?"
        " AND type = 'derives_from' ORDER BY id",
        (str(event_id),),
    )
    return tuple(str(quote) for (quote,) in rows if quote)


def compact_event(tx: apsw.Connection, old: CompactableEvent, text: str, now: int) -> None:
    """Put this in the place of an event's payload, and note how much went."""
    gone = old.bytes - len(text.encode())
    if gone > 0:
        tx.execute("UPDATE events SET payload = ? WHERE id = ?", (storable(text), old.id))
    tx.execute("INSERT INTO compactions VALUES (?, ?, ?)", (old.id, now, max(0, gone)))


def expired_summaries(tx: apsw.Connection, before: int, limit: int) -> list[int]:
    """Memories that expired before a time and that nobody pinned."""
    rows = tx.execute(
        "SELECT id FROM summaries WHERE expires_at < ? AND pinned_at IS NULL ORDER BY id LIMIT ?",
        (before, limit),
    )
    return [int(row[0]) for row in rows]


def delete_expired(tx: apsw.Connection, summary_ids: Sequence[int]) -> None:
    """Take expired memories away. Nothing is noted: said again, they come again."""
    for number in summary_ids:
        fulltext.remove_passages(tx, number)
        summaries.delete_summary(tx, number)


def idle_summaries(tx: apsw.Connection, idle: IdleCriteria, limit: int) -> list[int]:
    """Captured memories that are old, of low quality, said once, never returned by any answer."""
    rows = tx.execute(
        "SELECT s.id FROM summaries s WHERE s.tier = 'captured' AND s.at < ?1 AND s.updated_at < ?1"
        " AND s.quality < ?2 AND s.duplicates = 1 AND s.pinned_at IS NULL AND s.archived_at IS NULL"
        " AND s.kind NOT IN ('instruction', 'preference', 'decision')"
        " AND NOT EXISTS (SELECT 1 FROM uses u WHERE u.summary_id = s.id)"
        " AND NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = s.id"
        " AND x.undone_at IS NULL) ORDER BY s.id LIMIT ?3",
        (idle.before, idle.quality, limit),
    )
    return [int(row[0]) for row in rows]


def archive_summaries(tx: apsw.Connection, summary_ids: Sequence[int], now: int) -> None:
    """Hide memories as superseded ones are hidden; said again or pinned, they show again."""
    tx.executemany(
        "UPDATE summaries SET archived_at = ? WHERE id = ?",
        [(now, number) for number in summary_ids],
    )
