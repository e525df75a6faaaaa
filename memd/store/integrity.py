"""Whether a vault is whole: what SQLite says, whether what is derived equals the truth, what refers to nothing.

Looking changes nothing. Not here: taking anything away (sweeping.py), computing a sample of the
derived rows anew (index/check.py).
"""

import apsw

from memd.errors import VaultError
from memd.models import Finding
from memd.store import books, changes, fulltext, migrate, snapshot, spaces, sweeping

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


def examine(tx: apsw.Connection, now: int, *, is_served: bool) -> list[Finding]:
    """Look at all of a vault; `now`: UTC milliseconds.

    `is_served`: whether a daemon works on what is pending. A vault that SQLite finds damaged, or that
    has an older schema, is looked at no further.
    """
    whole = _database(tx)
    if whole.verdict == "problem":
        return [whole]
    try:
        snapshot.check_current(tx)
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
    said = sweeping.damage(tx)
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
    broken = sweeping.broken(tx)
    if not broken:
        return Finding("references", "ok", "every row refers to one that is there")
    told = ", ".join(f"{count} of {table}" for (table, _), count in sorted(broken.items()))
    words = f"rows refer to what is not there: {told}"
    if all(sweeping.reference(tx, *one)[3] for one in broken):
        remedy = "`memd doctor --fix` takes away the rows, which say nothing any more"
        return Finding("references", "problem", words, remedy, fixable=True)
    return Finding("references", "problem", words, RESTORE)


def _edges(tx: apsw.Connection) -> Finding:
    lost = _count(tx, sweeping.LOST_EDGE)
    if not lost:
        return Finding("provenance", "ok", "every edge has both its ends")
    remedy = "`memd doctor --fix` takes the edges away"
    words = f"{lost} edges begin or end at what is not there"
    return Finding("provenance", "problem", words, remedy, fixable=True)


def _changes(tx: apsw.Connection, *, is_served: bool) -> Finding:
    waiting = changes.count(tx)
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
        there = fulltext.count_uses(tx).total()
    except ValueError:
        words = "the postings of some passages cannot be read"
        return Finding("passages", "problem", words, _REINDEX, fixable=True)
    if counted != there:
        words = f"the vocabulary counts {counted} postings of {there}"
        return Finding("passages", "problem", words, _REINDEX, fixable=True)
    return Finding("passages", "ok", f"{_count(tx, 'FROM passages')} for every memory there is")


def _fulltext(tx: apsw.Connection) -> Finding:
    lacking, extra = _count(tx, _UNWRITTEN), _count(tx, sweeping.UNREAD)
    if not (lacking or extra):
        return Finding("full text", "ok", "as many rows as passages")
    words = f"{lacking} passages have no full text, {extra} rows of it no passage"
    return Finding("full text", "problem", words, _REINDEX, fixable=True)


def _turns(tx: apsw.Connection) -> Finding:
    lacking, extra = _count(tx, _UNSAID), _count(tx, sweeping.UNHEARD)
    if not (lacking or extra):
        return Finding("turns", "ok", "all that was said can be found")
    words = f"{lacking} turns have no full text, {extra} rows of it no turn"
    return Finding("turns", "problem", words, _REINDEX, fixable=True)


def _vectors(tx: apsw.Connection) -> Finding:
    strange = _count(tx, sweeping.STRANGE)
    if strange:
        words = f"{strange} vectors are of no passage, or not of their space"
        remedy = "`memd doctor --fix` takes them away; the model makes them anew"
        return Finding("vectors", "problem", words, remedy, fixable=True)
    told = ", ".join(f"{one.name} {one.vectors}" for one in spaces.weigh(tx))
    return Finding("vectors", "ok", told or "no model has made any")


def _books(tx: apsw.Connection) -> Finding:
    balance = books.balance(tx)
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
    if int(books.note(tx, "created_at") or 0) > now + _SLACK_MS:
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
