"""Consistency checks and repair."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import apsw

from memd.errors import VaultError
from memd.models import Finding
from memd.store import backup, fulltext, judgments, ledger, migrate, vectors
from memd.store.fulltext import unpack_postings
from memd.store.vectors import STRIDE

# MERGED from memd.store.sweeping:
# MERGED Rows that refer to what is not there, and taking them away.
# MERGED
# MERGED Only rows go that the schema itself would have taken away with what they referred to, edges without an
# MERGED end, and derived rows. Not here: looking at all of a vault (integrity.py), deriving anew (the indexer).


UNREAD = "FROM passages_fts_docsize WHERE id NOT IN (SELECT id FROM passages)"
UNHEARD = "FROM turns_fts_docsize WHERE id NOT IN (SELECT id FROM turns)"
STRANGE = (
    f"FROM vectors v LEFT JOIN spaces s ON s.id = v.id / {STRIDE} WHERE s.id IS NULL"
    " OR length(v.vector) NOT IN (2 * s.dimensions, (s.dimensions + 63) / 64 * 64 + 4)"
    f" OR v.id % {STRIDE} NOT IN (SELECT id FROM passages)"
)
"""Vectors of no space, of other dimensions than its space has, or of no passage."""
LOST_EDGE = (
    "FROM edges WHERE ((from_kind = 'summary' AND CAST(from_id AS INTEGER) NOT IN (SELECT id FROM summaries))"
    " OR (to_kind = 'summary' AND CAST(to_id AS INTEGER) NOT IN (SELECT id FROM summaries))"
    " OR (from_kind = 'event' AND CAST(from_id AS INTEGER) NOT IN (SELECT id FROM events))"
    " OR (to_kind = 'event' AND CAST(to_id AS INTEGER) NOT IN (SELECT id FROM events)))"
)


def find_damage(tx: apsw.Connection) -> list[str]:
    """What SQLite finds damaged, in its words; at most three."""
    said = [str(row[0]) for row in tx.execute("PRAGMA integrity_check(3)")]
    return [] if said == ["ok"] else said


def broken_references(tx: apsw.Connection) -> Counter[tuple[str, int]]:
    """(table, number of its reference) → rows of it that refer to nothing."""
    rows = tx.execute("PRAGMA foreign_key_check")
    return Counter((str(table), int(number)) for table, _, _, number in rows)


def find_reference(tx: apsw.Connection, table: str, number: int) -> tuple[str, str, str, bool]:
    """(parent, column, its column there, whether rows go with it) of one reference."""
    for row in tx.execute(f"PRAGMA foreign_key_list({table})"):
        if row[0] == number:
            return str(row[2]), str(row[3]), str(row[4]), row[6] == "CASCADE"
    raise VaultError(f"{table} has no reference {number}")


def remove_orphans(tx: apsw.Connection) -> dict[str, int]:
    """Take away what refers to nothing; table → rows that went. What is left is for the indexer."""
    gone: Counter[str] = Counter()
    if any("passages_fts" in line for line in find_damage(tx)):
        tx.execute("INSERT INTO passages_fts (passages_fts) VALUES ('delete-all')")
    for table, number in broken_references(tx):
        parent, column, there, goes = find_reference(tx, table, number)
        if goes:
            tx.execute(
                f"DELETE FROM {table} WHERE {column} IS NOT NULL"
                f" AND {column} NOT IN (SELECT {there} FROM {parent})"
            )
            gone[table] += tx.changes()
    gone["edges"] += _drop_edges(tx)
    for table, what in (("passages_fts", UNREAD), ("turns_fts", UNHEARD)):
        tx.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT id {what})")
        gone[table] += tx.changes()
    tx.execute(f"DELETE FROM vectors WHERE id IN (SELECT v.id {STRANGE})")
    gone["vectors"] += tx.changes()
    _recount(tx)
    return {table: count for table, count in gone.items() if count}


def _drop_edges(tx: apsw.Connection) -> int:
    ends = tx.execute(
        f"SELECT from_id {LOST_EDGE} AND type = 'contradicts' AND from_kind = 'summary'"
        f" UNION SELECT to_id {LOST_EDGE} AND type = 'contradicts' AND to_kind = 'summary'"
    )
    with judgments.updating_confidence(tx, {int(one) for (one,) in ends if str(one).isdigit()}):
        tx.execute(f"DELETE {LOST_EDGE}")
        return int(tx.changes())


def _recount(tx: apsw.Connection) -> None:
    """Count again in how many passages each term stands."""
    uses = fulltext.count_term_uses(tx)
    known = [
        (int(term), int(count)) for term, count in tx.execute("SELECT id, passages FROM terms")
    ]
    tx.executemany(
        "UPDATE terms SET passages = ?2 WHERE id = ?1",
        [(term, uses[term]) for term, count in known if count != uses[term]],
    )


# MERGED from memd.store.integrity:
# MERGED Whether a vault is whole: what SQLite says, whether what is derived equals the truth, what refers to nothing.
# MERGED
# MERGED Looking changes nothing. Not here: taking anything away (sweeping.py), computing a sample of the
# MERGED derived rows anew (index/check.py).


_SLACK_MS = 300_000
"""Clocks of two programs may differ by so much."""
RESTORE = (
    "`memd restore` brings back the last backup, `memd restore --salvage` takes what can be read;"
    " the damaged file is kept"
)
_REINDEX = "`memd doctor --fix` or `memd reindex` computes it anew"

_UNINDEXED = (
    "FROM summaries s WHERE NOT EXISTS (SELECT 1 FROM passages p WHERE p.summary_id = s.id)"
    " AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.summary_id = s.id)"
)
_OWNERLESS = (
    "FROM passages WHERE summary_id NOT IN (SELECT id FROM summaries)"
    " AND summary_id NOT IN (SELECT summary_id FROM changes)"
)
_UNWRITTEN = "FROM passages WHERE id NOT IN (SELECT id FROM passages_fts_docsize)"
_UNSAID = "FROM turns WHERE id NOT IN (SELECT id FROM turns_fts_docsize)"


def examine_vault(tx: apsw.Connection, now: int, *, is_served: bool) -> list[Finding]:
    """Look at all of a vault; `now`: UTC milliseconds.

    `is_served`: whether a daemon works on what is pending. A vault that SQLite finds damaged, or that
    has an older schema, is looked at no further.
    """
    whole = _database(tx)
    if whole.verdict == "problem":
        return [whole]
    try:
        backup.require_current_schema(tx)
    except VaultError as error:
        return [whole, Finding("schema", "warning", error.message, "`memd restart`")]
    return [
        whole,
        Finding("schema", "ok", f"version {len(migrate.migrations())}"),
        _references(tx),
        _edges(tx),
        _changes(tx, is_served=is_served),
        _passages(tx),
        _fulltext(tx),
        _turns(tx),
        _vectors(tx),
        _books(tx),
        _clock(tx, now),
        _capture(tx, now),
    ]


def _count(tx: apsw.Connection, what: str) -> int:
    return int(tx.execute(f"SELECT count(*) {what}").get)


def _database(tx: apsw.Connection) -> Finding:
    said = find_damage(tx)
    if not said:
        size = int(tx.pragma("page_count")) * int(tx.pragma("page_size"))
        return Finding("database", "ok", f"SQLite finds {size / 1e6:.1f} MB whole")
    if all("fts" in line.lower() for line in said):
        return Finding(
            "database",
            "warning",
            f"an index is damaged: {'; '.join(said)}",
            _REINDEX,
            fixable=True,
        )
    return Finding("database", "problem", f"SQLite finds damage: {'; '.join(said)}", RESTORE)


def _references(tx: apsw.Connection) -> Finding:
    broken = broken_references(tx)
    if not broken:
        return Finding("references", "ok", "every row refers to one that is there")
    told = ", ".join(f"{count} of {table}" for (table, _), count in sorted(broken.items()))
    words = f"rows refer to what is not there: {told}"
    if all(find_reference(tx, *one)[3] for one in broken):
        remedy = "`memd doctor --fix` takes away the rows, which say nothing any more"
        return Finding("references", "problem", words, remedy, fixable=True)
    return Finding("references", "problem", words, RESTORE)


def _edges(tx: apsw.Connection) -> Finding:
    lost = _count(tx, LOST_EDGE)
    if not lost:
        return Finding("provenance", "ok", "every edge has both its ends")
    remedy = "`memd doctor --fix` takes the edges away"
    words = f"{lost} edges begin or end at what is not there"
    return Finding("provenance", "problem", words, remedy, fixable=True)


def _changes(tx: apsw.Connection, *, is_served: bool) -> Finding:
    waiting = fulltext.count_changes(tx)
    if not waiting:
        return Finding("changes", "ok", "the index has learnt everything")
    words = f"{waiting} memories are not searchable yet"
    if is_served:
        remedy = "wait a moment; if it stays so, look at the indexer in `memd status`"
        return Finding("changes", "warning", words, remedy)
    return Finding("changes", "ok", f"{words}; the daemon does that when it runs")


def _passages(tx: apsw.Connection) -> Finding:
    lacking, extra = _count(tx, _UNINDEXED), _count(tx, _OWNERLESS)
    if lacking or extra:
        words = f"{lacking} memories have no passage, {extra} passages have no memory"
        return Finding("passages", "problem", words, _REINDEX, fixable=True)
    counted = int(tx.execute("SELECT coalesce(sum(passages), 0) FROM terms").get)
    try:
        there = fulltext.count_term_uses(tx).total()
    except ValueError:
        words = "the postings of some passages cannot be read"
        return Finding("passages", "problem", words, _REINDEX, fixable=True)
    if counted != there:
        words = f"the vocabulary counts {counted} postings of {there}"
        return Finding("passages", "problem", words, _REINDEX, fixable=True)
    return Finding("passages", "ok", f"{_count(tx, 'FROM passages')} for every memory there is")


def _fulltext(tx: apsw.Connection) -> Finding:
    lacking, extra = _count(tx, _UNWRITTEN), _count(tx, UNREAD)
    if not (lacking or extra):
        return Finding("full text", "ok", "as many rows as passages")
    words = f"{lacking} passages have no full text, {extra} rows of it no passage"
    return Finding("full text", "problem", words, _REINDEX, fixable=True)


def _turns(tx: apsw.Connection) -> Finding:
    lacking, extra = _count(tx, _UNSAID), _count(tx, UNHEARD)
    if not (lacking or extra):
        return Finding("turns", "ok", "all that was said can be found")
    words = f"{lacking} turns have no full text, {extra} rows of it no turn"
    return Finding("turns", "problem", words, _REINDEX, fixable=True)


def _vectors(tx: apsw.Connection) -> Finding:
    strange = _count(tx, STRANGE)
    if strange:
        words = f"{strange} vectors are of no passage, or not of their space"
        remedy = "`memd doctor --fix` takes them away; the model makes them anew"
        return Finding("vectors", "problem", words, remedy, fixable=True)
    told = ", ".join(f"{one.name} {one.vectors}" for one in vectors.measure_spaces(tx))
    return Finding("vectors", "ok", told or "no model has made any")


def _books(tx: apsw.Connection) -> Finding:
    balance = ledger.balance(tx)
    out = sum(balance[name] for name in ("stored", "duplicate", "filtered", "refused"))
    if balance["received"] == out:
        return Finding("books", "ok", f"{out} events received, every one accounted for")
    words = f"{balance['received']} events were received, {out} are accounted for"
    remedy = "the log says what was written when; nothing can be mended afterwards"
    return Finding("books", "problem", words, remedy)


def _clock(tx: apsw.Connection, now: int) -> Finding:
    ((ahead, last),) = tx.execute(
        "SELECT count(*), coalesce(max(at), 0) FROM events WHERE at > ?", (now + _SLACK_MS,)
    )
    if ahead:
        minutes = (int(last) - now) / 60_000
        words = f"{ahead} events lie in the future, by up to {minutes:,.0f} min"
        remedy = "see that this machine's clock is right; what it dated a week ahead or more counts as old"
        return Finding("clock", "warning", words, remedy)
    if int(ledger.read_note(tx, "created_at") or 0) > now + _SLACK_MS:
        words = "the vault was made in the future: the clock was set back"
        return Finding("clock", "warning", words, "see that this machine's clock is right")
    return Finding("clock", "ok", "no event lies in the future")


def _capture(tx: apsw.Connection, now: int) -> Finding:
    last = tx.execute(
        "SELECT at FROM events WHERE source IN ('live', 'spool') ORDER BY id DESC LIMIT 1"
    ).get
    if last is None:
        return Finding("capture", "ok", "no hook has brought an event yet")
    hours = max(0, now - int(last)) / 3_600_000
    ago = f"{hours * 60:.0f} min" if hours < 1 else f"{hours:.0f} h"
    return Finding("capture", "ok", f"a hook last brought an event {ago} ago")


# MERGED from memd.store.sampling:
# MERGED Some memories and their passages as they are stored, to compare with what would be stored now.
# MERGED
# MERGED Not here: that comparison (index/check.py).


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A stored passage: [start, stop) of the body, and term → (in title, in body)."""

    id: int
    start: int
    stop: int
    length: int
    terms: Mapping[str, tuple[int, int]]


def sample_summaries(tx: apsw.Connection, limit: int) -> list[int]:
    """Up to so many memories that the index has learnt, spread evenly over all of them."""
    rows = tx.execute(
        "SELECT id FROM summaries WHERE id NOT IN (SELECT summary_id FROM changes) ORDER BY id"
    )
    ids = [int(number) for (number,) in rows]
    return ids[:: max(1, -(-len(ids) // limit))]


def indexed_passages(tx: apsw.Connection, summary_id: int) -> list[IndexedPassage]:
    """A memory's passages as they are stored, in order."""
    rows = tx.execute(
        "SELECT id, start, stop, length, postings FROM passages WHERE summary_id = ? ORDER BY seq",
        (summary_id,),
    )
    return [
        IndexedPassage(number, start, stop, length, _terms(tx, blob))
        for number, start, stop, length, blob in rows
    ]


def _terms(tx: apsw.Connection, blob: bytes) -> dict[str, tuple[int, int]]:
    found = {}
    for number, title, body in unpack_postings([blob])[0].tolist():
        term = tx.execute("SELECT term FROM terms WHERE id = ?", (number,)).get
        found[f"#{number}" if term is None else str(term)] = (title, body)
    return found
