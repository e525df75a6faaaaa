"""How often answers returned a memory, and which ones together. Nothing of it is what was asked."""

from collections.abc import Mapping, Sequence

import apsw

from memd.store.rows import Pair, Use


def record(tx: apsw.Connection, uses: Mapping[int, Use], pairs: Mapping[Pair, int]) -> None:
    """Add to the counts. A memory that was forgotten meanwhile is left out."""
    tx.executemany(
        "INSERT INTO uses (summary_id, count, last_at)"
        " SELECT id, ?2, ?3 FROM summaries WHERE id = ?1"
        " ON CONFLICT (summary_id) DO UPDATE SET count = count + ?2, last_at = max(last_at, ?3)",
        [(number, use.count, use.last_at) for number, use in uses.items()],
    )
    tx.executemany(
        "INSERT INTO coactivations (low_id, high_id, count) SELECT a.id, b.id, ?3"
        " FROM summaries a, summaries b WHERE a.id = ?1 AND b.id = ?2"
        " ON CONFLICT (low_id, high_id) DO UPDATE SET count = count + ?3",
        [(low, high, count) for (low, high), count in pairs.items()],
    )


def of(tx: apsw.Connection, summary_ids: Sequence[int]) -> dict[int, Use]:
    """The uses of these memories by id; one that was never returned is left out."""
    rows = tx.execute(
        "SELECT summary_id, count, last_at FROM uses"
        f" WHERE summary_id IN ({','.join('?' * len(summary_ids))})",
        tuple(summary_ids),
    )
    return {int(number): Use(int(count), int(last_at)) for number, count, last_at in rows}


def together(tx: apsw.Connection, summary_ids: Sequence[int]) -> dict[Pair, int]:
    """How often any two of these memories were returned by one answer."""
    marks = ",".join("?" * len(summary_ids))
    rows = tx.execute(
        "SELECT low_id, high_id, count FROM coactivations"
        f" WHERE low_id IN ({marks}) AND high_id IN ({marks})",
        (*summary_ids, *summary_ids),
    )
    return {(int(low), int(high)): int(count) for low, high, count in rows}
