"""The block of facts at the top of a note: `title`, `tags`, `date`, leniently understood. Pure.

A small part of YAML (and of TOML between `+++`), enough for what people write there: values, lists,
folded texts, one level of nesting as `outer.inner`. What is not understood is passed over and never
raises. A note that only begins with a rule of dashes has no such block.
"""

import re
from dataclasses import dataclass, field

_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
_LINES_MAX = 300
_PAIR = re.compile(r"(\s*)([A-Za-z_][\w.-]*)\s*[:=](?:\s+|$)(.*)")
_PAIR_TIGHT = re.compile(r"(\s*)([A-Za-z_][\w.-]*)=(.*)")
_ITEM = re.compile(r"\s*-\s+(.*)")
_BLOCK = re.compile(r"[|>][+-]?\d?")
_LIST = re.compile(r"\[(.*)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Facts:
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


def split(text: str) -> Facts:
    """Part a note from the block at its top."""
    lines = text.split("\n")
    ends = _FENCES.get(lines[0].rstrip())
    stop = next(
        (n for n, line in enumerate(lines[1:_LINES_MAX], 1) if ends and line.rstrip() in ends),
        0,
    )
    values = _values(lines[1:stop]) if stop else {}
    if not values:
        return Facts(body=text)
    return Facts(values, "\n".join(lines[stop + 1 :]), stop + 2)


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
