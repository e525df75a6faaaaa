"""Permissions: which projects, sessions and memories a request may see, and limits on an agent's writes.

`current` is the project of the caller's directory together with `global`. A caller without a directory sees every
project, unless it is an agent's: that sees `global` alone, because nobody can tell where it works.

A call over MCP is an agent's, whoever asked it to. A control call is made by the user's hand, unless its client
says that it runs in an agent's shell, or `memd.callers` finds that out. Reading is not limited. `[agents]` in
config.toml lifts each limit.
"""

import hmac
import secrets
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from memd import callers
from memd.belief.standing import authority_of
from memd.capture import project as capture_project
from memd.capture.project import ProjectIdentity, ProjectOverrides, list_worktrees
from memd.config import AgentsConfig
from memd.errors import BadRequest, UnknownId
from memd.models import GLOBAL_PROJECT, Authority, Project, Session, SessionRef, Summary
from memd.server.requests import ProjectRequest, RememberRequest, Request, ScopedRequest
from memd.store import links, projects, summaries
from memd.store.database import Connection, Database
from memd.store.summaries import imported_authority
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
    has_left: Callable[[], bool] = lambda: False
    """Returns whether it has closed the connection by now, so that no answer reaches it."""

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


# ── Limits on an agent's writes and erasing ───────────────────────────────────────────────────────

_IDS_NAMED_MAX = 10
"""Memories that a message names."""
_IDS_PER_READ = 500


@dataclass(frozen=True, slots=True)
class ControlCall:
    """A control call: what it takes, what answers it, and who may make it."""

    request: type[Request]
    handler: Callable[[Any, Caller], Awaitable[object]]
    """Takes the request and the caller; returns anything that `encode_json` writes."""
    reads: bool = False
    """Whether it changes nothing: whoever makes it may."""
    project: str | None = None
    """What it sees unless it names a project; None: what its request says."""
    command: Callable[[Any], Sequence[str] | None] | None = None
    """Of what the user alone decides, but for its dry run: his command for such a request; None for one that changes nothing."""
    name: str = ""
    """Under which name the result stands in the answer, unless that is the answer itself."""
    settles: bool = False
    """Whether a search finds what it changed once it has answered."""

    def require_user(self, request: Any, mark: str) -> None:
        """Refuse what only the user decides; `mark` is what says that an agent asks for it."""
        is_dry_run = getattr(request, "dry_run", False)
        words = self.command(request) if self.command and not is_dry_run else None
        if words is not None:
            raise BadRequest(callers.explain_refusal(shlex.join(["memd", *words]), mark))


def choose_authority(request: RememberRequest, by: str) -> Authority:
    """Return the authority of a new memory: that of who calls, unless it was read from another place."""
    if by == "agent":
        is_import = choose_source(request, by) != by
        read = imported_authority(request.source or "", request.speaker)
        return min(Authority.AGENT_CALL, read) if is_import else Authority.AGENT_CALL
    return imported_authority(request.source or "user", request.speaker)


def choose_source(request: RememberRequest, by: str) -> str:
    """Return who gave a memory: who calls, unless it was read from another place; no agent calls itself a user."""
    is_import = (request.source or "").startswith("import:")
    return request.source if request.source and (by == "user" or is_import) else by


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Refuses with a BadRequest, which says what the user can do instead, what an agent may not write."""

    scopes: ScopeResolver
    config: AgentsConfig

    def authority_of(self, by: str) -> Authority:
        """Return the authority of a call by `agent` or `user`."""
        return Authority.USER_HAND if self.config.user_memories else authority_of(by)

    async def find_own_project(self, caller: Caller) -> ProjectIdentity:
        """The project of the caller's directory; `scratch` if it has none."""
        if caller.directory is None:
            return capture_project.resolve_project(None)
        return await self.scopes.identify(caller.directory)

    async def require_own_project(self, key: str | None, caller: Caller) -> None:
        """Refuse to remember for another project; `key` is None for `global`."""
        own = await self.find_own_project(caller)
        if self.config.other_projects or key == own.key:
            return
        if not await self.scopes.db.read(lambda tx: _is_same_project(tx, key, own.key)):
            where = "for everywhere" if key in {None, GLOBAL_PROJECT} else "for another"
            raise BadRequest(
                f"project: an agent remembers for its own project ({own.name}), not {where};"
                " leave project out, or ask the user to run `memd remember --project …`"
                " (or to set other_projects = true under [agents] in config.toml)"
            )

    async def require_own_memories(self, ids: Sequence[int], caller: Caller, command: str) -> None:
        """Refuse to change memories of other projects; `command` is the user's way to do it."""
        if self.config.other_projects:
            return
        own = await self.find_own_project(caller)

        def check(tx: Connection) -> None:
            here = projects.project_by_key(tx, own.key)
            for one in _read_memories(tx, ids):
                if here is None or one.project_id != here.id:
                    owner = projects.project(tx, one.project_id)
                    raise BadRequest(
                        f"#{one.id} belongs to {owner.name if owner else 'another project'}, and an agent"
                        f" changes memories of its own project ({own.name}) only; ask the user to run"
                        f" `{command}` (or to set other_projects = true under [agents] in config.toml)"
                    )

        await self.scopes.db.read(check)

    async def find_project_to_forget(self, project: str, caller: Caller) -> int | None:
        """The project in which an agent may forget; None for every one. BadRequest if it asks for another."""
        if self.config.other_projects:
            return None
        own = await self.find_own_project(caller)
        asked = own.key
        if project == ALL:
            asked = ""
        elif project not in {CURRENT, own.name, own.key}:
            asked = (await self.scopes.find_identity(project, caller.directory))[0].key

        def find(tx: Connection) -> int:
            here = projects.project_by_key(tx, own.key)
            if here is None:
                raise BadRequest(f"project: nothing is known of {own.name} yet")
            if here != projects.project_by_key(tx, asked):
                raise BadRequest(
                    f"project: an agent forgets in its own project ({own.name}) only; ask the user to run"
                    " `memd forget --project …` (or to set other_projects = true under [agents] in"
                    " config.toml)"
                )
            return here.id

        return await self.scopes.db.read(find)

    async def require_erasable(self, ids: Sequence[int], caller: Caller) -> None:
        """Refuse to forget memories of the user, or of other projects."""
        if not ids:
            return
        await self.require_own_memories(ids, caller, _name_forget_command(ids))
        if self.config.user_memories:
            return

        def find_users(tx: Connection) -> list[int]:
            # The user's rejections decide what may not come back.
            return [one.id for one in _read_memories(tx, ids) if one.standing.speaker == "user"]

        if users := await self.scopes.db.read(find_users):
            names = ", ".join(f"#{number}" for number in users[:_IDS_NAMED_MAX])
            more = ", …" if len(users) > _IDS_NAMED_MAX else ""
            raise BadRequest(
                f"{names}{more}: the user said, pinned or rejected this, so only the user can erase it; ask the user to"
                f" run `{_name_forget_command(users)}` (or to set user_memories = true under [agents] in"
                " config.toml)"
            )


def _read_memories(tx: Connection, ids: Sequence[int]) -> Iterator[Summary]:
    """Yield the memories with these ids, a few hundred of them in memory at a time."""
    for start in range(0, len(ids), _IDS_PER_READ):
        yield from summaries.summaries_by_ids(tx, ids[start : start + _IDS_PER_READ]).values()


def _name_forget_command(ids: Sequence[int]) -> str:
    """The command with which the user forgets these memories."""
    shown = " ".join(map(str, ids[:_IDS_NAMED_MAX]))
    return f"memd forget {shown}{' …' if len(ids) > _IDS_NAMED_MAX else ''}"


def _is_same_project(tx: Connection, key: str | None, own_key: str) -> bool:
    """Return whether two keys name one project, because it was merged from several."""
    here = projects.project_by_key(tx, own_key)
    return key is not None and here is not None and here == projects.project_by_key(tx, key)


# ── Tokens of dry runs ────────────────────────────────────────────────────────────────────────────

TOKEN_MS = 600_000
"""How long a token holds, in milliseconds."""
_TOKENS_MAX = 256
"""Tokens held at a time; the oldest goes first."""
_REFUSAL = (
    "token: {}, so nothing was erased; call mem_forget with dry_run: true, show the user what would go, and"
    " pass the token that it returns"
)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """One dry run: who made it, what it showed, and when (UTC milliseconds)."""

    token: str
    caller: Caller
    plan: str
    """The name of the plan: of exactly these rows."""
    at: int


class ForgetTokens:
    """Issues tokens and redeems them. They are held in memory only, so none outlives the daemon."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._issued: list[IssuedToken] = []

    def issue(self, caller: Caller, plan: str) -> str:
        """Return a token for this plan, which only this caller's connection can redeem."""
        new = IssuedToken(secrets.token_urlsafe(), caller, plan, self._clock())
        self._issued = [*self._list_valid(), new][-_TOKENS_MAX:]
        return new.token

    def redeem(self, token: str | None, caller: Caller) -> str:
        """Return the plan of a token and void the token. BadRequest unless it is a valid one of this caller."""
        if not token:
            raise BadRequest(_REFUSAL.format("missing"))
        self._issued = self._list_valid()
        given = token.encode("utf-8", "surrogatepass")
        # Every token is compared, in a time that does not depend on how much of it is right.
        found = [
            one
            for one in self._issued
            if hmac.compare_digest(one.token.encode(), given) and one.caller == caller
        ]
        if not found:
            reason = "not one of a dry run on this connection within the last ten minutes, or used"
            raise BadRequest(_REFUSAL.format(reason))
        self._issued.remove(found[0])
        return found[0].plan

    def _list_valid(self) -> list[IssuedToken]:
        now = self._clock()
        # A clock that was set back must not make a token last.
        return [one for one in self._issued if 0 <= now - one.at < TOKEN_MS]
