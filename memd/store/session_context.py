"""Candidates for the start of a session: visible memories by kind, pinned, open, of a session.

Each query uses an index and a limit, so that it costs the same in a vault of any size.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apsw

from memd.models import CLOCK_SKEW_MAX_MS, Kind, Session
from memd.store.filter import Filter
from memd.store.projects import recent_sessions
from memd.store.types import ContextCandidate

SESSIONS_EXAMINED_MAX = 10
_CARD = (
    "SELECT s.id, s.project_id, s.session_id, s.kind, s.title, s.at, s.created_at,"
    " s.pinned_at IS NOT NULL, s.revisions + s.duplicates - 2,"
    " coalesce((SELECT count FROM uses u WHERE u.summary_id = s.id), 0) FROM summaries s"
)
PASSED_LATER = "passed-later"
"""The rule of an edge from a failure to the event of a later turn in which the same check passed."""
_OPEN = (
    # These rules of the distiller say that it passed in its own turn.
    "s.rule NOT IN ('same-command', 'same-tool', 'stated-fix') AND NOT EXISTS"
    " (SELECT 1 FROM edges e WHERE e.from_kind = 'summary' AND e.from_id = CAST(s.id AS TEXT)"
    f" AND (e.type = 'causes' OR e.rule = '{PASSED_LATER}'))"
)


def _card(row: tuple[Any, ...]) -> ContextCandidate:
    number, project_id, session_id, kind, title, at, created_at, pinned, repeats, uses = row
    return ContextCandidate(
        id=number, project_id=project_id, session_id=session_id, kind=Kind(kind), title=title,
        at=at, created_at=created_at, is_pinned=bool(pinned), repeats=int(repeats), uses=int(uses),
    )  # fmt: skip


def newest_candidates(
    tx: apsw.Connection, project_ids: Sequence[int], kind: Kind, now: int, limit: int
) -> list[ContextCandidate]:
    """The newest of this kind of each project, `limit` of each."""
    wanted = Filter(kinds=(kind,), now=now)
    return _of_each(tx, project_ids, wanted, limit)


def open_failures(
    tx: apsw.Connection, project_ids: Sequence[int], since: int, now: int, limit: int
) -> list[ContextCandidate]:
    """The newest failures since then that nothing mended and no later run of their check passed."""
    wanted = Filter(kinds=(Kind.FAILURE,), since=since, now=now)
    return _of_each(tx, project_ids, wanted, limit, _OPEN)


def pinned_candidates(
    tx: apsw.Connection, project_ids: Sequence[int], now: int, limit: int
) -> list[ContextCandidate]:
    """What a person pinned in these projects, of any kind, newest first of each."""
    return _of_each(tx, project_ids, Filter(now=now), limit, "s.pinned_at IS NOT NULL")


def session_candidates(
    tx: apsw.Connection, session_id: int, kinds: Sequence[Kind], now: int, limit: int
) -> list[ContextCandidate]:
    """The newest of these kinds from one session; of failures only the open ones."""
    wanted = Filter(session_id=session_id, kinds=tuple(kinds), now=now)
    return _cards(tx, wanted, f"(s.kind <> 'failure' OR {_OPEN}) ORDER BY s.at DESC", limit)


def candidates_by_ids(
    tx: apsw.Connection, summary_ids: Sequence[int], now: int
) -> list[ContextCandidate]:
    """Those of these that are neither expired nor hidden."""
    marks = ",".join("?" * len(summary_ids))
    return _cards(tx, Filter(now=now), f"s.id IN ({marks})", len(summary_ids), summary_ids)


def _of_each(
    tx: apsw.Connection,
    project_ids: Sequence[int],
    wanted: Filter,
    limit: int,
    condition: str = "1",
) -> list[ContextCandidate]:
    """The newest wanted of each project, `limit` of each."""
    return [
        card
        for number in project_ids
        for card in _cards(
            tx,
            replace(wanted, project_ids=(number,)),
            f"{condition} ORDER BY s.at DESC",
            limit,
        )
    ]


def _cards(
    tx: apsw.Connection, wanted: Filter, rest: str, limit: int, values: Sequence[int] = ()
) -> list[ContextCandidate]:
    """The wanted memories that meet the rest of a WHERE clause, which may order them."""
    where, bound = wanted.condition()
    rows = tx.execute(f"{_CARD} WHERE {where} AND {rest} LIMIT ?", (*bound, *values, limit))
    return [_card(row) for row in rows]


def last_session(
    tx: apsw.Connection, project_id: int, *, besides: int | None, now: int
) -> tuple[Session, ContextCandidate] | None:
    """The session of a project that ended last and left a memory, with the last one it left."""
    recent = recent_sessions(tx, project_id, SESSIONS_EXAMINED_MAX, now)
    ahead = now + CLOCK_SKEW_MAX_MS
    for one in sorted(recent, key=lambda s: (s.last_event_at > ahead, -s.last_event_at)):
        if one.id == besides:
            continue
        wanted = Filter(session_id=one.id, now=now)
        if last := _cards(tx, wanted, "1 ORDER BY s.at DESC, s.rule LIKE 'turn%' DESC", 1):
            return one, last[0]
    return None
