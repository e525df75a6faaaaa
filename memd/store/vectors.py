"""Spaces, and the vectors in them. A vector is stored as little-endian float16. Derived."""

from collections.abc import Iterable, Iterator, Sequence

import apsw

from memd.models import Space


def ensure_space(tx: apsw.Connection, space: Space) -> int:
    """The id of this space; made if it is new."""
    found = tx.execute("SELECT id FROM spaces WHERE name = ?", (space.name,)).get
    if found is not None:
        return int(found)
    return int(
        tx.execute(
            "INSERT INTO spaces (name, provider, model, version, digest, dimensions, document_prefix, query_prefix)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (space.name, space.provider, space.model, space.version, space.digest, space.dimensions,
             space.document_prefix, space.query_prefix),
        ).get
    )  # fmt: skip


def put(tx: apsw.Connection, space_id: int, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Store (passage id, float16 blob) pairs; a vector that is there is replaced."""
    tx.executemany(
        "INSERT INTO vectors (space_id, passage_id, vector) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (space_id, passage_id) DO UPDATE SET vector = ?3",
        [(space_id, passage_id, blob) for passage_id, blob in vectors],
    )


def load(tx: apsw.Connection, space_id: int) -> Iterator[tuple[int, bytes]]:
    """(passage id, float16 blob) of a space, in order of passage."""
    for passage_id, blob in tx.execute(
        "SELECT passage_id, vector FROM vectors WHERE space_id = ? ORDER BY passage_id",
        (space_id,),
    ):
        yield int(passage_id), blob


def put_where_wanted(
    tx: apsw.Connection, space_id: int, vectors: Iterable[tuple[int, bytes]]
) -> list[int]:
    """Store (passage id, float16 blob) pairs of the passages that are still there; which those are."""
    pairs = dict(vectors)
    there = [
        passage_id
        for passage_id in pairs
        if tx.execute("SELECT 1 FROM passages WHERE id = ?", (passage_id,)).get
    ]
    put(tx, space_id, ((passage_id, pairs[passage_id]) for passage_id in there))
    return there


def of(tx: apsw.Connection, space_name: str, passage_ids: Sequence[int]) -> dict[int, bytes]:
    """Passage id → float16 blob, of those of these that have a vector in a space."""
    rows = tx.execute(
        "SELECT v.passage_id, v.vector FROM vectors v JOIN spaces s ON s.id = v.space_id"
        f" WHERE s.name = ? AND v.passage_id IN ({','.join('?' * len(passage_ids))})",
        (space_name, *passage_ids),
    )
    return {int(passage_id): blob for passage_id, blob in rows}


def count(tx: apsw.Connection, space_id: int) -> int:
    """How many vectors a space has."""
    return int(tx.execute("SELECT count(*) FROM vectors WHERE space_id = ?", (space_id,)).get)
