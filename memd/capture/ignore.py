"""Which tool events are dropped: by the path they touch, as .gitignore says it, or by their tool. Pure.

`*`, `?` and `[…]` stay within one name, `**` crosses names, a leading or inner `/` ties the pattern
to the session's directory, a trailing `/` means a directory and all in it, `!` keeps what an earlier
pattern dropped; the last pattern that matches decides. Shell commands are not looked into.
"""

import fnmatch
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

OWN_TOOLS = ("mcp__memd__*", "mcp__plugin_memd_*")
"""memd never remembers its own answers, whatever the configuration says."""
_PATH_CHARACTERS = 4_096
_NAMES_CACHED = 256
_FIELDS = (("file_path", False), ("notebook_path", False), ("path", True))
"""Where a tool names its path, and whether that may be a directory."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern, compiled. `inside` is for files and `directory` for what may be a directory."""

    pattern: str
    keeps: bool
    is_anchored: bool
    inside: re.Pattern[str]
    directory: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Ignore:
    """The rules of one configuration."""

    rules: tuple[Rule, ...]
    tools: tuple[str, ...]

    def ignored_path(
        self, path: str, directory: str | None, *, may_be_directory: bool = False
    ) -> str | None:
        """The pattern that drops this path, or None. A relative path is one in `directory`."""
        parts, is_inside = _relative(path, directory)
        name = "/".join(parts)
        verdict: Rule | None = None
        for rule in self.rules:
            if rule.is_anchored and not is_inside:
                continue
            if (rule.directory if may_be_directory else rule.inside).fullmatch(name):
                verdict = rule
        return verdict.pattern if verdict is not None and not verdict.keeps else None

    def ignored_tool(self, name: str) -> str | None:
        """The pattern that drops this tool, or None."""
        return _fitting((*OWN_TOOLS, *self.tools), name)

    def reason(self, payload: Any, directory: str | None) -> str | None:
        """Why a tool event is dropped, or None; also None for what is not a tool event."""
        if not isinstance(payload, Mapping) or not isinstance(payload.get("tool_name"), str):
            return None
        if pattern := self.ignored_tool(payload["tool_name"]):
            return f"ignored tool: {pattern}"
        given = payload.get("tool_input")
        if not isinstance(given, Mapping):
            return None
        for field, may_be_directory in _FIELDS:
            path = given.get(field)
            if not isinstance(path, str) or not path:
                continue
            if found := self.ignored_path(path, directory, may_be_directory=may_be_directory):
                return f"ignored path: {found}"
        return None


@functools.lru_cache(maxsize=_NAMES_CACHED)
def _fitting(patterns: tuple[str, ...], name: str) -> str | None:
    """The first of these patterns that a tool's name fits; an agent has few tools and calls them often."""
    return next((pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern)), None)


def compile_ignore(paths: Iterable[str], tools: Iterable[str]) -> Ignore:
    """The rules, ready to be asked. An empty line and one that begins with `#` say nothing."""
    rules = (compile_rule(pattern) for pattern in paths)
    return Ignore(tuple(rule for rule in rules if rule is not None), tuple(tools))


def compile_rule(pattern: str) -> Rule | None:
    """One pattern as a rule, or None if it says nothing."""
    text = pattern.strip()
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    body = text[1:] if keeps else text
    only_directory = body.endswith("/")
    body = body.rstrip("/")
    is_anchored = "/" in body and not body.startswith("**/")
    body = body.lstrip("/")
    if not body:
        return None
    front = "" if is_anchored else "(?:[^/]+/)*"
    core = front + translated(body)
    below = r"(?:/.*)?"
    return Rule(
        pattern=pattern,
        keeps=keeps,
        is_anchored=is_anchored,
        inside=_compiled(core + (r"/.*" if only_directory else below), body),
        directory=_compiled(core + below, body),
    )


def _compiled(source: str, body: str) -> re.Pattern[str]:
    try:
        return re.compile(source, re.DOTALL)
    except re.error:  # a class such as [z-a]: then the pattern means itself
        return re.compile("(?:[^/]+/)*" + re.escape(body) + "(?:/.*)?", re.DOTALL)


_STAR = "[^/]*"
_MARKS = re.compile(r"[\^&~|]|(?<=-)-")
"""What means something in a class of re and nothing in one of a pattern, now or in a later Python."""


def translated(body: str) -> str:
    """The body of a pattern as a regular expression; one that re refuses may come of a class."""
    out: list[str] = []
    at = 0
    star: int | None = None
    """Where in `out` the last * of this name is."""
    while at < len(body):
        piece, at = _piece(body, at)
        if piece == _STAR and star is not None:
            # What stands between two * of a name is best where it comes first: to try every other
            # place too would take years where there are many.
            out[star:] = [f"(?>[^/]*?{''.join(out[star + 1 :])})"]
        if piece == _STAR:
            star = len(out)
        elif piece == "/" or piece.endswith("*"):
            star = None
        out.append(piece)
    return "".join(out)


def _piece(body: str, at: int) -> tuple[str, int]:
    """The next piece of a pattern, and where the one after it begins."""
    char = body[at]
    if char == "*":
        return _stars(body, at)
    if char == "?":
        return "[^/]", at + 1
    if char == "[":
        end = body.find("]", at + 2)
        if end > 0:
            return _class(body[at + 1 : end]), end + 1
    if char == "\\" and at + 1 < len(body):
        return re.escape(body[at + 1]), at + 2
    return re.escape(char), at + 1


def _stars(body: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(body) and body[end] == "*":
        end += 1
    if end - at == 1:
        return _STAR, end
    if body[end : end + 1] == "/":
        while body.startswith("**/", end + 1):
            end += 3
        return "(?:[^/]+/)*", end + 1
    return ".*", end


def _class(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    chars = (inner[1:] if negated else inner).replace("\\", "\\\\").replace("[", "\\[")
    chars = _MARKS.sub(r"\\\g<0>", chars)
    return f"(?!/)[{'^' if negated else ''}{chars}]"


def _relative(path: str, directory: str | None) -> tuple[list[str], bool]:
    """The names of a path below `directory`, or all of its names and False if it lies elsewhere."""
    parts = _names(path)
    if not path.startswith("/"):
        return parts, True
    root = _names(directory) if directory else []
    if root and parts[: len(root)] == root:
        return parts[len(root) :], True
    return parts, False


def _names(path: str) -> list[str]:
    names: list[str] = []
    for name in path[:_PATH_CHARACTERS].split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return names
