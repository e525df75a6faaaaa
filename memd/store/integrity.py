"""Consistency checks of a whole vault, the repair that deletes orphaned rows, samples of the index, and salvage.

Checking changes nothing. The repair deletes only rows that the schema would have deleted with what
they refer to, edges without an end, and derived rows, which the indexer computes again. Salvage copies what can
still be read of a damaged vault, row by row, into a new one, without derived tables.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from memd.errors import VaultCorrupt, VaultError
from memd.models import EdgeType, EventKind, Finding, Kind, Tier
from memd.store import (
    backup,
    database,
    erasure,
    fulltext,
    judgments,
    ledger,
    sharing,
    statements,
    vectors,
)
from memd.store.database import Connection, Database, translate_errors
from memd.store.queries import count_rows, fetch_all, fetch_ids, fetch_int, insert_row
from memd.store.vectors import STRIDE
from memd.time_expressions import DAY_MS

_CLOCK_SLACK_MS = 300_000
"""How far the clocks of two programs may differ."""
_SHOWN = 3
RESTORE = (
    "`memd restore` brings back the last backup, `memd restore --salvage` takes what can be read;"
    " the damaged file is kept"
)
_REINDEX = "`memd doctor --fix` or `memd reindex` computes it again"

_UNINDEXED_SUMMARIES = (
    "summaries s WHERE NOT EXISTS (SELECT 1 FROM passages p WHERE p.summary_id = s.id)"
    " AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.summary_id = s.id)"
)
_ORPHAN_PASSAGES = (
    "passages WHERE summary_id NOT IN (SELECT id FROM summaries)"
    " AND summary_id NOT IN (SELECT summary_id FROM changes)"
)
_PASSAGES_WITHOUT_TEXT = "passages WHERE id NOT IN (SELECT id FROM passages_fts_docsize)"
_TEXTS_WITHOUT_PASSAGE = "passages_fts_docsize WHERE id NOT IN (SELECT id FROM passages)"
_TURNS_WITHOUT_TEXT = "turns WHERE id NOT IN (SELECT id FROM turns_fts_docsize)"
_TEXTS_WITHOUT_TURN = "turns_fts_docsize WHERE id NOT IN (SELECT id FROM turns)"
_WRONG_VECTORS = (
    f"vectors v LEFT JOIN spaces s ON s.id = v.id / {STRIDE} WHERE s.id IS NULL"
    " OR length(v.vector) NOT IN (2 * s.dimensions, (s.dimensions + 63) / 64 * 64 + 4)"
    f" OR v.id % {STRIDE} NOT IN (SELECT id FROM passages)"
)
"""Vectors of no space, of other dimensions than their space, or of no passage."""
_LOST_EDGES = "edges WHERE ({})".format(
    " OR ".join(
        f"({end}_kind = '{kind}' AND CAST({end}_id AS INTEGER) NOT IN (SELECT id FROM {table}))"
        for kind, table in (("summary", "summaries"), ("event", "events"))
        for end in ("from", "to")
    )
)
"""Edges of which one end is a summary or an event that does not exist."""

_SYNC_DAYS_MAX = 14
"""Days without a sync after which that is worth a word."""


# ── Checks ─────────────────────────────────────────────────────────────────────────────────────


def examine_vault(tx: Connection, now: int, *, is_served: bool) -> list[Finding]:
    """Check all of a vault; `now` is UTC milliseconds.

    `is_served`: whether a daemon works on what is pending. If SQLite finds damage, or the schema is an
    older one, nothing else is checked.
    """
    whole = _check_database(tx)
    if whole.verdict == "problem":
        return [whole]
    try:
        backup.require_current_schema(tx)
    except VaultError as error:
        return [whole, Finding("schema", "warning", error.message, "`memd restart`")]
    return [
        whole,
        Finding("schema", "ok", f"version {len(database.migrations())}"),
        _check_references(tx),
        _check_edges(tx),
        _check_changes(tx, is_served=is_served),
        _check_passages(tx),
        *_check_fulltexts(tx),
        _check_vectors(tx),
        _check_ledger(tx),
        *_check_unknown_kinds(tx),
        _check_erasure(tx),
        _check_clock(tx, now),
        *_check_sync(tx, now),
    ]


def find_damage(tx: Connection) -> list[str]:
    """Return the damage that SQLite reports, in its words; at most three findings."""
    found = [str(row[0]) for row in tx.execute("PRAGMA integrity_check(3)")]
    return [] if found == ["ok"] else found


def _check_database(tx: Connection) -> Finding:
    damage = find_damage(tx)
    if not damage:
        size = int(tx.pragma("page_count")) * int(tx.pragma("page_size"))
        return Finding("database", "ok", f"SQLite finds {size / 1e6:.1f} MB whole")
    words = "; ".join(damage)
    if all("fts" in line.lower() for line in damage):
        words = f"an index is damaged: {words}"
        return Finding("database", "warning", words, _REINDEX, fixable=True)
    return Finding("database", "problem", f"SQLite finds damage: {words}", RESTORE)


def _fixable_problem(name: str, words: str, remedy: str = _REINDEX) -> Finding:
    return Finding(name, "problem", words, remedy, fixable=True)


def shorten_list(found: Sequence[str]) -> str:
    """The first few of these, and how many more there are."""
    more = len(found) - _SHOWN
    return ", ".join(found[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _check_references(tx: Connection) -> Finding:
    broken = broken_references(tx)
    if not broken:
        return Finding("references", "ok", "every row refers to one that is there")
    counts = ", ".join(f"{count} of {table}" for (table, _), count in sorted(broken.items()))
    words = f"rows refer to what is not there: {counts}"
    if not all(find_reference(tx, *one).cascades for one in broken):
        return Finding("references", "problem", words, RESTORE)
    remedy = "`memd doctor --fix` deletes the rows, which say nothing any more"
    return _fixable_problem("references", words, remedy)


def _check_edges(tx: Connection) -> Finding:
    if lost := count_rows(tx, _LOST_EDGES):
        words = f"{lost} edges begin or end at what is not there"
        return _fixable_problem("provenance", words, "`memd doctor --fix` deletes the edges")
    return Finding("provenance", "ok", "every edge has both its ends")


def _check_changes(tx: Connection, *, is_served: bool) -> Finding:
    waiting = fulltext.count_changes(tx)
    if not waiting:
        return Finding("changes", "ok", "the index is up to date")
    words = f"{waiting} memories are not searchable yet"
    if is_served:
        remedy = "wait a moment; if it stays so, look at the indexer in `memd status`"
        return Finding("changes", "warning", words, remedy)
    return Finding("changes", "ok", f"{words}; the daemon indexes them when it runs")


def _check_passages(tx: Connection) -> Finding:
    lacking, extra = count_rows(tx, _UNINDEXED_SUMMARIES), count_rows(tx, _ORPHAN_PASSAGES)
    if lacking or extra:
        words = f"{lacking} memories have no passage, {extra} passages have no memory"
        return _fixable_problem("passages", words)
    try:
        there = fulltext.count_term_uses(tx).total()
    except ValueError:
        return _fixable_problem("passages", "the postings of some passages cannot be read")
    counted = fetch_int(tx, "SELECT sum(passages) FROM terms") or 0
    if counted != there:
        return _fixable_problem("passages", f"the vocabulary counts {counted} postings of {there}")
    return Finding("passages", "ok", f"{fulltext.count_passages(tx)} for every memory there is")


def _check_fulltexts(tx: Connection) -> Iterator[Finding]:
    """A finding on the full text of passages, and one on that of turns."""
    for name, row, without_text, without_row, fine in (
        ("full text", "passage", _PASSAGES_WITHOUT_TEXT, _TEXTS_WITHOUT_PASSAGE, "as many rows as passages"),
        ("turns", "turn", _TURNS_WITHOUT_TEXT, _TEXTS_WITHOUT_TURN, "all that was said can be found"),
    ):  # fmt: skip
        lacking, extra = count_rows(tx, without_text), count_rows(tx, without_row)
        words = f"{lacking} {row}s have no full text, {extra} rows of it no {row}"
        is_whole = not (lacking or extra)
        yield Finding(name, "ok", fine) if is_whole else _fixable_problem(name, words)


def _check_vectors(tx: Connection) -> Finding:
    if wrong := count_rows(tx, _WRONG_VECTORS):
        words = f"{wrong} vectors are of no passage, or not of their space"
        remedy = "`memd doctor --fix` deletes them; the model makes them again"
        return _fixable_problem("vectors", words, remedy)
    sizes = ", ".join(f"{one.name} {one.vectors}" for one in vectors.measure_spaces(tx))
    return Finding("vectors", "ok", sizes or "no model has made any")


def _check_unknown_kinds(tx: Connection) -> Iterator[Finding]:
    """Tell what clients say that this memd does not know, if they do."""
    if kinds := [
        f"{n:,} of an unknown kind: {kind}" for kind, n in ledger.unknown_kinds(tx).items()
    ]:
        remedy = "they are kept and nothing is made of them; a newer memd may know them"
        yield Finding("unknown events", "warning", shorten_list(kinds), remedy)


def _check_ledger(tx: Connection) -> Finding:
    balance = ledger.balance(tx)
    received = balance.pop("received")
    out = sum(balance.values())
    if received == out:
        return Finding("books", "ok", f"{out} events received, every one accounted for")
    words = f"{received} events were received, {out} are accounted for"
    remedy = "the log shows what was written when; this cannot be repaired afterwards"
    return Finding("books", "problem", words, remedy)


def _check_erasure(tx: Connection) -> Finding:
    if "forgotten" in erasure.pending_marks(tx):
        words = "words that were forgotten are still in the write-ahead log, because something reads the vault"
        remedy = "the daemon removes them when that ends; `memd start` if none runs"
        return Finding("erasure", "warning", words, remedy)
    return Finding("erasure", "ok", "nothing is left of what was forgotten")


def _check_clock(tx: Connection, now: int) -> Finding:
    latest = now + _CLOCK_SLACK_MS
    ahead = count_rows(tx, "events WHERE at > ?", (latest,))
    if ahead:
        last = fetch_int(tx, "SELECT max(at) FROM events") or 0
        words = f"{ahead} events lie in the future, by up to {(last - now) / 60_000:,.0f} min"
        remedy = "see that this machine's clock is right; what it dated a week ahead or more counts as old"
        return Finding("clock", "warning", words, remedy)
    if int(ledger.read_note(tx, "created_at") or 0) > latest:
        words = "the vault was made in the future: the clock was set back"
        return Finding("clock", "warning", words, "see that this machine's clock is right")
    return Finding("clock", "ok", "no event lies in the future")


def _check_sync(tx: Connection, now: int) -> Iterator[Finding]:
    """A finding for every place that this vault was synced with."""
    for place in sharing.read_places(tx):
        days = (now - place.synced_at) // DAY_MS
        if days < _SYNC_DAYS_MAX:
            yield Finding("sync", "ok", f"synced with {place.place}")
        else:
            words = f"not synced with {place.place} for {days} days"
            yield Finding("sync", "warning", words, "`memd sync` shows what is wrong")
        if count := statements.count_newer(tx, place.place):
            words = f"{count} records at {place.place} were written by a newer memd, and left there"
            yield Finding("sync", "warning", words, "update memd on this machine")
    if waiting := len(statements.forgotten_but_there(tx)):
        words = f"{waiting} memories were forgotten on another machine, and are still here"
        yield Finding("sync", "warning", words, "`memd sync` erases them")


# ── Repair ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One reference of a table."""

    parent: str
    column: str
    parent_column: str
    cascades: bool
    """Whether rows are deleted with the row that they refer to."""


def broken_references(tx: Connection) -> Counter[tuple[str, int]]:
    """(table, number of its foreign key) → rows of it that refer to nothing."""
    rows = tx.execute("PRAGMA foreign_key_check")
    return Counter((str(table), int(number)) for table, _, _, number in rows)


def find_reference(tx: Connection, table: str, number: int) -> ForeignKey:
    """The foreign key of a table with this number."""
    keys = {row[0]: row for row in tx.execute(f"PRAGMA foreign_key_list({table})")}
    _, _, parent, column, parent_column, _, on_delete, *_ = keys[number]
    return ForeignKey(parent, column, parent_column, on_delete == "CASCADE")


def remove_orphans(tx: Connection) -> dict[str, int]:
    """Delete rows that refer to nothing; table → deleted rows. The indexer computes the rest again."""
    deleted: Counter[str] = Counter()

    def delete(table: str, condition: str) -> None:
        tx.execute(f"DELETE FROM {table} WHERE {condition}")
        deleted[table] += tx.changes()

    if any("passages_fts" in line for line in find_damage(tx)):
        tx.execute("INSERT INTO passages_fts (passages_fts) VALUES ('delete-all')")
    for table, number in broken_references(tx):
        key = find_reference(tx, table, number)
        if key.cascades:
            parents = f"SELECT {key.parent_column} FROM {key.parent}"
            delete(table, f"{key.column} IS NOT NULL AND {key.column} NOT IN ({parents})")
    ends = tx.execute(
        f"SELECT from_id FROM {_LOST_EDGES} AND type = 'contradicts' AND from_kind = 'summary'"
        f" UNION SELECT to_id FROM {_LOST_EDGES} AND type = 'contradicts' AND to_kind = 'summary'"
    )
    contradicted = {int(one) for (one,) in ends if str(one).isdigit()}
    with judgments.updating_confidence(tx, contradicted):
        delete("edges", f"id IN (SELECT id FROM {_LOST_EDGES})")
    delete("passages_fts", f"rowid IN (SELECT id FROM {_TEXTS_WITHOUT_PASSAGE})")
    delete("turns_fts", f"rowid IN (SELECT id FROM {_TEXTS_WITHOUT_TURN})")
    delete("vectors", f"id IN (SELECT v.id FROM {_WRONG_VECTORS})")
    uses = fulltext.count_term_uses(tx)
    stored: list[Any] = tx.execute("SELECT id, passages FROM terms").fetchall()
    tx.executemany(
        "UPDATE terms SET passages = ?2 WHERE id = ?1",
        [(term, uses[term]) for term, count in stored if count != uses[term]],
    )
    return {table: count for table, count in deleted.items() if count}


# ── Samples, which `memd doctor` compares with what would be indexed now ───────────────────────


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A stored passage: [start, stop) of the body, and term → (in title, in body)."""

    id: int
    start: int
    stop: int
    length: int
    terms: Mapping[str, tuple[int, int]]


def sample_summaries(tx: Connection, limit: int) -> list[int]:
    """Up to `limit` indexed memories, spread evenly over all of them."""
    sql = "SELECT id FROM summaries WHERE id NOT IN (SELECT summary_id FROM changes) ORDER BY id"
    ids = fetch_ids(tx, sql)
    return ids[:: max(1, -(-len(ids) // limit))]


def indexed_passages(tx: Connection, summary_id: int) -> list[IndexedPassage]:
    """A memory's stored passages, in order."""
    sql = "SELECT id, start, stop, length, postings FROM passages WHERE summary_id = ? ORDER BY seq"
    rows = fetch_all(tx, sql, (summary_id,))
    return [
        IndexedPassage(number, start, stop, length, _decode_terms(tx, blob))
        for number, start, stop, length, blob in rows
    ]


def _decode_terms(tx: Connection, blob: bytes) -> dict[str, tuple[int, int]]:
    found = {}
    for number, title, body in fulltext.unpack_postings([blob])[0].tolist():
        term = tx.execute("SELECT term FROM terms WHERE id = ?", (number,)).get
        found[f"#{number}" if term is None else str(term)] = (title, body)
    return found


# ── Salvage ────────────────────────────────────────────────────────────────────────────────────

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
    remove_orphans(into)
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
