"""What a session could begin with: the cards of live memories by kind, pinned, open, of a session.

Each is read by an index and bounded, so that it costs the same in a vault of any size. Superseded
and expired memories are never among them. Not here: which of them are worth the room.
"""

from collections.abc import Sequence
from typing import Any

import apsw

from memd.models import AHEAD_MS, Kind, Session
from memd.store.projects import of_project
from memd.store.rows import Card

SESSIONS_LOOKED_AT = 10
_CARD = (
    "SELECT s.id, s.project_id, s.session_id, s.kind, s.title, s.at, s.created_at,"
    " s.pinned_at IS NOT NULL, s.revisions + s.duplicates - 2,"
    " coalesce((SELECT count FROM uses u WHERE u.summary_id = s.id), 0) FROM summaries s"
)
_LIVE = (
    "(s.expires_at IS NULL OR s.expires_at > ?) AND s.archived_at IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL)"
)
PASSED_LATER = "passed-later"
"""The rule of an edge from a failure to the event of a later turn in which the same check passed."""
_OPEN = (
    # These rules of the distiller say that it passed in its own turn.
    "s.rule NOT IN ('same-command', 'same-tool', 'stated-fix') AND NOT EXISTS"
    " (SELECT 1 FROM edges e WHERE e.from_kind = 'summary' AND e.from_id = CAST(s.id AS TEXT)"
    f" AND (e.type = 'causes' OR e.rule = '{PASSED_LATER}'))"
)


def _card(row: tuple[Any, ...]) -> Card:
    number, project_id, session_id, kind, title, at, created_at, pinned, repeats, uses = row
    return Card(
        id=number, project_id=project_id, session_id=session_id, kind=Kind(kind), title=title,
        at=at, created_at=created_at, is_pinned=bool(pinned), repeats=int(repeats), uses=int(uses),
    )  # fmt: skip


def newest(
    tx: apsw.Connection, project_ids: Sequence[int], kind: Kind, now: int, limit: int
) -> list[Card]:
    """The newest of this kind of each project, `limit` of each."""
    return [
        _card(row)
        for project_id in project_ids
        for row in tx.execute(
            f"{_CARD} WHERE s.project_id = ? AND s.kind = ? AND {_LIVE} ORDER BY s.at DESC LIMIT ?",
            (project_id, kind.value, now, limit),
        )
    ]


def open_failures(
    tx: apsw.Connection, project_ids: Sequence[int], since: int, now: int, limit: int
) -> list[Card]:
    """The newest failures since then that nothing mended and no later run of their check passed."""
    return [
        _card(row)
        for project_id in project_ids
        for row in tx.execute(
            f"{_CARD} WHERE s.project_id = ? AND s.kind = 'failure' AND s.at >= ?"
            f" AND {_LIVE} AND {_OPEN} ORDER BY s.at DESC LIMIT ?",
            (project_id, since, now, limit),
        )
    ]


def pinned(tx: apsw.Connection, project_ids: Sequence[int], now: int, limit: int) -> list[Card]:
    """What a person pinned in these projects, of any kind, newest first of each."""
    return [
        _card(row)
        for project_id in project_ids
        for row in tx.execute(
            f"{_CARD} WHERE s.project_id = ? AND s.pinned_at IS NOT NULL AND {_LIVE}"
            " ORDER BY s.at DESC LIMIT ?",
            (project_id, now, limit),
        )
    ]


def of_session(
    tx: apsw.Connection, session_id: int, kinds: Sequence[Kind], now: int, limit: int
) -> list[Card]:
    """The newest of these kinds from one session; of failures only the open ones."""
    rows = tx.execute(
        f"{_CARD} WHERE s.session_id = ? AND s.kind IN ({','.join('?' * len(kinds))}) AND {_LIVE}"
        f" AND (s.kind <> 'failure' OR {_OPEN}) ORDER BY s.at DESC LIMIT ?",
        (session_id, *(kind.value for kind in kinds), now, limit),
    )
    return [_card(row) for row in rows]


def by_ids(tx: apsw.Connection, summary_ids: Sequence[int], now: int) -> list[Card]:
    """Those of these that live."""
    rows = tx.execute(
        f"{_CARD} WHERE s.id IN ({','.join('?' * len(summary_ids))}) AND {_LIVE}",
        (*summary_ids, now),
    )
    return [_card(row) for row in rows]


def last_session(
    tx: apsw.Connection, project_id: int, *, besides: int | None, now: int
) -> tuple[Session, Card] | None:
    """The session of a project that ended last and left a memory, with the last one it left."""
    recent = of_project(tx, project_id, SESSIONS_LOOKED_AT, now)
    ahead = now + AHEAD_MS
    for one in sorted(recent, key=lambda s: (s.last_event_at > ahead, -s.last_event_at)):
        if one.id == besides:
            continue
        row = tx.execute(
            f"{_CARD} WHERE s.session_id = ? AND {_LIVE} ORDER BY s.at DESC, s.rule LIKE 'turn%' DESC"
            " LIMIT 1",
            (one.id, now),
        ).fetchone()
        if row is not None:
            return one, _card(row)
    return None
