"""What Claude Code keeps beside a transcript: long tool results, and what a subagent is.

A transcript says where the rest of a result is, and a transcript may come from anywhere. So only the
name at the end of that path is believed, and only in a `tool-results` folder of a session beside the
transcript: no link is followed, no pipe waited for, and of a long file only both ends are read.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

_FOLDER = "tool-results"
_SUBAGENTS = "subagents"
_AGENT = re.compile(r"agent-(.{1,200})\.jsonl")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_ENDS_BYTES = 131_072
"""Of each end. Far more than is kept, so that no secret is cut in two where it is kept."""
_META_BYTES = 65_536
_QUIET = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Place:
    """Where a transcript lies, and whose it is."""

    project: str
    """The folder of all sessions of a project."""
    session: str
    """The name of the session's own folder in it."""
    agent: str | None = None
    agent_type: str | None = None
    """What the subagent's description says that it is."""


def place(path: str) -> Place:
    """Read off a transcript's path, and its `.meta.json`, what the lines in it do not say."""
    file = Path(path)
    named = _AGENT.fullmatch(file.name)
    if named is None:
        return Place(str(file.parent), file.stem)
    home = next((p.parent for p in file.parents if p.name == _SUBAGENTS), None)
    kind = _meta(file).get("agentType")
    return Place(
        str(home.parent if home else file.parent),
        home.name if home else "",
        named.group(1),
        kind if isinstance(kind, str) else None,
    )


def read_output(place: Place, said: str) -> str | None:
    """The result that the client says it saved at `said`; None if it is not where it may be."""
    parts = PurePosixPath(said.replace("\\", "/")).parts
    name = parts[-1] if parts else ""
    told = parts[-3] if len(parts) > 2 and parts[-2] == _FOLDER else ""  # noqa: PLR2004  # session, folder, name
    for session in dict.fromkeys((place.session, told)):
        if all(_NAME.fullmatch(part) for part in (session, name)):
            text = _within(place.project, (session, _FOLDER, name))
            if text is not None:
                return text
    return None


def _meta(file: Path) -> Mapping[str, Any]:
    raw = _within(str(file.parent), (f"{file.stem}.meta.json",))
    try:
        said = json.loads(raw[:_META_BYTES]) if raw else None
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _within(root: str, names: tuple[str, ...]) -> str | None:
    """The text of a file below `root`, none of whose folders is a link; None if there is none such."""
    opened: list[int] = []
    try:
        opened.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for name in names[:-1]:
            opened.append(os.open(name, _QUIET | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(names[-1], _QUIET, dir_fd=opened[-1]))
        return "".join(_ends(opened[-1]))
    except (OSError, ValueError):  # ValueError: a name with a NUL in it
        return None
    finally:
        for handle in opened:
            os.close(handle)


def _ends(handle: int) -> Iterator[str]:
    """The text of an open file, of a long one both ends in whole lines."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a file")
    with os.fdopen(os.dup(handle), "rb") as file:
        if found.st_size <= 2 * _ENDS_BYTES:
            yield file.read(2 * _ENDS_BYTES).decode("utf-8", "replace")
            return
        head = file.read(_ENDS_BYTES)
        file.seek(found.st_size - _ENDS_BYTES)
        tail = file.read(_ENDS_BYTES)
    head = head[: head.rfind(b"\n") + 1] or head
    tail = tail[tail.find(b"\n") + 1 :]
    yield head.decode("utf-8", "replace")
    yield f"… [{found.st_size - len(head) - len(tail):,} bytes left in the file] …\n"
    yield tail.decode("utf-8", "replace")
