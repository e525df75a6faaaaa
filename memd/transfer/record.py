"""One thing that another memory knows, as it will be remembered; what every reader here yields. Pure.

Not here: where it stands on the disk (shelves.py) and how it is handed over (porter.py).
"""

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from memd.models import Kind
from memd.text import digest, one_line, unique

TEXT_BYTES = 40_000
"""A longer text is cut into pieces; a memory holds 64 KiB."""
TITLE_CHARACTERS = 200
_TAGS_MAX = 20
_TAG_CHARACTERS = 100
_FILES_MAX = 100
_FILE_CHARACTERS = 1_000
_PART_CHARACTERS = 400
_SECONDS_MAX = 10**11
"""A smaller number is a time in seconds; as milliseconds it would be before April 1973."""
_TIME_MAX = 253_402_300_799_999
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """What is to be remembered. `at` is UTC milliseconds, None if nobody knows."""

    title: str
    text: str
    part: str = ""
    """What names it within its file for good: the same after every change of its text."""
    line: int | None = None
    kind: Kind = Kind.NOTE
    at: int | None = None
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    session: str | None = None
    client: str | None = None
    """Whose session that was."""
    project: str | None = None
    """The project's name, as the other memory has it."""
    directory: str | None = None
    """The project's directory; better than its name."""


@dataclass(slots=True)
class ReadIssues:
    """What a reader had to leave out."""

    skipped: list[str] = field(default_factory=list)
    """Why, of each thing that was passed over on purpose; nothing of it is missing."""
    broken: list[str] = field(default_factory=list)
    """Where and why, of each thing that could not be read: `line 12: no JSON`."""
    unread: str = ""
    """Why the file was not read at all, on purpose."""


def parse_time_ms(value: object) -> int | None:
    """UTC milliseconds of a number (seconds or milliseconds) or an ISO date or time; None if it is none."""
    text = str(value).strip().strip("\"'") if value is not None else ""
    try:
        if text.isdecimal() and len(text) > 8:  # noqa: PLR2004  # a shorter one is a date
            number = int(text)
            found = number * 1000 if number < _SECONDS_MAX else number
        else:
            when = dt.datetime.fromisoformat(text)
            when = when if when.tzinfo else when.replace(tzinfo=dt.UTC)
            found = (when - _EPOCH) // dt.timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None
    return found if 0 <= found <= _TIME_MAX else None


def split_text(text: str) -> list[str]:
    """The text in pieces that a memory can hold, cut between paragraphs, else lines, else anywhere."""
    if len(text.encode("utf-8", "replace")) <= TEXT_BYTES:
        return [text]
    for separator in ("\n\n", "\n"):
        middle = len(text) // 2
        cuts = [text.rfind(separator, 1, middle), text.find(separator, middle)]
        inside = [cut for cut in cuts if 0 < cut < len(text) - len(separator)]
        if inside:
            cut = min(inside, key=lambda place: abs(place - middle))
            break
    else:
        cut = len(text) // 2
    halves = (text[:cut].strip("\n"), text[cut:].strip("\n"))
    return [piece for half in halves for piece in split_text(half) if piece.strip()]


def make_title(*words: str) -> str:
    """The words on one line, no longer than a title may be."""
    return one_line(" ".join(word for word in words if word), TITLE_CHARACTERS)


def clean_tags(words: Iterable[str]) -> tuple[str, ...]:
    """The words as tags: on one line, not too long, not too many, once each."""
    clean = (_SPACES.sub(" ", word).strip().lstrip("#")[:_TAG_CHARACTERS] for word in words)
    return unique(word for word in clean if word)[:_TAGS_MAX]


def clean_files(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that can be kept."""
    clean = (path.strip() for path in paths)
    return unique(path for path in clean if 0 < len(path) <= _FILE_CHARACTERS)[:_FILES_MAX]


def part_name(*names: str) -> str:
    """A name for a part of a file; a very long one keeps what sets it apart."""
    whole = _SPACES.sub(" ", " ".join(name for name in names if name)).strip()
    if len(whole) <= _PART_CHARACTERS:
        return whole
    return f"{whole[:_PART_CHARACTERS]}… {digest(whole)[:12]}"
