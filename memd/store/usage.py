"""How often answers returned each memory and which ones together, and what was injected into sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apsw import Connection

from memd.store.filter import marks
from memd.store.types import SummaryPair, SummaryUse
from memd.text import storable


def record_uses(
    tx: Connection, uses: Mapping[int, SummaryUse], pairs: Mapping[SummaryPair, int]
) -> None:
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


def uses_of(tx: Connection, summary_ids: Sequence[int]) -> dict[int, SummaryUse]:
    """The uses of these memories by id; one that was never returned is left out."""
    rows = tx.execute(
        f"SELECT summary_id, count, last_at FROM uses WHERE summary_id IN ({marks(summary_ids)})",
        tuple(summary_ids),
    )
    return {int(number): SummaryUse(count, last_at) for number, count, last_at in rows}


def coactivations_of(tx: Connection, summary_ids: Sequence[int]) -> dict[SummaryPair, int]:
    """How often any two of these memories were returned by one answer."""
    places = marks(summary_ids)
    rows = tx.execute(
        "SELECT low_id, high_id, count FROM coactivations"
        f" WHERE low_id IN ({places}) AND high_id IN ({places})",
        (*summary_ids, *summary_ids),
    )
    return {(int(low), int(high)): int(count) for low, high, count in rows}


# ── Injections: what was shown to an agent unasked, so that it is not shown the same twice ─────


@dataclass(frozen=True, slots=True)
class NewInjection:
    """One memory that was injected into a session. `at` is UTC milliseconds."""

    session_id: int
    summary_id: int
    moment: str
    """`startup`, `resume`, `clear`, `compact` or `prompt`."""
    at: int
    reason: str
    """Why this memory, in words."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A stored injection with the kind and title of its memory."""

    summary_id: int
    kind: str
    title: str
    moment: str
    at: int
    reason: str


def record_injections(tx: Connection, injected: Sequence[NewInjection]) -> None:
    """Store injections. A memory that was forgotten meanwhile is left out."""
    tx.executemany(
        "INSERT INTO injections (session_id, summary_id, moment, at, reason)"
        " SELECT n.id, s.id, ?3, ?4, ?5 FROM summaries s, sessions n WHERE s.id = ?2 AND n.id = ?1",
        [(i.session_id, i.summary_id, i.moment, i.at, storable(i.reason)) for i in injected],
    )


def last_injected(tx: Connection, session_id: int) -> dict[int, int]:
    """Summary id → when it was last injected into this session."""
    rows = tx.execute(
        "SELECT summary_id, max(at) FROM injections WHERE session_id = ? GROUP BY summary_id",
        (session_id,),
    )
    return {int(number): int(at) for number, at in rows}


def session_injections(tx: Connection, session_id: int, limit: int = 1_000) -> list[Injection]:
    """What was injected into a session, oldest first; of more than `limit`, the latest."""
    rows = tx.execute(
        "SELECT i.summary_id, s.kind, s.title, i.moment, i.at, i.reason FROM injections i"
        " JOIN summaries s ON s.id = i.summary_id WHERE i.session_id = ?"
        " ORDER BY i.at DESC, i.id DESC LIMIT ?",
        (session_id, limit),
    ).fetchall()
    return [Injection(*row) for row in reversed(rows)]


def summary_injections(tx: Connection, summary_id: int, limit: int) -> list[NewInjection]:
    """The last injections of a memory, newest first."""
    rows = tx.execute(
        "SELECT session_id, summary_id, moment, at, reason FROM injections WHERE summary_id = ?"
        " ORDER BY at DESC, id DESC LIMIT ?",
        (summary_id, limit),
    )
    return [NewInjection(*row) for row in rows]


def count_injections(tx: Connection, summary_id: int) -> tuple[int, int]:
    """How often a memory was injected, and into how many sessions."""
    ((times, sessions),) = tx.execute(
        "SELECT count(*), count(DISTINCT session_id) FROM injections WHERE summary_id = ?",
        (summary_id,),
    )
    return int(times), int(sessions)
