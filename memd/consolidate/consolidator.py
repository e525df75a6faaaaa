"""The doer of consolidation: looks at what is new, lets guards decide, writes down the verdicts.

A tick takes a bounded batch of memories that have not been looked at since they were written,
compares them with all live ones of their project, and applies the decisions in one transaction, which
checks first that nothing has changed in between. What is not indexed yet, or did change, stays for a
later tick, so a crash or a restart at any line repeats little and skips nothing. Counts are of rows
that changed, not of attempts. Not here: what is alike (nearest.py), what is the same (guards.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import anyio
import anyio.to_thread

from memd import log
from memd.bell import Bell
from memd.config import ConsolidateConfig
from memd.consolidate.decide import Decision, Pair, Relate, Supersede, decide, refusals
from memd.consolidate.nearest import Found, NearestRows, rows_of
from memd.index.heap import give_back
from memd.index.shelf import Shelf
from memd.models import EdgeType, Summary
from memd.store import links, summaries
from memd.store.database import Connection, Database
from memd.text import words

RULE = "near-duplicate"
"""The rule by which a supersession of this room is known, and can be undone."""
_BACKLOG_S = 1.0
"""Between two ticks while there is more to look at: others want to work, too."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick did. Times: UTC milliseconds."""

    at: int
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
class Plan:
    """A batch, looked at."""

    batch: Sequence[Summary]
    done: Sequence[Summary]
    """Those of the batch that need not be looked at again if the decisions are applied."""
    seen: Mapping[int, Summary]
    """Every memory that is part of a decision, as it was then."""
    pairs: int
    decisions: Sequence[Decision]


class Consolidator:
    """Tidies near-duplicates away, a batch at a time."""

    name = "consolidator"

    def __init__(
        self,
        db: Database,
        shelf: Shelf,
        space_name: str,
        config: ConsolidateConfig,
        clock: Callable[[], int],
        on_written: Callable[[], None],
    ) -> None:
        self._db = db
        self._shelf = shelf
        self._space_name = space_name
        self._config = config
        self._clock = clock
        self._on_written = on_written
        self._bell = Bell()
        self._lock = anyio.Lock()
        self._after = 0
        """Looked at up to this id in this round; those that wait must not block those behind them."""
        self._last: Tick | None = None
        self._superseded = 0

    async def run(self) -> None:
        """Tick at once, then every interval, and soon again while there is a backlog."""
        while self._config.enabled:
            tick = await self.tick()
            await self._bell.wait(_BACKLOG_S if tick.has_more else self._config.interval_s)
        await anyio.sleep_forever()

    def nudge(self) -> None:
        """Tick now instead of at the end of the interval."""
        self._bell.ring()

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
            started = self._clock()
            plan = await self._plan(started)
            tick = Tick(started)
            if plan.batch:
                tick = await self._db.write(lambda tx: _apply(tx, plan, started))
            self._after = plan.batch[-1].id if len(plan.batch) == self._config.batch else 0
            has_more = self._after > 0
            self._last = replace(tick, took_ms=self._clock() - started, has_more=has_more)
            self._superseded += tick.superseded
        if plan.batch:
            await anyio.to_thread.run_sync(give_back)
        if tick.superseded:
            self._on_written()
            log.get(self.name).info(
                "memories_consolidated", count=tick.superseded, took_ms=self._last.took_ms
            )
        return self._last

    async def rehearse(self) -> list[Decision]:
        """What the next tick would decide, without deciding it."""
        async with self._lock:
            return list((await self._plan(self._clock())).decisions)

    async def _plan(self, now: int) -> Plan:
        batch = await self._db.read(
            lambda tx: summaries.to_consolidate(tx, self._config.batch, self._after)
        )
        # What is hidden or over cannot be found, so it is no use comparing it.
        over = [s for s in batch if s.superseded_by is not None or _is_over(s, now)]
        skipped = {s.id for s in over}
        rest = [s for s in batch if s.id not in skipped]
        ready, found = await anyio.to_thread.run_sync(self._compare, [s.id for s in rest])
        # A text without a word has no vector and never will have.
        done = [s for s in rest if s.id in ready or not words(f"{s.title} {s.body}")]
        ids = sorted({number for one, other, _ in found for number in (one, other)})
        seen = await self._db.read(lambda tx: summaries.by_ids(tx, ids)) if ids else {}
        seen = {number: s for number, s in seen.items() if not _is_over(s, now)}
        pairs = [Pair(seen[a], seen[b], c) for a, b, c in found if a in seen and b in seen]
        decisions = await anyio.to_thread.run_sync(decide, pairs)
        return Plan(batch, [*over, *done], seen, len(pairs), decisions)

    def _compare(self, summary_ids: Sequence[int]) -> tuple[set[int], list[Found]]:
        rows: NearestRows | None = rows_of(self._shelf, self._space_name)
        if rows is None or not summary_ids:
            return set(), []
        ready = rows.indexed(summary_ids)
        found = rows.pairs(sorted(ready), self._config.threshold)
        return (ready, found) if rows.is_current() else (set(), [])


def _is_over(summary: Summary, now: int) -> bool:
    return summary.expires_at is not None and summary.expires_at <= now


def _apply(tx: Connection, plan: Plan, now: int) -> Tick:
    """Write what still holds. A memory that changed since, or whose partner did, is left unmarked."""
    fresh = summaries.by_ids(tx, list(plan.seen)) if plan.seen else {}
    changed = {number for number, then in plan.seen.items() if fresh.get(number) != then}
    applied: list[Decision] = []
    left = set(changed)
    for decision in plan.decisions:
        both = _both(decision)
        if changed.isdisjoint(both):
            if _write(tx, decision, now):
                applied.append(decision)
        else:
            left.update(both)
    done = [summary for summary in plan.done if summary.id not in left]
    summaries.mark_consolidated(tx, done)
    return Tick(
        at=now,
        examined=len(done),
        waiting=len(plan.batch) - len(done),
        pairs=plan.pairs,
        superseded=sum(isinstance(d, Supersede) for d in applied),
        contradicts=_edges(applied, EdgeType.CONTRADICTS),
        similar=_edges(applied, EdgeType.SIMILAR_TO),
        refused=refusals(applied),
    )


def _both(decision: Decision) -> tuple[int, int]:
    if isinstance(decision, Supersede):
        return decision.newer_id, decision.older_id
    return decision.a, decision.b


def _edges(decisions: Sequence[Decision], type_: EdgeType) -> int:
    return sum(isinstance(d, Relate) and d.type is type_ for d in decisions)


def _write(tx: Connection, decision: Decision, now: int) -> bool:
    """Whether a row was written."""
    if isinstance(decision, Supersede):
        if _was_undone(tx, decision):
            return False
        number = links.supersede(
            tx,
            newer_id=decision.newer_id,
            older_id=decision.older_id,
            rule=RULE,
            cosine=decision.cosine,
            guard=decision.guard,
            at=now,
        )
        return number is not None
    edge = links.NewEdge(
        "summary", str(decision.a), decision.type, "summary", str(decision.b), RULE, now,
        confidence=round(decision.cosine, 4),
        detail={"cosine": round(decision.cosine, 4), "finding": decision.finding.reason},
    )  # fmt: skip
    return links.link(tx, [edge]) > 0


def _was_undone(tx: Connection, decision: Supersede) -> bool:
    """Somebody has said already that these two are not the same; that holds."""
    return any(
        one.undone_at is not None and one.newer_id == decision.newer_id
        for one in links.supersessions_of(tx, decision.older_id)
        if one.older_id == decision.older_id
    )
