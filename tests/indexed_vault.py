"""A vault with memories and a real index, for tests that search."""

from dataclasses import replace

import numpy as np

from memd.config import Config
from memd.embeddings.hashing import HashingEmbedder
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.models import Draft, Kind, SessionRef
from memd.recall import Question
from memd.recall.recaller import Recaller
from memd.store import projects, summaries

NOW = 1_800_000_000_000
DAY = 86_400_000


class IndexedVault:
    """A vault to put memories in and search."""

    def __init__(self, db, own_profiles=None, learned=None, **recall):
        self.db = db
        self.learned = learned
        self.index = MemoryIndex()
        embedders = [HashingEmbedder()]
        self.indexer = Indexer(db, embedders, self.index)
        config = Config().recall.model_copy(update=recall)
        self.recaller = Recaller(
            db, embedders, self.index, config, own_profiles or {}, learned=learned
        )

    def put(
        self,
        title,
        body="",
        *,
        days_ago=0.0,
        kind=Kind.NOTE,
        session=None,
        project="/a",
        source="test",
        episode=None,
        **more,
    ):
        """Remember something that happened some days ago; its id."""
        at = NOW - int(days_ago * DAY)
        draft = Draft("turn", kind, title, body, at, "test", (), **more)

        def write(tx):
            project_id = projects.ensure_project(tx, project, project.rpartition("/")[2], "", 1)
            session_id = None
            if session:
                session_id = projects.ensure_session(
                    tx, SessionRef("test", session), project_id, at
                )
            owner = summaries.SummaryOwner(project_id, session_id, source, episode)
            count = tx.execute("SELECT count(*) FROM summaries").get
            return summaries.put_summary(tx, f"u{count}", draft, owner, 1)[0]

        return self.db.write_now(write)

    async def learn(self, *ids):
        """Give all memories their vectors in the learned space, or only these; then it leads not yet."""
        if not self.index.loaded:
            await self.indexer.load()
        await self.indexer.settle()
        space, columns = self.learned.current, self.index.columns
        self.index.adopt_learned_space(space)
        rows = [columns.rows_of(number) for number in ids] or [np.flatnonzero(columns.live)]
        rows = np.concatenate(rows)
        known = self.db.read_now(
            lambda tx: summaries.summaries_by_ids(tx, set(columns.summary_id[rows].tolist()))
        )
        owners = [known[number] for number in columns.summary_id[rows].tolist()]
        vectors = await self.learned.documents([f"{one.title}\n{one.body}" for one in owners])
        self.index.fill(space.name, columns.passage_id[rows].tolist(), vectors.astype("<f2"))
        await self.recaller.embed_unrelated()

    def asked(self, text, **more):
        """The question."""
        return replace(Question(text, NOW), **more)

    async def ask(self, text, **more):
        """The answer, everything indexed."""
        if not self.index.loaded:
            await self.indexer.load()
        await self.indexer.settle()
        return await self.recaller.search(self.asked(text, **more))

    async def ids(self, text, **more):
        """The ids of the hits, best first."""
        return [hit.summary.id for hit in (await self.ask(text, **more)).hits]
