"""mem_timeline: memories around a memory, a time or a session, by event time, oldest first.

A superseded memory is part of what happened, so it is shown with its successor, and a contradicted one with
those that contradict it. A row says when a pause of an hour or more came before it and where its session
begins, because the work is often another one then. Times are UTC milliseconds, so no clock change moves a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memd.errors import BadRequest, UnknownId
from memd.models import CLOCK_SKEW_MAX_MS, Summary
from memd.recall.types import Timeline, TimelineRow
from memd.store import judgments, projects, summaries
from memd.store.database import Connection, Database
from memd.store.filter import Filter

GAP_MS = 3_600_000
"""A pause of at least this is shown."""
ROWS_MAX = 200
_FIRST, _LAST = -(2**62), 2**62
"""Before and after everything that can be stored."""
_INT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _TimelineCenter:
    """The moment around which to look, and the number of rows to show on each side."""

    at: int
    shown_at: int
    """The time that the answer gives for it."""
    before: int
    after: int
    pivot: Summary | None = None


async def read_timeline(  # noqa: PLR0913  # the question's own words; callers name each
    db: Database,
    *,
    around: int | None,
    at: int | None,
    wanted: Filter,
    before: int = 5,
    after: int = 5,
    between: tuple[int, int] | None = None,
    now: int,
) -> Timeline:
    """The neighbourhood of a memory (`around`), of a time (`at`), or a session from its start.

    Without any of them: the latest. A session and one of the others: around it, within the session.
    `between` two times, both included: all that happened there, of more than 200 memories the latest;
    then no memory and no time may be given, and before and after mean nothing.
    Times are UTC milliseconds. Raises UnknownId for an id that does not exist, or of another project or session.
    """
    _check_arguments(around, at, between, before, after)

    def read(tx: Connection) -> Timeline:
        _check_session(tx, wanted)
        if between is not None:
            return _read_range(tx, wanted, between)
        return _read_around(tx, wanted, find_center(tx))

    def find_center(tx: Connection) -> _TimelineCenter:
        if around is not None:
            pivot = _read_pivot(tx, wanted, around)
            return _TimelineCenter(pivot.at, pivot.at, before, after, pivot)
        if at is not None:
            return _TimelineCenter(at, at, before, after)
        if wanted.session_id is not None:
            first = projects.session(tx, wanted.session_id)
            shown_at = first.started_at if first else now
            return _TimelineCenter(_FIRST, shown_at, 0, before + after + 1)
        # A memory that a wrong clock dated ahead would be the latest for years; it counts as `more_after`.
        return _TimelineCenter(now + CLOCK_SKEW_MAX_MS, now, before + after + 1, 0)

    return await db.read(read)


def _check_arguments(
    around: int | None, at: int | None, between: object, before: int, after: int
) -> None:
    if around is not None and at is not None:
        raise BadRequest("give either the id of a memory or a time, not both")
    if between is not None and (around is not None or at is not None):
        raise BadRequest("give either days or a place, not both")
    if not (0 <= before <= ROWS_MAX and 0 <= after <= ROWS_MAX):
        raise BadRequest(f"before and after: between 0 and {ROWS_MAX}")
    if at is not None and not _FIRST < at < _LAST:
        raise BadRequest("at: out of range")


def _check_session(tx: Connection, wanted: Filter) -> None:
    if wanted.session_id is None:
        return
    found = projects.session(tx, wanted.session_id) if 0 < wanted.session_id <= _INT_MAX else None
    if found is None:
        raise UnknownId("there is no such session")
    is_visible = (
        wanted.project_ids is None
        or found.project_id in wanted.project_ids
        or summaries.has_of_session(tx, found.id, wanted.project_ids)
    )
    if not is_visible:
        raise UnknownId(
            "the session belongs to another project; ask with the project all to see it"
        )


def _read_pivot(tx: Connection, wanted: Filter, summary_id: int) -> Summary:
    found = summaries.get_summary(tx, summary_id) if 0 < summary_id <= _INT_MAX else None
    if found is None:
        raise UnknownId(f"there is no memory #{summary_id}")
    if wanted.project_ids is not None and found.project_id not in wanted.project_ids:
        raise UnknownId(
            f"#{summary_id} belongs to another project; ask with the project all to see it"
        )
    if wanted.session_id not in {None, found.session_id}:
        raise UnknownId(f"#{summary_id} does not belong to this session")
    return found


def _read_around(tx: Connection, wanted: Filter, center: _TimelineCenter) -> Timeline:
    """Read one row more than wanted on each side, to know whether there are more."""
    pivot_id = center.pivot.id if center.pivot else 0
    older = summaries.summaries_around(
        tx, wanted, center.at, before=center.before + 1, after=0, pivot=pivot_id
    )
    newer = summaries.summaries_around(
        tx, wanted, center.at, before=0, after=center.after + 1, pivot=pivot_id + bool(pivot_id)
    )
    shown = older[max(0, len(older) - center.before) :] if center.before else []
    line = [*shown, *([center.pivot] if center.pivot else []), *newer[: center.after]]
    return Timeline(
        rows=_make_rows(tx, wanted, line, pivot_id),
        pivot_at=center.shown_at,
        more_before=len(older) > center.before,
        more_after=len(newer) > center.after,
    )


def _read_range(tx: Connection, wanted: Filter, between: tuple[int, int]) -> Timeline:
    since, until = between
    days = replace(wanted, since=since, until=until)
    line = summaries.summaries_around(tx, days, until + 1, before=ROWS_MAX + 1, after=0)
    return Timeline(
        rows=_make_rows(tx, wanted, line[-ROWS_MAX:], 0),
        pivot_at=until,
        more_before=len(line) > ROWS_MAX,
        more_after=False,
        is_span=True,
    )


def _make_rows(
    tx: Connection, wanted: Filter, line: Sequence[Summary], pivot_id: int
) -> tuple[TimelineRow, ...]:
    known = projects.sessions(tx, {s.session_id for s in line if s.session_id is not None})
    against = judgments.visible_contradictions(tx, [s.id for s in line], wanted.project_ids)
    rows = []
    for place, summary in enumerate(line):
        previous = line[place - 1] if place else None
        gap = summary.at - previous.at if previous else 0
        session = known.get(summary.session_id or 0)
        # A session that moved here is titled by a prompt of another project.
        is_from_here = session is not None and session.project_id == summary.project_id
        rows.append(
            TimelineRow(
                summary,
                session.title if session and is_from_here else None,
                is_pivot=summary.id == pivot_id,
                gap_ms=gap if gap >= GAP_MS else None,
                begins_session=summary.session_id is not None
                and (previous is None or previous.session_id != summary.session_id),
                contradicted_by=against.get(summary.id, ()),
            )
        )
    return tuple(rows)
