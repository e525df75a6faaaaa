"""The control calls about projects, and about switching capture and recall off and on.

A project is given as a directory, a name or a key; `current` is the caller's directory. A switch holds for
what is captured and injected: searches are answered, and explicit memories stored, whatever it says.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from memd.capture.project import ProjectIdentity
from memd.errors import BadRequest
from memd.models import Project
from memd.server import requests
from memd.server.jsonrpc import JsonObject, to_plain
from memd.server.scope import CURRENT, Caller, ControlCall, ScopeResolver, identify_project
from memd.server.service import MemoryService
from memd.store import ledger, projects
from memd.store.database import Connection
from memd.store.projects import PROJECT_SCOPE, SESSION_SCOPE

if TYPE_CHECKING:
    from memd.sharing.workers import TeamWorker

_STATES = {
    "on": (True, True),
    "off": (False, False),
    "capture-only": (True, False),
    "recall-only": (False, True),
}
"""State → whether memd captures, and whether it recalls."""
_SESSION_ID = re.compile(r"[0-9A-Za-z-]{32,64}")
"""A whole session id: with one, a session may be switched before its first event."""


class ProjectControl:
    """Handles the control calls about projects and switches."""

    def __init__(self, service: MemoryService) -> None:
        self._app = service.app
        self._service = service
        self._scopes = service.scopes

    def list_calls(self) -> dict[str, ControlCall]:
        """The calls about projects, switches, watched folders and teams."""
        return {
            "memd/project": ControlCall(requests.ProjectRequest, self.show, reads=True),
            "memd/projects": ControlCall(requests.ProjectsRequest, self.list_all, name="projects", reads=True),
            "memd/project/merge": ControlCall(
                requests.MergeProjectsRequest, self.merge,
                command=lambda asked: ["project", "merge", asked.project, asked.into], settles=True,
            ),
            "memd/project/merge/undo": ControlCall(
                requests.UndoMergeRequest, self.undo_merge,
                command=lambda asked: ["project", "merge", asked.project, "--undo"], settles=True,
            ),
            "memd/project/rename": ControlCall(
                requests.RenameProjectRequest, self.rename,
                command=lambda asked: ["project", "rename", asked.project, asked.name],
            ),
            "memd/switch": ControlCall(
                requests.SwitchRequest, self.switch,
                command=lambda asked: asked.state and ["switch", asked.state, *_name_switched(asked)],
            ),
            "memd/watch": ControlCall(
                requests.WatchRequest, self.watch, command=lambda asked: asked.folder and ["watch", asked.folder]
            ),
            "memd/team": ControlCall(requests.EmptyRequest, self.describe_team, reads=True),
            "memd/team/join": ControlCall(
                requests.JoinTeamRequest, self.join_team,
                command=lambda asked: ["team", "join", *filter(None, [asked.name])],
            ),
            "memd/team/leave": ControlCall(
                requests.LeaveTeamRequest, self.leave_team, command=lambda asked: ["team", "leave", asked.name]
            ),
        }  # fmt: skip

    async def describe(self, directory: str) -> JsonObject:
        """`key`, `name`, `reason` and `switch` of a directory's project. Counts nothing, so it is quick."""
        found = await self._scopes.identify(directory)
        return await self._app.db.read(lambda tx: _describe_project(tx, found))

    async def show(self, request: requests.ProjectRequest, caller: Caller) -> JsonObject:
        """One project with its aliases, counts and switch.

        `before` is the key of the project that projects.toml took the directory from, and `trouble` is
        what is wrong with projects.toml.
        """
        found, directory = await self._find_project(request, caller)
        by_git = found if directory is None else await identify_project(directory)

        def read(tx: Connection) -> JsonObject:
            known = projects.project_by_key(tx, found.key)
            earlier = projects.project_by_key(tx, by_git.key)
            has_moved = earlier and by_git.key != found.key and earlier != known
            return {
                **_describe_project(tx, found),
                "aliases": projects.project_aliases(tx).get(known.id, []) if known else [],
                **to_plain(
                    projects.count_by_project(tx)[known.id] if known else projects.ProjectCounts()
                ),
                "before": earlier.key if earlier and has_moved else None,
                "trouble": self._app.overrides.trouble,
            }

        return await self._app.db.read(read)

    async def list_all(self, request: requests.ProjectsRequest, _: Caller) -> object:
        """Every project, with its aliases, counts and switch unless only the names are wanted."""
        if not request.counts:
            return await self._app.db.read(projects.projects)

        def read(tx: Connection) -> list[JsonObject]:
            tallies, aliases = projects.count_by_project(tx), projects.project_aliases(tx)
            return [
                {
                    **to_plain(one),
                    **to_plain(tallies[one.id]),
                    "aliases": aliases.get(one.id, []),
                    "switch": projects.effective_switch(tx, one.key, None),
                }
                for one in projects.projects(tx)
            ]

        return await self._app.db.read(read)

    async def merge(self, request: requests.MergeProjectsRequest, _: Caller) -> object:
        """Move all that one project has to another, or say what would move."""
        source = await self._scopes.find_project(request.project)
        into = await self._scopes.find_project(request.into)
        if source.key == into.key:
            # projects.toml has given the directory to `into`; its memories from before are meant.
            source = await ScopeResolver(self._app.db).find_project(request.project)
        merged = await self._app.curator.merge(source.key, into.key, dry_run=request.dry_run)
        if not request.dry_run:
            await self._read_separated()
        return merged

    async def _read_separated(self) -> None:
        self._app.overrides.separate(await self._app.db.read(projects.separated_keys))

    async def undo_merge(self, request: requests.UndoMergeRequest, _: Caller) -> object:
        """Give a merged project back what it had."""
        undone = await self._app.curator.undo_merge(request.project)
        await self._read_separated()
        return undone

    async def rename(self, request: requests.RenameProjectRequest, _: Caller) -> Project:
        """Give a project another name."""
        known = await self._scopes.find_project(request.project)
        return await self._app.curator.rename(known.key, request.name)

    async def switch(self, request: requests.SwitchRequest, caller: Caller) -> JsonObject:
        """Switch a session or a project, and return what holds there now; without a state, list all."""
        if request.state is None:
            return {"switches": await self._app.db.read(projects.list_switches)}
        captures, recalls = _STATES[request.state]
        if request.session is not None:
            return await self._switch_session(request.session, captures, recalls, caller)
        found, _ = await self._find_project(request, caller)
        now = self._app.clock()

        def write(tx: Connection) -> JsonObject:
            if captures and recalls:
                projects.drop_switch(tx, PROJECT_SCOPE, found.key)
            else:
                projects.put_switch(tx, PROJECT_SCOPE, found.key, captures, recalls, now)
            return {"here": _describe_project(tx, found)}

        return await self._app.db.write(write)

    async def watch(self, request: requests.WatchRequest, _: Caller) -> JsonObject:
        """Follow the notes in a folder from now on, or no longer; return every folder that is followed, with its project.

        What was read stays when a folder is watched no more.
        """
        folder = request.folder
        if folder is not None and not request.remove:
            folder = await anyio.to_thread.run_sync(_check_folder, folder)

        def write(tx: Connection) -> JsonObject:
            known = ledger.watched_folders(tx)
            if folder is None:
                pass
            elif request.remove:
                if folder not in known:
                    raise BadRequest(f"{folder} is not watched; `memd watch --list` names what is")
                ledger.unwatch_folder(tx, folder)
            else:
                above = [one for one in known if folder.startswith(f"{one.rstrip('/')}/")]
                if above:
                    raise BadRequest(f"{folder} is watched already, as part of {above[0]}")
                ledger.watch_folder(tx, folder, by_headings=request.headings)
            return {
                "watched": [
                    {"path": path, "headings": each, "files": ledger.count_imported(tx, path)}
                    for path, each in ledger.watched_folders(tx).items()
                ]
            }

        listed = await self._app.db.write(write)
        for one in listed["watched"]:
            one["project"] = (await self.describe(one["path"]))["name"]
        if folder is not None:
            self._app.look_at_folders()
        return listed

    # ── Teams ────────────────────────────────────────────────────────────────────────────────────

    async def describe_team(self, _: requests.EmptyRequest, __: Caller) -> JsonObject:
        """The team's server, what is shared, and how that goes."""
        return await self._find_team().describe()

    async def join_team(self, request: requests.JoinTeamRequest, caller: Caller) -> object:
        """Share a project, or say what would be shared."""
        team = self._find_team()
        found, _ = await self._find_project(request, caller)
        share = team.preview_join if request.dry_run else team.join
        name = request.name or await team.propose_name(found.key)
        return await share(name, found.key, has_instructions=request.instructions)

    async def leave_team(self, request: requests.LeaveTeamRequest, _: Caller) -> object:
        """Share a project no more."""
        return await self._find_team().leave(request.name, withdraws=request.withdraw)

    def _find_team(self) -> "TeamWorker":
        if self._app.team is None:
            raise BadRequest(
                'no team is configured: set url = "postgresql://…" under [team] in config.toml, then'
                " `memd restart`"
            )
        return self._app.team

    async def _switch_session(
        self, session: str, captures: bool, recalls: bool, caller: Caller
    ) -> JsonObject:
        key = await self._find_session_key(session, caller)
        now = self._app.clock()

        def write(tx: Connection) -> JsonObject:
            known = [one for one in projects.find_sessions(tx, key) if one.key == key]
            project = projects.project(tx, known[0].project_id) if known else None
            project_key = project.key if project else ""
            projects.drop_switch(tx, SESSION_SCOPE, key)
            holds = projects.effective_switch(tx, project_key, key)
            # A known session that is on like its project needs no switch of its own. Where the
            # project is off, none of its sessions is known.
            if project is None or not (captures and recalls) or not holds.is_on:
                projects.put_switch(tx, SESSION_SCOPE, key, captures, recalls, now)
            return {"session": key, "switch": projects.effective_switch(tx, project_key, key)}

        return await self._app.db.write(write)

    async def _find_session_key(self, session: str, caller: Caller) -> str:
        try:
            return (await self._scopes.find_session(session, caller)).key
        except BadRequest:
            is_known = await self._app.db.read(lambda tx: projects.find_sessions(tx, session))
            if is_known or not _SESSION_ID.fullmatch(session):
                raise
            return session

    async def _find_project(
        self, request: requests.ProjectRequest, caller: Caller
    ) -> tuple[ProjectIdentity, str | None]:
        directory = request.directory or caller.directory
        return await self._scopes.find_identity(request.project, directory)


def _name_switched(asked: Any) -> list[str]:
    if asked.session is not None:
        return ["--session", asked.session]
    return [] if asked.project == CURRENT else ["--project", asked.project]


def _check_folder(path: str) -> str:
    """Return the folder as it is watched, without links. BadRequest if it is none, or cannot be read."""
    found = Path(path).resolve()
    try:
        next(found.iterdir(), None)
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror or error}; name a folder of notes") from error
    return str(found)


def _describe_project(tx: Connection, found: ProjectIdentity) -> JsonObject:
    known = projects.project_by_key(tx, found.key)
    reason = found.reason
    if known is not None and known.key != found.key:
        reason = f"{reason}; {found.key} was merged into it"
    return {
        "key": known.key if known else found.key,
        "name": known.name if known else found.name,
        "reason": reason,
        "is_known": known is not None,
        "switch": projects.effective_switch(tx, found.key, None),
    }
