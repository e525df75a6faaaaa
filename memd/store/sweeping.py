"""Rows that refer to what is not there, and taking them away.

Only rows go that the schema itself would have taken away with what they referred to, edges without an
end, and derived rows. Not here: looking at all of a vault (integrity.py), deriving anew (the indexer).
"""

from collections import Counter

import apsw

from memd.errors import VaultError
from memd.store import doubts, fulltext
from memd.store.vectors import STRIDE

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


def damage(tx: apsw.Connection) -> list[str]:
    """What SQLite finds damaged, in its words; at most three."""
    said = [str(row[0]) for row in tx.execute("PRAGMA integrity_check(3)")]
    return [] if said == ["ok"] else said


def broken(tx: apsw.Connection) -> Counter[tuple[str, int]]:
    """(table, number of its reference) → rows of it that refer to nothing."""
    rows = tx.execute("PRAGMA foreign_key_check")
    return Counter((str(table), int(number)) for table, _, _, number in rows)


def reference(tx: apsw.Connection, table: str, number: int) -> tuple[str, str, str, bool]:
    """(parent, column, its column there, whether rows go with it) of one reference."""
    for row in tx.execute(f"PRAGMA foreign_key_list({table})"):
        if row[0] == number:
            return str(row[2]), str(row[3]), str(row[4]), row[6] == "CASCADE"
    raise VaultError(f"{table} has no reference {number}")


def sweep(tx: apsw.Connection) -> dict[str, int]:
    """Take away what refers to nothing; table → rows that went. What is left is for the indexer."""
    gone: Counter[str] = Counter()
    if any("passages_fts" in line for line in damage(tx)):
        tx.execute("INSERT INTO passages_fts (passages_fts) VALUES ('delete-all')")
    for table, number in broken(tx):
        parent, column, there, goes = reference(tx, table, number)
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
    with doubts.weighed(tx, {int(one) for (one,) in ends if str(one).isdigit()}):
        tx.execute(f"DELETE {LOST_EDGE}")
        return int(tx.changes())


def _recount(tx: apsw.Connection) -> None:
    """Count again in how many passages each term stands."""
    uses = fulltext.count_uses(tx)
    known = [
        (int(term), int(count)) for term, count in tx.execute("SELECT id, passages FROM terms")
    ]
    tx.executemany(
        "UPDATE terms SET passages = ?2 WHERE id = ?1",
        [(term, uses[term]) for term, count in known if count != uses[term]],
    )
