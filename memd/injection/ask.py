"""Ask the agent, seldom, to note what will hold: one line with a prompt, when something worth noting is to be expected.

Only the agent that took part understands an exchange. It is asked when what was said since its last note, or since it
was asked last, is expected to hold more than one thing worth noting; never twice about the same exchange, and less
often in a project where nothing came of it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memd.belief.proof import words_of
from memd.belief.rejections import find_rejected, make_statement
from memd.config import NotesConfig
from memd.distill.episodes import EpisodeContext, Story, read_story
from memd.distill.proving import own_parts
from memd.injection.likelihood import ExchangeForm, estimate
from memd.models import EventKind, Session
from memd.store import events, projects, usage
from memd.store.database import Connection, Database
from memd.text import one_line

EXPECTED_MIN = 1.8
"""Notes to be expected before the agent is asked: some six exchanges of the people that the weights were learned on."""
_EXCHANGES_MIN, _EXCHANGES_MAX = 3, 40
_PAST_ASKS = 5
"""Asks in a project by which it is judged whether anything comes of them."""
_VAIN_WEIGHT = 0.5
"""How much more must be expected for each of these that nothing came of."""
_CHARACTERS_MAX = 400
"""A hundred tokens."""
_REMINDERS_MAX, _REMINDER_CHARACTERS = 2, 60
_REMINDER_WORDS_MIN = 4
_LINE = (
    "memd: since your last note, did anything come up that holds beyond this work? The user's decisions, rules, tastes,"
    " corrections (quote his words); causes and limits that cost time; what he put off. Not what code or docs say,"
    " orders for now, plans. One mem_remember each; if nothing, go on."
)


@dataclass(frozen=True, slots=True)
class AskedExchange:
    """A prompt and what followed it, until the next."""

    event_id: int
    form: ExchangeForm


@dataclass(eq=False)
class Asker:
    """Decides with each prompt whether its agent is asked to note something."""

    db: Database
    config: NotesConfig
    clock: Callable[[], int]

    async def ask(self, client: str, session_key: str, event_id: int | None) -> str | None:
        """The line to show with the prompt that is event `event_id`; None if there is nothing to ask."""
        if self.config.ask == "off" or not session_key:
            return None
        read = await self.db.read(lambda tx: self._consider(tx, client, session_key, event_id))
        if read is None:
            return None
        session, through, line = read
        now = self.clock()
        await self.db.write_unsynced(
            lambda tx: usage.record_ask(tx, session.id, through, len(line), now)
        )
        return line

    def _consider(
        self, tx: Connection, client: str, session_key: str, event_id: int | None
    ) -> tuple[Session, int, str] | None:
        session = projects.session_of_client(tx, client, session_key)
        owner = session and projects.project(tx, session.project_id)
        if session is None or owner is None:
            return None
        if not projects.effective_switch(tx, owner.key, session_key).recalls:
            return None
        since = usage.last_noted(tx, session.id)
        if usage.count_prompts(tx, session.id, since, event_id) < _EXCHANGES_MIN:
            return None
        exchanges = list(_read_exchanges(tx, session.id, since, event_id))[-_EXCHANGES_MAX:]
        vain = usage.count_vain_asks(tx, session.project_id, session.client, _PAST_ASKS)
        expected = sum(estimate(one.form) for one in exchanges)
        if len(exchanges) < _EXCHANGES_MIN or expected < EXPECTED_MIN * (1 + _VAIN_WEIGHT * vain):
            return None
        return session, exchanges[-1].event_id, _write_line(tx, exchanges, owner.id)


def _read_exchanges(
    tx: Connection, session_id: int, since: int, until: int | None
) -> Iterator[AskedExchange]:
    """The exchanges whose prompts are events after `since` and before `until`."""
    found = events.spoken_record(tx, session_id)
    tools = usage.tools_after(tx, session_id, since)
    starts = [one for one in found if one.kind is EventKind.PROMPT and one.id > since]
    for number, prompt in enumerate(starts):
        if prompt.id == until:
            continue
        end = starts[number + 1].at if number + 1 < len(starts) else math.inf
        part = [one for one in found if prompt.at <= one.at < end]
        before = [one for one in found if one.at < prompt.at]
        used = [name for name, at in tools if prompt.at <= at < end]
        story = read_story(part, EpisodeContext())
        if story.prompt:
            yield AskedExchange(
                prompt.id, _measure(story, read_story(before[-1:], EpisodeContext()).answer, used)
            )


def _measure(story: Story, before: str, used: Sequence[str]) -> ExchangeForm:
    said = [one.said.text for one in story.refusals] + [one.answer.text for one in story.questions]
    edits = sum(name.endswith(("Edit", "Write", "apply_patch")) for name in used)
    return ExchangeForm(
        story.prompt,
        " ".join(filter(None, said)),
        story.answer,
        "?" in before[-200:],
        len(used),
        edits,
    )


def _write_line(tx: Connection, exchanges: Sequence[AskedExchange], project_id: int) -> str:
    """The ask, with the user's sentences that are likeliest meant, but for what he rejected when it was noted."""
    likely = sorted(exchanges, key=lambda one: -estimate(one.form))
    sentences = [
        found
        for one in likely
        if (found := _find_reminder(one.form))
        and not find_rejected(tx, make_statement("", found, found, is_agents=True), project_id)
    ]
    said = "; ".join(f"“{text}”" for text in sentences[:_REMINDERS_MAX])
    return f"{_LINE} He said: {said}" if said else _LINE


def _find_reminder(form: ExchangeForm) -> str:
    """The longest sentence that the user typed himself; empty if he said next to nothing."""
    said = form.answered or " ".join(own_parts(form.prompt)[:1])
    return (
        one_line(said, _REMINDER_CHARACTERS) if len(words_of(said)) >= _REMINDER_WORDS_MIN else ""
    )
