"""Claude Code's own memory files as memories: `MEMORY.md` and the notes beside it. Pure.

A note says in the block at its top what it is called, what it is about and of which type it is.
`MEMORY.md` lists the notes, a line each, and that list says nothing that they do not; whatever else
stands in it is remembered like any note. The layout is the client's own affair and may change: a
file that is not understood is a plain note.
"""

import re
from collections.abc import Collection

from memd.exchange import entry, frontmatter, markdown
from memd.exchange.entry import Entry
from memd.exchange.markdown import Note
from memd.models import Kind

INDEX = "MEMORY.md"
_KINDS = {
    "user": Kind.FACT,  # who the user is
    "feedback": Kind.INSTRUCTION,  # how the user wants things done
    "project": Kind.FACT,
    "reference": Kind.NOTE,
}
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_POINTED = re.compile(r"\]\(([^)#\s]++)[^)]*+\)")


def read(
    path: str, text: str, at: int | None, beside: Collection[str]
) -> tuple[list[Entry], str]:
    """The memories of one file, and why it has none; `beside` are the names of the other files."""
    facts = frontmatter.split(markdown.clean(text))
    body = facts.body
    if path.rpartition("/")[2] == INDEX:
        body = "\n".join(line for line in body.split("\n") if not _points(line, beside))
        if not any(line.strip() and not line.startswith("#") for line in body.split("\n")):
            return [], "an index of the notes beside it"
    if not body.strip():
        return [], "empty"
    type_ = facts.one("type", "metadata.type").lower()
    name, about = facts.one("name", "title"), facts.one("description")
    note = Note(
        name=entry.title(": ".join(filter(None, (name, about))) or path),
        body=body,
        line=facts.line,
        kind=_KINDS.get(type_, Kind.NOTE),
        at=at,
        tags=entry.tags([type_, *facts.many("tags")]),
    )
    return list(markdown.entries(note)), ""


def _points(line: str, beside: Collection[str]) -> bool:
    # Without what follows the last bracket that closes, every link ends somewhere.
    links = line[: line.rfind(")") + 1] if _ITEM.match(line) else ""
    found = _POINTED.search(links)
    return found is not None and found[1].removeprefix("./") in beside
