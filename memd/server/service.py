"""The use cases behind the MCP tools and the control calls.

They take checked requests and return the values of the packages below, which mcp_format.py writes for agents
and jsonrpc.py for programs.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import normpath
from typing import TYPE_CHECKING, Literal, Protocol

import anyio
import anyio.to_thread

from memd.belief.notes import Unproved
from memd.belief.rejections import explain_refusal
from memd.capture.ingest import Ingestor
from memd.capture.project import ProjectOverrides
from memd.config import AgentsConfig
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.curator import Curator, MemoryEdit
from memd.consolidate.forget import ForgetResult, ForgetSelection
from memd.consolidate.judgments import JudgmentResult, JudgmentService, NewJudgment, OpenQuestions
from memd.consolidate.remember import NewMemory, RememberResult
from memd.consolidate.retention import Retention
from memd.consolidate.wanted_words import parse_wanted_words
from memd.distill.distiller import Distiller
from memd.distill.proving import uphold
from memd.distill.redistill import Redistiller
from memd.embeddings import ChatModel
from memd.errors import BadRequest, SelectionChanged, UnknownId
from memd.index.backfill import VectorMaintenance
from memd.index.indexer import Indexer
from memd.injection.ask import Asker
from memd.injection.guard import RuleGuard
from memd.injection.injector import Injector
from memd.injection.outcomes import OutcomeJudge
from memd.injection.since import LaterReader
from memd.models import Finding, Stance, Summary
from memd.recall import Answer, Question, Timeline, Why
from memd.recall.period import read_timeline
from memd.recall.provenance import explain_node
from memd.recall.recaller import Recaller
from memd.server import requests
from memd.server.memory_maker import MemoryMaker, to_ms
from memd.server.said import SaidAside, look_beside
from memd.server.scope import (
    ALL,
    AgentLimits,
    Caller,
    ForgetTokens,
    ProjectScope,
    ScopeResolver,
    require_known,
    visible_memories,
)
from memd.sharing.workers import SyncWorker
from memd.store import judgments, lists, projects, queries, summaries
from memd.store.database import Connection, Database
from memd.store.erasure import ErasureBounds
from memd.store.filter import Filter
from memd.store.lists import SessionRow
from memd.time_expressions import format_time, parse_end, parse_start

if TYPE_CHECKING:
    from memd.sharing.workers import TeamWorker

CallerKind = Literal["agent", "user"]
"""An agent calls over MCP; a user, or the user's program, makes a control call."""
MIN_EVENT_S = 2.0
"""Seconds that a search waits for the event that it must include; the answer says if they were too few."""
_FOCUS_MS = 24 * 3_600_000
"""How long the focus of a session holds, in milliseconds."""
_PASSED_ON = {
    "source", "topic_key", "keywords", "include_superseded", "include_turns", "k", "offset", "profile",
    "all_words", "min_score", "show_all", "explain",
}  # fmt: skip
"""What of a search is asked as it is requested."""
_FOCUSES_MAX = 256
"""Sessions whose focus is held in memory."""


class VaultExaminer(Protocol):
    """Checks the vault as a whole; the daemon has it."""

    async def examine(self) -> list[Finding]:
        """Return what is right and what is wrong."""

    async def mend(self) -> list[str]:
        """Repair derived data; return what was repaired, in words."""


@dataclass(frozen=True, slots=True)
class App:
    """The parts of the daemon that the server needs."""

    db: Database
    ingestor: Ingestor
    recaller: Recaller
    curator: Curator
    indexer: Indexer
    distiller: Distiller
    consolidator: Consolidator
    status: Callable[[], Awaitable[dict[str, object]]]
    shutdown: Callable[[], None]
    """Asks the daemon to stop; returns at once."""
    clock: Callable[[], int]
    overrides: ProjectOverrides = field(default_factory=lambda: ProjectOverrides(None, "/"))
    """Directories that the user has given to a project in projects.toml."""
    agents: AgentsConfig = field(default_factory=AgentsConfig)
    injector: Injector = field(kw_only=True)
    asker: Asker = field(kw_only=True)
    guard: RuleGuard = field(kw_only=True)
    outcomes: OutcomeJudge = field(kw_only=True)
    vector_maintenance: VectorMaintenance = field(kw_only=True)
    retention: Retention = field(kw_only=True)
    judge: JudgmentService = field(kw_only=True)
    checkup: VaultExaminer = field(kw_only=True)
    redistiller: Redistiller = field(kw_only=True)
    backups: Callable[[], Sequence[object]] = tuple
    """Lists the backups of the vault; reads a directory."""
    sync: SyncWorker = field(kw_only=True)
    writer: ChatModel | None = None
    """What may read past sessions if the user asks for it; None unless the settings name one."""
    team: "TeamWorker | None" = None
    """None unless the settings name a server."""
    look_at_folders: Callable[[], None] = lambda: None
    """Has the watched folders looked at soon."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """An answer, the projects that were searched, and why the newest events may be missing."""

    answer: Answer
    scope: ProjectScope
    waited: str | None = None
    said: tuple[SaidAside, ...] = ()
    """What the user said of it, if no memory answers it."""
    elsewhere: int = 0
    """Hits in other projects, counted if there is none here; `requests.K_MAX` stands for as many or more."""

    def list_notes(self, all_projects: str) -> tuple[str, ...]:
        """Return what to know of the projects searched; `all_projects` is how this caller asks for every one."""
        notes = [self.scope.note] if self.scope.note else []
        if self.elsewhere:
            more = " or more" if self.elsewhere >= requests.K_MAX else ""
            notes.append(f"{self.elsewhere}{more} in other projects: {all_projects}")
        return tuple(notes)


@dataclass(frozen=True, slots=True)
class WholeMemories:
    """Memories in the order asked for, the ids that do not exist, and names by id."""

    memories: tuple[Summary, ...]
    unknown: tuple[int, ...]
    project_names: Mapping[int, str]
    session_titles: Mapping[int, str]
    contradicted: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Memory → the memories that contradict it."""


class MemoryService:
    """Runs one use case a method. A search waits `min_event_s` seconds at most for an event."""

    def __init__(self, app: App, min_event_s: float = MIN_EVENT_S) -> None:
        self.app = app
        self.scopes = ScopeResolver(app.db, app.overrides)
        self._limits = AgentLimits(self.scopes, app.agents)
        self._maker = MemoryMaker(self.scopes, self._limits, app.clock)
        self._forget_tokens = ForgetTokens(app.clock)
        self._min_event_s = min_event_s
        self.later = LaterReader()
        self._focuses: dict[str, tuple[tuple[str, ...], int]] = {}
        """Session → its focus, and since when. Held in memory only: a focus is no memory."""

    async def search(self, request: requests.SearchRequest, caller: Caller) -> SearchOutcome:
        """Answer a question; BadRequest if there is none in it."""
        is_named = (
            request.topic_key or request.embedding or request.browse or request.keywords.strip()
        )
        if not (request.query.strip() or is_named):
            raise BadRequest("query: say what to look for")
        scope = await self._find_scope(request, caller)
        now = self.app.clock()
        question = Question(
            **{name: getattr(request, name) for name in _PASSED_ON},
            text=request.query,
            now=now,
            project_ids=scope.project_ids,
            kinds=tuple(request.kinds),
            session_id=await self._find_session_id(request.session, caller),
            since=to_ms(parse_start, request.since, now),
            until=to_ms(parse_end, request.until, now),
            tags=tuple(request.tags),
            as_of=to_ms(parse_end, request.as_of, now, "as_of"),
            legs=frozenset(request.legs) or None,
            focus=self._choose_focus(request, caller, now),
            boost=tuple(request.boost.items()),
            browse=request.browse and not request.query.strip(),
            asking_session=caller.session,
            embedding=tuple(request.embedding) if request.embedding else None,
        )
        waited = await self._wait_for_event(request.min_event)
        answer = await self.app.recaller.search(question)
        elsewhere = 0
        if not answer.hits and scope.name is not None:
            everywhere = replace(
                question,
                project_ids=None,
                k=requests.K_MAX,
                offset=0,
                explain=False,
                count_use=False,
            )
            elsewhere = len((await self.app.recaller.search(everywhere)).hits)
        answer, said = await look_beside(self.app.db, self.later, question, answer, caller.session)
        return SearchOutcome(answer, scope, waited, said, elsewhere)

    async def timeline(
        self, request: requests.TimelineRequest, caller: Caller
    ) -> tuple[Timeline, ProjectScope]:
        """The neighbourhood of a memory, a time or a session; of now if none is given."""
        span = requests.read_span(request, now := self.app.clock())
        if request.id is not None and (span or request.at is not None):
            raise BadRequest("id: give either a memory or a time, not both")
        scope = await self._find_scope(request, caller)
        wanted = Filter(
            project_ids=scope.project_ids,
            session_id=await self._find_session_id(request.session, caller),
            kinds=tuple(request.kinds),
            source=request.source,
            include_superseded=True,
        )
        shown = await read_timeline(
            self.app.db,
            around=request.id,
            at=None if span else to_ms(parse_start, request.at, now, "at"),
            wanted=wanted,
            before=request.before,
            after=request.after,
            between=span,
            now=now,
        )
        return shown, scope

    async def latest_sessions(
        self, request: requests.TimelineRequest, caller: Caller
    ) -> tuple[list[SessionRow], ProjectScope]:
        """The sessions that began last, of the request's project or of all."""
        scope, count = await self._find_scope(request, caller), request.sessions or 1

        def read(tx: Connection) -> list[SessionRow]:
            return lists.newest_sessions(tx, scope.list_ids(tx), lists.NEWEST, count)

        return await self.app.db.read(read), scope

    async def why(self, request: requests.WhyRequest, caller: Caller) -> Why:
        """Explain a memory, or another node of the graph."""
        kind, node = requests.parse_node(request.id)
        scope = await self._find_scope(request, caller)
        directory = request.directory or caller.directory
        if kind == "name":
            number = await self.app.db.read(lambda tx: summaries.id_by_name(tx, node))
            if number is None:
                raise UnknownId(f"no memory alone is called {node} here")
            kind, node = "summary", str(number)
        if kind == "file" and directory and node.startswith(("./", "../")):
            node = normpath(f"{directory}/{node}")  # noqa: ASYNC240  # reads no disk
        db, now = self.app.db, self.app.clock()
        roots = await self.scopes.list_checkouts(directory) if kind == "file" else ()
        known, depth = scope.project_ids, request.depth
        why = await explain_node(
            db, kind, node, depth=depth, project_ids=known, now=now, roots=roots
        )
        if (one := why.summary) is not None:
            why = replace(why, summary=(await db.read(lambda tx: uphold(tx, [one])))[0])
        return await self.later.doubt(db, why, now, caller.session or "")

    async def get(self, request: requests.GetRequest, caller: Caller) -> WholeMemories:
        """Whole memories. UnknownId if none of them exists."""
        scope = await self._find_scope(request, caller)

        def read(tx: Connection) -> WholeMemories:
            found, unknown = visible_memories(tx, request.ids, scope)
            if not found:
                require_known(unknown)
            memories = uphold(
                tx, (found[one] for one in dict.fromkeys(request.ids) if one in found)
            )
            sessions = projects.sessions(tx, {m.session_id for m in memories if m.session_id})
            return WholeMemories(
                tuple(memories),
                tuple(unknown),
                {project.id: project.name for project in projects.projects(tx)},
                {number: session.title or "" for number, session in sessions.items()},
                judgments.visible_contradictions(tx, list(found), scope.project_ids),
            )

        return await self.app.db.read(read)

    def speaker_of(self, caller: Caller) -> CallerKind:
        """Return the speaker of a control call: the user, unless it says that an agent makes it."""
        is_agent = caller.speaker == "agent" and not self.app.agents.user_memories
        return "agent" if is_agent else "user"

    async def remember(
        self,
        memories: Sequence[requests.RememberRequest],
        caller: Caller,
        by: CallerKind | None = None,
    ) -> list[RememberResult]:
        """Store memories, and return once a search finds them. `by`, here and below: None asks the caller."""
        by = by or self.speaker_of(caller)
        new = [await self._maker.make(request, caller, by) for request in memories]
        unproved: Unproved | None = None
        if by == "agent" and len(new) == 1:
            # The words that prove a note may be those that its session was told a moment ago.
            await self.app.injector.flush()
            new[0], unproved = await self._maker.prove(new[0])
        stored = await self.app.curator.remember_many(new)
        if len(stored) > 1 or not (new and new[0].is_deliberate):
            await self.app.indexer.settle()
            return stored
        if (rejected := stored[0].rejected) is not None:
            when = format_time(rejected.rejected_at or 0)[:10]
            raise BadRequest(explain_refusal(rejected, when))
        await self.app.indexer.settle()
        one = replace(stored[0], proof=new[0].proof, refused=unproved, line=new[0].line)
        return [replace(one, candidates=await self.app.judge.candidates(one.id))]

    async def take_notes(
        self, notes: Sequence[requests.RememberRequest], caller: Caller, by: CallerKind
    ) -> list[RememberResult]:
        """Store what a client's own notes or a writer of past sessions say, each proved by the record if it can be."""
        ready: list[tuple[NewMemory, Unproved | None]] = []
        for request in notes:
            memory = await self._maker.make(request, caller, by)
            if memory.claim is None and request.speaker != "tool":
                ready.append((await self._maker.prove_file(memory), None))
            else:
                ready.append(await self._maker.prove(memory))
        stored = await self.app.curator.remember_many([memory for memory, _ in ready])
        return [
            replace(result, proof=memory.proof, refused=refused)
            for result, (memory, refused) in zip(stored, ready, strict=True)
        ]

    async def forget(
        self, request: requests.ForgetRequest, caller: Caller, by: CallerKind | None = None
    ) -> ForgetResult:
        """Erase memories, or say which would go. An agent erases only what its dry run has shown."""
        by = by or self.speaker_of(caller)
        if by == "agent":
            forgotten = await self._forget_for_agent(request, caller)
        else:
            selection = await self.select_memories(request, caller)
            forgotten = await self.app.curator.forget(
                selection, dry_run=request.dry_run, token=request.token or ""
            )
        if not forgotten.is_dry_run:
            await self.app.indexer.settle()
        return forgotten

    async def _forget_for_agent(
        self, request: requests.ForgetRequest, caller: Caller
    ) -> ForgetResult:
        """Forget with the token of a dry run; if the selection has changed, another dry run."""
        plan = "" if request.dry_run else self._forget_tokens.redeem(request.token, caller)
        selection = await self.select_memories(request, caller)
        if not selection.ids:
            own = await self._limits.find_project_to_forget(request.project, caller)
            if own is not None:
                selection = replace(selection, bounds=replace(selection.bounds, project_id=own))
        selection = replace(selection, spares_prompts=not self.app.agents.user_memories)
        shown = await self.app.curator.forget(selection, dry_run=True)
        await self._limits.require_erasable(shown.ids, caller)
        refused = ""
        if not request.dry_run:
            try:
                return await self.app.curator.forget(selection, dry_run=False, token=plan)
            except SelectionChanged as error:
                refused = error.message
                shown = await self.app.curator.forget(selection, dry_run=True)
                await self._limits.require_erasable(shown.ids, caller)
        return replace(shown, token=self._forget_tokens.issue(caller, shown.token), refused=refused)

    async def select_memories(
        self, request: requests.ForgetRequest, caller: Caller
    ) -> ForgetSelection:
        """Select what to forget. BadRequest if that is nothing, everything, or two things at once."""
        criteria = ("query", "session", "since", "until")
        given = [name for name in criteria if getattr(request, name) is not None]
        if request.ids:
            scope = await self._find_scope(request, caller)
            await self.app.db.read(lambda tx: visible_memories(tx, request.ids, scope))
            if given:
                raise BadRequest(f"{given[0]}: either ids, or what they have in common")
            return ForgetSelection(ids=tuple(request.ids))
        has_project = "project" in request.model_fields_set and request.project != ALL
        if not given and not has_project:
            raise BadRequest("say what to forget: ids, a query, a session, a project or a time")
        words = parse_wanted_words(request.query or "")
        if request.query is not None and not words.terms:
            raise BadRequest("query: empty; say what stands in the memories that shall go")
        now = self.app.clock()
        bounds = ErasureBounds(
            await self._find_project_to_forget(request, caller),
            await self._find_session_id(request.session, caller),
            to_ms(parse_start, request.since, now),
            to_ms(parse_end, request.until, now),
        )
        return ForgetSelection(words=words, bounds=bounds)

    async def pin(
        self, request: requests.PinRequest, caller: Caller, by: CallerKind | None = None
    ) -> Summary:
        """Pin a memory, or unpin it."""
        by = by or self.speaker_of(caller)
        await self._require_visible(request, caller, [request.id])
        if by == "agent":
            await self._limits.require_own_memories([request.id], caller, f"memd pin {request.id}")
        voice = self._limits.authority_of(by)
        pinned = await self.app.curator.pin(request.id, request.pinned, voice)
        await self.app.indexer.settle()
        return pinned

    async def edit(self, request: requests.EditRequest, caller: Caller) -> int:
        """Let a memory say something else by the user's hand; the id of its new version."""
        if self.speaker_of(caller) == "agent":
            raise BadRequest(
                "an edit is the user's word, so only the user makes it; an agent remembers the new value"
                " (mem_remember or `memd remember`) and says that it supersedes the old one"
                " (mem_judge or `memd judge`)"
            )
        await self._require_visible(request, caller, [request.id])
        edit = MemoryEdit(request.id, request.title or "", request.text or "", request.reason)
        edited = await self.app.curator.edit(edit)
        await self.app.indexer.settle()
        return edited

    async def judge(
        self, request: requests.JudgeRequest, caller: Caller, by: CallerKind | None = None
    ) -> JudgmentResult:
        """Judge how two memories relate, or undo the judgment that holds between them."""
        by = by or self.speaker_of(caller)
        if request.relation is None and not request.undo:
            raise BadRequest(f"relation: say one of {', '.join(Stance)}; or undo")
        pair = request.id, request.other
        await self._require_visible(request, caller, list(pair))
        if by == "agent":
            command = f"memd judge {request.id} {request.relation or '--undo'} {request.other}"
            await self._limits.require_own_memories(pair, caller, command)
        voice = self._limits.authority_of(by)
        if request.undo or request.relation is None:
            judged = await self.app.judge.undo(*pair, voice)
        else:
            said = NewJudgment(*pair, request.relation, request.reason, by, voice)
            judged = await self.app.judge.judge(said)
        await self.app.indexer.settle()
        return judged

    async def open_questions(
        self, request: requests.OpenQuestionsRequest, caller: Caller
    ) -> OpenQuestions:
        """The latest pairs of visible memories that contradict each other, for the user to judge."""
        scope = await self._find_scope(request, caller)

        def read(tx: Connection) -> OpenQuestions:
            pairs = judgments.open_contradictions(tx, request.limit, scope.project_ids)
            found = summaries.summaries_by_ids(tx, list({one for pair in pairs for one in pair}))
            return OpenQuestions(
                tuple((found[one], found[other]) for one, other in pairs),
                judgments.count_open_contradictions(tx, scope.project_ids),
            )

        return await self.app.db.read(read)

    async def _find_scope(self, request: requests.ScopedRequest, caller: Caller) -> ProjectScope:
        # A session that is named is meant, whichever project it belongs to.
        has_session = getattr(request, "session", None) is not None
        is_project_given = "project" in request.model_fields_set
        project = ALL if has_session and not is_project_given else request.project
        directory = request.directory or caller.directory
        return await self.scopes.find_scope(directory, project, is_agents=caller.speaker == "agent")

    async def _find_session_id(self, name: str | None, caller: Caller) -> int | None:
        return None if name is None else (await self.scopes.find_session(name, caller)).id

    async def _find_project_to_forget(
        self, request: requests.ForgetRequest, caller: Caller
    ) -> int | None:
        """Find the one project, without `global`; None for every project."""
        is_given = "project" in request.model_fields_set
        if request.project == ALL or (request.session is not None and not is_given):
            return None
        directory = request.directory or caller.directory
        here, _ = await self.scopes.find_identity(request.project, directory)
        found = await self.app.db.read(lambda tx: projects.project_by_key(tx, here.key))
        if found is None:
            raise BadRequest(
                f"project: nothing is known of {here.name}; say another, or {ALL} for every one"
            )
        return found.id

    async def _require_visible(
        self, request: requests.ScopedRequest, caller: Caller, ids: list[int]
    ) -> None:
        scope = await self._find_scope(request, caller)
        await self.app.db.read(lambda tx: require_known(visible_memories(tx, ids, scope)[1]))

    def _choose_focus(
        self, request: requests.SearchRequest, caller: Caller, now: int
    ) -> tuple[str, ...]:
        """The focus of this request, or else of its session; an empty list ends that of the session."""
        if caller.session is None:
            return tuple(request.focus)
        if "focus" in request.model_fields_set:
            self._focuses.pop(caller.session, None)
            self._focuses[caller.session] = (tuple(request.focus), now)
            while len(self._focuses) > _FOCUSES_MAX:
                del self._focuses[next(iter(self._focuses))]
        focus, since = self._focuses.get(caller.session, ((), now))
        return focus if now - since < _FOCUS_MS else ()

    async def find_last_event(self) -> int:
        """The number of the last event that memd has stored: a search that waits for it has all of what was said."""
        return await self.app.db.read_inline(lambda tx: queries.last_id(tx, "events"))

    async def _wait_for_event(self, through: int | None) -> str | None:
        """Wait until an event is searchable; return a message if that takes too long."""
        if through is None:
            return None
        with anyio.move_on_after(self._min_event_s):
            await self.app.distiller.settle(through)
            await self.app.indexer.settle()
            return None
        return f"timed out after {self._min_event_s:g} s; the newest events may be missing"
