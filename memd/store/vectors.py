"""spaces, vectors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import apsw

from memd.models import Space

# MERGED from memd.store.vectors:
# MERGED Spaces, and the vectors that models have made in them: dear, so they are kept. Derived.
# MERGED
# MERGED What a vector's bytes mean, the index knows. Vectors of a local space are computed from the texts when
# MERGED they are wanted and are not here. A space's vectors lie together, in order of passage, in pages that
# MERGED hold five of 768 dimensions each: no index is needed, and none would pay.


STRIDE = 2**40
"""Between the ids of two spaces' vectors: there is no such passage."""


def ensure_space(tx: apsw.Connection, space: Space) -> int:
    """The id of this space; made if it is new."""
    found = space_id(tx, space.name)
    if found is not None:
        return found
    return int(
        tx.execute(
            "INSERT INTO spaces (name, provider, model, version, digest, dimensions, document_prefix, query_prefix)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (space.name, space.provider, space.model, space.version, space.digest, space.dimensions,
             space.document_prefix, space.query_prefix),
        ).get
    )  # fmt: skip


def space_id(tx: apsw.Connection, name: str) -> int | None:
    """The id of the space of this name, or None."""
    found = tx.execute("SELECT id FROM spaces WHERE name = ?", (name,)).get
    return None if found is None else int(found)


def put_vectors(
    tx: apsw.Connection, space_id: int, vectors: Iterable[tuple[int, bytes]]
) -> None:
    """Store (passage id, vector) pairs; a vector that is there is replaced."""
    tx.executemany(
        "INSERT OR REPLACE INTO vectors (id, vector) VALUES (?, ?)",
        [(space_id * STRIDE + passage_id, blob) for passage_id, blob in sorted(vectors)],
    )


def put_existing_vectors(
    tx: apsw.Connection, space_id: int, vectors: Iterable[tuple[int, bytes]]
) -> list[int]:
    """Store (passage id, vector) pairs of the passages that are still there; which those are."""
    pairs = dict(vectors)
    there = [
        passage_id
        for passage_id in pairs
        if tx.execute("SELECT 1 FROM passages WHERE id = ?", (passage_id,)).get
    ]
    put_vectors(tx, space_id, ((passage_id, pairs[passage_id]) for passage_id in there))
    return there


def vectors_of(
    tx: apsw.Connection, space_name: str, passage_ids: Sequence[int]
) -> dict[int, bytes]:
    """Passage id → vector, of those of these that have one in a space."""
    number = space_id(tx, space_name)
    if number is None:
        return {}
    first = number * STRIDE
    rows = tx.execute(
        f"SELECT id, vector FROM vectors WHERE id IN ({','.join('?' * len(passage_ids))})",
        [first + passage_id for passage_id in passage_ids],
    )
    return {int(found) - first: blob for found, blob in rows}


# MERGED from memd.store.spaces:
# MERGED What the spaces of a vault weigh, and how one that nobody asks any more goes. Vectors: vectors.py.


_ROW_BYTES = 14
"""What a vector costs beside itself: its row, and its part of a page that it does not fill."""
_OF = f"v.id > s.id * {STRIDE} AND v.id < (s.id + 1) * {STRIDE}"


@dataclass(frozen=True, slots=True)
class SpaceSize:
    """A space, and how much is in it."""

    id: int
    name: str
    provider: str
    vectors: int
    bytes: int


def measure_spaces(tx: apsw.Connection) -> list[SpaceSize]:
    """Every space that was ever used, oldest first."""
    rows = tx.execute(
        "SELECT s.id, s.name, s.provider, count(v.id), coalesce(sum(length(v.vector) + ?), 0)"
        f" FROM spaces s LEFT JOIN vectors v ON {_OF} GROUP BY s.id ORDER BY s.id",
        (_ROW_BYTES,),
    )
    return [SpaceSize(*row) for row in rows]


def drop_vectors(tx: apsw.Connection, name: str, limit: int) -> int:
    """Drop up to `limit` vectors of a space; how many there were to drop."""
    tx.execute(
        "DELETE FROM vectors WHERE id IN (SELECT v.id FROM spaces s CROSS JOIN vectors v"
        f" WHERE s.name = ? AND {_OF} LIMIT ?)",
        (name, limit),
    )
    return int(tx.changes())


def drop_space(tx: apsw.Connection, name: str) -> None:
    """Forget a space, with what is left in it."""
    drop_vectors(tx, name, -1)
    tx.execute("DELETE FROM spaces WHERE name = ?", (name,))


def free_bytes(tx: apsw.Connection) -> int:
    """What the file holds and does not use."""
    return int(tx.pragma("freelist_count")) * int(tx.pragma("page_size"))
