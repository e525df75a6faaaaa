"""Directory to project: git worktrees, projects.toml."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from memd import log
from memd.capture.ignore import parse_pattern
from memd.gitignore import PathPattern
from memd.models import GLOBAL_PROJECT, SCRATCH_PROJECT

# MERGED from memd.capture.overrides:
# MERGED Which directories a person has given to a project by hand: `projects.toml`, beside `config.toml`.
# MERGED
# MERGED   section [projects]
# MERGED   e.g. "~/code/shop" = "shop"        # this directory and all below it
# MERGED   e.g. "~/code/shop-*" = "shop"      # * and ? stay within one name, ** crosses names
# MERGED
# MERGED The file lies in the user's configuration and never in a repository: a cloned repository must not be
# MERGED able to choose whose memories it sees. The most specific pattern wins: the one with the most names,
# MERGED then the one with the fewest wildcards, then the longest. The file is parsed once and again when its
# MERGED stat changes; one that is broken counts as absent, and says why. Not here: git (identity.py).


NAME_CHARACTERS = 100
_BYTES_MAX = 256 * 1024
_DEEP_MAX = 3
"""Every further ** multiplies the time that a deep directory takes."""
_RESERVED = frozenset({GLOBAL_PROJECT, SCRATCH_PROJECT, "current", "all"})
_WILD = re.compile(r"[*?\[]")
_Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class ProjectOverride:
    """One line: a directory and all below it, and the project that they belong to."""

    pattern: str
    """As it stands in the file."""
    name: str
    below: PathPattern
    rank: tuple[int, int, int]
    """The larger, the more specific."""


class ProjectOverrides:
    """The file as it is now. `path` None: there is none. Asking it looks at the disk."""

    def __init__(self, path: str | None, home: str) -> None:
        self._path = path
        self._home = home
        self._stamp: _Stamp = None
        self._known: tuple[ProjectOverride, ...] = ()
        self.trouble: str | None = None
        """Why the file counts as absent; None if nothing is wrong with it."""
        self.generation = 0
        """Grows whenever the file has changed."""

    def find(self, directory: str) -> ProjectOverride | None:
        """The most specific line for an absolute directory, or None."""
        self.refresh()
        fitting = (
            one for one in self._known if one.below.matches(directory[1:], is_directory=True)
        )
        return max(fitting, key=lambda one: one.rank, default=None)

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._known = (
                () if stamp is None else parse_overrides(_text(self._path or ""), self._home)
            )
            self.trouble = None
        except ValueError as error:
            self._known = ()
            self.trouble = f"{self._path} is not used: {error}"
            log.get("capture").warning("projects_file_refused", reason=self.trouble)
        self.generation += 1


def parse_overrides(text: str, home: str) -> tuple[ProjectOverride, ...]:
    """The lines of a `projects.toml`. ValueError says what is wrong, and where."""
    try:
        said = tomllib.loads(text)
    except ValueError as error:  # more than TOMLDecodeError: a number of thousands of digits
        raise ValueError(f"it is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if strange := sorted(said.keys() - {"projects"}):
        raise ValueError(f"there is no [{strange[0]}], only [projects]")
    lines = said.get("projects", {})
    if not isinstance(lines, Mapping):
        raise ValueError(  # noqa: TRY004  # of the file, like the rest
            'projects is no table; write [projects], then "~/code/shop" = "shop"'
        )
    return tuple(_override(pattern, name, home) for pattern, name in lines.items())


def _override(pattern: str, name: Any, home: str) -> ProjectOverride:
    is_name = isinstance(name, str) and 0 < len(name.strip()) <= NAME_CHARACTERS
    if not is_name or "/" in name or not name.isprintable() or name.strip() in _RESERVED:
        raise ValueError(
            f'{pattern!r} needs the name of a project such as "shop": no path, none of'
            f" {', '.join(sorted(_RESERVED))}"
        )
    expanded = home + pattern[1:] if pattern == "~" or pattern.startswith("~/") else pattern
    if not expanded.startswith("/"):
        raise ValueError(f"{pattern!r} must begin with / or ~/")
    names = [part for part in _followed(expanded).split("/") if part not in ("", ".")]
    if ".." in expanded.split("/"):
        raise ValueError(f"{pattern!r} must not go up with ..")
    body = "/".join(names)
    if body.count("**") > _DEEP_MAX:
        raise ValueError(f"{pattern!r} has more than {_DEEP_MAX} times **")
    wild = len(_WILD.findall(body))
    rank = (len([part for part in names if part != "**"]), -wild, len(body))
    below = parse_pattern(f"/{body}")
    if below is None:
        raise ValueError(f"{pattern!r} is no pattern")
    return ProjectOverride(pattern, name.strip(), below, rank)


def _followed(pattern: str) -> str:
    """The pattern with the links in the part before its first wildcard followed, as directories are."""
    names = pattern.split("/")
    plain = next((n for n, name in enumerate(names) if _WILD.search(name)), len(names))
    try:
        head = str(Path("/".join(names[:plain]) or "/").resolve())
    except (OSError, RuntimeError):  # links that lead in a circle
        return pattern
    return "/".join((head, *names[plain:]))


def _stamp(path: str | None) -> _Stamp:
    try:
        found = os.stat(path) if path is not None else None  # noqa: PTH116  # once for every event
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)


def _text(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            raw = os.read(handle, _BYTES_MAX + 1)
        finally:
            os.close(handle)
        text = raw.decode("utf-8")
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    if len(raw) > _BYTES_MAX:
        raise ValueError(f"it is larger than {_BYTES_MAX // 1024} KiB")
    return text


# MERGED from memd.capture.identity:
# MERGED Which project a directory belongs to, and why: read from the disk, without running git.
# MERGED
# MERGED A person's own word comes first (overrides.py): of the directory itself, else of the repository that
# MERGED it is a worktree of. Then the worktrees of one repository share its main checkout's name, a submodule
# MERGED is a project of its own, and what git does not know is named by the directory itself. A `.git` may be
# MERGED anything at all, so every read and every walk is bounded, what makes no sense is as good as absent,
# MERGED and a worktree is believed only if its repository knows it: an unpacked archive must not be able to
# MERGED choose whose memories it sees.
# MERGED
# MERGED A project named by an override has that name for its key: it is the project that an import or
# MERGED `--project NAME` means, too. What was kept under the directory's own key before can be merged into it.


_LEVELS = 64
_FILE_BYTES = 4_096
_PATH_CHARACTERS = 4_096
_KEPT = 256
_FRESH_MS = 60_000
_SCRATCH_PARENT = "/scratch-workspaces/"


@dataclass(frozen=True, slots=True)
class ProjectIdentity:
    """A project's key and name, and in words why it is this one."""

    key: str
    name: str
    reason: str


class ProjectResolver:
    """`resolve` with a memory of one minute. `clock` gives UTC milliseconds."""

    def __init__(
        self, clock: Callable[[], int], overrides: ProjectOverrides | None = None
    ) -> None:
        self._clock = clock
        self._overrides = overrides or ProjectOverrides(None, "/")
        self._generation = 0
        self._known: dict[str | None, tuple[int, ProjectIdentity]] = {}

    @property
    def trouble(self) -> str | None:
        """Why a person's own word is not heeded; None if nothing is wrong with it."""
        return self._overrides.trouble

    def resolve(self, directory: str | None) -> ProjectIdentity:
        """The project of a directory; looked up anew after a minute, or a change of projects.toml."""
        now = self._clock()
        self._overrides.refresh()
        if self._overrides.generation != self._generation:
            self._generation = self._overrides.generation
            self._known.clear()
        known = self._known.get(directory)
        if known is not None and 0 <= now - known[0] < _FRESH_MS:
            return known[1]
        identity = resolve_project(directory, self._overrides)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[directory] = (now, identity)
        return identity


def resolve_project(
    directory: str | None, overrides: ProjectOverrides | None = None
) -> ProjectIdentity:
    """The project that a directory belongs to."""
    if not directory or len(directory) > _PATH_CHARACTERS or "\0" in directory:
        return ProjectIdentity(SCRATCH_PROJECT, SCRATCH_PROJECT, "the session has no directory")
    try:
        start = Path(directory).resolve()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: links that lead in a circle
        return _named(Path(directory), "the directory; it could not be read")
    if overrides is not None and (own := overrides.find(str(start))):
        return _overridden(own)
    if _SCRATCH_PARENT in directory and "/Claude/" in directory:
        reason = "the session has a directory made for it alone"
        return ProjectIdentity(SCRATCH_PROJECT, SCRATCH_PROJECT, reason)
    found = _by_disk(start)
    # A worktree elsewhere belongs to what was said of its repository.
    own = overrides.find(found.key) if overrides is not None else None
    return found if own is None else _overridden(own)


def _by_disk(start: Path) -> ProjectIdentity:
    """The project of a directory by what lies in it and above it."""
    try:
        if not start.is_dir():
            return _named(start, "the directory; it is not there now")
        return _in_git(start) or _named(start, "the directory; no git repository is around it")
    except (OSError, RuntimeError, ValueError):
        return _named(start, "the directory; it could not be read")


def _overridden(own: ProjectOverride) -> ProjectIdentity:
    return ProjectIdentity(own.name, own.name, f"projects.toml says so for {own.pattern}")


def _in_git(start: Path) -> ProjectIdentity | None:
    """The project of the repository around a directory, or None."""
    for here in (start, *start.parents)[:_LEVELS]:
        marker = here / ".git"
        if marker.is_dir():
            return _named(here, "the git repository's top level")
        if marker.is_file() and (found := _of_git_file(here, marker)):
            return found
    return None


def _of_git_file(here: Path, marker: Path) -> ProjectIdentity | None:
    """What a `.git` file says: a worktree's main checkout, or this directory (a submodule)."""
    said = _first_line(marker)
    if said is None or not said.startswith("gitdir:"):
        return None
    git_dir = (here / said.removeprefix("gitdir:").strip()).resolve()
    common = _first_line(git_dir / "commondir")
    if common is None:
        return _named(here, "the top level of a git submodule or of a separate git directory")
    common_dir = (git_dir / common).resolve()
    if not _is_known_worktree(marker, git_dir, common_dir):
        return _named(
            here,
            "the top level of a git worktree that its repository does not know;"
            " `git worktree repair` may mend that",
        )
    if common_dir.name == ".git":
        return _named(common_dir.parent, "the main checkout of this git worktree")
    return _named(common_dir, "the repository of this git worktree")


def _is_known_worktree(marker: Path, git_dir: Path, common_dir: Path) -> bool:
    """Whether the repository has this worktree in its list, which nobody but its owner can write."""
    back = _first_line(git_dir / "gitdir")
    return (
        git_dir.parent == common_dir / "worktrees"
        and back is not None
        and (git_dir / back).resolve() == marker.resolve()
    )


def _first_line(path: Path) -> str | None:
    """The only line of a small text file; None for anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            raw = os.read(handle, _FILE_BYTES + 1)
        finally:
            os.close(handle)
        line = raw.decode("utf-8").strip()
    except (OSError, ValueError):
        return None
    if not line or len(raw) > _FILE_BYTES or "\0" in line or "\n" in line:
        return None
    return line


def _named(top: Path, reason: str) -> ProjectIdentity:
    # A name that is no UTF-8 cannot be stored.
    key = str(top).encode("utf-8", "replace").decode("utf-8")
    path = PurePath(key)
    name = path.name.removesuffix(".git")
    if not name or name.startswith("."):
        name = path.parent.name or name
    return ProjectIdentity(key, name or key, reason)
