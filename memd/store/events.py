"""Events: immutable, each once. The only thing ever written to one again is that it was distilled."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from memd.models import Event, EventKind, NewEvent
from memd.text import storable

_COLUMNS = "id, session_id, kind, name, at, payload, source, turn, tool, agent"


def _event(row: tuple[Any, ...]) -> Event:
    number, session_id, kind, name, at, payload, source, turn, tool, agent = row
    return Event(
        id=number, session_id=session_id, kind=EventKind(kind), name=name, at=at,
        payload=json.loads(payload), source=source, turn=turn, tool=tool, agent=agent,
    )  # fmt: skip


def _storable(text: str | None) -> str | None:
    return None if text is None else storable(text)


def append(tx: apsw.Connection, event: NewEvent, session_id: int) -> tuple[int, bool]:
    """Store an event unless one with its key is there; its sequence number, and whether it is new."""
    row = tx.execute(
        "INSERT INTO events (key, session_id, kind, name, at, source, turn, tool, agent, payload)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING RETURNING id",
        (
            event.key, session_id, event.kind.value, storable(event.name), event.at, event.source,
            _storable(event.turn), _storable(event.tool), _storable(event.agent),
            storable(json.dumps(event.payload, ensure_ascii=False, separators=(",", ":"))),
        ),
    ).get  # fmt: skip
    if row is not None:
        return int(row), True
    return int(tx.execute("SELECT id FROM events WHERE key = ?", (event.key,)).get), False


def by_ids(tx: apsw.Connection, event_ids: Sequence[int]) -> dict[int, Event]:
    """These events by id; unknown ids are left out."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM events WHERE id IN ({','.join('?' * len(event_ids))})",
        tuple(event_ids),
    )
    return {row[0]: _event(row) for row in rows}


def pending_sessions(tx: apsw.Connection) -> list[tuple[int, int, int]]:
    """(session, time of its first pending event, time of the session's last event), eldest first."""
    rows = tx.execute(
        "SELECT e.session_id, min(e.at), s.last_event_at FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE e.distilled = 0 GROUP BY e.session_id ORDER BY min(e.id)"
    )
    return [(int(a), int(b), int(c)) for a, b, c in rows]


def pending_ids(tx: apsw.Connection, session_id: int) -> set[int]:
    """The ids of a session's events that were not distilled yet."""
    rows = tx.execute(
        "SELECT id FROM events WHERE session_id = ? AND distilled = 0", (session_id,)
    )
    return {int(row[0]) for row in rows}


def of_session(tx: apsw.Connection, session_id: int, since: int, limit: int) -> list[Event]:
    """A session's events from the prompt at or before `since` on, in order of time; at most `limit`."""
    start = tx.execute(
        "SELECT max(at) FROM events WHERE session_id = ? AND at <= ? AND kind = 'prompt'",
        (session_id, since),
    ).get
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM events WHERE session_id = ? AND at >= ? ORDER BY at, id LIMIT ?",
        (session_id, since if start is None else start, limit),
    )
    return [_event(row) for row in rows]


def of_turns(
    tx: apsw.Connection, session_id: int, turns: Sequence[str], limit: int
) -> list[Event]:
    """Every event of these turns of a session; of more than `limit`, what was said comes first."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM events WHERE session_id = ? AND turn IN ({','.join('?' * len(turns))})"
        " ORDER BY kind NOT IN ('prompt', 'stop', 'compact_end'), at, id LIMIT ?",
        (session_id, *turns, limit),
    )
    return [_event(row) for row in rows]


def pending_kinds(tx: apsw.Connection, session_id: int) -> dict[EventKind, tuple[int, int]]:
    """Of a session's events that were not distilled yet: kind → (how many, time of the first)."""
    rows = tx.execute(
        "SELECT kind, count(*), min(at) FROM events WHERE session_id = ? AND distilled = 0 GROUP BY kind",
        (session_id,),
    )
    return {EventKind(kind): (int(count), int(at)) for kind, count, at in rows}


def pending_count(tx: apsw.Connection) -> int:
    """How many events of the whole vault were not distilled yet."""
    return int(tx.execute("SELECT count(*) FROM events WHERE distilled = 0").get)


def mark_distilled(tx: apsw.Connection, event_ids: Iterable[int]) -> None:
    """These events have been distilled."""
    tx.executemany("UPDATE events SET distilled = 1 WHERE id = ?", [(i,) for i in event_ids])


def counts(tx: apsw.Connection) -> dict[str, int | None]:
    """`events`, `pending` and `last_at` of the whole vault."""
    # max(id) would count the forgotten; an index-only count is quick enough for a health check.
    total = tx.execute("SELECT count(*) FROM events").get
    pending = tx.execute("SELECT count(*) FROM events WHERE distilled = 0").get
    last = tx.execute("SELECT max(last_event_at) FROM sessions").get
    return {"events": int(total), "pending": int(pending), "last_at": last}


def any_pending_through(tx: apsw.Connection, event_id: int) -> bool:
    """Whether an event up to this sequence number waits to be distilled."""
    return bool(
        tx.execute(
            "SELECT EXISTS (SELECT 1 FROM events WHERE distilled = 0 AND id <= ?)", (event_id,)
        ).get
    )


def command_descriptions(
    tx: apsw.Connection, project_id: int, limit: int = 200
) -> dict[str, str]:
    """What the agent said its recent shell commands in this project are for: command → description."""
    rows = tx.execute(
        "SELECT json_extract(e.payload, '$.tool_input.command'), json_extract(e.payload, '$.tool_input.description')"
        " FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE s.project_id = ? AND e.tool = 'Bash' ORDER BY e.id DESC LIMIT ?",
        (project_id, limit),
    )
    return {str(command): str(said) for command, said in rows if command and said}


def forget(tx: apsw.Connection, event_ids: Sequence[int], now: int) -> int:
    """Erase these events; only the hash of each stays, so that no import brings it back."""
    tx.executemany(
        "INSERT OR IGNORE INTO forgotten SELECT key, ? FROM events WHERE id = ?",
        [(now, i) for i in event_ids],
    )
    tx.executemany("DELETE FROM events WHERE id = ?", [(i,) for i in event_ids])
    return len(event_ids)
