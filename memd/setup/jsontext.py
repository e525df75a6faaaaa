"""Changes JSON and leaves every byte alone that need not change: settings are other people's. Pure.

A text becomes a tree of values that know where they stand. Written with a new value, whatever is
equal is copied as it was, with its blanks, its escapes and its way of writing numbers; what is new
takes the indentation of its neighbours. Only plain JSON: comments and twice-given keys would be lost.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memd.errors import BadRequest

_BLANKS = re.compile(r"[ \t\r\n]*")
_MARGIN = re.compile(r"\n([ \t]+)")
_DECODER = json.JSONDecoder()
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class _Node:
    """A value in a text. `parts` are those of an object or a list; `tail` is blank, before its end."""

    raw: str
    value: Any
    parts: tuple["_Part", ...] = ()
    tail: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """A member: blanks, its key and colon, its value, blanks."""

    lead: str
    key: str | None
    label: str
    node: _Node
    trail: str


def parse(text: str) -> Any:
    """Read a text. Raises BadRequest that names line and column."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        said = error.msg
        if text[error.pos : error.pos + 2] in {"//", "/*"}:
            said = "a comment, which JSON does not have"
        raise BadRequest(f"{place}: {said}") from error
    except RecursionError as error:
        raise BadRequest("it is nested too deeply") from error


def edit(text: str, new: Any) -> str:
    """Return the text changed so that it says `new`. Raises BadRequest if it is no JSON."""
    parse(text)
    start = _blank(text, 0)
    try:
        node, end = _node(text, start)
    except RecursionError as error:
        raise BadRequest("it is nested too deeply") from error
    return text[:start] + _Writer(text).written(node, new, "") + text[end:]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadRequest(f"the key {json.dumps(twice)} stands twice in one object")
    return made


def _no_number(word: str) -> Any:
    raise BadRequest(f"{word} is not JSON")


def _blank(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def _node(text: str, at: int) -> tuple[_Node, int]:
    """Read the value that begins there, and where it ends. The text is known to be JSON."""
    if text[at] not in "{[":
        value, end = _DECODER.raw_decode(text, at)
        return _Node(text[at:end], value), end
    parts: list[_Part] = []
    here, is_object = at + 1, text[at] == "{"
    while text[_blank(text, here)] not in "}]":
        part, here = _part(text, here, is_object=is_object)
        parts.append(part)
        if text[here] != ",":
            break
        here += 1
    end = _blank(text, here) + 1
    raw, tail = text[at:end], text[here : end - 1]
    if parts:
        tail = parts[-1].trail
        parts[-1] = _Part(parts[-1].lead, parts[-1].key, parts[-1].label, parts[-1].node, "")
    values = [part.node.value for part in parts]
    keys = [part.key for part in parts]
    value = dict(zip(keys, values, strict=True)) if is_object else values
    return _Node(raw, value, tuple(parts), tail), end


def _part(text: str, at: int, *, is_object: bool) -> tuple[_Part, int]:
    start = middle = _blank(text, at)
    key = None
    if is_object:
        key, after = _DECODER.raw_decode(text, start)
        middle = _blank(text, _blank(text, after) + 1)
    node, end = _node(text, middle)
    next_ = _blank(text, end)
    return _Part(text[at:start], key, text[start:middle], node, text[end:next_]), next_


def _same(one: Any, other: Any) -> bool:
    """Whether two values are written alike: 1, 1.0 and true are three."""
    return json.dumps(one) == json.dumps(other)


class _Writer:
    """Writes values into the manner of one text."""

    def __init__(self, text: str) -> None:
        body = text.strip()
        self._newline = "\r\n" if "\r\n" in text else "\n"
        found = _MARGIN.search(body)
        self._indent = found[1] if found else _INDENT
        self._is_flat = "\n" not in body and body not in {"{}", "[]"}

    def written(self, node: _Node, new: Any, margin: str) -> str:
        """Write `new` where `node` stands, in lines that begin with `margin`."""
        if _same(node.value, new):
            return node.raw
        if isinstance(new, dict) and isinstance(node.value, dict):
            old = {part.key: part for part in node.parts}
            pairs: Iterable[Any] = [(key, old.get(key), value) for key, value in new.items()]
            return self._container("{}", node, list(pairs), margin)
        if isinstance(new, list) and isinstance(node.value, list):
            pairs = [(None, part, value) for part, value in _matched(node.parts, new)]
            return self._container("[]", node, list(pairs), margin)
        return self._fresh(new, margin, is_flat=self._is_flat)

    def _container(
        self,
        ends: str,
        node: _Node,
        members: list[tuple[str | None, _Part | None, Any]],
        margin: str,
    ) -> str:
        if not members:
            return ends
        first, further, tail = self._blanks(node, margin)
        inner = first.rpartition("\n")[2] if "\n" in first else margin
        pieces = []
        for number, (key, part, value) in enumerate(members):
            lead = first if number == 0 else further
            if part is None:
                label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
                pieces.append(
                    lead + label + self._fresh(value, inner, is_flat="\n" not in first)
                )
                continue
            if number and part is not node.parts[0]:
                lead = part.lead
            pieces.append(
                lead + part.label + self.written(part.node, value, inner) + part.trail
            )
        return ends[0] + ",".join(pieces) + tail + ends[1]

    def _blanks(self, node: _Node, margin: str) -> tuple[str, str, str]:
        """What stands before the first member, before each further one, and before the end."""
        if node.parts:
            first = node.parts[0].lead
            last = node.parts[-1].lead
            return first, last if len(node.parts) > 1 or "\n" in first else " ", node.tail
        if self._is_flat:
            return "", " ", ""
        line = self._newline + margin
        return line + self._indent, line + self._indent, line

    def _fresh(self, value: Any, margin: str, *, is_flat: bool) -> str:
        if is_flat:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self._indent).split("\n")
        return f"{self._newline}{margin}".join(lines)


def _matched(parts: tuple[_Part, ...], new: list[Any]) -> list[tuple[_Part | None, Any]]:
    """Each new value with the old member that says the same, as far as their order agrees."""
    matched: list[tuple[_Part | None, Any]] = []
    at = 0
    for value in new:
        found = next(
            (i for i in range(at, len(parts)) if _same(parts[i].node.value, value)), None
        )
        matched.append((None if found is None else parts[found], value))
        at = at if found is None else found + 1
    return matched
