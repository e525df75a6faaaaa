"""Compiling, searching for words, and reading this package's tables. Standard library only, as the hook needs.

A table is a TOML file of one form, read without `tomllib`, which would cost the hook 10 ms: a line is a table's name,
a comment, or `key = value`; a value is `'text'`, `true`, a number or a list of texts. A test holds the files to
what `tomllib` reads.
"""

import functools
import re
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

_FOLDER = __file__.rpartition("regexes")[0]
PLACEHOLDER = r"\[REDACTED:[a-z0-9-]{1,40}\](?:#\d{1,9})?"
"""What replaces a secret; `#2` distinguishes two keys of an object."""


Found = tuple[int, int, str]
"""Start, end and rule of a secret."""
_noted: ContextVar[dict[str, str] | None] = ContextVar("noted", default=None)


class Reading(NamedTuple):
    """A text, and what is known of it before any rule looks for a secret."""

    text: str
    lowered: str
    """The text in lower case, of the same length."""
    signs: frozenset[str]
    """Which of the words that rules look for are in its words in lower case, each with a line break behind it."""
    is_named: bool
    """Whether names of secrets may be among its words."""
    is_foreign: bool
    """Whether names of secrets with letters outside ASCII may be."""


def lower_alike(text: str) -> str:
    """Return a text in lower case, of the same length: the few letters that grow stay as they are."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def mark_characters(text: str, marks: bytes, dropped: bytes = b"") -> bytes:
    """Return what `bytes.translate` makes of a text; each character beyond Latin-1 counts as "?".

    To look for a few characters so takes a tenth of the time of a regex.
    """
    return text.encode("latin-1", "replace").translate(marks, dropped)


def as_sign(needle: str) -> str:
    """Return what is searched for in a list of words for a needle: `curl ` is a word's end, `dd api` begins with one."""
    return f"{needle.split(' ', 1)[0]}\n" if " " in needle else needle


@functools.cache
def compile_regex(regex: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a regex at its first use."""
    return re.compile(regex, flags)


def join_words(words: Iterable[str]) -> str:
    """Return a regex for any of these words, none of which begins with another, that tries each beginning once."""
    tails: dict[str, list[str]] = {}
    for word in words:
        tails.setdefault(word[0], []).append(word[1:])
    parts = [
        re.escape(first) + (join_words(rest) if rest != [""] else "")
        for first, rest in tails.items()
    ]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def find_all(needle: str, lowered: str) -> Iterator[int]:
    """Yield where a word begins in a text, overlapping ones too."""
    at = lowered.find(needle)
    while at >= 0:
        yield at
        at = lowered.find(needle, at + 1)


def find_beginning(
    regex: re.Pattern[str], needles: Iterable[str], text: str, lowered: str
) -> Iterator[re.Match[str]]:
    """Yield the matches of a regex that always begins with one of these words, tried only where they stand."""
    done = 0
    for at in sorted({at for needle in needles for at in find_all(needle, lowered)}):
        if at >= done and (found := regex.match(text, at)):
            yield found
            done = found.end()


class note_secrets:  # noqa: N801  # a context manager; a generator takes four times as long, and each id of an event asks for one
    """Collect the secrets that are found meanwhile: value → rule."""

    def __enter__(self) -> dict[str, str]:
        found: dict[str, str] = {}
        self._token = _noted.set(found)
        return found

    def __exit__(self, *_: object) -> None:
        _noted.reset(self._token)


def place_mark(value: str, rule: str) -> str:
    """Return what stands in the place of a secret, and note it for who collects them."""
    if (found := _noted.get()) is not None:
        found[value] = rule
    return f"[REDACTED:{rule}]"


def replace_spans(text: str, found: Iterable[tuple[int, int, str]]) -> str:
    """Replace spans by placeholders of their rules; of two that overlap the first."""
    kept: list[str] = []
    done = 0
    for start, end, rule in sorted(set(found)):
        if start >= done:
            kept += [text[done:start], place_mark(text[start:end], rule)]
            done = end
    return "".join((*kept, text[done:])) if kept else text


def read_tables(name: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a file beside this module, in its order."""
    tables: dict[str, dict[str, Any]] = {}
    table: dict[str, Any] = {}
    with open(_FOLDER + name, encoding="utf-8") as file:  # noqa: PTH123  # pathlib costs the hook 8 ms
        for line in file:
            if line[0] == "[":
                table = tables[line.strip()[1:-1]] = {}
            elif line[0] not in "#\n":
                key, _, value = line.rstrip().partition(" = ")
                table[key] = _read_value(value)
    return tables


def _read_value(value: str) -> Any:
    if value[0] == "'":
        return value[1:-1]
    if value[0] == "[":
        return tuple(value[2:-2].split("', '"))
    return True if value == "true" else int(value)


def read_words(name: str) -> list[str]:
    """Return the words of a file beside this module, without the lines of its comment."""
    with open(_FOLDER + name, encoding="utf-8") as file:  # noqa: PTH123  # pathlib costs the hook 8 ms
        return " ".join(line for line in file if line[0] != "#").split()
