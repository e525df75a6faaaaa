"""Directory to project: git worktrees, projects.toml. Reads the disk, never runs git.

An override in `projects.toml` comes first: of the directory itself, else of the repository whose worktree it is.
Then worktrees share their main checkout's project, a submodule is a project of its own, and a directory outside git
is named by itself. A worktree counts only if its repository lists it, because an unpacked archive must not be
able to choose whose memories it sees. For the same reason `projects.toml` lies beside the user's config.toml and
never in a repository.

    [projects]
    "~/code/shop" = "shop"        # this directory and all below it
    "~/code/shop-*" = "shop"      # * and ? stay within one name, ** crosses names

The most specific pattern wins: the most names, then the fewest wildcards, then the longest. An overridden project
has its name as its key, which an import and `--project NAME` use too.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

from memd import log
from memd.capture.ignore import parse_pattern
from memd.capture.redact import redact
from memd.directories import (
    PathPattern,
    is_directory_path,
    is_windows_path,
    normalize_windows_path,
    read_worktree_path,
)
from memd.models import BRANCH_CHARACTERS_MAX, GLOBAL_PROJECT, SCRATCH_PROJECT
from memd.text import storable

NAME_CHARACTERS = 100
"""Characters of a project's name."""
_OVERRIDES_BYTES_MAX = 256 * 1024
_DEEP_WILDCARDS_MAX = 3
"""Each further ** multiplies the time that a deep directory takes."""
_RESERVED_NAMES = frozenset({GLOBAL_PROJECT, SCRATCH_PROJECT, "current", "all"})
_WILDCARD = re.compile(r"[*?\[]")
_PARENTS_MAX = 64
_ON_BRANCH = "ref: refs/heads/"
"""How the HEAD of a repository begins where a branch is checked out."""
_GIT_FILE_BYTES_MAX = 4_096
_CACHED_MAX = 256
"""Directories whose project is cached."""
_CACHED_MS = 60_000
_BY_PATH = "the repository of a worktree that is gone, by its path"
_ORIGIN = re.compile(r"^\[remote \"origin\"\][^\[]*?^\s*url\s*=\s*(\S+)", re.MULTILINE | re.DOTALL)
_SCRATCH_PARENT = "/scratch-workspaces/"
_FileVersion = tuple[int, int, int] | None
"""(modification time, size, inode) of a file; None if there is none."""


@dataclass(frozen=True, slots=True)
class ProjectIdentity:
    """A project's key and name, and in words why a directory belongs to it."""

    key: str
    name: str
    reason: str
    worktree: str = ""
    """The directory of the worktree around it, whose project is its repository's; empty if it is in none."""

    @property
    def is_plain_directory(self) -> bool:
        """Return whether it is only a directory: no repository, and not named by the user."""
        return self.reason.startswith("the directory")


_SCRATCH = ProjectIdentity(SCRATCH_PROJECT, SCRATCH_PROJECT, "the session has no directory")
_SCRATCH_DIRECTORY = ProjectIdentity(
    SCRATCH_PROJECT, SCRATCH_PROJECT, "the session has a directory made for it alone"
)


@dataclass(frozen=True, slots=True)
class ProjectOverride:
    """One line of projects.toml: a directory and all below it, and the project that they belong to."""

    pattern: str
    """As the file writes it."""
    name: str
    below: PathPattern
    rank: tuple[int, int, int]
    """The larger, the more specific."""


class ProjectOverrides:
    """The lines of projects.toml. Parsed again when the file changes; a broken file counts as absent."""

    def __init__(self, path: str | None, home: str) -> None:
        self._path = path
        self._home = home
        self._version: _FileVersion = None
        self._overrides: tuple[ProjectOverride, ...] = ()
        self.trouble: str | None = None
        """Why the file is not used; None if nothing is wrong with it."""
        self.generation = 0
        """Grows whenever the file or `separated` has changed."""
        self.separated: frozenset[str] = frozenset()
        """Worktrees that the user has given a project of their own; the vault knows them."""

    def find(self, directory: str) -> ProjectOverride | None:
        """Return the most specific override for an absolute directory, or None."""
        self.refresh()
        matching = (
            one for one in self._overrides if one.below.matches(directory[1:], is_directory=True)
        )
        return max(matching, key=lambda one: one.rank, default=None)

    def separate(self, worktrees: Iterable[str]) -> None:
        """Let these worktrees have projects of their own."""
        if (wanted := frozenset(worktrees)) != self.separated:
            self.separated = wanted
            self.generation += 1

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        version = _file_version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            text = "" if version is None else _read_overrides(self._path or "")
            self._overrides = parse_overrides(text, self._home)
            self.trouble = None
        except ValueError as error:
            self._overrides = ()
            self.trouble = f"{self._path} is not used: {error}"
            log.get("capture").warning("projects_file_refused", reason=self.trouble)
        self.generation += 1


class ProjectResolver:
    """`resolve_project` with a cache of one minute. `clock` returns UTC milliseconds."""

    def __init__(self, clock: Callable[[], int], overrides: ProjectOverrides | None = None) -> None:
        self._clock = clock
        self._overrides = overrides or ProjectOverrides(None, "/")
        self._generation = 0
        self._cached: dict[str | None, tuple[int, ProjectIdentity]] = {}

    @property
    def trouble(self) -> str | None:
        """Return why projects.toml is not used; None if nothing is wrong with it."""
        return self._overrides.trouble

    def resolve(self, directory: str | None) -> ProjectIdentity:
        """Return the project of a directory, at most a minute old and never older than projects.toml."""
        self.refresh()
        return self.find_project(directory)

    def refresh(self) -> None:
        """Read projects.toml again if it has changed."""
        self._overrides.refresh()
        if self._overrides.generation != self._generation:
            self._generation = self._overrides.generation
            self._cached.clear()

    def find_project(self, directory: str | None) -> ProjectIdentity:
        """Return the project of a directory by projects.toml as of the last `refresh`.

        In a thread beside others that compute, each look at a file may cost five milliseconds.
        """
        now = self._clock()
        cached = self._cached.get(directory)
        if cached is not None and 0 <= now - cached[0] < _CACHED_MS:
            return cached[1]
        identity = resolve_project(directory, self._overrides)
        if len(self._cached) >= _CACHED_MAX:
            self._cached.clear()
        self._cached[directory] = (now, identity)
        return identity


def resolve_project(
    directory: str | None, overrides: ProjectOverrides | None = None
) -> ProjectIdentity:
    """Return the project that a directory belongs to."""
    if not directory or not is_directory_path(directory):
        return _SCRATCH  # a relative path would be joined to memd's own directory
    separated = frozenset() if overrides is None else overrides.separated
    if is_windows_path(directory):
        return _keep_apart(_identify_elsewhere(normalize_windows_path(directory)), separated)
    try:
        start = Path(directory).resolve()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a circle of links
        return _identify(Path(directory), "the directory; it could not be read")
    if overrides is not None and (override := overrides.find(str(start))):
        return _apply_override(override)
    if _is_scratch(directory):
        return _SCRATCH_DIRECTORY
    identity = _keep_apart(_identify_from_disk(start), separated)
    # A worktree elsewhere follows the override of its repository.
    override = overrides.find(identity.key) if overrides is not None else None
    return identity if override is None else _apply_override(override)


def _is_scratch(directory: str) -> bool:
    """Return whether a client made a directory for one session alone."""
    return _SCRATCH_PARENT in directory and "/Claude/" in directory


def _identify_elsewhere(path: str) -> ProjectIdentity:
    """Return the project of a directory of Windows, by its path alone: it is on another machine."""
    if _is_scratch(path.replace("\\", "/")):
        return _SCRATCH_DIRECTORY
    worktree = read_worktree_path(path)
    if worktree is not None and worktree.main is not None and worktree.is_certain:
        return _identify(PureWindowsPath(worktree.main), _BY_PATH, worktree.top)
    return _identify(PureWindowsPath(path), "the directory, of another machine")


def _keep_apart(identity: ProjectIdentity, separated: frozenset[str]) -> ProjectIdentity:
    """Return the project of a worktree that the user has separated from its repository."""
    if identity.worktree not in separated:
        return identity
    name = re.split(r"[/\\]", identity.worktree)[-1]
    return ProjectIdentity(identity.worktree, name, "a worktree that you have separated")


def _identify_missing(start: Path) -> ProjectIdentity:
    """Return the project of a directory that is gone: its repository's, if it was a worktree by its path.

    A repository that is here must be one; a folder of worktrees in no repository is somebody's own.
    """
    worktree = read_worktree_path(str(start))
    if worktree is not None and worktree.main is not None:
        main = Path(worktree.main)
        if (main / ".git").exists():
            found = _identify_from_disk(main)
            return _identify(Path(found.key), _BY_PATH, worktree.top)
        if worktree.is_certain and not main.exists():
            return _identify(main, _BY_PATH, worktree.top)
    return _identify(start, "the directory; it is not there now")


def parse_overrides(text: str, home: str) -> tuple[ProjectOverride, ...]:
    """Parse a `projects.toml`. The ValueError says what is wrong, and where."""
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # more than TOMLDecodeError: a number of thousands of digits
        raise ValueError(f"it is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if unknown := sorted(document.keys() - {"projects"}):
        raise ValueError(f"there is no [{unknown[0]}], only [projects]")
    lines = document.get("projects", {})
    if not isinstance(lines, Mapping):
        raise ValueError(  # noqa: TRY004  # an error of the file, like the rest
            'projects is no table; write [projects], then "~/code/shop" = "shop"'
        )
    return tuple(_parse_override(pattern, name, home) for pattern, name in lines.items())


def _parse_override(pattern: str, name: Any, home: str) -> ProjectOverride:
    is_name = isinstance(name, str) and 0 < len(name.strip()) <= NAME_CHARACTERS
    if not is_name or "/" in name or not name.isprintable() or name.strip() in _RESERVED_NAMES:
        raise ValueError(
            f'{pattern!r} needs the name of a project such as "shop": no path, none of'
            f" {', '.join(sorted(_RESERVED_NAMES))}"
        )
    expanded = home + pattern[1:] if pattern == "~" or pattern.startswith("~/") else pattern
    if not expanded.startswith("/"):
        raise ValueError(f"{pattern!r} must begin with / or ~/")
    if ".." in expanded.split("/"):
        raise ValueError(f"{pattern!r} must not go up with ..")
    names = [part for part in _follow_links(expanded).split("/") if part not in ("", ".")]
    body = "/".join(names)
    if body.count("**") > _DEEP_WILDCARDS_MAX:
        raise ValueError(f"{pattern!r} has more than {_DEEP_WILDCARDS_MAX} times **")
    below = parse_pattern(f"/{body}")
    if below is None:
        raise ValueError(f"{pattern!r} is no pattern")
    plain = len([part for part in names if part != "**"])
    return ProjectOverride(
        pattern, name.strip(), below, (plain, -len(_WILDCARD.findall(body)), len(body))
    )


def _follow_links(pattern: str) -> str:
    """Resolve the links in the part of a pattern before its first wildcard."""
    names = pattern.split("/")
    plain = next((n for n, name in enumerate(names) if _WILDCARD.search(name)), len(names))
    try:
        head = str(Path("/".join(names[:plain]) or "/").resolve())
    except (OSError, RuntimeError):  # RuntimeError: a circle of links
        return pattern
    return "/".join((head, *names[plain:]))


def _file_version(path: str | None) -> _FileVersion:
    try:
        found = os.stat(path) if path is not None else None  # noqa: PTH116  # once per event
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)


def _read_overrides(path: str) -> str:
    try:
        raw = _read_start(path, _OVERRIDES_BYTES_MAX + 1)
        text = raw.decode("utf-8")
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    if len(raw) > _OVERRIDES_BYTES_MAX:
        raise ValueError(f"it is larger than {_OVERRIDES_BYTES_MAX // 1024} KiB")
    return text


def _read_start(path: str | Path, size: int) -> bytes:
    """Read the first bytes of a file; a pipe does not block."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(handle, size)
    finally:
        os.close(handle)


def _apply_override(override: ProjectOverride) -> ProjectIdentity:
    reason = f"projects.toml says so for {override.pattern}"
    return ProjectIdentity(override.name, override.name, reason)


def _identify_from_disk(start: Path) -> ProjectIdentity:
    """Return the project of a directory by what lies in it and above it."""
    try:
        if not start.is_dir():
            return _identify_missing(start)
        for here in (start, *start.parents)[:_PARENTS_MAX]:
            marker = here / ".git"
            if marker.is_dir():
                return _identify(here, "the git repository's top level")
            if marker.is_file() and (found := _identify_git_file(here, marker)):
                return found
        return _identify(start, "the directory; no git repository is around it")
    except (OSError, RuntimeError, ValueError):
        return _identify(start, "the directory; it could not be read")


def _identify_git_file(here: Path, marker: Path) -> ProjectIdentity | None:
    """Follow a `.git` file: to a worktree's main checkout, or to this directory (a submodule)."""
    line = _read_line(marker)
    if line is None or not line.startswith("gitdir:"):
        return None
    git_dir = (here / line.removeprefix("gitdir:").strip()).resolve()
    common = _read_line(git_dir / "commondir")
    if common is None:
        return _identify(here, "the top level of a git submodule or of a separate git directory")
    common_dir = (git_dir / common).resolve()
    if not _is_listed_worktree(marker, git_dir, common_dir):
        return _identify(
            here,
            "the top level of a git worktree that its repository does not know;"
            " `git worktree repair` may mend that",
        )
    if common_dir.name == ".git":
        return _identify(common_dir.parent, "the main checkout of this git worktree", str(here))
    return _identify(common_dir, "the repository of this git worktree", str(here))


def list_worktrees(repository: str) -> list[str]:
    """Return the worktrees that a repository lists, also those whose directories are gone."""
    records = Path(repository, ".git" if not repository.endswith(".git") else "", "worktrees")
    try:
        lines = [_read_line(one / "gitdir") for one in sorted(records.iterdir())]
    except OSError:
        return []
    return [
        str((records / line).parent)
        for line in lines
        if line and Path(line).name == ".git" and Path(line).is_absolute()
    ]


def read_remote(repository: str) -> str | None:
    """Return the address of a repository's `origin` in a form that compares; None if it has none."""
    for config in (Path(repository, ".git", "config"), Path(repository, "config")):
        try:
            text = _read_start(config, _GIT_FILE_BYTES_MAX).decode("utf-8", "replace")
        except OSError:
            continue
        if found := _ORIGIN.search(text):
            return normalize_remote(found[1])
    return None


def keep_clone_apart(project: ProjectIdentity, remote: str) -> ProjectIdentity:
    """Return the project of a worktree; if its session names another remote, it was a clone of something else."""
    ours = read_remote(project.key)
    if ours is None or ours == normalize_remote(remote):
        return project
    apart = _keep_apart(project, frozenset({project.worktree}))
    return replace(
        apart, reason="the directory; its sessions name another remote than the repository above it"
    )


def normalize_remote(address: str) -> str:
    """Return `host/path` of a git remote, whether by https, ssh or `git@host:path`."""
    bare = re.sub(r"^\w+://", "", address.strip()).rpartition("@")[2]
    return re.sub(r":(?:\d+/)?", "/", bare, count=1).removesuffix("/").removesuffix(".git").lower()


def read_branch(directory: str) -> str | None:
    """Return the git branch that is checked out in a directory, redacted; None if none is, or it cannot be read."""
    start = Path(directory)
    if not start.is_absolute():
        return None
    try:
        for here in (start, *start.parents)[:_PARENTS_MAX]:
            marker = here / ".git"
            line = _read_line(marker) if marker.is_file() else None
            git_dir = here / line.removeprefix("gitdir:").strip() if line else marker
            if line or marker.is_dir():
                head = _read_line(git_dir / "HEAD") or ""
                name = head.removeprefix(_ON_BRANCH)
                is_named = name != head and len(name) <= BRANCH_CHARACTERS_MAX
                return redact(storable(name), entropy=False) if is_named else None
    except (OSError, ValueError):
        pass
    return None


def _is_listed_worktree(marker: Path, git_dir: Path, common_dir: Path) -> bool:
    """Return whether the repository lists this worktree; only its owner can write that list."""
    back = _read_line(git_dir / "gitdir")
    return (
        git_dir.parent == common_dir / "worktrees"
        and back is not None
        and (git_dir / back).resolve() == marker.resolve()
    )


def _read_line(path: Path) -> str | None:
    """Return the only line of a small text file; None for anything else."""
    try:
        raw = _read_start(path, _GIT_FILE_BYTES_MAX + 1)
        line = raw.decode("utf-8").strip()
    except (OSError, ValueError):
        return None
    if not line or len(raw) > _GIT_FILE_BYTES_MAX or "\0" in line or "\n" in line:
        return None
    return line


def redact_directory(directory: str) -> str:
    """Return a directory as it may be stored: somebody may have put a token into its name."""
    return redact(storable(directory), entropy=False)


def _identify(top: PurePath, reason: str, worktree: str = "") -> ProjectIdentity:
    key = redact_directory(str(top))
    path = type(top)(key) if isinstance(top, PureWindowsPath) else PurePath(key)
    name = path.name.removesuffix(".git")
    if not name or name.startswith("."):
        name = path.parent.name or name
    return ProjectIdentity(key, name or key, reason, worktree and redact_directory(worktree))
