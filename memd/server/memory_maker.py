"""Make the memory that a `mem_remember` or a `memd/remember` asks for: its project, its speaker, its proof."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import anyio.to_thread

from memd.belief.checks import FORMS, read_checks
from memd.belief.notes import QuotedNote, Unproved, add_content, find_quotes
from memd.belief.standing import tag_places
from memd.belief.values import read_place
from memd.consolidate.remember import NewMemory
from memd.consolidate.sources import Origin
from memd.distill.proving import prove_note
from memd.distill.text import score_quality
from memd.errors import BadRequest
from memd.models import GLOBAL_PROJECT, SIGNIFICANCE_TAG, Authority, Tier
from memd.paths import name_device
from memd.server import requests, scope
from memd.server.scope import ALL, CURRENT, AgentLimits, Caller, ScopeResolver, choose_session
from memd.store import projects
from memd.text import unique
from memd.time_expressions import parse_duration, parse_start

_FRONT_MATTER_QUALITY = 0.2
_QUOTES_MAX = 5
"""Quotations of a client's note that are looked for in the record."""


@dataclass(frozen=True, slots=True)
class MemoryMaker:
    """Turns requests of agents and users into memories to write."""

    scopes: ScopeResolver
    limits: AgentLimits
    clock: Callable[[], int]

    async def make(self, request: requests.RememberRequest, caller: Caller, by: str) -> NewMemory:
        """The memory that a request is for. BadRequest if an agent may not write it."""
        now = self.clock()
        key, name, reason = await self._choose_project(request, caller, by)
        if by == "agent":
            await self.limits.require_own_project(key, caller)
            if request.replaces:
                command = f"memd judge NEW supersedes {request.replaces[0]}"
                await self.limits.require_own_memories(request.replaces, caller, command)
        places, paths = tag_places(request.where)
        rating = [f"{SIGNIFICANCE_TAG}{request.significance}"] if request.significance else []
        claim = QuotedNote(request.text, request.quote, request.about) if request.quote else None
        return NewMemory(
            why=request.why,
            check=_read_check(request.check),
            claim=claim,
            replaces=tuple(request.replaces),
            text=add_content(request.text, request.content),
            title=request.title or None,
            kind=request.kind,
            topic_key=request.topic_key,
            tags=(*request.tags, *places, *rating),
            files=unique((*request.files, *paths)),
            session=choose_session(request, caller),
            at=to_ms(parse_start, request.at, now, "at"),
            expires_at=to_ms(parse_start, request.expires_at, now, "expires_at")
            if request.expires_in is None
            else now + parse_duration(request.expires_in, "expires_in"),
            source=scope.choose_source(request, by),
            tier=Tier(request.tier),
            origin=Origin(**request.origin.model_dump()) if request.origin else None,
            project_key=key,
            project_name=name,
            project_reason=reason,
            authority=scope.choose_authority(request, by),
            quality=_measure_quality(request),
        )

    async def prove(self, memory: NewMemory) -> tuple[NewMemory, Unproved | None]:
        """Make an agent's note the user's word if the record proves its quote; else say why not."""
        quoted, key, now = memory.claim, memory.project_key or "", self.clock()
        if quoted is None:
            return memory, None
        line = await anyio.to_thread.run_sync(read_place, quoted.quote, key) if key else None
        if line is not None:
            return replace(memory, line=line), None
        at = now if memory.at is None else min(now, memory.at)
        found = await self.scopes.db.read(
            lambda tx: prove_note(tx, quoted, memory.session, key, at)
        )
        if isinstance(found, Unproved):
            refused = found.as_kind(memory.kind)
            return replace(memory, refused=refused), refused
        proved = replace(memory, proof=found, authority=Authority.USER_TOLD)
        return replace(proved, device=name_device()), None

    async def prove_file(self, memory: NewMemory) -> NewMemory:
        """Prove what a client's own note says by the words that it quotes, if the user said some of them."""
        for quote in itertools.islice(find_quotes(memory.text), _QUOTES_MAX):
            claimed = replace(memory, claim=QuotedNote(memory.text, quote))
            proved, _ = await self.prove(claimed)
            if proved.proof is not None:
                return proved
        return memory

    async def _choose_project(
        self, request: requests.RememberRequest, caller: Caller, by: str
    ) -> tuple[str | None, str, str]:
        """Key, name and reason of the project that a memory is for; no key for `global`."""
        name = request.project
        directory = request.directory or caller.directory
        if name == GLOBAL_PROJECT or (name == CURRENT and directory is None and by == "user"):
            return None, "", ""
        if name == CURRENT and directory is None:
            own = await self.limits.find_own_project(caller)
            return own.key, own.name, own.reason
        if name.startswith("/"):
            directory = name
        elif name != CURRENT:
            found = await self.scopes.db.read(lambda tx: projects.find_projects(tx, name))
            if found:
                return found[0].key, found[0].name, found[0].reason
            if by == "agent" or name == ALL:
                raise BadRequest(
                    f"project: there is no {name!r}; leave it out to remember for this project"
                )
            return name, name, "named with --project"
        assert directory is not None
        here = await self.scopes.identify(directory)
        return here.key, here.name, here.reason


def _measure_quality(request: requests.RememberRequest) -> float:
    """The quality of a text, as that of captured memories; fields above it add to it as ClawMem has it."""
    has_fields = request.origin is not None and request.origin.has_front_matter
    return min(score_quality(request.text) + (_FRONT_MATTER_QUALITY if has_fields else 0.0), 1.0)


def _read_check(text: str) -> str:
    """A check as its own sentences; BadRequest for what has none of the forms."""
    found = read_checks(text)
    if text.strip() and not found:
        raise BadRequest(f"check: it has none of the forms: {FORMS}")
    return "; ".join(map(str, found))


def to_ms(parse: Callable[..., int], value: str | int | None, now: int, *name: str) -> int | None:
    """A time of a request in UTC milliseconds; None if it has none."""
    return None if value is None else parse(value, now, *name)
