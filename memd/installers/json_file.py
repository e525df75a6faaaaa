"""Edit a JSON file of another program: every byte that need not change stays as it is.

A text is parsed into values that know how they are written. A value that does not change is copied with
its spaces, escapes and number format; a new member takes the indentation of its neighbours. A file with
comments or duplicate keys is refused, because they would be lost.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from memd.errors import BadRequest, Broken
from memd.installers.plan import FileChange, list_backups, read_file

_WHITESPACE = re.compile(r"[ \t\r\n]*")
_FIRST_INDENT = re.compile(r"\n([ \t]+)")
_DECODER = json.JSONDecoder()
_DEFAULT_INDENT = "  "
_BYTE_ORDER_MARK = "\ufeff"
_FILLED = ("hooks", "mcpServers")
"""Members that memd puts its entries into."""


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A file that holds one JSON object, as it was read."""

    path: Path
    content: bytes | None
    value: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; a missing or empty one holds `{}`. Raises BadRequest with the place of an error."""
        content = read_file(path)
        try:
            _, text = _split_byte_order_mark(content)
            value = parse(text) if text.strip() else {}
        except UnicodeDecodeError as error:
            raise _refuse_file(path, f"byte {error.start} is not UTF-8") from error
        except BadRequest as error:
            raise _refuse_file(path, error.message) from error
        if not isinstance(value, dict):
            raise _refuse_file(path, "it holds no object")
        return cls(path, content, value)

    def change(self, edit_value: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> FileChange:
        """Plan to write what `edit_value` returns; a file whose object becomes empty is removed.

        A BadRequest of `edit_value` is raised again with the file's name.
        """
        try:
            value = edit_value(self.value)
        except BadRequest as error:
            raise _refuse_file(self.path, error.message) from error
        if value == self.value:
            return FileChange(self.path, self.content, self.content)
        if not value:
            # A link and the file behind it are the user's: an empty object takes nothing from them.
            rest = b"{}\n" if self.path.is_symlink() else None
            return FileChange(self.path, self.content, rest)
        mark, text = _split_byte_order_mark(self.content)
        after = edit(text if text.strip() else "{}\n", value)
        return FileChange(self.path, self.content, f"{mark}{after}".encode())


def give_back_empty(change: FileChange) -> FileChange:
    """Return a removal of memd's entries that also gives back what was empty before they came.

    An empty list of hooks, or an empty file, cannot be told any more from one that memd made; a backup tells. It counts
    only if it has all that the removal leaves and nothing else: what the user wrote since then stays.
    """
    if not change.is_needed or change.is_generated:
        return change
    try:
        left = _read_object(change.after)
        for path in list_backups(change.path):
            content = read_file(path)
            before = _read_object(content)
            has_lost = change.after is None or before != left
            if has_lost and _differ_by_empty(before, left):
                return replace(change, after=content)
    except (BadRequest, Broken, UnicodeDecodeError):
        return change  # it is no JSON: then nothing of it was emptied
    return change


def _read_object(content: bytes | None) -> Any:
    _, text = _split_byte_order_mark(content)
    return parse(text) if text.strip() else {}


def _differ_by_empty(before: Any, left: Any) -> bool:
    """Whether two files have the same members but for empty ones where memd's entries stood."""
    if not (isinstance(before, dict) and isinstance(left, dict)):
        return False
    # The version of a hooks file goes with its last hook.
    names = {*before, *left} - {*_FILLED} - ({"version"} if not left else set())
    if any(not _is_same_json(before.get(n), left.get(n)) for n in names):
        return False
    for name in _FILLED:
        was, now = before.get(name, {}), left.get(name, {})
        if not (isinstance(was, dict) and isinstance(now, dict)):
            return False
        lost = [value for key, value in was.items() if key not in now]
        if any(lost) or any(was.get(key) != value for key, value in now.items()):
            return False
    return True


def _split_byte_order_mark(content: bytes | None) -> tuple[str, str]:
    """Return the byte order mark, or an empty string, and the text after it."""
    text = (content or b"").decode("utf-8")
    rest = text.removeprefix(_BYTE_ORDER_MARK)
    return text[: len(text) - len(rest)], rest


def _refuse_file(path: Path, reason: str) -> BadRequest:
    return BadRequest(f"{path}: {reason}. Nothing was changed; fix the file, then try again")


def parse(text: str) -> Any:
    """Parse a JSON text. Raises BadRequest that names line and column."""
    try:
        return json.loads(
            text, object_pairs_hook=_refuse_duplicate_keys, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        is_comment = text[error.pos : error.pos + 2] in {"//", "/*"}
        reason = "a comment, which JSON does not have" if is_comment else error.msg
        raise BadRequest(f"line {error.lineno}, column {error.colno}: {reason}") from error
    except RecursionError as error:
        raise BadRequest("it is nested too deeply") from error


def edit(text: str, new: Any) -> str:
    """Return the text changed so that it holds the value `new`. Raises BadRequest if it is not JSON."""
    old = parse(text)
    start, end = _skip_whitespace(text, 0), len(text.rstrip())
    try:
        written = _Formatter(text).rewrite(text[start:end], old, new, "")
    except RecursionError as error:
        raise BadRequest("it is nested too deeply") from error
    return text[:start] + written + text[end:]


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise BadRequest(f"the key {json.dumps(key)} stands twice in one object")
        seen[key] = value
    return seen


def _refuse_constant(word: str) -> Any:
    raise BadRequest(f"{word} is not JSON")


@dataclass(frozen=True, slots=True)
class _JsonMember:
    """A member of an object or a list, as it is written: space, key and colon, value, space."""

    lead: str
    key: str | None
    label: str
    text: str
    value: Any
    trail: str


def _split_members(text: str) -> tuple[list[_JsonMember], str]:
    """Split the text of an object or a list into its members and the space before its end."""
    members: list[_JsonMember] = []
    at = 1
    while True:
        start = value_start = _skip_whitespace(text, at)
        if text[start] in "}]":
            return [], text[at:start]
        key = None
        if text[0] == "{":
            key, key_end = _DECODER.raw_decode(text, start)
            value_start = _skip_whitespace(text, _skip_whitespace(text, key_end) + 1)
        value, value_end = _DECODER.raw_decode(text, value_start)
        end = _skip_whitespace(text, value_end)
        lead, label, written = (
            text[at:start],
            text[start:value_start],
            text[value_start:value_end],
        )
        if text[end] != ",":
            return [*members, _JsonMember(lead, key, label, written, value, "")], text[
                value_end:end
            ]
        members.append(_JsonMember(lead, key, label, written, value, text[value_end:end]))
        at = end + 1


def _skip_whitespace(text: str, at: int) -> int:
    found = _WHITESPACE.match(text, at)
    return at if found is None else found.end()


_Match = tuple[_JsonMember | None, str | None, Any]
"""A new member: the old one in whose place it is written, its key if it has one, and its value."""


class _Formatter:
    """Writes values in the style of one text: its newlines and its indentation."""

    def __init__(self, text: str) -> None:
        body = text.strip()
        self._newline = "\r\n" if "\r\n" in text else "\n"
        found = _FIRST_INDENT.search(body)
        self._indent = found[1] if found else _DEFAULT_INDENT
        self._is_one_line = "\n" not in body and body not in {"{}", "[]"}

    def rewrite(self, text: str, old: Any, new: Any, margin: str) -> str:
        """Write `new` in place of `text`, which holds `old`; `margin` is the indentation of its line."""
        if _is_same_json(old, new):
            return text
        if isinstance(new, dict) and isinstance(old, dict):
            members, tail = _split_members(text)
            by_key = {member.key: member for member in members}
            matches = [(by_key.get(key), key, value) for key, value in new.items()]
            return f"{{{self._join_members(members, tail, matches, margin)}}}"
        if isinstance(new, list) and isinstance(old, list):
            members, tail = _split_members(text)
            return f"[{self._join_members(members, tail, _match_items(members, new), margin)}]"
        return self._write_new(new, margin, is_one_line=self._is_one_line)

    def _join_members(
        self, old: list[_JsonMember], tail: str, matches: list[_Match], margin: str
    ) -> str:
        if not matches:
            return ""
        if old:
            first_lead, next_lead = old[0].lead, old[-1].lead
            if len(old) == 1 and "\n" not in first_lead:
                next_lead = " "
        elif self._is_one_line:
            first_lead, next_lead, tail = "", " ", ""
        else:
            tail = self._newline + margin
            first_lead = next_lead = tail + self._indent
        has_lines = "\n" in first_lead
        inner = first_lead.rpartition("\n")[2] if has_lines else margin
        pieces = []
        for number, (member, key, value) in enumerate(matches):
            lead = next_lead if number else first_lead
            if member is None:
                label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
                written = self._write_new(value, inner, is_one_line=not has_lines)
                pieces.append(lead + label + written)
                continue
            if number and member is not old[0]:
                lead = member.lead
            written = self.rewrite(member.text, member.value, value, inner)
            pieces.append(lead + member.label + written + member.trail)
        return ",".join(pieces) + tail

    def _write_new(self, value: Any, margin: str, *, is_one_line: bool) -> str:
        if is_one_line:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self._indent).split("\n")
        return f"{self._newline}{margin}".join(lines)


def _match_items(members: list[_JsonMember], items: list[Any]) -> list[_Match]:
    """Pair each item with the next old member that has the same value."""
    matches: list[_Match] = []
    start = 0
    for item in items:
        same = (at for at in range(start, len(members)) if _is_same_json(members[at].value, item))
        at = next(same, None)
        matches.append((None if at is None else members[at], None, item))
        start = start if at is None else at + 1
    return matches


def _is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are written alike: 1, 1.0 and true are three."""
    return json.dumps(one) == json.dumps(other)
