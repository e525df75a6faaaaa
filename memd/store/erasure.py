"""Erasure and ageing: what to erase, rewriting text in place, compaction and expiry, secure deletion."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import anyio.to_thread
from apsw import Connection

from memd.models import ELSEWHERE, Authority, Kind
from memd.store import events, fulltext, ledger, summaries
from memd.store.database import Database
from memd.store.filter import NOT_SUPERSEDED, REJECTED, join_bounds, marks
from memd.store.queries import fetch_all, fetch_column, fetch_ids, fetch_int, has_rows
from memd.text import PRIVATE, digest, storable

# ── Secure deletion ────────────────────────────────────────────────────────────────────────────
# The words of a deleted row stay in the full texts' segments and in the write-ahead log until those
# are rewritten. The transaction that erases leaves a mark; cleaning up removes it. After a crash in
# between, the next daemon finds the mark and cleans up.

ErasureCause = Literal["forgotten", "private"]
"""A request to forget, or a late prompt that made its turn private."""
_CAUSES: tuple[ErasureCause, ...] = get_args(ErasureCause)
ErasureMarks = Mapping[ErasureCause, int]
COMPACT_BYTES_MAX = 128 * 1024 * 1024
"""A file up to this size is rewritten in about two seconds, and needs as much memory meanwhile."""


def mark_erased(tx: Connection, cause: ErasureCause) -> None:
    """Mark that something was erased, in the transaction that erases it."""
    number = _read_number(tx, f"erased {cause}") + 1
    ledger.write_note(tx, f"erased {cause}", str(number))
    ledger.drop_notes(tx, ledger.TOLD)
    ledger.drop_notes(tx, ledger.UNTOLD)
    ledger.drop_notes(tx, ledger.REPOSITORY)
    fulltext.invalidate_snapshot(tx)


def pending_marks(tx: Connection) -> dict[ErasureCause, int]:
    """The marks that were not cleaned up yet; each erasure has another number."""
    found = {cause: _read_number(tx, f"erased {cause}") for cause in _CAUSES}
    return {
        cause: number
        for cause, number in found.items()
        if number != _read_number(tx, f"cleaned {cause}")
    }


def _read_number(tx: Connection, key: str) -> int:
    return int(ledger.read_note(tx, key) or 0)


def has_redistilled_private(tx: Connection) -> bool:
    """Return whether no prompt emptied as private waits to be distilled again, and no change to be indexed."""
    pending = "events WHERE distilled = 0 AND kind = 'prompt' AND payload ->> '$.prompt' = ?"
    return not fulltext.count_changes(tx) and not has_rows(tx, pending, (PRIVATE,))


async def clean_up(db: Database, marked: ErasureMarks) -> bool:
    """Rewrite the full texts, the file and the log, and remove these marks. Raises a VaultError.

    SQLite overwrites what is deleted, but not what it moved from page to page before. So a file that
    is not large is rewritten; `memd vacuum` does that for any file. False if a reader keeps the log from
    being emptied: then the marks stay, and `empty_log` is still due.
    """
    await db.write(fulltext.purge_passages)
    await db.write(events.purge_turns)
    if await anyio.to_thread.run_sync(db.size) <= COMPACT_BYTES_MAX:
        await db.compact()
    await db.write(lambda tx: _note_marks(tx, "rewritten", marked))
    return await empty_log(db, marked, waits=True)


async def empty_log(db: Database, marked: ErasureMarks, *, waits: bool = False) -> bool:
    """Empty the write-ahead log and remove these marks; False if a reader prevents it."""
    if not await db.truncate_wal(waits=waits):
        return False
    await db.write(lambda tx: _note_marks(tx, "cleaned", marked))
    return True


def is_rewritten(tx: Connection, marked: ErasureMarks) -> bool:
    """Return whether what these marks stand for is left only in the write-ahead log."""
    return bool(marked) and all(
        number == _read_number(tx, f"rewritten {cause}") for cause, number in marked.items()
    )


def _note_marks(tx: Connection, what: str, marked: ErasureMarks) -> None:
    for cause, number in marked.items():
        ledger.write_note(tx, f"{what} {cause}", str(number))


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row's words: column → text, NULL left out."""

    id: int
    texts: Mapping[str, str]


# ── What a request to forget means ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ErasureBounds:
    """Bounds of an erasure in place and time; None means no bound. Times are UTC milliseconds, both ends included."""

    project_id: int | None = None
    session_id: int | None = None
    since: int | None = None
    until: int | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether the bounds name a whole session or project, at any time."""
        has_place = self.project_id is not None or self.session_id is not None
        return has_place and self.since is None and self.until is None

    @property
    def condition(self) -> tuple[str, tuple[Any, ...]]:
        """The condition in SQL on a row of one of SOURCES, and its values."""
        return join_bounds(
            ("project_id =", self.project_id), ("session_id =", self.session_id),
            ("at >=", self.since), ("at <=", self.until),
        )  # fmt: skip


_MOVED_TO = f"e.payload ->> '$.{ELSEWHERE}'"
_PROJECT_OF_EVENT = (
    f"CASE WHEN {_MOVED_TO} IS NULL THEN n.project_id ELSE coalesce("
    f"(SELECT p.id FROM projects p WHERE p.key = {_MOVED_TO}),"
    f" (SELECT a.project_id FROM aliases a WHERE a.key = {_MOVED_TO}), n.project_id) END"
)
"""The project of an event `e` of a session `n`: that where the session had moved to, else the session's."""
FORGOTTEN = "[forgotten]"
"""What stands in place of a text that was forgotten in a row that stays."""
_EDGE_PLACES = (
    "SELECT e.id, e.at, iif(e.from_kind IN ('summary', 'event'), NULL, e.from_id) AS from_node,"
    " iif(e.to_kind IN ('summary', 'event'), NULL, e.to_id) AS to_node, e.detail,"
    " coalesce(sf.project_id, st.project_id, nf.project_id, (SELECT p.id FROM projects p WHERE"
    " e.from_kind = 'file' AND substr(e.from_id, 1, length(p.key) + 1) = p.key || '/' LIMIT 1))"
    " AS project_id, coalesce(sf.session_id, st.session_id, ef.session_id) AS session_id"
    " FROM edges e LEFT JOIN summaries sf ON e.from_kind = 'summary' AND sf.id = CAST(e.from_id AS INTEGER)"
    " LEFT JOIN summaries st ON e.to_kind = 'summary' AND st.id = CAST(e.to_id AS INTEGER)"
    " LEFT JOIN events ef ON e.from_kind = 'event' AND ef.id = CAST(e.from_id AS INTEGER)"
    " LEFT JOIN sessions nf ON nf.id = ef.session_id"
)
"""Edges with the project and the session of what they begin or end at."""
_OF_SESSION = (
    "SELECT i.id, i.at, i.reason, i.evidence, n.project_id, i.session_id FROM injections i"
    " JOIN sessions n ON n.id = i.session_id"
)
_DROP_DETAILS = (
    "UPDATE edges SET detail = json_remove(detail, '$.quote', '$.reason', '$.as', '$.finding')"
    " WHERE id = ?"
)
_OF_PAIR = "SELECT x.id, x.at, x.{}, s.project_id, s.session_id FROM {} x JOIN summaries s ON s.id = x.newer_id"
_EVENTS = (
    f"SELECT e.id, e.at, e.payload, e.tool, {_PROJECT_OF_EVENT} AS project_id, e.session_id"
    " FROM events e JOIN sessions n ON n.id = e.session_id"
)
_TITLES = "SELECT id, last_event_at AS at, title, project_id, id AS session_id FROM sessions"
SOURCES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "summaries": (("title", "body", "topic_key", "tags", "files"), "summaries"),
    "events": (("payload", "tool"), f"({_EVENTS})"),
    "titles": (("title",), f"({_TITLES})"),
    "judgments": (("reason",), f"({_OF_PAIR.format('reason', 'judgments')})"),
    "supersessions": (("guard",), f"({_OF_PAIR.format('guard', 'supersessions')})"),
    "injections": (("reason", "evidence"), f"({_OF_SESSION})"),
    "links": (("from_node", "to_node"), f"({_EDGE_PLACES})"),
    "quotes": (("detail",), f"({_EDGE_PLACES})"),
}
"""Everything that may say words: name → (columns with words, rows with project, session and time).

All but summaries and events are remnants: they repeat words.
"""
_REMNANT_TABLES = {"titles": "sessions", "links": "edges", "quotes": "edges"}
"""Where it is not the name of the remnant."""
_WRITTEN = {"summaries": "min(at, created_at)", "sessions": "started_at"}
"""Table → when its rows were written, if not `at`."""
_REMNANT_CHANGES = {
    "titles": "UPDATE sessions SET title = NULL WHERE id = ?",
    "judgments": f"UPDATE judgments SET reason = '{FORGOTTEN}' WHERE id = ?",
    "supersessions": f"UPDATE supersessions SET guard = '{FORGOTTEN}' WHERE id = ?",
    "injections": f"UPDATE injections SET reason = '{FORGOTTEN}', evidence = '' WHERE id = ?",
    "links": "DELETE FROM edges WHERE id = ?",
    "quotes": _DROP_DETAILS,
}
_AT_EITHER = (
    "({end}_kind = 'summary' AND CAST({end}_id AS INTEGER) IN (SELECT value FROM json_each(?1))"
    " OR {end}_kind = 'event' AND CAST({end}_id AS INTEGER) IN (SELECT value FROM json_each(?2)))"
)
_OF_SUMMARY = "{} WHERE summary_id IN (SELECT value FROM json_each(?1)) AND ?2 IS NOT NULL"
_OF_NEWER_OR_OLDER = (
    "{} WHERE (newer_id IN (SELECT value FROM json_each(?1))"
    " OR older_id IN (SELECT value FROM json_each(?1))) AND ?2 IS NOT NULL"
)
_ATTACHED = {
    "edges": f"edges WHERE {_AT_EITHER.format(end='from')} OR {_AT_EITHER.format(end='to')}",
    "turns": "turns WHERE id IN (SELECT value FROM json_each(?2)) AND ?1 IS NOT NULL",
    "supersessions": _OF_NEWER_OR_OLDER.format("supersessions"),
    "judgments": _OF_NEWER_OR_OLDER.format("judgments"),
    **{
        table: _OF_SUMMARY.format(table)
        for table in ("passages", "entities", "cues", "forms", "uses", "injections")
    },
}
"""What goes with summaries (?1, a JSON list) and events (?2)."""


def directories(tx: Connection) -> set[str]:
    """Return the directories of projects and sessions; almost every event names one of them."""
    rows = tx.execute("SELECT key FROM projects UNION SELECT directory FROM sessions")
    return {str(path) for (path,) in rows if path and path.count("/") > 1}


RowCheck = Callable[[str], bool]
"""Takes all the text of a row, JSON as it is stored, and says whether to read the row."""


def ids_within(tx: Connection, source: str, bounds: ErasureBounds) -> list[int]:
    """The ids of the rows of one of SOURCES within these bounds, in order."""
    where, values = bounds.condition
    return fetch_ids(tx, f"SELECT id FROM {SOURCES[source][1]} WHERE {where} ORDER BY id", values)


def texts_within(
    tx: Connection, source: str, bounds: ErasureBounds, check: RowCheck
) -> Iterator[TextRow]:
    """The words of the rows of one of SOURCES within these bounds that pass the check, in order of id."""
    columns, rows = SOURCES[source]
    where, values = bounds.condition
    for row in _select_texts(tx, columns, f"{rows} WHERE {where} ORDER BY id", values):
        if check("\0".join(row.texts.values())):
            yield row


def imported_paths(tx: Connection) -> list[str]:
    """The path of every file that an import has read."""
    return fetch_column(tx, "SELECT path FROM imports ORDER BY path")


def names_that_stay(tx: Connection) -> Iterator[tuple[str, str]]:
    """(table and column, text) of what names projects and sessions; forgetting words changes none."""
    for column in ("projects.key", "projects.name", "sessions.directory", "aliases.key"):
        table, _, name = column.partition(".")
        for (text,) in tx.execute(f"SELECT {name} FROM {table} WHERE {name} IS NOT NULL"):
            yield column, str(text)


def erase_remnants(tx: Connection, rows: Mapping[str, Sequence[int]], now: int) -> None:
    """Erase the text of these rows of remnants. Their other columns stay, except of links."""
    links = frozenset(rows.get("links", ()))
    for number, name in named_links(tx) if links else ():
        if number in links:
            ledger.record_forgotten(tx, name, now)
    for table, ids in rows.items():
        tx.executemany(_REMNANT_CHANGES[table], [(number,) for number in ids])


def named_links(tx: Connection) -> list[tuple[int, str]]:
    """(id, hash of its ends) of every edge that begins or ends at a name, such as that of a file."""
    sql = (
        "SELECT id, from_kind, from_id, type, to_kind, to_id FROM edges"
        " WHERE from_kind NOT IN ('summary', 'event') OR to_kind NOT IN ('summary', 'event')"
    )
    return [(number, digest("edge", *ends)) for number, *ends in fetch_all(tx, sql)]


def forget_imported_files(tx: Connection, paths: Sequence[str], now: int) -> None:
    """Forget that these files were read. What was forgotten in them does not come back."""
    for path in paths:
        ledger.record_forgotten(tx, digest("import", path), now)
        tx.execute("DELETE FROM imports WHERE path = ?", (path,))


def erase_forgotten_names(tx: Connection, forgotten: Collection[str]) -> None:
    """Delete the edges and the marks of imported files whose hash is among these."""
    ids = [number for number, name in named_links(tx) if name in forgotten]
    tx.executemany("DELETE FROM edges WHERE id = ?", [(number,) for number in ids])
    paths = [path for path in imported_paths(tx) if digest("import", path) in forgotten]
    tx.executemany("DELETE FROM imports WHERE path = ?", [(path,) for path in paths])


def count_attached(
    tx: Connection, memories: Sequence[int], happened: Sequence[int]
) -> dict[str, int]:
    """Table → how many of its rows go with these summaries and events; those without any left out."""
    one, other = json.dumps(memories), json.dumps(happened)
    counts = {
        name: fetch_int(tx, f"SELECT count(*) FROM {source}", (one, other)) or 0
        for name, source in _ATTACHED.items()
    }
    return {name: count for name, count in counts.items() if count}


def prompts_among(tx: Connection, event_ids: Sequence[int]) -> list[int]:
    """Return those of these events that the user spoke: prompts, and what the user said to a tool call; in order."""
    sql = (
        "SELECT id FROM events WHERE (kind = 'prompt' OR kind = 'tool_refused' AND payload ->> '$.said' <> '')"
        " AND id IN (SELECT value FROM json_each(?))"
        " ORDER BY id"
    )
    return fetch_ids(tx, sql, (json.dumps(event_ids),))


def sessions_within(tx: Connection, bounds: ErasureBounds) -> list[int]:
    """The ids of the sessions that are meant as a whole, in order."""
    if not bounds.is_whole:
        return []
    where, values = join_bounds(("project_id =", bounds.project_id), ("id =", bounds.session_id))
    return fetch_ids(tx, f"SELECT id FROM sessions WHERE {where} ORDER BY id", values)


def oldest_time(
    tx: Connection,
    memories: Sequence[int],
    happened: Sequence[int],
    begun: Sequence[int],
    remnants: Mapping[str, Sequence[int]],
) -> int | None:
    """Return when the oldest of these summaries, events, sessions and remnants was stored, as far as is known.

    UTC milliseconds; None without any. No older file contains one of them.
    """
    tables = [(_REMNANT_TABLES.get(name, name), ids) for name, ids in remnants.items()]
    times = (
        fetch_int(
            tx,
            f"SELECT min({_WRITTEN.get(table, 'at')}) FROM {table} WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(ids),),
        )
        for table, ids in (
            ("summaries", memories),
            ("events", happened),
            ("sessions", begun),
            *tables,
        )
    )
    return min((time for time in times if time is not None), default=None)


# ── Text that can be rewritten in place ────────────────────────────────────────────────────────
# A test proves that every text column of the schema is in `TEXT_TABLES`, in `LOOKUP_COLUMNS`, or
# holds no words. Triggers index rewritten summaries and events again.


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table with a row number, and its columns that hold words."""

    name: str
    columns: tuple[str, ...]
    json: frozenset[str] = frozenset()
    """Those of them that hold JSON."""


TEXT_TABLES = (
    TextTable("events", ("payload", "name", "tool"), frozenset({"payload"})),
    TextTable(
        "summaries", ("title", "body", "topic_key", "tags", "files"), frozenset({"tags", "files"})
    ),
    TextTable("sessions", ("title", "directory")),
    TextTable("projects", ("name", "reason")),
    TextTable("supersessions", ("guard",)),
    TextTable("edges", ("from_id", "to_id", "rule", "detail"), frozenset({"detail"})),
    TextTable("injections", ("reason", "evidence")),
    TextTable("judgments", ("reason",)),
    TextTable("sync_records", ("extra",), frozenset({"extra"})),
    TextTable("unknown_fields", ("fields",), frozenset({"fields"})),
)
"""Truth that can be rewritten. What is derived from it follows."""
LOOKUP_COLUMNS = (
    ("projects", "key"),
    ("aliases", "key"),
    ("switches", "target"),
    ("imports", "path"),
    ("sessions", "key"),
    ("sync_places", "place"),
    ("sync_cursors", "place"),
)
"""Words by which something is found, so they cannot be rewritten."""


def read_texts(tx: Connection, table: TextTable, after: int, limit: int) -> list[TextRow]:
    """The next rows after an id, in order."""
    source = f"{table.name} WHERE id > ? ORDER BY id LIMIT ?"
    return list(_select_texts(tx, table.columns, source, (after, limit)))


def texts_by_ids(tx: Connection, table: TextTable, ids: Sequence[int]) -> list[TextRow]:
    """Return these rows; deleted ones are left out."""
    source = f"{table.name} WHERE id IN ({marks(ids)})"
    return list(_select_texts(tx, table.columns, source, tuple(ids)))


def _select_texts(
    tx: Connection, columns: Sequence[str], source: str, values: Sequence[object]
) -> Iterator[TextRow]:
    for number, *texts in tx.execute(
        f"SELECT id, {', '.join(columns)} FROM {source}", tuple(values)
    ):
        said = zip(columns, texts, strict=True)
        yield TextRow(number, {column: str(text) for column, text in said if text is not None})


def write_texts(tx: Connection, table: TextTable, row: TextRow, changed: Mapping[str, str]) -> None:
    """Replace these texts of a row; nothing if there are none."""
    if not changed:
        return
    assignments = ", ".join(f"{column} = ?" for column in changed)
    # Two edges whose nodes have become equal become one.
    sql = f"UPDATE OR REPLACE {table.name} SET {assignments} WHERE id = ?"
    tx.execute(sql, (*map(storable, changed.values()), row.id))
    if table.name == "summaries":
        tx.execute("UPDATE summaries SET consolidated = 0 WHERE id = ?", (row.id,))
        now = {**row.texts, **changed}
        kind = tx.execute("SELECT kind FROM summaries WHERE id = ?", (row.id,)).get
        summaries.put_lookup_keys(tx, row.id, Kind(kind), now["title"], now["body"])


def lookup_names(tx: Connection) -> Iterator[tuple[str, str]]:
    """(table and column, text) of every word by which something is found."""
    for table, column in LOOKUP_COLUMNS:
        for (text,) in tx.execute(f"SELECT {column} FROM {table}"):
            yield f"{table}.{column}", str(text)


# ── Ageing: events to compact, memories to expire or to archive; every read is bounded ─────────

_WINDOW_IDS = 2_000
"""Event ids examined in one step. Of most events only the time is read."""


@dataclass(frozen=True, slots=True)
class CompactableEvent:
    """One event that may be compacted, with the quotes of it in memories."""

    id: int
    payload: Mapping[str, Any]
    bytes: int
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IdleCriteria:
    """Criteria for unused memories: older than `before` (UTC milliseconds), of lower quality."""

    before: int
    quality: float


def next_window(tx: Connection, after: int) -> int | None:
    """The last id of the next step after an id; None if there is no event after it."""
    found = fetch_int(tx, "SELECT min(id) FROM events WHERE id > ?", (after,))
    return None if found is None else found + _WINDOW_IDS - 1


def events_to_compact(
    tx: Connection, window: tuple[int, int], before: int, spoken: Sequence[str], limit: int
) -> list[CompactableEvent]:
    """Distilled events in (after, last] from before a time, not of these kinds, not yet compacted."""
    sql = (
        "SELECT e.id, e.payload FROM events e WHERE e.id > ? AND e.id <= ? AND e.at < ?"
        f" AND e.kind NOT IN ({marks(spoken)})"
        " AND NOT EXISTS (SELECT 1 FROM compactions c WHERE c.event_id = e.id)"
        " AND NOT EXISTS (SELECT 1 FROM events p WHERE p.distilled = 0"
        " AND p.session_id = e.session_id) ORDER BY e.id LIMIT ?"
    )
    return [
        CompactableEvent(number, json.loads(text), len(text.encode()), _quotes_of(tx, number))
        for number, text in fetch_all(tx, sql, (*window, before, *spoken, limit))
    ]


def _quotes_of(tx: Connection, event_id: int) -> tuple[str, ...]:
    sql = (
        "SELECT detail ->> '$.quote' FROM edges WHERE to_kind = 'event' AND to_id = ?"
        " AND type = 'derives_from' ORDER BY id"
    )
    return tuple(filter(None, fetch_column(tx, sql, (str(event_id),))))


def compact_event(tx: Connection, old: CompactableEvent, text: str, now: int) -> None:
    """Replace an event's payload if that is shorter, and note how many bytes that saved."""
    saved = old.bytes - len(text.encode())
    if saved > 0:
        tx.execute("UPDATE events SET payload = ? WHERE id = ?", (storable(text), old.id))
    tx.execute("INSERT INTO compactions VALUES (?, ?, ?)", (old.id, now, max(0, saved)))


def expired_summaries(tx: Connection, before: int, limit: int) -> list[int]:
    """Memories that expired before a time and are not pinned. What was rejected stays: it is the measure of what repeats it."""
    sql = (
        "SELECT id FROM summaries WHERE expires_at < ? AND pinned_at IS NULL"
        f" AND NOT {REJECTED.format('summaries.id')} ORDER BY id LIMIT ?"
    )
    return fetch_ids(tx, sql, (before, limit))


def delete_memory(tx: Connection, summary_id: int | None) -> bool:
    """Delete a memory with its passages, without marking it as forgotten; False if there is none."""
    if summary_id is None:
        return False
    fulltext.remove_passages(tx, summary_id)
    summaries.delete_summary(tx, summary_id)
    return True


def idle_summaries(tx: Connection, idle: IdleCriteria, limit: int) -> list[int]:
    """Captured memories that are old, of low quality, stated once, not by the user, and never returned by an answer."""
    sql = (
        "SELECT s.id FROM summaries s WHERE s.tier = 'captured' AND s.at < ?1 AND s.updated_at < ?1"
        " AND s.quality < ?2 AND s.duplicates = 1 AND s.pinned_at IS NULL AND s.archived_at IS NULL"
        f" AND s.authority < {Authority.USER_PROMPT.code}"
        " AND s.kind NOT IN ('instruction', 'preference', 'decision')"
        " AND NOT EXISTS (SELECT 1 FROM uses u WHERE u.summary_id = s.id AND u.count + u.helped > 0)"
        f" AND {NOT_SUPERSEDED} ORDER BY s.id LIMIT ?3"
    )
    return fetch_ids(tx, sql, (idle.before, idle.quality, limit))


def archive_summaries(tx: Connection, summary_ids: Sequence[int], now: int) -> None:
    """Hide memories as superseded ones are hidden; when repeated or pinned, they show again."""
    sql = "UPDATE summaries SET archived_at = ? WHERE id = ?"
    tx.executemany(sql, [(now, number) for number in summary_ids])
