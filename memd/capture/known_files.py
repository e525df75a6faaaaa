"""Keep for a while what sessions have seen of files, so that an edit of a part of a line is stored with its lines.

Some clients tell of an edit nothing but the text that gave way and the one in its place, maybe only `30` and `60`. What was
read, written or edited before has the line. Nothing of it is stored but the lines of such an edit, with those that they
belong to; and after a restart nothing is known until a file is read again.
"""

import itertools
import posixpath
import re
import shlex
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.models import PATCH

_SHELL_TOOLS = frozenset({"Bash", "PowerShell"})
_FILES_MAX = 200
_CHARACTERS_MAX = 100_000
"""Of one file; of a longer one its settings are data."""
_ALL_CHARACTERS_MAX = 1_000_000
_PARTS_MAX = 20
_CALLS_MAX = 1_000
_CONTEXT_LINES = 3
"""Lines around an edit, as many as patches have."""
_PLACES_MAX = 20
_LINE_CHARACTERS_MAX = 400
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t)", re.MULTILINE)
_SECTION = re.compile(r"\[{1,2}[^\]\[]+\]{1,2}\s*$")
_WINDOWS_END = re.compile(r"\r\n?")


@dataclass(slots=True)
class _KnownFile:
    parts: list[str] = field(default_factory=list)
    """What is known of its text: all of it, or parts."""
    at: int = 0

    @property
    def size(self) -> int:
        """Characters."""
        return sum(map(len, self.parts))

    def replace(self, old: str, new: str, *, everywhere: bool) -> list[tuple[str, str]]:
        """Put a text in place of another one; return the lines before and after of each place.

        A client refuses an edit whose text stands at two places, so one known place is the place; where two
        are known, the file is not what was known of it.
        """
        found = [
            (number, at)
            for number, part in enumerate(self.parts)
            for at in _find_all(part, old)
        ]  # fmt: skip
        if not found or (len(found) > 1 and not everywhere):
            self.parts = [part for part in self.parts if old not in part] if found else self.parts
            if new.strip():
                self.parts = [*self.parts[1 - _PARTS_MAX :], new]
            return []
        hunks = [_cut_hunk(self.parts[n], at, old, new) for n, at in found[:_PLACES_MAX]]
        self.parts = [part.replace(old, new) for part in self.parts]
        return hunks


class KnownFiles:
    """The files of the sessions that are going on. Used from any thread."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _KnownFile] = OrderedDict()
        """Absolute path → what any session has seen of it: an edit by one is there for all."""
        self._calls: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Tool calls that were seen, by session: a transcript tells again what a hook told."""
        self._characters = 0
        self._lock = threading.Lock()

    def complete(self, payload: Any, at: int) -> Any:
        """Learn from a payload in the words of Claude Code's hooks; return it, an edit with its lines if they are known."""
        if not isinstance(payload, Mapping) or payload.get("hook_event_name") != "PostToolUse":
            return payload
        tool, given, session = (payload.get(k) for k in ("tool_name", "tool_input", "session_id"))
        if not (isinstance(session, str) and isinstance(given, Mapping)):
            return payload
        place = str(payload.get("cwd") or "")
        path, command = given.get("file_path"), given.get("command")
        if not isinstance(tool, str):
            return payload
        with self._lock:
            if self._was_seen(session, payload.get("tool_use_id")):
                return payload
            if tool in _SHELL_TOOLS and isinstance(command, str) and _has_ended(payload):
                hunks = self._follow_command(command, place, at)
            elif isinstance(path, str):
                hunks = self._follow_edit(posixpath.join(place, path), payload, at)
            else:
                hunks = []
        return {**payload, PATCH: hunks} if hunks else payload

    def _follow_edit(self, path: str, payload: Mapping[str, Any], at: int) -> list[dict[str, str]]:
        known = self._take_out(path, at)
        if known is None and path in self._files:
            return []
        known = known or _KnownFile(at=at)
        hunks = _learn_from_call(known, payload.get("tool_name"), payload["tool_input"], payload.get("tool_response"))  # fmt: skip
        self._put_back(path, known)
        return [{"file": path, "old": old, "new": new} for old, new in hunks]

    def _follow_command(self, command: str, place: str, at: int) -> list[dict[str, str]]:
        """Return what `sed -i` and `perl -pi` change: whole lines where they are known, else what the command says."""
        substitutions = read_substitutions(command)
        if not substitutions:  # as nearly always
            return []
        moved = find_directory(command)
        if not place.endswith(f"/{moved}"):  # some clients name the directory after the command
            place = posixpath.join(place, moved)
        found: list[dict[str, str]] = []
        for name, old, new in substitutions:
            path = posixpath.normpath(posixpath.join(place, name))
            known = self._take_out(path, at)
            pairs = known.replace(old, new, everywhere=True) if known and old else []
            if known and not pairs:
                known.parts = []  # it changed in a way that cannot be followed
            if known:
                self._put_back(path, known)
            found += [
                {"file": path, "old": before, "new": after}
                for before, after in pairs or [(old, new)]
            ]
        return found

    def _take_out(self, path: str, at: int) -> _KnownFile | None:
        """Take out what is known of a file, to change it; None if nothing is, or something of later."""
        known = self._files.get(path)
        if known is None or at < known.at:
            return None
        self._characters -= known.size
        known.at = at
        return self._files.pop(path)

    def _put_back(self, path: str, known: _KnownFile) -> None:
        if not known.parts:
            return
        self._files[path] = known
        self._characters += known.size
        while len(self._files) > _FILES_MAX or self._characters > _ALL_CHARACTERS_MAX:
            self._characters -= self._files.popitem(last=False)[1].size

    def _was_seen(self, session: str, call: object) -> bool:
        if not isinstance(call, str):
            return False
        if (session, call) in self._calls:
            return True
        self._calls[session, call] = None
        if len(self._calls) > _CALLS_MAX:
            self._calls.popitem(last=False)
        return False


def _has_ended(payload: Mapping[str, Any]) -> bool:
    """Return whether a command ran to its end while the client waited."""
    given, response = payload["tool_input"], payload.get("tool_response")
    is_cut = isinstance(response, Mapping) and response.get("interrupted") is True
    return not is_cut and given.get("run_in_background") is not True


def _learn_from_call(
    known: _KnownFile, tool: object, given: Mapping[str, Any], response: Any
) -> list[tuple[str, str]]:
    """Add what a tool call shows of a file; return the lines of an edit whose client tells no patch."""
    if tool == "Read":
        if (text := _find_content(response)) and len(text) <= _CHARACTERS_MAX:
            is_part = given.get("offset") is not None or given.get("limit") is not None
            known.parts = [*known.parts[1 - _PARTS_MAX :], text] if is_part else [text]
        return []
    if tool == "Write":
        written = given.get("content")
        is_kept = isinstance(written, str) and len(written) <= _CHARACTERS_MAX
        known.parts = [_WINDOWS_END.sub("\n", str(written))] if is_kept else []
        return []
    if tool not in ("Edit", "MultiEdit"):
        return []
    original = response.get("originalFile") if isinstance(response, Mapping) else None
    if isinstance(original, str) and original and len(original) <= _CHARACTERS_MAX:
        known.parts = [_WINDOWS_END.sub("\n", original)]
    parts = given.get("edits")
    edits = (
        [one for one in parts if isinstance(one, Mapping)] if isinstance(parts, list) else [given]
    )
    if any("file_path" in one for one in edits if one is not given):
        return []  # a patch of several files shows its lines itself
    hunks = []
    for one in edits:
        old, new = one.get("old_string"), one.get("new_string")
        if isinstance(old, str) and isinstance(new, str) and old != new:
            if not old:
                known.parts = [new]
                continue
            hunks += known.replace(old, new, everywhere=one.get("replace_all") is True)
    patch = response.get("structuredPatch") if isinstance(response, Mapping) else None
    return [] if patch or len(hunks) < len(edits) else hunks


def _find_content(response: Any) -> str:
    """The text of a file in the response to its reading, without numbers of lines."""
    found = response.get("file") if isinstance(response, Mapping) else None
    text = found.get("content") if isinstance(found, Mapping) else None
    if text is None and isinstance(response, Mapping):
        text = response.get("content")
    text = response if isinstance(response, str) else text
    if not isinstance(text, str):
        return ""
    text = _WINDOWS_END.sub("\n", text)
    lines = [line for line in text.splitlines() if line.strip()]
    is_numbered = bool(lines) and all(map(_NUMBERED.match, lines[:_CONTEXT_LINES]))
    return _NUMBERED.sub("", text) if is_numbered else text


def _find_all(text: str, sought: str) -> Iterator[int]:
    at = text.find(sought)
    while at >= 0:
        yield at
        at = text.find(sought, at + len(sought))


def _cut_hunk(text: str, at: int, old: str, new: str) -> tuple[str, str]:
    """Return the whole lines of an edit before and after it, with some around them and their headers."""
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at + len(old))
    end = len(text) if end < 0 else end
    above, below = text[:begin].splitlines(), text[end + 1 :].splitlines()[:_CONTEXT_LINES]
    near, far = above[-_CONTEXT_LINES:], above[:-_CONTEXT_LINES]
    first = next((line for line in (*near, text[begin:end]) if line.strip()), "")
    around = [*_find_headers(far, _indent(first)), *near]
    after = text[begin:at] + new + text[at + len(old) : end]
    sides = ("\n".join((*around, middle, *below)) for middle in (text[begin:end], after))
    before, now = sides
    return before, now


def _find_headers(above: list[str], indent: int) -> list[str]:
    """Find the headers of a line of this indent: the lines above that are indented less, and the section."""
    found: list[str] = []
    for line in reversed(above):
        is_less = bool(line.strip()) and _indent(line) < indent
        is_section = _SECTION.match(line.strip()) is not None
        if (is_less or is_section) and len(line) <= _LINE_CHARACTERS_MAX:
            found.append(line)
            indent = min(indent, _indent(line))
        if is_section:
            break
    return found[::-1]


def _indent(line: str) -> int:
    wide = line.expandtabs(4)
    return len(wide) - len(wide.lstrip())


# ── What a shell command changes: `sed -i`, `perl -pi` ───────────────────────────────────────────
#
# A substitution is read if its pattern stands for one text. If it leaves a value open (`[0-9]*`, `.*`), the old text is
# unknown, and the new one is not.

_COMMAND_CHARACTERS_MAX = 8_000
_LEADING_CD = re.compile(r"\s*cd\s+([^\s;&|$~]+)\s*(?:&&|;|\n)")
_IN_PLACE = re.compile(r"-\w*i\S*$|--in-place(?:=.*)?$")
_SUBSTITUTION = re.compile(
    r"\s*(?:\d+\s*)?s(?P<mark>[^\w\s\\])(?P<old>(?:\\.|(?!(?P=mark)).)+)(?P=mark)"
    r"(?P<new>(?:\\.|(?!(?P=mark)).)*)(?P=mark)[a-zA-Z0-9]*\s*(?:[;\n]|$)",
    re.DOTALL,
)
_OPEN = re.compile(r"(?<!\\)[*+?()\[{|]|\\[\w(){}|+?]")
"""What stands for any text in a pattern, or for how often; a dot that nothing follows stands for itself."""
_ESCAPED = re.compile(r"\\([^\w\s])")
_REFERENCE = re.compile(r"[\\$]\{?\d|(?<!\\)&")


def read_substitutions(command: str) -> list[tuple[str, str, str]]:
    """(file, old, new) of each substitution that a command line makes in a file."""
    if len(command) > _COMMAND_CHARACTERS_MAX or not re.search(r"\b(?:sed|perl)\b", command):
        return []
    found: list[tuple[str, str, str]] = []
    for words in _split_commands(command):
        words = words[1:] if words[0] == "sudo" else words  # noqa: PLW2901  # of the same command
        is_editor = words[:1] and words[0].rpartition("/")[2] in ("sed", "gsed", "perl")
        if not is_editor or not any(map(_IN_PLACE.match, words[1:])):
            continue
        given = [word for word in words[1:] if word and word[0] != "-"]  # `sed -i ''`, as on macOS
        scripts = list(itertools.takewhile(_SUBSTITUTION.match, given))
        files = given[len(scripts) :]
        if not set("".join(files)) & set("*?$<>`"):
            found += [
                (file, *pair) for one in scripts for pair in _read_script(one) for file in files
            ]
    return found


def find_directory(command: str) -> str:
    """Find the directory that a command line enters first, as far as it says: `cd api && …`; empty if it stays."""
    moved = _LEADING_CD.match(command)
    return moved[1].strip("'\"") if moved else ""


def _split_commands(line: str) -> list[list[str]]:
    """The words of each command of a line; none if it cannot be read."""
    try:
        lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars="&;|\n")
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
        parts = list(lexer)
    except ValueError:
        return []
    groups = itertools.groupby(parts, key=lambda part: bool(part) and set(part) <= set("&;|\n"))
    return [list(words) for is_sign, words in groups if not is_sign]


def _read_script(script: str) -> Iterator[tuple[str, str]]:
    """(old, new) of each `s/old/new/`."""
    at = 0
    while found := _SUBSTITUTION.match(script, at):
        at = found.end()
        old = found["old"].removeprefix("^").removesuffix("$")
        if not _REFERENCE.search(found["new"]):
            plain = "" if _OPEN.search(old) else _ESCAPED.sub(r"\1", old)
            yield plain, _ESCAPED.sub(r"\1", found["new"])
