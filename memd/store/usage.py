"""uses, co-activations, injections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apsw

from memd.store.types import SummaryPair, SummaryUse
from memd.text import storable

# MERGED from memd.store.uses:
# MERGED How often answers returned a memory, and which ones together. Nothing of it is what was asked.


def record_uses(
    tx: apsw.Connection, uses: Mapping[int, SummaryUse], pairs: Mapping[SummaryPair, int]
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


def uses_of(tx: apsw.Connection, summary_ids: Sequence[int]) -> dict[int, SummaryUse]:
    """The uses of these memories by id; one that was never returned is left out."""
    rows = tx.execute(
        "SELECT summary_id, count, last_at FROM uses"
        f" WHERE summary_id IN ({','.join('?' * len(summary_ids))})",
        tuple(summary_ids),
    )
    return {
        int(number): SummaryUse(int(count), int(last_at)) for number, count, last_at in rows
    }


def coactivations_of(tx: apsw.Connection, summary_ids: Sequence[int]) -> dict[SummaryPair, int]:
    """How often any two of these memories were returned by one answer."""
    marks = ",".join("?" * len(summary_ids))
    rows = tx.execute(
        "SELECT low_id, high_id, count FROM coactivations"
        f" WHERE low_id IN ({marks}) AND high_id IN ({marks})",
        (*summary_ids, *summary_ids),
    )
    return {(int(low), int(high)): int(count) for low, high, count in rows}


# MERGED from memd.store.injections:
# MERGED What an agent was shown unasked, so that it is never shown the same twice. Says nothing of use.


@dataclass(frozen=True, slots=True)
class NewInjection:
    """One memory that was put before a session. `at` is UTC milliseconds."""

    session_id: int
    summary_id: int
    moment: str
    """`startup`, `resume`, `clear`, `compact` or `prompt`."""
    at: int
    reason: str
    """Why this one, in words."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A row with what the memory is called."""

    summary_id: int
    kind: str
    title: str
    moment: str
    at: int
    reason: str


def record_injections(tx: apsw.Connection, shown: Sequence[NewInjection]) -> None:
    """Write down what was shown. What was forgotten meanwhile is left out."""
    tx.executemany(
        "INSERT INTO injections (session_id, summary_id, moment, at, reason)"
        " SELECT n.id, s.id, ?3, ?4, ?5 FROM summaries s, sessions n WHERE s.id = ?2 AND n.id = ?1",
        [(s.session_id, s.summary_id, s.moment, s.at, storable(s.reason)) for s in shown],
    )


def last_injected(tx: apsw.Connection, session_id: int) -> dict[int, int]:
    """Summary id → when it was last shown to this session."""
    rows = tx.execute(
        "SELECT summary_id, max(at) FROM injections WHERE session_id = ? GROUP BY summary_id",
        (session_id,),
    )
    return {int(number): int(at) for number, at in rows}


def session_injections(
    tx: apsw.Connection, session_id: int, limit: int = 1_000
) -> list[Injection]:
    """What a session was shown, oldest first; of more than `limit`, the latest."""
    rows = tx.execute(
        "SELECT i.summary_id, s.kind, s.title, i.moment, i.at, i.reason FROM injections i"
        " JOIN summaries s ON s.id = i.summary_id WHERE i.session_id = ?"
        " ORDER BY i.at DESC, i.id DESC LIMIT ?",
        (session_id, limit),
    ).fetchall()
    return [Injection(*row) for row in reversed(rows)]


def summary_injections(tx: apsw.Connection, summary_id: int, limit: int) -> list[NewInjection]:
    """The last times when a memory was shown, the latest first."""
    rows = tx.execute(
        "SELECT session_id, summary_id, moment, at, reason FROM injections WHERE summary_id = ?"
        " ORDER BY at DESC, id DESC LIMIT ?",
        (summary_id, limit),
    )
    return [NewInjection(*row) for row in rows]


def count_injections(tx: apsw.Connection, summary_id: int) -> tuple[int, int]:
    """How often a memory was shown, and to how many sessions."""
    row = tx.execute(
        "SELECT count(*), count(DISTINCT session_id) FROM injections WHERE summary_id = ?",
        (summary_id,),
    ).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)
