"""Paths of directories by their text alone, of this system and of Windows, and the patterns of `.gitignore`. Pure.

A session may come from another machine, whose paths cannot be looked up here. Of a worktree, a path tells where git's users
and the tools that make worktrees put them: a guess, which the disk, git's records or the vault have to confirm, unless
the layout serves nothing else.
"""

import ntpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

PATH_CHARACTERS_MAX = 4_096
"""No system has longer paths, and no request takes them."""
_BACKSLASH = "\\"


def is_below(directory: str, place: str) -> bool:
    """Return whether a directory is this place or in it, by its name."""
    if is_windows_path(directory) and is_windows_path(place):
        directory, place = (
            normalize_windows_path(path).replace(_BACKSLASH, "/") for path in (directory, place)
        )
    return f"{directory}/".startswith(f"{place.rstrip('/')}/")


def is_directory_path(text: str) -> bool:
    """Return whether a text is an absolute path, of this system or of Windows, that a directory may have."""
    is_absolute = text.startswith("/") or is_windows_path(text)
    return is_absolute and len(text) <= PATH_CHARACTERS_MAX and "\0" not in text


def is_windows_path(path: str) -> bool:
    r"""Return whether a path is an absolute one of Windows: `D:\x`, `d:/x`, `\\server\share\x`."""
    has_drive = path[1:3] in (":\\", ":/") and path[0].isascii() and path[0].isalpha()
    return has_drive or path.startswith("\\\\")


def normalize_windows_path(path: str) -> str:
    r"""Return an absolute path of Windows in its usual form, by its text alone: `d:/x/../y` is `D:\y`.

    Paths of another machine cannot be looked up, and `pathlib` would take them for relative ones.
    """
    path = path.replace("/", _BACKSLASH)
    if path[:8].upper() == "\\\\?\\UNC\\":
        path = "\\\\" + path[8:]
    elif path[:4] in ("\\\\?\\", "\\\\.\\"):
        path = path[4:]
    path = ntpath.normpath(path)
    return path[:1].upper() + path[1:]


# ── Worktrees ───────────────────────────────────────────────────────────────────────────────────

_NAME = re.compile(r"[^/\\]+")
_HOME = re.compile(
    r"(?:/(?:home|Users|var/home)/[^/]+|/root|[A-Za-z]:[/\\]Users[/\\][^/\\]+)", re.IGNORECASE
)
"""A home: a tool keeps the worktrees of all repositories below it."""
_INSIDE = frozenset({".worktrees", ".worktree", ".trees", ".conductor"})
"""Folders in a repository that have its worktrees."""
_TOOLS = frozenset({"worktrees", "worktree"})
"""The same below a tool's own hidden folder, `.claude/worktrees`, and, if the repository is known, below no other."""
_BESIDE = re.compile(r"([^.].*?)(?:__|[-._])(?:worktrees?|wt)")
"""A folder beside a repository that is named after it: `shop-worktrees`, `shop.worktrees`, `shop__worktrees`."""
_SHARED = frozenset({"worktrees", ".worktrees", "wt"})
"""A folder beside several repositories, with a folder for each: `wt/shop/feature`."""
_ID_FIRST = frozenset({(".codex", "worktrees"), ("vibe-kanban", "worktrees")})
"""Where a tool keeps ID/REPOSITORY."""
_REPOSITORY_FIRST = frozenset({
    (".cursor", "worktrees"), (".superset", "worktrees"), (".t3", "worktrees"), (".roo", "worktrees"),
    ("conductor", "workspaces"), (".conductor", "workspaces"), (".conduit", "workspaces"),
})  # fmt: skip
"""Where a tool keeps REPOSITORY/NAME."""


@dataclass(frozen=True, slots=True)
class WorktreePath:
    """A worktree around a directory, as the directory's path tells it."""

    top: str
    """The worktree's own directory."""
    repository: str
    """The name of its repository."""
    main: str | None = None
    """Where its repository is; None if the path has only its name."""
    shelf: str = ""
    """What the worktrees of one repository have in common, if `main` is None."""
    is_certain: bool = False
    """Whether such a path has no other meaning, if nothing is known of `main`."""


def read_worktree_path(path: str) -> WorktreePath | None:
    """Return what an absolute path says of a worktree around it; None if it looks like none."""
    found = list(_NAME.finditer(path))
    names, ends = [one[0] for one in found], [one.end() for one in found]
    for n in range(1, len(names)):
        read = _read_of_tool if _is_tools(names, n) else _read_of_repository
        if (worktree := read(path, names, ends, n)) is not None:
            return worktree
    return None


def _is_tools(names: list[str], n: int) -> bool:
    return (names[n - 1], names[n]) in _ID_FIRST | _REPOSITORY_FIRST


def _read_of_tool(path: str, names: list[str], ends: list[int], n: int) -> WorktreePath | None:
    """Read a path below the folder of a tool, `n` being the second of its two names."""
    pair = (names[n - 1], names[n])
    above = path[: ends[n - 2]] if n > 1 else ""
    if pair[0].startswith(".") and above and not _HOME.fullmatch(above):
        # A tool's folder in a repository: `shop/.codex/worktrees/fix`.
        return _read_of_repository(path, names, ends, n)
    if len(names) < n + 3:
        return None
    which = n + 2 if pair in _ID_FIRST else n + 1
    repository = names[which]
    return WorktreePath(path[: ends[n + 2]], repository, shelf=f"{path[: ends[n]]} {repository}")


def _read_of_repository(
    path: str, names: list[str], ends: list[int], n: int
) -> WorktreePath | None:
    """Read a path in which the name `n` may be a folder of worktrees, in or beside a repository."""
    name, above = names[n], path[: ends[n - 1]]
    has_one, has_two = len(names) > n + 1, len(names) > n + 2
    if name in _INSIDE and has_one and not _HOME.fullmatch(above):
        return WorktreePath(path[: ends[n + 1]], names[n - 1], above, is_certain=True)
    if name in _TOOLS and names[n - 1].startswith(".") and n > 1 and has_one:
        main = path[: ends[n - 2]]
        if not _HOME.fullmatch(main):
            return WorktreePath(path[: ends[n + 1]], names[n - 2], main, is_certain=True)
    if (beside := _BESIDE.fullmatch(name)) and has_one:
        main = path[: ends[n] - len(name) + beside.end(1)]
        return WorktreePath(path[: ends[n + 1]], beside[1], main)
    if name in _SHARED and has_two:
        main = above + path[ends[n] : ends[n + 1]]
        return WorktreePath(path[: ends[n + 2]], names[n + 1], main)
    if name in _TOOLS and has_one and names[n - 1][0] != "." and not _HOME.fullmatch(above):
        return WorktreePath(path[: ends[n + 1]], names[n - 1], above)
    return None


_FINAL_DEEP = re.compile(r"(?<=/)\*\*/(?=\s*$)")
"""To git `a/**/` means the directories below `a`, to pathspec also `a` and the files in it."""
_EARLIER_STAR = re.compile(r"\[\^/\]\*((?:\[\^/\]|[^/])*?)(?=\[\^/\]\*)")
_CLASS = re.compile(r"\\.|\[(\^?)(\]?[^\]]*)\]", re.DOTALL)
_SET_OPERATOR = re.compile(r"[&~|\[]|(?<=-)-")
"""Special in a character class of `re`, now or in a later Python, but not in one of git."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    """One pattern. Paths are relative to the pattern's directory, without a `/` at either end."""

    is_negated: bool
    """Whether it includes what an earlier pattern excluded."""
    is_anchored: bool
    """Whether it matches only from its directory on."""
    directories_only: bool
    regex: re.Pattern[str]

    def matches(self, path: str, *, is_directory: bool) -> bool:
        """Return whether the pattern matches this path or a directory above it."""
        is_marked = is_directory and self.directories_only
        return self.regex.search(f"{path}/" if is_marked else path) is not None


def parse_pattern(line: str) -> PathPattern | None:
    """Parse one line; None if it is empty, a comment or invalid."""
    try:
        source, includes = GitIgnoreSpecPattern.pattern_to_regex(_FINAL_DEEP.sub("**/*/", line))
        if source is None or includes is None:
            return None
        regex = re.compile(_adapt_regex(source), re.DOTALL)
    except (ValueError, re.error):  # the class [z-a], a backslash at the end
        return None
    body = line.strip().removeprefix("!")
    return PathPattern(
        is_negated=not includes,
        is_anchored="/" in body.rstrip("/") and not body.startswith("**/"),
        directories_only=body.endswith("/"),
        regex=regex,
    )


def last_match(
    patterns: Sequence[PathPattern], path: str, *, is_directory: bool
) -> PathPattern | None:
    """Return the last pattern that matches, which decides about a path."""
    return next(
        (one for one in reversed(patterns) if one.matches(path, is_directory=is_directory)), None
    )


def _adapt_regex(source: str) -> str:
    """Change pathspec's regex so that no class matches a `/` and no name takes exponential time.

    The text between two `*` is matched at its first occurrence only: no later one can succeed where it fails.
    """
    return _CLASS.sub(_adapt_class, _EARLIER_STAR.sub(r"(?>[^/]*?\1)", source))


def _adapt_class(found: re.Match[str]) -> str:
    if found[2] in {None, "/"}:
        return found[0]
    members = _SET_OPERATOR.sub(r"\\\g<0>", found[2])
    return f"(?!/)[{found[1]}{members}]"
