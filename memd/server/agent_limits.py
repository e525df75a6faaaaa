"""Who may do what: which control calls are the user's, and limits on an agent's writes and erasing.

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

from memd import callers
from memd.belief.standing import authority_of
from memd.capture import project as capture_project
from memd.capture.project import ProjectIdentity
from memd.config import AgentsConfig
from memd.errors import BadRequest
from memd.models import GLOBAL_PROJECT, Authority, Summary
from memd.server.requests import RememberRequest, Request
from memd.server.scope import ALL, CURRENT, Caller, ScopeResolver
from memd.store import projects, summaries
from memd.store.database import Connection
from memd.store.speakers import imported_authority

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

    def __init__(
        self, clock: Callable[[], int], make_token: Callable[[], str] = secrets.token_urlsafe
    ) -> None:
        self._clock = clock
        self._make_token = make_token
        self._issued: list[IssuedToken] = []

    def issue(self, caller: Caller, plan: str) -> str:
        """Return a token for this plan, which only this caller's connection can redeem."""
        new = IssuedToken(self._make_token(), caller, plan, self._clock())
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
