"""Injections into sessions by weeks, their outcomes and their costs; and the sessions that got none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apsw import Connection

from memd.store.queries import has_rows

DAY_MS = 86_400_000
WEEK_DAYS = 7
SESSIONS_COMPARED_MAX = 1_000
"""The latest sessions that are compared."""
_OUTCOMES = ("used", "overruled", "ignored", "untraceable")
_SUMS = ", ".join(f"coalesce(sum(outcome = '{one}'), 0)" for one in _OUTCOMES)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost to agents of one thing that memd does, in a span of time."""

    times: int = 0
    tokens: int = 0
    wait_ms: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        """Add the counts of both."""
        return Cost(
            self.times + other.times, self.tokens + other.tokens, self.wait_ms + other.wait_ms
        )


@dataclass(frozen=True, slots=True)
class ToldCounts:
    """Counts of what sessions were shown unasked, and of its outcomes."""

    sessions: int = 0
    lines: int = 0
    used: int = 0
    overruled: int = 0
    ignored: int = 0
    untraceable: int = 0
    """Of these it cannot be seen whether they were used: rules, lines without a name, what came after the work."""


@dataclass(frozen=True, slots=True)
class ToldWeek:
    """Seven days up to `until` (UTC milliseconds)."""

    until: int
    told: ToldCounts
    costs: Mapping[str, Cost] = field(default_factory=dict)
    """By `definitions`, `starts`, `prompts`, `asks` and `answers`."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Sessions that were told something, or of which it was held back, with how many prompts they took."""

    told: ToldCounts = field(default_factory=ToldCounts)
    prompts: int = 0


def add_costs(tx: Connection, costs: Mapping[tuple[int, str], Cost]) -> None:
    """Add what things cost, by day and name."""
    tx.executemany(
        "INSERT INTO costs VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET"
        " times = times + ?3, tokens = tokens + ?4, wait_ms = wait_ms + ?5",
        [(*key, one.times, one.tokens, one.wait_ms) for key, one in costs.items()],
    )


def read_weeks(tx: Connection, now: int, count: int) -> list[ToldWeek]:
    """The last weeks, this one first; days are those of UTC."""
    today = now // DAY_MS
    return [
        _read_week(tx, last_day) for last_day in range(today, today - count * WEEK_DAYS, -WEEK_DAYS)
    ]


def _read_week(tx: Connection, last_day: int) -> ToldWeek:
    since, until = last_day - WEEK_DAYS + 1, last_day + 1
    (row,) = tx.execute(
        f"SELECT count(DISTINCT session_id), count(*), {_SUMS} FROM injections"
        " WHERE at >= ? AND at < ? AND NOT held",
        (since * DAY_MS, until * DAY_MS),
    )
    costs = tx.execute(
        "SELECT what, sum(times), sum(tokens), sum(wait_ms) FROM costs WHERE day >= ? AND day < ?"
        " GROUP BY what",
        (since, until),
    )
    return ToldWeek(until * DAY_MS, ToldCounts(*row), {what: Cost(*sums) for what, *sums in costs})


def compare_held(tx: Connection) -> tuple[Compared, Compared] | None:
    """The latest sessions since some are held back: those that were told, and the others; None if none ever was."""
    if not has_rows(tx, "injections WHERE held"):
        return None
    rows = tx.execute(
        f"SELECT i.held, i.session_id, count(*), {_SUMS},"
        " (SELECT count(*) FROM events e WHERE e.session_id = i.session_id AND e.kind = 'prompt')"
        " FROM injections i WHERE i.at >= (SELECT min(at) FROM injections WHERE held)"
        " GROUP BY i.session_id ORDER BY max(i.at) DESC LIMIT ?",
        (SESSIONS_COMPARED_MAX,),
    ).fetchall()
    told, held = ([row[2:] for row in rows if bool(row[0]) == which] for which in (False, True))
    return _sum_up(told), _sum_up(held)


def _sum_up(sessions: Iterable[Sequence[Any]]) -> Compared:
    found = list(sessions)
    lines, *rest = (sum(column) for column in zip(*found, strict=True)) if found else (0,) * 6
    return Compared(ToldCounts(len(found), lines, *rest[:4]), rest[4])
