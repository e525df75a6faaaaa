"""Rows found and written by their names: what every kind of record that arrives needs. No decisions."""

import json
from collections import Counter
from collections.abc import Mapping, Sized
from typing import Any

from memd.store.database import Connection

_NAMED = {
    "summary": ("summaries", "uid"),
    "session": ("sessions", "uid"),
    "event": ("events", "key"),
}


def row_id(tx: Connection, kind: str, name: str) -> int | None:
    """The number of the summary, session or event with this uid or key; None if there is none."""
    table, column = _NAMED[kind]
    found = tx.execute(f"SELECT id FROM {table} WHERE {column} = ?", (name,)).get
    return None if found is None else int(found)


def has_row(tx: Connection, table: str, columns: str, values: tuple[object, ...]) -> bool:
    """Whether a row of this table has these values in these columns, which are ours."""
    query = f"SELECT EXISTS (SELECT 1 FROM {table} WHERE ({columns}) = ({marks(values)}))"
    return bool(tx.execute(query, values).get)


def superseder_of(tx: Connection, summary_id: int) -> int | None:
    """The number of the summary that hides this one now."""
    found = tx.execute(
        "SELECT newer_id FROM supersessions WHERE older_id = ? AND undone_at IS NULL",
        (summary_id,),
    ).get
    return None if found is None else int(found)


def insert_row(
    tx: Connection, table: str, row: Mapping[str, object], *, or_leave: bool
) -> bool:
    """Write a row; with `or_leave`, False if another one stands in its way."""
    verb = "INSERT OR IGNORE" if or_leave else "INSERT"
    sql = f"{verb} INTO {table} ({', '.join(row)}) VALUES ({marks(row)})"
    tx.execute(sql, tuple(row.values()))
    return tx.changes() > 0


def last_id(tx: Connection, table: str) -> int:
    """The highest number of a table; 0 if it is empty."""
    return int(tx.execute(f"SELECT coalesce(max(id), 0) FROM {table}").get)


def json_text(value: object, separators: tuple[str, str] | None = None) -> str:
    """A JSON value as the store keeps it."""
    return json.dumps(value, ensure_ascii=False, separators=separators)


def marks(values: Sized) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


class SeenRows:
    """Which rows that have no name of their own, and can be undone, were spoken of before."""

    def __init__(self, tx: Connection) -> None:
        self._tx = tx
        self._spoken: Counter[tuple[object, ...]] = Counter()

    def is_here(
        self, table: str, columns: str, values: tuple[object, ...], undone_at: int | None
    ) -> bool:
        """Whether the row with these values is here: the first that is spoken of is the first that is here.

        Within one millisecond the same can be said, undone and said again, so a row may look like the
        next. It is here as well if so many are that were undone just then (None: hold): the first of
        its like may have been left out.
        """
        query = (
            f"SELECT count(*), count(*) FILTER (WHERE undone_at IS ?) FROM {table}"
            f" WHERE ({columns}) = ({marks(values)})"
        )
        alike, same = (table, values), (table, values, undone_at)
        self._spoken.update((alike, same))
        found: list[tuple[Any, ...]] = self._tx.execute(query, (undone_at, *values)).fetchall()
        here, just_so = found[0]
        return bool(self._spoken[alike] <= here or self._spoken[same] <= just_so)
