"""Some memories and their passages as they are stored, to compare with what would be stored now.

Not here: that comparison (index/check.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import apsw

from memd.store.packing import unpack


@dataclass(frozen=True, slots=True)
class Indexed:
    """A stored passage: [start, stop) of the body, and term → (in title, in body)."""

    id: int
    start: int
    stop: int
    length: int
    terms: Mapping[str, tuple[int, int]]


def sampled(tx: apsw.Connection, limit: int) -> list[int]:
    """Up to so many memories that the index has learnt, spread evenly over all of them."""
    rows = tx.execute(
        "SELECT id FROM summaries WHERE id NOT IN (SELECT summary_id FROM changes) ORDER BY id"
    )
    ids = [int(number) for (number,) in rows]
    return ids[:: max(1, -(-len(ids) // limit))]


def indexed(tx: apsw.Connection, summary_id: int) -> list[Indexed]:
    """A memory's passages as they are stored, in order."""
    rows = tx.execute(
        "SELECT id, start, stop, length, postings FROM passages WHERE summary_id = ? ORDER BY seq",
        (summary_id,),
    )
    return [
        Indexed(number, start, stop, length, _terms(tx, blob))
        for number, start, stop, length, blob in rows
    ]


def _terms(tx: apsw.Connection, blob: bytes) -> dict[str, tuple[int, int]]:
    found = {}
    for number, title, body in unpack([blob])[0].tolist():
        term = tx.execute("SELECT term FROM terms WHERE id = ?", (number,)).get
        found[f"#{number}" if term is None else str(term)] = (title, body)
    return found
