"""Usage of memories: which ones answers returned, and together; what sessions were shown and asked, and at what cost."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from apsw import Connection

from memd.store import SummaryPair, SummaryUse, ledger
from memd.store.filter import marks
from memd.store.queries import (
    count_rows,
    fetch_all,
    fetch_column,
    fetch_first,
    fetch_ids,
    fetch_int,
    fetch_rows,
)
from memd.text import storable
from memd.time_expressions import DAY_MS


def record_uses(
    tx: Connection, uses: Mapping[int, SummaryUse], pairs: Mapping[SummaryPair, int]
) -> None:
    """Add to the counts. A memory that was forgotten meanwhile is left out."""
    tx.executemany(
        "INSERT INTO uses (summary_id, count, last_at)"
        " SELECT id, ?2, ?3 FROM summaries WHERE id = ?1"
        " ON CONFLICT (summary_id) DO UPDATE SET count = count + ?2, last_at = max(last_at, ?3)",
        [(number, use.count, use.last_at) for number, use in uses.items()],
    )
    tx.executemany(
        "INSERT INTO coactivations (low_id, high_id, count) SELECT a.id, b.id, ?3"
        " FROM summaries a, summaries b WHERE a.id = ?1 AND b.id = ?2"
        " ON CONFLICT (low_id, high_id) DO UPDATE SET count = count + ?3",
        [(low, high, count) for (low, high), count in pairs.items()],
    )


def uses_of(tx: Connection, summary_ids: Sequence[int]) -> dict[int, SummaryUse]:
    """The uses of these memories by id; one that was never returned is left out."""
    sql = f"SELECT summary_id, count, last_at FROM uses WHERE count > 0 AND summary_id IN ({marks(summary_ids)})"
    return {number: SummaryUse(*use) for number, *use in fetch_all(tx, sql, summary_ids)}


def coactivations_of(tx: Connection, summary_ids: Sequence[int]) -> dict[SummaryPair, int]:
    """Count for any two of these memories the answers that returned both."""
    places = marks(summary_ids)
    sql = f"SELECT low_id, high_id, count FROM coactivations WHERE low_id IN ({places}) AND high_id IN ({places})"
    rows = fetch_all(tx, sql, (*summary_ids, *summary_ids))
    return {(low, high): count for low, high, count in rows}


_TEXTS_KEPT = 500
"""Texts that are kept of all sessions: about a fortnight's, half a megabyte."""

# ── Injections: what was shown to an agent unasked, so that it is not shown the same twice ─────


@dataclass(frozen=True, slots=True)
class NewInjection:
    """One memory that was injected into a session. `at` is UTC milliseconds."""

    session_id: int
    summary_id: int
    moment: str
    """`startup`, `resume`, `clear`, `compact`, `prompt`, `file`, `failure`, `subagent`, or `rule`: it was about to be broken."""
    at: int
    reason: str
    """Why this memory, in words."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A stored injection with the kind and title of its memory."""

    number: int
    summary_id: int
    kind: str
    title: str
    moment: str
    at: int
    reason: str
    outcome: str | None = None
    """`used`, `overruled`, `ignored` or `untraceable`; None until it is judged."""
    evidence: str = ""
    """By which words of the memory its use was seen."""


def record_injections(tx: Connection, injected: Sequence[NewInjection]) -> None:
    """Store injections. A memory that was forgotten meanwhile is left out."""
    tx.executemany(
        "INSERT INTO injections (session_id, summary_id, moment, at, reason)"
        " SELECT n.id, s.id, ?3, ?4, ?5 FROM summaries s, sessions n WHERE s.id = ?2 AND n.id = ?1",
        [(i.session_id, i.summary_id, i.moment, i.at, storable(i.reason)) for i in injected],
    )


@dataclass(frozen=True, slots=True)
class ToldText:
    """All that a session was told unasked at one moment, as it was told. `at` is UTC milliseconds."""

    moment: str
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class UntoldMoment:
    """A moment at which a session was told nothing, and why in words. `at` is UTC milliseconds."""

    moment: str
    at: int
    why: str
    is_taken_back: bool = False
    """Whether it was recorded that the session was told something then."""


def record_texts(tx: Connection, told: Sequence[tuple[int, ToldText | UntoldMoment]]) -> None:
    """Keep the texts that sessions were told, and why they were told nothing: the last ones of the vault.

    They are notes of the vault: every erasure drops all of them, because they repeat what memories said.
    """
    for session_id, one in told:
        end = f"{one.at:015d} {session_id} {one.moment}"
        if isinstance(one, ToldText):
            ledger.write_note(tx, f"{ledger.TOLD}{end}", one.text)
        else:
            ledger.write_note(tx, f"{ledger.UNTOLD}{end}", one.why)
        if isinstance(one, UntoldMoment) and one.is_taken_back:
            place = (session_id, one.moment, one.at)
            tx.execute(
                "DELETE FROM injections WHERE session_id = ? AND moment = ? AND at = ?", place
            )
    for kind in (ledger.TOLD, ledger.UNTOLD) if told else ():
        for name in ledger.note_names(tx, kind)[:-_TEXTS_KEPT]:
            ledger.drop_note(tx, f"{kind}{name}")


def told_texts(tx: Connection, session_id: int) -> list[ToldText]:
    """The texts that a session was told, oldest first, as far as it is kept."""
    return [ToldText(*one) for one in _notes_of_session(tx, ledger.TOLD, session_id)]


def untold_moments(tx: Connection, session_id: int) -> list[UntoldMoment]:
    """The moments at which a session was told nothing, oldest first, as far as it is kept."""
    return [UntoldMoment(*one) for one in _notes_of_session(tx, ledger.UNTOLD, session_id)]


def _notes_of_session(tx: Connection, kind: str, session_id: int) -> list[tuple[str, int, str]]:
    """(moment, time, text) of the notes of this kind about a session."""
    names = [one.split(" ") for one in ledger.note_names(tx, kind)]
    return [
        (moment, int(at), ledger.read_note(tx, f"{kind}{at} {number} {moment}") or "")
        for at, number, moment in names
        if int(number) == session_id
    ]


def last_injected(tx: Connection, session_id: int) -> dict[int, tuple[int, str]]:
    """Return summary id → (when, at which moment) it was last injected into this session; not into its subagents."""
    sql = "SELECT summary_id, max(at), moment FROM injections WHERE session_id = ? AND moment <> 'subagent' GROUP BY summary_id"
    return {number: (at, moment) for number, at, moment in fetch_all(tx, sql, (session_id,))}


def session_injections(tx: Connection, session_id: int, limit: int = 1_000) -> list[Injection]:
    """Return a session's injections, oldest first; of more than `limit`, the latest."""
    sql = (
        "SELECT i.id, i.summary_id, s.kind, s.title, i.moment, i.at, i.reason, i.outcome, i.evidence"
        " FROM injections i JOIN summaries s ON s.id = i.summary_id WHERE i.session_id = ?"
        " ORDER BY i.at DESC, i.id DESC LIMIT ?"
    )
    return fetch_rows(tx, Injection, sql, (session_id, limit))[::-1]


def _end_in_bool(row: Sequence[Any]) -> list[Any]:
    return [*row[:-1], bool(row[-1])]


def summary_injections(tx: Connection, summary_id: int, limit: int) -> list[NewInjection]:
    """The last injections of a memory that were shown, newest first."""
    sql = (
        "SELECT session_id, summary_id, moment, at, reason FROM injections WHERE summary_id = ?"
        " ORDER BY at DESC, id DESC LIMIT ?"
    )
    return fetch_rows(tx, NewInjection, sql, (summary_id, limit))


def count_injections(tx: Connection, summary_id: int) -> tuple[int, int]:
    """Count how often a memory was shown, and to how many sessions."""
    sql = "SELECT count(*), count(DISTINCT session_id) FROM injections WHERE summary_id = ?"
    ((times, sessions),) = tx.execute(sql, (summary_id,))
    return int(times), int(sessions)


# ── What became of it ────────────────────────────────────────────────────────────────────────────


def sessions_to_judge(tx: Connection, before: int) -> dict[int, bool]:
    """The sessions with unjudged injections that have ended, or had no event since `before`: whether all is distilled."""
    rows = tx.execute(
        "SELECT s.id, NOT EXISTS (SELECT 1 FROM events e WHERE e.session_id = s.id AND e.distilled = 0)"
        " FROM sessions s WHERE s.id IN (SELECT session_id FROM injections WHERE outcome IS NULL)"
        " AND (s.last_event_at < ? OR (SELECT kind FROM events e WHERE e.session_id = s.id"
        " ORDER BY e.at DESC, e.id DESC LIMIT 1) = 'session_end')",
        (before,),
    )
    return {int(number): bool(is_distilled) for number, is_distilled in rows}


@dataclass(frozen=True, slots=True)
class JudgedInjection:
    """One injection, with what it said, and what replaced it in its session since."""

    id: int
    summary_id: int
    kind: str
    title: str
    body: str
    """Its beginning, if it was shown."""
    at: int
    replaced_by: int | None
    """The statement of this session that hides it now."""
    is_rejected: bool
    """Whether the user rejected it since."""


def injections_to_judge(tx: Connection, session_id: int) -> list[JudgedInjection]:
    """The injections of a session of which no use was seen yet."""
    rows = tx.execute(
        "SELECT i.id, i.summary_id, s.kind, s.title, iif(i.moment = 'prompt', substr(s.body, 1, 600), ''), i.at,"
        " (SELECT x.newer_id FROM supersessions x JOIN summaries n ON n.id = x.newer_id WHERE x.older_id = s.id"
        " AND x.undone_at IS NULL AND x.at >= i.at AND n.session_id = i.session_id LIMIT 1),"
        " EXISTS (SELECT 1 FROM reviews v WHERE v.summary_id = s.id AND v.verdict = 'rejected' AND v.at >= i.at)"
        " FROM injections i JOIN summaries s ON s.id = i.summary_id WHERE i.session_id = ?"
        " AND coalesce(i.outcome, '') NOT IN ('used', 'overruled') ORDER BY i.at, i.id",
        (session_id,),
    )
    return [JudgedInjection(*_end_in_bool(row)) for row in rows]


def count_named(tx: Connection, name: str) -> int:
    """Count the memories that name a file, a symbol or an identifier."""
    return count_rows(tx, "entities WHERE name = ?", (name,))


def record_outcomes(tx: Connection, outcomes: Mapping[int, tuple[str, str]]) -> None:
    """Write what became of injections, (outcome, evidence) by id, and count again what their memories were worth."""
    tx.executemany(
        "UPDATE injections SET outcome = ?2, evidence = ?3 WHERE id = ?1",
        [(number, outcome, storable(evidence)) for number, (outcome, evidence) in outcomes.items()],
    )
    tx.execute(
        "INSERT INTO uses (summary_id, count, last_at, helped, ignored)"
        " SELECT i.summary_id, 0, 0, count(DISTINCT iif(i.outcome = 'used', i.session_id, NULL)),"
        " count(DISTINCT iif(i.outcome = 'ignored' AND i.at > max("
        "  coalesce((SELECT max(u.at) FROM injections u WHERE u.summary_id = i.summary_id AND u.outcome = 'used'), 0),"
        "  coalesce((SELECT v.at FROM reviews v WHERE v.summary_id = i.summary_id), 0)), i.session_id, NULL))"
        " FROM injections i WHERE i.summary_id IN (SELECT summary_id FROM injections WHERE id IN"
        " (SELECT value FROM json_each(?))) GROUP BY 1"
        " ON CONFLICT (summary_id) DO UPDATE SET helped = excluded.helped, ignored = excluded.ignored",
        (json.dumps(list(outcomes)),),
    )


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """The tokens and the hook time that a session's injections used since it last lost its context."""

    tokens: int = 0
    waited_ms: int = 0


def read_spent(tx: Connection, session_id: int) -> SpentBudget:
    """Return what a session has used of its budget."""
    sql = "SELECT tokens, waited_ms FROM told WHERE session_id = ?"
    return fetch_first(tx, SpentBudget, sql, (session_id,)) or SpentBudget()


def write_spent(tx: Connection, session_id: int, spent: SpentBudget) -> None:
    """Keep what was spent of a session's budget."""
    sql = "INSERT OR REPLACE INTO told SELECT id, ?2, ?3 FROM sessions WHERE id = ?1"
    tx.execute(sql, (session_id, spent.tokens, spent.waited_ms))


# ── What agents were asked to note (the table `asks`) ─────────────────────────────────────────────


def record_ask(
    tx: Connection, session_id: int, about: Sequence[tuple[int, int]], characters: int, now: int
) -> None:
    """Note that the agent of a session was asked about the exchanges of `about`: (session, the last prompt's event)."""
    sql = "INSERT INTO asks (asked_in, session_id, through, characters, at) VALUES (?, ?, ?, ?, ?)"
    tx.executemany(sql, [(session_id, past, through, characters, now) for past, through in about])


def sessions_asked_about(tx: Connection, session_id: int) -> list[int]:
    """The other sessions that the agent of this one was asked about."""
    sql = "SELECT DISTINCT session_id FROM asks WHERE asked_in = ?1 AND session_id <> ?1"
    return fetch_ids(tx, sql, (session_id,))


def last_noted(tx: Connection, session_id: int) -> int:
    """The last event of a session that its agent was asked about, or that came before its last note; 0 if none."""
    asked = fetch_int(tx, "SELECT max(through) FROM asks WHERE session_id = ?", (session_id,))
    sql = (
        "SELECT max(e.id) FROM events e WHERE e.session_id = ?1 AND e.kind = 'prompt' AND e.at <="
        " (SELECT max(created_at) FROM summaries WHERE session_id = ?1 AND source = 'agent')"
    )
    noted = fetch_int(tx, sql, (session_id,))
    return max(asked or 0, noted or 0)


def count_prompts(tx: Connection, session_id: int, since: int, except_id: int | None) -> int:
    """Prompts of a session after the event `since`."""
    sql = "events WHERE session_id = ? AND kind = 'prompt' AND agent IS NULL AND id > ? AND id <> ?"
    return count_rows(tx, sql, (session_id, since, except_id or 0))


def was_compacted(tx: Connection, session_id: int, since: int) -> bool:
    """Return whether a session was compacted after the event `since`."""
    rows = "events WHERE session_id = ? AND id > ? AND kind = 'compact_end'"
    return count_rows(tx, rows, (session_id, since)) > 0


def tools_after(tx: Connection, session_id: int, since: int) -> list[tuple[str, int]]:
    """(tool, time) of each result of a session after the event `since`, in order of time."""
    sql = (
        "SELECT coalesce(tool, ''), at FROM events WHERE session_id = ? AND id > ? AND agent IS NULL"
        " AND kind IN ('tool_result', 'tool_failure') ORDER BY at, id"
    )
    return fetch_all(tx, sql, (session_id, since))


def count_vain_asks(tx: Connection, project_id: int, client: str, latest: int) -> int:
    """Count a project's and client's asks, of the latest ones, since the last after which the asked session's agent noted something."""
    sql = (
        "SELECT EXISTS (SELECT 1 FROM summaries m WHERE m.session_id = x.asked_in AND m.source = 'agent'"
        " AND m.created_at >= x.at AND m.created_at < x.until) FROM"
        " (SELECT a.at, a.asked_in, coalesce((SELECT min(b.at) FROM asks b WHERE b.asked_in = a.asked_in"
        " AND b.at > a.at), a.at + 86400000) AS until FROM asks a JOIN sessions s ON s.id = a.asked_in"
        " WHERE s.project_id = ? AND s.client = ? GROUP BY a.asked_in, a.at ORDER BY a.at DESC LIMIT ?) x ORDER BY x.at DESC"
    )
    answered = fetch_column(tx, sql, (project_id, client, latest))
    return len(list(takewhile(lambda is_answered: not is_answered, answered)))


# ── Injections by weeks, their outcomes and their costs ────────────────────────────

WEEK_DAYS = 7
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
        " WHERE at >= ? AND at < ?",
        (since * DAY_MS, until * DAY_MS),
    )
    costs = tx.execute(
        "SELECT what, sum(times), sum(tokens), sum(wait_ms) FROM costs WHERE day >= ? AND day < ?"
        " GROUP BY what",
        (since, until),
    )
    return ToldWeek(until * DAY_MS, ToldCounts(*row), {what: Cost(*sums) for what, *sums in costs})
