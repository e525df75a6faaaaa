"""Import and export: past transcripts, memories of other programs, and whole vaults.

Here: one memory of another program, as every reader yields it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from memd.models import TITLE_CHARACTERS_MAX, Kind
from memd.text import digest, one_line, unique
from memd.time_expressions import TIME_MAX_MS, parse_moment

TEXT_BYTES_MAX = 40_000
"""A longer text is cut into several memories; a memory holds 64 KiB."""
_TAGS_MAX = 20
_TAG_CHARACTERS_MAX = 100
_FILES_MAX = 100
_FILE_CHARACTERS_MAX = 1_000
_PART_CHARACTERS_MAX = 400
_SECONDS_MAX = 10**11
"""A smaller number is a time in seconds: in milliseconds it would be before April 1973."""
_NANOSECONDS_MAX = 10**19
"""A number between these two is a time in micro- or nanoseconds."""
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """A memory of another program. `at` is UTC milliseconds, None if unknown."""

    title: str
    text: str
    part: str = ""
    """Its stable name within the file: the same after every change of its text."""
    line: int | None = None
    kind: Kind = Kind.NOTE
    at: int | None = None
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    session: str | None = None
    client: str | None = None
    """The client of that session."""
    project: str | None = None
    """The project's name in the other program."""
    directory: str | None = None
    """The project's directory; it is preferred to the name."""
    has_front_matter: bool = False
    """Whether it stands in a note with fields at its top, which ClawMem counts as quality."""


@dataclass(slots=True)
class ReadIssues:
    """Parts of a file that a reader had to leave out."""

    skipped: list[str] = field(default_factory=list)
    """The reason for each thing that was left out on purpose."""
    broken: list[str] = field(default_factory=list)
    """Place and reason of each thing that could not be read: `line 12: no JSON`."""
    unread: str = ""
    """Why the whole file was left out on purpose."""


def split_memory(memory: ForeignMemory) -> Iterator[ForeignMemory]:
    """Yield the memory in the limits of what memd takes; one with a long text as several."""
    texts = split_text(memory.text)
    for number, text in enumerate(texts, start=1):
        count = f"({number} of {len(texts)})" if len(texts) > 1 else ""
        yield replace(
            memory,
            title=one_line(f"{memory.title} {count}", TITLE_CHARACTERS_MAX),
            text=text,
            part=part_name(memory.part, f"[{number}]" if number > 1 else ""),
        )


def split_text(text: str) -> list[str]:
    """Cut a text into pieces of TEXT_BYTES_MAX, between paragraphs, else lines, else anywhere."""
    if len(text.encode("utf-8", "replace")) <= TEXT_BYTES_MAX:
        return [text]
    cut = middle = len(text) // 2
    for separator in ("\n\n", "\n"):
        cuts = [text.rfind(separator, 1, middle), text.find(separator, middle)]
        if inside := [at for at in cuts if 0 < at < len(text) - len(separator)]:
            cut = min(inside, key=lambda at: abs(at - middle))
            break
    halves = (text[:cut].strip("\n"), text[cut:].strip("\n"))
    return [piece for half in halves for piece in split_text(half) if piece.strip()]


def part_name(*names: str) -> str:
    """Join names to the name of a part; the end of a very long one is replaced by a digest."""
    whole = _SPACES.sub(" ", " ".join(name for name in names if name)).strip()
    if len(whole) <= _PART_CHARACTERS_MAX:
        return whole
    return f"{whole[:_PART_CHARACTERS_MAX]}… {digest(whole)[:12]}"


def clean_tags(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words as unique tags within memd's limits."""
    clean = (_SPACES.sub(" ", word).strip().lstrip("#")[:_TAG_CHARACTERS_MAX] for word in words)
    return unique(word for word in clean if word)[:_TAGS_MAX]


def clean_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are within memd's limits, once each."""
    clean = (path.strip() for path in paths)
    return unique(path for path in clean if 0 < len(path) <= _FILE_CHARACTERS_MAX)[:_FILES_MAX]


def parse_time_ms(value: object) -> int | None:
    """Return the UTC milliseconds of a number (seconds or a thousandth, millionth … of them) or an ISO time, or None."""
    text = str(value).strip().strip("\"'") if value is not None else ""
    whole, _, fraction = text.partition(".")
    is_number = whole.isdecimal() and (not fraction or fraction.isdecimal())
    try:
        if is_number and len(whole) > 8:  # noqa: PLR2004  # a shorter number is a date
            found = int(whole)
            if found < _SECONDS_MAX:
                found = found * 1000 + int(f"{fraction}000"[:3])
            while found > TIME_MAX_MS and found < _NANOSECONDS_MAX:
                found //= 1000
        else:
            found = parse_moment(text)
    except (ValueError, OverflowError):
        return None
    return found if 0 <= found <= TIME_MAX_MS else None
