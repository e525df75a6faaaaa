"""An installation as a value: the machine and user that it is for, file changes and commands, to be shown before they are carried out.

Of a JSON file of another program every byte that need not change stays as it is: a text is parsed into values that know
how they are written. A value that does not change is copied with its spaces, escapes and number format; a new member
takes the indentation of its neighbours. A file with comments or duplicate keys is refused, because they would be lost.
"""

import contextlib
import difflib
import itertools
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from memd.errors import BadRequest, Broken
from memd.paths import Paths, find_config_home, find_home

_NEW_FILE_MODE = 0o600
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The content of one file before and after an installation. None: the file does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None
    is_generated: bool = False
    """Whether memd wrote all of `before`. Then no backup of it is made."""

    @property
    def is_needed(self) -> bool:
        """Return whether the file would change."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """The commands to run, the files to change, and the notes to print."""

    changes: tuple[FileChange, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that run before the files change."""
    after: tuple[tuple[str, ...], ...] = ()
    """Commands that run after the files have changed."""
    notes: tuple[str, ...] = ()
    """What the user should know or do next, one line each."""
    is_unfinished: bool = False
    """Whether memd does not work until the user has done what the notes say."""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to run and nothing to change."""
        return not (self.before or self.after or any(c.is_needed for c in self.changes))


def read_file(path: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist. Raises Broken if it cannot be read."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # Reading a pipe could block without end.
            raise Broken(f"{path} is not a regular file; nothing was changed")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Broken(f"cannot read {path} ({error.strerror}); nothing was changed") from error


def format_diff(change: FileChange) -> str:
    """Format a change as a unified diff; empty if nothing changes."""
    before, after = (
        (content or b"").decode("utf-8", "replace").splitlines(keepends=True)
        for content in (change.before, change.after)
    )
    lines = difflib.unified_diff(
        before,
        after,
        "/dev/null" if change.before is None else str(change.path),
        "/dev/null" if change.after is None else str(change.path),
    )
    return "".join(line if line.endswith("\n") else f"{line}{_NO_NEWLINE}" for line in lines)


def check_change(change: FileChange) -> None:
    """Raise Broken if the file has changed since it was read, or is read-only."""
    if not change.is_needed:
        return
    if read_file(change.path) != change.before:
        raise Broken(f"another program has just changed {change.path}; run this again")
    if change.before is not None and not change.path.stat().st_mode & stat.S_IWUSR:
        raise Broken(f"{change.path} is read-only; nothing was changed. Make it writable first")


def apply_change(change: FileChange, now: int) -> Path | None:
    """Change the file in one step; return the backup of the old content, if one was made.

    `now` is UTC milliseconds. Raises Broken, and changes nothing, if the file has changed since it
    was read, is read-only, or cannot be written.
    """
    if not change.is_needed:
        return None
    check_change(change)
    try:
        backup = None
        if change.before is not None and not change.is_generated:
            backup = _write_backup(change.path, change.before, now)
        if change.after is None:
            change.path.unlink()  # removes a link, not the file that it points to
        else:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            # A link stays: people link to settings that they keep in a repository.
            _replace_file(change.path.resolve(), change.after)
    except OSError as error:
        raise Broken(f"cannot write {change.path} ({error.strerror or error})") from error
    return backup


def _write_backup(path: Path, content: bytes, now: int) -> Path:
    """Write the old content beside `path`, also where `path` is a link to another directory."""
    at = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    mode = stat.S_IMODE(path.stat().st_mode)
    for number in itertools.count(1):
        suffix = f"-{number}" if number > 1 else ""
        backup = path.with_name(f"{path.name}.memd-{at}{suffix}.bak")
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            return backup
    raise AssertionError


def list_backups(path: Path) -> list[Path]:
    """Return the backups that installations have made of a file, the oldest first."""
    pattern = re.compile(rf"{re.escape(path.name)}\.memd-\d{{8}}-\d{{6}}(?:-\d+)?\.bak")
    try:
        return sorted(one for one in path.parent.iterdir() if pattern.fullmatch(one.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Broken(f"cannot list the backups of {path} ({error.strerror or error})") from error


def remove_backups(path: Path) -> list[Path]:
    """Remove the backups that installations have made of a file, and return them. Raises Broken if one stays."""
    found = list_backups(path)
    try:
        for one in found:
            one.unlink()
    except OSError as error:
        raise Broken(f"cannot remove a backup of {path} ({error.strerror or error})") from error
    return found


def _replace_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole. Its mode stays; only the user can read a new file."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _NEW_FILE_MODE
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink()
        raise


# ── A JSON file of another program ─────────────────────────────────────────────────────────────

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
    """Return whether two files have the same members but for empty ones where memd's entries stood."""
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
    """Return whether two values are written alike: 1, 1.0 and true are three."""
    return json.dumps(one) == json.dumps(other)


PACKAGE = Path(__file__).resolve().parent.parent
"""The directory of the package `memd`."""
PATH_VARIABLES = {
    "MEMD_HOME": None,
    "MEMD_VAULT": None,
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
"""Variables that decide which files memd uses, with the default of each, relative to the home directory."""


@dataclass(frozen=True, slots=True)
class Host:
    """The program that memd runs from, and its user."""

    environ: Mapping[str, str]
    python: str
    """The interpreter that can import memd, as an absolute path."""
    package: Path
    """The directory of the package `memd`."""
    platform: str
    """The value of `sys.platform`."""

    @classmethod
    def current(cls) -> Self:
        """Describe the machine and the memd that this process runs on."""
        return cls(dict(os.environ), interpreter(), PACKAGE, sys.platform)

    @property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(find_home(dict(self.environ)) or "/")

    @property
    def config_home(self) -> Path:
        """The directory of programs' settings."""
        return Path(find_config_home(dict(self.environ), str(self.home)))

    @property
    def paths(self) -> Paths:
        """The files of the selected vault. Raises ValueError if the vault's name is invalid."""
        return Paths(dict(self.environ))

    @property
    def path_environment(self) -> dict[str, str]:
        """The variables that memd needs to find the same files when another program starts it.

        Programs that are started from a desktop do not see the variables of a shell.
        """
        return {
            name: value
            for name, default in PATH_VARIABLES.items()
            if (value := self.environ.get(name))
            and (
                default is None or (Path(value).is_absolute() and value != str(self.home / default))
            )
        }

    def memd_command(self, *arguments: str) -> tuple[str, ...]:
        """Return a command that runs memd from any directory: `-P` ignores the modules there."""
        return (self.python, "-P", "-m", "memd", *arguments)


def has_program(host: Host, name: str) -> bool:
    """Return whether a program is on the user's PATH."""
    return shutil.which(name, path=host.environ.get("PATH", "")) is not None


def interpreter() -> str:
    """Return the path of this interpreter; the link of a virtual environment is not followed."""
    return os.path.abspath(sys.executable)  # noqa: PTH100  # Path.resolve() follows links


def write_location(file: str) -> None:
    """Write the interpreter and the package to a file that the Claude Code plugin starts memd from.

    The plugin is copied to a new directory at every update, and a client that was started from a
    desktop has a short PATH, so neither leads to memd. An error is ignored: memd works without the file.
    """
    path, text = Path(file), f"{interpreter()}\n{PACKAGE}\n"
    with contextlib.suppress(OSError, ValueError):
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        _replace_file(path, text.encode())
