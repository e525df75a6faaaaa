"""What a deletion takes with it; erasing it."""

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio.to_thread

from memd import log as log_module
from memd.consolidate import scrub
from memd.consolidate import sources as consolidate_sources
from memd.consolidate.scrub import ScrubResult, ScrubRule
from memd.errors import BadRequest, UnknownId
from memd.models import EventKind, Session, Summary, Supersession
from memd.store import erasure, fulltext, ledger, links, projects
from memd.store import events as store_events
from memd.store import summaries as store_summaries
from memd.store.database import Connection, Database
from memd.store.erasure import ErasureBounds
from memd.text import digest

# MERGED from memd.consolidate.forgetting:
# MERGED What goes when memories are forgotten, what shows again, and what stays: first as a plan, then done.
# MERGED
# MERGED With a memory go its text, full text, vectors, edges, and the events that it alone came from. An event
# MERGED that a staying memory also came from stays, and the report says which memories those are. Of everything
# MERGED erased only a hash remains, so that no import brings it back. A plan is done whole, or in slices that
# MERGED each leave the vault consistent. Not here: the WAL, spool, log and backups (eraser.py).


IDS_MAX = 1_000
SHOWN_MAX = 200
"""Of more memories than these the report tells the number alone."""
_SLICE = 200
_EVENTS_SLICE = 500
_CHUNK = 500
_INT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ForgetSelection:
    """What somebody wants forgotten: by ids, or by words and bounds."""

    ids: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    """Each stands in every memory that goes; then no event goes that no such memory came from."""
    bounds: ErasureBounds = field(default_factory=ErasureBounds)

    @property
    def is_empty(self) -> bool:
        """Whether it would mean everything."""
        return not self.ids and not self.words and self.bounds == ErasureBounds()


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """What a `forget` erased, or would erase."""

    summaries: tuple[Summary, ...]
    """The first of those that go."""
    events: int
    revived: tuple[int, ...]
    """Memories that were hidden by a forgotten one and show again."""
    also_in: tuple[int, ...]
    """Memories that stay and derive from the same events."""
    unknown: tuple[int, ...]
    is_dry_run: bool
    count: int = 0
    """How many memories go."""
    kept_events: int = 0
    """Events that were meant and stay, for a memory in `also_in` comes from them."""
    sessions: tuple[str, ...] = ()
    """Titles of sessions that go whole."""
    token: str = ""
    """What this plan is called: doing it with this token does exactly this, or nothing."""
    backups: tuple[str, ...] = ()
    """Files that may still hold what was forgotten: nothing rewrites a backup."""


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What a `forget` is going to do."""

    ids: tuple[int, ...]
    shown: tuple[Summary, ...]
    event_ids: tuple[int, ...]
    """Events that only forgotten memories derive from."""
    revived: tuple[int, ...] = ()
    handed_on: tuple[tuple[int, Supersession], ...] = ()
    """(who hides from now on, the supersession that goes with a forgotten memory in between)."""
    also_in: tuple[int, ...] = ()
    kept_events: tuple[int, ...] = ()
    sessions: tuple[Session, ...] = ()
    project_id: int | None = None
    """The project that goes with its last session."""
    unknown: tuple[int, ...] = ()
    since: int | None = None
    """When the first of what goes was kept, UTC milliseconds; None if nothing goes."""

    @property
    def token(self) -> str:
        """What it is called: another plan has another."""
        said = (self.ids, self.event_ids, tuple(one.id for one in self.sessions))
        return digest("forget", repr(said))[:16]

    @property
    def is_small(self) -> bool:
        """Whether one transaction does all of it quickly."""
        return len(self.ids) <= _SLICE and len(self.event_ids) <= _EVENTS_SLICE

    def report(self, *, is_dry_run: bool) -> ForgetResult:
        """The plan in the words of its result."""
        return ForgetResult(
            self.shown,
            len(self.event_ids),
            self.revived,
            self.also_in,
            self.unknown,
            is_dry_run,
            count=len(self.ids),
            kept_events=len(self.kept_events),
            sessions=tuple(one.title or one.key for one in self.sessions),
            token=self.token,
        )

    def slices(self) -> Iterator["ForgetPlan"]:
        """The plan in parts, in the order in which they are to be done."""
        for start in range(0, len(self.ids), _SLICE):
            ids = self.ids[start : start + _SLICE]
            mine = tuple(one for one in self.handed_on if one[1].newer_id in ids)
            yield ForgetPlan(ids, (), (), handed_on=mine)
        for start in range(0, len(self.event_ids), _EVENTS_SLICE):
            yield ForgetPlan((), (), self.event_ids[start : start + _EVENTS_SLICE])
        if self.sessions or self.project_id is not None:
            yield ForgetPlan((), (), (), sessions=self.sessions, project_id=self.project_id)


def find_memories(tx: Connection, ids: Sequence[int]) -> dict[int, Summary]:
    """These memories by id; whatever cannot be an id is left out, too."""
    possible = sorted({number for number in ids if 0 < number <= _INT_MAX})
    return store_summaries.summaries_by_ids(tx, possible) if possible else {}


def plan_ids(tx: Connection, ids: Sequence[int]) -> ForgetPlan:
    """What forgetting these would do. BadRequest without ids, UnknownId if none of them exists."""
    wanted = tuple(dict.fromkeys(ids))
    if not wanted or len(wanted) > IDS_MAX:
        raise BadRequest(f"ids: give between 1 and {IDS_MAX} ids of memories")
    found = find_memories(tx, wanted)
    unknown = tuple(number for number in wanted if number not in found)
    if not found:
        raise UnknownId(
            f"there is no memory {', '.join(f'#{number}' for number in unknown[:20])}"
        )
    going = tuple(number for number in wanted if number in found)
    return replace(_planned(tx, going, ()), unknown=unknown)


def plan_selection(tx: Connection, selection: ForgetSelection) -> ForgetPlan:
    """What forgetting all of this would do. BadRequest for a selection that would mean everything."""
    found = _selected(tx, selection)
    begun = [session.id for session in found.sessions]
    return replace(found, since=erasure.oldest_time(tx, found.ids, found.event_ids, begun))


def _selected(tx: Connection, selection: ForgetSelection) -> ForgetPlan:
    if selection.ids:
        return plan_ids(tx, selection.ids)
    if selection.is_empty:
        raise BadRequest("say what to forget: ids, a query, a session, a project or a time")
    if selection.words:
        return _planned(
            tx, erasure.summaries_containing(tx, selection.bounds, selection.words), ()
        )
    bounds = selection.bounds
    found = _planned(
        tx, erasure.summaries_within(tx, bounds), erasure.events_within(tx, bounds)
    )
    whole = projects.sessions(tx, erasure.sessions_within(tx, bounds))
    gone = bounds.project_id if bounds.is_whole and bounds.session_id is None else None
    return replace(found, sessions=tuple(whole.values()), project_id=gone)


def _planned(tx: Connection, ids: Sequence[int], event_ids: Sequence[int]) -> ForgetPlan:
    going = frozenset(ids)
    erased, kept, also_in = _events(tx, going, event_ids)
    revived, handed_on = _hidden(tx, going)
    shown = find_memories(tx, ids[:SHOWN_MAX])
    return ForgetPlan(
        tuple(ids),
        tuple(shown[number] for number in ids[:SHOWN_MAX] if number in shown),
        erased,
        revived,
        handed_on,
        also_in,
        kept,
    )


def _events(
    tx: Connection, going: Collection[int], meant: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(events to erase, events that stay, memories that keep them)."""
    erased: set[int] = set()
    kept: set[int] = set()
    also_in: set[int] = set()
    sources = {event for number in going for event, _ in links.sources_of(tx, number)}
    for event_id in sources.union(meant):
        staying = set(links.derived_from(tx, event_id)).difference(going)
        also_in |= staying
        (kept if staying else erased).add(event_id)
    return tuple(sorted(erased)), tuple(sorted(kept)), tuple(sorted(also_in))


def _hidden(
    tx: Connection, going: Collection[int]
) -> tuple[tuple[int, ...], tuple[tuple[int, Supersession], ...]]:
    """(memories that show again, those that somebody else goes on hiding)."""
    revived, handed_on = [], []
    for number in sorted(going):
        hides = [
            one
            for one in links.supersessions_of(tx, number)
            if one.newer_id == number and one.undone_at is None and one.older_id not in going
        ]
        above = _staying_above(tx, number, going) if hides else None
        for one in hides:
            if above is None:
                revived.append(one.older_id)
            else:
                # Forgetting the middle of a chain must not bring its stale beginning back.
                handed_on.append((above, one))
    return tuple(revived), tuple(handed_on)


def _staying_above(tx: Connection, summary_id: int, going: Collection[int]) -> int | None:
    """The nearest memory that hides this one, directly or through others, and that stays."""
    current: int | None = summary_id
    while current is not None and current in going:
        above = store_summaries.get_summary(tx, current)
        current = above.superseded_by if above else None
    return current


def apply_plan(tx: Connection, plan: ForgetPlan, now: int) -> ForgetResult:
    """Erase what was planned in this same transaction, or one slice of it."""
    nodes: set[tuple[str, str]] = set()
    for number in plan.ids:
        nodes |= links.neighbours(tx, "summary", str(number))
        _erase(tx, number, now)
    for newer_id, one in plan.handed_on:
        links.supersede(
            tx,
            newer_id=newer_id,
            older_id=one.older_id,
            rule=one.rule,
            cosine=None,
            guard="handed on: what stood between was forgotten",
            at=now,
        )
    nodes |= _erase_events(tx, plan.event_ids, now)
    links.drop_orphan_nodes(tx, nodes)
    for session in plan.sessions:
        if projects.forget_session(tx, session.id):
            ledger.record_forgotten(tx, session.uid, now)
    if plan.project_id is not None:
        projects.forget_project(tx, plan.project_id)
    return plan.report(is_dry_run=False)


def _erase(tx: Connection, summary_id: int, now: int) -> None:
    summary = store_summaries.get_summary(tx, summary_id)
    if summary is None:
        return
    consolidate_sources.forget_origins(tx, summary.id, now)
    fulltext.remove_passages(tx, summary.id)
    store_summaries.delete_summary(tx, summary.id)
    ledger.record_forgotten(tx, summary.uid, now)


def _erase_events(tx: Connection, event_ids: Sequence[int], now: int) -> set[tuple[str, str]]:
    """Erase these; the nodes that they were linked with."""
    nodes: set[tuple[str, str]] = set()
    for start in range(0, len(event_ids), _CHUNK):
        for event in store_events.events_by_ids(tx, event_ids[start : start + _CHUNK]).values():
            nodes |= links.neighbours(tx, "event", str(event.id))
            links.drop_node(tx, "event", str(event.id))
            if event.kind is EventKind.PROMPT:
                # A session is titled with the words of a prompt; nobody knows of which one.
                projects.clear_title(tx, event.session_id)
    if event_ids:
        store_events.forget_events(tx, event_ids, now)
    return nodes


# MERGED from memd.consolidate.eraser:
# MERGED Forgets for good: in the vault slice by slice, then in its log files, so that no byte is left.
# MERGED
# MERGED The doer behind `forget` and `scrub`. It first lets everything that waits come in (the spool, open
# MERGED turns), else what was forgotten would come back a moment later. Backups are named, never rewritten.
# MERGED Not here: what goes with what (forgetting.py), what a scrub replaces (scrub.py).


_BATCH = 200
_NOTE = "scrub"
_BEGUN_MS = 10_000
"""A backup may hold what was kept so long after it was begun."""


@dataclass(frozen=True, slots=True)
class RelatedFiles:
    """The files beside the vault that repeat words of it; empty: there are none."""

    log: str = ""
    backups: Callable[[], Mapping[str, int]] = dict
    """The backups of the vault: path → when it was begun, UTC milliseconds. Looks at the disk."""


async def _nothing_waits() -> None:
    """For a vault to which nobody brings anything."""


class Eraser:
    """Takes words out of one vault and of what lies beside it."""

    def __init__(
        self,
        db: Database,
        clock: Callable[[], int],
        on_written: Callable[[], None],
        places: RelatedFiles | None = None,
        bring_in: Callable[[], Awaitable[None]] = _nothing_waits,
        indexed: Callable[[], Awaitable[None]] = _nothing_waits,
    ) -> None:
        """`bring_in` returns once everything that waits to become a memory has become one.

        `indexed` returns once the index knows all that is written.
        """
        self._db = db
        self._clock = clock
        self._on_written = on_written
        self._places = places or RelatedFiles()
        self._bring_in = bring_in
        self._indexed = indexed

    async def forget(
        self, selection: ForgetSelection, *, dry_run: bool, token: str = ""
    ) -> ForgetResult:
        """Erase what is selected, or say what would go. UnknownId if no id exists.

        BadRequest if `token` names another plan than what would be done now.
        """
        if not selection.ids:
            await self._bring_in()
        backups = await anyio.to_thread.run_sync(self._places.backups)
        plan = await self._db.read(partial(plan_selection, selection=selection))
        if not dry_run:
            plan = await self._erase(selection, token)
            await self._clean(tuple(one.key for one in plan.sessions))
        # No older one can hold it.
        may = (
            path
            for path, at in backups.items()
            if plan.since is not None and at + _BEGUN_MS >= plan.since
        )
        return replace(plan.report(is_dry_run=dry_run), backups=tuple(may))

    async def scrub(self, rule: ScrubRule, *, dry_run: bool) -> ScrubResult:
        """Rewrite every text in which the rule finds something, or say where that is.

        What was interrupted goes on where it stopped if it is asked for again.
        """
        await self._bring_in()
        found = ScrubResult(rule.name, is_dry_run=dry_run)
        start = (0, 0) if dry_run else await self._db.read(partial(_resumed, rule=rule))
        for number, table in enumerate(erasure.TEXT_TABLES):
            if number >= start[0]:
                after = start[1] if number == start[0] else 0
                found = await self._scrub_table(found, rule, number, table, after, dry_run)
        found = await self._scrub_rest(found, rule, dry_run)
        if not dry_run:
            await self._db.write(partial(ledger.write_note, key=_NOTE, value="{}"))
            self._on_written()
            # Until then the index still says it in the old words.
            await self._indexed()
            await self._purge()
        backups = await anyio.to_thread.run_sync(self._places.backups)
        return replace(found, backups=tuple(backups))

    async def _erase(self, selection: ForgetSelection, token: str) -> ForgetPlan:
        """What was erased: what is not much in the transaction that looked, more in slices."""

        def begin(tx: Connection) -> ForgetPlan:
            plan = plan_selection(tx, selection)
            if token and token != plan.token:
                raise BadRequest(
                    "what is meant has changed meanwhile; look again at what would go"
                )
            if plan.is_small:
                _erase_eraser(tx, plan, self._clock())
            return plan

        plan = await self._db.write(begin)
        for part in () if plan.is_small else plan.slices():
            await self._db.write(partial(_erase_eraser, plan=part, now=self._clock()))
        self._on_written()
        return plan

    async def _clean(self, session_keys: tuple[str, ...]) -> None:
        await self._purge()
        if session_keys and self._places.log:

            def mentions(line: str) -> str | None:
                return None if any(key in line for key in session_keys) else line

            await anyio.to_thread.run_sync(log_module.rewrite, self._places.log, mentions)

    async def _purge(self) -> None:
        # The rows are gone; this takes their words out of the full texts' segments and the log, too.
        marks = await self._db.read(erasure.pending_marks)
        await erasure.clean_up(
            self._db, {what: n for what, n in marks.items() if what == "forgotten"}
        )

    async def _scrub_table(
        self,
        found: ScrubResult,
        rule: ScrubRule,
        number: int,
        table: erasure.TextTable,
        after: int,
        dry_run: bool,
    ) -> ScrubResult:
        while rows := await self._db.read(
            partial(erasure.read_texts, table=table, after=after, limit=_BATCH)
        ):
            hits = await anyio.to_thread.run_sync(scrub.count_replacements, rule, table, rows)
            after = rows[-1].id
            found = found.with_rows(table.name, hits)
            if not dry_run:
                work = partial(
                    _rewrite, rule=rule, table=table, ids=tuple(hits), at=(number, after)
                )
                await self._db.write(work)
        return found

    async def _scrub_rest(
        self, found: ScrubResult, rule: ScrubRule, dry_run: bool
    ) -> ScrubResult:
        """The names that cannot be changed, and the log."""
        stays = await self._db.read(partial(scrub.find_unchangeable, rule=rule))
        found = replace(found, stays=stays)
        if not self._places.log:
            return found
        change = rule.text if not dry_run else None
        lines = await anyio.to_thread.run_sync(
            scrub.scrub_log, self._places.log, rule.text, change
        )
        return found.with_count("log", lines)


def _erase_eraser(tx: Connection, plan: ForgetPlan, now: int) -> None:
    apply_plan(tx, plan, now)
    erasure.mark_erased(tx, "forgotten")


def _resumed(tx: Connection, rule: ScrubRule) -> tuple[int, int]:
    """Where a scrub by this rule was interrupted: (number of the table, last row looked at)."""
    said = json.loads(ledger.read_note(tx, _NOTE) or "{}")
    return (said["table"], said["after"]) if said.get("rule") == rule.digest else (0, 0)


def _rewrite(
    tx: Connection,
    rule: ScrubRule,
    table: erasure.TextTable,
    ids: tuple[int, ...],
    at: tuple[int, int],
) -> None:
    """Change these rows as they are now, and note how far that was."""
    rows = erasure.texts_by_ids(tx, table, ids)
    for row, new in zip(rows, scrub.rewrite_rows(rule, table, rows), strict=True):
        erasure.write_texts(tx, table, row, new)
    if ids:
        erasure.mark_erased(tx, "forgotten")
    said = {"rule": rule.digest, "table": at[0], "after": at[1]}
    ledger.write_note(tx, _NOTE, json.dumps(said))
