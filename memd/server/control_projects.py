"""The control calls about projects and switches: what a place is, and what holds there.

A project is given as a directory, a name or a key; `current` is the caller's directory. What is
switched concerns what is kept by itself and what is shown unasked: whoever asks is answered, and
what a person says to remember is kept. Not here: what a merge does (consolidate/merging.py).
"""

import re
from dataclasses import dataclass
from typing import Any

from memd.capture.project import ProjectIdentity
from memd.errors import BadRequest
from memd.server import json_format, scope
from memd.server.ports import App
from memd.server.requests import (
    EmptyRequest,
    MergeProjectsRequest,
    ProjectRequest,
    RenameProjectRequest,
    SwitchRequest,
)
from memd.server.scope import Caller
from memd.store import projects
from memd.store.database import Connection
from memd.store.projects import PROJECT_SCOPE, SESSION_SCOPE

_STATES = {
    "on": (True, True),
    "off": (False, False),
    "capture-only": (True, False),
    "recall-only": (False, True),
}
_SESSION_ID = re.compile(r"[0-9A-Za-z-]{32,64}")
"""Long enough to be whole: a session may be switched before its first event."""


@dataclass(frozen=True, slots=True)
class Places:
    """The handlers over one App."""

    app: App

    async def here(self, directory: str) -> dict[str, Any]:
        """`key`, `name`, `reason` and `switch` of a directory's project; counts nothing, so it is quick."""
        found = await scope.resolve(directory, self.app.overrides)
        return await self.app.db.read(lambda tx: _here(tx, found))

    async def project(self, asked: ProjectRequest, caller: Caller) -> dict[str, Any]:
        """One project: what it is, why, how much there is of it, and what holds there.

        `trouble` is what is wrong with projects.toml, or None.
        """
        found, directory = await self._place(asked, caller)
        by_git = found if directory is None else await scope.resolve(directory)
        told = await self.app.db.read(lambda tx: _shown(tx, found, by_git))
        return {**told, "trouble": self.app.overrides.trouble}

    async def projects(self, _: EmptyRequest, __: Caller) -> dict[str, Any]:
        """Every project with how much there is of it."""
        return {"projects": await self.app.db.read(_listed)}

    async def merge(self, asked: MergeProjectsRequest, _: Caller) -> Any:
        """Make two projects one, or say what would move; return once it can be found there."""
        source = await scope.one_project(self.app.db, asked.project, self.app.overrides)
        into = await scope.one_project(self.app.db, asked.into, self.app.overrides)
        if source.key == into.key:
            # projects.toml has given the directory to it; what is meant is what was kept before.
            source = await scope.one_project(self.app.db, asked.project)
        merged = await self.app.curator.merge(source.key, into.key, dry_run=asked.dry_run)
        if not asked.dry_run:
            await self.app.indexer.settle()
        return json_format.plain(merged)

    async def rename(self, asked: RenameProjectRequest, _: Caller) -> Any:
        """Call a project something else."""
        known = await scope.one_project(self.app.db, asked.project, self.app.overrides)
        return json_format.plain(await self.app.curator.rename(known.key, asked.name))

    async def switch(self, asked: SwitchRequest, caller: Caller) -> dict[str, Any]:
        """Say what holds in one place, and `here` what holds there now; without a state, list."""
        if asked.state is not None:
            captures, recalls = _STATES[asked.state]
            if asked.session is not None:
                return await self._switch_session(asked.session, captures, recalls, caller)
            return await self._switch_project(asked, captures, recalls, caller)
        return {"switches": json_format.plain(await self.app.db.read(projects.list_switches))}

    async def _switch_project(
        self, asked: SwitchRequest, captures: bool, recalls: bool, caller: Caller
    ) -> dict[str, Any]:
        found, _ = await self._place(asked, caller)
        now = self.app.clock()

        def write(tx: Connection) -> dict[str, Any]:
            if captures and recalls:
                projects.drop_switch(tx, PROJECT_SCOPE, found.key)
            else:
                projects.put_switch(tx, PROJECT_SCOPE, found.key, captures, recalls, now)
            return {"here": _here(tx, found)}

        return await self.app.db.write(write)

    async def _place(
        self, asked: ProjectRequest | SwitchRequest, caller: Caller
    ) -> tuple[ProjectIdentity, str | None]:
        """The project that is meant, and the directory if one says it: then it may be unknown yet."""
        directory = asked.project if asked.project.startswith("/") else None
        if asked.project == scope.CURRENT:
            directory = asked.directory or caller.directory
            if directory is None:
                raise BadRequest("project: say which; this call comes from no directory")
        if directory is not None:
            return await scope.resolve(directory, self.app.overrides), directory
        one = await scope.one_project(self.app.db, asked.project, self.app.overrides)
        return ProjectIdentity(one.key, one.name, one.reason), None

    async def _switch_session(
        self, asked: str, captures: bool, recalls: bool, caller: Caller
    ) -> dict[str, Any]:
        key = await self._session_key(asked, caller)
        now = self.app.clock()

        def write(tx: Connection) -> dict[str, Any]:
            project = _project_of(tx, key)
            projects.drop_switch(tx, SESSION_SCOPE, key)
            holds = projects.effective_switch(tx, project or "", key)
            # A known session that is on like its project needs no word of its own. Where the
            # project is off, none of its sessions is known.
            if project is None or (captures, recalls) != (True, True) or not holds.is_on:
                projects.put_switch(tx, SESSION_SCOPE, key, captures, recalls, now)
            holds = projects.effective_switch(tx, project or "", key)
            return {"session": key, "switch": json_format.plain(holds)}

        return await self.app.db.write(write)

    async def _session_key(self, asked: str, caller: Caller) -> str:
        try:
            return (await scope.session(self.app.db, asked, caller)).key
        except BadRequest:
            is_known = await self.app.db.read(lambda tx: projects.find_sessions(tx, asked))
            if is_known or not _SESSION_ID.fullmatch(asked):
                raise
            return asked


def _project_of(tx: Connection, session_key: str) -> str | None:
    found = [one for one in projects.find_sessions(tx, session_key) if one.key == session_key]
    project = projects.project(tx, found[0].project_id) if found else None
    return project.key if project else None


def _here(tx: Connection, found: ProjectIdentity) -> dict[str, Any]:
    known = projects.project_by_key(tx, found.key)
    reason = found.reason
    if known is not None and known.key != found.key:
        reason = f"{reason}; {found.key} was merged into it"
    return {
        "key": known.key if known else found.key,
        "name": known.name if known else found.name,
        "reason": reason,
        "is_known": known is not None,
        "switch": json_format.plain(projects.effective_switch(tx, found.key, None)),
    }


def _shown(tx: Connection, found: ProjectIdentity, by_git: ProjectIdentity) -> dict[str, Any]:
    """As `_here`, with aliases and counts; `before` is the key of what projects.toml took it from."""
    known = projects.project_by_key(tx, found.key)
    earlier = projects.project_by_key(tx, by_git.key)
    has_moved = earlier is not None and by_git.key != found.key and earlier != known
    return {
        **_here(tx, found),
        "aliases": projects.project_aliases(tx).get(known.id, []) if known else [],
        **json_format.plain(
            projects.count_by_project(tx)[known.id]
            if known is not None
            else projects.ProjectCounts()
        ),
        "before": earlier.key if earlier is not None and has_moved else None,
    }


def _listed(tx: Connection) -> list[dict[str, Any]]:
    tallies, aliases = projects.count_by_project(tx), projects.project_aliases(tx)
    return [
        {
            **json_format.plain(one),
            **json_format.plain(tallies[one.id]),
            "aliases": aliases.get(one.id, []),
            "switch": json_format.plain(projects.effective_switch(tx, one.key, None)),
        }
        for one in projects.projects(tx)
    ]
