"""Planned file changes: diff, apply, undo."""

import contextlib
import difflib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memd.errors import BadRequest, Broken

# MERGED from memd.setup.files:
# MERGED Changes to files that are not memd's own: shown first, then made in one step, with a way back.
# MERGED
# MERGED A change is a value that says what was read and what shall stand there. Made, it leaves a dated copy
# MERGED of the old file beside it and replaces the whole file at once, through a link if there is one (people
# MERGED keep their settings in a repository and link to them). It is refused when the file is no longer what
# MERGED was read, or is read-only. Not here: what is written.


_PRIVATE = 0o600
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file as it was read, and as it shall be. None: no such file."""

    path: Path
    before: bytes | None
    after: bytes | None
    is_memds: bool = False
    """Whether all of `before` is what memd wrote; then no copy of it is left."""

    @property
    def is_needed(self) -> bool:
        """Whether anything would be different."""
        return self.before != self.after


def read(path: Path) -> bytes | None:
    """Return what stands in a file, None if there is none. Raises Broken if it cannot be read."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # To read from a pipe may never end.
            raise Broken(f"{path} is no ordinary file; nothing was changed")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Broken(
            f"{path} cannot be read ({error.strerror}); nothing was changed"
        ) from error


def diff(change: FileChange) -> str:
    """Draw a change as a unified diff; empty if nothing changes."""
    before, after = (_lines(content) for content in (change.before, change.after))
    drawn = difflib.unified_diff(
        before,
        after,
        "/dev/null" if change.before is None else str(change.path),
        "/dev/null" if change.after is None else str(change.path),
    )
    return "".join(line if line.endswith("\n") else f"{line}{_NO_NEWLINE}" for line in drawn)


def check(change: FileChange) -> None:
    """See that a change can be made. Raises Broken if the file is not what was read, or read-only."""
    if not change.is_needed:
        return
    if read(change.path) != change.before:
        raise Broken(f"{change.path} has just been changed by somebody else; run this again")
    if change.before is not None and not change.path.stat().st_mode & stat.S_IWUSR:
        raise Broken(f"{change.path} is read-only; nothing was changed. Make it writable first")


def apply(change: FileChange, now: int) -> Path | None:
    """Make a change, once; return the copy of the old file if one was left.

    `now` is UTC milliseconds. Raises Broken, with nothing changed: the file is no longer what was
    read, is read-only, or its directory cannot be written.
    """
    if not change.is_needed:
        return None
    check(change)
    try:
        backup = None
        if change.before is not None and not change.is_memds:
            backup = _back_up(change.path, change.before, now)
        if change.after is None:
            change.path.unlink()  # a link goes, what it points to stays
        else:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(change.path.resolve(), change.after)
    except OSError as error:
        raise Broken(f"{change.path} cannot be written ({error.strerror or error})") from error
    return backup


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)


def _back_up(path: Path, content: bytes, now: int) -> Path:
    """Leave the old file beside the path as it was named, not in what a link points into."""
    at = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    mode = stat.S_IMODE(path.stat().st_mode)
    for name in _names(f"{path.name}.memd-{at}"):
        with contextlib.suppress(FileExistsError):
            copy = path.with_name(name)
            with os.fdopen(
                os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb"
            ) as file:
                file.write(content)
            return copy
    raise AssertionError


def _names(stem: str) -> Iterator[str]:
    yield f"{stem}.bak"
    number = 2
    while True:
        yield f"{stem}-{number}.bak"
        number += 1


def _replace(path: Path, content: bytes) -> None:
    """Put the content there whole or not at all. The mode stays; a new file is private."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _PRIVATE
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(number, mode)
            os.fsync(number)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink()
        raise


# MERGED from memd.setup.plan:
# MERGED What an installation needs to know of this machine, and what it would do to it, as frozen values.


CARRIED = {
    "MEMD_HOME": None,
    "MEMD_VAULT": None,
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
"""What decides which files memd uses, and below the home what each is when it is not set."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where memd runs from, and for whom."""

    environ: Mapping[str, str]
    python: str
    """The interpreter that has memd, as an absolute path."""
    package: Path
    """The directory of the package `memd`."""
    platform: str
    """As `sys.platform` says it."""

    @property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(self.environ.get("HOME") or Path.home())

    @property
    def carried(self) -> dict[str, str]:
        """What must be in memd's environment so that it finds the files it would find now.

        Programs started from a desktop do not see what a shell has set.
        """
        return {
            name: value
            for name, usual in CARRIED.items()
            if (value := self.environ.get(name))
            and (usual is None or value != str(self.home / usual))
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done: commands, then changes to files, then commands; and what to tell."""

    changes: tuple[FileChange, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that are run before the files change."""
    after: tuple[tuple[str, ...], ...] = ()
    """Commands that are run once they have changed."""
    notes: tuple[str, ...] = ()
    """What the user should know or do next, a line each."""
    is_unfinished: bool = False
    """Whether nothing works before the user has done that."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.before or self.after or any(c.is_needed for c in self.changes))


# MERGED from memd.setup.jsontext:
# MERGED Changes JSON and leaves every byte alone that need not change: settings are other people's. Pure.
# MERGED
# MERGED A text becomes a tree of values that know where they stand. Written with a new value, whatever is
# MERGED equal is copied as it was, with its blanks, its escapes and its way of writing numbers; what is new
# MERGED takes the indentation of its neighbours. Only plain JSON: comments and twice-given keys would be lost.


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


# MERGED from memd.setup.documents:
# MERGED Files of JSON settings, read strictly and changed gently: a file that does not parse is left alone.


_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Document:
    """An object in a file."""

    path: Path
    before: bytes | None
    value: Mapping[str, Any]

    def changed(self, how: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> FileChange:
        """Plan what `how` makes of the object. A file that would say nothing goes.

        Raises BadRequest with the file's name if `how` cannot deal with what it finds.
        """
        try:
            value = how(self.value)
        except BadRequest as error:
            raise _refused(self.path, error.message) from error
        if value == self.value:
            return FileChange(self.path, self.before, self.before)
        if not value:
            return FileChange(self.path, self.before, None)
        mark, text = _decoded(self.before)
        after = edit(text if text.strip() else "{}\n", value)
        return FileChange(self.path, self.before, f"{mark}{after}".encode())


def read_documents(path: Path) -> Document:
    """Read a file of settings. Raises BadRequest with path, line and column if it is broken."""
    before = read(path)
    try:
        text = _decoded(before)[1]
        value = parse(text) if text.strip() else {}
    except UnicodeDecodeError as error:
        raise _refused(path, f"byte {error.start} is not UTF-8") from error
    except BadRequest as error:
        raise _refused(path, error.message) from error
    if not isinstance(value, dict):
        raise _refused(path, "it holds no object")
    return Document(path, before, value)


def _decoded(content: bytes | None) -> tuple[str, str]:
    """The mark that some editors put before UTF-8, and the text."""
    text = (content or b"").decode("utf-8")
    bare = text.removeprefix(_MARK)
    return _MARK if bare != text else "", bare


def _refused(path: Path, why: str) -> BadRequest:
    return BadRequest(f"{path}: {why}. Nothing was changed; mend the file, then try again")
