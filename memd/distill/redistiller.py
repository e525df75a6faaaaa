"""Background worker: after an upgrade, distil what is there again by today's rules, once.

The vault keeps the version of the rules that made its memories. While that is another one, this worker goes
through the sessions from the oldest on, in small transactions with pauses, so that captures and searches never
wait for it. A killed run goes on after the last session that was finished; what it repeats changes nothing.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from memd import log
from memd.config import DistillConfig
from memd.distill import redistilling
from memd.distill.distiller import plan_episodes
from memd.distill.due import DueRequest
from memd.distill.redistilling import RULES_VERSION, MemoryChange, RewriteReport, SessionRewrite
from memd.distill.transaction import EpisodePlan
from memd.errors import MemdError
from memd.models import Session
from memd.store import ledger, projects, summaries
from memd.store.database import Connection, Database
from memd.wakeup import AutoResetEvent

CHANGES_LISTED_MAX = 500
"""Changes that a report lists; it counts all."""
_EPISODES_PER_STEP = 2
_PAUSE_MIN_S = 0.02
_PAUSE_SHARE = 3
"""The pause after a step is this many times as long as the step: a quarter of one core at most."""
_TRIES_MAX = 5
"""A session in which events arrive all the time is left; what arrives is distilled by today's rules."""
_RULES_NOTE = "rules"
_PROGRESS_NOTE = "redistilling"


@dataclass(slots=True)
class RedistillProgress:
    """How far a run is, as the vault keeps it."""

    rules: int = RULES_VERSION
    after: tuple[int, int] = projects.BEFORE_SESSIONS
    """(start, id) of the last session that was finished."""
    done: int = 0
    """Sessions."""
    counts: dict[str, int] = field(default_factory=dict)
    """A change → how many memories."""

    @classmethod
    def read(cls, tx: Connection) -> "RedistillProgress | None":
        """The run that was begun for today's rules; None without one."""
        note = ledger.read_note(tx, _PROGRESS_NOTE)
        fields: dict[str, Any] = json.loads(note) if note else {}
        if fields.get("rules") != RULES_VERSION:
            return None
        return cls(**{**fields, "after": tuple(fields["after"])})

    def write(self, tx: Connection) -> None:
        """Keep it in the vault."""
        ledger.write_note(tx, _PROGRESS_NOTE, json.dumps(asdict(self)))


class _Preview(Exception):
    """Takes back the transaction of a preview, and carries what it did."""

    def __init__(self, changes: Sequence[MemoryChange]) -> None:
        super().__init__()
        self.changes = changes


class Redistiller:
    """Distils again what older rules have made."""

    name = "redistiller"

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
        self._progress: RedistillProgress | None = None
        self._left = 0
        self._is_asked_for = False
        self._reports: list[tuple[RewriteReport, anyio.Event]] = []
        """Callers that wait for the run to end."""
        self._last_error: str | None = None

    async def run(self) -> None:
        """Distil again what older rules made, then whatever is asked for, until cancelled."""
        await self._db.write(begin_if_outdated)
        while True:
            self._progress = await self._db.read(RedistillProgress.read)
            if self._progress is not None:
                await self._distil_all(self._progress)
            await self._wakeup.wait()

    def status(self) -> dict[str, object]:
        """The sessions of the present run that are `done` and `left`, and its changes; `rules` is today's version."""
        progress = self._progress
        if progress is None:
            return {"rules_version": RULES_VERSION, "last_error": self._last_error}
        return {
            "rules_version": RULES_VERSION,
            "done": progress.done,
            "left": self._left,
            **progress.counts,
            "why": "distilling older sessions again by today's rules",
            "last_error": self._last_error,
        }

    async def redistil(self) -> dict[str, Any]:
        """Distil everything again now, and report it. It goes on if the caller leaves."""
        waiting = RewriteReport(), anyio.Event()
        self._reports.append(waiting)
        if self._progress is None:
            await self._db.write(RedistillProgress().write)
        self._is_asked_for = True
        self._wakeup.set()
        await waiting[1].wait()
        return _to_report(waiting[0], is_dry_run=False)

    async def preview(self) -> dict[str, Any]:
        """What distilling everything again would change. Each session is judged as the vault is now."""
        report, after = RewriteReport(), projects.BEFORE_SESSIONS
        while (
            session := await self._db.read(partial(projects.next_session, after=after))
        ) is not None:
            report.add(await self._distil_session(session, is_dry_run=True), CHANGES_LISTED_MAX)
            after = session.started_at, session.id
        return _to_report(report, is_dry_run=True)

    async def _distil_all(self, progress: RedistillProgress) -> None:
        """Distil every session that is left again, and note that today's rules have made them all."""
        while (
            session := await self._db.read(partial(projects.next_session, after=progress.after))
        ) is not None:
            self._left = await self._db.read(partial(projects.count_sessions, after=progress.after))
            changes = await self._distil_session(session, is_dry_run=False)
            counts = Counter(progress.counts)
            counts.update(one.change for one in changes)
            progress = replace(
                progress,
                after=(session.started_at, session.id),
                done=progress.done + 1,
                counts=dict(counts),
            )
            await self._db.write(progress.write)
            self._progress = progress
            self._report(changes)
        await self._db.write(finish)
        log.get(self.name).info("distilled_again", sessions=progress.done, **progress.counts)
        self._progress, self._is_asked_for = None, False
        for _, finished in self._reports:
            finished.set()
        self._reports.clear()

    def _report(self, changes: Sequence[MemoryChange]) -> None:
        for report, _ in self._reports:
            report.add(changes, CHANGES_LISTED_MAX)
        if any(one.change != "kept" for one in changes):
            self._on_written()

    async def _distil_session(self, session: Session, *, is_dry_run: bool) -> list[MemoryChange]:
        """Distil one session again; what it changed. A session whose events keep changing is left."""
        changes: list[MemoryChange] = []
        for _ in range(_TRIES_MAX):
            try:
                await self._try_session(session, changes, is_dry_run=is_dry_run)
            except redistilling.SessionChanged:
                continue
            except MemdError as error:
                self._last_error = error.message
                raise
            break
        return changes

    async def _try_session(
        self, session: Session, changes: list[MemoryChange], *, is_dry_run: bool
    ) -> None:
        rewrite = await self._plan_session(session)
        if rewrite is None:
            return
        for start in range(0, len(rewrite.plans), _EPISODES_PER_STEP):
            some = rewrite.plans[start : start + _EPISODES_PER_STEP]
            step = partial(
                redistilling.rewrite_episodes, rewrite=rewrite, plans=some, now=self._clock()
            )
            changes += await self._write(step, is_dry_run=is_dry_run)
        if rewrite.orphans:
            step = partial(redistilling.delete_orphans, rewrite=rewrite)
            changes += await self._write(step, is_dry_run=is_dry_run)

    async def _plan_session(self, session: Session) -> SessionRewrite | None:
        request = DueRequest(
            session.id, self._clock(), self._config.idle_s * 1000, task_days=self._config.task_days
        )
        began = anyio.current_time()
        read = partial(redistilling.read_session, session=session, request=request)
        due = await self._db.read(read)
        if due is None:
            return None
        await self._pause(began)
        plans: list[EpisodePlan] = []
        for start in range(0, len(due.batch.episodes), _EPISODES_PER_STEP):
            began = anyio.current_time()
            some = due.batch.episodes[start : start + _EPISODES_PER_STEP]
            plans += await anyio.to_thread.run_sync(
                plan_episodes, replace(due.batch, episodes=some)
            )
            await self._pause(began)
        began = anyio.current_time()
        rewrite = await anyio.to_thread.run_sync(redistilling.plan_rewrite, due, plans)
        await self._pause(began)
        return rewrite

    async def _write(
        self, work: Callable[[Connection], list[MemoryChange]], *, is_dry_run: bool
    ) -> list[MemoryChange]:
        began = anyio.current_time()
        try:
            return await self._db.write(partial(_take_back, work=work) if is_dry_run else work)
        except _Preview as done:
            return list(done.changes)
        finally:
            await self._pause(began)

    async def _pause(self, began: float) -> None:
        """Leave the machine to others. Somebody who waits for the run gets half of a core."""
        share = 1 if self._is_asked_for else _PAUSE_SHARE
        await anyio.sleep(
            max(_PAUSE_MIN_S / _PAUSE_SHARE * share, share * (anyio.current_time() - began))
        )


def begin_if_outdated(tx: Connection) -> None:
    """Begin a run if older rules made the vault's memories, unless one is begun; a vault without any needs none."""
    version = int(ledger.read_note(tx, _RULES_NOTE) or 0)
    if version >= RULES_VERSION:
        return
    if not summaries.has_captured(tx):
        finish(tx)
    elif RedistillProgress.read(tx) is None:
        RedistillProgress().write(tx)


def finish(tx: Connection) -> None:
    """Note that today's rules have made all memories."""
    ledger.write_note(tx, _RULES_NOTE, str(RULES_VERSION))
    ledger.write_note(tx, _PROGRESS_NOTE, "")


def _take_back(
    tx: Connection, work: Callable[[Connection], list[MemoryChange]]
) -> list[MemoryChange]:
    raise _Preview(work(tx))


def _to_report(report: RewriteReport, *, is_dry_run: bool) -> dict[str, Any]:
    counts: Mapping[str, int] = report.counts
    return {
        "is_dry_run": is_dry_run,
        **{name: counts.get(name, 0) for name in ("created", "revised", "deleted", "kept")},
        "changes": [asdict(one) for one in report.changes],
    }
