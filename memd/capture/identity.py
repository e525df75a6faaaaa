"""Which project a directory belongs to, and why: read from the disk, without running git.

A person's own word comes first (overrides.py): of the directory itself, else of the repository that
it is a worktree of. Then the worktrees of one repository share its main checkout's name, a submodule
is a project of its own, and what git does not know is named by the directory itself. A `.git` may be
anything at all, so every read and every walk is bounded, what makes no sense is as good as absent,
and a worktree is believed only if its repository knows it: an unpacked archive must not be able to
choose whose memories it sees.

A project named by an override has that name for its key: it is the project that an import or
`--project NAME` means, too. What was kept under the directory's own key before can be merged into it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

from memd.capture.overrides import Override, Overrides
from memd.models import SCRATCH_PROJECT

_LEVELS = 64
_FILE_BYTES = 4_096
_PATH_CHARACTERS = 4_096
_KEPT = 256
_FRESH_MS = 60_000
_SCRATCH_PARENT = "/scratch-workspaces/"


@dataclass(frozen=True, slots=True)
class Identity:
    """A project's key and name, and in words why it is this one."""

    key: str
    name: str
    reason: str


class Identities:
    """`resolve` with a memory of one minute. `clock` gives UTC milliseconds."""

    def __init__(self, clock: Callable[[], int], overrides: Overrides | None = None) -> None:
        self._clock = clock
        self._overrides = overrides or Overrides(None, "/")
        self._generation = 0
        self._known: dict[str | None, tuple[int, Identity]] = {}

    @property
    def trouble(self) -> str | None:
        """Why a person's own word is not heeded; None if nothing is wrong with it."""
        return self._overrides.trouble

    def of(self, directory: str | None) -> Identity:
        """The project of a directory; looked up anew after a minute, or a change of projects.toml."""
        now = self._clock()
        self._overrides.refresh()
        if self._overrides.generation != self._generation:
            self._generation = self._overrides.generation
            self._known.clear()
        known = self._known.get(directory)
        if known is not None and 0 <= now - known[0] < _FRESH_MS:
            return known[1]
        identity = resolve(directory, self._overrides)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[directory] = (now, identity)
        return identity


def resolve(directory: str | None, overrides: Overrides | None = None) -> Identity:
    """The project that a directory belongs to."""
    if not directory or len(directory) > _PATH_CHARACTERS or "\0" in directory:
        return Identity(SCRATCH_PROJECT, SCRATCH_PROJECT, "the session has no directory")
    try:
        start = Path(directory).resolve()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: links that lead in a circle
        return _named(Path(directory), "the directory; it could not be read")
    if overrides is not None and (own := overrides.of(str(start))):
        return _overridden(own)
    if _SCRATCH_PARENT in directory and "/Claude/" in directory:
        reason = "the session has a directory made for it alone"
        return Identity(SCRATCH_PROJECT, SCRATCH_PROJECT, reason)
    found = _by_disk(start)
    # A worktree elsewhere belongs to what was said of its repository.
    own = overrides.of(found.key) if overrides is not None else None
    return found if own is None else _overridden(own)


def _by_disk(start: Path) -> Identity:
    """The project of a directory by what lies in it and above it."""
    try:
        if not start.is_dir():
            return _named(start, "the directory; it is not there now")
        return _in_git(start) or _named(start, "the directory; no git repository is around it")
    except (OSError, RuntimeError, ValueError):
        return _named(start, "the directory; it could not be read")


def _overridden(own: Override) -> Identity:
    return Identity(own.name, own.name, f"projects.toml says so for {own.pattern}")


def _in_git(start: Path) -> Identity | None:
    """The project of the repository around a directory, or None."""
    for here in (start, *start.parents)[:_LEVELS]:
        marker = here / ".git"
        if marker.is_dir():
            return _named(here, "the git repository's top level")
        if marker.is_file() and (found := _of_git_file(here, marker)):
            return found
    return None


def _of_git_file(here: Path, marker: Path) -> Identity | None:
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


def _named(top: Path, reason: str) -> Identity:
    # A name that is no UTF-8 cannot be stored.
    key = str(top).encode("utf-8", "replace").decode("utf-8")
    path = PurePath(key)
    name = path.name.removesuffix(".git")
    if not name or name.startswith("."):
        name = path.parent.name or name
    return Identity(key, name or key, reason)
