"""Lists for the viewer's pages: memories and sessions, newest first.

A list comes in pages by a cursor, (time, id) of its last row, and each query follows an index, so a page costs the
same in a large vault.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from apsw import Connection

from memd.models import Authority, Kind, Session, Summary
from memd.store.filter import Filter, marks
from memd.store.judgments import AUTHORITY
from memd.store.projects import sessions
from memd.store.queries import count_rows
from memd.store.summaries import summaries_by_ids

Cursor = tuple[int, int]
"""(time in UTC milliseconds, id) of the last row of the page before."""
NEWEST: Cursor = (2**62, 0)
"""The cursor of the first page."""


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """Conditions of a list of memories that a filter does not have."""

    authorities: tuple[Authority, ...] = ()
    """Only these speakers; empty: any."""
    is_pinned: bool = False
    """Only what is pinned."""


def newest_ids(
    tx: Connection, wanted: Filter, choice: MemoryChoice, after: Cursor, limit: int
) -> list[int]:
    """The ids of the newest wanted memories after a cursor, newest first. The filter names its projects."""
    where, values = wanted.condition()
    if choice.authorities:
        where += f" AND {AUTHORITY.format('s')} IN ({marks(choice.authorities)})"
        values += tuple(int(one) for one in choice.authorities)
    found: list[list[Cursor]] = []
    for place, bound in _choose_places(wanted, choice):
        rows = tx.execute(
            f"SELECT s.at, s.id FROM summaries s WHERE {where} AND {place}"
            " AND (s.at, s.id) < (?, ?) ORDER BY s.at DESC, s.id DESC LIMIT ?",
            (*values, *bound, *after, limit),
        )
        found.append([(int(at), int(number)) for at, number in rows])
    newest = heapq.merge(*found, reverse=True)
    return [number for _, (_, number) in zip(range(limit), newest, strict=False)]


def _choose_places(wanted: Filter, choice: MemoryChoice) -> list[tuple[str, tuple[object, ...]]]:
    """The conditions of queries that together find all, each of which an index answers in the order of time."""
    if wanted.session_id is not None:
        return [("1", ())]
    projects = wanted.project_ids or ()
    if choice.is_pinned:
        return [("s.project_id = ? AND s.pinned_at IS NOT NULL", (one,)) for one in projects]
    return [
        ("s.project_id = ? AND s.kind = ?", (project, kind.value))
        for project in projects
        for kind in wanted.kinds or Kind
    ]


def read_in_order(tx: Connection, ids: Sequence[int]) -> list[Summary]:
    """Return these memories in this order; unknown ids are left out."""
    found = summaries_by_ids(tx, ids)
    return [found[number] for number in ids if number in found]


# ── Sessions ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session, how many memories it left, how many it was shown unasked, and how many of these it used."""

    session: Session
    memories: int
    shown: int
    used: int


def newest_sessions(
    tx: Connection, project_ids: Sequence[int], after: Cursor, limit: int
) -> list[SessionRow]:
    """A page of the sessions of these projects, the one that began last first."""
    found: list[list[Cursor]] = []
    for project in project_ids:
        rows = tx.execute(
            "SELECT started_at, id FROM sessions WHERE project_id = ? AND (started_at, id) < (?, ?)"
            " ORDER BY started_at DESC, id DESC LIMIT ?",
            (project, *after, limit),
        )
        found.append([(int(at), int(number)) for at, number in rows])
    newest = heapq.merge(*found, reverse=True)
    ids = [number for _, (_, number) in zip(range(limit), newest, strict=False)]
    known = sessions(tx, ids)
    return [
        SessionRow(
            known[number],
            count_rows(tx, "summaries WHERE session_id = ?", (number,)),
            count_rows(tx, "injections WHERE session_id = ? AND NOT held", (number,)),
            count_rows(
                tx, "injections WHERE session_id = ? AND outcome = 'used' AND NOT held", (number,)
            ),
        )
        for number in ids
    ]
