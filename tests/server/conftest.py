"""A real listener on a real socket over a real vault, with fakes for search, injection and the slow workers."""

import contextlib
import json
import socket
from dataclasses import dataclass, field, replace

import anyio
import pytest

from memd.capture.ingest import Ingestor
from memd.capture.redact import redact
from memd.config import CaptureConfig, InjectConfig, NotesConfig
from memd.consolidate.curator import Curator
from memd.consolidate.judgments import JudgmentService
from memd.consolidate.scrub import Eraser, make_redaction_rule
from memd.index.memory_index import MemoryIndex
from memd.injection.ask import Asker
from memd.injection.budget import SessionBudget
from memd.injection.guard import RuleGuard
from memd.injection.injector import Told
from memd.injection.moments import InjectedContext
from memd.injection.outcomes import OutcomeJudge
from memd.models import Draft, EdgeType, Finding, Kind, Source
from memd.recall import Answer, Hit, ScorePart
from memd.server import connection
from memd.server.connection import ConnectionLimits
from memd.server.listener import CONNECTIONS_MAX, Listener
from memd.server.service import MIN_EVENT_S, App, MemoryService
from memd.store import links, projects, summaries
from memd.store.links import NewEdge
from memd.store.usage import Injection

connection.DROPPED_S = 0.05


@dataclass
class FakeRecaller:
    """Finds summaries by a word in their title; waits at `gate` if there is one."""

    db: object
    gate: anyio.Event | None = None
    fails_with: BaseException | None = None
    asked: list = field(default_factory=list)
    cancelled: int = 0
    sources: frozenset[str] = frozenset()

    async def search(self, question):
        self.asked.append(question)
        if self.fails_with is not None:
            raise self.fails_with
        if self.gate is not None and "slow" in question.text:
            try:
                await self.gate.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise
        found = await self.db.read(lambda tx: find_summaries(tx, question.project_ids))
        words = question.text.lower().split()
        hits = [one for one in found if any(word in one.title.lower() for word in words)]
        return Answer(
            hits=tuple(make_hit(one, rank) for rank, one in enumerate(hits[: question.k or 5], 1)),
            profile="memd",
            space="hashing/1/768",
            took_ms=1.25,
            candidates=len(hits),
        )


def find_summaries(tx, project_ids):
    found = [summaries.get_summary(tx, number) for number in range(1, 50)]
    return [one for one in found if one and (project_ids is None or one.project_id in project_ids)]


def make_hit(one, rank):
    parts = (ScorePart("lexical", 1 / (60 + rank)), ScorePart("recency", 0.01))
    return Hit(
        one, "demo", "a session", one.body, sum(p.value for p in parts), parts, ("lexical",),
        lexical_rank=rank, vector_rank=rank + 1, cosine=0.5, recency=0.9,
    )  # fmt: skip


class RecordingCurator(Curator):
    """The real curator, which also records the memories it is given."""

    def __init__(self, db, clock):
        eraser, secrets = Eraser(db, clock, lambda: None), make_redaction_rule(redact)
        super().__init__(db, redact, clock, lambda: None, eraser, secrets)
        self.memories = []

    async def remember_many(self, memories):
        self.memories += memories
        return await super().remember_many(memories)


@dataclass
class FakeWorkers:
    """All background workers in one. `stuck` makes it never settle."""

    stuck: bool = False
    settled: list = field(default_factory=list)

    async def settle(self, through=None):
        self.settled.append(through)
        if self.stuck:
            await anyio.sleep_forever()

    async def reindex(self):
        return 7

    async def redistil(self):
        return {"created": 1}

    async def reembed(self):
        return {"space": "a/b", "missing": 3}

    async def vacuum(self, *, dry_run):
        return {"dropped": [], "is_dry_run": dry_run}

    async def preview(self):
        return {"compacted": 2}

    async def examine(self):
        return [Finding("books", "ok", "fake")]

    async def mend(self):
        return ["fake"]

    async def apply(self):
        return {"compacted": 1}

    async def tick(self):
        return {"superseded": 1}

    async def preview_tick(self):
        return {"superseded": 2}

    async def undo(self, what, *, dry_run):
        return {"run": what, "is_dry_run": dry_run}

    async def list_runs(self, limit):
        return [{"id": 1}][:limit]


@dataclass
class FakeInjector:
    """Injects `text`, and records the moments."""

    budget: SessionBudget
    text: str | None = None
    moments: list = field(default_factory=list)

    def prepare(self, moment):
        return moment

    async def tell(self, moment, preparation, *, is_repeated):
        if is_repeated or preparation is None:
            return Told()
        assert moment == replace(preparation, event_id=moment.event_id)
        self.moments.append(moment)
        return Told(((moment, InjectedContext("fake", self.text), 1),))

    async def preview(self, moment, *, explain):  # noqa: ARG002  # as Injector's
        self.moments.append(moment)
        return InjectedContext("fake", self.text, "demo")

    async def list_injections(self, session_id):
        return [Injection(1, session_id, "note", "a title", "prompt", 1, "fake")]

    async def list_texts(self, session_id):  # noqa: ARG002  # as Injector's
        return []

    async def list_untold(self, session_id):  # noqa: ARG002  # as Injector's
        return []

    async def flush(self):
        pass

    def note_told(self, moment, text):
        pass


class LocalServer:
    """An App with its vault; `open()` serves it on a socket."""

    def __init__(self, db, clock, tmp_path):
        self.db = db
        self.clock = clock
        self.path = str(tmp_path / "run" / "memd.sock")
        self.recaller = FakeRecaller(db)
        self.curator = RecordingCurator(db, clock)
        self.worker = FakeWorkers()
        self.injector = FakeInjector(SessionBudget(db, InjectConfig()))
        self.shutdowns = []
        guard = RuleGuard(db, self.injector, clock, str(tmp_path / "guard.sock"))
        ingestor = Ingestor(
            db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None, writer_dirs=("/w",)
        )
        self.app = App(
            db=db, ingestor=ingestor, recaller=self.recaller, curator=self.curator, indexer=self.worker,
            distiller=self.worker, consolidator=self.worker, status=self._status,
            shutdown=lambda: self.shutdowns.append(True), clock=clock, injector=self.injector,
            asker=Asker(db, NotesConfig(), clock), guard=guard, outcomes=OutcomeJudge(db, clock), vector_maintenance=self.worker, retention=self.worker, checkup=self.worker,
            redistiller=self.worker, sync=self.worker,
            judge=JudgmentService(db, redact, clock, lambda: None, MemoryIndex(), "hashing"),
        )  # fmt: skip
        self.listener = None

    async def _status(self):
        return {"healthy": True}

    @contextlib.asynccontextmanager
    async def open(self, *, connections=CONNECTIONS_MAX, min_event_s=MIN_EVENT_S, **limits):
        listener = Listener(
            MemoryService(self.app, min_event_s), self.path, clock=self.clock,
            limits=ConnectionLimits(**limits), connections=connections,
        )  # fmt: skip
        self.listener = listener
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.run)
            await listener.listening.wait()
            yield self
            tasks.cancel_scope.cancel()

    def remember(self, title, body="a body", *, project="global", at=None, kind=Kind.NOTE):
        """A summary in the vault; its number."""

        def work(tx):
            owner = summaries.SummaryOwner(
                projects.ensure_project(tx, project, project, "said so", 1), None, "agent"
            )
            draft = Draft(
                "turn", kind, title, body, at or self.clock(), "turn", (Source(1, "said"),)
            )
            number, _ = summaries.put_summary(tx, f"{project}/{title}", draft, owner, self.clock())
            links.add_edges(
                tx,
                [NewEdge("summary", str(number), EdgeType.REFERENCES, "file", "/a.py", "turn", 1)],
            )
            return number

        return self.db.write_now(work)


@pytest.fixture
def server(db, clock, tmp_path):
    return LocalServer(db, clock, tmp_path)


class RawClient:
    """One connection that sends any bytes: a line, or half of one."""

    def __init__(self, stream):
        self.stream = stream
        self._rest = b""

    async def send(self, data):
        await self.stream.send(
            data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n"
        )

    async def call(self, method, params=None, number=1):
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        return await self.answer()

    async def answer(self):
        """The next answer; None at the end."""
        line = await self.line()
        return None if line is None else json.loads(line)

    async def line(self):
        """The bytes of the next answer; None at the end."""
        with anyio.fail_after(60):
            while b"\n" not in self._rest:
                try:
                    self._rest += await self.stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return None
            line, _, self._rest = self._rest.partition(b"\n")
            return line

    async def half_close(self):
        await self.stream.send_eof()

    async def initialize(self, version="2025-11-25"):
        info = {"name": "t", "version": "1"}
        reply = await self.call(
            "initialize",
            {"protocolVersion": version, "capabilities": {}, "clientInfo": info},
            "init",
        )
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return reply

    async def tool(self, name, arguments=None, number=1):
        """The result of a tool call."""
        reply = await self.call("tools/call", {"name": name, "arguments": arguments or {}}, number)
        return reply["result"]


@pytest.fixture
def connect(server):
    @contextlib.asynccontextmanager
    async def connected(preface=None):
        async with await anyio.connect_unix(server.path) as stream:
            client = RawClient(stream)
            if preface is not None:
                await client.send({"memd": 1, **preface})
            yield client

    return connected


@pytest.fixture
def agent(server, connect):
    """A client that has introduced itself, of a server that listens as long."""

    @contextlib.asynccontextmanager
    async def introduced(preface=None):
        async with server.open(), connect(preface) as client:
            await client.initialize()
            yield client

    return introduced


@pytest.fixture
def raw_socket(server):
    opened = []

    def connected():
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(server.path)
        opened.append(sock)
        return sock

    yield connected
    for sock in opened:
        sock.close()


@pytest.fixture
def eventually():
    """Wait for a condition that another task brings about."""

    async def waited(condition):
        with anyio.fail_after(60):
            while not condition():  # noqa: ASYNC110  # the condition has no event
                await anyio.sleep(0.005)

    return waited


@pytest.fixture
def say(server, connect):
    """Make one control call; its result, or the error's message."""

    async def said(method, **params):
        async with server.open(), connect() as client:
            reply = await client.call(f"memd/{method}", params)
            return reply["result"] if "result" in reply else reply["error"]["message"]

    return said
