"""Lists for the viewer's pages: memories and sessions, newest first.

A list comes in pages by a cursor, (time, id) of its last row, and each query follows an index, so a page costs the
same in a large vault.
"""

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apsw import Connection

from memd.models import Authority, Kind, Session, Summary
from memd.store.filter import Filter, marks
from memd.store.judgments import AUTHORITY
from memd.store.projects import sessions
from memd.store.queries import count_rows, fetch_all, fetch_int
from memd.store.summaries import summaries_by_ids
from memd.time_expressions import DAY_MS

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
    sql = (
        f"SELECT s.at, s.id FROM summaries s WHERE {where} AND {{}}"
        " AND (s.at, s.id) < (?, ?) ORDER BY s.at DESC, s.id DESC LIMIT ?"
    )
    return _merge_newest(
        (
            fetch_all(tx, sql.format(place), (*values, *bound, *after, limit))
            for place, bound in _choose_places(wanted, choice)
        ),
        limit,
    )


def _merge_newest(pages: Iterable[list[Cursor]], limit: int) -> list[int]:
    newest = heapq.merge(*pages, reverse=True)
    return [number for _, number in itertools.islice(newest, limit)]


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
    sql = (
        "SELECT started_at, id FROM sessions WHERE project_id = ? AND (started_at, id) < (?, ?)"
        " ORDER BY started_at DESC, id DESC LIMIT ?"
    )
    pages = (fetch_all(tx, sql, (project, *after, limit)) for project in project_ids)
    ids = _merge_newest(pages, limit)
    known = sessions(tx, ids)
    shown = "injections WHERE session_id = ?"
    counted = ("summaries WHERE session_id = ?", shown, f"{shown} AND outcome = 'used'")
    return [
        SessionRow(known[number], *(count_rows(tx, rows, (number,)) for rows in counted))
        for number in ids
    ]


# ── Counts ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class KindCount:
    """The number of memories of one kind."""

    kind: str
    memories: int
    superseded: int
    """Of these, how many a newer one hides."""
    lately: int
    """Of these, how many since the time that was asked for."""


def count_kinds(tx: Connection, project_ids: Sequence[int], since: int) -> list[KindCount]:
    """Count the memories of these projects by kind, the most frequent first, and those that were hidden since then."""
    places = marks(project_ids)
    hidden = {
        kind: (count, lately)
        for kind, count, lately in tx.execute(
            # CROSS: SQLite shall begin with the supersessions, which are few.
            "SELECT s.kind, count(*), sum(x.at >= ?) FROM supersessions x CROSS JOIN summaries s ON s.id = x.older_id"
            f" WHERE x.undone_at IS NULL AND s.project_id IN ({places}) GROUP BY s.kind",
            (since, *project_ids),
        )
    }
    sql = f"SELECT kind, count(*) FROM summaries WHERE project_id IN ({places}) GROUP BY kind ORDER BY 2 DESC, 1"
    rows = fetch_all(tx, sql, project_ids)
    return [KindCount(kind, count, *hidden.get(kind, (0, 0))) for kind, count in rows]


def count_sessions(tx: Connection, project_ids: Sequence[int]) -> int:
    """Count the sessions that began in these projects."""
    return count_rows(tx, f"sessions WHERE project_id IN ({marks(project_ids)})", project_ids)


def latest_pairs(
    tx: Connection, project_ids: Sequence[int], limit: int
) -> list[tuple[int, int, str]]:
    """(newer, older, rule) of the supersessions that were made last and hold, the latest first."""
    sql = (
        "SELECT x.newer_id, x.older_id, x.rule FROM supersessions x CROSS JOIN summaries s ON s.id = x.older_id"
        f" WHERE x.undone_at IS NULL AND s.project_id IN ({marks(project_ids)})"
        " ORDER BY x.id DESC LIMIT ?"
    )
    return fetch_all(tx, sql, (*project_ids, limit))


# ── Activity ─────────────────────────────────────────────────────────────────────────────────────


_LONG_MS = 100 * DAY_MS


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Equal steps of time: `steps` of `step_ms` milliseconds from `since` (UTC milliseconds) on."""

    since: int
    step_ms: int
    steps: int

    @property
    def until(self) -> int:
        """The first millisecond after the last step."""
        return self.since + self.step_ms * self.steps


@dataclass(frozen=True, slots=True)
class Activity:
    """Counts of what happened in each step of a grid."""

    events: tuple[int, ...]
    memories: tuple[int, ...]
    superseded: tuple[int, ...]
    """Memories that one of this step replaced."""


def count_activity(tx: Connection, project_ids: Sequence[int], grid: TimeGrid) -> Activity:
    """Count what happened in these projects, step by step, by the time of the events."""
    places, span = marks(project_ids), (grid.since, grid.until)
    kinds = [kind.value for kind in Kind]

    def count_steps(source: str, at: str, values: Sequence[object]) -> tuple[int, ...]:
        sql = f"SELECT ({at} - ?) / ?, count(*) FROM {source} GROUP BY 1"
        return _fill_steps(grid, tx.execute(sql, (grid.since, grid.step_ms, *values)))

    return Activity(
        events=_count_events(tx, project_ids, grid),
        memories=count_steps(
            # With the kinds the index by project, kind and time answers alone.
            f"summaries s WHERE s.project_id IN ({places}) AND s.kind IN ({marks(kinds)})"
            " AND s.at >= ? AND s.at < ?",
            "s.at",
            (*project_ids, *kinds, *span),
        ),
        superseded=count_steps(
            "supersessions x CROSS JOIN summaries s ON s.id = x.newer_id"
            f" WHERE x.undone_at IS NULL AND s.project_id IN ({places}) AND s.at >= ? AND s.at < ?",
            "s.at",
            (*project_ids, *span),
        ),
    )


def _count_events(tx: Connection, project_ids: Sequence[int], grid: TimeGrid) -> tuple[int, ...]:
    """The events of each step; of a long time those of the sessions that began in it, which is quicker."""
    places, values, span = marks(project_ids), (grid.since, grid.step_ms), (grid.since, grid.until)
    sql = (
        "SELECT (e.at - ?) / ?, count(*) FROM sessions n"
        " JOIN events e ON e.session_id = n.id AND e.at >= ? AND e.at < ?"
        f" WHERE n.project_id IN ({places}) AND n.last_event_at >= ? AND n.started_at < ? GROUP BY 1"
    )
    given = (*values, *span, *project_ids, *span)
    if grid.until - grid.since > _LONG_MS:
        sql = (
            "SELECT (n.started_at - ?) / ?,"
            " sum((SELECT count(*) FROM events e WHERE e.session_id = n.id)) FROM sessions n"
            f" WHERE n.project_id IN ({places}) AND n.started_at >= ? AND n.started_at < ? GROUP BY 1"
        )
        given = (*values, *project_ids, *span)
    return _fill_steps(grid, tx.execute(sql, given))


def _fill_steps(grid: TimeGrid, rows: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The count of each step, 0 for those that are not among the rows."""
    counts = [0] * grid.steps
    for step, count in rows:
        counts[step] = count
    return tuple(counts)


def find_time_span(tx: Connection, project_ids: Sequence[int]) -> tuple[int, int] | None:
    """Return the times of the first and the last memory of these projects; None without any."""
    # Each of one project and kind, which an index answers at once.
    times = [
        at
        for project in project_ids
        for kind in Kind
        for extreme in ("min(at)", "max(at)")
        if (at := fetch_int(
            tx, f"SELECT {extreme} FROM summaries WHERE project_id = ? AND kind = ?", (project, kind)
        )) is not None
    ]  # fmt: skip
    return (min(times), max(times)) if times else None
