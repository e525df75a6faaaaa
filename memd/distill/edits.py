"""Read what tool calls changed in files: edits, patches, and what memd knew of the lines around them. Pure."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memd.models import PATCH, Event, EventKind
from memd.text import one_line

EDIT_TOOLS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_SHELL_TOOLS = frozenset({"Bash", "PowerShell"})
_DIFF_LINES, _LINE_CHARACTERS, _LINES_READ = 14, 160, 400


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change to a file: `old` became `new`. `old` is empty for a new file."""

    event_id: int
    at: int
    path: str
    old: str
    new: str
    is_whole_file: bool = False
    hunks: tuple[tuple[str, str], ...] = ()
    """The old and new lines of each changed part with the lines around it, if the client tells them."""
    is_every_line: bool = False
    """Whether a command changed each such line of the file, not one place in it."""
    agent_id: str = ""
    """The subagent that made it; empty for the session's own agent."""


def is_edit(event: Event) -> bool:
    """Whether a file was changed."""
    return event.kind is EventKind.TOOL_RESULT and event.tool in EDIT_TOOLS


def text_at(payload: Mapping[str, Any], *keys: str) -> str:
    """The text under these keys; empty if there is none, or something else."""
    value: Any = payload
    for key in keys:
        if not isinstance(value, Mapping):
            return ""
        value = value.get(key)
    return value if isinstance(value, str) else ""


def read_edits(event: Event) -> list[FileEdit]:
    """The changes that a successful tool call made to files, each with the agent whose call it was."""
    return [replace(edit, agent_id=event.agent or "") for edit in _read_edits(event)]


def _read_edits(event: Event) -> list[FileEdit]:
    """The changes that a successful tool call made to files, those of `sed -i` and `perl -pi` included."""
    if event.kind is EventKind.TOOL_RESULT and event.tool in _SHELL_TOOLS:
        return [
            FileEdit(event.id, event.at, file, old, new, is_every_line=not old)
            for file, old, new in _read_known(event.payload)
        ]
    if not is_edit(event):
        return []
    given = event.payload.get("tool_input")
    given = given if isinstance(given, Mapping) else {}
    path = next((p for key in ("file_path", "notebook_path") if (p := text_at(given, key))), "")
    path = path or text_at(event.payload, "tool_response", "filePath")
    if not path:
        return []
    hunks = _read_hunks(event.payload)
    parts = given.get("edits")
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        return [_make_edit(event, path, given, hunks)]
    parts = [part for part in parts if isinstance(part, Mapping)]
    if not hunks or any("file_path" in part for part in parts):
        # A patch changes several files.
        return [_make_edit(event, text_at(part, "file_path") or path, part, ()) for part in parts]
    sides = {
        name: "\n".join(text_at(part, name) for part in parts)
        for name in ("old_string", "new_string")
    }
    return [_make_edit(event, path, sides, hunks)]


def _make_edit(
    event: Event, path: str, given: Mapping[str, Any], hunks: tuple[tuple[str, str], ...]
) -> FileEdit:
    whole = text_at(given, "content") or text_at(given, "new_source")
    if whole:
        return FileEdit(event.id, event.at, path, "", whole, is_whole_file=True, hunks=hunks)
    old, new = text_at(given, "old_string"), text_at(given, "new_string")
    return FileEdit(event.id, event.at, path, old, new, hunks=hunks)


def _read_hunks(payload: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The changed parts of an edit, each as its old and its new lines: of Claude Code's patch, else of what memd knew."""
    response = payload.get("tool_response")
    patch = response.get("structuredPatch") if isinstance(response, Mapping) else None
    found: list[tuple[str, str]] = []
    for hunk in patch if isinstance(patch, list) else ():
        given = hunk.get("lines") if isinstance(hunk, Mapping) else None
        lines = [one for one in given or () if isinstance(one, str)]
        old, new = ("\n".join(o[1:] for o in lines if o[:1] in marks) for marks in (" -", " +"))
        found.append((old, new))
    found = found or [(old, new) for _, old, new in _read_known(payload)]
    return tuple((old, new) for old, new in found if old or new)


def _read_known(payload: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(file, old, new) of what memd found out itself of the lines of an edit."""
    known = payload.get(PATCH)
    parts = [part for part in known if isinstance(part, Mapping)] if isinstance(known, list) else []
    names = ("file", "old", "new")
    return [
        (file, old, new)
        for file, old, new in (tuple(text_at(part, name) for name in names) for part in parts)
        if file and new
    ]


def diff_edit(edit: FileEdit) -> list[str]:
    """What an edit took away and put in, a line each, bounded; a change of indentation alone is not worth a line."""
    if edit.is_whole_file:
        return [f"  written anew, {len(edit.new.splitlines())} lines"]
    before, after = (
        [line.strip() for line in text.splitlines()[:_LINES_READ]] for text in (edit.old, edit.new)
    )
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changed: list[str] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            changed += [f"- {line}" for line in before[i1:i2] if line]
            changed += [f"+ {line}" for line in after[j1:j2] if line]
    lines = [one_line(line, _LINE_CHARACTERS) for line in changed]
    more = len(lines) - _DIFF_LINES
    return [*lines[:_DIFF_LINES], f"  … and {more} more lines"] if more > 0 else lines
