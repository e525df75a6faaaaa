"""Whose worktree a directory was, by its path alone: where git's users and the tools that make worktrees put them. Pure.

A path of Windows is read like any other. What a path tells is a guess, which the disk, git's records or the vault
have to confirm, unless the layout serves nothing else.
"""

import re
from dataclasses import dataclass

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
    """What the path of a directory says of the worktree around it."""

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
