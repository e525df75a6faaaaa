"""A vault with an index, and short ways to write memories into it."""

import itertools

import pytest

from memd.consolidate.curator import Curator
from memd.consolidate.scrub import Eraser, make_redaction_rule
from memd.embeddings.hashing import HashingEmbedder
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.models import Draft, EdgeType, EventKind, Kind, NewEvent, SessionRef
from memd.store import events, links, projects, summaries
from tests.factories import live_summaries


class Vault:
    """The database, its index, and short ways to write."""

    def __init__(self, db, clock):
        self.db, self.clock = db, clock
        self.index = MemoryIndex()
        self.embedder = HashingEmbedder()
        self.indexer = Indexer(db, (self.embedder,), self.index)
        self.space = self.embedder.space.name
        self._uids = itertools.count(1)
        self.project_id = self.project("/a")

    def project(self, key):
        return self.db.write_now(lambda tx: projects.ensure_project(tx, key, key, "", self.clock()))

    def session(self, key="s", project_id=None):
        ref = SessionRef("claude-code", key, "/a")
        return self.db.write_now(
            lambda tx: projects.ensure_session(tx, ref, project_id or self.project_id, self.clock())
        )

    def put(
        self,
        body,
        *,
        title="",
        at=None,
        project_id=None,
        session_id=None,
        episode=None,
        kind=Kind.FACT,
        **more,
    ):
        """Write a captured summary; its id."""
        draft = Draft(
            "slot", kind, title, body, self.clock() if at is None else at, "test", (), **more
        )
        owner = summaries.SummaryOwner(
            project_id or self.project_id, session_id, "claude-code", episode
        )
        uid = f"uid-{next(self._uids)}"
        return self.db.write_now(
            lambda tx: summaries.put_summary(tx, uid, draft, owner, self.clock())
        )[0]

    def event(self, text, session_id=None, kind=EventKind.PROMPT, **payload):
        new = NewEvent(
            SessionRef("claude-code", "s"), f"key-{next(self._uids)}", kind, kind.value, self.clock(), "live",
            {"prompt": text, **payload},
        )  # fmt: skip
        session_id = session_id or self.session()
        return self.db.write_now(lambda tx: events.append_event(tx, new, session_id))[0]

    def link(self, from_, type_, to, **detail):
        edge = links.NewEdge(*from_, type_, *to, "test", self.clock(), detail=detail)
        self.db.write_now(lambda tx: links.add_edges(tx, [edge]))

    def derives(self, summary_id, event_id, quote=""):
        self.link(
            ("summary", str(summary_id)),
            EdgeType.DERIVES_FROM,
            ("event", str(event_id)),
            quote=quote,
        )

    def supersede(self, newer_id, older_id, rule="near-duplicate"):
        return self.db.write_now(
            lambda tx: links.supersede(
                tx,
                newer_id=newer_id,
                older_id=older_id,
                rule=rule,
                cosine=0.97,
                guard="same",
                at=self.clock(),
            )
        )

    def get(self, summary_id):
        return self.db.read_now(lambda tx: summaries.get_summary(tx, summary_id))

    def edges(self, summary_id):
        return self.db.read_now(lambda tx: links.edges_at(tx, "summary", str(summary_id)))

    def supersessions(self, summary_id):
        return self.db.read_now(lambda tx: links.supersessions_of(tx, summary_id))

    def live(self, project_id=None):
        found = self.db.read_now(lambda tx: live_summaries(tx, project_id or self.project_id))
        return sorted(summary.id for summary in found)


def make_curator(vault, on_written, redact=str, task_days=0):
    eraser = Eraser(vault.db, vault.clock, on_written)
    secrets = make_redaction_rule(redact)
    return Curator(vault.db, redact, vault.clock, on_written, eraser, secrets, task_days)


@pytest.fixture
def vault(db, clock):
    return Vault(db, clock)
