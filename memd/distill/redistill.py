"""Background worker: after an upgrade, distil what is there again by today's rules, once.

The vault keeps the version of the rules that made its memories. While that is another one, this worker takes
the sessions from the oldest on, in small transactions with pauses, so that captures and searches never
wait for it. A killed run continues after the last session that was finished; what it repeats changes nothing.

A memory keeps its id, and with it its judgments, uses and supersessions, where today's rules say the same of the
same turn, in whatever slot. What a person pinned or judged, and what a model wrote, stays word for word. What the rules
no longer say is deleted, unless an earlier version asserted it, which is marked and shown after others, a question was
answered with it, it was said elsewhere, too, or its events are not all there: then nobody can say what the rules would
make of them.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from memd import log
from memd.belief.claims import statement_text
from memd.belief.compare import compare
from memd.config import DistillConfig
from memd.distill.distiller import DueBatch, DueRequest, plan_episodes, read_context
from memd.distill.episodes import find_sender, slot_uid, split_episodes, uid_beside
from memd.distill.transaction import EpisodePlan, delete_summaries, write_episode
from memd.distill.work import join_all
from memd.errors import MemdError
from memd.models import STATED_KINDS, Authority, Draft, EventKind, Session, Summary
from memd.store import events, judgments, ledger, links, projects, summaries, usage
from memd.store.database import Connection, Database
from memd.text import content_stems
from memd.wakeup import AutoResetEvent

RULES_VERSION = 36
"""The rules that make memories of events. It grows with every release in which they change."""
SESSION_EVENTS_MAX = 20_000
"""A session with more events is left as it is."""
_FORGETTABLE = (
    "turn", "session", "fix", "failure", "decision", "instruction", "preference", "fact", "task", "note", "retraction", "standing",
)  # fmt: skip
_FORGETTABLE_SLOTS = (*_FORGETTABLE, *(f"{name}/{i}" for name in _FORGETTABLE for i in range(20)))
_WHOLE_TURN_SLOTS = ("turn", "session")
"""Slots that hold the same memory whatever it says."""
_SAME_PLACE, _SAME_TEXT, _SAME_STATEMENT, _SAME_SOURCE = 8, 6, 4, 2
ASSERTED_EARLIER = "an earlier version asserted it"
"""Why something is kept, marked and shown after others."""
_SIMILAR_JACCARD = 0.5
"""Jaccard of the stems of two titles from the same event from which they are the same memory."""

CHANGES_LISTED_MAX = 500
"""Changes that a report lists; it counts all."""
_EPISODES_PER_STEP = 2
_PAUSE_MIN_S, _PAUSE_SHARE = 0.02, 3
"""The pause after a step is this many times as long as the step: a quarter of one core at most."""
_TRIES_MAX = 5
"""A session in which events arrive all the time is left; what arrives is distilled by today's rules."""
_RULES_NOTE, _PROGRESS_NOTE = "rules", "redistilling"

_CHANGES = ("created", "revised", "deleted", "kept")
MemoryChange = dict[str, Any]
"""`change`: one of these; `id`, `kind` and `title` of the memory; `was`: the former title, or why it is kept."""


@dataclass(frozen=True, slots=True)
class SessionRewrite:
    """A session as it was read to be distilled again, and what to write for it."""

    batch: DueBatch
    """The episodes whose events are all there."""
    state: tuple[int, int]
    """Another one once any of its events has come or gone."""
    old: Mapping[int, Summary]
    """The memories of these episodes, and of turns that are no longer episodes."""
    sources: Mapping[int, frozenset[int]]
    """Memory → the events that it derives from."""
    gone: frozenset[int]
    """Memories of which an event is gone, or only a part of it is left."""
    plans: tuple[EpisodePlan, ...] = ()
    matches: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(episode, slot) → the memory that it is already."""


class SessionChanged(Exception):
    """Events have come or gone since the session was read."""


def report_changes(changes: Sequence[MemoryChange], *, is_dry_run: bool) -> dict[str, Any]:
    """Report what distilling again changed, or would change, as `memd reindex --memories` prints it."""
    counts = Counter(one["change"] for one in changes)
    return {
        "is_dry_run": is_dry_run,
        **{name: counts[name] for name in _CHANGES},
        "changes": changes[:CHANGES_LISTED_MAX],
    }


@dataclass(slots=True)
class RedistillProgress:
    """The progress of a run, as the vault keeps it."""

    rules: int = RULES_VERSION
    after: tuple[int, int] = projects.BEFORE_SESSIONS
    """(start, id) of the last session that was finished."""
    done: int = 0
    """Sessions."""
    counts: dict[str, int] = field(default_factory=dict)
    """A change → the number of memories."""

    @classmethod
    def read(cls, tx: Connection) -> "RedistillProgress | None":
        """The run that was begun for today's rules; None without one."""
        fields: dict[str, Any] = json.loads(ledger.read_note(tx, _PROGRESS_NOTE) or "{}")
        if fields.get("rules") != RULES_VERSION:
            return None
        return cls(**{**fields, "after": tuple(fields["after"])})

    def write(self, tx: Connection) -> None:
        """Keep it in the vault."""
        ledger.write_note(tx, _PROGRESS_NOTE, json.dumps(asdict(self)))


@dataclass(eq=False)
class Redistiller:
    """Distils again what older rules have made."""

    db: Database
    config: DistillConfig
    clock: Callable[[], int]
    """Returns UTC milliseconds."""
    on_written: Callable[[], None]
    """Called after summaries have changed."""
    name: str = "redistiller"
    _wakeup: AutoResetEvent = field(default_factory=AutoResetEvent)
    _progress: RedistillProgress | None = None
    _left: int = 0
    _waiting: list[tuple[list[MemoryChange], anyio.Event]] = field(default_factory=list)
    """For each caller the changes since it asked, and what tells it that the run has ended."""
    _last_error: str | None = None

    async def run(self) -> None:
        """Distil again what older rules made, then whatever is asked for, until cancelled."""
        await self.db.write(begin_if_outdated)
        while True:
            self._progress = await self.db.read(RedistillProgress.read)
            if self._progress is not None:
                await self._distil_all(self._progress)
            await self._wakeup.wait()

    def status(self) -> dict[str, object]:
        """The sessions of the present run that are `done` and `left`, and its changes; `rules` is today's version."""
        running: dict[str, object] = {}
        if progress := self._progress:
            why = "distilling older sessions again by today's rules"
            running = {"done": progress.done, "left": self._left, **progress.counts, "why": why}
        return {"rules_version": RULES_VERSION, **running, "last_error": self._last_error}

    async def redistil(self) -> dict[str, Any]:
        """Distil everything again now, and report it. It continues if the caller leaves."""
        changes, has_ended = list[MemoryChange](), anyio.Event()
        self._waiting.append((changes, has_ended))
        if self._progress is None:
            await self.db.write(RedistillProgress().write)
        self._wakeup.set()
        await has_ended.wait()
        return report_changes(changes, is_dry_run=False)

    async def preview(self) -> dict[str, Any]:
        """Return what distilling everything again would change. Each session is judged as the vault is now."""
        changes: list[MemoryChange] = []
        async for session in self._list_sessions(projects.BEFORE_SESSIONS):
            changes += await self._distil_session(session, is_dry_run=True)
        return report_changes(changes, is_dry_run=True)

    async def _list_sessions(self, after: tuple[int, int]) -> AsyncIterator[Session]:
        while session := await self.db.read(partial(projects.next_session, after=after)):
            yield session
            after = session.started_at, session.id

    async def _distil_all(self, progress: RedistillProgress) -> None:
        """Distil every session that is left again, and note that today's rules have made them all."""
        async for session in self._list_sessions(progress.after):
            self._left = await self.db.read(partial(projects.count_sessions, after=progress.after))
            changes = await self._distil_session(session, is_dry_run=False)
            counts = Counter(progress.counts) + Counter(one["change"] for one in changes)
            after = session.started_at, session.id
            progress = RedistillProgress(RULES_VERSION, after, progress.done + 1, dict(counts))
            await self.db.write(progress.write)
            self._progress = progress
            for told, _ in self._waiting:
                told.extend(changes)
            if any(one["change"] != "kept" for one in changes):
                self.on_written()
        await self.db.write(finish)
        log.get(self.name).info("distilled_again", sessions=progress.done, **progress.counts)
        self._progress = None
        while self._waiting:
            self._waiting.pop()[1].set()

    async def _distil_session(self, session: Session, *, is_dry_run: bool) -> list[MemoryChange]:
        """Distil one session again; what it changed. A session whose events keep changing is left."""
        changes: list[MemoryChange] = []
        for _ in range(_TRIES_MAX):
            try:
                rewrite = await self._plan_session(session)
                if rewrite is None:
                    break
                for part in _slice_steps(rewrite.plans):
                    step = partial(rewrite_episodes, rewrite=rewrite, part=part, now=self.clock())
                    began = anyio.current_time()
                    changes += await (self.db.rehearse if is_dry_run else self.db.write)(step)
                    await self._pause(began)
            except SessionChanged:
                continue
            except MemdError as error:
                self._last_error = error.message
                raise
            break
        return changes

    async def _plan_session(self, session: Session) -> SessionRewrite | None:
        idle_ms, days = self.config.idle_s * 1000, self.config.task_days
        request = DueRequest(session.id, self.clock(), idle_ms, task_days=days)
        began = anyio.current_time()
        read = await self.db.read(partial(read_session, session=session, request=request))
        await self._pause(began)
        if read is None:
            return None
        plans: list[EpisodePlan] = []
        for part in _slice_steps(read.batch.episodes):
            began = anyio.current_time()
            some = replace(read.batch, episodes=read.batch.episodes[part])
            plans += await anyio.to_thread.run_sync(plan_episodes, some)
            await self._pause(began)
        began = anyio.current_time()
        rewrite = await anyio.to_thread.run_sync(match_plans, read, plans)
        await self._pause(began)
        return rewrite

    async def _pause(self, began: float) -> None:
        """Leave the machine to others. Somebody who waits for the run gets half of a core."""
        share = 1 if self._waiting else _PAUSE_SHARE
        least_s = _PAUSE_MIN_S / _PAUSE_SHARE * share
        await anyio.sleep(max(least_s, share * (anyio.current_time() - began)))


def _slice_steps(of: Sequence[object]) -> list[slice]:
    """The parts that are worked on between two pauses."""
    return [slice(at, at + _EPISODES_PER_STEP) for at in range(0, len(of), _EPISODES_PER_STEP)]


def begin_if_outdated(tx: Connection) -> None:
    """Begin a run if older rules made the vault's memories, unless one is begun; a vault without any needs none."""
    if int(ledger.read_note(tx, _RULES_NOTE) or 0) >= RULES_VERSION:
        return
    if not summaries.has_captured(tx):
        finish(tx)
    elif RedistillProgress.read(tx) is None:
        RedistillProgress().write(tx)


def finish(tx: Connection) -> None:
    """Note that today's rules have made all memories."""
    ledger.write_note(tx, _RULES_NOTE, str(RULES_VERSION))
    ledger.write_note(tx, _PROGRESS_NOTE, "")


# ── Reading and matching ─────────────────────────────────────────────────────────────────────────


def read_session(tx: Connection, session: Session, request: DueRequest) -> SessionRewrite | None:
    """Read a session whole; None if it is too long, or nothing in it can be distilled again."""
    state = events.events_state(tx, session.id)
    if not 0 < state[0] <= SESSION_EVENTS_MAX:
        return None
    found = events.session_events(tx, session.id, -1, SESSION_EVENTS_MAX)
    episodes = split_episodes(found, request.now, request.idle_ms)
    partial = events.compacted_ids(tx, session.id) | events.pending_ids(tx, session.id)
    # A memory that was forgotten would come back in another slot.
    slots = _FORGETTABLE_SLOTS if ledger.has_forgotten(tx) else ()
    left = {
        one.key
        for one in episodes
        if any(ledger.is_forgotten(tx, slot_uid(session, one.key, slot)) for slot in slots)
        or any(event.id in partial for event in one.events)
    }
    whole = join_all(found, [one for one in episodes if one.key not in left])
    known = summaries.captured_summaries(tx, session.id)
    old = {one.id: one for one in known if one.episode not in left}
    sources = {i: frozenset(event for event, _ in links.sources_of(tx, i)) for i in old}
    # Without a prompt nothing yields the memory of a whole turn.
    prompted = {
        one.key
        for one in episodes
        if any(event.kind is EventKind.PROMPT or find_sender(event) for event in one.events)
    }
    gone = frozenset(
        number
        for number, one in old.items()
        # An event that was forgotten took its edge along.
        if not sources[number]
        or sources[number] & partial
        or (one.episode not in prompted and one.uid == slot_uid(session, one.episode or "", "turn"))
    )
    context, files = read_context(tx, session, whole, request)
    batch = DueBatch(session, tuple(whole), context, frozenset(), (), known_files=files)
    return SessionRewrite(batch, state, old, sources, gone) if whole else None


def match_plans(rewrite: SessionRewrite, plans: Sequence[EpisodePlan]) -> SessionRewrite:
    """Find which old memory is which draft. Each is matched once, the surest matches first."""
    present = {plan.episode for plan in plans}
    rated = sorted(
        (-score, old.id, (plan.episode, draft.slot))
        for plan in plans
        for draft in plan.drafts
        for old in rewrite.old.values()
        if old.episode == plan.episode or old.episode not in present
        if (score := _rate_match(old, draft, plan.episode, rewrite))
    )
    matches: dict[tuple[str, str], int] = {}
    for _, number, slot in rated:
        if number not in matches.values() and slot not in matches:
            matches[slot] = number
    return replace(rewrite, plans=tuple(plans), matches=matches)


def _rate_match(old: Summary, draft: Draft, episode: str, rewrite: SessionRewrite) -> int:
    """Rate how surely an old memory and a draft are the same one; 0 if they are not."""
    uid = slot_uid(rewrite.batch.session, episode, draft.slot)
    is_own_place = old.uid in (uid, uid_beside(uid))
    if is_own_place and draft.slot.partition("/")[0] in _WHOLE_TURN_SLOTS:
        return _SAME_PLACE + 1
    are_statements = {old.kind, draft.kind} <= set(STATED_KINDS)
    if old.kind is not draft.kind and not are_statements:
        return 0
    if (old.title, old.body) == (draft.title, draft.body):
        return _SAME_TEXT + is_own_place
    texts = (statement_text(one.title, one.body) for one in (old, draft))
    if are_statements and compare(*texts).is_equal:
        return _SAME_STATEMENT + is_own_place
    one, other = (frozenset(content_stems(text)) for text in (old.title, draft.title))
    are_similar = bool(one | other) and len(one & other) >= _SIMILAR_JACCARD * len(one | other)
    is_of_event = rewrite.sources[old.id] & {one.event_id for one in draft.sources}
    if old.kind is draft.kind and is_of_event and are_similar:
        return _SAME_SOURCE + is_own_place
    return 0


# ── Writing ──────────────────────────────────────────────────────────────────────────────────────


def rewrite_episodes(
    tx: Connection, rewrite: SessionRewrite, part: slice, now: int
) -> list[MemoryChange]:
    """Write some episodes of a session again; with the last, delete what belongs to no episode any more.

    Raises SessionChanged if the session is not as it was read.
    """
    session = projects.session(tx, rewrite.batch.session.id)
    if session is None or events.events_state(tx, session.id) != rewrite.state:
        raise SessionChanged
    before = {one.id: one for one in summaries.captured_summaries(tx, session.id)}
    kept: dict[int, str] = {}
    for plan in rewrite.plans[part]:
        kept |= _rewrite_episode(tx, rewrite, plan, session, now)
    if rewrite.plans[part][-1] is rewrite.plans[-1]:
        present, taken = {plan.episode for plan in rewrite.plans}, rewrite.matches.values()
        orphans = [i for i, one in rewrite.old.items() if one.episode not in present and i not in taken]  # fmt: skip
        kept |= _delete_obsolete(tx, summaries.summaries_by_ids(tx, orphans).values(), rewrite.gone)
    after = {one.id: one for one in summaries.captured_summaries(tx, session.id)}
    return list(_compare_memories(before, after, kept))


def _rewrite_episode(
    tx: Connection, rewrite: SessionRewrite, plan: EpisodePlan, session: Session, now: int
) -> dict[int, str]:
    """Write one episode again; memory that the rules no longer say → why it is kept."""
    matched = {s: one for (episode, s), one in rewrite.matches.items() if episode == plan.episode}
    there = {one.id: one for one in summaries.episode_summaries(tx, session.id, plan.episode)}
    known = {**there, **summaries.summaries_by_ids(tx, tuple(matched.values()))}
    fixed = _explain_why_kept(tx, known.values(), rewrite.gone)
    # What stays word for word is not written again, and what the rules no longer say goes or is kept.
    drafts = tuple(d for d in plan.drafts if matched.get(d.slot) not in fixed)
    unsaid = [one for i, one in there.items() if i in rewrite.old and i not in matched.values()]
    kept = _delete_obsolete(tx, unsaid, rewrite.gone)
    summaries.mark_earlier(tx, [i for i, why in kept.items() if why == ASSERTED_EARLIER], now)
    stays = frozenset((*kept, *fixed, *(there.keys() - rewrite.old)))
    moving = {d.slot: known[matched[d.slot]] for d in drafts if matched.get(d.slot) in known}
    _move_to_slots(tx, session, plan.episode, moving, stays)
    write_episode(tx, replace(plan, drafts=drafts), session, now, stays)
    return kept


def _delete_obsolete(
    tx: Connection, unsaid: Iterable[Summary], gone: frozenset[int]
) -> dict[int, str]:
    """Delete what the rules no longer say, and return what of it is kept, and why."""
    unsaid = list(unsaid)
    kept = _explain_why_kept(tx, unsaid, gone, is_said=False)
    delete_summaries(tx, [one for one in unsaid if one.id not in kept])
    return kept


def _move_to_slots(
    tx: Connection,
    session: Session,
    episode: str,
    moving: Mapping[str, Summary],
    stays: frozenset[int],
) -> None:
    """Give each memory the uid of the slot that it is in now, or the one beside what stays there."""
    uids = {one.id: one.uid for one in summaries.episode_summaries(tx, session.id, episode)}
    occupied = {uid for number, uid in uids.items() if number in stays}
    changed = {}
    for slot, one in moving.items():
        uid = slot_uid(session, episode, slot)
        uid = uid_beside(uid) if uid in occupied else uid
        if uids.get(one.id) != uid:
            changed[one.id] = uid
            # First out of the way: two may change places.
            summaries.move_summary(tx, one.id, uid_beside(f"{uid} {one.id}"), episode)
    for number, uid in changed.items():
        summaries.move_summary(tx, number, uid, episode)


def _explain_why_kept(
    tx: Connection, known: Iterable[Summary], gone: frozenset[int], *, is_said: bool = True
) -> dict[int, str]:
    """Memory → why it stays word for word; if the rules do not say it any more, why it is kept."""
    ids = [one.id for one in known]
    judged = judgments.judged_ids(tx, ids)
    used = {} if is_said else usage.uses_of(tx, ids)

    def explain(one: Summary) -> str:
        reasons = {
            "rejected": one.rejected_at is not None,
            "pinned": one.pinned_at is not None,
            "judged": one.id in judged,
            "by hand": one.authority is Authority.USER_HAND,
            "its events are gone": one.id in gone,
            "written by a model": one.rule.startswith(summaries.MODEL_RULE_PREFIX),
            "a question was answered with it": one.id in used,
            "said elsewhere, too": not is_said and one.duplicates > 1,
            ASSERTED_EARLIER: not is_said and one.kind in STATED_KINDS,
        }
        return next((reason for reason, is_so in reasons.items() if is_so), "")

    return {one.id: reason for one in known if (reason := explain(one))}


def _compare_memories(
    before: Mapping[int, Summary], after: Mapping[int, Summary], kept: Mapping[int, str]
) -> Iterator[MemoryChange]:
    def tell(change: str, one: Summary, was: str = "") -> MemoryChange:
        return {"change": change, "id": one.id, "kind": one.kind, "title": one.title, "was": was}

    for number, one in after.items():
        was = before.get(number)
        if was is None:
            yield tell("created", one)
        elif (was.kind, was.title, was.body) != (one.kind, one.title, one.body):
            yield tell("revised", one, was.title)
    for number, one in before.items():
        if number not in after:
            yield tell("deleted", one)
        elif number in kept:
            yield tell("kept", one, kept[number])
