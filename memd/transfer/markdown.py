"""Markdown notes with front matter, MEMORY.md."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from memd.models import Kind
from memd.transfer import record
from memd.transfer.record import ForeignMemory

# MERGED from memd.exchange.frontmatter:
# MERGED The block of facts at the top of a note: `title`, `tags`, `date`, leniently understood. Pure.
# MERGED
# MERGED A small part of YAML (and of TOML between `+++`), enough for what people write there: values, lists,
# MERGED folded texts, one level of nesting as `outer.inner`. What is not understood is passed over and never
# MERGED raises. A note that only begins with a rule of dashes has no such block.


_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
_LINES_MAX = 300
_PAIR = re.compile(r"(\s*)([A-Za-z_][\w.-]*)\s*[:=](?:\s+|$)(.*)")
_PAIR_TIGHT = re.compile(r"(\s*)([A-Za-z_][\w.-]*)=(.*)")
_ITEM = re.compile(r"\s*-\s+(.*)")
_BLOCK = re.compile(r"[|>][+-]?\d?")
_LIST = re.compile(r"\[(.*)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a note says of itself, the note without it, and the line that it begins at."""

    values: dict[str, list[str]] = field(default_factory=dict)
    body: str = ""
    line: int = 1

    def one(self, *names: str) -> str:
        """The first of these that is given, in words; else nothing."""
        found = (" ".join(self.values[name]) for name in names if name in self.values)
        return next((text for text in found if text), "")

    def many(self, *names: str) -> list[str]:
        """Every value of these; `a, b` are two."""
        given = [value for name in names for value in self.values.get(name, [])]
        return [word.strip() for value in given for word in value.split(",") if word.strip()]


def split_front_matter(text: str) -> FrontMatter:
    """Part a note from the block at its top."""
    lines = text.split("\n")
    ends = _FENCES.get(lines[0].rstrip())
    stop = next(
        (n for n, line in enumerate(lines[1:_LINES_MAX], 1) if ends and line.rstrip() in ends),
        0,
    )
    values = _values(lines[1:stop]) if stop else {}
    if not values:
        return FrontMatter(body=text)
    return FrontMatter(values, "\n".join(lines[stop + 1 :]), stop + 2)


def _values(lines: list[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    outer = name = ""
    for line in lines:
        pair = _PAIR.fullmatch(line) or _PAIR_TIGHT.fullmatch(line)
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if item := _ITEM.fullmatch(line):
            values.setdefault(name, []).append(_plain(item[1]))
        elif pair and (not pair[1] or (outer and not values.get(outer))):
            outer = outer if pair[1] else pair[2].lower()
            name = f"{outer}.{pair[2].lower()}" if pair[1] else outer
            values[name] = _written(pair[3].strip())
        elif name and line[0].isspace():
            values[name] = [" ".join((*values.get(name, []), line.strip())).strip()]
    return {name: found for name, found in values.items() if name}


def _written(value: str) -> list[str]:
    if not value or _BLOCK.fullmatch(value):
        return []
    if found := _LIST.fullmatch(value):
        return [word for raw in found[1].split(",") if (word := _plain(raw))]
    return [_plain(value)]


def _plain(value: str) -> str:
    text = value.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


# MERGED from memd.exchange.markdown:
# MERGED Notes in markdown as memories: a short note whole, a long one by its headings. Pure.
# MERGED
# MERGED A section that is short stays in one piece with all below it; a long one is parted at its own
# MERGED headings, down to paragraphs if need be, so that a hit is precise and fits a memory. Each part is named
# MERGED by the headings above it, so that it keeps its name when the text, or another part, changes. Not here:
# MERGED which files are read (folder.py).


WHOLE_CHARACTERS = 3_000
"""What is no longer than this stays in one piece."""
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
_ARROW = " › "
_DATES = ("updated", "modified", "lastmod", "last_modified", "date", "created")


@dataclass(frozen=True, slots=True)
class MarkdownNote:
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


def read_note(path: str, text: str, at: int | None) -> list[ForeignMemory]:
    """The memories of a file; `path` is relative to the folder, `at` the time of its last change."""
    facts = split_front_matter(normalize_line_ends(text))
    given = facts.one("title")
    kind = facts.one("kind", "type").lower()
    dates = (record.parse_time_ms(facts.one(name)) for name in _DATES)
    return list(
        note_memories(
            MarkdownNote(
                name=f"{path}: {given}" if given else path,
                body=facts.body,
                line=facts.line,
                kind=Kind(kind) if kind in set(Kind) else Kind.NOTE,
                at=next((date for date in dates if date is not None), at),
                tags=record.clean_tags(facts.many("tags", "tag", "keywords")),
            )
        )
    )


def normalize_line_ends(text: str) -> str:
    """The text with one kind of line end and without a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def note_memories(note: MarkdownNote) -> Iterator[ForeignMemory]:
    """The memories that a note makes."""
    named: Counter[str] = Counter()
    for trail, section, text in _parts(_tree(note), ()):
        name = _ARROW.join(trail)
        named[name] += 1
        times = "" if named[name] == 1 else f"({named[name]})"
        cut = record.split_text(text)
        for number, piece in enumerate(cut, start=1):
            count = "" if len(cut) == 1 else f"({number} of {len(cut)})"
            yield ForeignMemory(
                title=_title(note.name, trail, count),
                text=piece,
                part=record.part_name(name, times, "" if number == 1 else f"[{number}]"),
                line=section.line,
                kind=note.kind,
                at=note.at,
                tags=note.tags,
            )


def _title(name: str, trail: tuple[str, ...], count: str) -> str:
    whole = _ARROW.join((name, *trail))
    if len(whole) + len(count) >= record.TITLE_CHARACTERS and len(trail) > 1:
        whole = _ARROW.join((name, "…", trail[-1]))
    return record.make_title(whole, count)


def _parts(
    section: _Section, above: tuple[str, ...], bare: str = ""
) -> Iterator[tuple[tuple[str, ...], _Section, str]]:
    """The parts of a section; `bare` are headings right above it that have no text of their own."""
    trail = (*above, section.heading) if section.heading else above
    whole = section.whole()
    if not whole.strip():
        return
    if len(whole) <= WHOLE_CHARACTERS or not section.below:
        yield trail, section, bare + whole
        return
    if section.says_something():
        yield trail, section, bare + section.own()
        bare = ""
    elif section.heading:
        bare += f"{section.own()}\n\n"
    for below in section.below:
        yield from _parts(below, trail, bare)
        bare = ""


def _tree(note: MarkdownNote) -> _Section:
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


def _sections(note: MarkdownNote) -> Iterator[_Section]:
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


# MERGED from memd.exchange.claude_memory:
# MERGED Claude Code's own memory files as memories: `MEMORY.md` and the notes beside it. Pure.
# MERGED
# MERGED A note says in the block at its top what it is called, what it is about and of which type it is.
# MERGED `MEMORY.md` lists the notes, a line each, and that list says nothing that they do not; whatever else
# MERGED stands in it is remembered like any note. The layout is the client's own affair and may change: a
# MERGED file that is not understood is a plain note.


INDEX = "MEMORY.md"
_KINDS = {
    "user": Kind.FACT,  # who the user is
    "feedback": Kind.INSTRUCTION,  # how the user wants things done
    "project": Kind.FACT,
    "reference": Kind.NOTE,
}
_ITEM_claude_memory = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_POINTED = re.compile(r"\]\(([^)#\s]++)[^)]*+\)")


def read_claude_memory(
    path: str, text: str, at: int | None, beside: Collection[str]
) -> tuple[list[ForeignMemory], str]:
    """The memories of one file, and why it has none; `beside` are the names of the other files."""
    facts = split_front_matter(normalize_line_ends(text))
    body = facts.body
    if path.rpartition("/")[2] == INDEX:
        body = "\n".join(line for line in body.split("\n") if not _points(line, beside))
        if not any(line.strip() and not line.startswith("#") for line in body.split("\n")):
            return [], "an index of the notes beside it"
    if not body.strip():
        return [], "empty"
    type_ = facts.one("type", "metadata.type").lower()
    name, about = facts.one("name", "title"), facts.one("description")
    note = MarkdownNote(
        name=record.make_title(": ".join(filter(None, (name, about))) or path),
        body=body,
        line=facts.line,
        kind=_KINDS.get(type_, Kind.NOTE),
        at=at,
        tags=record.clean_tags([type_, *facts.many("tags")]),
    )
    return list(note_memories(note)), ""


def _points(line: str, beside: Collection[str]) -> bool:
    # Without what follows the last bracket that closes, every link ends somewhere.
    links = line[: line.rfind(")") + 1] if _ITEM_claude_memory.match(line) else ""
    found = _POINTED.search(links)
    return found is not None and found[1].removeprefix("./") in beside
