"""What memories name: files, symbols, identifiers, people. Derived, rebuildable."""

from collections.abc import Iterable, Sequence

import apsw

from memd.text import storable


def put(tx: apsw.Connection, summary_id: int, named: Iterable[tuple[str, str]]) -> None:
    """Let these (name, kind) be what a summary names, instead of whatever it named before."""
    tx.execute("DELETE FROM entities WHERE summary_id = ?", (summary_id,))
    tx.executemany(
        "INSERT OR IGNORE INTO entities (summary_id, name, kind) VALUES (?, ?, ?)",
        [(summary_id, storable(name), kind) for name, kind in named],
    )


def of(tx: apsw.Connection, summary_ids: Sequence[int]) -> dict[int, frozenset[str]]:
    """The names in these summaries by id; one that names nothing is left out."""
    found: dict[int, set[str]] = {}
    for number, name in tx.execute(
        "SELECT summary_id, name FROM entities"
        f" WHERE summary_id IN ({','.join('?' * len(summary_ids))})",
        tuple(summary_ids),
    ):
        found.setdefault(int(number), set()).add(name)
    return {number: frozenset(names) for number, names in found.items()}
