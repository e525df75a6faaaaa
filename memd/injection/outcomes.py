"""Judge whether what sessions were shown unasked was used there, and measure what memd costs the agents.

A line is *used* if a name that it tells (a file, an identifier, a command, a value) or a run of its words is met for the
first time in what the agent does after the line was shown. Whatever else could have told the agent comes first: an
earlier word of anybody's, then a prompt, a tool's output, and a text that was read but is not stored, unless its
fingerprint tells that the name is not in it. So most help is not seen, and what is called used most likely was.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Literal

import anyio

from memd import log
from memd.belief.claims import statement_text
from memd.belief.compare import compare
from memd.capture.truncate import (
    FINGERPRINT,
    find_known_runs,
    read_fingerprint,
    split_units,
    squeeze,
    weigh_unit,
)
from memd.distill.edits import text_at
from memd.errors import MemdError
from memd.index.passages import entities_of_text
from memd.injection.session_record import TimedTexts, list_strings
from memd.models import Event, EventKind, Kind
from memd.store import events, summaries, usage
from memd.store.database import Connection, Database
from memd.store.usage import Cost, JudgedInjection, ToldWeek
from memd.text import content_stems
from memd.time_expressions import DAY_MS
from memd.wakeup import AutoResetEvent

Outcome = Literal["used", "overruled", "ignored", "untraceable"]
RARE_MAX = 10
"""Memories that name a thing; what more of them name, an agent comes to by itself."""
_RULE_KINDS = frozenset({Kind.INSTRUCTION, Kind.PREFERENCE})
_NAME_MIN = 5
"""Letters and digits of a name that no other text has by chance."""
_PART_MIN = 3
"""Letters of a word of a name that says what it is about."""
_FINGERPRINTED = 3
"""Words in a row that a fingerprint knows."""
_RUN, _RUN_STEMS_MIN = 5, 3
"""Words in a row that are no common turn of phrase, and how many of them mean something."""
_SPAN = re.compile(r"`([^`\n]{3,120})`")
_FLAG = re.compile(r"(?<![\w-])--[a-z]\w*-[\w-]+")
_VALUE = re.compile(r"(?<![\w.-])(?:v?\d+(?:\.\d+)+|\d{4,}|(?=[a-f]*\d)[0-9a-f]{7,40})(?![\w-])")
_IDENTIFIER = re.compile(r"(?<![\w/.@-])(?:[a-z]+[A-Z]\w*|[A-Za-z]\w*_\w+)(?![\w/]|\.\w)")
"""Written as no plain word and no brand is: `retryLimit`, `retry_limit`."""
_COMMON_FILE = re.compile(r"\.?[^\W_]+\.\w{1,5}")
"""A file without its directory whose name is one word: `README.md` is in every project."""
_OWN_PART = re.compile(r"(?:\s\S*|^[^\s]*)\w[-_.:=/@\\]\w")
_DIRECTORY = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)+[\w.-]*[-_\d][\w-]*(?=/(?![\w.]))")
_HOST = re.compile(r"(?<![\w.-])(?:[\w-]+\.){2,}[a-z]{2,}(?![\w-])")
_COMMAND_START = r"(?:^|[\n;&|(`\"'])[ \t]*(?:\w+=\S*[ \t]+)*"
_CURE = re.compile(r", from `([^`]+)`; worked as (`.+)$", re.MULTILINE)
"""What failed and what worked. Whoever runs again what failed has not read the line."""
_NO_WORDS = re.compile(r"`[^`]*`|\S*\w[-_./\\:@]\w\S*")

_Moment = tuple[int, int]
"""When something was said: UTC milliseconds, and the place among the session's texts."""


@dataclass(frozen=True, slots=True)
class ToldLine:
    """A memory as a session was shown it, and when (UTC milliseconds)."""

    id: int
    kind: Kind
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class LineOutcome:
    """The outcome of a line in its session, and the evidence for it."""

    outcome: Outcome
    evidence: str = ""


_Texts = TimedTexts[_Moment]


@dataclass
class SessionTexts:
    """Texts of a session: what the agent did, and all from which it may have known what to do."""

    done: _Texts = field(default_factory=_Texts)
    """What the agent gave to its tools, normalised."""
    done_squeezed: _Texts = field(default_factory=_Texts)
    known: _Texts = field(default_factory=_Texts)
    """What the user, the tools and subagents said, squeezed."""
    spoken: _Texts = field(default_factory=_Texts)
    """What the agent itself said, squeezed: an agent that was told a thing may say it before it does it."""
    asked: _Texts = field(default_factory=_Texts)
    """What the user said, squeezed."""
    unseen: list[tuple[_Moment, bytes]] = field(default_factory=list)
    """Fingerprints of texts that are not stored."""
    last_done_at: int = 0
    """When the agent last used a tool."""


def _find_name(texts: _Texts, name: str) -> _Moment | None:
    """Find when a name was first said, not as a part of another; a command where one begins."""
    if name not in texts.joined:
        return None
    before = _COMMAND_START if " " in name else r"(?<![\w-])"
    found = re.search(rf"{before}{re.escape(name)}(?![\w-])", texts.joined)
    return texts.moment_at(found.end() - 1) if found else None


def read_texts(events: Iterable[Event]) -> SessionTexts:
    """Read the events of a session."""
    texts = SessionTexts()
    for number, event in enumerate(sorted(events, key=lambda one: (one.at, one.id))):
        _read_event(event, (event.at, 2 * number), texts)
    return texts


def _normalise(text: str) -> str:
    """Normalise a text for finding names however they are written: in lower case, with one kind of slash."""
    return text.lower().replace("\\", "/")


def _read_event(event: Event, before: _Moment, texts: SessionTexts) -> None:
    payload, after = event.payload, (before[0], before[1] + 1)
    is_own = event.agent is None and event.kind is not EventKind.TOOL_REFUSED
    is_own = is_own and event.tool != "AskUserQuestion"  # speech, not work
    for _, text in list_strings(payload.get("tool_input")):
        if is_own:
            texts.done.add(before, _normalise(text))
            texts.done_squeezed.add(before, squeeze(text))
            texts.last_done_at = max(texts.last_done_at, event.at)
        else:
            texts.known.add(before, squeeze(text))
    for key, text in list_strings([payload.get("tool_response"), payload.get("error")]):
        if key == FINGERPRINT:
            texts.unseen.append((after, read_fingerprint(text)))
        else:
            texts.known.add(after, squeeze(text))
    if cwd := squeeze(text_at(payload, "cwd")):
        texts.known.add((0, 0), cwd)
    is_subagents = event.agent is not None or event.kind is EventKind.SUBAGENT_STOP
    for name in ("prompt", "said", "compact_summary"):
        texts.known.add(after, squeeze(text_at(payload, name)))
    for name in ("prompt", "said"):
        texts.asked.add(after, squeeze(text_at(payload, name)))
    for name in ("text", "last_assistant_message"):
        spoken = texts.known if is_subagents else texts.spoken
        spoken.add(after, squeeze(text_at(payload, name)))


# ── What a line tells, and whether it was used ───────────────────────────────────────────────────


def judge_line(
    line: ToldLine, texts: SessionTexts, count_named: Callable[[str], int]
) -> LineOutcome:
    """Judge the outcome of a line that nobody overruled; `count_named` counts the memories that name something.

    What cannot be seen counts as nothing: a rule that is obeyed leaves no trace, nor does a line without a name, nor
    what was shown when the work was over. A line about what the session worked on may have helped, though something
    else told of it, too.
    """
    if used := find_use(line, texts, count_named):
        return LineOutcome("used", used)
    names = list_names(line) if line.kind not in _RULE_KINDS else []
    is_ignored = (
        bool(names)
        and texts.last_done_at > line.at
        and not any(_find_name(texts.done, one) for one in names)
    )
    return LineOutcome("ignored" if is_ignored else "untraceable")


def find_use(line: ToldLine, texts: SessionTexts, count_named: Callable[[str], int]) -> str:
    """Find what of a line first occurs in what the agent did after it was shown; empty if nothing does."""
    if line.kind is Kind.FAILURE and (cure := _CURE.search(line.text)):
        again = _find_name(texts.done, _normalise(cure[1]))
        if again is not None and again[0] > line.at:
            return ""
    for name in list_names(line):
        at = _find_name(texts.done, name)
        if at and _is_first(name, at, line.at, texts) and count_named(name) <= RARE_MAX:
            return name
    for run in _list_runs(line):
        at = texts.done_squeezed.find(squeeze(run))
        if at and _is_first(run, at, line.at, texts, is_run=True):
            return run
    return ""


def _list_runs(line: ToldLine) -> Iterator[str]:
    """Words in a row of a line, without its names."""
    for part in _NO_WORDS.split(line.text) if line.kind is not Kind.FAILURE else ():
        units = split_units(part)
        for start in range(len(units)):
            # A word has two characters where none stands between blanks.
            length = int(_RUN / weigh_unit(units[start]))
            run = " ".join(units[start : start + length])
            if start + length <= len(units) and len(content_stems(run)) >= _RUN_STEMS_MIN:
                yield run


def list_names(line: ToldLine) -> list[str]:
    """List the names of a line that an agent would write unchanged: files, identifiers, commands, values."""
    text = line.text
    if line.kind is Kind.FAILURE:
        text = cure[2] if (cure := _CURE.search(text)) else ""
    text = text.replace("\\", "/")
    spans = [one.lower() for one in _SPAN.findall(text)]
    found = [
        name
        for name, kind in entities_of_text(text)
        if kind == "file" or (kind == "symbol" and not name.isalpha())
    ]
    for pattern in (_IDENTIFIER, _FLAG, _VALUE, _DIRECTORY, _HOST):
        found += [one.lower() for one in pattern.findall(text)]
    # A plain word is no name, and a command of plain words one that every agent knows.
    is_cure = line.kind is Kind.FAILURE
    found += [one for one in spans if is_cure or _OWN_PART.search(one)]
    return [
        one
        for one in dict.fromkeys(found)
        # Of a path its last name alone says less.
        if len(squeeze(one)) >= _NAME_MIN
        and not any(_is_last_of(one, path) for path in found)
        and not _COMMON_FILE.fullmatch(one)
    ]


def _is_last_of(name: str, path: str) -> bool:
    return path.endswith(f"/{name}")


def _is_asked(unit: str, before: _Moment, texts: SessionTexts) -> bool:
    at = texts.asked.find(unit)
    return at is not None and at < before


def _is_first(
    name: str, used: _Moment, shown_at: int, texts: SessionTexts, *, is_run: bool = False
) -> bool:
    """Return whether the agent can have it from nothing but the line."""
    if used[0] <= shown_at:
        return False
    known, spoken = texts.known.find(squeeze(name)), texts.spoken.find(squeeze(name))
    if (known is not None and known < used) or (spoken is not None and spoken[0] <= shown_at):
        return False
    # A prompt about the sharing workflow leads to `workflow_of_sharing.ts` by itself.
    last = name.rpartition("/")[2] or name
    units = split_units(last.rpartition(".")[0] or last)
    parts = [unit for unit in units if len(unit) >= _PART_MIN] or [squeeze(name)]
    own = [part for part in parts if not _is_asked(part, used, texts)]
    if len(own) < (_RUN_STEMS_MIN if is_run else 1):
        return False
    units = split_units(name)
    is_testable = len(units) >= _FINGERPRINTED
    return not any(
        read < used and not (is_testable and not all(find_known_runs(units, kept)))
        for read, kept in texts.unseen
    )


# ── The worker ──────────────────────────────────────────────────────────────────────────────────

SILENT_MS = 4 * 3_600_000
"""A session without an event for this long has ended, if its client does not say so."""
EVENTS_MAX = 5_000
"""Events of a session that are read."""
REST_S = 60.0
"""Seconds between two looks for sessions that have ended."""
_RETRY_S = 1.0
"""The same while one waits to be distilled: what it said may replace what it was shown."""


class CostMeter:
    """Adds up what memd costs the agents, until it is written."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._pending: dict[tuple[int, str], Cost] = {}

    def add(self, what: str, tokens: int, wait_s: float = 0.0) -> None:
        """Count one thing that an agent got, and how long it waited for it."""
        self._add(self._clock() // DAY_MS, what, Cost(1, tokens, round(wait_s * 1000)))

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
                await db.write_unsynced(partial(usage.add_costs, costs=written))
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
        """Report what agents were shown in the last weeks, its outcomes and its costs."""
        now = self._clock()
        week, *past = await self._db.read(lambda tx: usage.read_weeks(tx, now, weeks))
        return {"weeks": [asdict(one) for one in (self.costs.complete(week), *past)]}

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
    texts = read_texts(events.session_events(tx, session_id, 0, EVENTS_MAX))
    return {
        one.id: LineOutcome("overruled")
        if one.is_rejected or _is_overruled(tx, one)
        else judge_line(
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
