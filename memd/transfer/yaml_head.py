"""Read the YAML head of a Markdown note: texts, lists and mappings, and nothing that could surprise.

PyYAML splits the head into events; values are built from them here, as texts, without its types. Anchors,
tags, keys that come twice, deep nesting and large heads are refused, so that no head is larger than it looks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memd.errors import BadRequest
from memd.text import storable

HEAD_CHARACTERS_MAX = 131_072
_DEPTH_MAX = 8
_VALUES_MAX = 2_000
_START, _ENDS = "---", ("---", "...")
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
"""Plain words that mean no value."""

HeadValue = str | None | list[Any] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class NoteHead:
    """The fields at the top of a note, the line that each stands in, the note below it and its first line."""

    fields: dict[str, HeadValue] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    body: str = ""
    line: int = 1

    def text(self, *names: str) -> str:
        """The first of these fields that has a value; "" without one. BadRequest if it is not a text."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, str):
                return value
            if value is not None:
                raise BadRequest(f"line {self.lines[name]}: {name} is to be a text")
        return ""

    def texts(self, name: str) -> list[str]:
        """The texts of a list; one text with commas is a list, too. BadRequest if it is neither."""
        value = self.fields.get(name)
        if isinstance(value, str):
            value = [word.strip() for word in value.split(",")]
        found = value or []
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise BadRequest(f"line {self.lines[name]}: {name} is to be a list of texts")
        return [one for one in found if one]

    def table(self, name: str) -> "NoteHead":
        """A mapping as a head of its own; an empty one without it. BadRequest if it is none."""
        value = self.fields.get(name)
        if not isinstance(value, dict | None):
            raise BadRequest(f"line {self.lines[name]}: {name} is to have fields of its own")
        fields = value or {}
        return NoteHead(fields, dict.fromkeys(fields, self.lines.get(name, 1)))


def read_head(text: str) -> NoteHead | None:
    """Split a note from its head; None if it has none. BadRequest names the line.

    `text` has line feeds only and no byte order mark.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != _START:
        return None
    stop = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in _ENDS), 0)
    if not stop:
        raise BadRequest("line 1: the head that begins here with --- does not end with ---")
    head = "\n".join(lines[1:stop]) + "\n"
    if len(head) > HEAD_CHARACTERS_MAX:
        raise BadRequest(f"line 1: the head is longer than {HEAD_CHARACTERS_MAX // 1024} KiB")
    fields, places = _read_fields(head)
    return NoteHead(fields, places, "\n".join(lines[stop + 1 :]), stop + 2)


def _read_fields(head: str) -> tuple[dict[str, HeadValue], dict[str, int]]:
    import yaml  # noqa: PLC0415  # few commands need it

    try:
        builder = _HeadBuilder(yaml, yaml.parse(head, Loader=yaml.BaseLoader))
        return builder.build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 2 if mark else 1
        raise BadRequest(f"line {line}: no YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = head.count("\n", 0, error.position) + 2
        raise BadRequest(f"line {line}: a character that YAML does not allow") from None
    except (ValueError, OverflowError):
        # PyYAML does not check the number of an escaped character or of a version.
        raise BadRequest("line 2: the head has a number that is none of YAML's") from None


class _HeadBuilder:
    """Builds the values of a head from its events."""

    def __init__(self, yaml: Any, events: Iterator[Any]) -> None:
        self._yaml, self._events, self._count = yaml, events, 0
        self._lines: dict[str, int] = {}

    def build(self) -> tuple[dict[str, HeadValue], dict[str, int]]:
        """(fields, field → line). BadRequest if the head is no mapping."""
        yaml = self._yaml
        next(self._events)  # the beginning of the stream
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            return {}, {}
        value = self._build_value(next(self._events), 0)
        if not isinstance(value, dict | None):
            raise BadRequest("line 2: the head is no list of `field: value`")
        next(self._events)  # the end of the document
        if not isinstance(event := next(self._events), yaml.StreamEndEvent):
            raise BadRequest(f"line {_line_of(event)}: a second document in one head")
        return value or {}, self._lines

    def _build_value(self, event: Any, depth: int) -> HeadValue:
        yaml = self._yaml
        self._refuse(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            is_nothing = event.style is None and event.value in _NOTHING
            return None if is_nothing else storable(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return list(self._build_items(depth))
        return self._build_fields(depth)

    def _refuse(self, event: Any, depth: int) -> None:
        self._count += 1
        line = _line_of(event)
        if event.anchor is not None:
            raise BadRequest(f"line {line}: anchors and aliases (& and *) are not read")
        if event.tag is not None:
            raise BadRequest(f"line {line}: tags ({event.tag[:40]}) are not read")
        if depth > _DEPTH_MAX:
            raise BadRequest(f"line {line}: nested more than {_DEPTH_MAX} levels deep")
        if self._count > _VALUES_MAX:
            raise BadRequest(f"line {line}: more than {_VALUES_MAX} values")

    def _build_items(self, depth: int) -> Iterator[HeadValue]:
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            yield self._build_value(event, depth + 1)

    def _build_fields(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            line = _line_of(event)
            name = self._build_value(event, depth + 1)
            if not isinstance(name, str):
                raise BadRequest(f"line {line}: the name of a field is to be a text")
            if name in found:
                raise BadRequest(f"line {line}: {name[:40]} stands here a second time")
            found[name] = self._build_value(next(self._events), depth + 1)
            if depth == 0:
                self._lines[name] = line
        return found


def _line_of(event: Any) -> int:
    """The line of the note, whose first is the --- above the head."""
    return int(event.start_mark.line) + 2
