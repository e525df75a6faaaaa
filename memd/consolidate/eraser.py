"""Erase from the vault, its write-ahead log, the log and the spool, by forgetting or by scrubbing.

Backups and exports are named, never rewritten.
"""

import contextlib
import json
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.consolidate import scrub
from memd.consolidate.forget import (
    ForgetPlan,
    ForgetResult,
    ForgetSelection,
    apply_plan,
    plan_selection,
    words_of_payload,
)
from memd.consolidate.scrub import ScrubResult, ScrubRule
from memd.consolidate.wanted_words import WantedWords
from memd.errors import SelectionChanged
from memd.store import database, erasure, ledger
from memd.store.backup import note_scrubbed_secrets
from memd.store.database import Connection, Database

_SCRUB_ROWS = 200
"""Rows per transaction of a scrub."""
_SCRUB_NOTE = "scrub"
"""The note of how far a scrub has come."""
_BACKUP_DURATION_MS = 10_000
"""A backup may contain what was written so long after it was begun."""
_LOG_FIELDS_WITHOUT_WORDS = frozenset({"event", "level", "timestamp", "room", "vault"})
"""Fields of a log line that say nothing of what a session said."""


def _count_no_lines(_: Callable[[str], bool], *, erases: bool) -> int:  # noqa: ARG001  # as the spool's
    return 0


@dataclass(frozen=True, slots=True)
class RelatedFiles:
    """The files beside the vault that may repeat its text."""

    log: str = ""
    """Empty if there is none."""
    backups: Callable[[], Mapping[str, int]] = dict
    """Read the backups and exports of the vault: path → when it was begun, UTC milliseconds."""
    spool_lines: Callable[..., int] = _count_no_lines
    """Count the lines of the spool that no drain takes and that a check accepts; with `erases`, erase them."""
    leftovers: Callable[[], Sequence[str]] = tuple
    """List the files that killed backups, restores and imports have left."""
    remove_leftovers: Callable[[], object] = tuple


@dataclass(frozen=True, slots=True)
class LineCheck:
    """Test for lines of the log and the spool that are to be removed: they have the words, or name the sessions."""

    words: WantedWords
    session_keys: Collection[str] = ()

    def is_log_line(self, line: str) -> bool:
        """Return whether this line of the log is to be removed."""
        return self._accepts(
            line, lambda one: {k: v for k, v in one.items() if k not in _LOG_FIELDS_WITHOUT_WORDS}
        )

    def is_spool_line(self, line: str) -> bool:
        """Return whether this line of the spool is to be removed."""
        return self._accepts(line, lambda entry: entry.get("payload"))

    def _accepts(self, line: str, find_said: Callable[[dict[str, Any]], Any]) -> bool:
        if any(key in line for key in self.session_keys):
            return True
        said: Any = line
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(line)
            said = find_said(found) if isinstance(found, dict) else line
        return bool(self.words.terms) and self.words.are_in(list(words_of_payload(said)))


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

        SelectionChanged if `token` names another plan than the current one.
        """
        if not selection.ids:
            await self.bring_in()
        backups = await anyio.to_thread.run_sync(self.files.backups)
        leftovers = tuple(await anyio.to_thread.run_sync(self.files.leftovers))
        plan = await self.db.read(partial(plan_selection, selection=selection))
        check = await self._make_line_check(selection, plan)
        pending = ""
        if not dry_run:
            plan = await self._erase_selection(selection, token)
        lines = await anyio.to_thread.run_sync(self._handle_lines, check, not dry_run)
        if not dry_run:
            await anyio.to_thread.run_sync(self.files.remove_leftovers)
            pending = await self._clean_up_vault()
        # No older one can contain it.
        since = math.inf if plan.since is None else plan.since - _BACKUP_DURATION_MS
        named = tuple(path for path, begun in backups.items() if begun >= since)
        return replace(
            plan.report(is_dry_run=dry_run),
            backups=named, lines=lines, leftovers=leftovers, pending=pending,
        )  # fmt: skip

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
        stays = await self.db.read(partial(scrub.find_unchangeable, rule=rule))
        result = replace(result, stays=stays)
        if self.files.log:
            work = partial(scrub.scrub_log, self.files.log, rule.text, dry_run=dry_run)
            result = result.with_count("log", await anyio.to_thread.run_sync(work))
        if not dry_run:
            await self.db.write(partial(ledger.write_note, key=_SCRUB_NOTE, value="{}"))
            await self.db.write(partial(ledger.drop_notes, beginning=ledger.TOLD))
            if rule.name == scrub.SECRETS_NAME:
                await self.db.write(partial(note_scrubbed_secrets, version=rule.version))
            self.on_written()
            result = replace(result, pending=await self.finish())
        backups = await anyio.to_thread.run_sync(self.files.backups)
        return replace(result, backups=tuple(backups))

    async def finish(self) -> str:
        """Remove every trace of what was erased; return what prevents that, in words."""
        # Until then the index still has the old words.
        await self.indexed()
        return await self._clean_up_vault()

    async def _make_line_check(self, selection: ForgetSelection, plan: ForgetPlan) -> LineCheck:
        if selection.spares_prompts:
            return LineCheck(WantedWords())
        names = await self.db.read(erasure.directories) if selection.words.terms else ()
        return LineCheck(selection.words.with_names(names), tuple(one.key for one in plan.sessions))

    def _handle_lines(self, check: LineCheck, erases: bool) -> dict[str, int]:
        """Count the lines that go, `log` and `spool`, or erase them; none without words and sessions."""
        if not (check.words.terms or check.session_keys):
            return {}
        counts = {"spool": self.files.spool_lines(check.is_spool_line, erases=erases)}
        if self.files.log and erases:
            counts["log"] = log.rewrite(
                self.files.log, lambda line: None if check.is_log_line(line) else line
            )
        elif self.files.log:
            counts["log"] = sum(map(check.is_log_line, log.lines(self.files.log)))
        return {name: count for name, count in counts.items() if count}

    async def _erase_selection(self, selection: ForgetSelection, token: str) -> ForgetPlan:
        """Plan and erase; a small plan in one transaction, so that nothing changes in between."""

        def begin(tx: Connection) -> ForgetPlan:
            plan = plan_selection(tx, selection)
            if token and token != plan.token:
                raise SelectionChanged
            apply_plan(tx, plan.split()[0], self.clock())
            return plan

        plan = await self.db.write(begin)
        for part in plan.split()[1:]:
            await self.db.write(partial(apply_plan, plan=part, now=self.clock()))
        self.on_written()
        return plan

    async def _clean_up_vault(self) -> str:
        """Remove the words of deleted rows from the segments of the full texts and from the WAL, too.

        Returns what keeps them in the WAL, in words, or an empty text. The daemon goes on until they are gone.
        """
        marks = await self.db.read(erasure.pending_marks)
        marks.pop("private", None)
        if await erasure.clean_up(self.db, marks):
            return ""
        return await anyio.to_thread.run_sync(database.describe_readers, self.db.path)

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
                write = partial(_scrub_rows, rule=rule, ids=[*found], progress=(number, after))
                await self.db.write(write)
        return result


def _read_progress(tx: Connection, rule: ScrubRule) -> tuple[int, int]:
    """Read where a scrub by this rule was interrupted: (index of the table, last row scrubbed)."""
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
