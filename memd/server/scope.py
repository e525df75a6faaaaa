"""Who asks, and which projects that means.

`current` is the project of the caller's directory together with `global`; who has no directory sees
every project. Not here: how a directory becomes a project (capture/identity.py).
"""

from dataclasses import dataclass

import anyio.to_thread

from memd.capture import project as capture_project
from memd.capture.project import ProjectIdentity, ProjectOverrides
from memd.errors import BadRequest, UnknownId
from memd.models import GLOBAL_PROJECT, Project, Session, Summary
from memd.store import links, projects, summaries
from memd.store.database import Connection, Database

CURRENT = "current"
ALL = "all"
_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is at the other end of a connection, as far as it said, or the kernel knows."""

    cwd: str | None = None
    project: str | None = None
    """The client's own idea of the project's directory; better than `cwd` where there is one."""
    session: str | None = None
    client: str | None = None
    uid: int | None = None
    pid: int | None = None

    @property
    def directory(self) -> str | None:
        """Where the caller works."""
        return self.project or self.cwd


@dataclass(frozen=True, slots=True)
class Reach:
    """Which projects a request may see."""

    project_ids: tuple[int, ...] | None
    """None: every one."""
    name: str | None = None
    """What the project that was asked for is called."""
    note: str | None = None
    """What the caller should know about it, in words."""


async def resolve(directory: str, overrides: ProjectOverrides | None = None) -> ProjectIdentity:
    """The project of a directory. Looks at the disk, so not on the event loop."""
    return await anyio.to_thread.run_sync(capture_project.resolve_project, directory, overrides)


async def reach(
    db: Database, directory: str | None, asked: str, overrides: ProjectOverrides | None = None
) -> Reach:
    """The projects that `asked` means to a caller in `directory`; BadRequest if there is no such."""
    if asked == ALL or (asked == CURRENT and directory is None):
        return Reach(None)
    if asked == CURRENT and directory is not None:
        here = await resolve(directory, overrides)
        return await db.read_inline(lambda tx: _current(tx, here))
    key = (await resolve(asked, overrides)).key if asked.startswith("/") else asked
    return await db.read_inline(lambda tx: _named(tx, asked, key))


def _global(tx: Connection) -> tuple[int, ...]:
    return tuple(project.id for project in projects.find_projects(tx, GLOBAL_PROJECT)[:1])


def _current(tx: Connection, here: ProjectIdentity) -> Reach:
    found = projects.project_by_key(tx, here.key)
    ids = tuple(dict.fromkeys((*((found.id,) if found else ()), *_global(tx))))
    if found:
        return Reach(ids, found.name)
    note = f"nothing is known of {here.name} yet; project: {ALL} searches everything"
    return Reach(ids, here.name, note)


def _named(tx: Connection, asked: str, key: str) -> Reach:
    found = projects.find_projects(tx, key) or projects.find_projects(tx, asked)
    if not found:
        raise BadRequest(f"project: there is no {asked!r}; {_there_is(projects.projects(tx))}")
    ids = tuple(dict.fromkeys((*(p.id for p in found), *_global(tx))))
    return Reach(ids, found[0].name)


async def one_project(
    db: Database, asked: str, overrides: ProjectOverrides | None = None
) -> Project:
    """The one project that a directory, key or name means; BadRequest if it is none, or several."""
    key = (await resolve(asked, overrides)).key if asked.startswith("/") else asked
    return await db.read(lambda tx: _one(tx, asked, key))


def _one(tx: Connection, asked: str, key: str) -> Project:
    if (
        exact := projects.project_by_key(tx, key) or projects.project_by_key(tx, asked)
    ) is not None:
        return exact
    found = projects.find_projects(tx, asked)
    if len(found) > 1:
        keys = ", ".join(project.key for project in found[:_SHOWN_MAX])
        raise BadRequest(f"project: {len(found)} are called {asked!r}; say which: {keys}")
    if not found:
        raise BadRequest(f"project: there is no {asked!r}; {_names(projects.projects(tx))}")
    return found[0]


def _there_is(known: list[Project]) -> str:
    return f"{_names(known)}; or use {CURRENT} or {ALL}"


def _names(known: list[Project]) -> str:
    names = list(dict.fromkeys(project.name for project in known))
    shown = ", ".join(names[:_SHOWN_MAX]) + (", …" if len(names) > _SHOWN_MAX else "")
    return f"there is {shown or 'none yet'}"


async def elsewhere(
    db: Database, directory: str | None, overrides: ProjectOverrides | None = None
) -> dict[int, str]:
    """Project → its name, of every project but that of the directory."""
    key = "" if directory is None else (await resolve(directory, overrides)).key

    def look(tx: Connection) -> dict[int, str]:
        here = projects.project_by_key(tx, key)
        return {one.id: one.name for one in projects.projects(tx) if one != here}

    return await db.read(look)


async def session(db: Database, asked: str, caller: Caller) -> Session:
    """The one session that `asked` means: `current`, or the beginning of its id."""
    key = caller.session if asked == CURRENT else asked
    if key is None:
        raise BadRequest("session: this client did not say which session it is; give the id")
    found = await db.read(lambda tx: projects.find_sessions(tx, key))
    exact = [one for one in found if key in {one.key, one.uid}]
    if len(exact or found) != 1:
        raise BadRequest(
            f"session: {len(found)} sessions begin with {key!r}; give more of the id"
            if found
            else f"session: there is no {key!r}"
        )
    return (exact or found)[0]


def visible(
    tx: Connection, ids: list[int], scope: Reach
) -> tuple[dict[int, Summary], list[int]]:
    """The memories with these ids that are in reach, and the ids that do not exist at all.

    UnknownId if one belongs to a project out of reach: it says which, and how to reach it.
    """
    found = links.with_final_superseders(tx, summaries.summaries_by_ids(tx, ids))
    for one in found.values():
        if scope.project_ids is not None and one.project_id not in scope.project_ids:
            owner = projects.project(tx, one.project_id)
            name = owner.name if owner else "another project"
            raise UnknownId(
                f"#{one.id} belongs to {name}; ask with the project {ALL} to reach it"
            )
    return found, [number for number in dict.fromkeys(ids) if number not in found]
