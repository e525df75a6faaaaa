"""What the spaces of a vault weigh, and how one that nobody asks any more goes. Vectors: vectors.py."""

from dataclasses import dataclass

import apsw

_ROW_BYTES = 40
"""What a vector costs beside itself: its row, and its places in two indexes."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A space, and how much is in it."""

    id: int
    name: str
    provider: str
    vectors: int
    bytes: int


def weigh(tx: apsw.Connection) -> list[Weight]:
    """Every space that was ever used, oldest first."""
    rows = tx.execute(
        "SELECT s.id, s.name, s.provider, count(v.id), coalesce(sum(length(v.vector) + ?), 0)"
        " FROM spaces s LEFT JOIN vectors v ON v.space_id = s.id GROUP BY s.id ORDER BY s.id",
        (_ROW_BYTES,),
    )
    return [Weight(*row) for row in rows]


def clear(tx: apsw.Connection, name: str, limit: int) -> int:
    """Drop up to `limit` vectors of a space; how many there were to drop."""
    tx.execute(
        "DELETE FROM vectors WHERE id IN (SELECT v.id FROM vectors v"
        " JOIN spaces s ON s.id = v.space_id WHERE s.name = ? LIMIT ?)",
        (name, limit),
    )
    return int(tx.changes())


def drop(tx: apsw.Connection, name: str) -> None:
    """Forget a space, with what is left in it."""
    tx.execute(
        "DELETE FROM vectors WHERE space_id IN (SELECT id FROM spaces WHERE name = ?)", (name,)
    )
    tx.execute("DELETE FROM spaces WHERE name = ?", (name,))


def free_bytes(tx: apsw.Connection) -> int:
    """What the file holds and does not use."""
    return int(tx.pragma("freelist_count")) * int(tx.pragma("page_size"))
