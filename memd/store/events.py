"""Events: immutable, each once. The only thing ever written to one again is that it was distilled."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from memd.models import Event, EventKind, NewEvent
from memd.text import storable

_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_COLUMNS = "id, session_id, kind, name, at, payload, source, turn, tool, agent"
_MARKS = "kind IN ('prompt', 'session_start', 'compact_start')"
"""As the index of marks says it. The planner knows nothing of how few they are: it has to be told."""
_PROMPTS = (
    f"events INDEXED BY events_marks WHERE session_id = ? AND {_MARKS} AND kind = 'prompt'"
)


def _event(row: tuple[Any, ...]) -> Event:
    number, session_id, kind, name, at, payload, source, turn, tool, agent = row
    return Event(
        id=number, session_id=session_id, kind=EventKind(kind), name=name, at=at,
        payload=json.loads(payload), source=source, turn=turn, tool=tool, agent=agent,
    )  # fmt: skip


def _storable(text: str | None) -> str | None:
    return None if text is None else storable(text)


def append_event(tx: apsw.Connection, event: NewEvent, session_id: int) -> tuple[int, bool]:
    """Store an event unless it is there under its key or a former one; its number, and if it is new."""
    for former in event.former_keys:
        found = tx.execute("SELECT id FROM events WHERE key = ?", (former,)).get
        if found is not None:
            return int(found), False
    row = tx.execute(
        "INSERT INTO events (key, session_id, kind, name, at, source, turn, tool, agent, payload)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING RETURNING id",
        (
            event.key, session_id, event.kind.value, storable(event.name), event.at, event.source,
            _storable(event.turn), _storable(event.tool), _storable(event.agent),
            storable(_written(event.payload)),
        ),
    ).get  # fmt: skip
    if row is not None:
        return int(row), True
    return int(tx.execute("SELECT id FROM events WHERE key = ?", (event.key,)).get), False


def has_prompt(tx: apsw.Connection, session_id: int) -> bool:
    """Whether a session has any prompt."""
    return bool(tx.execute(f"SELECT EXISTS (SELECT 1 FROM {_PROMPTS})", (session_id,)).get)


def prompt_of_turn(tx: apsw.Connection, session_id: int, turn: str) -> str | None:
    """The text of a turn's own prompt; None if there is none."""
    own = tx.execute(
        f"SELECT payload ->> '$.prompt' FROM {_PROMPTS} AND turn = ?",
        (session_id, storable(turn)),
    ).fetchone()
    return None if own is None else str(own[0])


def prompt_before(
    tx: apsw.Connection, session_id: int, turn: str | None, at: int
) -> str | None:
    """The text of the last prompt before this time; None if that, or there is one, of another turn."""
    last = tx.execute(
        f"SELECT payload ->> '$.prompt', turn FROM {_PROMPTS} AND at <= ?"
        " ORDER BY at DESC, id DESC LIMIT 1",
        (session_id, at),
    ).fetchone()
    return None if last is None or (turn and last[1]) else str(last[0])


def prompts_before(tx: apsw.Connection, session_id: int, at: int) -> list[str]:
    """The text of every prompt of a session up to a time."""
    rows = tx.execute(
        f"SELECT payload ->> '$.prompt' FROM {_PROMPTS} AND at <= ?", (session_id, at)
    )
    return [str(text) for (text,) in rows]


def turn_ids_except_prompt(tx: apsw.Connection, session_id: int, turn: str) -> list[int]:
    """The ids of a turn's events, without its prompt and without the session's own start and end."""
    rows = tx.execute(
        "SELECT id FROM events WHERE session_id = ? AND turn = ?"
        " AND kind NOT IN ('prompt', 'session_start', 'session_end')",
        (session_id, storable(turn)),
    )
    return [int(row[0]) for row in rows]


def events_by_ids(tx: apsw.Connection, event_ids: Sequence[int]) -> dict[int, Event]:
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


def session_events(tx: apsw.Connection, session_id: int, since: int, limit: int) -> list[Event]:
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


def turn_events(
    tx: apsw.Connection, session_id: int, turns: Sequence[str], limit: int
) -> list[Event]:
    """Every event of these turns of a session; of more than `limit`, what was said comes first."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM events WHERE session_id = ? AND turn IN ({','.join('?' * len(turns))})"
        " ORDER BY kind NOT IN ('prompt', 'stop', 'compact_end'), at, id LIMIT ?",
        (session_id, *turns, limit),
    )
    return [_event(row) for row in rows]


def pending_kinds(
    tx: apsw.Connection, session_id: int
) -> dict[EventKind, tuple[int, int, int]]:
    """Of a session's events that were not distilled yet: kind → how many, times of first and last."""
    rows = tx.execute(
        "SELECT kind, count(*), min(at), max(at) FROM events"
        " WHERE session_id = ? AND distilled = 0 GROUP BY kind",
        (session_id,),
    )
    return {
        EventKind(kind): (int(count), int(first), int(last))
        for kind, count, first, last in rows
    }


def count_pending(tx: apsw.Connection) -> int:
    """How many events of the whole vault were not distilled yet."""
    return int(tx.execute("SELECT count(*) FROM events WHERE distilled = 0").get)


def mark_distilled(tx: apsw.Connection, event_ids: Iterable[int]) -> None:
    """These events have been distilled."""
    tx.executemany("UPDATE events SET distilled = 1 WHERE id = ?", [(i,) for i in event_ids])


def event_counts(tx: apsw.Connection) -> dict[str, int | None]:
    """`events`, `pending` and `last_at` of the whole vault."""
    # max(id) would count the forgotten; an index-only count is quick enough for a health check.
    total = tx.execute("SELECT count(*) FROM events").get
    pending = tx.execute("SELECT count(*) FROM events WHERE distilled = 0").get
    last = tx.execute("SELECT max(last_event_at) FROM sessions").get
    return {"events": int(total), "pending": int(pending), "last_at": last}


def has_pending_through(tx: apsw.Connection, event_id: int) -> bool:
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


def last_context_loss(tx: apsw.Connection, session_id: int) -> int | None:
    """When the agent last lost what it had seen: its session was compacted or cleared."""
    found = tx.execute(
        f"SELECT max(at) FROM events INDEXED BY events_marks WHERE session_id = ? AND {_MARKS} AND (kind = 'compact_start'"
        " OR kind = 'session_start' AND payload ->> '$.source' IN ('compact', 'clear'))",
        (session_id,),
    ).get
    return None if found is None else int(found)


def last_time_except(tx: apsw.Connection, session_id: int, event_id: int | None) -> int | None:
    """When something happened in a session last, not counting this event nor that it began again."""
    found = tx.execute(
        "SELECT at FROM events WHERE session_id = ? AND id IS NOT ? AND kind <> 'session_start'"
        " ORDER BY at DESC LIMIT 1",
        (session_id, event_id),
    ).get
    return None if found is None else int(found)


def prompts_except(
    tx: apsw.Connection, session_id: int, event_id: int | None, limit: int
) -> list[str]:
    """The latest prompts of a session, not counting this event's."""
    rows = tx.execute(
        f"SELECT payload ->> '$.prompt' FROM {_PROMPTS} AND id IS NOT ? ORDER BY at DESC LIMIT ?",
        (session_id, event_id, limit),
    )
    return [str(text) for (text,) in rows if text]


def forget_events(tx: apsw.Connection, event_ids: Sequence[int], now: int) -> int:
    """Erase these events; only the hash of each stays, so that no import brings it back."""
    tx.executemany(
        "INSERT OR IGNORE INTO forgotten SELECT key, ? FROM events WHERE id = ?",
        [(now, i) for i in event_ids],
    )
    tx.executemany("DELETE FROM events WHERE id = ?", [(i,) for i in event_ids])
    return len(event_ids)
