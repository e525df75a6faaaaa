"""Events to episodes: what belongs to one turn, and whether it is over. Pure.

An episode is a turn. Where the client names the turn of an event, that name alone decides, so an
import may add events late and in any order. Where it does not, a prompt, a stop, a compaction, the
session's end or a long silence separates one episode from the next. An episode that has ended may
still grow: then it is distilled again, into the same summaries. Not here: what an episode yields.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from memd.models import Event, EventKind

EndedBy = Literal["stop", "prompt", "compact", "session_end", "idle"]

NOISE = frozenset(
    {EventKind.SESSION_START, EventKind.SESSION_END, EventKind.NOTIFICATION, EventKind.OTHER}
)
"""Kinds that make no episode of their own."""
_ENDINGS: dict[EventKind, EndedBy] = {
    EventKind.PROMPT: "prompt",
    EventKind.COMPACT_START: "compact",
    EventKind.COMPACT_END: "compact",
    EventKind.SESSION_END: "session_end",
}
_ANSWERS = frozenset({EventKind.TOOL_RESULT, EventKind.TOOL_FAILURE})
"""They may come as late as the tool is slow: a silence before them is work, not idleness."""


@dataclass(frozen=True, slots=True)
class Episode:
    """The events of one turn, in order of time."""

    key: str
    """The client's id of the turn, or `event-<id of its first event>`."""
    events: tuple[Event, ...]
    ended_by: EndedBy | None
    """None while it may go on."""


def segment(events: Sequence[Event], now: int, idle_ms: int) -> list[Episode]:
    """The episodes among a session's events, by the time of their first event.

    `now` and `idle_ms` are milliseconds; they decide only whether the last episode is over. Events
    of no turn that cannot yield anything are left out.
    """
    ordered = sorted(events, key=_when)
    groups: dict[str, list[Event]] = {}
    for event in ordered:
        if event.turn:
            groups.setdefault(event.turn, []).append(event)
    for group in _without_turn([e for e in ordered if not e.turn], idle_ms):
        if any(event.kind not in NOISE for event in group):
            groups[f"event-{group[0].id}"] = group
    boundaries = [event for event in ordered if event.kind in _ENDINGS]
    episodes = [
        Episode(key, tuple(group), _ended_by(group, boundaries, now, idle_ms))
        for key, group in groups.items()
        if any(event.kind not in NOISE for event in group)
    ]
    return sorted(episodes, key=lambda episode: _when(episode.events[0]))


def is_compaction(event: Event) -> bool:
    """Whether this is part of a compaction: the client runs it as a subagent without a type."""
    if event.kind is EventKind.SUBAGENT_STOP:
        return event.payload.get("agent_type") == ""
    return event.kind in (EventKind.COMPACT_START, EventKind.COMPACT_END)


def _when(event: Event) -> tuple[int, int]:
    return event.at, event.id


def _without_turn(events: Iterable[Event], idle_ms: int) -> list[list[Event]]:
    groups: list[list[Event]] = []
    last: Event | None = None
    for event in events:
        if last is None or _parts(last, event, idle_ms):
            groups.append([])
        groups[-1].append(event)
        last = event
    return groups


def _parts(last: Event, event: Event, idle_ms: int) -> bool:
    """Whether a new episode begins between these two."""
    if event.kind is EventKind.PROMPT or last.kind in (EventKind.STOP, EventKind.SESSION_END):
        return True
    if is_compaction(event) != is_compaction(last):
        # The client reports a session's start in the middle of every compaction.
        return not {event.kind, last.kind} & NOISE
    return event.at - last.at >= idle_ms and event.kind not in _ANSWERS


def _ended_by(
    group: Sequence[Event], boundaries: Sequence[Event], now: int, idle_ms: int
) -> EndedBy | None:
    telling = [e for e in group if e.kind not in NOISE]
    last = max(telling, key=_when)
    if last.kind is EventKind.STOP:
        return "stop"
    if last.kind in (EventKind.COMPACT_START, EventKind.COMPACT_END):
        # The agent is about to lose what it knows: what the turn has decided so far must be there.
        return "compact"
    own = {event.id for event in telling}
    for boundary in boundaries:
        if _when(boundary) > _when(last) and boundary.id not in own:
            return _ENDINGS[boundary.kind]
    # A turn whose end lies ahead was stamped by a clock that has been set back: nobody can wait for it.
    return "idle" if abs(now - max(e.at for e in group)) >= idle_ms else None
