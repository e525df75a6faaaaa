"""Judgments: what somebody said two memories are to each other, and why. One at a time holds for a pair.

A judgment stands above every rule: whoever compares memories asks `verdict` first, and leaves alone
what has one. Not here: what a judgment does to the memories (consolidate/judging.py).
"""

from collections.abc import Collection

import apsw

from memd.models import Judgment, Stance
from memd.store import doubts

_COLUMNS = "id, newer_id, older_id, relation, reason, who, at, undone_at"


def _judgment(row: tuple[int, int, int, str, str, str, int, int | None]) -> Judgment:
    number, newer_id, older_id, relation, reason, who, at, undone_at = row
    return Judgment(number, newer_id, older_id, Stance(relation), reason, who, at, undone_at)


def put(  # noqa: PLR0913  # one argument a column
    tx: apsw.Connection,
    *,
    newer_id: int,
    older_id: int,
    relation: Stance,
    reason: str,
    who: str,
    at: int,
) -> int:
    """Write down what `newer` is to `older`; its id. The pair must have no judgment that holds."""
    with doubts.weighed(tx, (newer_id, older_id)):
        return int(
            tx.execute(
                "INSERT INTO judgments (newer_id, older_id, relation, reason, who, at)"
                " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
                (newer_id, older_id, relation.value, reason, who, at),
            ).get
        )


def undo(tx: apsw.Connection, judgment: Judgment, at: int) -> bool:
    """Let it hold no longer; the row stays, marked. False if it was undone already."""
    with doubts.weighed(tx, (judgment.newer_id, judgment.older_id)):
        tx.execute(
            "UPDATE judgments SET undone_at = ? WHERE id = ? AND undone_at IS NULL",
            (at, judgment.id),
        )
        return tx.changes() > 0


def between(tx: apsw.Connection, one_id: int, other_id: int) -> Judgment | None:
    """The judgment of this pair, in any order, that holds now."""
    row = tx.execute(
        f"SELECT {_COLUMNS} FROM judgments WHERE undone_at IS NULL"
        " AND ((newer_id = ?1 AND older_id = ?2) OR (newer_id = ?2 AND older_id = ?1))",
        (one_id, other_id),
    ).fetchone()
    return _judgment(row) if row else None


def verdict(tx: apsw.Connection, one_id: int, other_id: int) -> Stance | None:
    """What somebody said this pair is to each other, in any order; None if nobody did, or undid it."""
    found = between(tx, one_id, other_id)
    return found.relation if found else None


def verdicts(
    tx: apsw.Connection, summary_ids: Collection[int]
) -> dict[tuple[int, int], Stance]:
    """Every pair, the smaller id first, that one of these is part of → what it was judged to be."""
    marks = ",".join("?" * len(summary_ids))
    rows = tx.execute(
        "SELECT min(newer_id, older_id), max(newer_id, older_id), relation FROM judgments"
        f" WHERE undone_at IS NULL AND (newer_id IN ({marks}) OR older_id IN ({marks}))",
        (*summary_ids, *summary_ids),
    )
    return {(int(low), int(high)): Stance(relation) for low, high, relation in rows}


def of(tx: apsw.Connection, summary_id: int) -> list[Judgment]:
    """Every judgment that this memory is part of, undone ones too, oldest first."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM judgments WHERE newer_id = ?1 OR older_id = ?1 ORDER BY at, id",
        (summary_id,),
    )
    return [_judgment(row) for row in rows]
