"""Record of a session's speech from its events: words of the user, of the agent, and of its tools' outputs."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import comb, inf
from typing import Any, Generic, TypeVar

from memd.capture.truncate import (
    FINGERPRINT,
    ROOTS_MIN,
    chance_of_run,
    count_linked_min,
    find_known_runs,
    is_retold,
    list_roots,
    read_fingerprint,
    squeeze,
)
from memd.distill.edits import EDIT_TOOLS, text_at
from memd.distill.episodes import EpisodeContext, ShellCommand, Story, read_story
from memd.distill.proof.checks import is_failing
from memd.distill.proof.shell import parse_line
from memd.distill.proving import own_parts
from memd.machine_text import is_markup
from memd.models import Event, EventKind
from memd.patterns import compile_lazily
from memd.store import events
from memd.store.database import Connection

Moment = TypeVar("Moment", bound=Any)
CHANCE_MAX = 0.001
"""Of the chance that a text's runs of words stand in fingerprints of others: from here on it may be chance."""
CERTAIN_MIN = 5
"""Words in a row that no fingerprint has by chance."""
_PLACES_MAX = 100
"""Places of each word of a sentence that are looked at."""
EVENTS_MAX = 20_000
"""Events of a session that are read."""
_SPOKEN_FIELDS = ("text", "last_assistant_message", "compact_summary")
_PATH_KEYS = frozenset({"file_path", "notebook_path", "path", "filePath", "pattern", "url"})
"""What a tool was given that is a name of something, and no word of the agent's."""
_PROSE_SUFFIXES = ("md", "mdx", "txt", "rst", "adoc", "sh", "bash", "ps1", "bat", "html")
"""Files in which a command may stand that nobody ran."""
_FILE_WITH_SPACES = compile_lazily(r"[\"']([^\"'\n]*\s[^\"'\n]*\.\w{1,5})[\"']")


@dataclass
class TimedTexts(Generic[Moment]):
    """Texts in order of time, to find when something was first said."""

    _texts: list[str] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _moments: list[Moment] = field(default_factory=list)
    _length: int = 0
    _joined: str | None = None

    def add(self, moment: Moment, text: str) -> None:
        """Add what was said then."""
        if text:
            self._texts.append(text)
            self._starts.append(self._length)
            self._moments.append(moment)
            self._length += len(text) + 1
            self._joined = None

    @property
    def joined(self) -> str:
        """All of it."""
        if self._joined is None:
            self._joined = "\n".join(self._texts)
        return self._joined

    def moment_at(self, place: int) -> Moment:
        """Return when what stands at this place of all of it was said."""
        return self._moments[bisect_right(self._starts, place) - 1]

    def find(self, sought: str) -> Moment | None:
        """Return when it was first said; None if never."""
        place = self.joined.find(sought)
        return None if place < 0 else self.moment_at(place)


class _SqueezedTexts(TimedTexts[float]):
    """The same without spaces, signs and case."""

    def add(self, moment: float, text: str) -> None:
        """Add what was said then."""
        super().add(moment, squeeze(text))

    def find_near(self, roots: Sequence[str], width: int) -> float | None:
        """Return when most of these words were first said within this many letters; None if never."""
        joined, needed = self.joined, count_linked_min(roots) + 1
        found: list[float] = []
        # Where enough of them stand, one of the first `len - needed + 1` does.
        for sought in roots[: len(roots) - needed + 1]:
            at = -1
            for _ in range(_PLACES_MAX):
                if (at := joined.find(sought, at + 1)) < 0:
                    break
                near = joined[max(0, at - width) : at + width]
                if sum(root in near for root in roots) >= needed:
                    found.append(self.moment_at(at))
                    break
        return min(found, default=None)


@dataclass
class SessionRecord:
    """Record of a session's speech, as far as its events are stored."""

    typed: _SqueezedTexts = field(default_factory=_SqueezedTexts)
    """What the user said himself."""
    own: _SqueezedTexts = field(default_factory=_SqueezedTexts)
    """What the agent said, and gave to its tools."""
    outside: _SqueezedTexts = field(default_factory=_SqueezedTexts)
    """What tools, files, pages and subagents said."""
    code: _SqueezedTexts = field(default_factory=_SqueezedTexts)
    """What the agent wrote into files of code."""
    fingerprints: list[tuple[float, bytes]] = field(default_factory=list)
    """Of the files that were read."""
    commands: list[ShellCommand] = field(default_factory=list)
    """What the agent ran."""

    @cached_property
    def runs(self) -> list[tuple[str, ...]]:
        """The words of the commands that succeeded; most texts need none of them."""
        succeeded = (
            c for c in self.commands if not (c.failed or c.is_interrupted or is_failing(c))
        )
        return [one.words for command in succeeded for one in parse_line(command.command)]

    def is_typed(self, text: str) -> bool:
        """Return whether the user said it."""
        flat = squeeze(text)
        return bool(flat) and self.typed.find(flat) is not None

    def find_sources(self, units: Sequence[str]) -> list[tuple[float, bytes]]:
        """The fingerprints that have more of a text's runs of words than chance gives one of this many.

        A filter has one run in sixty by chance, so of a hundred files that a session has read most short sentences
        have a run in some.
        """
        runs, kept = max(1, len(units) - 2), []
        for at, one in self.fingerprints:
            known = sum(find_known_runs(units, one)) if one else 0
            if known:
                chance = len(self.fingerprints) * comb(runs, known) * chance_of_run(one) ** known
                kept += [(at, one)] if chance < CHANCE_MAX else []
        return kept

    def is_outside(
        self, units: Sequence[str], sources: Sequence[tuple[float, bytes]] | None = None
    ) -> bool:
        """Return whether a tool output these words before the agent wrote them; of fingerprints only `sources`, if given."""
        run = "".join(units)
        own = self.own.find(run)
        before = inf if own is None else own
        said = self.outside.find(run)
        is_said = said is not None and said < before
        # A command's output may say again what was read before the agent put it into the command. Of many
        # fingerprints one has three words in a row by chance.
        if said is None or (not is_said and len(units) >= CERTAIN_MIN):
            told = self.fingerprints if sources is None else sources
            is_said = any(at < before and _has_run(units, kept) for at, kept in told)
        return is_said and self.typed.find(run) is None

    def is_retold(self, units: Sequence[str]) -> bool:
        """Return whether a tool output a sentence of these words before the agent, in slightly other words."""
        typed = {
            at + near
            for at in range(len(units) - 2)
            if self.typed.find("".join(units[at : at + 3])) is not None
            for near in range(3)
        }
        roots = list_roots([unit for at, unit in enumerate(units) if at not in typed])
        if sum(self.typed.find(one) is None for one in roots) < ROOTS_MIN - 1:
            return False
        width = len("".join(units))
        own = self.own.find_near(roots, width)
        before = inf if own is None else own
        said = self.outside.find_near(roots, width)
        if said is not None and said < before:
            return True
        return any(at < before and is_retold(roots, kept) for at, kept in self.fingerprints)

    def has_word(self, word: str) -> bool:
        """Return whether the user typed a word, or the agent gave it to a command that succeeded."""
        return self.is_typed(word) or any(word in run for run in self.runs)

    def has_run(self, line: str) -> bool:
        """Return whether each command of a line is one that the agent ran, or its beginning."""
        commands = parse_line(line.lstrip("$ "))
        return bool(commands) and all(
            any(run[: len(one.words)] == one.words for run in self.runs) for one in commands
        )


def _has_run(units: Sequence[str], fingerprint: bytes) -> bool:
    return bool(fingerprint) and len(units) > 2 and all(find_known_runs(units, fingerprint))  # noqa: PLR2004  # runs of three


# ── Reading a session ────────────────────────────────────────────────────────────────────────────


def read_record(tx: Connection, session_ids: Sequence[int]) -> SessionRecord | None:
    """The record of a session, or of several as if they were one; None if the vault has no event of them."""
    told = [events.session_events(tx, number, 0, EVENTS_MAX) for number in session_ids]
    return make_record(*told) if any(told) else None


def make_record(*sessions: Sequence[Event]) -> SessionRecord:
    """The record that the events of these sessions give, each in order of time."""
    record = SessionRecord()
    told = [event for session in sessions for event in session]
    for number, event in enumerate(sorted(told, key=lambda one: (one.at, one.id))):
        _read_event(event, float(number), record)
    for session in sessions:
        _read_typed(read_story(session, EpisodeContext()), record)
    return record


def _read_event(event: Event, order: float, record: SessionRecord) -> None:
    payload = event.payload
    is_subagents = event.kind is EventKind.SUBAGENT_STOP or event.agent is not None
    for key, text in list_strings(payload.get("tool_input")):
        (record.outside if key in _PATH_KEYS else record.own).add(order - 0.5, text)
    for name in _SPOKEN_FIELDS:
        (record.outside if is_subagents else record.own).add(order, text_at(payload, name))
    for key, text in list_strings([payload.get("tool_response"), payload.get("error")]):
        if key == FINGERPRINT:
            record.fingerprints.append((order, read_fingerprint(text)))
        elif event.tool != "AskUserQuestion":
            record.outside.add(order, text)
    if prompt := text_at(payload, "prompt"):
        _read_pasted(prompt, order, record)
    if event.kind is EventKind.TOOL_RESULT and event.tool in EDIT_TOOLS:
        _add_written_code(payload.get("tool_input"), order, record)


def _read_pasted(prompt: str, order: float, record: SessionRecord) -> None:
    """Record a prompt's text besides the user's own sentences like the output of a tool."""
    typed = "" if is_markup(prompt) else squeeze(" ".join(own_parts(prompt)))
    for line in prompt.splitlines():
        if squeeze(line) not in typed:
            record.outside.add(order, line)


def _add_written_code(given: Any, order: float, record: SessionRecord) -> None:
    path = next((text for key, text in list_strings(given) if key in _PATH_KEYS), "")
    name = path.rpartition("/")[2]
    _, dot, suffix = name.lower().rpartition(".")
    # Makefile, Dockerfile, Gemfile; but neither README nor a script.
    if suffix not in _PROSE_SUFFIXES if dot else suffix.endswith("file"):
        for key, text in list_strings(given):
            if key not in _PATH_KEYS and not key.startswith("old"):
                record.code.add(order, text)


def _read_typed(story: Story, record: SessionRecord) -> None:
    for said in story.prompts:
        record.typed.add(0, " ".join(own_parts(said.text)))
    for said in (*(r.said for r in story.refusals), *(q.answer for q in story.questions)):
        record.typed.add(0, said.text)
    record.commands += story.commands
    for command in story.commands:
        for found in _FILE_WITH_SPACES.finditer(command.command):
            record.outside.add(-1, found[1])


def list_strings(value: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """List each text in a JSON value, with the key that it stands under."""
    if isinstance(value, str):
        yield key, value
    elif depth > 16:  # noqa: PLR2004  # what capture keeps
        return
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from list_strings(inner, str(name), depth + 1)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from list_strings(inner, key, depth + 1)
