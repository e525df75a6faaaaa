"""Consolidation runs that changed something, so that they can be inspected and undone."""

from dataclasses import dataclass

from apsw import Connection

from memd.models import Supersession
from memd.store.links import SUPERSESSION_COLUMNS
from memd.store.queries import insert_returning_id

_COLUMNS = "id, at, examined, pairs, superseded, contradicts, similar, undone_at"
"""In the order of the fields of Run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One consolidation run and how many rows it changed. Times are UTC milliseconds."""

    id: int
    at: int
    examined: int
    pairs: int
    superseded: int
    contradicts: int
    similar: int
    undone_at: int | None = None


def begin_run(tx: Connection, at: int) -> int:
    """Start a run; its id."""
    counts = dict.fromkeys(("examined", "pairs", "superseded", "contradicts", "similar"), 0)
    return insert_returning_id(tx, "runs", {"at": at, **counts})


def finish_run(tx: Connection, run: Run) -> None:
    """Store what a run changed; a run that changed nothing leaves no row."""
    if not (run.superseded or run.contradicts or run.similar):
        tx.execute("DELETE FROM runs WHERE id = ?", (run.id,))
        return
    tx.execute(
        "UPDATE runs SET examined = ?, pairs = ?, superseded = ?, contradicts = ?, similar = ? WHERE id = ?",
        (run.examined, run.pairs, run.superseded, run.contradicts, run.similar, run.id),
    )


def mark_run_undone(tx: Connection, run_id: int, at: int) -> None:
    """Mark the whole run as undone."""
    tx.execute("UPDATE runs SET undone_at = ? WHERE id = ?", (at, run_id))


def get_run(tx: Connection, run_id: int) -> Run | None:
    """One run, or None."""
    row = tx.execute(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (run_id,)).fetchone()
    return Run(*row) if row else None


def latest_runs(tx: Connection, limit: int) -> list[Run]:
    """The latest runs, newest first."""
    rows = tx.execute(f"SELECT {_COLUMNS} FROM runs ORDER BY id DESC LIMIT ?", (limit,))
    return [Run(*row) for row in rows]


def run_supersessions(tx: Connection, run_id: int) -> list[Supersession]:
    """The supersessions that a run made and that still hold."""
    rows = tx.execute(
        f"SELECT {SUPERSESSION_COLUMNS} FROM supersessions WHERE run = ? AND undone_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [Supersession(*row) for row in rows]


def run_contradictions(tx: Connection, run_id: int) -> list[tuple[int, int]]:
    """(newer, older) of each pair that a run found to contradict each other."""
    rows = tx.execute(
        "SELECT CAST(from_id AS INTEGER), CAST(to_id AS INTEGER) FROM edges"
        " WHERE rule = 'near-duplicate' AND detail ->> '$.run' = ? AND type = 'contradicts' ORDER BY id",
        (run_id,),
    )
    return [(int(newer), int(older)) for newer, older in rows]


def assign_to_run(tx: Connection, supersession_id: int, run_id: int) -> None:
    """Note which run made a supersession."""
    tx.execute("UPDATE supersessions SET run = ? WHERE id = ?", (run_id, supersession_id))
