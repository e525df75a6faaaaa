"""Ask the agent, seldom, to note something lasting: one line with a prompt, when something worth noting is likely.

Only the agent that took part understands an exchange. It is asked when what was said since its last note, or since it
was asked last, is expected to hold more than one thing worth noting; never twice about the same exchange, and less
often in a project where nothing came of it. What nobody was asked about when a session ended is asked about with the
first prompt of the next one in its project, in the user's own words: they are all that the new session has of it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from memd.belief.rejections import leave_retracted
from memd.config import NotesConfig
from memd.distill.episodes import EpisodeContext, Story, read_story
from memd.injection.learned import LIKELY_MIN, ExchangeForm, SaidSentence, choose_said, estimate
from memd.injection.spoken import may_hold
from memd.models import STATED_KINDS, EventKind, Session
from memd.store import events, projects, session_context, usage
from memd.store.database import Connection, Database
from memd.text import one_line

EXPECTED_MIN = 1.3
"""Notes to be expected before the agent is asked: once in six exchanges of the people that the weights were learned on."""
_EXCHANGES_MIN, _EXCHANGES_MAX = 3, 40
_PAST_ASKS = 5
"""Asks in a project by which it is judged whether anything comes of them: what an agent answers starts anew."""
_VAIN_WEIGHT = 0.5
"""How much more must be expected for each that nothing came of since the last that was answered."""
ASK_TOKENS = 100
"""Of an ask, at most."""
_REMINDERS_MAX, _REMINDER_CHARACTERS = 2, 60
_REMINDERS_READ = 12
_PAST_PART = 0.5
"""Less must be expected of what is about to be out of reach: before a compaction, or in a session that has ended."""
_PAST_SESSIONS, _PAST_SENTENCES_MAX, _PAST_CHARACTERS = 40, 3, 110
"""So many sessions back, as short ones hold little: what they leave adds up until it is worth an ask."""
_KNOWN_MAX = 300
"""Statements of the project with which a sentence is compared: what is noted is not asked about."""
_PAST_AGE_MS = 14 * 86_400_000
"""Older sessions are not asked about: nobody there remembers them, and an imported history is for `memd notes --past`."""
_PAST_LINE = (
    "memd: the user said in earlier sessions here, and nobody noted it: {said}. What of it is a rule, decision, taste or"
    " limit that still holds: mem_remember with those words as quote; else go on."
)
_LINE = (
    "memd: since your last note, what must a session next month act on, or not find out again? The user's decisions, rules,"
    " tastes, corrections (quote him; not how one screen was wanted); causes, limits and properties that took time to find,"
    " mended or not; what he put off. One mem_remember each: usually one for five prompts."
)


@dataclass(frozen=True, slots=True)
class AskedExchange:
    """A prompt and what followed it, until the next."""

    event_id: int
    at: int
    """When it was asked, UTC milliseconds."""
    form: ExchangeForm


@dataclass(frozen=True, slots=True)
class _Ask:
    """A request to an agent to note something; `about`: (session, last prompt) of the exchange."""

    session_id: int
    about: Sequence[tuple[int, int]]
    line: str


@dataclass(eq=False)
class Asker:
    """Decides with each prompt whether its agent is asked to note something."""

    db: Database
    config: NotesConfig
    clock: Callable[[], int]

    async def ask(
        self, client: str, session_key: str, event_id: int | None, *, ends: bool = False
    ) -> str | None:
        """Return the line to show with the prompt or the end of a turn, event `event_id`; None if there is nothing to ask."""
        if self.config.ask != ("stop" if ends else "prompt") or not session_key:
            return None
        read = await self.db.read(
            lambda tx: self._choose_ask(tx, client, session_key, None if ends else event_id)
        )
        if read is None:
            return None
        now = self.clock()
        await self.db.write_unsynced(
            lambda tx: usage.record_ask(tx, read.session_id, read.about, len(read.line), now)
        )
        return read.line

    def _choose_ask(
        self, tx: Connection, client: str, session_key: str, except_id: int | None
    ) -> _Ask | None:
        session = projects.session_of_client(tx, client, session_key)
        owner = session and projects.project(tx, session.project_id)
        if session is None or owner is None:
            return None
        if not projects.effective_switch(tx, owner.key, session_key).recalls:
            return None
        vain = usage.count_vain_asks(tx, session.project_id, session.client, _PAST_ASKS)
        expected_min = EXPECTED_MIN * (1 + _VAIN_WEIGHT * vain)
        if except_id and not usage.count_prompts(tx, session.id, 0, except_id):
            return _consider_past(tx, session, expected_min)
        since = usage.last_noted(tx, session.id)
        if usage.count_prompts(tx, session.id, since, except_id) < _EXCHANGES_MIN:
            return None
        exchanges = list(_read_exchanges(tx, session.id, since, except_id))
        if usage.was_compacted(tx, session.id, since):
            expected_min *= _PAST_PART
        if len(exchanges) < _EXCHANGES_MIN or _estimate_noteworthy(exchanges) < expected_min:
            return None
        about = [(session.id, exchanges[-1].event_id)]
        return _Ask(session.id, about, _write_line(tx, exchanges, session.project_id))


def _estimate_noteworthy(exchanges: Sequence[AskedExchange]) -> float:
    """Estimate how many of these exchanges hold something worth noting."""
    return sum(estimate(one.form) for one in exchanges)


def _consider_past(tx: Connection, session: Session, expected_min: float) -> _Ask | None:
    """Ask in a new session about exchanges of the project's earlier ones that nobody was asked about."""
    about: list[tuple[int, int]] = []
    left: list[AskedExchange] = []
    for past in projects.recent_sessions(
        tx, session.project_id, _PAST_SESSIONS, session.started_at
    ):
        if len(left) >= _EXCHANGES_MAX:
            break
        if past.id == session.id or past.last_event_at < session.started_at - _PAST_AGE_MS:
            continue
        since = usage.last_noted(tx, past.id)
        if not usage.count_prompts(tx, past.id, since, None):
            continue
        exchanges = list(_read_exchanges(tx, past.id, since, None))
        if exchanges:
            about.append((past.id, exchanges[-1].event_id))
            left += exchanges
    if _estimate_noteworthy(left) < expected_min * _PAST_PART:
        return None
    said = _list_reminders(tx, session.project_id, left, _PAST_SENTENCES_MAX, _PAST_CHARACTERS)
    return _Ask(session.id, about, _PAST_LINE.format(said=said)) if said else None


def _read_exchanges(
    tx: Connection, session_id: int, since: int, except_id: int | None
) -> Iterator[AskedExchange]:
    """The latest exchanges whose prompts are events after `since`, but for the prompt that is just being sent."""
    found = events.spoken_record(tx, session_id)
    tools = usage.tools_after(tx, session_id, since)
    starts = [i for i, one in enumerate(found) if one.kind is EventKind.PROMPT and one.id > since]
    for start, end in list(pairwise([*starts, len(found)]))[-_EXCHANGES_MAX:]:
        prompt = found[start]
        if prompt.id == except_id:
            continue
        until = found[end].at if end < len(found) else math.inf
        used = [name for name, at in tools if prompt.at <= at < until]
        story = read_story(found[start:end], EpisodeContext())
        before = read_story(found[:start][-1:], EpisodeContext()).answer
        if story.prompt:
            yield AskedExchange(prompt.id, prompt.at, _measure_story(story, before, used))


def _measure_story(story: Story, before: str, used: Sequence[str]) -> ExchangeForm:
    said = [one.said.text for one in story.refusals] + [one.answer.text for one in story.questions]
    edits = sum(name.endswith(("Edit", "Write", "apply_patch")) for name in used)
    return ExchangeForm(
        story.prompt,
        "\n".join(filter(None, said)),
        story.answer,
        "?" in before[-200:],
        len(used),
        edits,
    )


def _write_line(tx: Connection, exchanges: Sequence[AskedExchange], project_id: int) -> str:
    """Write the request, with the user's sentences that are most likely meant."""
    said = _list_reminders(tx, project_id, exchanges, _REMINDERS_MAX, _REMINDER_CHARACTERS)
    return f"{_LINE} He said: {said}" if said else _LINE


def _list_reminders(
    tx: Connection, project_id: int, exchanges: Sequence[AskedExchange], most: int, characters: int
) -> str:
    """The sentences of these exchanges that are likeliest to hold, cut to this many characters, neither noted nor retracted."""
    said = [
        SaidSentence(answer, one.at)
        for one in reversed(exchanges)
        for answer in (one.form.prompt, *one.form.answered.splitlines())
    ]
    known = session_context.newest_titles(tx, (project_id,), _KNOWN_MAX, STATED_KINDS)
    likely = choose_said(said, known, _REMINDERS_READ, LIKELY_MIN, recency=0)
    told = [(one.at, one.text) for one in likely if may_hold(one.text)]
    wanted = islice(leave_retracted(tx, told, project_id), most)
    return "; ".join(f"“{one_line(text, characters)}”" for text in wanted)
