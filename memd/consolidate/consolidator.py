"""The doer of consolidation: looks at what is new, lets guards decide, writes down the verdicts.

A tick takes a bounded batch of memories that have not been looked at since they were written,
compares them with all live ones of their project, in the space that is always complete and in a
learned one if it leads, adds those of the same form (form.py) whatever their cosine, and applies the
decisions in one transaction, which checks first that nothing has changed in between. What is not
indexed yet, or did change, stays for a later tick, so a crash or a restart at any line repeats little
and skips nothing. It works in bursts of milliseconds with rests between, so that searches hardly
notice. One tick at a time: in one daemon by a lock, between daemons by the vault's. A chain of
supersessions stays as it was made, so that each step can be undone; `links.newest` follows it.
Counts are of rows that changed, not of attempts. Not here: what is alike (nearest.py), what is the
same (guards.py), how a verdict is written and taken back (verdicts.py).
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

import anyio
import anyio.to_thread

from memd import log
from memd.config import ConsolidateConfig
from memd.consolidate import runs
from memd.consolidate.decide import (
    CandidatePair,
    Decision,
    Supersede,
    count_refusals,
    iterate_decisions,
    join_text,
)
from memd.consolidate.near_duplicates import (
    PAIRS_PER_MEMORY_MAX,
    CosinePair,
    NearestRows,
    hash_form,
    read_vector_rows,
)
from memd.consolidate.runs import UndoResult
from memd.index.malloc import trim_heap
from memd.index.memory_index import MemoryIndex
from memd.models import EdgeType, Summary
from memd.store import runs as store_runs
from memd.store import summaries
from memd.store.database import Connection, Database
from memd.text import one_line, words
from memd.wakeup import AutoResetEvent

Alike = Mapping[tuple[int, int], tuple[float | None, str]]
"""Two summaries, the smaller id first → their cosine, and the learned space that it is of; else empty."""
_EARLIER = 500
"""Older memories that get their form in a tick, until all have one."""
_SAID_CHARACTERS = 160
_REST_S = 0.01
"""Between two bursts of work in Python, which keep searches from it: bursts are shorter than this."""
_READ_AT_ONCE = 100
_FORMS_AT_ONCE = 12
_DECISIONS_AT_ONCE = 1
_SLICES_AT_ONCE = 1
T = TypeVar("T")
_BACKLOG_S = 1.0
"""Between two ticks while there is more to look at: others want to work, too."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick did. Times: UTC milliseconds."""

    at: int
    run: int | None = None
    """The number to take it back by; None if nothing was changed."""
    examined: int = 0
    """Memories that have now been looked at."""
    waiting: int = 0
    """Memories that are not indexed yet, or that changed meanwhile; a later tick takes them."""
    pairs: int = 0
    superseded: int = 0
    contradicts: int = 0
    similar: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    """What the guards objected to → in how many pairs."""
    took_ms: int = 0
    has_more: bool = False
    """Whether there may be more to look at right away."""


@dataclass(frozen=True, slots=True)
class TickPlan:
    """A batch, looked at."""

    batch: Sequence[Summary]
    done: Sequence[Summary]
    """Those of the batch that need not be looked at again if the decisions are applied."""
    seen: Mapping[int, Summary]
    """Every memory that is part of a decision, as it was then."""
    pairs: int
    decisions: Sequence[Decision]
    forms: Mapping[int, int]
    """Of the batch: id → form."""
    earlier: Mapping[int, int]
    """Of memories that were looked at before there were forms."""


@dataclass(frozen=True, slots=True)
class PreviewedDecision:
    """A decision for people: what the guards found, and the beginning of both texts."""

    newer_id: int
    older_id: int
    verdict: EdgeType
    """`supersedes`, `contradicts` or `similar_to`."""
    finding: str
    cosine: float | None
    """None: they are of one form, whatever their cosine."""
    space: str
    newer: str
    older: str


class Consolidator:
    """Tidies near-duplicates away, a batch at a time."""

    name = "consolidator"

    def __init__(
        self,
        db: Database,
        index: MemoryIndex,
        space_name: str,
        config: ConsolidateConfig,
        clock: Callable[[], int],
        on_written: Callable[[], None],
    ) -> None:
        self._db = db
        self._index = index
        self._space_name = space_name
        self._config = config
        self._clock = clock
        self._on_written = on_written
        self._wakeup = AutoResetEvent()
        self._lock = anyio.Lock()
        self._after = 0
        """Looked at up to this id in this round; those that wait must not block those behind them."""
        self._waited: set[int] = set()
        """Those without a vector in the learned space that have waited a tick for it."""
        self._formless_below = 2**62
        """Above this id every memory has a form, or waits to be looked at."""
        self._last: Tick | None = None
        self._superseded = 0

    async def run(self) -> None:
        """Tick at once, then every interval, and soon again while there is a backlog."""
        while self._config.enabled:
            tick = await self.tick()
            await self._wakeup.wait(_BACKLOG_S if tick.has_more else self._config.interval_s)
        await anyio.sleep_forever()

    def nudge(self) -> None:
        """Tick now instead of at the end of the interval."""
        self._wakeup.set()

    def status(self) -> dict[str, object]:
        """`enabled`, `interval_s`, `superseded` since the start, and the last tick's counts or None."""
        return {
            "enabled": self._config.enabled,
            "interval_s": self._config.interval_s,
            "superseded": self._superseded,
            "last": asdict(self._last) if self._last else None,
        }

    async def tick(self) -> Tick:
        """Look at one batch and apply what was decided."""
        async with self._lock:
            started, began = self._clock(), anyio.current_time()
            plan = await self._plan(started)
            tick = Tick(started)
            if plan.batch or plan.earlier:
                tick = await self._db.write(lambda tx: _apply(tx, plan, started))
            self._after = plan.batch[-1].id if len(plan.batch) == self._config.batch else 0
            has_more = self._after > 0 or self._formless_below > 0
            took_ms = round(1000 * (anyio.current_time() - began))
            self._last = replace(tick, took_ms=took_ms, has_more=has_more)
            self._superseded += tick.superseded
        if plan.batch:
            await anyio.to_thread.run_sync(trim_heap)
        if tick.superseded or tick.contradicts:
            self._on_written()
            log.get(self.name).info(
                "memories_consolidated",
                run=tick.run, count=tick.superseded, contradicts=tick.contradicts,
                took_ms=self._last.took_ms,
            )  # fmt: skip
        return self._last

    async def preview_tick(self) -> list[PreviewedDecision]:
        """What the next tick would decide, without deciding it."""
        async with self._lock:
            below = self._formless_below
            plan = await self._plan(self._clock())
            self._formless_below = below
        settled = await self._db.read(
            lambda tx: {d for d in map(_both, plan.decisions) if runs.is_settled(tx, *d)}
        )
        return [_show(d, plan.seen) for d in plan.decisions if _both(d) not in settled]

    async def undo(self, what: str, *, dry_run: bool) -> UndoResult:
        """Take back a run (`r7`), what hides a memory (`#12`) or a pair (`12,15`), or say what would be.

        Raises BadRequest and UnknownId.
        """
        target = runs.parse_undo_target(what)
        if dry_run:
            return await self._db.read(lambda tx: runs.undo(tx, target, 0, dry_run=True))
        async with self._lock:
            now = self._clock()
            undone = await self._db.write(lambda tx: runs.undo(tx, target, now))
        self._on_written()
        return undone

    async def runs(self, limit: int) -> list[store_runs.Run]:
        """The latest rounds that changed something, the last one first."""
        return await self._db.read(lambda tx: store_runs.latest_runs(tx, limit))

    async def _plan(self, now: int) -> TickPlan:
        batch = await self._batch()
        # What is hidden or over cannot be found, so it is no use comparing it.
        over = [s for s in batch if s.superseded_by is not None or _is_over(s, now)]
        skipped = {s.id for s in over}
        rest = [s for s in batch if s.id not in skipped]
        ready, found = await self._compare([s.id for s in rest])
        # A text without a word has no vector and never will have.
        done = [s for s in rest if s.id in ready or not words(f"{s.title} {s.body}")]
        formed = dict(await _gently(_forming((*over, *done)), _FORMS_AT_ONCE))
        alike = {**dict.fromkeys(await self._twins(done, formed), (None, "")), **found}
        ids = sorted({number for pair in alike for number in pair})
        seen = (
            await self._db.read(lambda tx: summaries.summaries_by_ids(tx, ids)) if ids else {}
        )
        seen = {number: s for number, s in seen.items() if not _is_over(s, now)}
        pairs = [
            CandidatePair(seen[a], seen[b], cosine, space)
            for (a, b), (cosine, space) in alike.items()
            if a in seen and b in seen
        ]
        decisions = await _gently(iterate_decisions(pairs), _DECISIONS_AT_ONCE)
        earlier = await self._earlier()
        return TickPlan(batch, [*over, *done], seen, len(pairs), decisions, formed, earlier)

    async def _batch(self) -> list[Summary]:
        batch: list[Summary] = []
        after = self._after
        while (size := min(_READ_AT_ONCE, self._config.batch - len(batch))) > 0:
            part = await self._db.read(
                functools.partial(summaries.to_consolidate, limit=size, after=after)
            )
            batch += part
            if len(part) < size:
                break
            after = part[-1].id
            await anyio.sleep(_REST_S)
        return batch

    async def _twins(
        self, done: Sequence[Summary], formed: Mapping[int, int]
    ) -> set[tuple[int, int]]:
        """Pairs of one form, of the batch among itself and with what was looked at before."""
        wanted = [(s.id, s.project_id, formed[s.id]) for s in done]
        found = await self._db.read(
            lambda tx: summaries.pairs_of_equal_form(tx, wanted, PAIRS_PER_MEMORY_MAX)
        )
        last: dict[tuple[int, int], int] = {}
        for number, project_id, form in wanted:
            if (project_id, form) in last:
                found.add((last[project_id, form], number))
            last[project_id, form] = number
        return found

    async def _earlier(self) -> dict[int, int]:
        """The forms of some of those that were looked at before there were forms."""
        if not self._formless_below:
            return {}
        below = self._formless_below
        texts = await self._db.read(
            lambda tx: summaries.summaries_without_form(tx, below, _EARLIER)
        )
        self._formless_below = texts[-1][0] if len(texts) == _EARLIER else 0
        found = ((number, hash_form(title, body)) for number, title, body in texts)
        return dict(await _gently(found, _FORMS_AT_ONCE))

    async def _compare(self, summary_ids: Sequence[int]) -> tuple[set[int], Alike]:
        """Which of these could be compared, and the pairs that are alike in either space."""
        ready, found = await self._compare_in(self._space_name, summary_ids)
        alike: Alike = {(one, other): (cosine, "") for one, other, cosine in found}
        with self._index.lock:
            learned = self._index.learned
            leads = learned is not None and self._index.active == learned
        if learned is not None and leads:
            there, found = await self._compare_in(learned, sorted(ready))
            ready -= self._too_early(ready - there, ready)
            alike = {**{(a, b): (cosine, learned) for a, b, cosine in found}, **alike}
        return ready, alike

    async def _compare_in(
        self, space: str, summary_ids: Sequence[int]
    ) -> tuple[set[int], list[CosinePair]]:
        rows: NearestRows | None = read_vector_rows(self._index, space)
        if rows is None or not summary_ids:
            return set(), []
        ready = await anyio.to_thread.run_sync(rows.indexed, summary_ids)
        steps = rows.looking(sorted(ready), self._config.threshold)
        *_, found = await _gently(steps, _SLICES_AT_ONCE)
        return (ready, found) if rows.is_current() else (set(), [])

    def _too_early(self, lacking: set[int], ready: set[int]) -> set[int]:
        """Which wait for the next tick: a learned vector follows within seconds, or never."""
        early = lacking - self._waited
        self._waited = self._waited - ready | early
        return early


def _is_over(summary: Summary, now: int) -> bool:
    return summary.expires_at is not None and summary.expires_at <= now


def _apply(tx: Connection, plan: TickPlan, now: int) -> Tick:
    """Write what still holds. A memory that changed since, or whose partner did, is left unmarked."""
    fresh = summaries.summaries_by_ids(tx, list(plan.seen)) if plan.seen else {}
    changed = {number for number, then in plan.seen.items() if fresh.get(number) != then}
    left = set(changed)
    run = store_runs.begin_run(tx, now) if plan.decisions else None
    applied: list[Decision] = []
    for decision in plan.decisions:
        both = _both(decision)
        if not changed.isdisjoint(both):
            left.update(both)
        elif run is not None and runs.write_decision(tx, decision, run, now):
            applied.append(decision)
    done = [summary for summary in plan.done if summary.id not in left]
    summaries.mark_consolidated(tx, done)
    summaries.put_forms(tx, {**plan.earlier, **{s.id: plan.forms[s.id] for s in done}})
    tick = Tick(
        at=now,
        run=run if applied else None,
        examined=len(done),
        waiting=len(plan.batch) - len(done),
        pairs=plan.pairs,
        superseded=runs.count(applied, EdgeType.SUPERSEDES),
        contradicts=runs.count(applied, EdgeType.CONTRADICTS),
        similar=runs.count(applied, EdgeType.SIMILAR_TO),
        refused=count_refusals(applied),
    )
    if run is not None:
        store_runs.finish_run(
            tx,
            store_runs.Run(
                run,
                now,
                tick.examined,
                tick.pairs,
                tick.superseded,
                tick.contradicts,
                tick.similar,
            ),
        )
    return tick


def _both(decision: Decision) -> tuple[int, int]:
    if isinstance(decision, Supersede):
        return decision.newer_id, decision.older_id
    return decision.a, decision.b


def _forming(some: Iterable[Summary]) -> Iterator[tuple[int, int]]:
    return ((s.id, hash_form(s.title, s.body)) for s in some)


async def _gently(work: Iterator[T], at_once: int) -> list[T]:
    """All of it, a few milliseconds at a time: a search that comes in between waits for no more."""
    done: list[T] = []
    while True:
        part = await anyio.to_thread.run_sync(list, itertools.islice(work, at_once))
        done += part
        if len(part) < at_once:
            return done
        await anyio.sleep(_REST_S)


def _show(decision: Decision, seen: Mapping[int, Summary]) -> PreviewedDecision:
    newer, older = (seen[number] for number in _both(decision))
    return PreviewedDecision(
        newer.id,
        older.id,
        EdgeType.SUPERSEDES if isinstance(decision, Supersede) else decision.type,
        decision.guard if isinstance(decision, Supersede) else decision.finding.reason,
        decision.cosine,
        decision.space,
        _said(newer),
        _said(older),
    )


def _said(summary: Summary) -> str:
    return one_line(join_text(summary.title, summary.body), _SAID_CHARACTERS)
