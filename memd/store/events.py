"""Events: each is stored once and never changes, except that it is marked as distilled or compacted.

Two things more are corrected: a prompt whose copy tells that no person typed it, and a secret that is recognised later in its turn.

A turn is an event that carries words: a prompt, an answer, what the agent said before it, what the user said
when refusing a tool call, a subagent's answer, the summary at a compaction. Triggers keep the full text equal to the
events, so a forgotten event has no turn.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apsw import Connection

from memd.models import AGENTS_IMPORT, ELSEWHERE, Event, EventKind, NewEvent
from memd.store.filter import join_bounds, marks
from memd.store.queries import (
    compact_json,
    count_rows,
    fetch_all,
    fetch_column,
    fetch_ids,
    fetch_int,
    fetch_rows,
    has_rows,
    last_id,
)
from memd.text import storable

_COLUMNS = "id, session_id, kind, name, at, payload, source, turn, tool, agent"
"""In the order of the fields of Event."""
_IN_MARKS_INDEX = "kind IN ('prompt', 'session_start', 'compact_start')"
"""The condition of the partial index `events_marks`. Named explicitly, because the planner does not know how few rows it has."""
_IS_UNKNOWN = "session_id IN (SELECT id FROM sessions WHERE client = 'unknown')"
SPOKEN_KINDS = (EventKind.PROMPT, EventKind.STOP, EventKind.AGENT_TEXT)
_EVER = 2**63 - 1
_EVENTS_LOOKED_AT = 1_000
_PROMPTS = (
    f"events INDEXED BY events_marks WHERE session_id = ? AND {_IN_MARKS_INDEX} AND kind = 'prompt'"
)


def _to_event(*row: Any) -> Event:
    values = list(row)
    values[2], values[5] = EventKind(row[2]), json.loads(row[5])
    return Event(*values)


def _events_of(tx: Connection, session_id: int, rest: str, *values: object) -> list[Event]:
    """The events of a session that meet the rest of a query."""
    sql = f"SELECT {_COLUMNS} FROM events WHERE session_id = ? AND {rest}"
    return fetch_rows(tx, _to_event, sql, (session_id, *values))


def append_event(tx: Connection, event: NewEvent, session_id: int) -> tuple[int, bool]:
    """Store an event unless it is there under its key or a former one; its id, and whether it is new."""
    for former in event.former_keys:
        found = fetch_int(tx, "SELECT id FROM events WHERE key = ?", (former,))
        if found is not None:
            return found, False
    row = tx.execute(
        "INSERT INTO events (key, session_id, kind, name, at, source, turn, tool, agent, payload)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING RETURNING id",
        (
            event.key, session_id, event.kind.value, storable(event.name), event.at, event.source,
            event.turn and storable(event.turn), event.tool and storable(event.tool),
            event.agent and storable(event.agent), storable(compact_json(event.payload)),
        ),
    ).get  # fmt: skip
    if row is not None:
        return int(row), True
    return int(tx.execute("SELECT id FROM events WHERE key = ?", (event.key,)).get), False


def attribute_to_source(tx: Connection, event_id: int, source: str) -> bool:
    """Attribute to this source, and distill again, an event that only an agent reported so far; False if another did."""
    sql = "UPDATE events SET source = ?, distilled = 0 WHERE id = ? AND source = ?"
    tx.execute(sql, (source, event_id, AGENTS_IMPORT))
    return tx.changes() > 0


def known_keys(tx: Connection, keys: Sequence[str]) -> set[str]:
    """Return the idempotency keys among these under which an event is stored."""
    sql = "SELECT key FROM events WHERE key IN (SELECT value FROM json_each(?))"
    return set(fetch_column(tx, sql, (json.dumps(keys),)))


def spoken_around(
    tx: Connection, session_id: int, kind: EventKind, since: int, until: int
) -> list[Event]:
    """Events of this kind of a session's own agent from `since` to `until`; at most 50."""
    rest = "at BETWEEN ? AND ? AND kind = ? AND agent IS NULL ORDER BY at, id LIMIT 50"
    return _events_of(tx, session_id, rest, since, until, kind.value)


def has_hook_events(tx: Connection, session_id: int) -> bool:
    """Return whether hooks delivered any event of a session."""
    sql = "events WHERE session_id = ? AND source IN ('live', 'spool')"
    return has_rows(tx, sql, (session_id,))


def has_prompt(tx: Connection, session_id: int) -> bool:
    """Return whether a session has any prompt."""
    return has_rows(tx, _PROMPTS, (session_id,))


def prompts_of_turn(tx: Connection, session_id: int, turn: str) -> list[tuple[int, str]]:
    """(time, text) of a turn's own prompts, oldest first; one, unless the client used its id again."""
    sql = f"SELECT at, coalesce(payload ->> '$.prompt', '') FROM {_PROMPTS} AND turn = ? ORDER BY at, id"
    return fetch_all(tx, sql, (session_id, storable(turn)))


def prompt_before(tx: Connection, session_id: int, turn: str | None, at: int) -> str | None:
    """The text of the last prompt before this time; None if it belongs to another turn, or there is none."""
    sql = f"SELECT payload ->> '$.prompt', turn FROM {_PROMPTS} AND at <= ? ORDER BY at DESC, id DESC LIMIT 1"
    last = tx.execute(sql, (session_id, at)).fetchone()
    return None if last is None or (turn and last[1]) else str(last[0])


def last_prompts(tx: Connection, session_id: int, until: int, limit: int) -> list[Event]:
    """A session's latest prompts up to a time, latest first, without those that an agent's shell imported."""
    sql = f"SELECT {_COLUMNS} FROM {_PROMPTS} AND at <= ? AND source <> ? ORDER BY at DESC LIMIT ?"
    return fetch_rows(tx, _to_event, sql, (session_id, until, AGENTS_IMPORT, limit))


def next_prompt(tx: Connection, session_id: int, after: int) -> list[Event]:
    """A session's first prompt after a time, if there is one."""
    sql = f"SELECT {_COLUMNS} FROM {_PROMPTS} AND at > ? AND source <> ? ORDER BY at LIMIT 1"
    return fetch_rows(tx, _to_event, sql, (session_id, after, AGENTS_IMPORT))


def last_prompts_in(
    tx: Connection, project_id: int, besides: int | None, until: int, limit: int
) -> list[Event]:
    """The latest prompts of a project's sessions besides one, up to a time, latest first."""
    sql = (
        f"SELECT {_COLUMNS} FROM events WHERE id IN (SELECT e.id FROM sessions s CROSS JOIN events e"
        f" INDEXED BY events_marks ON e.session_id = s.id WHERE s.project_id = ? AND s.id IS NOT ? AND e.{_IN_MARKS_INDEX}"
        " AND e.kind = 'prompt' AND e.at <= ? ORDER BY e.at DESC LIMIT ?)"
        " AND source <> ? ORDER BY at DESC"
    )
    return fetch_rows(tx, _to_event, sql, (project_id, besides, until, limit, AGENTS_IMPORT))


def look_for_prompt(tx: Connection, after: int) -> tuple[int, bool]:
    """The last event, and whether there may be a prompt among those that came after one: among many there is."""
    last = last_id(tx, "events")
    if last - after > _EVENTS_LOOKED_AT:
        return last, True
    return last, last > after and has_rows(tx, "events WHERE id > ? AND kind = 'prompt'", (after,))


def prompts_after(tx: Connection, project_id: int, after: int, until: int) -> list[Event]:
    """The prompts of a project that were stored after an event, up to a time."""
    sql = (
        f"SELECT {_COLUMNS} FROM events NOT INDEXED WHERE id > ? AND kind = 'prompt' AND at <= ? AND source <> ?"
        " AND session_id IN (SELECT id FROM sessions WHERE project_id = ?)"
    )
    return fetch_rows(tx, _to_event, sql, (after, until, AGENTS_IMPORT, project_id))


def prompts_before(tx: Connection, session_id: int, at: int) -> list[str]:
    """The text of every prompt of a session up to a time."""
    sql = f"SELECT coalesce(payload ->> '$.prompt', '') FROM {_PROMPTS} AND at <= ?"
    return fetch_column(tx, sql, (session_id, at))


def prompts_except(tx: Connection, session_id: int, event_id: int | None, limit: int) -> list[str]:
    """The latest prompts of a session, leaving out this event's."""
    sql = f"SELECT payload ->> '$.prompt' FROM {_PROMPTS} AND id IS NOT ? ORDER BY at DESC LIMIT ?"
    return list(filter(None, fetch_column(tx, sql, (session_id, event_id, limit))))


def turn_ids_except_prompt(
    tx: Connection, session_id: int, turn: str, since: int, until: int
) -> list[int]:
    """The ids of a turn's events from `since` to before `until`, without prompts, starts and ends of the session."""
    sql = (
        "SELECT id FROM events WHERE session_id = ? AND turn = ? AND at >= ? AND at < ?"
        " AND kind NOT IN ('prompt', 'session_start', 'session_end')"
    )
    return fetch_ids(tx, sql, (session_id, storable(turn), since, until))


def project_key_elsewhere(tx: Connection, event_id: int) -> str | None:
    """The key of an event's project where that is not its session's; else None."""
    sql = f"SELECT payload ->> '$.{ELSEWHERE}' FROM events WHERE id = ?"
    return next(iter(fetch_column(tx, sql, (event_id,))), None)


def is_compacted(tx: Connection, event_id: int) -> bool:
    """Return whether only a part of this event's payload is left."""
    return has_rows(tx, "compactions WHERE event_id = ?", (event_id,))


def events_state(tx: Connection, session_id: int) -> tuple[int, int]:
    """Return a value that changes once any event of a session has come or gone."""
    sql = "SELECT count(*), coalesce(max(id), 0) FROM events WHERE session_id = ?"
    ((count, last),) = tx.execute(sql, (session_id,))
    return count, last


def compacted_ids(tx: Connection, session_id: int) -> set[int]:
    """The events of a session of whose payload only a part is left."""
    sql = "SELECT c.event_id FROM compactions c JOIN events e ON e.id = c.event_id WHERE e.session_id = ?"
    return set(fetch_ids(tx, sql, (session_id,)))


def events_by_ids(tx: Connection, event_ids: Sequence[int]) -> dict[int, Event]:
    """Return these events by id; unknown ids are left out."""
    sql = f"SELECT {_COLUMNS} FROM events WHERE id IN ({marks(event_ids)})"
    return {one.id: one for one in fetch_rows(tx, _to_event, sql, event_ids)}


def session_events(
    tx: Connection, session_id: int, since: int, limit: int, until: int = _EVER
) -> list[Event]:
    """A session's events from the prompt at or before `since` to `until`, in order of time; at most `limit`."""
    sql = "SELECT max(at) FROM events WHERE session_id = ? AND at <= ? AND kind = 'prompt'"
    start = fetch_int(tx, sql, (session_id, since))
    begin = since if start is None else start
    rest = "at >= ? AND at <= ? ORDER BY at, id LIMIT ?"
    return _events_of(tx, session_id, rest, begin, until, limit)


def events_page(
    tx: Connection, session_id: int, kinds: Sequence[EventKind], after: tuple[int, int], limit: int
) -> list[Event]:
    """A session's events of these kinds after a time and id, in order of time; at most `limit`."""
    rest = f"(at, id) > (?, ?) AND kind IN ({marks(kinds)}) ORDER BY at, id LIMIT ?"
    return _events_of(tx, session_id, rest, *after, *kinds, limit)


def count_by_kind(tx: Connection, session_id: int) -> dict[str, int]:
    """Kind of event → how many of them a session has."""
    sql = "SELECT kind, count(*) FROM events WHERE session_id = ? GROUP BY 1"
    return dict(tx.execute(sql, (session_id,)))


def changed_files(tx: Connection, session_id: int, limit: int) -> list[str]:
    """The files that a session changed with its tools, the first one first."""
    sql = (
        "SELECT payload ->> '$.tool_input.file_path' AS file FROM events WHERE session_id = ? AND kind = 'tool_result'"
        " AND tool IN ('Edit', 'MultiEdit', 'NotebookEdit', 'Write') AND file IS NOT NULL GROUP BY 1 ORDER BY min(at) LIMIT ?"
    )
    return fetch_column(tx, sql, (session_id, limit))


def sessions_around(
    tx: Connection, project_id: int, since: int, until: int, limit: int
) -> list[int]:
    """The sessions that ran between these times, the project's own and the last ones first; at most `limit`."""
    sql = (
        "SELECT id FROM sessions WHERE started_at <= ? AND last_event_at >= ?"
        " ORDER BY project_id = ? DESC, last_event_at DESC LIMIT ?"
    )
    return fetch_ids(tx, sql, (until, since, project_id, limit))


def turn_events(tx: Connection, session_id: int, turns: Sequence[str], limit: int) -> list[Event]:
    """The events of these turns of a session, prompts and answers first; at most `limit`."""
    rest = (
        f"turn IN ({marks(turns)})"
        " ORDER BY kind NOT IN ('prompt', 'stop', 'compact_end', 'tool_refused'), at, id LIMIT ?"
    )
    return _events_of(tx, session_id, rest, *turns, limit)


def spoken_events(  # noqa: PLR0913  # a span, what is around it, and which kinds
    tx: Connection, session_id: int, since: int, until: int, *,
    before: int, after: int, kinds: Collection[EventKind] = SPOKEN_KINDS,
) -> list[Event]:  # fmt: skip
    """Return what a session's user and its own agent said from `since` to `until`, in order of time.

    `before` and `after`: the number of prompts to add before and after these times.
    """
    sql = f"SELECT min(at) FROM (SELECT at FROM {_PROMPTS} AND at < ? ORDER BY at DESC LIMIT ?)"
    first = fetch_int(tx, sql, (session_id, since, before))
    sql = f"SELECT at FROM {_PROMPTS} AND at > ? ORDER BY at LIMIT 1 OFFSET ?"
    beyond = fetch_int(tx, sql, (session_id, until, after))
    return fetch_rows(
        tx,
        _to_event,
        f"SELECT {_COLUMNS} FROM events WHERE session_id = ? AND at >= ? AND (? IS NULL OR at < ?)"
        f" AND kind IN ({marks(kinds)}) AND agent IS NULL ORDER BY at, id",
        (session_id, since if first is None else first, beyond, beyond, *kinds),
    )


def spoken_record(tx: Connection, session_id: int) -> list[Event]:
    """Return the speech of a session's user and its own agent, dialogues and plans too, in order of time.

    What an agent's shell imported is left out: it says whatever that agent likes.
    """
    rest = (
        f"agent IS NULL AND source <> ? AND (kind IN ({marks(SPOKEN_KINDS)})"
        " OR kind IN ('agent_text', 'tool_refused') OR (kind = 'tool_result' AND tool IN ('AskUserQuestion', 'ExitPlanMode')))"
        " ORDER BY at, id"
    )
    return _events_of(tx, session_id, rest, AGENTS_IMPORT, *SPOKEN_KINDS)


def commands_since(tx: Connection, session_id: int, at: int) -> list[str]:
    """The commands that a session ran after a time, in order."""
    sql = (
        "SELECT payload ->> '$.tool_input.command' FROM events WHERE session_id = ? AND at > ?"
        " AND kind = 'tool_result' AND payload ->> '$.tool_input.command' IS NOT NULL ORDER BY at, id"
    )
    return fetch_column(tx, sql, (session_id, at))


def command_events(
    tx: Connection, project_ids: Sequence[int], since: int, limit: int
) -> list[Event]:
    """The ended shell commands in the sessions of these projects since then, the latest of them, in order."""
    sql = (
        f"SELECT {_COLUMNS} FROM (SELECT * FROM events WHERE session_id IN (SELECT id FROM sessions WHERE project_id IN"
        f" ({marks(project_ids)})) AND at >= ? AND kind IN ('tool_result', 'tool_failure') AND tool IN ('Bash', 'PowerShell')"
        " ORDER BY at DESC, id DESC LIMIT ?) ORDER BY at, id"
    )
    return fetch_rows(tx, _to_event, sql, (*project_ids, since, limit))


@dataclass(frozen=True, slots=True)
class PastCall:
    """The arguments of an earlier tool call; `command` and `file` are empty where the tool takes none."""

    tool: str
    is_success: bool
    command: str
    file: str
    directory: str


def latest_calls(tx: Connection, session_id: int, limit: int) -> list[PastCall]:
    """The commands and edits of a session's agents, its subagents' too, the latest first."""
    rows = tx.execute(
        "SELECT tool, kind = 'tool_result', coalesce(payload ->> '$.tool_input.command', ''),"
        " coalesce(payload ->> '$.tool_input.file_path', payload ->> '$.tool_input.notebook_path', ''),"
        " coalesce(payload ->> '$.cwd', '') FROM events WHERE session_id = ? AND kind IN ('tool_result', 'tool_failure')"
        " AND tool IN ('Bash', 'Edit', 'MultiEdit', 'NotebookEdit', 'Write') ORDER BY at DESC, id DESC LIMIT ?",
        (session_id, limit),
    )
    return [PastCall(tool, bool(done), *rest) for tool, done, *rest in rows]


def results_containing(tx: Connection, session_id: int, word: str, limit: int) -> list[Event]:
    """Results and failures of a session's tools, its subagents' too, that have a word, the latest first."""
    rest = (
        "kind IN ('tool_result', 'tool_failure')"
        " AND instr(lower(payload), lower(?)) > 0 AND coalesce(tool, '') != 'AskUserQuestion' ORDER BY at DESC, id DESC LIMIT ?"
    )
    return _events_of(tx, session_id, rest, word, limit)


def last_agent_text(tx: Connection, session_id: int, since: int, until: int) -> Event | None:
    """Return the last text of a session's own agent from `since` to before `until`; None if there is none."""
    rest = "at >= ? AND at < ? AND kind = 'agent_text' AND agent IS NULL ORDER BY at DESC, id DESC LIMIT 1"
    return next(iter(_events_of(tx, session_id, rest, since, until)), None)


def last_answer(tx: Connection, session_id: int, until: int = _EVER) -> Event | None:
    """Return what a session's own agent said last, up to a time; None if it said nothing."""
    rest = (
        "at <= ? AND kind IN ('stop', 'agent_text') AND agent IS NULL"
        " AND coalesce(payload ->> '$.last_assistant_message', payload ->> '$.text', '') <> ''"
        " ORDER BY at DESC, id DESC LIMIT 1"
    )
    return next(iter(_events_of(tx, session_id, rest, until)), None)


def events_between(
    tx: Connection, session_id: int, since: int, until: int, limit: int
) -> list[Event]:
    """A session's events that belong to no turn of the client, from `since` to before `until`; at most `limit`."""
    rest = "at >= ? AND at < ? AND turn IS NULL ORDER BY at, id LIMIT ?"
    return _events_of(tx, session_id, rest, since, until, limit)


def count_between(tx: Connection, session_id: int, since: int, until: int) -> int:
    """Count a session's events from `since` to before `until`."""
    where = "events WHERE session_id = ? AND at >= ? AND at < ?"
    return count_rows(tx, where, (session_id, since, until))


def tools_used(tx: Connection, session_id: int, since: int, until: int) -> set[str]:
    """The tools that a session's own agent called with success from `since` to before `until`."""
    sql = (
        "SELECT DISTINCT coalesce(tool, '') FROM events WHERE session_id = ? AND at >= ? AND at < ?"
        " AND kind = 'tool_result' AND agent IS NULL"
    )
    return set(fetch_column(tx, sql, (session_id, since, until)))


def has_compacted(tx: Connection, session_id: int, since: int, until: int) -> bool:
    """Return whether a session has an event from `since` to before `until` whose payload was compacted."""
    where = "compactions c JOIN events e ON e.id = c.event_id WHERE e.session_id = ? AND e.at >= ? AND e.at < ?"
    return has_rows(tx, where, (session_id, since, until))


def pending_sessions(tx: Connection) -> list[int]:
    """The sessions with events that are not distilled yet, the one with the first of these events first."""
    sql = "SELECT session_id FROM events WHERE distilled = 0 GROUP BY session_id ORDER BY min(id)"
    return fetch_ids(tx, sql)


def pending_ids(tx: Connection, session_id: int) -> set[int]:
    """The ids of a session's events that are not distilled yet."""
    sql = "SELECT id FROM events WHERE session_id = ? AND distilled = 0"
    return set(fetch_ids(tx, sql, (session_id,)))


def rewrite_pending(tx: Connection, session_id: int, change: Callable[[Any], Any]) -> int:
    """Change the payloads of a session's events that are not distilled yet; return how many were changed."""
    rows = tx.execute(
        "SELECT id, payload FROM events WHERE session_id = ? AND distilled = 0", (session_id,)
    )
    read = [(number, json.loads(text)) for number, text in rows]
    changed = [(compact_json(new), n) for n, old in read if (new := change(old)) != old]
    tx.executemany("UPDATE events SET payload = ? WHERE id = ?", changed)
    return len(changed)


def pending_kinds(tx: Connection, session_id: int) -> dict[EventKind, tuple[int, int, int]]:
    """Summarize a session's events that are not distilled yet: kind → (count, times of first and last)."""
    sql = "SELECT kind, count(*), min(at), max(at) FROM events WHERE session_id = ? AND distilled = 0 GROUP BY kind"
    rows = tx.execute(sql, (session_id,))
    return {EventKind(kind): found for kind, *found in rows}


def count_pending(tx: Connection) -> int:
    """Count the events of the whole vault that are not distilled yet."""
    return count_rows(tx, "events WHERE distilled = 0")


def has_pending_through(tx: Connection, event_id: int) -> bool:
    """Return whether an event up to this sequence number is not distilled yet."""
    return has_rows(tx, "events WHERE distilled = 0 AND id <= ?", (event_id,))


def mark_distilled(tx: Connection, event_ids: Iterable[int]) -> None:
    """Mark these events as distilled."""
    tx.executemany("UPDATE events SET distilled = 1 WHERE id = ?", [(i,) for i in event_ids])


def mark_pending(tx: Connection, event_ids: Iterable[int]) -> None:
    """Have these events distilled again, with the rest of their turns."""
    tx.executemany("UPDATE events SET distilled = 0 WHERE id = ?", [(i,) for i in event_ids])


def make_notification(tx: Connection, event_id: int, payload: Mapping[str, Any]) -> None:
    """Correct a prompt that nobody typed, and have its turn distilled again without it."""
    sql = "UPDATE events SET kind = ?, payload = ?, distilled = 0 WHERE id = ?"
    tx.execute(sql, (EventKind.NOTIFICATION.value, storable(compact_json(payload)), event_id))
    tx.execute("DELETE FROM turns_fts WHERE rowid = ?", (event_id,))  # it is no longer said


def mark_compactions_pending(tx: Connection, session_id: int) -> None:
    """Have the turns of a session's compactions distilled again."""
    sql = "UPDATE events SET distilled = 0 WHERE session_id = ? AND kind = 'compact_end'"
    tx.execute(sql, (session_id,))


def count_prompts(tx: Connection, session_id: int, after: int, through: int) -> int:
    """Count a session's prompts in this time, in UTC milliseconds."""
    sql = "events WHERE session_id = ? AND kind = 'prompt' AND at > ? AND at <= ?"
    return count_rows(tx, sql, (session_id, after, through))


def event_counts(tx: Connection) -> dict[str, int | None]:
    """`events`, `pending`, `sessions`, `last_at` and `unknown`, of clients that memd does not know, of the whole vault."""
    return {
        # Not max(id), which includes forgotten events; counting an index is fast enough for a health check.
        "events": count_rows(tx, "events"),
        "pending": count_pending(tx),
        "sessions": count_rows(tx, "sessions"),
        "last_at": tx.execute("SELECT max(last_event_at) FROM sessions").get,
        "unknown": count_rows(tx, f"events WHERE {_IS_UNKNOWN}"),
    }


def command_descriptions(tx: Connection, project_id: int) -> dict[str, str]:
    """Command → the description that the agent gave it, for recent shell commands in this project."""
    sql = (
        "SELECT e.payload ->> '$.tool_input.command', e.payload ->> '$.tool_input.description'"
        " FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE s.project_id = ? AND e.tool = 'Bash' ORDER BY e.id DESC LIMIT 200"
    )
    found = fetch_all(tx, sql, (project_id,))
    return {str(command): str(text) for command, text in found if command and text}


def last_context_loss(tx: Connection, session_id: int) -> int | None:
    """Return when the agent last lost its context, because its session was compacted or cleared."""
    sql = (
        f"SELECT max(at) FROM events INDEXED BY events_marks WHERE session_id = ? AND {_IN_MARKS_INDEX}"
        " AND (kind = 'compact_start'"
        " OR kind = 'session_start' AND payload ->> '$.source' IN ('compact', 'clear'))"
    )
    return fetch_int(tx, sql, (session_id,))


def last_start_except(tx: Connection, session_id: int, event_id: int | None) -> int | None:
    """Return when a session last began or was resumed, leaving out this event."""
    sql = (
        f"SELECT max(at) FROM events INDEXED BY events_marks WHERE session_id = ? AND {_IN_MARKS_INDEX}"
        " AND kind = 'session_start' AND id IS NOT ?"
    )
    return fetch_int(tx, sql, (session_id, event_id))


def first_start(tx: Connection, session_id: int) -> tuple[int, str] | None:
    """(time, source) of a session's first start; None if no start of it is stored."""
    sql = (
        f"SELECT at, source FROM events INDEXED BY events_marks WHERE session_id = ? AND {_IN_MARKS_INDEX}"
        " AND kind = 'session_start' ORDER BY at LIMIT 1"
    )
    return next(iter(fetch_all(tx, sql, (session_id,))), None)


def has_begun_anew(tx: Connection, session_id: int) -> bool:
    """Return whether a session's start is stored at which it had no context yet: it was not resumed, nor forked."""
    return has_rows(
        tx,
        f"events INDEXED BY events_marks WHERE session_id = ? AND {_IN_MARKS_INDEX}"
        " AND kind = 'session_start' AND payload ->> '$.source' IN ('startup', 'clear')",
        (session_id,),
    )


def refusals(tx: Connection, session_id: int, since: int, limit: int) -> list[Event]:
    """The latest calls of a session after a time that its user refused, in order of time."""
    rest = "at > ? AND agent IS NULL AND source <> ? AND kind = 'tool_refused' ORDER BY at DESC, id DESC LIMIT ?"
    return _events_of(tx, session_id, rest, since, AGENTS_IMPORT, limit)[::-1]


def last_time_except(tx: Connection, session_id: int, event_id: int | None) -> int | None:
    """The time of a session's last event, leaving out this event and session starts."""
    sql = (
        "SELECT at FROM events WHERE session_id = ? AND id IS NOT ? AND kind <> 'session_start'"
        " ORDER BY at DESC LIMIT 1"
    )
    return fetch_int(tx, sql, (session_id, event_id))


def forget_events(tx: Connection, event_ids: Sequence[int], now: int) -> int:
    """Delete these events; only the hash of each stays, so that no import brings it back."""
    sql = "INSERT OR IGNORE INTO forgotten SELECT key, ? FROM events WHERE id = ?"
    tx.executemany(sql, [(now, i) for i in event_ids])
    tx.executemany("DELETE FROM events WHERE id = ?", [(i,) for i in event_ids])
    return len(event_ids)


# ── Turns ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """One turn. `at` is UTC milliseconds."""

    event_id: int
    session_id: int
    session_title: str | None
    role: str
    """`user` or `assistant`."""
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """Conditions on the turns that may be found; None means no bound. Both ends of a time are included."""

    project_ids: tuple[int, ...] | None = None
    session_id: int | None = None
    since: int | None = None
    until: int | None = None

    def condition(self) -> tuple[str, tuple[int, ...]]:
        """The condition on an event `e` of a session `s` in SQL, and its values."""
        condition, values = join_bounds(
            ("e.session_id =", self.session_id), ("e.at >=", self.since), ("e.at <=", self.until)
        )
        if self.project_ids is not None:
            condition += f" AND s.project_id IN ({marks(self.project_ids)})"
            values += self.project_ids
        return condition, values


_SPOKEN = (
    f"e.id, e.session_id, s.title, iif(t.kind IN ('prompt', 'tool_refused') AND e.source <> '{AGENTS_IMPORT}', 'user',"
    " 'assistant'), e.at, t.text"
)


def latest_turns(tx: Connection, where: TurnFilter, limit: int) -> list[SpokenTurn]:
    """The latest turns, the newest first."""
    condition, values = where.condition()
    sql = (
        f"SELECT {_SPOKEN} FROM events e JOIN turns t ON t.id = e.id JOIN sessions s ON s.id = e.session_id"
        f" WHERE {condition} ORDER BY e.at DESC, e.id DESC LIMIT ?"
    )
    return fetch_rows(tx, SpokenTurn, sql, (*values, limit))


def match_turns(tx: Connection, expression: str, where: TurnFilter, limit: int) -> list[SpokenTurn]:
    """The turns that match an FTS5 expression, which `recall` has quoted; best first, then newer ones."""
    condition, values = where.condition()
    # Rank first, so that only the texts of the best turns are read from the events.
    sql = (
        "WITH best (id, score) AS MATERIALIZED (SELECT e.id, bm25(turns_fts) FROM turns_fts"
        " CROSS JOIN events e ON e.id = turns_fts.rowid JOIN sessions s ON s.id = e.session_id"
        f" WHERE turns_fts MATCH ? AND {condition}"
        " ORDER BY bm25(turns_fts), e.at DESC, e.id DESC LIMIT ?)"
        f" SELECT {_SPOKEN} FROM best JOIN turns t ON t.id = best.id JOIN events e ON e.id = best.id"
        " JOIN sessions s ON s.id = e.session_id ORDER BY best.score, e.at DESC, e.id DESC"
    )
    return fetch_rows(tx, SpokenTurn, sql, (expression, *values, limit))


def match_prompts(
    tx: Connection, expression: str, where: TurnFilter, limit: int, *, any_of_many: bool = False
) -> list[Event]:
    """The prompts that match an FTS5 expression, which `recall` has quoted; newest first.

    `any_of_many`: of more than the limit any, which are found without a look at all of them.
    """
    condition, values = where.condition()
    order = "turns_fts.rowid DESC" if any_of_many else "e.at DESC, e.id DESC"
    sql = (
        f"SELECT {_COLUMNS} FROM events WHERE id IN (SELECT e.id FROM turns_fts CROSS JOIN events e ON e.id = turns_fts.rowid"
        " JOIN sessions s ON s.id = e.session_id WHERE turns_fts MATCH ? AND e.kind = 'prompt' AND e.source <> ?"
        f" AND {condition} ORDER BY {order} LIMIT ?) ORDER BY at DESC, id DESC"
    )
    return fetch_rows(tx, _to_event, sql, (expression, AGENTS_IMPORT, *values, limit))


def rebuild_turns(tx: Connection) -> None:
    """Build the full text again from the events."""
    tx.execute("INSERT INTO turns_fts (turns_fts) VALUES ('delete-all')")
    tx.execute("INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns ORDER BY id")


def purge_turns(tx: Connection) -> None:
    """Merge FTS5's segments, so that they hold nothing of deleted turns."""
    tx.execute("INSERT INTO turns_fts (turns_fts) VALUES ('optimize')")
