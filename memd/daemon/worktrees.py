"""Joins projects that are one repository's: worktrees to their main checkout, and a checkout that was moved to where it is now.

It looks at an upgrade, whenever a project is new, and before a session is told anything.

While a worktree is there, git says whose it is (`capture/project.py`). Of one that is gone three things tell: the list
that its repository keeps of its worktrees, the path (`memd/directories.py`), and the remote and branch that its sessions
recorded. Another remote than the repository's speaks against all of them. What the user has separated, switched off or
named in projects.toml is left alone. A checkout was moved if its directory is gone and one repository alone that is there has
its origin, or its first commit and no other origin; a second one beside it is left alone. `memd project merge
NAME --undo` takes a join back, for good.
"""

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from memd import log
from memd.capture.project import (
    ProjectIdentity,
    ProjectOverrides,
    list_worktrees,
    normalize_remote,
    read_remote,
    resolve_project,
)
from memd.consolidate.curator import Curator
from memd.directories import WorktreePath, read_worktree_path
from memd.errors import MemdError
from memd.models import GLOBAL_PROJECT, SCRATCH_PROJECT
from memd.store import ledger, projects
from memd.store.database import Connection, Database
from memd.wakeup import AutoResetEvent

_GIT_S = 2.0
_REST_S = 1.0
"""Seconds between two looks."""
_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class KnownProject:
    """A project, and what its sessions recorded of git."""

    key: str
    name: str
    remotes: frozenset[str]
    branches: frozenset[str]
    is_fixed: bool = False
    """Whether it stays as it is: separated, switched, or no directory."""
    root: str = ""
    """The first commit of its repository, when that was there."""

    @property
    def worktree(self) -> WorktreePath | None:
        """A worktree as its path tells it."""
        return read_worktree_path(self.key)


class WorktreeJoiner:
    """The worker; `nudge` it when events were stored."""

    name = "worktrees"

    def __init__(
        self, db: Database, curator: Curator, overrides: ProjectOverrides, clock: Callable[[], int]
    ) -> None:
        self._db = db
        self._curator = curator
        self._overrides = overrides
        self._clock = clock
        self._wakeup = AutoResetEvent()
        overrides.separate(db.read_now(projects.separated_keys))  # before the first event
        self._seen: tuple[int, ...] = ()
        self._has_empty = False
        self._joining = anyio.Lock()
        self._joined = 0

    def status(self) -> dict[str, object]:
        """Return how many projects it has looked at, and how many it has joined since the start."""
        return {"projects": len(self._seen), "joined": self._joined}

    def nudge(self) -> None:
        """Look soon whether there is a new project."""
        self._wakeup.set()

    async def run(self) -> None:
        """Join what belongs together, until cancelled."""
        while True:
            await self.join()
            await self._wakeup.wait()
            await anyio.sleep(_REST_S)

    async def join_moved(self) -> None:
        """Join before a session begins, also a repository that had no commit yet."""
        await self.join(looks_again=self._has_empty)

    async def join(self, *, looks_again: bool = False) -> None:
        """Join what belongs together, if any project is new."""
        async with self._joining:
            while True:
                ids = await self._db.read(lambda tx: tuple(one.id for one in projects.projects(tx)))
                if ids == self._seen and not looks_again:
                    return
                looks_again = False
                known = await self._db.read(_read_known)
                look = partial(_look_around, known, self._overrides, is_new=ids != self._seen)
                found = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
                await self._db.write(partial(_note_repositories, known=found.known))
                self._seen, self._has_empty = ids, found.has_empty
                for key, into in found.joins:
                    await self._join(key, into)
                if not found.joins:
                    return

    async def _join(self, key: str, into: ProjectIdentity) -> None:
        now = self._clock()

        def ensure(tx: Connection) -> None:
            projects.ensure_project(tx, into.key, into.name, into.reason, now)

        try:
            await self._db.write(ensure)
            await self._curator.merge(key, into.key, dry_run=False)
        except MemdError as error:
            log.get(self.name).warning("worktree_not_joined", key=key, reason=error.message)
        else:
            self._joined += 1
            log.get(self.name).info("worktree_joined", key=key, into=into.key)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """The repositories of the projects, as they are on the disk."""

    known: Sequence[KnownProject]
    joins: Sequence[tuple[str, ProjectIdentity]]
    has_empty: bool
    """Whether one has no commit yet: it is known again only once it has one."""


def _look_around(
    known: Sequence[KnownProject], overrides: ProjectOverrides, *, is_new: bool
) -> _Surroundings:
    """Look at all repositories; unless a project is new, ask git only about those that nothing tells yet."""
    found = [
        replace(one, root=read_root(one.key)) if not one.root and (is_new or not _find_remotes(one)) else one
        for one in known
    ]  # fmt: skip
    has_empty = not all(map(_is_known_again, found))
    return _Surroundings(found, find_joins(found, overrides), has_empty)


def _is_known_again(one: KnownProject) -> bool:
    return bool(one.root or _find_remotes(one)) or not Path(one.key, ".git").exists()


def _note_repositories(tx: Connection, known: Sequence[KnownProject]) -> None:
    """Keep by what a repository is known again, for the time when its directory is gone."""
    for one in known:
        marks = json.dumps([one.root, *sorted(_find_remotes(one))])
        if marks != '[""]':
            ledger.write_note(tx, f"{ledger.REPOSITORY}{one.key}", marks)


def read_root(directory: str) -> str:
    """Read the first commit of a repository; empty without one, or if git takes too long."""
    if not Path(directory, ".git").exists():
        return ""
    argv = ["git", "-C", directory, "-c", "core.fsmonitor=false", "rev-list", "--max-parents=0", "HEAD"]  # fmt: skip
    try:
        said = subprocess.run(argv, capture_output=True, timeout=_GIT_S, check=False, text=True)  # noqa: S603  # git, without a shell
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return min(said.stdout.split(), default="")


def _find_moved(one: KnownProject, by_key: Mapping[str, KnownProject]) -> ProjectIdentity | None:
    """Return where a checkout that is gone is now: the only repository that is there which is the same."""
    there = [other for other in by_key.values() if _is_same_repository(one, other, by_key)]
    return _identify(there[0], "the checkout was moved here") if len(there) == 1 else None


def _is_same_repository(
    one: KnownProject, other: KnownProject, by_key: Mapping[str, KnownProject]
) -> bool:
    """Return whether another repository, which is there, has the same origin, or the same first commit and no other origin."""
    if one.key == other.key or other.is_fixed or not Path(other.key, ".git").exists():
        return False
    is_known = bool(_find_remotes(one) & _find_remotes(other)) or (one.root and one.root == other.root)  # fmt: skip
    return bool(is_known) and _may_be_one(one, other.key, by_key)


def find_joins(
    known: Sequence[KnownProject], overrides: ProjectOverrides
) -> list[tuple[str, ProjectIdentity]]:
    """Return the keys of projects that are another one's, with that one. Reads the disk."""
    by_key = {one.key: one for one in known}
    listed = {path: one.key for one in known for path in list_worktrees(one.key)}
    joins = []
    for one in known:
        if one.is_fixed or one.key in overrides.separated:
            continue
        into = _find_repository(one, by_key, listed, overrides)
        if into is not None and into.key != one.key and _may_be_one(one, into.key, by_key):
            joins.append((one.key, into))
    return joins


def _find_repository(
    one: KnownProject,
    by_key: Mapping[str, KnownProject],
    listed: Mapping[str, str],
    overrides: ProjectOverrides,
) -> ProjectIdentity | None:
    """Return the project that another one belongs to as a worktree; None if nothing says so."""
    now = resolve_project(one.key, overrides)
    if now.worktree or now.key != one.key or Path(one.key).exists():
        # projects.toml or the disk says what it is.
        return now if now.worktree else None
    if (repository := listed.get(one.key)) is not None:
        return _identify(by_key[repository], "its repository lists this worktree")
    worktree = one.worktree
    if worktree is None or worktree.top != one.key:
        return _find_moved(one, by_key)
    if worktree.main is None:
        return _find_by_name(one, worktree, by_key)
    return _find_beside(one, worktree, worktree.main, by_key)


def _find_beside(
    one: KnownProject, worktree: WorktreePath, path: str, by_key: Mapping[str, KnownProject]
) -> ProjectIdentity | None:
    """Return the repository whose path a worktree tells, if the vault knows it or a branch says that it is one."""
    main = by_key.get(path)
    if main is not None:
        is_one = _may_be_repository(path)
        return _identify(main, "the repository beside its worktrees") if is_one else None
    is_named = any(_is_named_after(worktree.top, branch) for branch in one.branches)
    if not is_named or Path(path).exists():
        return None
    return ProjectIdentity(path, worktree.repository, "the repository beside its worktrees")


def _find_by_name(
    one: KnownProject, worktree: WorktreePath, by_key: Mapping[str, KnownProject]
) -> ProjectIdentity | None:
    """Return the repository of a worktree in a tool's folder: by its remote, else if one alone has its name."""
    others = [other for other in by_key.values() if other.key != one.key and not other.is_fixed]
    mains = [other for other in others if other.worktree is None]
    ours = _normalize(one.remotes)
    by_remote = [other for other in mains if ours and ours & _find_remotes(other)]
    by_name = [
        other
        for other in mains
        if _last_name(other.key) == worktree.repository and _may_be_one(one, other.key, by_key)
    ]
    for found in (by_remote, by_name):
        if len(found) == 1:
            return _identify(found[0], "the repository that its worktrees name")
    if by_remote or by_name:
        return None
    # Nothing is known of the repository itself: its worktrees are one project, called after the first.
    same = [
        other
        for other in others
        if (there := other.worktree) is not None
        and there.shelf == worktree.shelf
        and _may_be_one(one, other.key, by_key)
    ]
    first = min(same, key=lambda other: other.key, default=None)
    return None if first is None or first.key > one.key else _identify(first, "its worktrees")


def _identify(project: KnownProject, reason: str) -> ProjectIdentity:
    return ProjectIdentity(project.key, project.name, reason)


def _may_be_one(one: KnownProject, key: str, by_key: Mapping[str, KnownProject]) -> bool:
    """Return whether no remote says that a worktree and a repository are of two."""
    ours, other = _normalize(one.remotes), by_key.get(key)
    theirs = _find_remotes(other) if other is not None else _normalize([read_remote(key) or ""])
    return not ours or not theirs or bool(ours & theirs)


def _find_remotes(project: KnownProject) -> frozenset[str]:
    here = read_remote(project.key)
    return _normalize(project.remotes) | (frozenset() if here is None else frozenset({here}))


def _normalize(remotes: Sequence[str] | frozenset[str]) -> frozenset[str]:
    return frozenset(normalize_remote(one) for one in remotes if one)


def _may_be_repository(directory: str) -> bool:
    """Return whether a directory has a repository, or is none of this machine."""
    return Path(directory, ".git").exists() or not Path(directory).exists()


def _is_named_after(directory: str, branch: str) -> bool:
    """Return whether a worktree's directory has the name of a branch, as tools write it."""
    name, whole = _SLUG.sub("-", _last_name(directory).lower()), _SLUG.sub("-", branch.lower())
    return bool(name) and (name == whole or whole.endswith(f"-{name}"))


def _last_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1].removesuffix(".git")


def _read_known(tx: Connection) -> list[KnownProject]:
    switched = {row.target for row in projects.list_switches(tx)}
    separated = set(projects.separated_keys(tx))
    known = []
    for one in projects.projects(tx):
        if one.key in {GLOBAL_PROJECT, SCRATCH_PROJECT}:
            continue
        is_fixed = one.key in switched or one.key in separated
        remotes, branches = projects.recorded_git(tx, one.id)
        noted = json.loads(ledger.read_note(tx, f"{ledger.REPOSITORY}{one.key}") or '[""]')
        remotes |= frozenset(noted[1:])
        known.append(KnownProject(one.key, one.name, remotes, branches, is_fixed, noted[0]))
    return known
