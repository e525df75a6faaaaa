"""Injects context into sessions: within a deadline, nothing twice, and without failing the hook.

The context is built in a task of the injector's own, so that the hook can stop waiting at the deadline even while a
thread is busy. If a start's page is late, it is kept for the session's next prompt. What it needs is searched for
while the event is being stored (`prepare`); it is chosen, shown and recorded once that is committed (`offer`). One
session is handled once at a time, as two hooks of the same moment would find the same memories. An injection counts
at once in memory, and is written before the reply if there is time, so that a crash right after the reply does not
repeat it; a power failure may. Injections into a session that is not stored (capture is switched off there) are only
held in memory.

A start that was not told, because it was late, because its hook had given up or because no daemon ran, is told when that hook
asks again, or with the session's next prompt. Why a start was told nothing, and what was late, is noted for `memd injected`.

A session has one budget for all that it is shown unasked: tokens, and the time that its hooks wait. Whatever tells it
something asks what is left and says what it took. The vault keeps it, so a daemon that is started again goes on where the
last one was. A compaction begins again, because the agent loses what it was shown.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from weakref import WeakValueDictionary

import anyio
import anyio.abc

from memd import log
from memd.config import InjectConfig
from memd.errors import UNEXPECTED_ERRORS, MemdError
from memd.injection.budget import (
    SESSION_WAIT_S,
    SESSIONS_MAX,
    SessionBudget,
    SessionKey,
    write_spent,
)
from memd.injection.builder import ContextBuilder, ContextDraft, RecentInjections
from memd.injection.moments import STARTS, InjectedContext, InjectionMoment
from memd.injection.page import estimate_tokens
from memd.store import events, projects, usage
from memd.store.database import Connection, Database
from memd.store.usage import Injection, NewInjection, SpentBudget, ToldText, UntoldMoment
from memd.wakeup import AutoResetEvent

BUILDS_MAX = 16
"""Contexts that are built at a time. While that many are stuck, nothing more is injected."""
PENDING_MAX = 2_000
"""Injections that wait to be written."""
RETRY_S = 5.0
"""Seconds until a failed write is tried again."""
_PREPARED_MAX = 3
"""Places where a session began or was asked something last, for which the next start is prepared."""
_GATHER_S = 2.0
"""Seconds after a change in which others follow it."""
_PROMPTS_MAX = 3
"""Prompts with which a start is told that another daemon was to tell."""
_PendingInjection = tuple[SessionKey, NewInjection | ToldText | UntoldMoment]


@dataclass(slots=True)
class _Build:
    """One context in progress."""

    finished: anyio.Event = field(default_factory=anyio.Event)
    """Set once the context is built and its injections are written, or either has failed."""
    context: InjectedContext | None = None
    told_at: int = 0
    error: str | None = None
    is_awaited: bool = True


@dataclass(frozen=True, slots=True)
class Told:
    """Output for a hook to print, and the contexts of which it is made, each with its moment and its time."""

    parts: tuple[tuple[InjectionMoment, InjectedContext, int], ...] = ()

    @property
    def text(self) -> str | None:
        """The text; None if there is none."""
        return "\n".join(filter(None, (context.text for _, context, _ in self.parts))) or None


@dataclass(slots=True)
class ContextPreparation:
    """Context found for a moment while its event is being stored."""

    draft: ContextDraft | None = None
    """None until it ends, and if it failed: then the context is built without it, and fails with a reason."""
    ended: anyio.Event = field(default_factory=anyio.Event)


class Injector:
    """Answers injection moments, and records what was injected."""

    name = "injector"

    def __init__(
        self, db: Database, builder: ContextBuilder, config: InjectConfig, clock: Callable[[], int]
    ) -> None:
        self._db = db
        self._builder = builder
        self._config = config
        self._clock = clock
        self._tasks: anyio.abc.TaskGroup | None = None
        self._builds = self._preparations = 0
        self.budget = SessionBudget(db, config)
        self._recent: dict[SessionKey, RecentInjections] = {}
        self._locks: WeakValueDictionary[SessionKey, anyio.Lock] = WeakValueDictionary()
        """One lock for each session whose context is being built."""
        self._pending: list[_PendingInjection] = []
        self._unassigned: list[_PendingInjection] = []
        """Injections into sessions that the vault does not know, or not yet."""
        self._writing = anyio.Lock()
        self._wakeup = AutoResetEvent()
        self._changed = AutoResetEvent()
        self._places: dict[tuple[str, str], None] = {}
        """(client, directory) of the latest moments, the latest last."""
        self._begun: dict[SessionKey, InjectionMoment | None] = {}
        """Sessions of which the start was looked at, the latest last, with the start that is still to be told."""
        self._untold: dict[SessionKey, UntoldMoment] = {}
        """Why a session was last told nothing, to note it once."""
        self._failing: str | None = None
        self._counts = Counter(asked=0, shown=0, tokens=0, late=0, failed=0)

    async def run(self) -> None:
        """Build contexts and write injections until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._prepare_starts)
                while True:
                    await self._wakeup.wait(RETRY_S if self._pending else None)
                    await self._try_to_flush()
        finally:
            self._tasks = None
            with anyio.move_on_after(1, shield=True):
                await self._try_to_flush()

    def status(self) -> dict[str, object]:
        """Moments `asked`, memories `shown` and their `tokens`, and answers that were `late` or `failed`, since the start.

        `session_tokens` is the most that one session is told, `session_wait_s` the longest that its hooks are held up.
        `pending` counts injections that are not written yet; `failing` is the last error, None once a
        context was built again.
        """
        return {
            **self._counts,
            "session_tokens": self._config.session_tokens,
            "session_wait_s": SESSION_WAIT_S,
            "pending": len(self._pending),
            "failing": self._failing,
        }

    def notice_change(self) -> None:
        """Prepare the next starts: a memory was written, kept or forgotten."""
        if self._places:
            self._changed.set()

    async def _prepare_starts(self) -> None:
        """Build the pages of the next starts, now and whenever something changed: at rest, so that no hook waits for them."""
        await self._find_places()
        while True:
            for client, directory in reversed(list(self._places)):
                try:
                    await self._builder.prepare_start(client, directory)
                except (MemdError, *UNEXPECTED_ERRORS) as error:
                    log.get(self.name).debug("start_not_prepared", error=str(error))
            await self._changed.wait()
            await anyio.sleep(_GATHER_S)

    async def _find_places(self) -> None:
        """Find where the last sessions of the vault were: the next one most likely begins there."""
        try:
            found = await self._db.read(lambda tx: projects.latest_places(tx, _PREPARED_MAX))
        except MemdError as error:
            log.get(self.name).debug("places_not_found", error=error.message)
        else:
            self._places = {**dict.fromkeys(found[::-1]), **self._places}

    def _note_place(self, moment: InjectionMoment) -> None:
        if moment.directory and (moment.is_start or moment.name == "prompt"):
            place = moment.client, moment.directory
            self._places.pop(place, None)
            self._places[place] = None
            while len(self._places) > _PREPARED_MAX:
                del self._places[next(iter(self._places))]

    def prepare(self, moment: InjectionMoment) -> ContextPreparation | None:
        """Begin to look for what a moment needs; None if nothing is to be injected, as for most prompts.

        Nothing is told by it, and nobody has to wait for it: its event may turn out to be a duplicate.
        """
        if self._tasks is None or self._preparations >= BUILDS_MAX:
            return None
        try:
            draft = self._builder.begin_draft(moment)
        except UNEXPECTED_ERRORS:
            log.get(self.name).exception("context_failed")
            return None  # the event must be stored whatever its prompt does to us
        self._note_place(moment)
        if draft.why_nothing:
            self._counts["asked"] += 1
            if moment.is_start:
                self._note_untold(moment, draft.why_nothing)
            return None
        preparation = ContextPreparation()
        self._tasks.start_soon(self._search_ahead, draft, preparation)
        return preparation

    async def _search_ahead(self, draft: ContextDraft, preparation: ContextPreparation) -> None:
        self._preparations += 1
        try:
            preparation.draft = await self._builder.search_ahead(draft)
        except (MemdError, *UNEXPECTED_ERRORS) as error:
            log.get(self.name).debug("search_ahead_failed", error=str(error))
        finally:
            self._preparations -= 1
            preparation.ended.set()

    async def tell(
        self,
        moment: InjectionMoment,
        preparation: ContextPreparation | None,
        *,
        is_repeated: bool = False,
    ) -> Told:
        """Return what a session is told at a moment: a start that it missed, and what the moment brings, once.

        `is_repeated`: the hook has asked before, and may not have got the answer.
        """
        started, config = anyio.current_time(), self._config
        is_later = moment.name == "prompt" or (is_repeated and moment.is_start)
        missed = await self._offer_missed_start(moment) if is_later else Told()
        if is_repeated or (preparation is None and not moment.is_call):
            return missed
        left_s = config.session_s - (anyio.current_time() - started)
        limit_s = left_s if moment.is_start else min(config.prompt_s, left_s)
        told = await self.offer(moment, preparation, limit_s)
        return Told((*missed.parts, *told.parts))

    async def offer(
        self,
        moment: InjectionMoment,
        preparation: ContextPreparation | None = None,
        limit_s: float | None = None,
    ) -> Told:
        """Return what to inject, within the deadline; nothing if there is none, or if building it failed."""
        if self._tasks is None or self._builds >= BUILDS_MAX:
            return Told()
        if moment.is_call and not await self._concerns(moment):
            return Told()
        key, started = _session_key(moment), anyio.current_time()
        if moment.is_start:
            self._note_begun(key, moment)
        if not is_reset(moment) and (spent := await self.budget.find_spent(key)):
            self._note_untold(moment, spent)
            return Told()
        self._counts["asked"] += 1
        build = _Build()
        self._tasks.start_soon(self._build_context, moment, preparation, build)
        if limit_s is None:
            limit_s = self._config.session_s if moment.is_start else self._config.prompt_s
        with anyio.move_on_after(limit_s):
            await build.finished.wait()
        build.is_awaited = False
        self.budget.spend(key, 0, anyio.current_time() - started)
        if build.context is None:
            late = f"building the context took longer than {limit_s:.2g} s"
            self._note_left_out(moment, build.error, late)
            return Told()
        self._failing = None
        is_told = build.context.text is not None
        return Told(((moment, build.context, build.told_at),) if is_told else ())

    def _note_left_out(self, moment: InjectionMoment, failed: str | None, late: str) -> None:
        self._counts["failed" if failed else "late"] += 1
        error = failed or late
        self._note_untold(moment, error)
        if self._failing is None:
            log.get(self.name).warning("context_left_out", error=error)
        self._failing = error

    def take_back(self, told: Told) -> None:
        """Count as not told what a hook that has given up will not print; a start is told later."""
        for moment, context, at in told.parts:
            key = _session_key(moment)
            recent = self._recent.get(key, RecentInjections({}))
            shown = {n: one for n, one in recent.shown.items() if one != (at, moment.name)}
            self._recent[key] = replace(recent, shown=shown)
            self.budget.spend(key, -estimate_tokens(context.text or ""), 0)
            if moment.is_start:
                self._note_begun(key, moment)
            gone = UntoldMoment(
                moment.name, at, "the hook had given up waiting", is_taken_back=True
            )
            self._pending.append((key, gone))
            self._wakeup.set()

    async def _offer_missed_start(self, moment: InjectionMoment) -> Told:
        """Return what the start of a session was to be told and was not; nothing if it was told."""
        key = _session_key(moment)
        if not moment.session or self._tasks is None:
            return Told()
        if key not in self._begun:
            await self._look_for_missed_start(moment)
        missed = self._begun.get(key)
        return await self.offer(missed, None, self._config.prompt_s) if missed else Told()

    async def _look_for_missed_start(self, moment: InjectionMoment) -> None:
        """Note the start of a session that has begun while no daemon ran, or that another daemon has not told."""
        try:
            is_missed = await self._db.read_inline(lambda tx: _has_missed_start(tx, moment))
        except MemdError:
            return
        if is_missed is not None:
            begun = replace(moment, name="startup", event="SessionStart", prompt="")
            self._note_begun(_session_key(moment), begun if is_missed else None)

    def _note_begun(self, key: SessionKey, missed: InjectionMoment | None) -> None:
        self._begun.pop(key, None)
        self._begun[key] = missed
        while len(self._begun) > SESSIONS_MAX:
            del self._begun[next(iter(self._begun))]

    async def _concerns(self, moment: InjectionMoment) -> bool:
        """Return whether a tool call may be worth a context: most are not, and must cost next to nothing."""
        try:
            return await self._builder.may_matter(moment)
        except (MemdError, *UNEXPECTED_ERRORS):
            log.get(self.name).exception("context_failed")
            return False

    async def note_shown(self, moment: InjectionMoment, context: InjectedContext) -> None:
        """Count and record what another part of memd showed to a session."""
        await self.budget.load(_session_key(moment))
        self._remember_injections(moment, _Build(), context)

    def note_told(self, moment: InjectionMoment, text: str) -> None:
        """Keep the whole text that a hook is about to print."""
        told = ToldText(moment.name, self._clock(), text)
        self._pending.append((_session_key(moment), told))
        self._wakeup.set()

    def _note_untold(self, moment: InjectionMoment, why: str) -> None:
        """Note why a session was told nothing at a moment; the same again is noted once."""
        key, one = _session_key(moment), UntoldMoment(moment.name, self._clock(), why)
        last = self._untold.pop(key, None)
        self._untold[key] = one
        while len(self._untold) > SESSIONS_MAX:
            del self._untold[next(iter(self._untold))]
        if last is None or replace(last, at=one.at) != one:
            self._pending.append((key, one))
            self._wakeup.set()

    async def preview(self, moment: InjectionMoment, *, explain: bool) -> InjectedContext:
        """Return what would be injected. Has no deadline and records nothing."""
        return await self._builder.build(moment, await self._get_recent(moment), explain=explain)

    async def flush(self) -> None:
        """Write the injections so far. If that fails, they stay pending and a VaultError is raised."""
        # A reader of injections waits here for a write in progress.
        async with self._writing:
            pending, spent = [*self._unassigned, *self._pending], self.budget.take_unwritten()
            self._unassigned, self._pending = [], []
            if not pending and not spent:
                return
            try:
                with anyio.CancelScope(shield=True):
                    record = partial(_record_injections, pending=pending, spent=spent)
                    self._unassigned, unknown = await self._db.write_unsynced(record)
            except MemdError:
                self._pending = [*pending, *self._pending][-PENDING_MAX:]
                self.budget.give_back(spent)
                raise
            self.budget.give_back({key: spent[key] for key in unknown})

    async def list_injections(self, session_id: int) -> list[Injection]:
        """List a session's injections, oldest first."""
        await self.flush()
        return await self._db.read(partial(usage.session_injections, session_id=session_id))

    async def list_texts(self, session_id: int) -> list[ToldText]:
        """List the texts that a session was told, oldest first, word for word."""
        await self.flush()
        return await self._db.read(partial(usage.told_texts, session_id=session_id))

    async def list_untold(self, session_id: int) -> list[UntoldMoment]:
        """List the moments at which a session was told nothing, and why, oldest first."""
        await self.flush()
        return await self._db.read(partial(usage.untold_moments, session_id=session_id))

    async def _try_to_flush(self) -> None:
        try:
            await self.flush()
        except MemdError as error:
            log.get(self.name).warning("injections_not_written", error=error.message)

    async def _build_context(
        self, moment: InjectionMoment, preparation: ContextPreparation | None, build: _Build
    ) -> None:
        self._builds += 1
        try:
            draft = None
            if preparation is not None:
                await preparation.ended.wait()
                draft = preparation.draft
            key = _session_key(moment)
            async with self._locks.setdefault(key, anyio.Lock()):
                # The page of a start is finished in any case: it is kept for the next prompt.
                if build.is_awaited or moment.is_start:
                    context = await self._build_once(moment, draft)
                    is_told = build.is_awaited
                    if is_told:
                        self._remember_injections(moment, build, context)
                    if moment.is_start and (is_told or context.text is None):
                        is_untold = self._begun.get(key) is not None
                        self._note_begun(key, None)
                        if context.text is None and is_untold:
                            self._note_untold(moment, context.reason)
        except MemdError as error:
            build.error = error.message
        except UNEXPECTED_ERRORS as error:
            build.error = type(error).__name__
            log.get(self.name).exception("context_failed")
        finally:
            self._builds -= 1
        if build.context is not None and build.context.text is not None:
            await self._try_to_flush()
        build.finished.set()

    async def _build_once(
        self, moment: InjectionMoment, draft: ContextDraft | None
    ) -> InjectedContext:
        if moment.is_start and self._begun.get(_session_key(moment)) is None:
            return InjectedContext("its start was told already")
        return await self._builder.build(moment, await self._get_recent(moment), draft=draft)

    async def _get_recent(self, moment: InjectionMoment) -> RecentInjections:
        key = _session_key(moment)
        spent = await self.budget.load(key)
        return replace(self._recent.get(key, RecentInjections({})), tokens=spent.tokens)

    def _remember_injections(
        self, moment: InjectionMoment, build: _Build, context: InjectedContext
    ) -> None:
        """Count what is injected as shown to this session from now on."""
        build.context, build.told_at = context, self._clock()
        if context.text is None:
            return
        now, key = build.told_at, _session_key(moment)
        recent = self._recent.pop(key, RecentInjections({}))
        # What a subagent is told, the session has not seen.
        ids = () if moment.name == "subagent" else (one.id for one in context.shown)
        shown = {**recent.shown, **dict.fromkeys(ids, (now, moment.name))}
        tokens = estimate_tokens(context.text)
        if is_reset(moment):
            self.budget.restart(key)
        self.budget.spend(key, tokens, 0)
        self._recent[key] = RecentInjections(shown, now if is_reset(moment) else recent.reset_at)
        self._counts["tokens"] += tokens
        while len(self._recent) > SESSIONS_MAX:
            del self._recent[next(iter(self._recent))]
        self._counts["shown"] += len(context.shown)
        for one in context.shown:
            reason = f"{one.group}: {one.why}" if one.group else one.why
            self._pending.append((key, NewInjection(0, one.id, moment.name, now, reason)))
        self._wakeup.set()


def _session_key(moment: InjectionMoment) -> SessionKey:
    return moment.client, moment.session


def _has_missed_start(tx: Connection, moment: InjectionMoment) -> bool | None:
    """Return whether a session that began lately was not told its start; None while its start is not known."""
    session = projects.session_of_client(tx, moment.client, moment.session)
    if session is None or not events.has_begun_anew(tx, session.id):
        return None
    if usage.count_prompts(tx, session.id, 0, moment.event_id) >= _PROMPTS_MAX:
        return False
    shown = usage.last_injected(tx, session.id).values()
    # Of a page without memories, only the user's own words, nothing but its size is kept.
    is_told = any(at in STARTS for _, at in shown) if shown else usage.read_spent(tx, session.id).tokens  # fmt: skip
    return not is_told


def is_reset(moment: InjectionMoment) -> bool:
    """Return whether the session has just lost its context."""
    return moment.name in ("compact", "clear")


def _record_injections(
    tx: Connection, pending: list[_PendingInjection], spent: Mapping[SessionKey, SpentBudget]
) -> tuple[list[_PendingInjection], set[SessionKey]]:
    """Write injections and budgets, and return those of sessions that the vault does not know."""
    known: dict[SessionKey, int] = {}
    for client, key in {session for session, _ in pending}:
        found = projects.session_of_client(tx, client, key)
        if found is not None:
            known[client, key] = found.id
    written = [(known[session], one) for session, one in pending if session in known]
    injected = [replace(one, session_id=n) for n, one in written if isinstance(one, NewInjection)]
    usage.record_injections(tx, injected)
    usage.record_texts(tx, [(n, one) for n, one in written if not isinstance(one, NewInjection)])
    left = [one for one in pending if one[0] not in known][-PENDING_MAX:]
    return left, write_spent(tx, spent)
