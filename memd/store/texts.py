"""Where people's words stand in the vault, so that all of them can be read and rewritten in place.

A rewritten summary is found by its new words, for triggers tell the index; a rewritten event's turn
goes into the full text anew. Every text column of the schema is in `TABLES`, in `NAMES` or in
`WORDLESS`, proven by a test. Not here: what is to be rewritten, and why.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import apsw

from memd.models import Kind
from memd.store import cues
from memd.text import storable


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a row number, and its columns that hold words."""

    name: str
    columns: tuple[str, ...]
    json: frozenset[str] = frozenset()
    """Those of them that hold JSON."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row's words: column → text, NULL left out."""

    id: int
    texts: Mapping[str, str]


TABLES = (
    Table("events", ("payload", "name", "tool"), frozenset({"payload"})),
    Table(
        "summaries",
        ("title", "body", "topic_key", "tags", "files"),
        frozenset({"tags", "files"}),
    ),
    Table("sessions", ("title", "directory")),
    Table("projects", ("name", "reason")),
    Table("supersessions", ("guard",)),
    Table("edges", ("from_id", "to_id", "rule", "detail"), frozenset({"detail"})),
    Table("injections", ("reason",)),
    Table("judgments", ("reason",)),
)
"""Truth that can be rewritten. What is derived of it follows."""
NAMES = (
    ("projects", "key"),
    ("aliases", "key"),
    ("switches", "target"),
    ("imports", "path"),
    ("sessions", "key"),
)
"""Words by which something is found: changed, it would be another thing."""


def read(tx: apsw.Connection, table: Table, after: int, limit: int) -> list[Row]:
    """The next rows behind a number, in order."""
    return _rows(tx, table, "id > ? ORDER BY id LIMIT ?", (after, limit))


def by_ids(tx: apsw.Connection, table: Table, ids: Sequence[int]) -> list[Row]:
    """These rows; what is gone is left out."""
    return _rows(tx, table, f"id IN ({','.join('?' * len(ids))})", tuple(ids)) if ids else []


def _rows(tx: apsw.Connection, table: Table, where: str, values: tuple[int, ...]) -> list[Row]:
    found = tx.execute(
        f"SELECT id, {', '.join(table.columns)} FROM {table.name} WHERE {where}", values
    )
    return [
        Row(
            int(row[0]),
            {c: str(v) for c, v in zip(table.columns, row[1:], strict=True) if v is not None},
        )
        for row in found
    ]


def write(tx: apsw.Connection, table: Table, row: Row, changed: Mapping[str, str]) -> None:
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
        cues.put(tx, row.id, Kind(kind), now["title"], now["body"])


def names(tx: apsw.Connection) -> Iterator[tuple[str, str]]:
    """(table and column, text) of every word by which something is found."""
    for table, column in NAMES:
        for (text,) in tx.execute(f"SELECT {column} FROM {table}"):
            yield f"{table}.{column}", str(text)


def compact_json(value: object) -> str:
    """A JSON value as the vault writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
