"""Background worker: pending episodes to summaries, by rules alone.

It reads what is pending, works through bounded batches of one session each, and sleeps until it is nudged
or an open turn may have become idle. An episode is due when it has events that were not distilled yet and has
ended, or when a caller waits for one of them. A turn is always read whole, so distilling it again never sees
less of it than the first time.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.config import DistillConfig
from memd.distill import assertions, proving, turn
from memd.distill.edits import text_at
from memd.distill.episodes import (
    NOISE_KINDS,
    Episode,
    EpisodeContext,
    find_project_key,
    read_story,
    split_episodes,
)
from memd.distill.proof import failures, reopening
from memd.distill.transaction import EpisodePlan, write_episodes
from memd.distill.work import join_due
from memd.errors import MemdError
from memd.import_graph import find_file_links
from memd.models import Event, EventKind, Session
from memd.store import events, links, projects, summaries
from memd.store.database import Connection, Database
from memd.text import unique
from memd.wakeup import AutoResetEvent

EVENTS_MAX = 5_000
SEEDS_MAX = 500
"""Pending events that one batch begins from."""
TURNS_MAX = 50
"""Turns that are read whole in one batch."""
_ENDING_KINDS = (
    frozenset({EventKind.STOP, EventKind.COMPACT_START, EventKind.COMPACT_END}) | NOISE_KINDS
)
"""Kinds that end an episode or belong to none."""
_PASSES = 2
"""What an exchange disputes or closes is distilled again once, maybe in a session that had its turn."""
_EPISODES_PER_TRANSACTION = 8
"""Fewer would make an import wait for the disk after each; more would delay a capture."""
_CHANGES_REPORTED = ("created", "revised", "strengthened", "deleted")
REST_S = 300.0
"""Seconds between two looks for events while nothing waits."""
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.1, 1.0
"""Bounds of the pause between two sweeps."""
_PAUSE_SHARE, _PAUSE_SHARE_IN_VAIN = 5, 20
"""The pause is so many times the duration of the last sweep, which costs more the more is pending; the second number
after one that found nothing due."""


@dataclass(frozen=True, slots=True)
class DueRequest:
    """What to look for. Times are milliseconds."""

    session_id: int
    now: int
    idle_ms: int
    through: int | None = None
    """Include open episodes with pending events up to this number; None for ended ones only."""
    task_days: int = 0


@dataclass(frozen=True, slots=True)
class DueBatch:
    """A bounded batch of one session's work."""

    session: Session
    episodes: tuple[Episode, ...]
    context: EpisodeContext
    pending: frozenset[int]
    loose: tuple[int, ...]
    """Pending events that belong to no episode and can yield nothing."""
    known_files: tuple[str, ...] = ()
    """Paths that the session has seen before."""


def find_pending_sessions(tx: Connection, through: int | None) -> list[int]:
    """Return the sessions with pending events, eldest first, after the session of event `through`.

    A caller waits for that event with a deadline, so it must not queue behind a whole import.
    """
    waiting = events.pending_sessions(tx)
    asked = events.events_by_ids(tx, [through]) if through is not None else {}
    first = {event.session_id for event in asked.values()}
    return sorted(waiting, key=lambda number: number not in first)


def load_due(tx: Connection, request: DueRequest) -> DueBatch | None:
    """Return what is due in a session; None if nothing is."""
    session = projects.session(tx, request.session_id)
    kinds = events.pending_kinds(tx, request.session_id)
    if session is None or not kinds or not _may_be_due(kinds, session, request):
        return None
    pending = frozenset(events.pending_ids(tx, session.id))
    waiting = sorted(i for i in pending if request.through is None or i <= request.through)
    if not waiting:
        return None
    found, turns, is_cut = _read_events(tx, session.id, waiting)
    episodes = split_episodes(found, request.now, request.idle_ms)
    due = _select_due(episodes, pending, turns, request, is_cut=is_cut)
    inside = {event.id for episode in episodes for event in episode.events}
    loose = tuple(e.id for e in found if e.id in pending and e.id not in inside)
    if not due and not loose:
        return None
    due = join_due(tx, session, due, pending, request.now, request.idle_ms)
    context = read_context(tx, session, due, request)
    shown = (text_at(e.payload, "tool_input", "file_path") for ep in due for e in ep.events)
    seen = links.files_of_session(tx, session.id) if any(shown) else ()
    return DueBatch(session, tuple(due), context, pending, loose, tuple(seen))


def _may_be_due(
    kinds: Mapping[EventKind, tuple[int, int, int]], session: Session, request: DueRequest
) -> bool:
    """Cheaply rule out a turn that is still going on, so that its events are not all read after each one."""
    if request.through is not None or kinds.keys() & _ENDING_KINDS:
        return True
    first = min(time for _, time, _ in kinds.values())
    last = max(time for _, _, time in kinds.values())
    # What came after it was distilled without it.
    is_late = last < session.last_event_at
    count, at, _ = kinds.get(EventKind.PROMPT, (0, 0, 0))
    begins_later = count > 0 and at > first
    is_idle = abs(request.now - session.last_event_at) >= request.idle_ms
    return is_late or count > 1 or begins_later or is_idle


def _read_events(
    tx: Connection, session_id: int, waiting: list[int]
) -> tuple[list[Event], frozenset[str], bool]:
    """Return (events, turns that are whole, whether the window was cut) around the first waiting events."""
    seeds = events.events_by_ids(tx, waiting[:SEEDS_MAX])
    since = min(event.at for event in seeds.values())
    window = events.session_events(tx, session_id, since, EVENTS_MAX)
    turns = unique(seeds[i].turn or "" for i in sorted(seeds) if seeds[i].turn)[:TURNS_MAX]
    whole = events.turn_events(tx, session_id, turns, EVENTS_MAX) if turns else []
    if len(whole) == EVENTS_MAX:
        turns = turns[:1]
        whole = events.turn_events(tx, session_id, turns, EVENTS_MAX)
    by_id = {event.id: event for event in (*seeds.values(), *window, *whole)}
    return list(by_id.values()), frozenset(turns), len(window) == EVENTS_MAX


def _select_due(
    episodes: list[Episode],
    pending: frozenset[int],
    turns: frozenset[str],
    request: DueRequest,
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


def read_context(
    tx: Connection, session: Session, due: list[Episode], request: DueRequest
) -> EpisodeContext:
    """Return what the rules need to know of a session besides these episodes."""
    project = projects.project(tx, session.project_id)
    roots = (project.key if project else "", session.directory or "")
    elsewhere = tuple(key for one in due if (key := find_project_key(one.events)))
    context = EpisodeContext(
        session_title=session.title or "",
        project_name=project.name if project else "",
        roots=unique(root for root in (*roots, *elsewhere) if root.startswith("/")),
        task_days=request.task_days,
        disputes=reopening.read_disputes(tx, session.id),
        closed=reopening.read_closed(tx, due),
    )
    prompts = [text for ep in due for e in ep.events if (text := text_at(e.payload, "prompt"))]
    # The descriptions are looked for in all that was done in the project, so only for a rule that may name a command.
    if any(map(assertions.may_order, prompts)):
        said = events.command_descriptions(tx, session.project_id)
        context = replace(context, descriptions=said)
    return context


def plan_episodes(due: DueBatch) -> list[EpisodePlan]:
    """Return what to write for each episode that is due. Takes time in proportion to the text."""
    return [_plan_episode(episode, due) for episode in due.episodes]


def _plan_episode(episode: Episode, due: DueBatch) -> EpisodePlan:
    story = read_story(episode.events, due.context)
    return EpisodePlan(
        episode.key,
        tuple(turn.distill_episode(episode, due.context, story)),
        tuple(event.id for event in episode.events if event.id in due.pending),
        failures.find_passed_checks(story),
        find_file_links(episode.events, due.known_files),
        denials=failures.find_denials_of_earlier(story) if episode.is_due else (),
        project_key=find_project_key(episode.events),
    )


class Distiller:
    """Turns events into summaries."""

    name = "distiller"

    def __init__(
        self,
        db: Database,
        config: DistillConfig,
        clock: Callable[[], int],
        on_written: Callable[[], None],
    ) -> None:
        """`clock` returns UTC milliseconds; `on_written` is called after summaries have changed."""
        self._db = db
        self._config = config
        self._clock = clock
        self._on_written = on_written
        self._wakeup = AutoResetEvent()
        self._turn_end = AutoResetEvent()
        self._lock = anyio.Lock()
        self._log = log.get(self.name)
        self._episodes = 0
        self._outcomes: Counter[str] = Counter()
        self._pending = 0
        self._last_error: str | None = None

    async def run(self) -> None:
        """Distil the episodes that have ended, until cancelled."""
        while True:
            began, episodes = anyio.current_time(), self._episodes
            await self._distil_ended()
            # A single event is distilled at once; a storm of events is not swept after each.
            sweep_s = anyio.current_time() - began
            share = _PAUSE_SHARE_IN_VAIN if self._episodes == episodes else _PAUSE_SHARE
            pause_s = min(max(_PAUSE_MIN_S, share * sweep_s), _PAUSE_MAX_S)
            if await self._turn_end.wait(pause_s):
                continue
            # Only an open turn ends by time alone.
            rest_s = self._config.interval_s if self._pending else REST_S
            await self._wakeup.wait(rest_s)

    def nudge(self) -> None:
        """Look for new events soon."""
        self._wakeup.set()

    def hurry(self) -> None:
        """Look for new events now: a turn has ended, which somebody may ask for next."""
        self._turn_end.set()
        self._wakeup.set()

    async def settle(self, through: int) -> None:
        """Distil every event up to this sequence number now, open turns included.

        It may be cancelled at any time; what it has written by then is whole.
        """
        if await self._db.read(partial(events.has_pending_through, event_id=through)):
            await self._distil_pending(through)

    def status(self) -> dict[str, object]:
        """Return what `memd status` shows of this worker; `pending` is as of the last sweep."""
        return {
            "pending": self._pending,
            "episodes": self._episodes,
            "summaries": self._outcomes["created"],
            "revised": self._outcomes["revised"],
            "strengthened": self._outcomes["strengthened"],
            "last_error": self._last_error,
        }

    async def _distil_ended(self) -> None:
        try:
            await self._distil_pending(None)
            self._pending = await self._db.read(events.count_pending)
        except MemdError as error:
            self._last_error = error.message
            raise

    async def _distil_pending(self, through: int | None) -> None:
        for _ in range(_PASSES):
            again = self._count_again()
            for session_id in await self._db.read(partial(find_pending_sessions, through=through)):
                while await self._distil_batch(session_id, through):
                    await anyio.lowlevel.checkpoint()
            if self._count_again() == again:
                return

    def _count_again(self) -> int:
        return self._outcomes["disputed"] + self._outcomes["closed"]

    async def _distil_batch(self, session_id: int, through: int | None) -> bool:
        """Distil one batch of one session and return whether there was one; the lock is released in between."""
        async with self._lock:
            request = DueRequest(
                session_id,
                self._clock(),
                self._config.idle_s * 1000,
                through,
                self._config.task_days,
            )
            due = await self._db.read(partial(load_due, request=request))
            if due is None:
                return False
            now = self._clock()
            plans = await anyio.to_thread.run_sync(plan_episodes, due)
            if due.loose:
                await self._db.write(partial(events.mark_distilled, event_ids=due.loose))
            for start in range(0, len(plans), _EPISODES_PER_TRANSACTION):
                some = plans[start : start + _EPISODES_PER_TRANSACTION]
                work = partial(write_episodes, plans=some, session=due.session, now=now)
                for plan, outcomes in zip(some, await self._db.write(work), strict=True):
                    self._report_episode(outcomes, len(plan.event_ids))
            await self._prove_notes(due.session.id, now)
            return True

    async def _prove_notes(self, session_id: int, now: int) -> None:
        """Prove notes of a session whose words have arrived by now."""
        since = now - proving.WAIT_MS
        if not await self._db.read(lambda tx: summaries.unproved_notes(tx, session_id, since)):
            return
        if await self._db.write(lambda tx: proving.prove_waiting(tx, session_id, now)):
            self._on_written()

    def _report_episode(self, outcomes: Mapping[str, int], event_count: int) -> None:
        self._episodes += 1
        self._outcomes.update(outcomes)
        written = {name: outcomes[name] for name in _CHANGES_REPORTED if outcomes.get(name)}
        self._log.info("episode_distilled", events=event_count, **written)
        if written:
            self._on_written()
