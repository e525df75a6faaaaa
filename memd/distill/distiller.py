"""Background worker: pending episodes to summaries, by rules alone.

It reads what is pending, works through bounded batches of one session each, and sleeps until it is nudged
or an open turn may have become idle. Distilling an exchange may close a failure of an earlier one, or dispute its fix:
the turns that are told otherwise now are distilled again after all that is new, once, and then change nothing else.

An episode is due when it has events that were not distilled yet and has ended, or when a caller waits for one of them.
A turn is always read whole, with its place in a piece of work, so distilling it again never sees less of it than the
first time.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.config import DistillConfig
from memd.distill import assertions, proving
from memd.distill.edits import EDIT_TOOLS, text_at
from memd.distill.episodes import (
    NOISE_KINDS,
    Episode,
    EpisodeContext,
    find_project_key,
    read_story,
    slot_uid,
    split_episodes,
)
from memd.distill.proof import reopening
from memd.distill.text import OWN_TAGS, is_short
from memd.distill.transaction import EpisodePlan, write_episodes
from memd.distill.turn import distill_episode
from memd.distill.work import (
    PIECE_EVENTS_MAX,
    PIECE_TURNS_MAX,
    TURNS_BEFORE,
    Place,
    TurnOutline,
    find_places,
    outline_turns,
    place_episodes,
    read_answer,
)
from memd.errors import MemdError
from memd.import_graph import find_file_links
from memd.models import Event, EventKind, Session
from memd.store import events, ledger, links, projects, summaries
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
_TURNS_BACK, _TURNS_BACK_MAX = 16, 256
"""Turns that are looked back for the first one of a piece; more only while that is needed."""
_TURN_KINDS = (EventKind.PROMPT, EventKind.STOP)
"""A turn has one of these; without a prompt it continues the last one."""
_FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class DueRequest:
    """Events of a session to look for. Times are milliseconds."""

    session_id: int
    now: int
    idle_ms: int
    through: int | None = None
    """Include open episodes with pending events up to this number; None for ended ones only."""
    task_days: int = 0
    again: frozenset[int] = frozenset()
    """Pending events of turns that are distilled again for what a later exchange closed or disputed."""
    is_again: bool = False
    """Look for these alone; otherwise for all but these."""


@dataclass(frozen=True, slots=True)
class DueBatch:
    """A bounded batch of one session's work."""

    session: Session
    episodes: tuple[Episode, ...]
    context: EpisodeContext
    pending: frozenset[int]
    loose: tuple[int, ...]
    """Pending events that belong to no episode and can yield nothing."""
    is_again: bool = False
    """Whether its turns are distilled again: what they close or dispute was closed or disputed the first time."""
    known_files: tuple[str, ...] = ()
    """Paths that the session has seen before."""


def find_pending_sessions(tx: Connection, through: int | None) -> list[int]:
    """Return the sessions with pending events, eldest first, after the session of event `through`.

    A caller waits for that event with a deadline, so it must not queue behind a whole import.
    """
    asked = events.events_by_ids(tx, [through]) if through is not None else {}
    first = {event.session_id for event in asked.values()}
    return sorted(events.pending_sessions(tx), key=lambda number: number not in first)


def load_due(tx: Connection, request: DueRequest) -> DueBatch | None:
    """Return what is due in a session; None if nothing is."""
    session = projects.session(tx, request.session_id)
    kinds = events.pending_kinds(tx, request.session_id)
    if session is None or not kinds or not _may_be_due(kinds, session, request):
        return None
    pending = frozenset(events.pending_ids(tx, session.id))
    asked = pending & request.again if request.is_again else pending - request.again
    waiting = sorted(i for i in asked if request.through is None or i <= request.through)
    if not waiting:
        return None
    found, turns, is_cut = _read_events(tx, session.id, waiting)
    episodes = split_episodes(found, request.now, request.idle_ms)
    due = [
        one
        for one in episodes
        if one.events[0].turn is None or one.key in turns  # else a part of it is not read
        if (ids := [event.id for event in one.events if event.id in asked])
        if one.is_over or (request.through is not None and min(ids) <= request.through)
    ]
    if is_cut and len(due) > 1 and due[-1] is episodes[-1] and due[-1].events[0].turn is None:
        due.pop()
    inside = {event.id for episode in episodes for event in episode.events}
    loose = tuple(e.id for e in found if e.id in asked and e.id not in inside)
    if not due and not loose:
        return None
    due = add_turns_of_same_work(tx, session, due, pending, request.now, request.idle_ms)
    context, files = read_context(tx, session, due, request)
    return DueBatch(session, tuple(due), context, pending, loose, request.is_again, files)


def _may_be_due(
    kinds: Mapping[EventKind, tuple[int, int, int]], session: Session, request: DueRequest
) -> bool:
    """Cheaply rule out a turn that is still going on, so that its events are not all read after each one."""
    if request.through is not None or request.is_again or kinds.keys() & _ENDING_KINDS:
        return True
    first = min(time for _, time, _ in kinds.values())
    last = max(time for _, _, time in kinds.values())
    prompts, at, _ = kinds.get(EventKind.PROMPT, (0, first, 0))
    is_late = last < session.last_event_at  # what came after it was distilled without it
    is_idle = abs(request.now - session.last_event_at) >= request.idle_ms
    return is_late or is_idle or prompts > 1 or at > first


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


def read_context(
    tx: Connection, session: Session, due: Sequence[Episode], request: DueRequest
) -> tuple[EpisodeContext, tuple[str, ...]]:
    """Read what the rules need to know of a session besides these episodes, and the paths that it has seen before."""
    project = projects.project(tx, session.project_id)
    found = [event for one in due for event in one.events]
    elsewhere = (key for one in due if (key := find_project_key(one.events)))
    roots = (project.key if project else "", session.directory or "", *elsewhere)
    # The descriptions are looked for in all that was done in the project, so only for a rule that may name a command.
    orders = any(assertions.may_order(text_at(event.payload, "prompt")) for event in found)
    context = EpisodeContext(
        session_title=session.title or "",
        project_name=project.name if project else "",
        roots=unique(root for root in roots if root.startswith("/")),
        task_days=request.task_days,
        disputes=reopening.read_disputes(tx, session.id),
        closed=reopening.read_closed(tx, list(due)),
        descriptions=events.command_descriptions(tx, session.project_id) if orders else {},
    )
    shown = any(text_at(event.payload, "tool_input", "file_path") for event in found)
    return context, tuple(links.files_of_session(tx, session.id)) if shown else ()


# ── The pieces of work that the due turns belong to ──────────────────────────────────────────────


def add_turns_of_same_work(
    tx: Connection,
    session: Session,
    due: Sequence[Episode],
    pending: AbstractSet[int],
    now: int,
    idle_ms: int,
) -> list[Episode]:
    """The episodes that are due, each with its place in a piece of work, and those that are written again for them.

    `pending`: the events of the session that are not distilled. `now` and `idle_ms` are milliseconds.
    """
    starts = {
        one.key: one.events[0].at for one in due if any(e.kind in _TURN_KINDS for e in one.events)
    }
    if not starts:
        return list(due)
    mine = {one.key: one for one in due}
    read = _WorkReader(tx, session, pending, now, idle_ms, dict(mine))
    read.outline(starts)
    wanted = dict.fromkeys((*mine, *read.find_turns_to_rewrite(mine.keys())))
    whole = [one for key in wanted if (one := read.find(key)) is not None]
    placed = place_episodes(whole, read.turns, read.places, read.find)
    found = [replace(one, is_due=one.key in mine) for one in placed]
    return sorted(found, key=lambda one: (one.events[0].at, one.events[0].id))


@dataclass(slots=True)
class _WorkReader:
    """Reads the turns around those that are due, and the episodes of their pieces that are not due themselves."""

    tx: Connection
    session: Session
    pending: AbstractSet[int]
    now: int
    idle_ms: int
    episodes: dict[str, Episode]
    turns: Sequence[TurnOutline] = ()
    places: Mapping[str, Place] = field(default_factory=dict)

    def outline(self, starts: Mapping[str, int]) -> None:
        """Read the turns from the beginning of every piece that one of the due ones may belong to, by their start."""
        first_at, last_at = min(starts.values()), max(starts.values())
        back = TURNS_BEFORE
        while True:
            found = events.spoken_events(
                self.tx, self.session.id, first_at, last_at, before=back + TURNS_BEFORE,
                after=PIECE_TURNS_MAX, kinds=(*_TURN_KINDS, EventKind.NOTIFICATION),
            )  # fmt: skip
            self.turns = outline_turns(found)
            self.turns = [self._add_edits_and_answer(turn) for turn in self.turns]
            self.places = self._find_places()
            numbers = {turn.key: number for number, turn in enumerate(self.turns)}
            asked = [key for key in numbers if key in starts]
            first = numbers[asked[0]] if asked else 0
            heads = [numbers[self.places[key].head] for key in asked]
            is_whole = first < back + TURNS_BEFORE or min(heads) >= TURNS_BEFORE
            if is_whole or back >= _TURNS_BACK_MAX:
                return
            back = max(_TURNS_BACK, 2 * back)

    def find_turns_to_rewrite(self, due: AbstractSet[str]) -> Iterator[str]:
        """Yield the keys of the turns that are not due and whose memory is another one with what is due."""
        start = next((i for i, turn in enumerate(self.turns) if turn.key in due), len(self.turns))
        for number, turn in enumerate(self.turns[start:], start):
            head = self.places[turn.key].head
            tellers = self._find_memories_of_prompt(turn)
            if turn.key in due:
                yield from {head, *tellers} - due
                continue
            if number and self.turns[number - 1].key in due and is_short(turn.prompt):
                yield turn.key  # `2` is read with the options that arrive after it
            if tellers and tellers != {head}:
                yield from {turn.key, head, *tellers} - due

    def find(self, key: str) -> Episode | None:
        """The episode of a key; None if it is not there, or waits to be distilled itself."""
        if key not in self.episodes:
            turn = next((one for one in self.turns if one.key == key), None)
            episode = self._read(turn) if turn else None
            if episode is None or any(event.id in self.pending for event in episode.events):
                return None
            self.episodes[key] = episode
        return self.episodes[key]

    def _read(self, turn: TurnOutline) -> Episode | None:
        if turn.turn:
            found = events.turn_events(self.tx, self.session.id, [turn.turn], PIECE_EVENTS_MAX)
        else:
            found = events.events_between(*self._find_time_span(turn), PIECE_EVENTS_MAX)
        whole = split_episodes(found, self.now, self.idle_ms)
        return next((one for one in whole if one.key == turn.key), None)

    def _find_time_span(self, turn: TurnOutline) -> tuple[Connection, int, int, int]:
        """Find where a turn's events are: from its prompt to that of the turn after it, in UTC milliseconds."""
        until = next((one.at for one in self.turns if one.at > turn.at), _FOREVER)
        return self.tx, self.session.id, turn.at, until

    def _add_edits_and_answer(self, turn: TurnOutline) -> TurnOutline:
        """The turn with whether it changed files, and if it was interrupted with the agent's last words in it."""
        span = self._find_time_span(turn)
        if not turn.is_answered and (event := events.last_agent_text(*span)):
            turn = replace(turn, answer=read_answer(event, OWN_TAGS))
        used = events.tools_used(*span)
        return replace(turn, has_edits=not used.isdisjoint(EDIT_TOOLS), has_calls=bool(used))

    def _find_places(self) -> Mapping[str, Place]:
        """The places of the turns, with what the vault knows of those that are in pieces."""
        places = find_places(self.turns)
        joined = {place.head for key, place in places.items() if place.head != key}
        members = [turn for turn in self.turns if places[turn.key].head in joined]
        sizes = {turn.key: events.count_between(*self._find_time_span(turn)) for turn in members}
        unusable = {
            turn.key
            for turn in members
            if ledger.is_forgotten(self.tx, slot_uid(self.session, turn.key, "turn"))
            or events.has_compacted(*self._find_time_span(turn))
        }
        return find_places(self.turns, unusable, sizes) if joined else places

    def _find_memories_of_prompt(self, turn: TurnOutline) -> set[str]:
        """The keys of the turns whose memory tells of this turn's prompt by now."""
        ids = links.derived_from(self.tx, turn.event_id)
        return {
            one.episode
            for one in summaries.summaries_by_ids(self.tx, ids).values()
            if one.episode
            and one.session_id == self.session.id
            and one.uid == slot_uid(self.session, one.episode, "turn")
        }


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


def plan_episodes(due: DueBatch) -> list[EpisodePlan]:
    """Return what to write for each episode that is due. Takes time in proportion to the text."""
    return [_plan_episode(episode, due) for episode in due.episodes]


def _plan_episode(episode: Episode, due: DueBatch) -> EpisodePlan:
    story = read_story(episode.events, due.context)
    return EpisodePlan(
        episode.key,
        tuple(distill_episode(episode, due.context, story)),
        tuple(event.id for event in episode.events if event.id in due.pending),
        () if due.is_again else reopening.find_passed_checks(story),
        find_file_links(episode.events, due.known_files),
        denials=reopening.find_denials_of_earlier(story)
        if episode.is_due and not due.is_again
        else (),
        project_key=find_project_key(episode.events),
    )


@dataclass(eq=False)
class Distiller:
    """Turns events into summaries."""

    db: Database
    config: DistillConfig
    clock: Callable[[], int]
    """Returns UTC milliseconds."""
    on_written: Callable[[], None]
    """Called after summaries have changed."""
    name: str = "distiller"
    _wakeup: AutoResetEvent = field(default_factory=AutoResetEvent)
    _turn_end: AutoResetEvent = field(default_factory=AutoResetEvent)
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _episodes: int = 0
    _outcomes: Counter[str] = field(default_factory=Counter)
    _again: set[int] = field(default_factory=set)
    """Pending events of turns that are distilled again. After a restart they are as new, and close nothing twice."""
    _pending: int = 0
    _last_error: str | None = None

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
            rest_s = self.config.interval_s if self._pending else REST_S
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
        if await self.db.read(partial(events.has_pending_through, event_id=through)):
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
            self._pending = await self.db.read(events.count_pending)
        except MemdError as error:
            self._last_error = error.message
            raise

    async def _distil_pending(self, through: int | None) -> None:
        """Distil what is new, then again what that has closed or disputed: a turn once for each new exchange."""
        for is_again in (False, True):
            if is_again and not self._again:
                return
            for session_id in await self.db.read(partial(find_pending_sessions, through=through)):
                while await self._distil_batch(session_id, through, is_again=is_again):
                    await anyio.lowlevel.checkpoint()

    async def _distil_batch(self, session_id: int, through: int | None, *, is_again: bool) -> bool:
        """Distil one batch of one session and return whether there was one; the lock is released in between."""
        async with self._lock:
            now = self.clock()
            request = DueRequest(
                session_id, now, self.config.idle_s * 1000, through, self.config.task_days,
                again=frozenset(self._again), is_again=is_again,
            )  # fmt: skip
            due = await self.db.read(partial(load_due, request=request))
            if due is None:
                return False
            plans = await anyio.to_thread.run_sync(plan_episodes, due)
            if due.loose:
                await self.db.write(partial(events.mark_distilled, event_ids=due.loose))
            for start in range(0, len(plans), _EPISODES_PER_TRANSACTION):
                some = plans[start : start + _EPISODES_PER_TRANSACTION]
                work = partial(write_episodes, plans=some, session=due.session, now=now)
                for plan, (counts, again) in zip(some, await self.db.write(work), strict=True):
                    self._again.difference_update(plan.event_ids)
                    self._again.update(again)
                    self._report_episode(counts, len(plan.event_ids))
            self._again.difference_update(due.loose)
            await self._prove_notes(due.session.id, now)
            return True

    async def _prove_notes(self, session_id: int, now: int) -> None:
        """Prove notes of a session whose words have arrived by now."""
        since = now - proving.WAIT_MS
        if not await self.db.read(lambda tx: summaries.unproved_notes(tx, session_id, since)):
            return
        if await self.db.write(lambda tx: proving.prove_waiting(tx, session_id, now)):
            self.on_written()

    def _report_episode(self, outcomes: Mapping[str, int], event_count: int) -> None:
        self._episodes += 1
        self._outcomes.update(outcomes)
        written = {name: outcomes[name] for name in _CHANGES_REPORTED if outcomes.get(name)}
        log.get(self.name).info("episode_distilled", events=event_count, **written)
        if written:
            self.on_written()
