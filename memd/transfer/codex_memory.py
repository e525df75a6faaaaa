"""The memory files of Codex CLI, which one of its agents writes.

`MEMORY.md` has a part for each family of tasks: what it applies to, its tasks, and below them what was learned in lists.
`memory_summary.md` has what holds everywhere, and an index of the other. The form is that which the client (0.169.0) tells
the agent to keep to. A list's item is a memory; lists of files, of keywords and of contents are none.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from memd.models import GLOBAL_PROJECT, Kind
from memd.text import digest
from memd.transfer.record import ForeignMemory, clean_tags, part_name

SUMMARY = "memory_summary.md"
INDEX = "MEMORY.md"
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*")
_GROUP = re.compile(r"Task Group:\s*(.+)", re.IGNORECASE)
_DIRECTORY = re.compile(r"\bcwd=(/[^\s;,]*)")
_ITEM = re.compile(r"[-*]\s+(.*)")
_TASKS = re.compile(r"\s*(?:\[Task \d+\])+\s*$")
"""Which tasks of the group an item was learned in."""
_TITLE_CHARACTERS = 100
_KINDS = {
    "user preferences": Kind.PREFERENCE,
    "user profile": Kind.FACT,
    "reusable knowledge": Kind.FACT,
    "general tips": Kind.FACT,
    "failures and how to do differently": Kind.DISCOVERY,
}
"""Heading of a list → the kind of its items; other lists lead to files."""
_PROFILE = "user profile"


def read_codex_memory(name: str, text: str, at: int | None) -> list[ForeignMemory]:
    """Return the memories of `MEMORY.md` or `memory_summary.md`; `at` is when it was changed, UTC ms."""
    is_summary = name == SUMMARY
    group = directory = ""
    kind: Kind | None = None
    heading = ""
    found: list[ForeignMemory] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if begun := _HEADING.fullmatch(line.strip()):
            heading = begun[2].lower()
            kind = _KINDS.get(heading)
            if named := _GROUP.fullmatch(begun[2]):
                group, directory = named[1], ""
            continue
        if line.startswith("applies_to:") and (place := _DIRECTORY.search(line)):
            directory = place[1]
        item = _ITEM.fullmatch(line)
        said = item[1] if item else line.strip()
        if (
            kind is None
            or not said
            or (item is None and line[:1] not in (" ", "\t") and heading != _PROFILE)
        ):
            continue
        if item is None and found and line[:1] in (" ", "\t"):
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{line.strip()}")
            continue
        memory = ForeignMemory(
            "", said, line=number, kind=kind, at=at, tags=clean_tags([group, heading]),
            directory=directory or None, project=GLOBAL_PROJECT if is_summary else group or None,
        )  # fmt: skip
        found.append(memory)
    return list(_name_all(found))


def _name_all(memories: list[ForeignMemory]) -> Iterator[ForeignMemory]:
    """Give each memory a title of its first words, and a part that stays the same when others come and go."""
    seen: set[str] = set()
    for memory in memories:
        text = _TASKS.sub("", memory.text)
        part = part_name(memory.project or "", digest(text)[:16])
        if part in seen or not any(c.isalnum() for c in text):
            continue
        seen.add(part)
        yield replace(memory, title=_first_words(text), text=text, part=part)


def _first_words(text: str) -> str:
    line = text.split("\n", 1)[0].strip()
    if len(line) <= _TITLE_CHARACTERS:
        return line
    head = line[: _TITLE_CHARACTERS - 1]
    return f"{head[: head.rfind(' ')] if ' ' in head else head}…"
