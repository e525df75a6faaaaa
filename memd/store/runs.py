"""Rounds of consolidation that changed something, so that one can be looked at and taken back."""

from dataclasses import dataclass

import apsw

from memd.models import Supersession


@dataclass(frozen=True, slots=True)
class Run:
    """One round and the rows that it changed. Times: UTC milliseconds."""

    id: int
    at: int
    examined: int
    pairs: int
    superseded: int
    contradicts: int
    similar: int
    undone_at: int | None = None


_RUN = "id, at, examined, pairs, superseded, contradicts, similar, undone_at"


def begin_run(tx: apsw.Connection, at: int) -> int:
    """A new round; its number."""
    return int(
        tx.execute(
            "INSERT INTO runs (at, examined, pairs, superseded, contradicts, similar)"
            " VALUES (?, 0, 0, 0, 0, 0) RETURNING id",
            (at,),
        ).get
    )


def finish_run(tx: apsw.Connection, run: Run) -> None:
    """Write down what a round changed; one that changed nothing leaves no row."""
    if not (run.superseded or run.contradicts or run.similar):
        tx.execute("DELETE FROM runs WHERE id = ?", (run.id,))
        return
    tx.execute(
        "UPDATE runs SET examined = ?, pairs = ?, superseded = ?, contradicts = ?, similar = ? WHERE id = ?",
        (run.examined, run.pairs, run.superseded, run.contradicts, run.similar, run.id),
    )


def mark_run_undone(tx: apsw.Connection, run_id: int, at: int) -> None:
    """The whole round was taken back."""
    tx.execute("UPDATE runs SET undone_at = ? WHERE id = ?", (at, run_id))


def get_run(tx: apsw.Connection, run_id: int) -> Run | None:
    """One round, or None."""
    row = tx.execute(f"SELECT {_RUN} FROM runs WHERE id = ?", (run_id,)).fetchone()
    return Run(*row) if row else None


def latest_runs(tx: apsw.Connection, limit: int) -> list[Run]:
    """The latest rounds, the last one first."""
    return [
        Run(*row)
        for row in tx.execute(f"SELECT {_RUN} FROM runs ORDER BY id DESC LIMIT ?", (limit,))
    ]


def run_supersessions(tx: apsw.Connection, run_id: int) -> list[Supersession]:
    """What a round has hidden and is still hidden by it."""
    rows = tx.execute(
        "SELECT id, newer_id, older_id, rule, cosine, guard, at, undone_at FROM supersessions"
        " WHERE run = ? AND undone_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [Supersession(*row) for row in rows]


def run_contradictions(tx: apsw.Connection, run_id: int) -> list[tuple[int, int]]:
    """(newer, older) of the pairs that a round has found to contradict each other."""
    rows = tx.execute(
        "SELECT CAST(from_id AS INTEGER), CAST(to_id AS INTEGER) FROM edges"
        " WHERE rule = 'near-duplicate' AND detail ->> '$.run' = ? AND type = 'contradicts' ORDER BY id",
        (run_id,),
    )
    return [(int(newer), int(older)) for newer, older in rows]


def assign_to_run(tx: apsw.Connection, supersession_id: int, run_id: int) -> None:
    """Tell of a supersession that it is the work of that round."""
    tx.execute("UPDATE supersessions SET run = ? WHERE id = ?", (run_id, supersession_id))
