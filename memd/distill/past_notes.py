"""Have a model read past sessions, a stretch at a time, and note what will hold. Only when the user asks for it.

The model proposes; the record decides whose word a note is, as it does for an agent's. What is private, or of a
project or session that is switched off, is never sent. Each stretch that was read is remembered in the vault, so a
later run goes on there; one whose answer was of no use is kept to be read again.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memd.distill.episodes import EpisodeContext, read_story
from memd.distill.proving import list_said, list_spoken
from memd.distill.text import clip
from memd.distill.writer import PROMPTS, call_model, find_object
from memd.embeddings import ChatModel
from memd.models import AGENTS_IMPORT, Event, EventKind, Session
from memd.store import events, ledger, projects
from memd.store.database import Connection, Database
from memd.text import PRIVATE

SOURCE = "import:past-sessions"
"""The source of these notes: what was forgotten on purpose is not brought back by them."""
_STRETCH_CHARACTERS = 12_000
_SAID_CHARACTERS = 2_000
_NOTES_MAX = 12
_IDLE_MS = 600_000
"""A session is past when nothing has happened in it for so long."""
_META_KEY = "past_notes"
_KINDS = Literal["decision", "preference", "instruction", "fact", "discovery", "task"]


class WrittenNote(BaseModel):
    """A note as the model writes it."""

    model_config = ConfigDict(frozen=True)

    text: Annotated[str, Field(min_length=3, max_length=600)]
    kind: _KINDS = "fact"
    quote: Annotated[str, Field(max_length=1_000)] = ""
    about: Annotated[str, Field(max_length=1_000)] = ""
    why: Annotated[str, Field(max_length=200)] = ""
    where: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=10)] = ()  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a session that one call reads; `first` and `last` are (time, event) of its ends."""

    session: Session
    project_key: str
    first: tuple[int, int]
    last: tuple[int, int]
    record: str


class PastState(BaseModel):
    """The stretches that were read, as the vault keeps them."""

    model_config = ConfigDict(frozen=True)

    through: Mapping[str, tuple[int, int]] = Field(default_factory=dict)
    """Session → (time, event) up to which it was read."""
    failed: tuple[tuple[int, int, int, int, int], ...] = ()
    """(session, time, event, time, event) of each stretch whose answer was of no use."""

    @classmethod
    def read(cls, tx: Connection) -> "PastState":
        """Read what was read; an unreadable state is a new one."""
        try:
            return cls.model_validate_json(ledger.read_note(tx, _META_KEY) or "{}")
        except ValidationError:
            return cls()

    def write(self, tx: Connection) -> None:
        """Keep it in the vault."""
        ledger.write_note(tx, _META_KEY, self.model_dump_json())

    def add(self, one: Stretch, *, is_useless: bool) -> "PastState":
        """Return the state in which a stretch was read, too."""
        key = str(one.session.id)
        reached = max(self.through.get(key, (0, 0)), one.last)
        failed = ((one.session.id, *one.first, *one.last),) if is_useless else ()
        return PastState(through={**self.through, key: reached}, failed=self.failed + failed)

    def retry_failed(self) -> "PastState":
        """Return the state in which each session is read from the first stretch on that was read in vain."""
        through = dict(self.through)
        for session, at, event, *_ in self.failed:
            through[str(session)] = min(through.get(str(session), (at, event)), (at, event - 1))
        return PastState(through=through)


Remember = Callable[[WrittenNote, Stretch], Awaitable[tuple[str, bool, str]]]
"""Stores a note of a stretch; (what became of it, whether it is the user's word, why it was refused)."""


@dataclass(eq=False)
class PastReader:
    """Reads past sessions on request."""

    db: Database
    model: ChatModel
    remember: Remember
    clock: Callable[[], int]
    _reading: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while a stretch is read: one at a time, whoever asks."""

    async def plan(self, project_ids: Sequence[int] | None, *, again: bool) -> dict[str, Any]:
        """Say what would be sent, without sending anything; None: of every project.

        `again`: what was read in vain, too. `failed`: such stretches; `listed`: (key, start, title, calls) of each
        session, in the order of reading.
        """
        waiting, failed = await self._list_waiting(project_ids, again=again)
        calls = Counter(one.session for one in waiting)
        told = len(" ".join(PROMPTS["past"]["system"].split()))
        return {
            "sessions": len(calls), "calls": len(waiting), "failed": failed,
            "characters": sum(len(one.record) + told for one in waiting),
            "listed": [(one.key, one.started_at, one.title, count) for one, count in calls.items()],
            "model": self.model.name, "obstacle": await self.model.find_obstacle(),
        }  # fmt: skip

    async def retry_failed(self) -> None:
        """Let what was read in vain be read again."""
        await self.db.write(lambda tx: PastState.read(tx).retry_failed().write(tx))

    async def read_next(self, project_ids: Sequence[int] | None) -> dict[str, Any] | None:
        """Read the next stretch, and say what came of it; None if there is none. Raises EngineFailed: then it is still the next.

        `problems`: parts of the answer that were of no use.
        """
        async with self._reading:
            waiting, _ = await self._list_waiting(project_ids, again=False)
            if not waiting:
                return None
            stretch = waiting[0]
            prompt = "The record, as a JSON string:\n" + stretch.record
            reply = await call_model(self.db, self.model, "past", prompt, self.clock)
            notes, problems = parse_notes(reply)
            outcomes: Counter[str] = Counter()
            proved = 0
            for note in notes:  # one that is refused costs no other
                outcome, is_users, problem = await self.remember(note, stretch)
                outcomes[outcome] += 1
                proved += is_users
                problems += [problem] if problem else []
            is_useless = not notes and bool(problems)
            await self.db.write(
                lambda tx: PastState.read(tx).add(stretch, is_useless=is_useless).write(tx)
            )
            return {
                "session": stretch.session.key, "outcomes": outcomes, "proved": proved,
                "problems": problems, "left": len(waiting) - 1,
            }  # fmt: skip

    async def _list_waiting(
        self, project_ids: Sequence[int] | None, *, again: bool
    ) -> tuple[list[Stretch], int]:
        """The stretches of past sessions that were not read yet, and how many were read in vain."""
        until = self.clock() - _IDLE_MS

        def read(tx: Connection) -> tuple[list[Stretch], int]:
            stored = PastState.read(tx)
            state = stored.retry_failed() if again else stored
            found = [
                stretch
                for project in projects.projects(tx)
                if project_ids is None or project.id in project_ids
                for session in projects.sessions_since(tx, project.id, 0)
                if session.last_event_at <= until
                and projects.effective_switch(tx, project.key, session.key).captures
                for stretch in _cut_into_stretches(tx, session, project.key, state)
            ]
            return found, len(stored.failed)

        return await self.db.read(read)


def _cut_into_stretches(
    tx: Connection, session: Session, project_key: str, state: PastState
) -> Iterator[Stretch]:
    """Yield the stretches of a session that were not read yet; the last one only if the user speaks in it."""
    reached = state.through.get(str(session.id), (0, 0))
    story = read_story(
        list(_list_sendable_events(events.spoken_record(tx, session.id))), EpisodeContext()
    )
    said = [((one.at, one.event_id), "user", one.asked, one.whole) for one in list_said(story)]
    said += [((one.at, one.event_id), "agent", "", one.text) for one in list_spoken(story)]
    parts: list[list[tuple[tuple[int, int], dict[str, str]]]] = [[]]
    size = 0
    for place, who, asked, text in sorted(said):
        if place <= reached or not text.strip():
            continue
        line = {"who": who, "said": clip(text, _SAID_CHARACTERS)} | ({"asked": asked} if asked else {})  # fmt: skip
        if size + len(line["said"]) > _STRETCH_CHARACTERS and place != parts[-1][-1][0]:
            parts.append([])
            size = 0
        parts[-1].append((place, line))
        size += len(line["said"])
    if not any(line["who"] == "user" for _, line in parts[-1]):
        parts.pop()
    for part in parts:
        record = json.dumps([line for _, line in part], ensure_ascii=False)
        yield Stretch(session, project_key, part[0][0], part[-1][0], record)


def _list_sendable_events(record: Sequence[Event]) -> Iterator[Event]:
    """Yield the events of a session's record without the turns in which anything is private, and without an agent's imports."""
    turns: list[list[Event]] = [[]]
    for event in record:
        if event.kind is EventKind.PROMPT:
            turns.append([])
        turns[-1].append(event)
    for turn in turns:
        if not any(PRIVATE in json.dumps(e.payload, ensure_ascii=False) for e in turn):
            yield from (event for event in turn if event.source != AGENTS_IMPORT)


def parse_notes(reply: str) -> tuple[list[WrittenNote], list[str]]:
    """Return the notes of a reply, and what of it cannot be used."""
    value = find_object(reply)
    listed = value.get("notes") if value is not None else None
    if not isinstance(listed, list):
        return [], ["the answer is not the JSON object that was asked for"]
    notes, problems = [], []
    for number, one in enumerate(listed[:_NOTES_MAX], start=1):
        try:
            notes.append(WrittenNote.model_validate(one))
        except ValidationError as error:
            first = error.errors()[0]
            problems.append(f"note {number}: {'.'.join(map(str, first['loc']))}: {first['msg']}")
    if len(listed) > _NOTES_MAX:
        problems.append(f"more than {_NOTES_MAX} notes; the rest is left out")
    return notes, problems
