"""What the index has yet to learn. Triggers write it; the indexer reads it and takes it away."""

from collections.abc import Iterable

import apsw


def pending(tx: apsw.Connection, limit: int) -> list[tuple[int, int]]:
    """(seq, summary id) of the changes to learn next, oldest first."""
    rows = tx.execute("SELECT seq, summary_id FROM changes ORDER BY seq LIMIT ?", (limit,))
    return [(int(seq), int(summary_id)) for seq, summary_id in rows]


def learnt(tx: apsw.Connection, seqs: Iterable[int]) -> None:
    """These changes are in the index. One that happened again since has another number and stays."""
    tx.executemany("DELETE FROM changes WHERE seq = ?", [(seq,) for seq in seqs])


def still_pending(tx: apsw.Connection, seqs: Iterable[int]) -> set[int]:
    """Those of these changes that have neither been learnt nor happened again since."""
    return {
        seq for seq in seqs if tx.execute("SELECT 1 FROM changes WHERE seq = ?", (seq,)).get
    }


def last(tx: apsw.Connection) -> int:
    """The number of the newest change that is waiting; 0 if there is none."""
    return int(tx.execute("SELECT coalesce(max(seq), 0) FROM changes").get)


def count(tx: apsw.Connection) -> int:
    """How many are waiting."""
    return int(tx.execute("SELECT count(*) FROM changes").get)


def everything(tx: apsw.Connection) -> int:
    """Ask for every summary to be indexed again, and for every derived row without one to go."""
    tx.execute("INSERT OR REPLACE INTO changes (summary_id) SELECT id FROM summaries")
    tx.execute(
        "INSERT OR REPLACE INTO changes (summary_id) SELECT DISTINCT summary_id FROM passages"
    )
    return count(tx)
