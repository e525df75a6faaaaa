"""Use cases shared by MCP and control calls."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import anyio

from memd.consolidate.forget import ForgetResult, ForgetSelection
from memd.consolidate.judgments import JudgmentResult, NewJudgment
from memd.consolidate.remember import DELIBERATE_SOURCES, NewMemory, RememberResult
from memd.consolidate.sources import Origin
from memd.errors import BadRequest, UnknownId
from memd.models import GLOBAL_PROJECT, Project, SessionRef, Stance, Summary, Tier
from memd.recall.provenance import explain_node
from memd.recall.timeline import read_timeline
from memd.recall.types import Answer, Question, RelevanceGate, Timeline, Why
from memd.server import json_format, scope, time_expressions
from memd.server.ports import App
from memd.server.requests import (
    ForgetRequest,
    GetRequest,
    JudgeRequest,
    PinRequest,
    RememberRequest,
    ScrubRequest,
    SearchRequest,
    TimelineRequest,
    WhyRequest,
    WithdrawRequest,
)
from memd.server.scope import Caller, Reach
from memd.store import judgments
from memd.store import projects as store_projects
from memd.store.database import Connection
from memd.store.erasure import ErasureBounds
from memd.store.filter import Filter

# MERGED from memd.serve.erasing:
# MERGED What a request to forget means: which memories, sessions, projects and times. And the scrub's call.
# MERGED
# MERGED Forgetting a project means that one alone, not what holds everywhere. Not here: what goes with it
# MERGED (consolidate/forgetting.py).


_OTHERS = ("query", "session", "since", "until")


async def selection(app: App, asked: ForgetRequest, caller: Caller) -> ForgetSelection:
    """What is meant. BadRequest if that is nothing, everything, or two things at once."""
    given = [name for name in _OTHERS if getattr(asked, name) is not None]
    if asked.ids:
        if given:
            raise BadRequest(f"{given[0]}: either ids, or what they have in common")
        return ForgetSelection(ids=tuple(asked.ids))
    if not given and ("project" not in asked.model_fields_set or asked.project == scope.ALL):
        raise BadRequest("say what to forget: ids, a query, a session, a project or a time")
    words = tuple((asked.query or "").split())
    if asked.query is not None and not words:
        raise BadRequest("query: empty; say what stands in the memories that shall go")
    if not words and not asked.dry_run and asked.token is None and caller.session is not None:
        raise BadRequest(
            "token: pass the one that the dry run returned, once the user has seen it"
        )
    now = app.clock()
    return ForgetSelection(
        words=words,
        bounds=ErasureBounds(
            await _project(app, asked, caller),
            await _session(app, asked, caller),
            None if asked.since is None else time_expressions.since(asked.since, now),
            None if asked.until is None else time_expressions.until(asked.until, now),
        ),
    )


async def _session(app: App, asked: ForgetRequest, caller: Caller) -> int | None:
    if asked.session is None:
        return None
    return (await scope.session(app.db, asked.session, caller)).id


async def _project(app: App, asked: ForgetRequest, caller: Caller) -> int | None:
    """The one project; None for every one, and where a session is named without a project."""
    is_said = "project" in asked.model_fields_set
    directory = asked.directory or caller.directory
    if asked.project == scope.ALL or (asked.session is not None and not is_said):
        return None
    if asked.project != scope.CURRENT:
        return (await scope.one_project(app.db, asked.project, app.overrides)).id
    if directory is None:
        raise BadRequest("project: say which; this call comes from no directory")
    here = await scope.resolve(directory, app.overrides)
    found: Project | None = await app.db.read(
        lambda tx: store_projects.project_by_key(tx, here.key)
    )
    if found is None:
        raise BadRequest(
            f"project: nothing is known of {here.name}; say another, or {scope.ALL} for every one"
        )
    return found.id


@dataclass(frozen=True, slots=True)
class Scrubs:
    """The handler over one App."""

    app: App

    async def scrub(self, asked: ScrubRequest, _: Caller) -> Any:
        """Take a pattern, or with `secrets` what is a secret by now, out of all that was kept."""
        if (asked.pattern is None) is not asked.secrets:
            raise BadRequest("pattern: give a pattern, or secrets: true")
        done = await self.app.curator.scrub(asked.pattern, dry_run=asked.dry_run)
        if not asked.dry_run:
            await self.app.indexer.settle()
        return json_format.plain(done)


# MERGED from memd.serve.errands:
# MERGED The errands that both vocabularies run: search, timeline, why, get, remember, forget, pin, judge.
# MERGED
# MERGED Checked requests in (requests.py), the packages' own values out, which format.py shows to agents and
# MERGED full.py to programs.


_SUMMARY = re.compile(r"#?(\d{1,15})|summary:(\d{1,15})")
_NODE = re.compile(r"(file|event|summary|origin):(.+)", re.DOTALL)


CallerKind = Literal["agent", "user"]
"""Who makes a call: an agent over MCP, or a person or program by a control call."""
_FOCUS_MS = 24 * 3_600_000
_FOCUSES_MAX = 256


@dataclass(frozen=True, slots=True)
class Found:
    """An answer, where it was looked for, and whether it had to wait in vain."""

    answer: Answer
    reach: Reach
    waited: str | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Whole memories, in the order asked for, and the ids that do not exist."""

    memories: tuple[Summary, ...]
    unknown: tuple[int, ...]
    projects: dict[int, str]
    sessions: dict[int, str]
    contradicted: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Desk:
    """What an errand needs: the rooms, and how long a search waits for an event."""

    app: App
    min_event_s: float
    focuses: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    """Session → what it said to weigh up, and when. Kept in memory: a session's focus is not a memory."""

    async def search(self, asked: SearchRequest, caller: Caller) -> Found:
        """Answer a question; BadRequest if there is none in it."""
        if not (asked.query.strip() or asked.topic_key or asked.embedding):
            raise BadRequest("query: say what to look for, or give a topic_key")
        reach = await self._reach(asked, caller)
        question = await self._question(asked, caller, reach)
        waited = await self._wait(asked.min_event)
        answer = await self.app.recaller.search(question)
        return Found(answer, reach, waited)

    async def timeline(self, asked: TimelineRequest, caller: Caller) -> tuple[Timeline, Reach]:
        """The neighbourhood of a memory, a time or a session; of now if none is given."""
        now = self.app.clock()
        between = _between(asked, now)
        if asked.id is not None and (between or asked.at is not None):
            raise BadRequest("id: give either a memory or a time, not both")
        reach = await self._reach(asked, caller)
        session = (
            None
            if asked.session is None
            else await scope.session(self.app.db, asked.session, caller)
        )
        at = (
            None if asked.at is None or between else time_expressions.since(asked.at, now, "at")
        )
        shown = await read_timeline(
            self.app.db,
            around=asked.id,
            at=at,
            wanted=Filter(
                project_ids=reach.project_ids,
                session_id=session.id if session else None,
                kinds=tuple(asked.kinds),
                include_superseded=True,
            ),
            before=asked.before,
            after=asked.after,
            between=between,
            now=now,
        )
        return shown, reach

    async def why(self, asked: WhyRequest, caller: Caller) -> tuple[Why, Reach]:
        """Why a memory, or anything else in the graph, is as it is."""
        kind, node = _node(asked.id)
        reach = await self._reach(asked, caller)
        found = await explain_node(
            self.app.db,
            kind,
            node,
            depth=asked.depth,
            project_ids=reach.project_ids,
            now=self.app.clock(),
        )
        return found, reach

    async def get(self, asked: GetRequest, caller: Caller) -> Read:
        """Whole memories. UnknownId if none of them exists."""
        reach = await self._reach(asked, caller)
        found, unknown = await self.app.db.read(lambda tx: scope.visible(tx, asked.ids, reach))
        if not found:
            _known(unknown)
        read = await self._named(
            [found[i] for i in dict.fromkeys(asked.ids) if i in found], unknown
        )
        return replace(read, contradicted=await self._contradicted(list(found), reach))

    async def remember(
        self, asked: Sequence[RememberRequest], caller: Caller, who: CallerKind
    ) -> list[RememberResult]:
        """Keep what is said, and return once it can be found."""
        memories = [await self._memory(one, caller, who) for one in asked]
        kept = await self.app.curator.remember_many(memories)
        await self.app.indexer.settle()
        if len(kept) == 1 and memories[0].source in DELIBERATE_SOURCES:
            candidates = await self.app.judge.candidates(kept[0].id)
            return [replace(kept[0], candidates=candidates)]
        return kept

    async def withdraw(self, asked: WithdrawRequest) -> tuple[int, ...]:
        """Hide what a file does not say any more, and return once it is."""
        gone = await self.app.curator.withdraw(asked.path, frozenset(asked.staying))
        await self.app.indexer.settle()
        return gone

    async def forget(self, asked: ForgetRequest, caller: Caller) -> ForgetResult:
        """Erase memories, or say what would go."""
        if asked.ids:
            reach = await self._reach(asked, caller)
            await self.app.db.read(lambda tx: scope.visible(tx, asked.ids, reach))
        meant = await selection(self.app, asked, caller)
        gone = await self.app.curator.forget(
            meant, dry_run=asked.dry_run, token=asked.token or ""
        )
        if not asked.dry_run:
            await self.app.indexer.settle()
        return gone

    async def pin(self, asked: PinRequest, caller: Caller) -> Summary:
        """Keep a memory on top, or no longer."""
        reach = await self._reach(asked, caller)
        await self.app.db.read(lambda tx: _known(scope.visible(tx, [asked.id], reach)[1]))
        pinned = await self.app.curator.pin(asked.id, pinned=asked.pinned)
        await self.app.indexer.settle()
        return pinned

    async def judge(
        self, asked: JudgeRequest, caller: Caller, who: CallerKind
    ) -> JudgmentResult:
        """Settle what two memories are to each other, or take back what holds between them."""
        if asked.relation is None and not asked.undo:
            raise BadRequest(f"relation: say one of {', '.join(Stance)}; or undo")
        reach = await self._reach(asked, caller)
        ids = [asked.id, asked.other]
        await self.app.db.read(lambda tx: _known(scope.visible(tx, ids, reach)[1]))
        if asked.undo or asked.relation is None:
            done = await self.app.judge.undo(*ids)
        else:
            ruling = NewJudgment(asked.id, asked.other, asked.relation, asked.reason, who)
            done = await self.app.judge.judge(ruling)
        await self.app.indexer.settle()
        return done

    async def _contradicted(
        self, ids: Sequence[int], reach: Reach
    ) -> Mapping[int, tuple[int, ...]]:
        return await self.app.db.read(
            lambda tx: judgments.visible_contradictions(tx, ids, reach.project_ids)
        )

    async def _reach(self, asked: "_Scoped", caller: Caller) -> Reach:
        directory = asked.directory or caller.directory
        # Who names a session means that session, whichever project it belongs to.
        by_session = (
            getattr(asked, "session", None) is not None
            and "project" not in asked.model_fields_set
        )
        return await scope.reach(
            self.app.db,
            directory,
            scope.ALL if by_session else asked.project,
            self.app.overrides,
        )

    def _focus(self, asked: SearchRequest, caller: Caller, now: int) -> tuple[str, ...]:
        """What this call says to weigh up, or its session said within a day; an empty list ends it."""
        if caller.session is None:
            return tuple(asked.focus)
        if "focus" in asked.model_fields_set:
            self.focuses.pop(caller.session, None)
            self.focuses[caller.session] = (tuple(asked.focus), now)
            while len(self.focuses) > _FOCUSES_MAX:
                del self.focuses[next(iter(self.focuses))]
        patterns, since = self.focuses.get(caller.session, ((), now))
        return patterns if now - since < _FOCUS_MS else ()

    async def _question(self, asked: SearchRequest, caller: Caller, reach: Reach) -> Question:
        now = self.app.clock()
        session = (
            None
            if asked.session is None
            else await scope.session(self.app.db, asked.session, caller)
        )
        return Question(
            text=asked.query,
            now=now,
            project_ids=reach.project_ids,
            kinds=tuple(asked.kinds),
            session_id=session.id if session else None,
            source=asked.source,
            since=None if asked.since is None else time_expressions.since(asked.since, now),
            until=None if asked.until is None else time_expressions.until(asked.until, now),
            tags=tuple(asked.tags),
            topic_key=asked.topic_key,
            include_superseded=asked.include_superseded,
            include_turns=asked.include_turns,
            as_of=None
            if asked.as_of is None
            else time_expressions.until(asked.as_of, now, "as_of"),
            k=asked.k,
            offset=asked.offset,
            legs=frozenset(asked.legs) or None,
            profile=asked.profile,
            focus=self._focus(asked, caller, now),
            relevance_gate=None
            if asked.surface is None
            else RelevanceGate(asked.surface.floor, asked.surface.ratio),
            explain=asked.explain,
            embedding=tuple(asked.embedding) if asked.embedding else None,
        )

    async def _wait(self, through: int | None) -> str | None:
        """Wait for an event to be searchable; in words, if that took too long."""
        if through is None:
            return None
        with anyio.move_on_after(self.min_event_s):
            await self.app.distiller.settle(through)
            await self.app.indexer.settle()
            return None
        return f"timed out after {self.min_event_s:g} s; the newest events may be missing"

    async def _memory(
        self, asked: RememberRequest, caller: Caller, who: CallerKind
    ) -> NewMemory:
        now = self.app.clock()
        memory = NewMemory(
            text=asked.text,
            title=asked.title or None,
            kind=asked.kind,
            topic_key=asked.topic_key,
            tags=tuple(asked.tags),
            files=tuple(asked.files),
            session=_session_errands(asked, caller),
            at=None if asked.at is None else time_expressions.since(asked.at, now, "at"),
            expires_at=None
            if asked.expires_in is None
            else now + time_expressions.duration(asked.expires_in, "expires_in"),
            source=asked.source or who,
            tier=Tier(asked.tier),
            origin=None if asked.origin is None else Origin(**asked.origin.model_dump()),
        )
        return await self._placed(memory, asked, caller, who)

    async def _placed(
        self, memory: NewMemory, asked: RememberRequest, caller: Caller, who: CallerKind
    ) -> NewMemory:
        """With the project that it is for: a directory, a name that importers give, or none."""
        directory = asked.directory or caller.directory
        if asked.project.startswith("/"):
            directory = asked.project
        elif asked.project == GLOBAL_PROJECT or (
            asked.project == scope.CURRENT and directory is None
        ):
            return memory
        elif asked.project != scope.CURRENT:
            return await self._in_named(memory, asked.project, who)
        assert directory is not None
        here = await scope.resolve(directory, self.app.overrides)
        return replace(
            memory, project_key=here.key, project_name=here.name, project_reason=here.reason
        )

    async def _in_named(self, memory: NewMemory, name: str, who: CallerKind) -> NewMemory:
        found = await self.app.db.read(lambda tx: store_projects.find_projects(tx, name))
        if found:
            known = found[0]
            return replace(
                memory,
                project_key=known.key,
                project_name=known.name,
                project_reason=known.reason,
            )
        if who == "agent" or name == scope.ALL:
            raise BadRequest(
                f"project: {scope.CURRENT} or {GLOBAL_PROJECT}, or the name of a known one"
            )
        return replace(
            memory,
            project_key=name,
            project_name=name,
            project_reason="somebody named it so with --project",
        )

    async def _named(self, memories: list[Summary], unknown: list[int]) -> Read:
        def names(tx: Connection) -> tuple[dict[int, str], dict[int, str]]:
            sessions = store_projects.sessions(
                tx, {m.session_id for m in memories if m.session_id}
            )
            owners = {p.id: p.name for p in store_projects.projects(tx)}
            return owners, {number: one.title or "" for number, one in sessions.items()}

        owners, titles = await self.app.db.read(names)
        return Read(tuple(memories), tuple(unknown), owners, titles)


_Scoped = (
    SearchRequest
    | TimelineRequest
    | WhyRequest
    | GetRequest
    | ForgetRequest
    | PinRequest
    | JudgeRequest
)


def _between(asked: TimelineRequest, now: int) -> tuple[int, int] | None:
    """The first and the last millisecond of the days asked for; None if a place is asked for."""
    if asked.since is not None or asked.until is not None:
        start = 0 if asked.since is None else time_expressions.since(asked.since, now, "since")
        return start, now if asked.until is None else time_expressions.until(
            asked.until, now, "until"
        )
    if asked.days is None:
        return None
    day = (
        time_expressions.since(asked.at if asked.at is not None else now, now, "at")
        // time_expressions.DAY
    )
    return (day - asked.days + 1) * time_expressions.DAY, (day + 1) * time_expressions.DAY - 1


def _known(unknown: list[int]) -> None:
    if unknown:
        raise UnknownId(f"there is no memory {', '.join(f'#{number}' for number in unknown)}")


def _session_errands(asked: RememberRequest, caller: Caller) -> SessionRef | None:
    if asked.session is not None:
        return SessionRef(asked.client or asked.source or "user", asked.session)
    if caller.session is None or caller.client is None:
        return None
    return SessionRef(caller.client, caller.session, caller.directory)


def _node(asked: int | str) -> tuple[str, str]:
    """(kind, id) of a node as people write it: 12, `#12`, `file:/a/b.py`."""
    text = str(asked).strip()
    if found := _SUMMARY.fullmatch(text):
        return "summary", str(int(found[1] or found[2]))
    if found := _NODE.fullmatch(text):
        return found[1], found[2]
    raise BadRequest("id: a number, or a node such as file:/a/b.py")
