"""Judge in the background the outcomes of what sessions were shown, and measure what memd costs the agents."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial

import anyio

from memd import log
from memd.belief.claims import statement_text
from memd.belief.compare import compare
from memd.errors import MemdError
from memd.injection import helped
from memd.injection.helped import LineOutcome, ToldLine
from memd.models import Kind
from memd.store import events, summaries, usage
from memd.store.database import Connection, Database
from memd.store.pages import told
from memd.store.pages.told import Compared, Cost, ToldWeek
from memd.store.usage import JudgedInjection
from memd.wakeup import AutoResetEvent

SILENT_MS = 4 * 3_600_000
"""A session without an event for this long has ended, if its client does not say so."""
EVENTS_MAX = 5_000
"""Events of a session that are read."""
REST_S = 60.0
"""Seconds between two looks for sessions that have ended."""
_RETRY_S = 1.0
"""The same while one waits to be distilled: what it said may replace what it was shown."""
COMPARED_MIN = 20
"""Sessions of each kind from which their figures are compared."""
_HASH_BYTES = 8


def is_held_back(session: str, share: float) -> bool:
    """Return whether a session is in the control group that is shown nothing: by its id alone, so that it stays so."""
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).digest()[:_HASH_BYTES]
    return int.from_bytes(digest) < share * (1 << 8 * _HASH_BYTES)


def describe_comparison(told_group: Compared, held: Compared) -> str:
    """Compare the sessions that were shown nothing with the others; only their number while these are few."""
    sessions = held.told.sessions, told_group.told.sessions
    plural = "session" if sessions[0] == 1 else "sessions"
    count = f"{sessions[0]:,} {plural} beside {sessions[1]:,} that were told"
    if min(sessions) < COMPARED_MIN:
        return f"{count}: too few to compare, {COMPARED_MIN} of each are the least"
    return f"{count}: {_describe_group(held)}, beside {_describe_group(told_group)}"


def _describe_group(group: Compared) -> str:
    counts = group.told
    judged = counts.used + counts.overruled + counts.ignored
    turns = group.prompts / max(1, counts.sessions)
    return f"{counts.used:,} of {judged:,} lines seen used, {turns:.1f} prompts a session"


class CostMeter:
    """Adds up what memd costs the agents, until it is written."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._pending: dict[tuple[int, str], Cost] = {}

    def add(self, what: str, tokens: int, wait_s: float = 0.0) -> None:
        """Count one thing that an agent got, and how long it waited for it."""
        self._add(self._clock() // told.DAY_MS, what, Cost(1, tokens, round(wait_s * 1000)))

    def _add(self, day: int, what: str, cost: Cost) -> None:
        self._pending[day, what] = self._pending.get((day, what), Cost()) + cost

    def complete(self, week: ToldWeek) -> ToldWeek:
        """Add to the present week what is not written yet, so that nobody who reads it waits for a write."""
        costs = dict(week.costs)
        for (_, what), cost in self._pending.items():
            costs[what] = costs.get(what, Cost()) + cost
        return replace(week, costs=costs)

    async def flush(self, db: Database) -> None:
        """Write what was added up; if that fails, it is kept, and a VaultError is raised."""
        if not self._pending:
            return
        written, self._pending = self._pending, {}
        try:
            with anyio.CancelScope(shield=True):
                await db.write_unsynced(partial(told.add_costs, costs=written))
        except MemdError:
            for (day, what), cost in written.items():
                self._add(day, what, cost)
            raise


class OutcomeJudge:
    """The worker; `nudge` it when a session ended or was distilled."""

    name = "outcomes"

    def __init__(self, db: Database, clock: Callable[[], int]) -> None:
        self._db = db
        self.costs = CostMeter(clock)
        self._clock = clock
        self._wakeup = AutoResetEvent()
        self._judged = 0

    async def report(self, weeks: int) -> dict[str, object]:
        """Report what agents were shown in the last weeks, its outcomes and its costs; and the control group."""
        now = self._clock()
        (week, *past), compared = await self._db.read(
            lambda tx: (told.read_weeks(tx, now, weeks), told.compare_held(tx))
        )
        found = [self.costs.complete(week), *past]
        report: dict[str, object] = {"weeks": [asdict(one) for one in found], "holdout": None}
        if compared is not None:
            told_group, held = compared
            words = describe_comparison(told_group, held)
            report["holdout"] = {"told": asdict(told_group), "held": asdict(held), "words": words}
        return report

    def status(self) -> dict[str, object]:
        """Return how many sessions were judged since the start."""
        return {"judged": self._judged}

    def nudge(self) -> None:
        """Look soon whether a session has ended."""
        self._wakeup.set()

    async def run(self) -> None:
        """Judge what has ended and write what things cost, until cancelled."""
        try:
            while True:
                is_done = await self._look()
                await self._wakeup.wait(REST_S if is_done else _RETRY_S)
        finally:
            with anyio.move_on_after(1, shield=True):
                await self._flush_costs()

    async def _look(self) -> bool:
        await self._flush_costs()
        try:
            return await self.judge_ended()
        except MemdError as error:
            log.get(self.name).warning("sessions_not_judged", error=error.message)
            return True

    async def _flush_costs(self) -> None:
        try:
            await self.costs.flush(self._db)
        except MemdError as error:
            log.get(self.name).warning("costs_not_written", error=error.message)

    async def judge_ended(self) -> bool:
        """Judge every session that has ended since, one after the other; False if one is not distilled yet."""
        before = self._clock() - SILENT_MS
        ended = await self._db.read(lambda tx: usage.sessions_to_judge(tx, before))
        for number, is_distilled in ended.items():
            if not is_distilled:
                continue
            found = await self._db.read(partial(judge_session, session_id=number))
            outcomes = {one: (of.outcome, of.evidence) for one, of in found.items()}
            await self._db.write_unsynced(partial(usage.record_outcomes, outcomes=outcomes))
            self._judged += 1
        return all(ended.values())


def judge_session(tx: Connection, session_id: int) -> dict[int, LineOutcome]:
    """Judge the outcome of each injection into a session, by its id, except those whose use was seen before."""
    injected = usage.injections_to_judge(tx, session_id)
    if not injected:
        return {}
    texts = helped.read_texts(events.session_events(tx, session_id, 0, EVENTS_MAX))
    return {
        one.id: LineOutcome("overruled")
        if one.is_rejected or _is_overruled(tx, one)
        else helped.judge_line(
            ToldLine(one.summary_id, Kind(one.kind), f"{one.title}\n{one.body}".strip(), one.at),
            texts,
            lambda name: usage.count_named(tx, name),
        )
        for one in injected
    }


def _is_overruled(tx: Connection, one: JudgedInjection) -> bool:
    """Return whether a statement of the session contradicts the line, and does not repeat it."""
    if one.replaced_by is None:
        return False
    found = summaries.summaries_by_ids(tx, [one.replaced_by, one.summary_id])
    texts = (statement_text(each.title, each.body) for each in found.values())
    return not compare(*texts).agrees
