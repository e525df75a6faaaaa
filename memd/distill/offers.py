"""Read the labelled options that an agent's message leaves to the user: `option 2` → its text. Pure."""

import itertools
import re
from collections.abc import Iterator, Sequence

from memd.caches import cached
from memd.distill.text import drop_fences, is_short, strip_markup
from memd.text import one_line, strip_emphasis

_OPTIONS_MAX, _OPTION_CHARACTERS, _READ_CHARACTERS = 12, 700, 24_000
_MESSAGES_CACHED = 64
"""Messages of which the options are kept: they are read before their answer, with it and after it."""
_QUOTED = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_NAMED = r"(?:option|approach|alternative|variant|solution|choice|plan|strategy|path|possibility|idea|variante|möglichkeit)"
_BEFORE_LABEL = r"(?:#{1,6}[ \t]+|[-*•][ \t]+|\|[ \t]*)?"
_LABEL = (
    rf"(?P<name>{_NAMED})[ \t]+[(\[]?(?P<named>[A-Za-z]|\d{{1,2}})\b[)\].:]?"
    r"|[(\[]?(?P<letter>[A-Za-z])[).\]]|[(\[]?(?P<number>\d{1,2})[)\].:]"
)
_BOLD, _DASH = r"(?:\*\*|__)?", r"[—–:|-]?"  # dashes as people type them
_LABELLED = re.compile(
    rf"^[ \t]*{_BEFORE_LABEL}{_BOLD}[ \t]*(?:{_LABEL}){_BOLD}[ \t]*{_DASH}[ \t]*{_BOLD}[ \t]*(?P<text>\S.*)$",
    re.IGNORECASE,
)
_NEXT_BLOCK = re.compile(r"\s*(?:#{1,6}\s|---|\*\*\S)")
_INSIDE = re.compile(r"\s+\S|\s*[-*•]\s")
_TAKEN = re.compile(r"(?:^|\s|[(#])(?P<label>[A-Za-z]|\d{1,2})(?=[\s,.;:!)\]]*$)")
"""The label with which a short answer ends."""
_LINES_AFTER = 12
"""Lines after a list in which the question stands that it answers."""


@cached(_MESSAGES_CACHED)
def read_options(message: str) -> tuple[tuple[str, str], ...]:
    """(label, text) of the last list of options in a message: one that is named so, else one that a question stands at.

    A label is `2` or `b`, in lower case; a text is whole, without markup, on one line.
    """
    lines = _QUOTED.sub("", drop_fences(message[-_READ_CHARACTERS:])).split("\n")
    found: tuple[tuple[str, str], ...] = ()
    is_named = False
    for run in _split_runs(lines):
        first, last = run[0][0], run[-1][0]
        around = " ".join((*lines[max(0, first - 2) : first], *lines[last : last + _LINES_AFTER]))
        names_options = bool(run[0][1]["name"])
        if names_options or ("?" in around and not is_named):
            found, is_named = tuple(_make_options(lines, run)), names_options or is_named
    return found


def list_labelled(message: str) -> list[str]:
    """The lines of a message that are labelled one after the other, without their labels."""
    runs = _split_runs(drop_fences(message[-_READ_CHARACTERS:]).split("\n"))
    return [match["text"] for run in runs for _, match in run]


def find_taken(said: str, before: str) -> str:
    """The option of the message `before` that a short answer takes by its label; empty if it takes none."""
    match = _TAKEN.search(said.strip()) if is_short(said) else None
    return dict(read_options(before)).get(match["label"].lower(), "") if match else ""


_Mark = tuple[int, re.Match[str]]


def _split_runs(lines: Sequence[str]) -> Iterator[list[_Mark]]:
    """Yield the runs of labels that count on: 1, 2, 3 or A, B, C."""
    marked = [(i, match) for i, line in enumerate(lines) if (match := _LABELLED.match(line))]
    for is_named in (False, True):
        run: list[_Mark] = []
        for mark in (one for one in marked if bool(one[1]["name"]) is is_named):
            label = _read_label(mark[1])
            if run and label == _count_on(_read_label(run[-1][1])):
                run.append(mark)
                continue
            if len(run) > 1:
                yield run
            run = [mark] if label in ("1", "a") else []
        if len(run) > 1:
            yield run


def _read_label(match: re.Match[str]) -> str:
    return (match["named"] or match["letter"] or match["number"]).lower()


def _count_on(label: str) -> str:
    return str(int(label) + 1) if label.isdigit() else chr(ord(label) + 1)


def _make_options(lines: Sequence[str], run: Sequence[_Mark]) -> Iterator[tuple[str, str]]:
    ends = [number for number, _ in run[1:]] + [_find_list_end(lines, run[-1][0])]
    for (number, match), end in itertools.islice(zip(run, ends, strict=True), _OPTIONS_MAX):
        rest = " ".join(line.strip() for line in lines[number + 1 : end])
        plain = _LABELLED.match(strip_emphasis(lines[number])) or match
        text = one_line(strip_markup(f"{plain['text']} {rest}"), _OPTION_CHARACTERS)
        yield _read_label(match), text


def _find_list_end(lines: Sequence[str], start: int) -> int:
    """The line after the last option: a heading, or a blank line that no indented or listed line follows."""
    for number in range(start + 1, len(lines)):
        is_after_heading = lines[start].lstrip().startswith("#") and number == start + 1
        following = lines[number + 1] if number + 1 < len(lines) else ""
        is_blank = not lines[number].strip() and not is_after_heading
        if _NEXT_BLOCK.match(lines[number]) or (is_blank and not _INSIDE.match(following)):
            return number
    return len(lines)
