"""Resolve which projects, sessions and memories a request may see.

`current` is the project of the caller's directory together with `global`. A caller without a directory sees every
project, unless it is an agent's: that sees `global` alone, because nobody can tell where it works.
"""

from dataclasses import dataclass

import anyio.to_thread

from memd.capture import project as capture_project
from memd.capture.project import ProjectIdentity, ProjectOverrides, list_worktrees
from memd.errors import BadRequest, UnknownId
from memd.models import GLOBAL_PROJECT, Project, Session, SessionRef, Summary
from memd.server.requests import ProjectRequest, RememberRequest, ScopedRequest
from memd.store import links, projects, summaries
from memd.store.database import Connection, Database
from memd.text import unique

CURRENT = "current"
ALL = "all"
_NOWHERE = (
    "the directory that this client was started in is gone or cannot be read, so only what holds everywhere is"
    f" shown; start it again in its project, or name one (project: {ALL} for every one)"
)
_NAMES_MAX = 20
"""Names of projects that an error message lists."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of a connection: what it said of itself, and what the kernel knows of it."""

    cwd: str | None = None
    project: str | None = None
    """The project's directory as the client sees it; preferred to `cwd`."""
    session: str | None = None
    client: str | None = None
    speaker: str | None = None
    """`agent` if an agent makes its calls: it says so itself, speaks MCP, or runs in an agent's shell."""
    mark: str = "its client says so"
    """What tells that an agent calls, if one does."""
    uid: int | None = None
    pid: int | None = None
    connection: int = 0
    """The number of the connection, never used twice by one daemon."""

    @property
    def directory(self) -> str | None:
        """Return the caller's working directory."""
        return self.project or self.cwd


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """The projects that a request may see."""

    project_ids: tuple[int, ...] | None
    """None: every project."""
    name: str | None = None
    """The name of the project that was asked for."""
    note: str | None = None
    """What the caller should know about that project."""

    def list_ids(self, tx: Connection) -> tuple[int, ...]:
        """List the projects, each by its id."""
        if self.project_ids is not None:
            return self.project_ids
        return tuple(one.id for one in projects.projects(tx))


async def identify_project(
    directory: str, overrides: ProjectOverrides | None = None
) -> ProjectIdentity:
    """The project of a directory. Reads the disk in a thread."""
    return await anyio.to_thread.run_sync(capture_project.resolve_project, directory, overrides)


@dataclass(frozen=True, slots=True)
class ScopeResolver:
    """Finds the projects and sessions that callers name."""

    db: Database
    overrides: ProjectOverrides | None = None

    async def find_scope(
        self, directory: str | None, project: str, *, is_agents: bool = False
    ) -> ProjectScope:
        """Return the projects that `project` means to a caller in `directory`; BadRequest if there is none."""
        read = self.db.read_inline
        if project == CURRENT and directory is not None:
            here = await self.identify(directory)
            return await read(lambda tx: _current_scope(tx, here))
        if project == CURRENT and is_agents:
            return await read(lambda tx: ProjectScope(_with_global(tx), note=_NOWHERE))
        if project in {ALL, CURRENT}:
            return ProjectScope(None)
        key = await self._resolve_key(project)
        return await read(lambda tx: _named_scope(tx, project, key))

    async def find_asked(
        self, request: ScopedRequest | ProjectRequest, caller: Caller
    ) -> ProjectScope:
        """Return the projects that a call asks for."""
        return await self.find_scope(request.directory or caller.directory, request.project)

    async def find_project(self, name: str) -> Project:
        """Find the one project of this directory, key or name; BadRequest if there is none, or several."""
        key = await self._resolve_key(name)
        return await self.db.read(lambda tx: _find_one_project(tx, name, key))

    async def find_identity(
        self, project: str, directory: str | None
    ) -> tuple[ProjectIdentity, str | None]:
        """The identity of one project, and its directory if one was given: then it may be unknown."""
        if project == CURRENT:
            if directory is None:
                raise BadRequest("project: say which; this call comes from no directory")
            return await self.identify(directory), directory
        if project.startswith("/"):
            return await self.identify(project), project
        one = await self.find_project(project)
        return ProjectIdentity(one.key, one.name, one.reason), None

    async def find_other_projects(self, directory: str | None) -> dict[int, str]:
        """Project → its name, of every project but that of the directory."""
        key = "" if directory is None else (await self.identify(directory)).key

        def read(tx: Connection) -> dict[int, str]:
            here = projects.project_by_key(tx, key)
            return {one.id: one.name for one in projects.projects(tx) if one != here}

        return await self.db.read(read)

    async def find_session(self, name: str, caller: Caller) -> Session:
        """Find the one session that `name` means: `current`, or the beginning of its id."""
        key = caller.session if name == CURRENT else name
        if key is None:
            raise BadRequest("session: this client did not say which session it is; give the id")
        found = await self.db.read(lambda tx: projects.find_sessions(tx, key))
        matches = [one for one in found if key in {one.key, one.uid}] or found
        if len(matches) == 1:
            return matches[0]
        if not found:
            raise BadRequest(f"session: there is no {key!r}")
        raise BadRequest(f"session: {len(found)} sessions begin with {key!r}; give more of the id")

    async def list_checkouts(self, directory: str | None) -> tuple[str, ...]:
        """Return the worktree around a directory, its repository, and the repository's other worktrees."""
        if directory is None:
            return ()
        here = await self.identify(directory)
        listed = await anyio.to_thread.run_sync(list_worktrees, here.key)
        known = await self.db.read(lambda tx: projects.project_by_key(tx, here.key))
        aliases = await self.db.read(projects.project_aliases)
        others = aliases.get(known.id, []) if known else []
        return tuple(unique((here.worktree or here.key, here.key, *listed, *others)))

    async def identify(self, directory: str) -> ProjectIdentity:
        """The project of a directory, as projects.toml or its repository names it."""
        return await identify_project(directory, self.overrides)

    async def _resolve_key(self, project: str) -> str:
        return (await self.identify(project)).key if project.startswith("/") else project


def _current_scope(tx: Connection, here: ProjectIdentity) -> ProjectScope:
    found = projects.project_by_key(tx, here.key)
    if found:
        return ProjectScope(_with_global(tx, found), found.name)
    note = f"nothing is known of {here.name} yet; project: {ALL} searches everything"
    return ProjectScope(_with_global(tx), here.name, note)


def _named_scope(tx: Connection, name: str, key: str) -> ProjectScope:
    found = projects.find_projects(tx, key) or projects.find_projects(tx, name)
    if not found:
        known = _list_names(tx)
        raise BadRequest(
            f"project: there is no {name!r}; there is {known}; or use {CURRENT} or {ALL}"
        )
    return ProjectScope(_with_global(tx, *found), found[0].name)


def _with_global(tx: Connection, *found: Project) -> tuple[int, ...]:
    shared = projects.find_projects(tx, GLOBAL_PROJECT)[:1]
    return tuple(dict.fromkeys(project.id for project in (*found, *shared)))


def _find_one_project(tx: Connection, name: str, key: str) -> Project:
    exact = projects.project_by_key(tx, key) or projects.project_by_key(tx, name)
    found = [exact] if exact else projects.find_projects(tx, name)
    if not found:
        raise BadRequest(f"project: there is no {name!r}; there is {_list_names(tx)}")
    if len(found) > 1:
        keys = ", ".join(project.key for project in found[:_NAMES_MAX])
        raise BadRequest(f"project: {len(found)} are called {name!r}; say which: {keys}")
    return found[0]


def _list_names(tx: Connection) -> str:
    names = list(dict.fromkeys(project.name for project in projects.projects(tx)))
    more = ", …" if len(names) > _NAMES_MAX else ""
    return ", ".join(names[:_NAMES_MAX]) + more or "none yet"


def visible_memories(
    tx: Connection, ids: list[int], scope: ProjectScope
) -> tuple[dict[int, Summary], list[int]]:
    """The memories with these ids that the scope shows, and the ids that do not exist.

    An UnknownId for a memory outside the scope names its project, and how to reach it.
    """
    found = links.with_final_superseders(tx, summaries.summaries_by_ids(tx, ids))
    for one in found.values():
        if scope.project_ids is not None and one.project_id not in scope.project_ids:
            owner = projects.project(tx, one.project_id)
            name = owner.name if owner else "another project"
            raise UnknownId(f"#{one.id} belongs to {name}; ask with the project {ALL} to reach it")
    return found, [number for number in dict.fromkeys(ids) if number not in found]


def require_known(unknown: list[int]) -> None:
    """Refuse ids that do not exist."""
    if unknown:
        raise UnknownId(f"there is no memory {', '.join(f'#{number}' for number in unknown)}")


def choose_session(request: RememberRequest, caller: Caller) -> SessionRef | None:
    """Return the session that a new memory belongs to, if any."""
    if request.session is not None:
        return SessionRef(request.client or request.source or "user", request.session)
    if caller.session is None or caller.client is None:
        return None
    return SessionRef(caller.client, caller.session, caller.directory)
