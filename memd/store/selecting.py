"""Which memories, events and sessions somebody means by a session, a project or a time. Reads only.

Both ends of a time are included. Not here: what becomes of them.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw


@dataclass(frozen=True, slots=True)
class Bounds:
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


def memories(tx: apsw.Connection, bounds: Bounds) -> list[int]:
    """The ids of the summaries within these bounds, in order."""
    where, values = _where(bounds, "s")
    rows = tx.execute(f"SELECT s.id FROM summaries s WHERE {where} ORDER BY s.id", values)
    return [int(row[0]) for row in rows]


def saying(tx: apsw.Connection, bounds: Bounds, words: tuple[str, ...]) -> list[int]:
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


def happened(tx: apsw.Connection, bounds: Bounds) -> list[int]:
    """The ids of the events within these bounds, in order."""
    where, values = _where(bounds, "e", "n.project_id")
    rows = tx.execute(
        "SELECT e.id FROM events e JOIN sessions n ON n.id = e.session_id"
        f" WHERE {where} ORDER BY e.id",
        values,
    )
    return [int(row[0]) for row in rows]


def sessions(tx: apsw.Connection, bounds: Bounds) -> list[int]:
    """The ids of the sessions that are meant as a whole, in order."""
    if not bounds.is_whole:
        return []
    rows = tx.execute(
        "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR id = ?2)"
        " ORDER BY id",
        (bounds.project_id, bounds.session_id),
    )
    return [int(row[0]) for row in rows]


def oldest(
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
    bounds: Bounds, table: str, project: str = "s.project_id"
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
