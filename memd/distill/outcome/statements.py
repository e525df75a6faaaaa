"""The statements of a message in Markdown: its headings, sentences and list items, in plain words. Pure.

A closing message seldom begins with what it has to say: `Done.`, `All tests pass.`, `Here's a summary:`. So each
of its statements is read, without the words that only lead up to it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from memd.caches import cached
from memd.distill.sentences import split_sentences
from memd.patterns import compile_lazily

Form = Literal["heading", "sentence", "item"]
_READ_CHARACTERS = 12_000
_STATEMENTS_MAX = 80
_LINES_CACHED = 1_024
"""Lines that are kept without markup: a message is read again with those around it."""
_FENCE = compile_lazily(r"^\s*(?:```|~~~)")
_HEADING = compile_lazily(r"^\s*#{1,6}\s+(.+?)\s*#*$")
_BOLD_LINE = compile_lazily(r"^\s*(?:\d{1,2}[.)]\s+)?\*\*([^*]+?)\*\*:?\s*$")
_ITEM = compile_lazily(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?")
_NO_PROSE = compile_lazily(
    r"^\s*(?:\||>|\"[\w-]+\":|[{}\[\]]+,?\s*$|[-=*_─━═]{3,}\s*$|[\u2500-\u257f])"
)  # tables, quotes, JSON, rules, boxes
_BOX = compile_lazily(r"^\s*`?[^\w\s`]*\s*\w[\w ]{2,30}\s*[-=*_─━═]{8,}`?\s*$")
_RULE = compile_lazily(r"^\s*`?[-=*_─━═]{8,}`?\s*$")
"""`★ Insight ─────` and the rule under it: a lesson in a box, beside what was done."""
_BOLD_HEAD = compile_lazily(r"^\*\*([^*\n]{3,60}?)(?:\.\*\*|\*\*\.)\s+(?=\w)")
"""`**No more pulsing.** The cue …`: how an item of a list is called."""
_LINK = compile_lazily(r"!?\[([^\]\n]{1,300})\]\([^)\n]{0,500}\)")
_STRONG = compile_lazily(r"(\*\*|(?<![\w`/.])__)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = compile_lazily(r"(?<![\w*\\/`])\*(?=[^\s*])([^*\n`]{1,200}?)(?<=\S)\*(?![\w*])")
_LEADING_SIGNS = compile_lazily(r"^[^\w`\"'“(\[<@#./~$+-]+\s*")
_NUMBERING = compile_lazily(r"^(?:\d{1,2}[.)]|step \d+:|[a-h]\))\s+(?=\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a message says, on one line."""

    text: str
    form: Form
    position: int
    """Its number within the message, from 0."""
    leads: bool = False
    """It ends with a colon: what follows says the rest."""


def read_statements(message: str) -> list[Statement]:
    """The statements of a message, in order, without code, tables and quotations; bounded."""
    found: list[Statement] = []
    for form, text in _split_prose(message[:_READ_CHARACTERS]):
        for one in [text] if form == "heading" else split_sentences(text):
            plain = strip_markup(one)
            if any(c.isalnum() for c in plain):
                found.append(Statement(plain.rstrip(":"), form, len(found), plain.endswith(":")))
        if len(found) >= _STATEMENTS_MAX:
            break
    return found[:_STATEMENTS_MAX]


@cached(_LINES_CACHED)
def strip_markup(text: str) -> str:
    """One line of Markdown as plain text; backticks stay, since they mark names."""
    text = _LINK.sub(r"\1", text)
    text = _EMPHASIS.sub(r"\1", _STRONG.sub(r"\2", text)).replace("**", "")
    return _NUMBERING.sub("", _LEADING_SIGNS.sub("", " ".join(text.split())))


def _split_prose(message: str) -> Iterator[tuple[Form, str]]:
    """(form, text) of each heading, paragraph and item."""
    form: Form = "sentence"
    lines: list[str] = []
    is_code = is_box = False
    for line in (*message.split("\n"), ""):
        if _FENCE.match(line):
            is_code = not is_code
            continue
        if not is_code and (_RULE.match(line) or _BOX.match(line)):
            is_box = not is_box and _RULE.match(line) is None
            continue
        if is_code or is_box or _NO_PROSE.match(line):
            continue
        heading = _HEADING.match(line) or _BOLD_LINE.match(line)
        item = _ITEM.match(line)
        if lines and (heading or item or not line.strip()):
            yield form, " ".join(lines)
            form, lines = "sentence", []
        if heading:
            yield "heading", heading[1]
        elif line.strip():
            form = "item" if item else form
            own = _BOLD_HEAD.sub(r"\1 — ", line[item.end() :]) if item else line
            lines.append(own.strip())
