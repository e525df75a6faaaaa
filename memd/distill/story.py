"""What happened in an episode: who said what, what was run, changed and read, in order. Pure.

Payloads come from clients that change between versions, so nothing about their shape is taken for
granted: a field of another type counts as absent. What memd itself returned or put in is left out
here, once, so that no rule can ever see it. Not here: what any of it means.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memd.distill import prose
from memd.distill.segment import is_compaction
from memd.models import Event, EventKind
from memd.text import unique

_OWN_TOOL = re.compile(r"mcp__(?:plugin_)?memd_|mem_[a-z]+$")
_EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_READING = frozenset({"Read", "NotebookRead"})
_OUTPUT_CHARACTERS = 40_000


@dataclass(frozen=True, slots=True)
class Said:
    """Somebody's words."""

    event_id: int
    at: int
    text: str
    speaker: str
    """`User`, `Assistant`, or the type of a subagent."""


@dataclass(frozen=True, slots=True)
class Command:
    """A shell command and how it ended."""

    event_id: int
    at: int
    command: str
    description: str
    output: str
    failed: bool
    """As the client reports it; see failures.py for commands whose exit code lies."""
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to a file: `old` became `new`. `old` is empty for a new file."""

    event_id: int
    at: int
    path: str
    old: str
    new: str
    is_whole_file: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules may know beyond the episode itself."""

    session_title: str = ""
    project_name: str = ""
    roots: tuple[str, ...] = ()
    """Directories that file names are shown relative to, the preferred one first."""
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """Command → what the agent said that it is for."""
    own_tags: tuple[str, ...] = prose.OWN_TAGS
    """Names of the blocks that hold what was put in and not said."""
    body_characters: int = 8_000
    task_days: int = 0
    """After so many days a task expires; 0: never."""

    def relative(self, path: str) -> str:
        """The path as a person of this project would write it."""
        for root in self.roots:
            prefix = root.rstrip("/") + "/"
            if path.startswith(prefix) and len(path) > len(prefix):
                return path[len(prefix) :]
        return path


@dataclass(frozen=True, slots=True)
class Story:
    """An episode, read."""

    prompts: tuple[Said, ...] = ()
    answers: tuple[Said, ...] = ()
    reports: tuple[Said, ...] = ()
    """What subagents handed back."""
    compactions: tuple[Said, ...] = ()
    commands: tuple[Command, ...] = ()
    edits: tuple[Edit, ...] = ()
    reads: tuple[str, ...] = ()
    """Paths, once each, in order."""
    last_at: int = 0

    @property
    def prompt(self) -> str:
        """Everything the user said, in order."""
        return "\n\n".join(said.text for said in self.prompts)

    @property
    def answer(self) -> str:
        """The agent's closing message."""
        return self.answers[-1].text if self.answers else ""

    @property
    def edited(self) -> tuple[str, ...]:
        """The paths that were changed, once each, in order."""
        return unique(edit.path for edit in self.edits)


def read(events: Sequence[Event], context: Context) -> Story:
    """The story that these events tell, in order of time."""
    events = [event for event in events if not _is_own(event)]
    return Story(
        prompts=_said(events, EventKind.PROMPT, "prompt", context),
        answers=_said(events, EventKind.STOP, "last_assistant_message", context),
        reports=_said(events, EventKind.SUBAGENT_STOP, "last_assistant_message", context),
        compactions=_said(events, EventKind.COMPACT_END, "compact_summary", context),
        commands=tuple(command for event in events if (command := _command(event))),
        edits=tuple(edit for event in events for edit in _edits(event)),
        reads=unique(path for event in events if (path := _path_read(event))),
        last_at=max((event.at for event in events), default=0),
    )


def _is_own(event: Event) -> bool:
    return _OWN_TOOL.match(event.tool or "") is not None


def text_at(payload: Mapping[str, Any], *keys: str) -> str:
    """The text under these keys; empty if there is none, or something else."""
    value: Any = payload
    for key in keys:
        if not isinstance(value, Mapping):
            return ""
        value = value.get(key)
    return value if isinstance(value, str) else ""


def _said(
    events: Sequence[Event], kind: EventKind, key: str, context: Context
) -> tuple[Said, ...]:
    found = []
    for event in events:
        if event.kind is not kind or (is_compaction(event) and kind is EventKind.SUBAGENT_STOP):
            continue
        if kind is not EventKind.SUBAGENT_STOP and event.agent:
            continue  # a subagent is prompted by an agent, not by the user
        text = prose.without_injected(text_at(event.payload, key), context.own_tags)
        if text:
            found.append(Said(event.id, event.at, text, _speaker(event)))
    return tuple(found)


def _speaker(event: Event) -> str:
    if event.kind is EventKind.PROMPT:
        return "User"
    return text_at(event.payload, "agent_type") or "Assistant"


def _command(event: Event) -> Command | None:
    command = text_at(event.payload, "tool_input", "command").strip()
    is_over = event.kind in (EventKind.TOOL_RESULT, EventKind.TOOL_FAILURE)
    if event.tool not in ("Bash", "PowerShell") or not command or not is_over:
        return None
    interrupted = _flag(event.payload, "is_interrupt") or _flag(
        event.payload.get("tool_response"), "interrupted"
    )
    return Command(
        event_id=event.id,
        at=event.at,
        command=command,
        description=text_at(event.payload, "tool_input", "description").strip(),
        output=_output(event)[-_OUTPUT_CHARACTERS:],
        failed=event.kind is EventKind.TOOL_FAILURE,
        is_interrupted=interrupted,
    )


def _flag(payload: Any, key: str) -> bool:
    return isinstance(payload, Mapping) and payload.get(key) is True


def _output(event: Event) -> str:
    if event.kind is EventKind.TOOL_FAILURE:
        return text_at(event.payload, "error")
    response = event.payload.get("tool_response")
    if isinstance(response, str):
        return response
    streams = (text_at(event.payload, "tool_response", name) for name in ("stdout", "stderr"))
    return "\n".join(stream for stream in streams if stream)


def _edits(event: Event) -> list[Edit]:
    if event.kind is not EventKind.TOOL_RESULT or event.tool not in _EDITING:
        return []
    given = event.payload.get("tool_input")
    given = given if isinstance(given, Mapping) else {}
    path = next((p for key in ("file_path", "notebook_path") if (p := text_at(given, key))), "")
    path = path or text_at(event.payload, "tool_response", "filePath")
    if not path:
        return []
    parts = given.get("edits")
    if isinstance(parts, Sequence) and not isinstance(parts, str):
        return [_edit(event, path, part) for part in parts if isinstance(part, Mapping)]
    return [_edit(event, path, given)]


def _edit(event: Event, path: str, given: Mapping[str, Any]) -> Edit:
    whole = text_at(given, "content") or text_at(given, "new_source")
    if whole:
        return Edit(event.id, event.at, path, "", whole, is_whole_file=True)
    return Edit(
        event.id, event.at, path, text_at(given, "old_string"), text_at(given, "new_string")
    )


def _path_read(event: Event) -> str:
    if event.kind is not EventKind.TOOL_RESULT or event.tool not in _READING:
        return ""
    path = text_at(event.payload, "tool_input", "file_path")
    return path or text_at(event.payload, "tool_response", "file", "filePath")
