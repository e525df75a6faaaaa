"""Vector spaces, and the vectors that models made in them.

Only the index knows what a vector's bytes mean. Vectors of the hashing space are not stored,
because they can be computed from the text at any time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from apsw import Connection

from memd.models import Space
from memd.store.filter import marks
from memd.store.queries import fetch_int, fetch_rows, has_rows, insert_returning_id

STRIDE = 2**40
"""Distance between the ids of two spaces' vectors, in ids: greater than any passage id.

The vectors of one space lie side by side in order of passage, so they need no index.
"""
_OF_SPACE = f"v.id > s.id * {STRIDE} AND v.id < (s.id + 1) * {STRIDE}"
_ROW_BYTES = 14
"""Bytes that a vector takes beyond its own: its row, and its share of a page's unused end."""


def ensure_space(tx: Connection, space: Space) -> int:
    """The id of this space; created if it is new."""
    if (found := _find_space(tx, space.name)) is not None:
        return found
    return insert_returning_id(tx, "spaces", {"name": space.name, **asdict(space)})


def _find_space(tx: Connection, name: str) -> int | None:
    return fetch_int(tx, "SELECT id FROM spaces WHERE name = ?", (name,))


def put_vectors(tx: Connection, space_id: int, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Store (passage id, vector) pairs; a vector that is there is replaced."""
    tx.executemany(
        "INSERT OR REPLACE INTO vectors (id, vector) VALUES (?, ?)",
        [(space_id * STRIDE + passage_id, blob) for passage_id, blob in sorted(vectors)],
    )


def put_existing_vectors(
    tx: Connection, space_id: int, vectors: Iterable[tuple[int, bytes]]
) -> list[int]:
    """Store (passage id, vector) pairs of the passages that still exist; the ids of those."""
    pairs = dict(vectors)
    existing = [number for number in pairs if has_rows(tx, "passages WHERE id = ?", (number,))]
    put_vectors(tx, space_id, ((number, pairs[number]) for number in existing))
    return existing


def vectors_of(tx: Connection, space_name: str, passage_ids: Sequence[int]) -> dict[int, bytes]:
    """Passage id → vector in this space; passages without one are left out."""
    space_id = _find_space(tx, space_name)
    if space_id is None:
        return {}
    first = space_id * STRIDE
    sql = f"SELECT id, vector FROM vectors WHERE id IN ({marks(passage_ids)})"
    rows = tx.execute(sql, [first + passage_id for passage_id in passage_ids])
    return {int(found) - first: blob for found, blob in rows}


@dataclass(frozen=True, slots=True)
class SpaceSize:
    """A space, how many vectors it has, and how many bytes they take."""

    id: int
    name: str
    provider: str
    vectors: int
    bytes: int


def measure_spaces(tx: Connection) -> list[SpaceSize]:
    """Every space that was ever used, oldest first."""
    sql = (
        "SELECT s.id, s.name, s.provider, count(v.id), coalesce(sum(length(v.vector) + ?), 0)"
        f" FROM spaces s LEFT JOIN vectors v ON {_OF_SPACE} GROUP BY s.id ORDER BY s.id"
    )
    return fetch_rows(tx, SpaceSize, sql, (_ROW_BYTES,))


def has_learned(tx: Connection) -> bool:
    """Return whether memories have vectors of a learned model, the present one or an earlier one."""
    return has_rows(tx, "spaces WHERE provider <> 'hashing'")


def drop_vectors(tx: Connection, name: str, limit: int) -> int:
    """Drop up to `limit` vectors of a space (all with -1); how many were dropped."""
    tx.execute(
        "DELETE FROM vectors WHERE id IN (SELECT v.id FROM spaces s CROSS JOIN vectors v"
        f" WHERE s.name = ? AND {_OF_SPACE} LIMIT ?)",
        (name, limit),
    )
    return int(tx.changes())


def drop_space(tx: Connection, name: str) -> None:
    """Drop a space and its remaining vectors."""
    drop_vectors(tx, name, -1)
    tx.execute("DELETE FROM spaces WHERE name = ?", (name,))


def free_bytes(tx: Connection) -> int:
    """Bytes of the file's unused pages."""
    return int(tx.pragma("freelist_count")) * int(tx.pragma("page_size"))
