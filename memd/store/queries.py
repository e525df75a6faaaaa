"""Small queries and writes that every table needs."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from apsw import Connection
from pydantic_core import PydanticSerializationError, to_json

from memd.store.filter import marks

_NAME_COLUMNS = {
    "summary": ("summaries", "uid"),
    "session": ("sessions", "uid"),
    "event": ("events", "key"),
}
"""Kind of row → its table, and the column that names it in every vault."""

T = TypeVar("T")
Values = Sequence[object]


def fetch_all(tx: Connection, sql: str, values: Values = ()) -> list[Any]:
    """Every row, as a tuple."""
    return tx.execute(sql, tuple(values)).fetchall()


def fetch_rows(tx: Connection, make: Callable[..., T], sql: str, values: Values = ()) -> list[T]:
    """Every row as what `make` makes of its columns."""
    return [make(*row) for row in tx.execute(sql, tuple(values))]


def fetch_first(tx: Connection, make: Callable[..., T], sql: str, values: Values = ()) -> T | None:
    """The first row as what `make` makes of its columns; None without any."""
    return next(iter(fetch_rows(tx, make, sql, values)), None)


def fetch_column(tx: Connection, sql: str, values: Values = ()) -> list[Any]:
    """The first column of each row."""
    return [row[0] for row in tx.execute(sql, tuple(values))]


def fetch_groups(tx: Connection, sql: str, values: Values = ()) -> dict[Any, list[Any]]:
    """The second column of the rows, by the first."""
    found: dict[Any, list[Any]] = {}
    for key, value in tx.execute(sql, tuple(values)):
        found.setdefault(key, []).append(value)
    return found


def fetch_ids(tx: Connection, sql: str, values: Values = ()) -> list[int]:
    """The first column of each row, as numbers."""
    return [int(row[0]) for row in tx.execute(sql, tuple(values))]


def fetch_int(tx: Connection, sql: str, values: Values = ()) -> int | None:
    """The first column of the first row; None without a row, or if it is NULL."""
    found = tx.execute(sql, tuple(values)).get
    return None if found is None else int(found)


def count_rows(tx: Connection, source: str, values: Values = ()) -> int:
    """Count the rows of `source`: a table, and what may follow it in a query."""
    return int(tx.execute(f"SELECT count(*) FROM {source}", tuple(values)).get)


def has_rows(tx: Connection, source: str, values: Values = ()) -> bool:
    """Return whether there is any row in `source`: a table, and what may follow it in a query."""
    return bool(tx.execute(f"SELECT EXISTS (SELECT 1 FROM {source})", tuple(values)).get)


def row_id(tx: Connection, kind: str, name: str) -> int | None:
    """The id of the summary, session or event with this uid or key; None if there is none."""
    table, column = _NAME_COLUMNS[kind]
    return fetch_int(tx, f"SELECT id FROM {table} WHERE {column} = ?", (name,))


def last_id(tx: Connection, table: str) -> int:
    """The highest id in a table; 0 if it is empty."""
    return fetch_int(tx, f"SELECT max(id) FROM {table}") or 0


def insert_row(
    tx: Connection, table: str, row: Mapping[str, object], *, or_ignore: bool = False
) -> bool:
    """Insert a row; with `or_ignore`, return False if it conflicts with another row."""
    verb = "INSERT OR IGNORE" if or_ignore else "INSERT"
    sql = f"{verb} INTO {table} ({', '.join(row)}) VALUES ({marks(row)})"
    tx.execute(sql, tuple(row.values()))
    return tx.changes() > 0


def insert_returning_id(tx: Connection, table: str, row: Mapping[str, object]) -> int:
    """Insert a row that conflicts with no other; its id."""
    sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks(row)}) RETURNING id"
    return int(tx.execute(sql, tuple(row.values())).get)


def json_text(value: object) -> str:
    """A JSON value as the vault stores lists and details."""
    return json.dumps(value, ensure_ascii=False)


def json_line(value: object) -> bytes:
    """Return a JSON value as a line of a file that other vaults read."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def parse_json_line(line: bytes) -> Any:
    """Return the value on such a line. ValueError, or RecursionError, if it is none that the vault could keep."""
    found = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    if b"\\u" in line:  # half of a surrogate pair is no text
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def compact_json(value: object) -> str:
    """A JSON value as the vault stores payloads."""
    try:
        return to_json(value).decode()
    except PydanticSerializationError:  # a text with half of a surrogate pair
        return _COMPACT(value)


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
