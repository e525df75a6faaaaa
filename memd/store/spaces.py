"""What the spaces of a vault weigh, and how one that nobody asks any more goes. Vectors: vectors.py."""

from dataclasses import dataclass

import apsw

from memd.store.vectors import STRIDE

_ROW_BYTES = 14
"""What a vector costs beside itself: its row, and its part of a page that it does not fill."""
_OF = f"v.id > s.id * {STRIDE} AND v.id < (s.id + 1) * {STRIDE}"


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
        f" FROM spaces s LEFT JOIN vectors v ON {_OF} GROUP BY s.id ORDER BY s.id",
        (_ROW_BYTES,),
    )
    return [Weight(*row) for row in rows]


def clear(tx: apsw.Connection, name: str, limit: int) -> int:
    """Drop up to `limit` vectors of a space; how many there were to drop."""
    tx.execute(
        "DELETE FROM vectors WHERE id IN (SELECT v.id FROM spaces s CROSS JOIN vectors v"
        f" WHERE s.name = ? AND {_OF} LIMIT ?)",
        (name, limit),
    )
    return int(tx.changes())


def drop(tx: apsw.Connection, name: str) -> None:
    """Forget a space, with what is left in it."""
    clear(tx, name, -1)
    tx.execute("DELETE FROM spaces WHERE name = ?", (name,))


def free_bytes(tx: apsw.Connection) -> int:
    """What the file holds and does not use."""
    return int(tx.pragma("freelist_count")) * int(tx.pragma("page_size"))
