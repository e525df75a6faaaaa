"""Path and tool filters: which tool events are dropped. Pure.

Paths use .gitignore syntax: `*`, `?` and `[…]` stay within one name, `**` crosses names, a leading or inner `/`
anchors the pattern at the session's directory, a trailing `/` means a directory and all in it, `!` includes what an
earlier pattern dropped; the last matching pattern decides. Shell commands are not parsed.
"""

import fnmatch
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memd import directories
from memd.directories import PathPattern, is_windows_path

OWN_TOOLS = ("mcp__memd__*", "mcp__plugin_memd_*")
"""memd's own tools, dropped whatever the configuration says: its answers must not become memories."""
_PATH_CHARACTERS_MAX = 4_096
_TOOLS_CACHED = 256
_PATH_FIELDS = (("file_path", False), ("notebook_path", False), ("path", True))
"""(field of a tool's input, whether its path may be a directory)."""
_DEEP_PREFIX = re.compile(r"(?:(?<=/)|(?<=^)|(?<=^!))\*{2,}(?=[^/*])")


@dataclass(frozen=True, slots=True)
class Ignore:
    """The compiled patterns of one configuration."""

    paths: tuple[tuple[str, PathPattern], ...]
    """(as written, compiled), the last one first."""
    tools: tuple[str, ...]

    def ignored_path(
        self, path: str, directory: str | None, *, may_be_directory: bool = False
    ) -> str | None:
        """Return the pattern that drops this path, or None. A relative path is one in `directory`."""
        parts, is_inside = _split_below(path, directory)
        name = "/".join(parts)
        for text, pattern in self.paths:
            if (is_inside or not pattern.is_anchored) and pattern.matches(
                name, is_directory=may_be_directory
            ):
                return None if pattern.is_negated else text
        return None

    def ignored_tool(self, name: str) -> str | None:
        """Return the pattern that drops this tool, or None."""
        return _find_tool_pattern((*OWN_TOOLS, *self.tools), name)

    def reason(self, payload: Any, directory: str | None) -> str | None:
        """Return why a tool event is dropped, or None; also None for other events."""
        if not isinstance(payload, Mapping) or not isinstance(payload.get("tool_name"), str):
            return None
        if pattern := self.ignored_tool(payload["tool_name"]):
            return f"ignored tool: {pattern}"
        given = payload.get("tool_input")
        if not isinstance(given, Mapping):
            return None
        for field, may_be_directory in _PATH_FIELDS:
            path = given.get(field)
            if not isinstance(path, str) or not path:
                continue
            if found := self.ignored_path(path, directory, may_be_directory=may_be_directory):
                return f"ignored path: {found}"
        return None


@functools.lru_cache(maxsize=_TOOLS_CACHED)
def _find_tool_pattern(patterns: tuple[str, ...], name: str) -> str | None:
    return next((pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern)), None)


def compile_ignore(paths: Iterable[str], tools: Iterable[str]) -> Ignore:
    """Compile the patterns; empty lines, comments and invalid patterns are skipped."""
    patterns = [(text, parse_pattern(text)) for text in paths]
    known = tuple((text, pattern) for text, pattern in patterns if pattern is not None)
    return Ignore(known[::-1], tuple(tools))


def parse_pattern(text: str) -> PathPattern | None:
    """Parse one pattern; unlike in git, `**` crosses names also without a `/` behind it: `src/**.js`."""
    return directories.parse_pattern(_DEEP_PREFIX.sub("**/*", re.sub("/+", "/", text.strip())))


def _split_below(path: str, directory: str | None) -> tuple[list[str], bool]:
    """Return the names of a path below `directory` and True, or all of its names and False if it lies elsewhere."""
    if is_windows_path(path) or (directory and is_windows_path(directory)):
        path, directory = path.replace("\\", "/"), directory and directory.replace("\\", "/")
    parts = _split_path(path)
    if not path.startswith("/") and not is_windows_path(path):
        return parts, True
    root = _split_path(directory) if directory else []
    if root and parts[: len(root)] == root:
        return parts[len(root) :], True
    return parts, False


def _split_path(path: str) -> list[str]:
    names: list[str] = []
    for name in path[:_PATH_CHARACTERS_MAX].split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return names
