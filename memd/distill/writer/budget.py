"""Call a chat model, and keep what that may cost and has cost in the vault, so that it outlives a restart."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import anyio

from memd.embeddings.base import ChatModel
from memd.errors import EngineAbsent, EngineFailed
from memd.models import Summary
from memd.store import ledger, summaries
from memd.store.database import Connection, Database

DAY_MS = 86_400_000
"""The budget counts UTC days, and a turn that is older than a day stays as it is."""
TURNS_MAX = 1_000
"""Turns of the last day that one query considers."""
_META_KEY = "writer"


@dataclass(frozen=True, slots=True)
class WriterCost:
    """What calls of the model have cost."""

    calls: int = 0
    failed: int = 0
    """Calls that brought no reply."""
    ms: int = 0
    characters_in: int = 0
    """Characters of all prompts."""
    characters_out: int = 0
    """Characters of all replies."""

    def __add__(self, other: "WriterCost") -> "WriterCost":
        return WriterCost(
            self.calls + other.calls,
            self.failed + other.failed,
            self.ms + other.ms,
            self.characters_in + other.characters_in,
            self.characters_out + other.characters_out,
        )


@dataclass(frozen=True, slots=True)
class WriterBudget:
    """The calls of one day and of all days, and the turns that were tried."""

    day: int = 0
    """Days since 1970, UTC."""
    spent: int = 0
    """Calls that count on that day: a call that cost nothing does not."""
    tried: Mapping[int, int] = field(default_factory=dict)
    """Summary id → the revision that the model was asked about."""
    today: WriterCost = WriterCost()
    ever: WriterCost = WriterCost()

    def on_day_of(self, now: int) -> "WriterBudget":
        """Return the budget on the day of `now`: a new day has cost nothing yet."""
        day = now // DAY_MS
        return self if day == self.day else replace(self, day=day, spent=0, today=WriterCost())


def read_budget(tx: Connection, now: int) -> WriterBudget:
    """Read the budget as of `now`; an unreadable one is a new one."""
    try:
        stored: Any = json.loads(ledger.read_note(tx, _META_KEY) or "{}")
        tried = {int(key): int(value) for key, value in stored.get("tried", {}).items()}
        today, ever = (_parse_cost(stored.get(name, {})) for name in ("today", "ever"))
        budget = WriterBudget(
            int(stored.get("day", 0)), int(stored.get("calls", 0)), tried, today, ever
        )
    except (ValueError, TypeError, AttributeError):
        budget = WriterBudget()
    return budget.on_day_of(now)


def _parse_cost(stored: Mapping[str, Any]) -> WriterCost:
    return WriterCost(**{name: int(value) for name, value in stored.items()})


def _store_budget(tx: Connection, budget: WriterBudget) -> WriterBudget:
    value = {
        "day": budget.day,
        "calls": budget.spent,
        "tried": budget.tried,
        "today": asdict(budget.today),
        "ever": asdict(budget.ever),
    }
    ledger.write_note(tx, _META_KEY, json.dumps(value, separators=(",", ":")))
    return budget


def spend_call(tx: Connection, limit: int, now: int) -> WriterBudget | None:
    """Count one call before it is made; None if the day's calls are spent."""
    budget = read_budget(tx, now)
    if budget.spent >= limit:
        return None
    return _store_budget(tx, replace(budget, spent=budget.spent + 1))


def add_cost(tx: Connection, cost: WriterCost, now: int, *, is_refunded: bool) -> WriterBudget:
    """Add what a call has cost; one that `is_refunded` does not count for the day's limit."""
    budget = read_budget(tx, now)
    spent = max(budget.spent - 1, 0) if is_refunded else budget.spent
    paid = replace(budget, spent=spent, today=budget.today + cost, ever=budget.ever + cost)
    return _store_budget(tx, paid)


def mark_tried(tx: Connection, turn: Summary, now: int) -> WriterBudget:
    """Do not ask about this revision of the turn again; forget turns that are out of reach."""
    budget = read_budget(tx, now)
    open_turns = {id_ for id_, _ in summaries.rewritable_turns(tx, now - DAY_MS, now, TURNS_MAX)}
    tried = {id_: revision for id_, revision in budget.tried.items() if id_ in open_turns}
    if turn.id in open_turns:
        tried[turn.id] = turn.revisions
    return _store_budget(tx, replace(budget, tried=tried))


async def call_model(  # noqa: PLR0913, PLR0917  # the call, and where its cost is kept
    db: Database,
    model: ChatModel,
    system: str,
    prompt: str,
    schema: Mapping[str, Any],
    clock: Callable[[], int],
    keep: Callable[[WriterBudget], None],
    *,
    is_refundable: bool = False,
) -> str:
    """Return the model's reply, and add up what it has cost, which `keep` is told. Raises EngineFailed.

    `is_refundable`: the call was counted by `spend_call`, and does not count if it cost nothing.
    """
    started = anyio.current_time()
    cost = WriterCost(calls=1, characters_in=len(system) + len(prompt))
    is_free = False
    try:
        reply = await model.complete(system, prompt, schema)
        cost = replace(cost, characters_out=len(reply))
    except EngineFailed as error:
        is_absent = isinstance(error, EngineAbsent)
        is_free = is_absent or not model.charges_failures
        cost = WriterCost() if is_absent else replace(cost, failed=1)
        raise
    finally:
        cost = replace(cost, ms=round((anyio.current_time() - started) * 1000))
        with anyio.CancelScope(shield=True):
            is_refunded = is_free and is_refundable
            add = partial(add_cost, cost=cost, now=clock(), is_refunded=is_refunded)
            keep(await db.write(add))
    return reply
