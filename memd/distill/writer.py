"""A chat model or a program improves the titles and facts of turns, in the background. Only if `distill.writer` says so.

The rules' text is stored first and stays whatever happens here: no model, a slow one, a reply that the
record does not prove, a spent daily budget. What the model writes goes into that one summary and nowhere
else. A turn with anything private in it, or of a project or session that is switched off, is never sent.
What calls may cost and have cost is kept in the vault, so that it outlives a restart.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import anyio
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memd import log
from memd.config import DistillConfig
from memd.distill.own_words import VERBS
from memd.distill.proof.objections import claims_fix
from memd.distill.text import clip, score_quality
from memd.embeddings import ChatModel
from memd.errors import EngineAbsent, EngineFailed
from memd.models import Draft, EventKind, Kind, Summary
from memd.patterns import Table, compile_lazily
from memd.store import events, ledger, links, projects, summaries
from memd.store.database import Connection, Database
from memd.text import PRIVATE, fold, is_stop_word, split_identifier, stem, terms, words
from memd.time_expressions import DAY_MS
from memd.wakeup import AutoResetEvent

"""The budget counts UTC days, and a turn that is older than a day stays as it is."""
TURNS_MAX = 1_000
"""Turns of the last day that one query considers."""
ATTEMPTS_MAX = 2
"""Replies that one turn may cost."""
RETRY_PAUSES_S = (30.0, 60.0, 120.0, 300.0, 900.0)
"""Pauses after failures in a row; the last one repeats."""
_BUDGET_NOTE = "writer"
_BUDGET_SPENT = "today's replies are spent: until tomorrow (UTC) turns stay as the rules wrote them"
_RECORD_CHARACTERS, _REPLY_CHARACTERS = 12_000, 100_000
_JSON_STARTS_MAX = 20
"""Opening braces of a reply at which JSON is looked for."""
_ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"

_TABLE = Table("distill/prompts.toml")
PROMPTS = _TABLE.rows
"""Read at once: the event loop must not wait for a file."""

# ── What calls may cost ───────────────────────────────────────────────────────────────────────────


class WriterCost(BaseModel):
    """The cost of calls of the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int = 0
    failed: int = 0
    """Calls that brought no reply."""
    ms: int = 0
    characters_in: int = 0
    """Characters of all prompts."""
    characters_out: int = 0
    """Characters of all replies."""

    def __add__(self, other: "WriterCost") -> "WriterCost":
        return WriterCost(**{name: value + getattr(other, name) for name, value in self})


class WriterBudget(BaseModel):
    """The calls of one day and of all days, and the turns that were tried."""

    model_config = ConfigDict(frozen=True)

    day: int = 0
    """Days since 1970, UTC."""
    calls: int = 0
    """Calls that count on that day: a call that cost nothing does not."""
    tried: Mapping[int, int] = Field(default_factory=dict)
    """Summary id → the revision that the model was asked about."""
    today: WriterCost = WriterCost()
    ever: WriterCost = WriterCost()

    def on_day_of(self, now: int) -> "WriterBudget":
        """Return the budget on the day of `now`: a new day has cost nothing yet."""
        day = now // DAY_MS
        fresh = {"day": day, "calls": 0, "today": WriterCost()}
        return self if day == self.day else self.model_copy(update=fresh)

    def store(self, tx: Connection, **changed: Any) -> "WriterBudget":
        """Keep it in the vault with these changes."""
        budget = self.model_copy(update=changed)
        ledger.write_note(tx, _BUDGET_NOTE, budget.model_dump_json())
        return budget


def read_budget(tx: Connection, now: int) -> WriterBudget:
    """Read the budget as of `now`; an unreadable one is a new one."""
    try:
        stored = WriterBudget.model_validate_json(ledger.read_note(tx, _BUDGET_NOTE) or "{}")
    except ValidationError:
        stored = WriterBudget()
    return stored.on_day_of(now)


def spend_call(tx: Connection, limit: int, now: int) -> WriterBudget | None:
    """Count one call before it is made; None if the day's calls are spent."""
    budget = read_budget(tx, now)
    return None if budget.calls >= limit else budget.store(tx, calls=budget.calls + 1)


def add_cost(tx: Connection, cost: WriterCost, now: int, *, is_refunded: bool) -> WriterBudget:
    """Add what a call has cost; one that `is_refunded` does not count for the day's limit."""
    budget = read_budget(tx, now)
    calls = max(budget.calls - is_refunded, 0)
    return budget.store(tx, calls=calls, today=budget.today + cost, ever=budget.ever + cost)


def mark_tried(tx: Connection, turn: Summary, now: int) -> WriterBudget:
    """Do not ask about this revision of the turn again; forget turns that are out of reach."""
    budget = read_budget(tx, now)
    open_turns = {id_ for id_, _ in summaries.rewritable_turns(tx, now - DAY_MS, now, TURNS_MAX)}
    tried = {**budget.tried, turn.id: turn.revisions}
    return budget.store(tx, tried={k: v for k, v in tried.items() if k in open_turns})


async def call_model(  # the call, and where its cost is kept
    db: Database,
    model: ChatModel,
    task: str,
    prompt: str,
    clock: Callable[[], int],
    *,
    is_refundable: bool = False,
) -> str:
    """Return the model's reply to a task of `prompts.toml`, and add up what it has cost. Raises EngineFailed.

    `is_refundable`: the call was counted by `spend_call`, and does not count if it cost nothing.
    """
    started, given = anyio.current_time(), PROMPTS[task]
    system = " ".join(given["system"].split())
    cost = {"calls": 1, "characters_in": len(system) + len(prompt)}
    is_free = False
    try:
        reply = await model.complete(system, prompt, json.loads(given["schema"]))
        cost["characters_out"] = len(reply)
    except EngineFailed as error:
        is_absent = isinstance(error, EngineAbsent)
        is_free = is_absent or not model.charges_failures
        cost = {} if is_absent else {**cost, "failed": 1}
        raise
    finally:
        paid = WriterCost(**cost, ms=round((anyio.current_time() - started) * 1000))
        with anyio.CancelScope(shield=True):
            add = partial(add_cost, cost=paid, now=clock(), is_refunded=is_free and is_refundable)
            await db.write(add)
    return reply


# ── What a reply may say ──────────────────────────────────────────────────────────────────────────

_THINKING = compile_lazily(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_IDENTIFIER_OR_PATH = compile_lazily(r"\d|_|[a-z][A-Z]|\w\.\w|/\w|\w/|^--?\w|\w@\w")
_EDGES = "`'\"“”‘’«»()[]{}<>,.;:!?*"
_POSSESSIVE = compile_lazily(r"['’]s$")
_NUMBER = compile_lazily(r"\d+(?:\.\d+)*")
_QUOTED = compile_lazily(r"`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»")
_SENTENCE_END = (".", "!", "?", ":", "…")
_EVERYDAY_ENDINGS = ("ed", "ing", "tion", "sion", "ment", "ly")
_EVERYDAY_STEMS = frozenset(map(stem, (*VERBS, "error", "cause", "failure", "now")))
"""Words about any work at all: with a capital, they are still no names."""
_Line = Annotated[str, StringConstraints(strip_whitespace=True, pattern=_ONE_LINE)]


class TurnText(BaseModel):
    """A title and facts that the record proves."""

    model_config = ConfigDict(frozen=True)

    title: Annotated[_Line, Field(min_length=3, max_length=90)]
    facts: tuple[Annotated[_Line, Field(min_length=1, max_length=240)], ...] = Field(
        (), max_length=8
    )


@dataclass(frozen=True, slots=True)
class ReplyRefused:
    """The reason that a reply cannot be used, in words that the model may be shown."""

    reason: str


def parse_reply(  # noqa: PLR0911  # a list of cases, in order
    reply: str, record: str, redact: Callable[[str], str] = str
) -> TurnText | ReplyRefused:
    """Return the title and facts of a reply if the record has every name, number and quotation in them.

    A secret refuses it before anything is said of its words: the reason is shown and logged. One invention refuses the
    whole reply, since no later check could tell which half is true; so does an instruction to the reader, and a line with
    more new words than words of the record. Whether true words were combined truly cannot be checked.
    """
    value = find_object(reply)
    if value is None:
        return ReplyRefused("it is not a JSON object")
    try:
        text = TurnText.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        return ReplyRefused(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    lines = (text.title, *text.facts)
    if any(redact(line) != line for line in lines):
        return ReplyRefused("it has what looks like a secret")
    if any(map(_TABLE["orders"].search, lines)):
        return ReplyRefused("it gives instructions, where it should tell what happened")
    proof = _RecordWords(record)
    if invented := next((word for line in lines for word in proof.find_invented(line)), ""):
        return ReplyRefused(f"the record does not say “{invented}”")
    if strange := next((line for line in lines if proof.is_mostly_new(line)), ""):
        return ReplyRefused(f"the record does not speak of this: “{strange}”")
    return text.model_copy(update={"facts": tuple(dict.fromkeys(text.facts))})


def find_object(reply: str) -> dict[str, Any] | None:
    """Return the first JSON object in a reply, without any thoughts, prose and fences around it."""
    text = _THINKING.sub("", reply[:_REPLY_CHARACTERS])
    decoder = json.JSONDecoder()
    start = -1
    for _ in range(_JSON_STARTS_MAX):
        start = text.find("{", start + 1)
        if start < 0:
            return None
        with contextlib.suppress(ValueError, RecursionError):
            value, _end = decoder.raw_decode(text, start)
            if isinstance(value, dict):
                return value
    return None


class _RecordWords:
    """The words, names and numbers of a record, by which a reply is checked."""

    def __init__(self, record: str) -> None:
        self._folded = " ".join(fold(record).split())
        tokens = words(record)
        self._stems = {term for token in tokens for term in terms(token)}
        counted = (_read_numeral(token) for token in tokens)
        self._numbers = {"", *_NUMBER.findall(record), *counted}

    def find_invented(self, line: str) -> Iterator[str]:
        """Yield the numbers, identifiers, paths, names and quotations that the record does not have."""
        for match in _QUOTED.finditer(line):
            quoted = next(group for group in match.groups() if group)
            if not self._has_phrase(quoted.strip(_EDGES + " ")):
                yield quoted
        is_first = True  # the first word of a sentence has a capital anyway
        for token in line.split():
            bare = _POSSESSIVE.sub("", token.strip(_EDGES))
            if not self._has_name(bare, is_first=is_first):
                yield bare
            is_first = token.rstrip("\"'”»)*").endswith(_SENTENCE_END)

    def is_mostly_new(self, line: str) -> bool:
        """Return whether more of its words are new than the record says; words about any work count for neither."""
        said = [
            self._has_stem(word)
            for word in words(line)
            if not is_stop_word(word) and (self._has_stem(word) or not _is_everyday(word))
        ]
        return said.count(False) > said.count(True)

    def _has_phrase(self, text: str) -> bool:
        """Return whether the record has this phrase, whatever the case and the spacing."""
        wanted = " ".join(fold(text).split())
        return bool(re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", self._folded))

    def _has_name(self, bare: str, *, is_first: bool) -> bool:
        """Return whether the record has a word, if it is a number or a name."""
        folded = fold(bare)
        if not self._numbers.issuperset([*_NUMBER.findall(bare), _read_numeral(bare)]):
            return False
        if folded not in ("e.g", "i.e") and _IDENTIFIER_OR_PATH.search(bare):
            return self._has_phrase(bare) or self._has_parts(bare)
        return not bare[:1].isupper() or all(
            self._has_stem(word)
            or is_stop_word(word)
            or _is_everyday(word)
            or (is_first and not word.isupper() and fold(word).endswith(_EVERYDAY_ENDINGS))
            for word in words(bare)
        )

    def _has_parts(self, bare: str) -> bool:
        """Return whether this only puts words of the record side by side: `client/server`, `3-part`."""
        parts = words(bare)
        is_path = bare.startswith(("/", "-")) or bare.count("/") > 1
        is_name = any(mark in bare for mark in "._@") or any(
            len(split_identifier(part)) > 1 for part in parts
        )
        is_joined = len(parts) > 1 and not is_path and not is_name
        return is_joined and all(is_stop_word(part) or self._has_stem(part) for part in parts)

    def _has_stem(self, word: str) -> bool:
        found = terms(word)
        return not found or found[0] in self._stems


def _read_numeral(word: str) -> str:
    """The digits of a word that counts; empty for any other."""
    return str(PROMPTS["numerals"].get(fold(word), ""))


def _is_everyday(word: str) -> bool:
    return stem(fold(word)) in _EVERYDAY_STEMS


def converse(
    turn: Draft | Summary, redact: Callable[[str], str] = str
) -> Generator[str, str, TurnText | ReplyRefused]:
    """Yield prompts, receive replies, and return what can be used or why the last reply cannot.

    The record is a JSON string in the prompt, so that no text in it can close its own fence.
    """
    record = clip(f"{turn.title}\n{turn.body}", _RECORD_CHARACTERS)
    asked = prompt = "The record, as a JSON string:\n" + json.dumps(record, ensure_ascii=False)
    found: TurnText | ReplyRefused = ReplyRefused("it was not asked")
    for _ in range(ATTEMPTS_MAX):
        found = parse_reply((yield asked), record, redact)
        if isinstance(found, TurnText):
            claims = map(claims_fix, (found.title, *found.facts))
            if turn.kind is Kind.FIX or not any(claims):
                return found
            found = ReplyRefused("nothing proves that it is fixed: say what was changed instead")
        asked = f"{prompt}\n\nYour last answer was not usable: {found.reason}."
    return found


# ── The worker ────────────────────────────────────────────────────────────────────────────────────


def find_next_turn(
    tx: Connection, now: int, idle_ms: int, failures: Mapping[int, int]
) -> tuple[int, Summary | None]:
    """Return (turns waiting, next turn): the newest that is over and was not tried.

    Turns that failed less often come first.
    """
    tried = read_budget(tx, now).tried
    open_turns = summaries.rewritable_turns(tx, now - DAY_MS, now, TURNS_MAX)
    waiting = [id_ for id_, revision in open_turns if tried.get(id_) != revision]
    for id_ in sorted(waiting, key=lambda id_: failures.get(id_, 0)):
        turn = summaries.get_summary(tx, id_)
        if turn is not None and _may_be_sent(tx, turn, now, idle_ms):
            return len(waiting), turn
    return 0, None


def _may_be_sent(tx: Connection, turn: Summary, now: int, idle_ms: int) -> bool:
    """Return whether the turn is over, and nothing in it is private or switched off."""
    ids = [event_id for event_id, _ in links.sources_of(tx, turn.id)]
    sources = list(events.events_by_ids(tx, ids).values())
    is_over = now - turn.at >= idle_ms or any(e.kind is EventKind.STOP for e in sources)
    texts = (turn.title, turn.body, *(json.dumps(e.payload, ensure_ascii=False) for e in sources))
    if not is_over or any(PRIVATE in text for text in texts):
        return False
    project = projects.project(tx, turn.project_id)
    session = projects.session(tx, turn.session_id or 0)
    key = session.key if session else None
    return project is not None and projects.effective_switch(tx, project.key, key).captures


def apply_text(tx: Connection, turn: Summary, text: TurnText, model: str, now: int) -> bool:
    """Put the model's text above the rules' own; False if the turn has changed meanwhile."""
    facts = "".join(f"- {fact}\n" for fact in text.facts)
    body = f"Learnt:\n{facts}\n{turn.body}" if facts else turn.body
    quality = max(turn.quality, score_quality(body))
    new = summaries.TurnRewrite(turn.id, turn.revisions, text.title, body, quality, model)
    return summaries.rewrite_turn(tx, new, now)


@dataclass(eq=False)
class TurnWriter:
    """Improves the newest turns, one at a time."""

    db: Database
    model: ChatModel
    config: DistillConfig
    clock: Callable[[], int]
    """Returns UTC milliseconds."""
    on_written: Callable[[], None]
    """Called after a summary has changed."""
    redact: Callable[[str], str] = field(kw_only=True)
    """A reply that it would change is refused."""
    pauses_s: tuple[float, ...] = RETRY_PAUSES_S
    name: str = "rewriter"
    _wakeup: AutoResetEvent = field(default_factory=AutoResetEvent)
    _budget: WriterBudget = field(default_factory=WriterBudget)
    _waiting: int = 0
    _outcomes: Counter[str] = field(default_factory=Counter)
    _failures: Counter[int] = field(default_factory=Counter)
    _failures_in_a_row: int = 0
    _why: str = ""
    _obstacle: str = ""

    async def run(self) -> None:
        """Improve turns until cancelled; sleep when there is none, or after a failure."""
        while True:
            self._obstacle = await self.model.find_obstacle()
            outcome = await self.write_next()
            if outcome == "failed":
                await anyio.sleep(self.pauses_s[: self._failures_in_a_row][-1])
            elif outcome is None:
                await self._wakeup.wait(self.config.interval_s)

    def nudge(self) -> None:
        """Look for a new turn now."""
        self._wakeup.set()

    def status(self) -> dict[str, object]:
        """Return what `memd status` shows of this worker; `why` is the reason of the last failure."""
        budget = self._budget.on_day_of(self.clock())
        return {
            **{name: self._outcomes[name] for name in ("written", "refused", "failed")},
            "left_today": max(self.config.writer_daily - budget.calls, 0),
            "waiting": self._waiting,
            "spent_today": budget.calls,
            "failures_in_a_row": self._failures_in_a_row,
            "today": budget.today.model_dump(),
            "ever": budget.ever.model_dump(),
            "model": self.model.name,
            "obstacle": self._obstacle,
            "why": self._obstacle or self._why,
        }

    async def write_next(self) -> str | None:
        """Improve one turn: `written`, `refused`, `changed` or `failed`; None if nothing can be done now."""
        idle_ms = self.config.idle_s * 1000
        find = partial(find_next_turn, now=self.clock(), idle_ms=idle_ms, failures=self._failures)
        self._waiting, turn = await self.db.read(find)
        outcome = None
        if turn is not None:
            outcome, self._why = await self._improve(turn)
        if turn and outcome:
            self._outcomes[outcome] += 1
            log.get(self.name).info(
                "turn_written_up", summary=turn.id, outcome=outcome, why=self._why
            )
            self._why = f"#{turn.id} {outcome}: {self._why}" if self._why else ""
        self._budget = await self.db.read(partial(read_budget, now=self.clock()))
        return outcome

    async def _improve(self, turn: Summary) -> tuple[str | None, str]:
        """Have the model write one turn; (outcome, why it is not written)."""
        try:
            found = await self._ask_model(turn)
        except EngineFailed as error:
            self._failures[turn.id] += 1
            self._failures_in_a_row += 1
            return "failed", error.message
        if found is None:
            return None, _BUDGET_SPENT
        self._failures_in_a_row = self._failures[turn.id] = 0
        now = self.clock()
        if isinstance(found, ReplyRefused):
            await self.db.write(partial(mark_tried, turn=turn, now=now))
            return "refused", found.reason
        put = partial(apply_text, turn=turn, text=found, model=self.model.name, now=now)
        if not await self.db.write(put):
            return "changed", ""
        self.on_written()
        return "written", ""

    async def _ask_model(self, turn: Summary) -> TurnText | ReplyRefused | None:
        """Drive the conversation about a turn; None if the day's replies are spent before its end."""
        with contextlib.closing(converse(turn, self.redact)) as conversation:
            prompt = next(conversation)
            spend = partial(spend_call, limit=self.config.writer_daily)
            while await self.db.write(partial(spend, now=self.clock())):
                reply = await call_model(
                    self.db, self.model, "writer", prompt, self.clock, is_refundable=True
                )
                try:
                    prompt = conversation.send(reply)
                except StopIteration as end:
                    found: TurnText | ReplyRefused = end.value
                    return found
        return None
