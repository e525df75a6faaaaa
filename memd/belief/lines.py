"""The line of a file that a noted fact rests on: read when it is noted, and looked for again when the fact is shown."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from memd.belief.notes import split_note
from memd.text import one_line

_PLACE = re.compile(r"([^\s:“”\"]{1,300}):(\d{1,7})(?:\b.*)?", re.DOTALL)
_WRITTEN = re.compile(r"([^\s:“”]+):(\d+) “(.*)”")
_FILE_BYTES_MAX = 2_000_000
_LINE_CHARACTERS_MAX = 200
_FILES_KEPT = 64


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file, its path relative to the project."""

    path: str
    number: int
    text: str

    def __str__(self) -> str:
        """Format it as in a note: `app/log.py:12 “LOGGER = …”`."""
        return f"{self.path}:{self.number} “{self.text}”"


def read_place(quote: str, root: str) -> FileLine | None:
    """The line that a quote such as `app/log.py:12` names; None if there is none, or it is outside of the project."""
    match = _PLACE.fullmatch(quote.strip())
    file = match and _find_file(root, match[1])
    if match is None or file is None:
        return None
    lines, number = _read_lines(*file), int(match[2])
    text = lines[number - 1] if 0 < number <= len(lines) else ""
    if not text:
        return None
    return FileLine(Path(match[1]).as_posix(), number, text)


def find_line(body: str) -> FileLine | None:
    """The line that a memory rests on; None if it rests on none."""
    match = _WRITTEN.fullmatch(split_note(body).line)
    return FileLine(match[1], int(match[2]), match[3]) if match else None


def describe_line(body: str, root: str) -> str:
    """Return what became of the line that a memory rests on, if it is gone; empty if it is there, or the tree is not here."""
    line = find_line(body)
    if line is None or not Path(root).is_dir() or "[REDACTED" in line.text:
        return ""
    file = _find_file(root, line.path)
    if file is None:
        return f"{line.path}, on which it rests, is gone"
    # It may have moved within its file.
    is_there = line.text in _read_lines(*file)
    return "" if is_there else f"the line on which it rests is gone: {line.path}:{line.number}"


def _find_file(root: str, path: str) -> tuple[str, int, int] | None:
    """(path, time of its last change, size) of a file of a project, which must lie in it."""
    try:
        top = Path(root).resolve(strict=True)
        file = (top / path).resolve(strict=True)
        stat = file.stat()
    except (OSError, ValueError, RuntimeError):
        return None
    is_own = file.is_relative_to(top) and file.is_file() and ".git" not in file.parts
    if not is_own or stat.st_size > _FILE_BYTES_MAX:
        return None
    return str(file), stat.st_mtime_ns, stat.st_size


@functools.lru_cache(_FILES_KEPT)
def _read_lines(path: str, _changed_at: int, _size: int) -> tuple[str, ...]:
    """The lines of a file as they are compared: without the space around them, and none too long."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(one_line(line, _LINE_CHARACTERS_MAX) for line in text.splitlines())
