"""Forgets for good: in the vault slice by slice, then in its log files, so that no byte is left.

The doer behind `forget` and `scrub`. It first lets everything that waits come in (the spool, open
turns), else what was forgotten would come back a moment later. Backups are named, never rewritten.
Not here: what goes with what (forgetting.py), what a scrub replaces (scrub.py).
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import anyio.to_thread

from memd import log
from memd.consolidate import forgetting, scrub
from memd.consolidate.forgetting import Forgotten, Plan, Selection
from memd.consolidate.scrub import Scrubbed, ScrubRule
from memd.errors import BadRequest
from memd.store import books, cleaning, texts
from memd.store.database import Connection, Database

_BATCH = 200
_NOTE = "scrub"
_BEGUN_MS = 10_000
"""A backup may hold what was kept so long after it was begun."""


@dataclass(frozen=True, slots=True)
class Places:
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
        places: Places | None = None,
        bring_in: Callable[[], Awaitable[None]] = _nothing_waits,
        indexed: Callable[[], Awaitable[None]] = _nothing_waits,
    ) -> None:
        """`bring_in` returns once everything that waits to become a memory has become one.

        `indexed` returns once the index knows all that is written.
        """
        self._db = db
        self._clock = clock
        self._on_written = on_written
        self._places = places or Places()
        self._bring_in = bring_in
        self._indexed = indexed

    async def forget(
        self, selection: Selection, *, dry_run: bool, token: str = ""
    ) -> Forgotten:
        """Erase what is selected, or say what would go. UnknownId if no id exists.

        BadRequest if `token` names another plan than what would be done now.
        """
        if not selection.ids:
            await self._bring_in()
        backups = await anyio.to_thread.run_sync(self._places.backups)
        plan = await self._db.read(partial(forgetting.plan_selection, selection=selection))
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

    async def scrub(self, rule: ScrubRule, *, dry_run: bool) -> Scrubbed:
        """Rewrite every text in which the rule finds something, or say where that is.

        What was interrupted goes on where it stopped if it is asked for again.
        """
        await self._bring_in()
        found = Scrubbed(rule.name, is_dry_run=dry_run)
        start = (0, 0) if dry_run else await self._db.read(partial(_resumed, rule=rule))
        for number, table in enumerate(texts.TABLES):
            if number >= start[0]:
                after = start[1] if number == start[0] else 0
                found = await self._scrub_table(found, rule, number, table, after, dry_run)
        found = await self._scrub_rest(found, rule, dry_run)
        if not dry_run:
            await self._db.write(partial(books.write_note, key=_NOTE, value="{}"))
            self._on_written()
            # Until then the index still says it in the old words.
            await self._indexed()
            await self._purge()
        backups = await anyio.to_thread.run_sync(self._places.backups)
        return replace(found, backups=tuple(backups))

    async def _erase(self, selection: Selection, token: str) -> Plan:
        """What was erased: what is not much in the transaction that looked, more in slices."""

        def begin(tx: Connection) -> Plan:
            plan = forgetting.plan_selection(tx, selection)
            if token and token != plan.token:
                raise BadRequest(
                    "what is meant has changed meanwhile; look again at what would go"
                )
            if plan.is_small:
                _erase(tx, plan, self._clock())
            return plan

        plan = await self._db.write(begin)
        for part in () if plan.is_small else plan.slices():
            await self._db.write(partial(_erase, plan=part, now=self._clock()))
        self._on_written()
        return plan

    async def _clean(self, session_keys: tuple[str, ...]) -> None:
        await self._purge()
        if session_keys and self._places.log:

            def mentions(line: str) -> str | None:
                return None if any(key in line for key in session_keys) else line

            await anyio.to_thread.run_sync(log.rewrite, self._places.log, mentions)

    async def _purge(self) -> None:
        # The rows are gone; this takes their words out of the full texts' segments and the log, too.
        marks = await self._db.read(cleaning.due)
        await cleaning.clean(
            self._db, {what: n for what, n in marks.items() if what == "forgotten"}
        )

    async def _scrub_table(
        self,
        found: Scrubbed,
        rule: ScrubRule,
        number: int,
        table: texts.Table,
        after: int,
        dry_run: bool,
    ) -> Scrubbed:
        while rows := await self._db.read(
            partial(texts.read, table=table, after=after, limit=_BATCH)
        ):
            hits = await anyio.to_thread.run_sync(scrub.hits, rule, table, rows)
            after = rows[-1].id
            found = found.with_rows(table.name, hits)
            if not dry_run:
                work = partial(
                    _rewrite, rule=rule, table=table, ids=tuple(hits), at=(number, after)
                )
                await self._db.write(work)
        return found

    async def _scrub_rest(self, found: Scrubbed, rule: ScrubRule, dry_run: bool) -> Scrubbed:
        """The names that cannot be changed, and the log."""
        stays = await self._db.read(partial(scrub.stays, rule=rule))
        found = replace(found, stays=stays)
        if not self._places.log:
            return found
        change = rule.text if not dry_run else None
        lines = await anyio.to_thread.run_sync(
            scrub.log_lines, self._places.log, rule.text, change
        )
        return found.with_count("log", lines)


def _erase(tx: Connection, plan: Plan, now: int) -> None:
    forgetting.apply(tx, plan, now)
    cleaning.mark(tx, "forgotten")


def _resumed(tx: Connection, rule: ScrubRule) -> tuple[int, int]:
    """Where a scrub by this rule was interrupted: (number of the table, last row looked at)."""
    said = json.loads(books.note(tx, _NOTE) or "{}")
    return (said["table"], said["after"]) if said.get("rule") == rule.digest else (0, 0)


def _rewrite(
    tx: Connection,
    rule: ScrubRule,
    table: texts.Table,
    ids: tuple[int, ...],
    at: tuple[int, int],
) -> None:
    """Change these rows as they are now, and note how far that was."""
    rows = texts.by_ids(tx, table, ids)
    for row, new in zip(rows, scrub.changed(rule, table, rows), strict=True):
        texts.write(tx, table, row, new)
    if ids:
        cleaning.mark(tx, "forgotten")
    said = {"rule": rule.digest, "table": at[0], "after": at[1]}
    books.write_note(tx, _NOTE, json.dumps(said))
