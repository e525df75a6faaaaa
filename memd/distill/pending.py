"""Which episodes of a session are due, read in one snapshot. Knows no waiting.

An episode is due when it has events that were not distilled yet and it has ended, or when somebody
waits for one of them. A turn is always read whole, whenever its last event came, so distilling it
again never sees less of it than the first time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from memd.distill import extract, passing, standing
from memd.distill.record import Plan
from memd.distill.segment import NOISE, Episode, segment
from memd.distill.story import Context, text_at
from memd.import_graph import find_file_links
from memd.models import Event, EventKind, Session
from memd.store import events, graph, projects
from memd.store.database import Connection
from memd.text import unique

EVENTS_MAX = 5_000
SEEDS_MAX = 500
"""Pending events that one batch begins from."""
TURNS_MAX = 50
"""Turns that are read whole in one batch."""
_ENDS = frozenset({EventKind.STOP, EventKind.COMPACT_START, EventKind.COMPACT_END}) | NOISE
"""Kinds that end an episode, or that wait for none."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to look for. Times are milliseconds."""

    session_id: int
    now: int
    idle_ms: int
    body_characters: int
    through: int | None = None
    """Open episodes too, if they have pending events up to this number; None: ended ones only."""
    task_days: int = 0


@dataclass(frozen=True, slots=True)
class Due:
    """A bounded batch of one session's work."""

    session: Session
    episodes: tuple[Episode, ...]
    context: Context
    pending: frozenset[int]
    loose: tuple[int, ...]
    """Pending events that belong to no episode and can yield nothing."""
    known_files: tuple[str, ...] = ()
    """Paths that the session has seen before."""


def sessions(tx: Connection, through: int | None) -> list[int]:
    """The sessions that have something pending, eldest first; before them the one of event `through`.

    Somebody waits for that event, and not for long: it may not stand behind a whole import.
    """
    waiting = [number for number, _, _ in events.pending_sessions(tx)]
    asked = events.by_ids(tx, [through]) if through is not None else {}
    first = {event.session_id for event in asked.values()}
    return sorted(waiting, key=lambda number: number not in first)


def load(tx: Connection, request: Request) -> Due | None:
    """What is due in a session; None if nothing is."""
    session = projects.session(tx, request.session_id)
    kinds = events.pending_kinds(tx, request.session_id)
    if session is None or not kinds or not _may_be_due(kinds, session, request):
        return None
    pending = frozenset(events.pending_ids(tx, session.id))
    waiting = sorted(i for i in pending if request.through is None or i <= request.through)
    if not waiting:
        return None
    found, turns, is_cut = _read(tx, session.id, waiting)
    episodes = segment(found, request.now, request.idle_ms)
    due = _due(episodes, pending, turns, request, is_cut=is_cut)
    inside = {event.id for episode in episodes for event in episode.events}
    loose = tuple(e.id for e in found if e.id in pending and e.id not in inside)
    if not due and not loose:
        return None
    context = _context(tx, session, due, request)
    seen = graph.files_of_session(tx, session.id) if _names_files(due) else ()
    return Due(session, tuple(due), context, pending, loose, tuple(seen))


def _names_files(due: list[Episode]) -> bool:
    return any(text_at(e.payload, "tool_input", "file_path") for ep in due for e in ep.events)


def _may_be_due(
    kinds: Mapping[EventKind, tuple[int, int, int]], session: Session, request: Request
) -> bool:
    """A cheap no for a turn that is still going on, so that its events are not read at each of them."""
    if request.through is not None or kinds.keys() & _ENDS:
        return True
    first = min(time for _, time, _ in kinds.values())
    last = max(time for _, _, time in kinds.values())
    # What came after it was distilled without it.
    is_late = last < session.last_event_at
    count, at, _ = kinds.get(EventKind.PROMPT, (0, 0, 0))
    begins_later = count > 0 and at > first
    is_idle = abs(request.now - session.last_event_at) >= request.idle_ms
    return is_late or count > 1 or begins_later or is_idle


def _read(
    tx: Connection, session_id: int, waiting: list[int]
) -> tuple[list[Event], frozenset[str], bool]:
    """The first waiting events and what is around them; the turns that are whole; if it was cut."""
    seeds = events.by_ids(tx, waiting[:SEEDS_MAX])
    since = min(event.at for event in seeds.values())
    window = events.of_session(tx, session_id, since, EVENTS_MAX)
    turns = unique(seeds[i].turn or "" for i in sorted(seeds) if seeds[i].turn)[:TURNS_MAX]
    whole = events.of_turns(tx, session_id, turns, EVENTS_MAX) if turns else []
    if len(whole) == EVENTS_MAX:
        turns = turns[:1]
        whole = events.of_turns(tx, session_id, turns, EVENTS_MAX)
    by_id = {event.id: event for event in (*seeds.values(), *window, *whole)}
    return list(by_id.values()), frozenset(turns), len(window) == EVENTS_MAX


def _due(
    episodes: list[Episode],
    pending: frozenset[int],
    turns: frozenset[str],
    request: Request,
    *,
    is_cut: bool,
) -> list[Episode]:
    found = []
    for episode in episodes:
        waiting = [event.id for event in episode.events if event.id in pending]
        is_whole = episode.events[0].turn is None or episode.key in turns
        is_wanted = episode.ended_by is not None or (
            request.through is not None and min(waiting, default=0) <= request.through
        )
        if waiting and is_whole and is_wanted:
            found.append(episode)
    is_last = bool(found) and found[-1] is episodes[-1] and found[-1].events[0].turn is None
    return found[:-1] if is_cut and is_last and len(found) > 1 else found


def _context(tx: Connection, session: Session, due: list[Episode], request: Request) -> Context:
    project = projects.project(tx, session.project_id)
    roots = (project.key if project else "", session.directory or "")
    prompts = (text_at(e.payload, "prompt") for ep in due for e in ep.events)
    context = Context(
        session_title=session.title or "",
        project_name=project.name if project else "",
        roots=unique(root for root in roots if root.startswith("/")),
        body_characters=request.body_characters,
        task_days=request.task_days,
    )
    if any(standing.may_state_rules(prompt) for prompt in prompts):
        said = events.command_descriptions(tx, session.project_id)
        context = replace(context, descriptions=said)
    return context


def plans(due: Due) -> list[Plan]:
    """What to write for each episode that is due. Costs time in proportion to the text."""
    return [
        Plan(
            episode.key,
            tuple(extract.distil(episode, due.context)),
            tuple(event.id for event in episode.events if event.id in due.pending),
            passing.passed(episode.events, due.context),
            find_file_links(episode.events, due.known_files),
        )
        for episode in due.episodes
    ]
