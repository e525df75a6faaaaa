"""The doer of the index: learns from the vault what changed, and puts it into tables and memory.

It works in batches: read what is pending and the summaries that it is about, embed their passages
outside any transaction, write tables and vectors and take the changes off the list in one, then bring
the index up to date. A crash before the commit repeats a batch, a crash after it costs nothing, since
the index is loaded from the tables. Not here: which changes there are (triggers in the store).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memd.config import IndexConfig
from memd.embeddings.base import Embedder, LocalEmbedder
from memd.errors import EngineFailed
from memd.index import backfill
from memd.index.chunking import embedded, split_into_passages
from memd.index.entities import NamedEntity, entities_of_summary
from memd.index.malloc import trim_heap
from memd.index.memory_index import IndexUpdate, MemoryIndex
from memd.index.snapshot import IndexStorage
from memd.models import Space, Summary
from memd.store import fulltext, links, turns
from memd.store import summaries as store_summaries
from memd.store.database import Connection, Database
from memd.store.types import NewPassage
from memd.text import clear_word_caches, digest
from memd.wakeup import AutoResetEvent

_LOOK_S = 20.0
"""How long to sleep when nobody rings: another process may have written."""

_QUIET_S = 5.0
"""After so long without work, memory is given back."""
_MANY_BATCHES = 10
_REST = 0.5
"""Of the time that it took to embed some: who searches meanwhile shares the interpreter with us."""

HalfVectors = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class ChangedSummaries:
    """A batch of changes, and what became of the summaries."""

    changes: Sequence[tuple[int, int]]
    """(seq, summary id), oldest first."""
    summaries: Mapping[int, Summary]
    """Those that are still there."""
    waiting: int
    """How many changes there were, these included."""


@dataclass(frozen=True, slots=True)
class IndexingPlan:
    """What to write for a batch."""

    work: ChangedSummaries
    rewritten: Mapping[int, Sequence[NewPassage]]
    """Summary id → its new passages; a summary that is not here keeps those it has."""
    digests: Mapping[int, int]
    texts: Sequence[str]
    """What to embed: one text per new passage, in order."""
    vectors: Mapping[Space, HalfVectors] = field(default_factory=dict)
    entities: Mapping[int, Sequence[NamedEntity]] = field(default_factory=dict)
    """Summary id → what it names, of the rewritten ones."""


class Indexer:
    """Keeps tables and index in step with the summaries.

    An embedder that fails is named in `status`, and its space lacks those passages; the first of the
    embedders is the one that cannot fail, so one space is always whole.
    """

    name = "indexer"

    def __init__(
        self,
        db: Database,
        embedders: Sequence[Embedder],
        index: MemoryIndex,
        config: IndexConfig,
        on_indexed: Callable[[], None] | None = None,
    ) -> None:
        self._db = db
        self._embedders = embedders
        self._index = index
        self._config = config
        self._on_indexed = on_indexed
        self._wakeup = AutoResetEvent()
        self._lock = anyio.Lock()
        self._in_step = False
        """Whether the index has followed every commit."""
        self._storage = IndexStorage(db, index, embedders)
        self._awaited = 0
        """How many wait for the index to be settled."""
        self._has_worked = False
        self._pending = 0
        self._failed: dict[str, str] = {}
        self.loaded = anyio.Event()
        """Set once the index has been read from the vault."""

    async def run(self) -> None:
        """Index what is pending, then again at each wake-up, until cancelled."""
        while True:
            await self.settle()
            await self._complete()
            was_woken = await self._wakeup.wait(_QUIET_S if self._has_worked else _LOOK_S)
            if not was_woken:
                await self._rest()

    async def _rest(self) -> None:
        """Save the index if that is due, and give memory back."""
        if self._has_worked:
            self._has_worked = False
            clear_word_caches()
        async with self._lock:
            await self._storage.save(lambda: self._awaited > 0 or self._wakeup.is_set)
        self._storage.release_pages()
        await anyio.to_thread.run_sync(trim_heap)

    def nudge(self) -> None:
        """Tell it that summaries changed."""
        self._wakeup.set()

    def status(self) -> dict[str, object]:
        """Tell `pending` as of the last look, `passages`, `space`, `loaded`, `failed`: space → why, `copy`, and `trouble`."""
        return {
            "pending": self._pending,
            "passages": self._index.columns.live_count,
            "space": self._embedders[-1].space.name,
            "loaded": self._index.loaded,
            "failed": dict(self._failed),
            "copy": self._storage.status(),
            "trouble": self._storage.damage or None,
        }

    async def load(self) -> None:
        """Load the memory index from the vault."""
        async with self._lock:
            await self._load()

    async def settle(self) -> None:
        """Index everything that is pending now; when this returns, the index has it."""
        self._awaited += 1
        try:
            async with self._lock:
                await self._catch_up()
        finally:
            self._awaited -= 1

    async def reindex(self) -> None:
        """Compute every derived row anew, from an index that has what the tables have."""
        async with self._lock:
            await self._db.write(fulltext.queue_reindex)
            await self._db.write(fulltext.invalidate_snapshot)
            await self._storage.sweep()
            await self._db.write(turns.rebuild_turns)
            await self._load()
            await self._catch_up()

    async def _get_in_step(self) -> None:
        if not self._in_step:
            await self._load()

    async def _catch_up(self) -> None:
        await self._get_in_step()
        last = await self._db.read(fulltext.last_change)
        batches = 0
        while await self._batch(last):
            batches += 1
        if batches >= _MANY_BATCHES:
            await anyio.to_thread.run_sync(trim_heap)

    async def _load(self) -> None:
        await self._db.read(self._storage.load)
        await self._storage.discard_unusable()
        self._has_worked = True
        await anyio.to_thread.run_sync(trim_heap)
        self._in_step = True
        if self._index.columns.live_count <= self._config.batch:
            for embedder in self._embedders:
                await self._fill_some(embedder)
        self.loaded.set()
        self._tell()

    def _tell(self) -> None:
        if self._on_indexed is not None:
            self._on_indexed()

    async def _complete(self) -> None:
        """Embed what the spaces lack, newest first, while searches go on and whatever rings is indexed."""
        for embedder in self._embedders:
            started = anyio.current_time()
            while await self._fill(embedder):
                await anyio.sleep(_REST * (anyio.current_time() - started))
                if self._wakeup.is_set:
                    await self.settle()
                started = anyio.current_time()

    async def _fill(self, embedder: Embedder) -> int:
        """Give some passages their vectors in a space; how many."""
        async with self._lock:
            return await self._fill_some(embedder)

    async def _fill_some(self, embedder: Embedder) -> int:
        name = embedder.space.name
        lacking = partial(self._index.missing_vectors, name, self._config.batch)
        some = await anyio.to_thread.run_sync(lacking)
        texts = (
            await self._db.read(partial(backfill.texts_to_embed, passage_ids=some))
            if some
            else {}
        )
        if not texts:
            return 0
        try:
            rows = (await _embed(embedder, list(texts.values()))).astype(np.float16)
        except EngineFailed as error:
            self._failed[name] = error.message
            return 0
        self._failed.pop(name, None)
        await anyio.to_thread.run_sync(self._index.fill, name, list(texts), rows)
        return len(texts)

    async def _batch(self, last: int) -> bool:
        """Index one batch of the changes up to number `last`; whether there was one."""
        work = await self._db.read(lambda tx: _pending(tx, self._config.batch, last))
        self._pending = work.waiting
        if not work.changes:
            return False
        self._has_worked = True
        plan = await anyio.to_thread.run_sync(self._plan, work)
        plan = await self._with_vectors(plan)
        # Who waits for this may give up, but not between the commit and the index.
        with anyio.CancelScope(shield=True):
            batch = await self._db.write(lambda tx: _write(tx, plan))
            self._in_step = False
            await anyio.to_thread.run_sync(self._index.apply, batch)
            self._in_step = True
        if batch.gone:
            await self._storage.sweep()
        self._pending -= len(work.changes)
        self._tell()
        return True

    def _plan(self, work: ChangedSummaries) -> IndexingPlan:
        """Decide which summaries need new passages: those whose text is not what was indexed."""
        digests = {number: _digest(summary) for number, summary in work.summaries.items()}
        known = self._known(work.summaries)
        rewritten = {
            number: split_into_passages(summary, tokens_max=self._config.passage_tokens)
            for number, summary in work.summaries.items()
            if known.get(number) != digests[number]
        }
        texts = [
            embedded(work.summaries[number], (passage.start, passage.stop))
            for number, new in rewritten.items()
            for passage in new
        ]
        named = {number: entities_of_summary(work.summaries[number]) for number in rewritten}
        written = {number: digests[number] for number in rewritten}
        return IndexingPlan(work, rewritten, written, texts, entities=named)

    def _known(self, numbers: Mapping[int, Summary]) -> dict[int, int]:
        with self._index.lock:
            columns = self._index.columns
            rows = {number: columns.rows_of(number) for number in numbers}
            return {
                number: int(columns.digest[at[0]]) for number, at in rows.items() if len(at)
            }

    async def _with_vectors(self, plan: IndexingPlan) -> IndexingPlan:
        found: dict[Space, HalfVectors] = {}
        for embedder in self._embedders if plan.texts else ():
            try:
                rows = await _embed(embedder, plan.texts)
            except EngineFailed as error:
                # The passages go without: a leg that lacks some rows is better than no index.
                self._failed[embedder.space.name] = error.message
                continue
            found[embedder.space] = rows.astype("<f2")
            self._failed.pop(embedder.space.name, None)
        return replace(plan, vectors=found)


async def _embed(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    if isinstance(embedder, LocalEmbedder):
        return await anyio.to_thread.run_sync(embedder.embed, texts)
    return await embedder.documents(texts)


def _digest(summary: Summary) -> int:
    """Hash all of a summary's text that the index knows; never 0."""
    text = digest(
        summary.title,
        summary.body,
        summary.topic_key or "",
        *summary.tags,
        "\x1e",
        *summary.files,
    )
    return int(text[:16], 16) or 1


def _pending(tx: Connection, limit: int, last: int) -> ChangedSummaries:
    due = [(seq, number) for seq, number in fulltext.pending_changes(tx, limit) if seq <= last]
    found = store_summaries.summaries_by_ids(tx, [number for _, number in due]) if due else {}
    return ChangedSummaries(due, found, fulltext.count_changes(tx))


def _write(tx: Connection, plan: IndexingPlan) -> IndexUpdate:
    """Write a batch. What happened again since it was read is left for the next one."""
    current = fulltext.still_pending_changes(tx, (seq for seq, _ in plan.work.changes))
    ids = {number: None for seq, number in plan.work.changes if seq in current}
    gone = [n for n in ids if n in plan.rewritten or n not in plan.work.summaries]
    removed = [passage for number in gone for passage in fulltext.remove_passages(tx, number)]
    kept = [
        (at, passage)
        for at, passage in enumerate(p for new in plan.rewritten.values() for p in new)
        if passage.summary_id in ids
    ]
    new = [passage for _, passage in kept]
    numbers = fulltext.number_terms(tx, new)
    added = fulltext.put_passages(tx, new, numbers)
    rows = {space: found[[at for at, _ in kept]] for space, found in plan.vectors.items()}
    for number in plan.entities.keys() & ids.keys():
        links.put_entities(tx, number, plan.entities[number])
    fulltext.remove_changes(tx, current)
    fulltext.mark_unsaved(tx, ids)
    return IndexUpdate(
        removed=removed, gone=[n for n in ids if n not in plan.work.summaries],
        added=added, numbers=numbers, vectors=rows,
        facts=list(fulltext.index_rows(tx, list(ids))),
        digests={number: found for number, found in plan.digests.items() if number in ids},
    )  # fmt: skip
