"""Notes in markdown as memories: a short note whole, a long one by its headings. Pure.

A section that is short stays in one piece with all below it; a long one is parted at its own
headings, down to paragraphs if need be, so that a hit is precise and fits a memory. Each part is named
by the headings above it, so that it keeps its name when the text, or another part, changes. Not here:
which files are read (folder.py).
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from memd.exchange import entry, frontmatter
from memd.exchange.entry import Entry
from memd.models import Kind

WHOLE_CHARACTERS = 3_000
"""What is no longer than this stays in one piece."""
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
_ARROW = " › "
_DATES = ("updated", "modified", "lastmod", "last_modified", "date", "created")


@dataclass(frozen=True, slots=True)
class Note:
    """A note and what is known of all of it."""

    name: str
    """What its memories are titled with: the path, or a name that it gives itself."""
    body: str
    line: int = 1
    """The line that the body begins at."""
    kind: Kind = Kind.NOTE
    at: int | None = None
    tags: tuple[str, ...] = ()


@dataclass(slots=True)
class _Section:
    """A heading and what stands below it."""

    heading: str
    level: int
    line: int
    lines: list[str] = field(default_factory=list)
    below: list["_Section"] = field(default_factory=list)

    def own(self) -> str:
        return "\n".join(self.lines).strip("\n")

    def whole(self) -> str:
        texts = (self.own(), *(section.whole() for section in self.below))
        return "\n\n".join(text for text in texts if text)

    def says_something(self) -> bool:
        rest = self.lines[1:] if self.heading else self.lines
        return any(line.strip("=- \t") for line in rest)


def read(path: str, text: str, at: int | None) -> list[Entry]:
    """The memories of a file; `path` is relative to the folder, `at` the time of its last change."""
    facts = frontmatter.split(clean(text))
    given = facts.one("title")
    kind = facts.one("kind", "type").lower()
    dates = (entry.moment(facts.one(name)) for name in _DATES)
    return list(
        entries(
            Note(
                name=f"{path}: {given}" if given else path,
                body=facts.body,
                line=facts.line,
                kind=Kind(kind) if kind in set(Kind) else Kind.NOTE,
                at=next((date for date in dates if date is not None), at),
                tags=entry.tags(facts.many("tags", "tag", "keywords")),
            )
        )
    )


def clean(text: str) -> str:
    """The text with one kind of line end and without a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def entries(note: Note) -> Iterator[Entry]:
    """The memories that a note makes."""
    named: Counter[str] = Counter()
    for trail, section, text in _parts(_tree(note), ()):
        name = _ARROW.join(trail)
        named[name] += 1
        times = "" if named[name] == 1 else f"({named[name]})"
        cut = entry.pieces(text)
        for number, piece in enumerate(cut, start=1):
            count = "" if len(cut) == 1 else f"({number} of {len(cut)})"
            yield Entry(
                title=_title(note.name, trail, count),
                text=piece,
                part=entry.part(name, times, "" if number == 1 else f"[{number}]"),
                line=section.line,
                kind=note.kind,
                at=note.at,
                tags=note.tags,
            )


def _title(name: str, trail: tuple[str, ...], count: str) -> str:
    whole = _ARROW.join((name, *trail))
    if len(whole) + len(count) >= entry.TITLE_CHARACTERS and len(trail) > 1:
        whole = _ARROW.join((name, "…", trail[-1]))
    return entry.title(whole, count)


def _parts(
    section: _Section, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], _Section, str]]:
    trail = (*above, section.heading) if section.heading else above
    whole = section.whole()
    if not whole.strip():
        return
    if len(whole) <= WHOLE_CHARACTERS or not section.below:
        yield trail, section, whole
        return
    if section.says_something():
        yield trail, section, section.own()
    for below in section.below:
        yield from _parts(below, trail)


def _tree(note: Note) -> _Section:
    """The note's sections, each below the nearest one of a higher rank."""
    root = _Section("", 0, note.line)
    path = [root]
    for section in _sections(note):
        if section.level == 0:
            root.lines = section.lines
            continue
        while path[-1].level >= section.level:
            path.pop()
        path[-1].below.append(section)
        path.append(section)
    return root


def _sections(note: Note) -> Iterator[_Section]:
    current = _Section("", 0, note.line)
    fence = ""
    for number, line in enumerate(note.body.split("\n"), start=note.line):
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else mark[1]
        if fence or mark:
            current.lines.append(line)
            continue
        if found := _HEADING.fullmatch(line):
            yield current
            current = _Section(_words(found[2] or ""), len(found[1]), number)
        elif (under := _UNDERLINE.fullmatch(line)) and _is_underlined(current):
            above = current.lines.pop()
            yield current
            level = 1 if under[1].startswith("=") else 2
            current = _Section(_words(above), level, number - 1, [above])
        current.lines.append(line)
    yield current


def _is_underlined(section: _Section) -> bool:
    """Whether the last line is a paragraph of its own: what a line of dashes below makes a heading."""
    last, before = [*["", ""], *section.lines][:-3:-1]
    is_text = bool(last.strip()) and not last.lstrip().startswith(
        (">", "-", "*", "|", "#", "+")
    )
    is_alone = not before.strip() or (section.heading != "" and len(section.lines) == 2)  # noqa: PLR2004  # heading and text
    return is_text and is_alone and not (section.heading and len(section.lines) == 1)


def _words(heading: str) -> str:
    """A heading without its marks; one of marks alone is named so, for it still parts the text."""
    said = heading.rstrip(" \t")
    text = said.rstrip("#")
    bare = text.rstrip(" \t") if text.endswith((" ", "\t")) else said
    return _LINK.sub(r"\1", bare).strip(" #*_`\t") or bare.strip() or "…"
