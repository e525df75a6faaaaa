"""Read Markdown notes: a short note as one memory, a long one as a memory for each section.

A section that is short stays in one piece with all sections below it; a longer one is split at its own
headings. Each part is named by the headings above it, so it keeps its name when the text changes.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from memd.models import TITLE_CHARACTERS_MAX, Kind
from memd.text import content_stems, one_line, split_sentences, strip_emphasis
from memd.transfer import ForeignMemory, clean_tags, parse_time_ms, split_memory

MEMORY_INDEX = "MEMORY.md"
"""The file in which Claude Code lists its memory files."""
WHOLE_CHARACTERS_MAX = 3_000
"""A section of at most this length is not split."""
_FRONT_MATTER_ENDS = {"---": ("---", "..."), "+++": ("+++",)}
"""First line of the front matter → its possible last lines."""
_FRONT_MATTER_LINES_MAX = 300
_PAIR = re.compile(r"(\s*)([A-Za-z_][\w.-]*)\s*[:=](?:\s+|$)(.*)")
_PAIR_TIGHT = re.compile(r"(\s*)([A-Za-z_][\w.-]*)=(.*)")
_ITEM = re.compile(r"\s*-\s+(.*)")
_FOLDED = re.compile(r"[|>][+-]?\d?")
_LIST = re.compile(r"\[(.*)\]", re.DOTALL)
_DATE_FIELDS = ("updated", "modified", "lastmod", "last_modified", "date", "created")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)[^\n]*", re.MULTILINE | re.DOTALL)
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
_ARROW = " › "
_INDEX_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_LINK_TARGET = re.compile(r"\]\(([^)#\s]++)[^)]*+\)")
_CLAUDE_KINDS = {
    "user": Kind.FACT,  # facts about the user
    "feedback": Kind.INSTRUCTION,  # how the user wants things done
    "project": Kind.FACT,
    "reference": Kind.NOTE,
}


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields at the top of a note, the note without them, and the line that it begins at."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    body: str = ""
    line: int = 1

    def one(self, *names: str) -> str:
        """Return the first of these fields that has a value, as a text; else an empty one."""
        found = (" ".join(self.fields[name]) for name in names if name in self.fields)
        return next((text for text in found if text), "")

    def many(self, *names: str) -> list[str]:
        """Return every value of these fields; `a, b` are two."""
        values = [value for name in names for value in self.fields.get(name, [])]
        return [word.strip() for value in values for word in value.split(",") if word.strip()]


@dataclass(slots=True)
class _NoteSection:
    """A heading and what stands below it."""

    heading: str
    level: int
    line: int
    lines: list[str] = field(default_factory=list)
    below: list["_NoteSection"] = field(default_factory=list)

    def own_text(self) -> str:
        return "\n".join(self.lines).strip("\n")

    def whole_text(self) -> str:
        texts = (self.own_text(), *(section.whole_text() for section in self.below))
        return "\n\n".join(text for text in texts if text)

    def has_own_text(self) -> bool:
        rest = self.lines[1:] if self.heading else self.lines
        return any(line.strip("=- \t") for line in rest)


def read_note(
    path: str, text: str, at: int | None, *, by_headings: bool = False
) -> list[ForeignMemory]:
    """Return the memories of a note; `path` is relative to its folder, `at` when it was changed.

    By headings, each section with a text is a memory of its own, as ClawMem has it.
    """
    front = split_front_matter(_normalize_line_ends(text))
    title, kind = front.one("title"), front.one("kind", "type").lower()
    dates = (parse_time_ms(front.one(name)) for name in _DATE_FIELDS)
    note = ForeignMemory(
        title=f"{path}: {title}" if title else path,
        text=front.body,
        line=front.line,
        kind=Kind(kind) if kind in set(Kind) else Kind.NOTE,
        at=next((date for date in dates if date is not None), at),
        tags=clean_tags(front.many("tags", "tag", "keywords")),
        has_front_matter=bool(front.fields),
    )
    return list(split_note(note, 0 if by_headings else WHOLE_CHARACTERS_MAX))


def read_claude_memory(
    path: str, text: str, at: int | None, beside: Collection[str]
) -> tuple[list[ForeignMemory], str]:
    """Return the memories of a file of Claude Code's memory, or why it has none.

    `MEMORY.md` lists the other files; these lines are left out. `beside`: the names of the other files.
    """
    front = split_front_matter(_normalize_line_ends(text))
    body = front.body
    if path.rpartition("/")[2] == MEMORY_INDEX:
        lines = [line for line in body.split("\n") if not _links_to(line, beside)]
        body = "\n".join(lines)
        if not any(line.strip() and not line.startswith("#") for line in lines):
            return [], "an index of the notes beside it"
    if not body.strip():
        return [], "empty"
    type_ = front.one("type", "metadata.type").lower()
    name, about = front.one("name", "title"), front.one("description")
    if not set(content_stems(about)) <= set(content_stems(f"{name} {body}")):
        body = f"{body.rstrip()}\n\n{about}"  # a search finds it by its words
    note = ForeignMemory(
        title=": ".join(filter(None, (name, about))) or path,
        text=body,
        line=front.line,
        kind=_CLAUDE_KINDS.get(type_, Kind.NOTE),
        at=at,
        tags=clean_tags([type_, *front.many("tags")]),
        has_front_matter=bool(front.fields),
    )
    return [_title_by_text(one, name) for one in split_note(note)], ""


def _title_by_text(note: ForeignMemory, name: str) -> ForeignMemory:
    """Title a whole note by its first sentence that says something: its description only says what it is about."""
    said = (
        sentence
        for paragraph in _list_paragraphs(note)
        for sentence in split_sentences(strip_emphasis(_LINK.sub(r"\1", paragraph)))
        if not sentence.endswith(":") and len(content_stems(sentence)) > 1
    )
    if note.part or not (first := next(said, "")):
        return note
    title = ": ".join(filter(None, (name, first)))
    return replace(note, title=one_line(title, TITLE_CHARACTERS_MAX))


def _list_paragraphs(note: ForeignMemory) -> Iterator[str]:
    """Yield each paragraph and item of a note, on one line, without headings and code."""
    for section in _find_sections(note):
        own = section.lines[1 if section.heading else 0 :]
        told = "\n".join(line for line in own if not _UNDERLINE.fullmatch(line))
        prose = _CODE.sub("\n\n", told)
        for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", prose):
            yield " ".join(_INDEX_ITEM.sub("", block.strip(), count=1).split())


def _links_to(line: str, beside: Collection[str]) -> bool:
    """Return whether a line is a list item with a link to one of these files."""
    # Up to the last closing bracket every link ends, so the pattern takes linear time.
    links = line[: line.rfind(")") + 1] if _INDEX_ITEM.match(line) else ""
    found = _LINK_TARGET.search(links)
    return found is not None and found[1].removeprefix("./") in beside


def _normalize_line_ends(text: str) -> str:
    """Return the text with line feeds only and without a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def split_front_matter(text: str) -> FrontMatter:
    """Split a note from its front matter, of which the usual part of YAML and TOML is understood.

    That is values, lists, folded texts, and one level of nesting as `outer.inner`. All else is ignored; a
    note that only begins with a horizontal rule has no front matter.
    """
    lines = text.split("\n")
    ends = _FRONT_MATTER_ENDS.get(lines[0].rstrip(), ())
    inside = enumerate(lines[1:_FRONT_MATTER_LINES_MAX], 1)
    stop = next((number for number, line in inside if line.rstrip() in ends), 0)
    fields = _parse_fields(lines[1:stop]) if stop else {}
    if not fields:
        return FrontMatter(body=text)
    return FrontMatter(fields, "\n".join(lines[stop + 1 :]), stop + 2)


def _parse_fields(lines: list[str]) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    outer = name = ""
    for line in lines:
        pair = _PAIR.fullmatch(line) or _PAIR_TIGHT.fullmatch(line)
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if item := _ITEM.fullmatch(line):
            fields.setdefault(name, []).append(_unquote_value(item[1]))
        elif pair and (not pair[1] or (outer and not fields.get(outer))):
            outer = outer if pair[1] else pair[2].lower()
            name = f"{outer}.{pair[2].lower()}" if pair[1] else outer
            fields[name] = _parse_value(pair[3].strip())
        elif name and line[0].isspace():
            fields[name] = [" ".join((*fields.get(name, []), line.strip())).strip()]
    return {name: values for name, values in fields.items() if name}


def _parse_value(value: str) -> list[str]:
    if not value or _FOLDED.fullmatch(value):
        return []
    if found := _LIST.fullmatch(value):
        return [word for raw in found[1].split(",") if (word := _unquote_value(raw))]
    return [_unquote_value(value)]


def _unquote_value(value: str) -> str:
    text = value.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def split_note(
    note: ForeignMemory, whole_characters_max: int = WHOLE_CHARACTERS_MAX
) -> Iterator[ForeignMemory]:
    """Yield the memories of a note: its sections if it is longer, with its title before their headings."""
    counts: Counter[str] = Counter()
    for trail, section, text in _split_section(_build_tree(note), (), whole_characters_max):
        name = _ARROW.join(trail)
        counts[name] += 1
        title = _ARROW.join((note.title, *trail))
        if len(title) >= TITLE_CHARACTERS_MAX and len(trail) > 1:
            title = _ARROW.join((note.title, "…", trail[-1]))
        yield from split_memory(
            replace(
                note,
                title=title,
                text=text,
                part=name if counts[name] == 1 else f"{name} ({counts[name]})",
                line=section.line,
            )
        )


def _split_section(
    section: _NoteSection, above: tuple[str, ...], whole_characters_max: int, bare: str = ""
) -> Iterator[tuple[tuple[str, ...], _NoteSection, str]]:
    """Yield the parts of a section; `bare`: headings directly above it that have no text."""
    trail = (*above, section.heading) if section.heading else above
    whole = section.whole_text()
    if not whole.strip():
        return
    if len(whole) <= whole_characters_max or not section.below:
        yield trail, section, bare + whole
        return
    if section.has_own_text():
        yield trail, section, bare + section.own_text()
        bare = ""
    elif section.heading:
        bare += f"{section.own_text()}\n\n"
    for below in section.below:
        yield from _split_section(below, trail, whole_characters_max, bare)
        bare = ""


def _build_tree(note: ForeignMemory) -> _NoteSection:
    """Return the root of the note's sections, each below the nearest one of a higher rank."""
    path: list[_NoteSection] = []
    for section in _find_sections(note):
        while path and path[-1].level >= section.level:
            path.pop()
        if path:
            path[-1].below.append(section)
        path.append(section)
    return path[0]


def _find_sections(note: ForeignMemory) -> Iterator[_NoteSection]:
    """Yield the text before the first heading as a section of level 0, then a section for each heading."""
    current = _NoteSection("", 0, note.line or 1)
    fence = ""
    for number, line in enumerate(note.text.split("\n"), start=current.line):
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else mark[1]
        if fence or mark:
            current.lines.append(line)
            continue
        if found := _HEADING.fullmatch(line):
            yield current
            current = _NoteSection(_clean_heading(found[2] or ""), len(found[1]), number)
        elif (under := _UNDERLINE.fullmatch(line)) and _is_heading_line(current):
            heading = current.lines.pop()
            yield current
            level = 1 if under[1].startswith("=") else 2
            current = _NoteSection(_clean_heading(heading), level, number - 1, [heading])
        current.lines.append(line)
    yield current


def _is_heading_line(section: _NoteSection) -> bool:
    """Return whether the last line is a paragraph of its own, so that an underline makes it a heading."""
    last, before = ["", "", *section.lines[-2:]][:-3:-1]
    is_text = bool(last.strip()) and not last.lstrip().startswith((">", "-", "*", "|", "#", "+"))
    is_alone = not before.strip() or (section.heading != "" and len(section.lines) == 2)  # noqa: PLR2004  # heading and text
    return is_text and is_alone and not (section.heading and len(section.lines) == 1)


def _clean_heading(heading: str) -> str:
    """Return a heading without its markup; one of markup alone stays, for it splits the text too."""
    trimmed = heading.rstrip(" \t")
    text = trimmed.rstrip("#")
    bare = text.rstrip(" \t") if text.endswith((" ", "\t")) else trimmed
    return _LINK.sub(r"\1", bare).strip(" #*_`\t") or bare.strip() or "…"
