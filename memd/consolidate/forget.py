"""Forget memories for good: plan what goes with them, then erase it from the vault and its log.

With a memory go its text, full text, vectors, edges, and the events that only it derives from. An event
that another memory also derives from stays, and the report names that memory. A hash of everything
erased remains, so that no import brings it back. A small plan is applied in one transaction, a large one
in slices that each leave the vault consistent. Backups are named, never rewritten.
"""

import json
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio.lowlevel
import anyio.to_thread

from memd import log as log_module
from memd.consolidate import scrub, sources
from memd.consolidate.scrub import ScrubResult, ScrubRule
from memd.consolidate.supersede import active_supersessions, hide
from memd.errors import BadRequest, UnknownId
from memd.models import EventKind, Session, Summary, Supersession
from memd.store import erasure, fulltext, ledger, links, projects
from memd.store import events as store_events
from memd.store import summaries as store_summaries
from memd.store.database import Connection, Database
from memd.store.erasure import ErasureBounds
from memd.text import digest

_IDS_MAX = 1_000
_SHOWN_MAX = 200
"""The report shows at most as many memories, and the count of all."""
_SUMMARIES_PER_SLICE = 200
_EVENTS_PER_SLICE = 500
_SCRUB_ROWS = 200
"""Rows per transaction of a scrub."""
_SCRUB_NOTE = "scrub"
"""The note of how far a scrub has come."""
_BACKUP_DURATION_MS = 10_000
"""A backup may contain what was written so long after it was begun."""
_ROW_ID_MAX = 2**63 - 1
_UNKNOWN_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class ForgetSelection:
    """What to forget: by ids, or by words and bounds."""

    ids: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    """Each is contained in every memory that goes; events without such a memory stay."""
    bounds: ErasureBounds = field(default_factory=ErasureBounds)


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """What was erased, or would be."""

    summaries: tuple[Summary, ...]
    """The first of the memories."""
    events: int
    revived: tuple[int, ...]
    """Memories that were hidden by a forgotten one and are visible again."""
    also_in: tuple[int, ...]
    """Memories that stay and derive from the same events."""
    unknown: tuple[int, ...]
    is_dry_run: bool
    count: int = 0
    """The number of memories."""
    kept_events: int = 0
    """Selected events that stay, because a memory in `also_in` derives from them."""
    sessions: tuple[str, ...] = ()
    """Titles of sessions erased as a whole."""
    token: str = ""
    """The name of this plan: with it, exactly this is erased, or nothing."""
    backups: tuple[str, ...] = ()
    """Files that may still contain what was forgotten."""


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What to erase, and what follows from it."""

    ids: tuple[int, ...] = ()
    shown: tuple[Summary, ...] = ()
    event_ids: tuple[int, ...] = ()
    """Events that only forgotten memories derive from."""
    revived: tuple[int, ...] = ()
    handed_on: tuple[tuple[int, Supersession], ...] = ()
    """(the memory that hides from now on, the supersession by a forgotten memory in between)."""
    also_in: tuple[int, ...] = ()
    kept_events: tuple[int, ...] = ()
    sessions: tuple[Session, ...] = ()
    project_id: int | None = None
    """The project to erase with its last session."""
    unknown: tuple[int, ...] = ()
    since: int | None = None
    """When the first of all this was written, UTC milliseconds; None if nothing is erased."""

    @property
    def token(self) -> str:
        """Its name; another plan has another."""
        content = (self.ids, self.event_ids, tuple(one.id for one in self.sessions))
        return digest("forget", repr(content))[:16]

    def report(self, *, is_dry_run: bool) -> ForgetResult:
        """The plan as a result."""
        return ForgetResult(
            self.shown, len(self.event_ids), self.revived, self.also_in, self.unknown, is_dry_run,
            count=len(self.ids), kept_events=len(self.kept_events),
            sessions=tuple(one.title or one.key for one in self.sessions), token=self.token,
        )  # fmt: skip

    def split(self) -> list["ForgetPlan"]:
        """The plan in slices for one transaction each, in the order in which to apply them."""
        if len(self.ids) <= _SUMMARIES_PER_SLICE and len(self.event_ids) <= _EVENTS_PER_SLICE:
            return [self]
        slices = []
        for start in range(0, len(self.ids), _SUMMARIES_PER_SLICE):
            ids = self.ids[start : start + _SUMMARIES_PER_SLICE]
            handed_on = tuple(one for one in self.handed_on if one[1].newer_id in ids)
            slices.append(ForgetPlan(ids, handed_on=handed_on))
        for start in range(0, len(self.event_ids), _EVENTS_PER_SLICE):
            part = self.event_ids[start : start + _EVENTS_PER_SLICE]
            slices.append(ForgetPlan(event_ids=part))
        return [*slices, ForgetPlan(sessions=self.sessions, project_id=self.project_id)]


def find_memories(tx: Connection, ids: Sequence[int]) -> dict[int, Summary]:
    """These memories by id; numbers that cannot be an id are ignored."""
    possible = sorted({number for number in ids if 0 < number <= _ROW_ID_MAX})
    return store_summaries.summaries_by_ids(tx, possible) if possible else {}


def plan_selection(tx: Connection, selection: ForgetSelection) -> ForgetPlan:
    """Plan to forget a selection. BadRequest if it is empty, UnknownId if no id exists."""
    bounds = selection.bounds
    if selection.ids:
        plan = _plan_ids(tx, selection.ids)
    elif selection.words:
        plan = _plan_deletion(tx, erasure.summaries_containing(tx, bounds, selection.words), ())
    elif bounds == ErasureBounds():
        raise BadRequest("say what to forget: ids, a query, a session, a project or a time")
    else:
        plan = _plan_deletion(
            tx, erasure.summaries_within(tx, bounds), erasure.events_within(tx, bounds)
        )
        sessions = projects.sessions(tx, erasure.sessions_within(tx, bounds))
        is_project = bounds.is_whole and bounds.session_id is None
        project_id = bounds.project_id if is_project else None
        plan = replace(plan, sessions=tuple(sessions.values()), project_id=project_id)
    session_ids = [session.id for session in plan.sessions]
    since = erasure.oldest_time(tx, plan.ids, plan.event_ids, session_ids)
    return replace(plan, since=since)


def _plan_ids(tx: Connection, ids: Sequence[int]) -> ForgetPlan:
    wanted = tuple(dict.fromkeys(ids))
    if len(wanted) > _IDS_MAX:
        raise BadRequest(f"ids: give between 1 and {_IDS_MAX} ids of memories")
    found = find_memories(tx, wanted)
    unknown = tuple(number for number in wanted if number not in found)
    if not found:
        numbers = ", ".join(f"#{number}" for number in unknown[:_UNKNOWN_SHOWN_MAX])
        raise UnknownId(f"there is no memory {numbers}")
    plan = _plan_deletion(tx, [number for number in wanted if number in found], ())
    return replace(plan, unknown=unknown)


def _plan_deletion(tx: Connection, ids: Sequence[int], event_ids: Sequence[int]) -> ForgetPlan:
    forgotten = frozenset(ids)
    shown = find_memories(tx, ids[:_SHOWN_MAX])
    erased, kept, also_in = set[int](), set[int](), set[int]()
    derived = {event for number in forgotten for event, _ in links.sources_of(tx, number)}
    for event_id in derived.union(event_ids):
        staying = set(links.derived_from(tx, event_id)).difference(forgotten)
        also_in |= staying
        (kept if staying else erased).add(event_id)
    revived, handed_on = _find_hidden(tx, forgotten)
    return ForgetPlan(
        ids=tuple(ids),
        shown=tuple(shown[number] for number in ids[:_SHOWN_MAX] if number in shown),
        event_ids=tuple(sorted(erased)),
        revived=tuple(revived),
        handed_on=tuple(handed_on),
        also_in=tuple(sorted(also_in)),
        kept_events=tuple(sorted(kept)),
    )


def _find_hidden(
    tx: Connection, forgotten: Collection[int]
) -> tuple[list[int], list[tuple[int, Supersession]]]:
    """(memories that are visible again, those that another memory hides from now on)."""
    revived, handed_on = [], []
    for number in sorted(forgotten):
        for past in active_supersessions(tx, number):
            if past.newer_id != number or past.older_id in forgotten:
                continue
            above = _find_staying_superseder(tx, number, forgotten)
            if above is None:
                revived.append(past.older_id)
            else:
                # Forgetting the middle of a chain must not bring its stale beginning back.
                handed_on.append((above, past))
    return revived, handed_on


def _find_staying_superseder(
    tx: Connection, summary_id: int, forgotten: Collection[int]
) -> int | None:
    """The nearest memory that hides this one, directly or through others, and that stays."""
    current: int | None = summary_id
    while current is not None and current in forgotten:
        above = store_summaries.get_summary(tx, current)
        current = above.superseded_by if above else None
    return current


def apply_plan(tx: Connection, plan: ForgetPlan, now: int) -> None:
    """Erase what was planned in this transaction, or one slice of it."""
    nodes: set[tuple[str, str]] = set()
    for number in plan.ids:
        nodes |= links.neighbours(tx, "summary", str(number))
        summary = store_summaries.get_summary(tx, number)
        if summary is not None:
            sources.forget_origins(tx, number, now)
            fulltext.remove_passages(tx, number)
            store_summaries.delete_summary(tx, number)
            ledger.record_forgotten(tx, summary.uid, now)
    guard = "handed on: what stood between was forgotten"
    for newer_id, past in plan.handed_on:
        hide(tx, newer_id, past.older_id, past.rule, guard, now)
    for start in range(0, len(plan.event_ids), _EVENTS_PER_SLICE):
        nodes |= _erase_events(tx, plan.event_ids[start : start + _EVENTS_PER_SLICE], now)
    links.drop_orphan_nodes(tx, nodes)
    for session in plan.sessions:
        if projects.forget_session(tx, session.id):
            ledger.record_forgotten(tx, session.uid, now)
    if plan.project_id is not None:
        projects.forget_project(tx, plan.project_id)
    erasure.mark_erased(tx, "forgotten")


def _erase_events(tx: Connection, event_ids: Sequence[int], now: int) -> set[tuple[str, str]]:
    """Erase these events; returns the nodes that they were linked with."""
    nodes: set[tuple[str, str]] = set()
    for event in store_events.events_by_ids(tx, event_ids).values():
        nodes |= links.neighbours(tx, "event", str(event.id))
        links.drop_node(tx, "event", str(event.id))
        if event.kind is EventKind.PROMPT:
            # The title of a session has the words of a prompt; which one is not recorded.
            projects.clear_title(tx, event.session_id)
    store_events.forget_events(tx, event_ids, now)
    return nodes


@dataclass(frozen=True, slots=True)
class RelatedFiles:
    """The files beside the vault that may repeat its text."""

    log: str = ""
    """Empty if there is none."""
    backups: Callable[[], Mapping[str, int]] = dict
    """Read the backups of the vault from disk: path → when it was begun, UTC milliseconds."""


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases text from a vault and from its log, by forgetting or by scrubbing."""

    db: Database
    clock: Callable[[], int]
    on_written: Callable[[], None]
    files: RelatedFiles = field(default_factory=RelatedFiles)
    bring_in: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    """Returns when the spool and open turns have become memories, which else would come back later."""
    indexed: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    """Returns when the index contains everything written."""

    async def forget(
        self, selection: ForgetSelection, *, dry_run: bool, token: str = ""
    ) -> ForgetResult:
        """Erase a selection, or report what would be erased. UnknownId if no id exists.

        BadRequest if `token` names another plan than the current one.
        """
        if not selection.ids:
            await self.bring_in()
        backups = await anyio.to_thread.run_sync(self.files.backups)
        plan = await self.db.read(partial(plan_selection, selection=selection))
        if not dry_run:
            plan = await self._erase_selection(selection, token)
            await self._clean_up_vault()
            await self._remove_from_log(tuple(one.key for one in plan.sessions))
        # No older one can contain it.
        since = math.inf if plan.since is None else plan.since - _BACKUP_DURATION_MS
        named = tuple(path for path, begun in backups.items() if begun >= since)
        return replace(plan.report(is_dry_run=dry_run), backups=named)

    async def scrub(self, rule: ScrubRule, *, dry_run: bool) -> ScrubResult:
        """Rewrite every text in which the rule finds something, or report where that is.

        An interrupted scrub continues where it stopped when it is asked for again.
        """
        await self.bring_in()
        result = ScrubResult(rule.name, is_dry_run=dry_run)
        first, after = (0, 0) if dry_run else await self.db.read(partial(_read_progress, rule=rule))
        for number in range(first, len(erasure.TEXT_TABLES)):
            result = await self._scrub_table(result, rule, number, after, dry_run)
            after = 0
        unchangeable = await self.db.read(partial(scrub.find_unchangeable, rule=rule))
        result = replace(result, stays=unchangeable)
        if self.files.log:
            work = partial(scrub.scrub_log, self.files.log, rule.text, dry_run=dry_run)
            result = result.with_count("log", await anyio.to_thread.run_sync(work))
        if not dry_run:
            await self.db.write(partial(ledger.write_note, key=_SCRUB_NOTE, value="{}"))
            self.on_written()
            # Until then the index still has the old words.
            await self.indexed()
            await self._clean_up_vault()
        backups = await anyio.to_thread.run_sync(self.files.backups)
        return replace(result, backups=tuple(backups))

    async def _erase_selection(self, selection: ForgetSelection, token: str) -> ForgetPlan:
        """Plan and erase; a small plan in one transaction, so that nothing changes in between."""

        def begin(tx: Connection) -> ForgetPlan:
            plan = plan_selection(tx, selection)
            if token and token != plan.token:
                raise BadRequest("the selection has changed meanwhile; look again at what would go")
            apply_plan(tx, plan.split()[0], self.clock())
            return plan

        plan = await self.db.write(begin)
        for part in plan.split()[1:]:
            await self.db.write(partial(apply_plan, plan=part, now=self.clock()))
        self.on_written()
        return plan

    async def _remove_from_log(self, session_keys: tuple[str, ...]) -> None:
        def drop(line: str) -> str | None:
            return None if any(key in line for key in session_keys) else line

        if session_keys and self.files.log:
            await anyio.to_thread.run_sync(log_module.rewrite, self.files.log, drop)

    async def _clean_up_vault(self) -> None:
        """Remove the words of deleted rows from the segments of the full texts and from the WAL, too."""
        marks = await self.db.read(erasure.pending_marks)
        marks.pop("private", None)
        await erasure.clean_up(self.db, marks)

    async def _scrub_table(
        self, result: ScrubResult, rule: ScrubRule, number: int, after: int, dry_run: bool
    ) -> ScrubResult:
        """Scrub the rows of one table after this id."""
        table = erasure.TEXT_TABLES[number]
        read = partial(erasure.read_texts, table=table, limit=_SCRUB_ROWS)
        while rows := await self.db.read(partial(read, after=after)):
            found = await anyio.to_thread.run_sync(scrub.count_replacements, rule, table, rows)
            after = rows[-1].id
            result = result.with_rows(table.name, found)
            if not dry_run:
                ids, progress = tuple(found), (number, after)
                write = partial(_scrub_rows, rule=rule, ids=ids, progress=progress)
                await self.db.write(write)
        return result


def _read_progress(tx: Connection, rule: ScrubRule) -> tuple[int, int]:
    """Where a scrub by this rule was interrupted: (index of the table, last row scrubbed)."""
    progress = json.loads(ledger.read_note(tx, _SCRUB_NOTE) or "{}")
    is_same = progress.get("rule") == rule.digest
    return (progress["table"], progress["after"]) if is_same else (0, 0)


def _scrub_rows(
    tx: Connection, rule: ScrubRule, ids: Sequence[int], progress: tuple[int, int]
) -> None:
    """Scrub these rows as they are now, and record the progress: (index of the table, last row)."""
    number, after = progress
    table = erasure.TEXT_TABLES[number]
    rows = erasure.texts_by_ids(tx, table, ids)
    for row, new in zip(rows, scrub.rewrite_rows(rule, table, rows), strict=True):
        erasure.write_texts(tx, table, row, new)
    if ids:
        erasure.mark_erased(tx, "forgotten")
    note = {"rule": rule.digest, "table": number, "after": after}
    ledger.write_note(tx, _SCRUB_NOTE, json.dumps(note))
