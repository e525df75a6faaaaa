"""Forms of summaries: a hash of what a text says, equal for those that differ in nothing but its dress."""

from collections.abc import Iterable, Mapping
from typing import Any

import apsw

_LIKE = (
    "SELECT f.summary_id FROM forms f JOIN summaries s ON s.id = f.summary_id"
    " WHERE f.form = ? AND s.project_id = ? AND s.id != ? AND NOT EXISTS"
    " (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL)"
    " ORDER BY f.summary_id DESC LIMIT ?"
)


def put(tx: apsw.Connection, forms: Mapping[int, int]) -> None:
    """Write the forms of these summaries, of those that are still there."""
    tx.executemany(
        "INSERT OR REPLACE INTO forms (summary_id, form) SELECT id, ? FROM summaries WHERE id = ?",
        [(form, number) for number, form in forms.items()],
    )


def twins(
    tx: apsw.Connection, wanted: Iterable[tuple[int, int, int]], limit: int
) -> set[tuple[int, int]]:
    """Pairs of live summaries of one project and form, the smaller id first.

    `wanted` are (summary id, project id, form), of which each meets at most `limit` others.
    """
    found: set[tuple[int, int]] = set()
    for number, project_id, form in wanted:
        for (other,) in tx.execute(_LIKE, (form, project_id, number, limit)):
            found.add((min(number, int(other)), max(number, int(other))))
    return found


def lacking(tx: apsw.Connection, below: int, limit: int) -> list[tuple[int, str, str]]:
    """(id, title, body) of the next summaries below an id that were looked at and have no form."""
    rows: list[Any] = tx.execute(
        "SELECT s.id, s.title, s.body FROM summaries s WHERE s.id < ? AND s.consolidated"
        " AND NOT EXISTS (SELECT 1 FROM forms f WHERE f.summary_id = s.id) ORDER BY s.id DESC LIMIT ?",
        (below, limit),
    ).fetchall()
    return [(int(number), title, body) for number, title, body in rows]
