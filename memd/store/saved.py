"""Which copy of the index beside the vault holds, what it does not know, and what its codes stand for.

A copy that holds differs from the index only by the memories that are listed here: whoever indexes one
lists it in the same transaction. When a memory is deleted a trigger lets no copy hold any more. The
name of a copy is random: a vault that was restored, or copied, finds under it the very copy that it
knows, or none; a number that counts up could be reached twice. Not here: the files (index/copy.py).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from memd.store import changes

Labels = Mapping[str, Sequence[Any]]
"""By kind, what the codes 0, 1, 2 … stand for, as JSON can have it."""


def name(tx: apsw.Connection) -> str | None:
    """The name of the copy that holds, or None."""
    found = tx.execute("SELECT name FROM saved").get
    return None if found is None else str(found)


def new_name(tx: apsw.Connection) -> str:
    """A name that no copy has."""
    return str(tx.execute("SELECT lower(hex(randomblob(8)))").get)


def hold(tx: apsw.Connection, name: str, labels: Labels) -> bool:
    """Let this copy of all that was indexed hold from now on; False if there is more to index.

    What waits may be a memory that has just been forgotten, and that the copy has.
    """
    if changes.count(tx):
        return False
    drop(tx)
    tx.execute("INSERT INTO saved (one, name) VALUES (1, ?)", (name,))
    tx.executemany(
        "INSERT INTO labels (kind, code, value) VALUES (?, ?, ?)",
        [
            (kind, code, json.dumps(value))
            for kind, values in labels.items()
            for code, value in enumerate(values)
        ],
    )
    return True


def drop(tx: apsw.Connection) -> None:
    """From now on no copy holds."""
    for table in ("saved", "unsaved", "labels"):
        tx.execute(f"DELETE FROM {table}")


def touch(tx: apsw.Connection, summary_ids: Iterable[int]) -> None:
    """These memories are no more as the copy has them."""
    tx.executemany(
        "INSERT OR IGNORE INTO unsaved (summary_id) SELECT ? WHERE EXISTS (SELECT 1 FROM saved)",
        [(number,) for number in summary_ids],
    )


def unsaved(tx: apsw.Connection) -> list[int]:
    """The memories that the copy does not know as they are, ascending."""
    return [int(n) for (n,) in tx.execute("SELECT summary_id FROM unsaved ORDER BY summary_id")]


def unsaved_count(tx: apsw.Connection) -> int:
    """How many memories the copy does not know as they are."""
    return int(tx.execute("SELECT count(*) FROM unsaved").get)


def labels(tx: apsw.Connection) -> dict[str, list[Any]]:
    """What the codes of the copy that holds stand for."""
    found: dict[str, list[Any]] = {"sources": [], "tags": []}
    for kind, value in tx.execute("SELECT kind, value FROM labels ORDER BY kind, code"):
        found[kind].append(json.loads(value))
    return found
