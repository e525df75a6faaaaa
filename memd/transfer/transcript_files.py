"""Locate Claude Code transcripts, their sessions, and the files that the client saved with them."""

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

_RESULTS_FOLDER = "tool-results"
_SUBAGENTS_FOLDER = "subagents"
_AGENT_FILE = re.compile(r"agent-(.{1,200})\.jsonl")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_RESULT_END_BYTES = 131_072
"""Read from both ends of a long result. More than is stored, so that a secret is redacted before it is cut."""
_META_CHARACTERS_MAX = 65_536
_NEVER_WAIT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""No link is followed, and no pipe is waited for."""


@dataclass(frozen=True, slots=True)
class TranscriptLocation:
    """The path of a transcript, and its session."""

    project: str
    """The folder of all sessions of a project."""
    session: str
    """The name of the session's own folder in it."""
    agent: str | None = None
    agent_type: str | None = None
    """The type of the subagent, from the `.meta.json` beside its transcript."""


def locate_transcript(path: str) -> TranscriptLocation:
    """Read from a transcript's path, and its `.meta.json`, what its lines do not say."""
    file = Path(path)
    named = _AGENT_FILE.fullmatch(file.name)
    if named is None:
        return TranscriptLocation(str(file.parent), file.stem)
    session = next((p.parent for p in file.parents if p.name == _SUBAGENTS_FOLDER), None)
    text = _read_below(str(file.parent), (f"{file.stem}.meta.json",)) or ""
    try:
        meta = json.loads(text[:_META_CHARACTERS_MAX])
    except (ValueError, RecursionError):
        meta = None
    return TranscriptLocation(
        str(session.parent if session else file.parent),
        session.name if session else "",
        named.group(1),
        _get_type(meta),
    )


def _get_type(meta: Any) -> str | None:
    found = meta.get("agentType") if isinstance(meta, dict) else None
    return found if isinstance(found, str) and found else None


def read_saved_output(location: TranscriptLocation, saved: str) -> str | None:
    """Read the result that the client says it saved at this path; None if it is not where it may be.

    A transcript may come from anywhere, so only the end of the path is trusted: the file must be in a
    `tool-results` folder of a session beside the transcript.
    """
    parts = PurePosixPath(saved.replace("\\", "/")).parts
    name = parts[-1] if parts else ""
    named_session = parts[-3] if parts[-2:-1] == (_RESULTS_FOLDER,) and parts[:-2] else ""
    for session in dict.fromkeys((location.session, named_session)):
        if all(_SAFE_NAME.fullmatch(part) for part in (session, name)):
            text = _read_below(location.project, (session, _RESULTS_FOLDER, name))
            if text is not None:
                return text
    return None


def _read_below(root: str, names: tuple[str, ...]) -> str | None:
    """Read a file below `root` without following a link; None if there is none."""
    handles: list[int] = []
    try:
        handles.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for name in names[:-1]:
            handles.append(os.open(name, _NEVER_WAIT | os.O_DIRECTORY, dir_fd=handles[-1]))
        handles.append(os.open(names[-1], _NEVER_WAIT, dir_fd=handles[-1]))
        return "".join(_read_ends(handles[-1]))
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return None
    finally:
        for handle in handles:
            os.close(handle)


def _read_ends(handle: int) -> Iterator[str]:
    """Yield the text of an open file; of a long one both ends, in whole lines."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a file")
    with os.fdopen(os.dup(handle), "rb") as file:
        if found.st_size <= 2 * _RESULT_END_BYTES:
            yield file.read(2 * _RESULT_END_BYTES).decode("utf-8", "replace")
            return
        head = file.read(_RESULT_END_BYTES)
        file.seek(found.st_size - _RESULT_END_BYTES)
        tail = file.read(_RESULT_END_BYTES)
    head = head[: head.rfind(b"\n") + 1] or head
    tail = tail[tail.find(b"\n") + 1 :]
    yield head.decode("utf-8", "replace")
    yield f"… [{found.st_size - len(head) - len(tail):,} bytes left in the file] …\n"
    yield tail.decode("utf-8", "replace")
