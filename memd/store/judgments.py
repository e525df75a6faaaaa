"""Judgments on pairs of memories, contradictions between them, and the confidence in a memory.

Confidence is kept as odds, so that repetitions and contradictions may come in any order, can be
undone exactly, and never make a memory certain or worthless.
"""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from math import log2
from typing import Any

from apsw import Connection

from memd.models import NOTED, Authority, Judgment, Stance
from memd.store import MemoryStanding
from memd.store.filter import NOT_SUPERSEDED, marks
from memd.store.queries import fetch_all, fetch_first, fetch_groups, fetch_ids, fetch_rows

JUDGED_RULE, ASKED_RULE = "judged", "asked"
"""The rules of what a judgment writes, and of the edge for what an agent may not judge and so asks the user."""
INITIAL_CONFIDENCE = {"user": 0.9, "agent": 0.8}
"""Source of an explicit memory → its confidence at first."""
IMPORTED_CONFIDENCE = 0.5
"""Confidence at first of a memory that was read from another place."""
CAPTURED_CONFIDENCE_MAX = 0.7
"""Confidence at first of a captured memory is at most this, however certain the rule that found it."""
REPEAT_ODDS_GAIN = 0.5
"""Each doubling of the repetitions raises the odds by this part of the initial odds."""
CONTRADICTION_ODDS_FACTOR = 0.5
"""Each memory that contradicts one of the same or a lesser standing multiplies its odds by this."""
_CONFIDENCE_MIN, _CONFIDENCE_MAX = 0.001, 0.999
_CONFIDENCE_DIGITS = 6
AUTHORITY = f"({{0}}.authority * 10 + iif({{0}}.authority = {Authority.AGENT_CALL.code} AND {{0}}.rule LIKE '{NOTED}%', 5, 0))"
"""The authority of the memories under this name of their table, as Authority has it."""
STANDING = f"max({AUTHORITY}, coalesce({{0}}.pinned_by, 0) * 10)"
"""The same, or that of who pinned them if greater."""


# ── Confidence (pure) ──────────────────────────────────────────────────────────────────────────


def initial_confidence(source: str) -> float:
    """Confidence at first of an explicit memory from this source."""
    return INITIAL_CONFIDENCE.get(source, IMPORTED_CONFIDENCE)


def captured_confidence(certainty: float) -> float:
    """Confidence at first of a memory that a rule found with this certainty, 0 to 1."""
    return min(certainty, CAPTURED_CONFIDENCE_MAX)


def confidence_after_repeats(confidence: float, was: int, now: int) -> float:
    """Confidence of a memory that was stated `now` times instead of `was` times, each at least once."""
    before, after = (1 + REPEAT_ODDS_GAIN * log2(max(count, 1)) for count in (was, now))
    return _multiply_odds(confidence, after / before)


def confidence_after_contradictions(confidence: float, was: int, now: int) -> float:
    """Confidence of a memory that `now` others contradict instead of `was`."""
    return _multiply_odds(confidence, CONTRADICTION_ODDS_FACTOR ** (now - was))


def _multiply_odds(confidence: float, factor: float) -> float:
    bounded = min(max(confidence, _CONFIDENCE_MIN), _CONFIDENCE_MAX)
    odds = bounded / (1 - bounded) * factor
    return round(odds / (1 + odds), _CONFIDENCE_DIGITS)


# ── Contradictions ─────────────────────────────────────────────────────────────────────────────


def contradicting_ids(tx: Connection, summary_ids: Collection[int]) -> dict[int, set[int]]:
    """Return the contradicted ones of these, each with what contradicts it, hidden memories too.

    An edge says that two memories contradict each other; another judgment of the pair overrules it. What only an agent
    judged puts no doubt on a greater word: it is for the user to judge.
    """
    if not summary_ids:
        return {}
    places = marks(summary_ids)
    ids = tuple(str(number) for number in summary_ids)
    standing = f"SELECT {STANDING.format('s')} FROM summaries s WHERE s.id = one"
    is_greater = f"({standing}) > {Authority.AGENT_CALL:d}"
    sql = (
        "WITH pairs (one, other, rule) AS ("
        " SELECT CAST(from_id AS INTEGER), CAST(to_id AS INTEGER), rule FROM edges WHERE from_kind = 'summary'"
        f" AND from_id IN ({places}) AND type = 'contradicts' AND to_kind = 'summary'"
        " UNION SELECT CAST(to_id AS INTEGER), CAST(from_id AS INTEGER), rule FROM edges WHERE to_kind = 'summary'"
        # The + keeps SQLite from scanning all edges of summaries.
        f" AND to_id IN ({places}) AND type = 'contradicts' AND +from_kind = 'summary')"
        " SELECT one, other FROM pairs WHERE NOT EXISTS (SELECT 1 FROM judgments j"
        " WHERE j.undone_at IS NULL AND (j.relation <> 'contradicts' OR (j.who = 'agent' AND pairs.rule = '"
        f"{JUDGED_RULE}' AND {is_greater}))"
        " AND ((j.newer_id = one AND j.older_id = other) OR (j.newer_id = other AND j.older_id = one)))"
        f" AND NOT (pairs.rule = '{ASKED_RULE}' AND {is_greater})"
    )
    found = fetch_groups(tx, sql, (*ids, *ids))
    return {one: set(others) for one, others in found.items()}


def visible_contradictions(
    tx: Connection, summary_ids: Collection[int], project_ids: Collection[int] | None = None
) -> dict[int, tuple[int, ...]]:
    """Return the ones of these that a visible memory of these projects (None: of any) contradicts."""
    found = contradicting_ids(tx, summary_ids)
    others = {other for against in found.values() for other in against}
    if not others:
        return {}
    sql = (
        f"SELECT id, project_id FROM summaries s WHERE id IN ({marks(others)}) AND {NOT_SUPERSEDED}"
    )
    visible = {
        number
        for number, project_id in fetch_all(tx, sql, tuple(others))
        if project_ids is None or project_id in project_ids
    }
    return {
        one: tuple(sorted(against & visible)) for one, against in found.items() if against & visible
    }


def replaced_beside(tx: Connection, summary_ids: Collection[int]) -> list[tuple[int, str, int]]:
    """(one of these memories, title of another of the same words, what replaced that other one) of what is replaced now.

    Two are of the same words if they derive from one event.
    """
    # In this order: by itself SQLite would walk the edges of all memories.
    sql = (
        "SELECT CAST(mine.from_id AS INTEGER), older.title, gone.newer_id FROM edges mine"
        " CROSS JOIN edges theirs INDEXED BY edges_by_target"
        " ON theirs.to_kind = 'event' AND theirs.to_id = mine.to_id AND theirs.type = 'derives_from'"
        " AND theirs.from_kind = 'summary' AND theirs.from_id <> mine.from_id"
        " CROSS JOIN summaries older ON older.id = CAST(theirs.from_id AS INTEGER)"
        " CROSS JOIN supersessions gone ON gone.older_id = older.id AND gone.undone_at IS NULL"
        f" WHERE mine.from_kind = 'summary' AND mine.from_id IN ({marks(summary_ids)})"
        " AND mine.type = 'derives_from' AND mine.to_kind = 'event'"
    )
    return fetch_all(tx, sql, tuple(map(str, summary_ids))) if summary_ids else []


def standings_of(tx: Connection, summary_ids: Collection[int]) -> dict[int, MemoryStanding]:
    """Return the authority and time of each of these memories."""
    sql = f"SELECT id, at, {AUTHORITY.format('summaries')}, pinned_by, author FROM summaries WHERE id IN ({marks(summary_ids)})"
    rows = tx.execute(sql, tuple(summary_ids))
    return {
        number: MemoryStanding(
            number, at, Authority(said), None if by is None else Authority.of(by), author
        )
        for number, at, said, by, author in rows
    }


_OPEN_CONTRADICTIONS = (
    "SELECT DISTINCT a.id AS one, b.id AS other FROM edges e"
    " JOIN summaries a ON a.id = CAST(e.from_id AS INTEGER)"
    " JOIN summaries b ON b.id = CAST(e.to_id AS INTEGER)"
    " WHERE e.type = 'contradicts' AND e.from_kind = 'summary' AND e.to_kind = 'summary'"
    " AND NOT EXISTS (SELECT 1 FROM supersessions x"
    " WHERE x.older_id IN (a.id, b.id) AND x.undone_at IS NULL)"
    " AND NOT EXISTS (SELECT 1 FROM judgments j WHERE j.undone_at IS NULL AND j.relation <> 'contradicts'"
    " AND min(j.newer_id, j.older_id) = min(a.id, b.id) AND max(j.newer_id, j.older_id) = max(a.id, b.id))"
)


def count_open_contradictions(tx: Connection, project_ids: Collection[int] | None = None) -> int:
    """Count the pairs of visible memories that contradict each other and are not resolved.

    Of these projects; None: of every one.
    """
    query, values = _select_open(project_ids)
    return int(tx.execute(f"SELECT count(*) FROM ({query})", values).get)


def open_contradictions(
    tx: Connection, limit: int, project_ids: Collection[int] | None = None
) -> list[tuple[int, int]]:
    """The latest such pairs, (the memory that contradicts, the other)."""
    query, values = _select_open(project_ids)
    return fetch_all(tx, f"{query} ORDER BY e.id DESC LIMIT ?", (*values, limit))


def _select_open(project_ids: Collection[int] | None) -> tuple[str, tuple[int, ...]]:
    if project_ids is None:
        return _OPEN_CONTRADICTIONS, ()
    inside = f"{_OPEN_CONTRADICTIONS} AND a.project_id IN ({marks(project_ids)})"
    return inside, tuple(project_ids)


def _count_objectors(tx: Connection, summary_ids: Collection[int]) -> dict[int, int]:
    """Count for each the memories of the same or a greater authority that contradict it; 0 is left out."""
    against = contradicting_ids(tx, summary_ids)
    ids = {*against, *(other for others in against.values() for other in others)}
    sql = f"SELECT id, {STANDING.format('summaries')} FROM summaries WHERE id IN ({marks(ids)})"
    standings = dict(tx.execute(sql, tuple(ids)))
    return {
        # What is gone has counted while it was there.
        one: sum(standings.get(other, standings[one]) >= standings[one] for other in others)
        for one, others in against.items()
        if one in standings
    }


@contextlib.contextmanager
def updating_confidence(tx: Connection, summary_ids: Collection[int]) -> Iterator[None]:
    """Update the confidence of these afterwards if the block changes what of their standing contradicts them."""
    ids = sorted(set(summary_ids))
    before = _count_objectors(tx, ids)
    yield
    after = _count_objectors(tx, ids)
    for number in ids:
        _move_confidence(tx, number, before.get(number, 0), after.get(number, 0))


@contextlib.contextmanager
def changing_standing(tx: Connection, summary_id: int) -> Iterator[None]:
    """Update the confidence of a memory whose speaker or pin the block changes, and of what it contradicts."""
    others = contradicting_ids(tx, [summary_id]).get(summary_id, set())
    with updating_confidence(tx, {summary_id, *others}):
        yield


def put_first_confidence(tx: Connection, summary_id: int, first: float, duplicates: int) -> None:
    """Store the confidence of a memory that has `first` without its repetitions and contradictions."""
    repeated = confidence_after_repeats(first, 1, duplicates)
    tx.execute("UPDATE summaries SET confidence = ? WHERE id = ?", (repeated, summary_id))
    _move_confidence(tx, summary_id, 0, _count_objectors(tx, [summary_id]).get(summary_id, 0))


def first_confidence(tx: Connection, summary_id: int, duplicates: int, stored: float) -> float:
    """The confidence of a memory without its repetitions and contradictions: what put_first_confidence takes."""
    objectors = _count_objectors(tx, [summary_id]).get(summary_id, 0)
    return confidence_after_repeats(
        confidence_after_contradictions(stored, objectors, 0), duplicates, 1
    )


def confidences_from(
    tx: Connection, summary_ids: Collection[int], first: float
) -> dict[int, float]:
    """The confidence of each of these had it begun with `first`, and did only what is newer lower it: ClawMem's."""
    against = contradicting_ids(tx, summary_ids)
    ids = {*summary_ids, *(other for others in against.values() for other in others)}
    sql = f"SELECT id, at, duplicates FROM summaries WHERE id IN ({marks(ids)})"
    known = {number: (at, duplicates) for number, at, duplicates in fetch_all(tx, sql, tuple(ids))}
    found = {}
    for one in known.keys() & set(summary_ids):
        at, duplicates = known[one]
        newer = sum(
            (known[other][0], other) > (at, one) for other in against.get(one, ()) if other in known
        )
        repeated = confidence_after_repeats(first, 1, duplicates)
        found[one] = confidence_after_contradictions(repeated, 0, newer)
    return found


def _move_confidence(tx: Connection, summary_id: int, was: int, now: int) -> None:
    stored = tx.execute("SELECT confidence FROM summaries WHERE id = ?", (summary_id,)).get
    if was != now and stored is not None:
        sql = "UPDATE summaries SET confidence = ? WHERE id = ?"
        tx.execute(sql, (confidence_after_contradictions(stored, was, now), summary_id))


# ── Judgments: one at a time holds for a pair, and stands above every rule ─────────────────────

_COLUMNS = "id, newer_id, older_id, relation, reason, who, at, undone_at"
"""In the order of the fields of Judgment."""


def _to_judgment(*row: Any) -> Judgment:
    values = list(row)
    values[3] = Stance(row[3])
    return Judgment(*values)


def put_judgment(  # noqa: PLR0913  # one argument a column
    tx: Connection,
    *,
    newer_id: int,
    older_id: int,
    relation: Stance,
    reason: str,
    who: str,
    at: int,
) -> int:
    """Store what `newer` is to `older`; its id. No judgment of the pair may hold already."""
    with updating_confidence(tx, (newer_id, older_id)):
        sql = (
            "INSERT INTO judgments (newer_id, older_id, relation, reason, who, at)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING id"
        )
        return int(tx.execute(sql, (newer_id, older_id, relation.value, reason, who, at)).get)


def upheld_by_user(tx: Connection, summary_ids: Sequence[int]) -> list[int]:
    """Return those of these memories that the user judged to supersede another, while that holds."""
    sql = (
        "SELECT DISTINCT newer_id FROM judgments WHERE relation = 'supersedes' AND who = 'user'"
        f" AND undone_at IS NULL AND newer_id IN ({marks(summary_ids)})"
    )
    return fetch_ids(tx, sql, tuple(summary_ids))


def undo_judgment(tx: Connection, judgment: Judgment, at: int) -> bool:
    """Let it hold no longer; the row stays, marked. False if it was undone already."""
    with updating_confidence(tx, (judgment.newer_id, judgment.older_id)):
        sql = "UPDATE judgments SET undone_at = ? WHERE id = ? AND undone_at IS NULL"
        tx.execute(sql, (at, judgment.id))
        return tx.changes() > 0


def judgment_between(tx: Connection, one_id: int, other_id: int) -> Judgment | None:
    """The judgment of this pair, in any order, that holds now."""
    sql = (
        f"SELECT {_COLUMNS} FROM judgments WHERE undone_at IS NULL"
        " AND ((newer_id = ?1 AND older_id = ?2) OR (newer_id = ?2 AND older_id = ?1))"
    )
    return fetch_first(tx, _to_judgment, sql, (one_id, other_id))


def stance_between(tx: Connection, one_id: int, other_id: int) -> Stance | None:
    """Return the judgment on a pair, in any order; None without one that holds."""
    found = judgment_between(tx, one_id, other_id)
    return found.relation if found else None


def stances_of_pairs(tx: Connection, summary_ids: Collection[int]) -> dict[tuple[int, int], Stance]:
    """Every pair, the smaller id first, that one of these is part of → what it was judged to be."""
    places = marks(summary_ids)
    rows = tx.execute(
        "SELECT min(newer_id, older_id), max(newer_id, older_id), relation FROM judgments"
        f" WHERE undone_at IS NULL AND (newer_id IN ({places}) OR older_id IN ({places}))",
        (*summary_ids, *summary_ids),
    )
    return {(low, high): Stance(relation) for low, high, relation in rows}


def judgments_of(tx: Connection, summary_id: int) -> list[Judgment]:
    """Every judgment that this memory is part of, undone ones too, oldest first."""
    sql = f"SELECT {_COLUMNS} FROM judgments WHERE newer_id = ?1 OR older_id = ?1 ORDER BY at, id"
    return fetch_rows(tx, _to_judgment, sql, (summary_id,))


def judged_ids(tx: Connection, summary_ids: Collection[int]) -> frozenset[int]:
    """Return those that somebody judged, or about which somebody undid a decision."""
    few = tuple(summary_ids)
    found: set[int] = set()
    for table, condition in (("judgments", "1"), ("supersessions", "undone_at IS NOT NULL")):
        for column in ("newer_id", "older_id"):
            sql = f"SELECT {column} FROM {table} WHERE {condition} AND {column} IN ({marks(few)})"
            found.update(fetch_ids(tx, sql, few))
    return frozenset(found)
