"""Background worker: find near-duplicates of new memories, decide about them and apply the decisions.

A tick takes a bounded batch of memories that are new or have changed, and compares them with all live
memories of their project: in the space that is always complete, in the learned space if it leads, by
their normalised text, and statements by the values that they change. It applies the decisions in one
transaction that first checks that nothing has changed in between. Memories that are not indexed yet, or
that did change, wait for a later tick, so a crash at any point repeats little and skips nothing. Work is
done in bursts of milliseconds with rests in between, so that searches hardly notice.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

import anyio
import anyio.to_thread

from memd import log
from memd.belief.claims import join_title
from memd.belief.decide import VALUE_KINDS, CandidatePair, Decision, count_refusals, decide
from memd.belief.rejections import reject_repeats
from memd.belief.supersede import find_changed, is_judged
from memd.caches import trim_heap
from memd.config import ConsolidateConfig
from memd.consolidate import near_duplicates, runs
from memd.consolidate.merging import MergeReport, merge_duplicates
from memd.consolidate.near_duplicates import CosinePair, hash_text
from memd.consolidate.runs import UndoResult
from memd.embeddings import ChatModel
from memd.index.memory_index import MemoryIndex
from memd.models import EdgeType, Summary
from memd.store import links, summaries
from memd.store.database import Connection, Database
from memd.text import one_line, words

_T = TypeVar("_T")
_SimilarPairs = Mapping[tuple[int, int], tuple[float | None, str]]
"""(summary id, other id), the smaller id first → (cosine, learned space or empty)."""
_PREVIEW_CHARACTERS_MAX = 160
_REST_S = 0.01
"""Rest between two bursts of work in Python, each shorter than this, in which searches get their turn."""
_READ_BATCH = 100
_TEXTS_PER_BURST = 12
_DECISIONS_PER_BURST = 1
_SLICES_PER_BURST = 1
_BACKLOG_INTERVAL_S = 1.0
"""Time between two ticks while there is a backlog: others have work, too."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Results of one tick. Times are UTC milliseconds; counts are of rows that changed."""

    at: int
    run: int | None = None
    """The run to undo it by; None if nothing was changed."""
    examined: int = 0
    waiting: int = 0
    """Memories left for a later tick: they are not indexed yet, or changed in between."""
    pairs: int = 0
    superseded: int = 0
    contradicts: int = 0
    similar: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    """Aspect → the number of pairs that it kept apart."""
    took_ms: int = 0
    has_more: bool = False
    """Whether there may be more to examine right away."""


@dataclass(frozen=True, slots=True)
class TickPlan:
    """An examined batch and the decisions about it."""

    batch: Sequence[Summary]
    examined: Sequence[Summary]
    """Those of the batch that need no other tick once the decisions are applied."""
    seen: Mapping[int, Summary]
    """Every memory of a pair, as it was then."""
    pairs: int
    decisions: Sequence[Decision]
    hashes: Mapping[int, int]
    """Id → text hash of the examined memories."""


@dataclass(frozen=True, slots=True)
class PreviewedDecision:
    """A decision that a tick would make, with the beginning of both texts."""

    newer_id: int
    older_id: int
    verdict: EdgeType
    """`supersedes`, `contradicts` or `similar_to`."""
    finding: str
    cosine: float | None
    """None if they have one normalised text, whatever their cosine."""
    space: str
    newer: str
    older: str


@dataclass(eq=False)
class Consolidator:
    """Consolidates near-duplicates, a batch at a time. One tick runs at a time."""

    name: str = field(default="consolidator", init=False)
    db: Database
    index: MemoryIndex
    space_name: str
    """The space that is always complete."""
    config: ConsolidateConfig
    clock: Callable[[], int]
    on_written: Callable[[], None]
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _after: int = field(default=0, init=False)
    """The last id of this round's batches; memories that wait must not block those after them."""
    _waiting_for_vector: set[int] = field(default_factory=set, init=False)
    """Memories that have waited one tick for their learned vector."""
    _last: Tick | None = field(default=None, init=False)
    _superseded: int = field(default=0, init=False)

    async def run(self) -> None:
        """Tick at once, then every interval, and sooner while there is a backlog."""
        if self.config.enabled:
            await self.reopen_unhashed()
        while self.config.enabled:
            tick = await self.tick()
            pause_s = _BACKLOG_INTERVAL_S if tick.has_more else self.config.interval_s
            await anyio.sleep(pause_s)
        await anyio.sleep_forever()

    def status(self) -> dict[str, object]:
        """`enabled`, `interval_s`, `superseded` since the start, and the last tick's counts or None."""
        return {
            "enabled": self.config.enabled,
            "interval_s": self.config.interval_s,
            "superseded": self._superseded,
            "last": asdict(self._last) if self._last else None,
        }

    async def tick(self) -> Tick:
        """Examine one batch and apply the decisions."""
        async with self._lock:
            started, began = self.clock(), anyio.current_time()
            plan = await self._plan_tick(started)
            tick = Tick(started)
            if plan.batch:
                tick = await self.db.write(lambda tx: _apply_plan(tx, plan, started))
            self._after = plan.batch[-1].id if len(plan.batch) == self.config.batch else 0
            has_more = self._after > 0
            took_ms = round(1000 * (anyio.current_time() - began))
            self._last = replace(tick, took_ms=took_ms, has_more=has_more)
            self._superseded += tick.superseded
        if plan.batch:
            await anyio.to_thread.run_sync(trim_heap)
        if tick.superseded or tick.contradicts:
            self.on_written()
            log.get(self.name).info(
                "memories_consolidated",
                run=tick.run, count=tick.superseded, contradicts=tick.contradicts, took_ms=took_ms,
            )  # fmt: skip
        return self._last

    async def reopen_unhashed(self) -> None:
        """Have memories examined that count as examined and have no text hash: an old vault's, an import's, a salvage's."""
        if unhashed := await self.db.read(summaries.list_unhashed_summaries):
            await self.db.write(lambda tx: summaries.reopen_summaries(tx, unhashed))

    async def preview_tick(self) -> list[PreviewedDecision]:
        """The decisions of the next tick, without applying them."""
        async with self._lock:
            plan = await self._plan_tick(self.clock())

        def find_open(tx: Connection) -> list[Decision]:
            return [one for one in plan.decisions if not is_judged(tx, *one.pair)]

        return [_preview_decision(one, plan.seen) for one in await self.db.read(find_open)]

    async def merge(self, model: ChatModel | None, *, dry_run: bool) -> MergeReport:
        """Merge near-duplicates that each say something of their own; `model` confirms each group."""
        async with self._lock:
            report = await merge_duplicates(self.db, self.clock, model, dry_run=dry_run)
        if report.run is not None:
            self.on_written()
        return report

    async def undo(self, what: str, *, dry_run: bool) -> UndoResult:
        """Undo a run (`r7`), what hides a memory (`#12`) or the decision about a pair (`12,15`).

        Raises BadRequest and UnknownId.
        """
        number, now = runs.parse_run(what), self.clock()
        async with self._lock:
            run = self.db.rehearse if dry_run else self.db.write
            undone = await run(lambda tx: runs.undo_run(tx, number, now))
        if not dry_run:
            self.on_written()
        return replace(undone, is_dry_run=dry_run)

    async def list_runs(self, limit: int) -> list[links.Run]:
        """The latest runs that changed something, the last one first."""
        return await self.db.read(lambda tx: links.latest_runs(tx, limit))

    async def _plan_tick(self, now: int) -> TickPlan:
        batch = await self._read_batch()
        # Hidden and expired memories cannot be found, so it is no use comparing them.
        hidden = [
            s
            for s in batch
            if s.superseded_by is not None or s.rejected_at is not None or s.is_expired(now)
        ]
        hidden_ids = {s.id for s in hidden}
        visible = [s for s in batch if s.id not in hidden_ids]
        ready, similar = await self._find_similar([s.id for s in visible])
        # A text without a word has no vector and never will have one.
        ready_now = [s for s in visible if s.id in ready or not words(f"{s.title} {s.body}")]
        examined = [*hidden, *ready_now]
        hashed = ((s.id, hash_text(s.title, s.body)) for s in examined)
        hashes = dict(await _work_in_bursts(hashed, _TEXTS_PER_BURST))
        duplicates = await self._find_duplicates(ready_now, hashes)
        duplicates |= await self._find_changed(ready_now)
        pairs = {**dict.fromkeys(duplicates, (None, "")), **similar}
        ids = sorted({number for pair in pairs for number in pair})
        seen = await self.db.read(lambda tx: summaries.summaries_by_ids(tx, ids)) if ids else {}
        seen = {number: s for number, s in seen.items() if not s.is_expired(now)}
        candidates = [
            CandidatePair(seen[a], seen[b], cosine, space)
            for (a, b), (cosine, space) in pairs.items()
            if a in seen and b in seen
        ]
        decisions = await _work_in_bursts(decide(candidates), _DECISIONS_PER_BURST)
        return TickPlan(batch, examined, seen, len(candidates), decisions, hashes)

    async def _read_batch(self) -> list[Summary]:
        batch: list[Summary] = []
        after = self._after
        while (size := min(_READ_BATCH, self.config.batch - len(batch))) > 0:
            read = functools.partial(summaries.to_consolidate, limit=size, after=after)
            part = await self.db.read(read)
            batch += part
            if len(part) < size:
                break
            after = part[-1].id
            await anyio.sleep(_REST_S)
        return batch

    async def _find_duplicates(
        self, examined: Sequence[Summary], hashes: Mapping[int, int]
    ) -> set[tuple[int, int]]:
        """Pairs of equal texts, within the batch and with memories examined before."""
        wanted = [(s.id, s.project_id, hashes[s.id]) for s in examined]
        found = await self.db.read(
            lambda tx: summaries.find_equal_texts(tx, wanted, near_duplicates.PAIRS_PER_MEMORY_MAX)
        )
        last: dict[tuple[int, ...], int] = {}
        for number, *key in wanted:
            if (text_hash := tuple(key)) in last:
                found.add((last[text_hash], number))
            last[text_hash] = number
        return found

    async def _find_changed(self, examined: Sequence[Summary]) -> set[tuple[int, int]]:
        """Pairs of statements of which one changes a value of the other, whatever their cosine."""
        found: set[tuple[int, int]] = set()
        claims = [one for one in examined if one.kind in VALUE_KINDS]
        if claims:
            await self.db.write(summaries.build_lookup_keys)
        for one in claims:
            found |= await self.db.read(functools.partial(find_changed, mine=one))
            await anyio.sleep(_REST_S)
        return found

    async def _find_similar(self, summary_ids: Sequence[int]) -> tuple[set[int], _SimilarPairs]:
        """(memories that could be compared, their pairs in either space)."""
        ready, found = await self._find_pairs(self.space_name, summary_ids)
        similar: _SimilarPairs = {(one, other): (cosine, "") for one, other, cosine in found}
        with self.index.lock:
            learned = self.index.learned if self.index.active == self.index.learned else None
        if learned is not None:
            has_vector, found = await self._find_pairs(learned, sorted(ready))
            # A learned vector follows within seconds, or never: a memory waits one tick for it.
            waiting = ready - has_vector - self._waiting_for_vector
            self._waiting_for_vector = self._waiting_for_vector - ready | waiting
            ready -= waiting
            similar = {**{(a, b): (cosine, learned) for a, b, cosine in found}, **similar}
        return ready, similar

    async def _find_pairs(
        self, space: str, summary_ids: Sequence[int]
    ) -> tuple[set[int], list[CosinePair]]:
        rows = near_duplicates.read_vector_rows(self.index, space)
        if rows is None or not summary_ids:
            return set(), []
        ready = await anyio.to_thread.run_sync(rows.find_comparable, summary_ids)
        steps = rows.search_pairs(sorted(ready), self.config.threshold)
        *_, pairs = await _work_in_bursts(steps, _SLICES_PER_BURST)
        return (ready, pairs) if rows.is_current() else (set(), [])


def _apply_plan(tx: Connection, plan: TickPlan, now: int) -> Tick:
    """Apply the decisions that still hold; changed memories and their partners wait for another tick."""
    current = summaries.summaries_by_ids(tx, list(plan.seen)) if plan.seen else {}
    changed = {number for number, then in plan.seen.items() if current.get(number) != then}
    waiting = set(changed)
    run = links.begin_run(tx, now) if plan.decisions else 0
    applied: list[Decision] = []
    for decision in plan.decisions:
        if not changed.isdisjoint(decision.pair):
            waiting.update(decision.pair)
        elif runs.write_decision(tx, decision, run, now):
            applied.append(decision)
    examined = [summary for summary in plan.examined if summary.id not in waiting]
    # Whatever way they came: what brings memories asks at once, and this is asked of all.
    reject_repeats(tx, [summary.id for summary in examined], now)
    summaries.mark_consolidated(tx, examined)
    summaries.put_text_hashes(tx, {s.id: plan.hashes[s.id] for s in examined})
    counts = Counter(decision.type for decision in applied)
    tick = Tick(
        at=now,
        run=run if applied else None,
        examined=len(examined),
        waiting=len(plan.batch) - len(examined),
        pairs=plan.pairs,
        superseded=counts[EdgeType.SUPERSEDES],
        contradicts=counts[EdgeType.CONTRADICTS],
        similar=counts[EdgeType.SIMILAR_TO],
        refused=count_refusals(applied),
    )
    if run:
        done = links.Run(
            run, now, tick.examined, tick.pairs, tick.superseded, tick.contradicts, tick.similar
        )
        links.finish_run(tx, done)
    return tick


async def _work_in_bursts(work: Iterator[_T], size: int) -> list[_T]:
    """Do all of the work, `size` items at a time: a search in between waits for no more."""
    done: list[_T] = []
    while True:
        part = await anyio.to_thread.run_sync(list, itertools.islice(work, size))
        done += part
        if len(part) < size:
            return done
        await anyio.sleep(_REST_S)


def _preview_decision(decision: Decision, seen: Mapping[int, Summary]) -> PreviewedDecision:
    newer, older = (
        one_line(join_title(seen[number].title, seen[number].body), _PREVIEW_CHARACTERS_MAX)
        for number in decision.pair
    )
    return PreviewedDecision(
        *decision.pair, decision.type, decision.reason, decision.cosine,
        decision.space, newer, older,
    )  # fmt: skip
