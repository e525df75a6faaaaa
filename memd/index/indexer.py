"""Background worker that indexes changed summaries; and the checks of the index that `memd doctor` makes.

It reads a batch of pending changes and their summaries, embeds the passages outside any transaction, writes tables
and vectors and removes the changes in one transaction, then updates the memory index. A crash before the commit
repeats a batch; a crash after it costs nothing, since the index is loaded from the tables. Triggers in the store
record the changes. To check the index, a sample of memories is indexed again, and the saved one compared with the vault.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memd.caches import clear_caches, trim_heap
from memd.embeddings import Embedder, LocalEmbedder, hashing
from memd.errors import EngineFailed
from memd.index import backfill
from memd.index.memory_index import IndexUpdate, MemoryIndex
from memd.index.passages import (
    TOKENS_MAX,
    NamedEntity,
    entities_of_summary,
    passage_text,
    split_into_passages,
)
from memd.index.snapshot import IndexStorage, SnapshotDamaged, SnapshotUnusable, read_snapshot
from memd.models import Finding, Space, Summary
from memd.store import NewPassage, events, fulltext, integrity, links, summaries
from memd.store import summaries as store_summaries
from memd.store.database import Connection, Database
from memd.text import TERMS_VERSION, digest
from memd.wakeup import AutoResetEvent

_BATCH = 200
"""Summaries per transaction: few enough not to block other writers, enough to share a commit."""
_CHECK_S = 60.0
"""Seconds to sleep unless woken; another process may have written."""
_IDLE_S = 5.0
"""Seconds without work after which the index is saved and memory released."""
_BUSY_S = 0.05
"""CPU seconds of the process after which unused memory is worth releasing."""
_TRIM_BATCHES = 10
"""Batches in a row after which memory is released."""
_UPGRADE_PAUSE_S = 0.05
"""Minimum pause between batches while an upgrade looks for memories to index again."""
_REST = 0.5
"""Pause after embedding some passages, as a share of its time: searches share the interpreter with it."""

HalfVectors = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class ChangedSummaries:
    """A batch of changes and the summaries they are about."""

    changes: Sequence[tuple[int, int]]
    """(seq, summary id), oldest first."""
    summaries: Mapping[int, Summary]
    """Those that still exist."""
    waiting: int
    """The number of pending changes, these included."""


@dataclass(frozen=True, slots=True)
class IndexingPlan:
    """The writes for a batch of changes."""

    work: ChangedSummaries
    rewritten: Mapping[int, Sequence[NewPassage]]
    """Summary id → its new passages; other summaries keep theirs."""
    digests: Mapping[int, int]
    texts: Sequence[str]
    """The text to embed of each new passage, in order."""
    vectors: Mapping[Space, HalfVectors] = field(default_factory=dict)
    entities: Mapping[int, Sequence[NamedEntity]] = field(default_factory=dict)
    """Summary id → entities of the rewritten ones."""


class Indexer:
    """Updates tables and memory index when summaries change.

    If an embedder fails, `status` names it and its space lacks those passages. The first embedder cannot
    fail, so one space is always complete.
    """

    name = "indexer"

    def __init__(
        self,
        db: Database,
        embedders: Sequence[Embedder],
        index: MemoryIndex,
        on_indexed: Callable[[], None] | None = None,
        *,
        batch: int = _BATCH,
    ) -> None:
        self._db = db
        self._embedders = embedders
        self._index = index
        self._batch = batch
        self._on_indexed = on_indexed
        self._wakeup = AutoResetEvent()
        self._lock = anyio.Lock()
        self._is_current = False
        """Whether the memory index has applied every commit."""
        self._storage = IndexStorage(db, index, embedders)
        self._settle_calls = 0
        """Callers that wait in `settle`; a snapshot yields to them."""
        self._has_worked = False
        self._trimmed_at_s = 0.0
        """CPU time of the process when memory was last released."""
        self._pending = 0
        self._failed: dict[str, str] = {}
        self.loaded = anyio.Event()
        """Set once the index has been read from the vault."""

    async def run(self) -> None:
        """Index what is pending, then again at each wake-up, until cancelled."""
        await self.settle()
        await self.upgrade_terms()
        while True:
            await self.settle()
            await self._fill_spaces()
            was_woken = await self._wakeup.wait(_IDLE_S if self._has_worked else _CHECK_S)
            if not was_woken:
                await self._save_and_trim()

    async def upgrade_terms(self) -> None:
        """Queue, once per upgrade, the memories whose indexed terms differ from those of this version.

        The others keep their passages, and so the vectors that a model made of them.
        """
        if await self._db.read(fulltext.tokenizer_version) == TERMS_VERSION:
            return
        last = await self._db.read(partial(fulltext.last_compared, version=TERMS_VERSION))
        began = anyio.current_time()
        while some := await self._db.read(partial(self._find_outdated, after=last)):
            last, outdated = some
            await self._db.write(
                partial(
                    fulltext.queue_outdated, outdated=outdated, last=last, version=TERMS_VERSION
                )
            )
            # As long as the work took: searches share the interpreter with it.
            pause_s = max(_UPGRADE_PAUSE_S, anyio.current_time() - began)
            if await self._wakeup.wait(pause_s):
                await self.settle()  # what is new cannot wait until all that is old was compared
            began = anyio.current_time()
        await self._db.write(partial(fulltext.note_tokenizer_version, version=TERMS_VERSION))

    def _find_outdated(self, tx: Connection, after: int) -> tuple[int, list[int]] | None:
        """The last of the next indexed summaries after an id, and those with other terms now; None at the end."""
        ids = fulltext.indexed_summaries(tx, after, self._batch)
        if not ids:
            return None
        known = store_summaries.summaries_by_ids(tx, ids)
        return ids[-1], [n for n in ids if not has_same_passages(tx, known.get(n))]

    async def _save_and_trim(self) -> None:
        """Save the index if that is due, and release memory."""
        self._has_worked = False
        async with self._lock:
            await self._storage.save(lambda: self._settle_calls > 0 or self._wakeup.is_set)
        # Searching and consolidating take memory, too. A process that did nothing has none to give back.
        if time.process_time() - self._trimmed_at_s > _BUSY_S:
            clear_caches()
            hashing.clear_word_cache()
            self._storage.release_pages()
            await anyio.to_thread.run_sync(self._index.release_memory)
            await self._db.release_caches()
            await anyio.to_thread.run_sync(trim_heap)
            self._trimmed_at_s = time.process_time()

    def nudge(self) -> None:
        """Wake the worker: summaries changed."""
        self._wakeup.set()

    def status(self) -> dict[str, object]:
        """Return `pending` as of the last batch, `passages`, `space`, `loaded`, `failed` (space → why), `copy`, `trouble`."""
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
        """Index everything that is pending now, before returning."""
        self._settle_calls += 1
        try:
            async with self._lock:
                await self._catch_up()
        finally:
            self._settle_calls -= 1

    async def reindex(self) -> None:
        """Compute every derived row again, starting from an index that equals the tables."""
        async with self._lock:
            await self._db.write(fulltext.queue_reindex)
            await self._db.write(fulltext.invalidate_snapshot)
            await self._storage.sweep()
            await self._db.write(events.rebuild_turns)
            await self._load()
            await self._catch_up()

    async def _catch_up(self) -> None:
        if not self._is_current:
            await self._load()
        last = await self._db.read(fulltext.last_change)
        batches = 0
        while await self._index_batch(last):
            batches += 1
        if batches >= _TRIM_BATCHES:
            await anyio.to_thread.run_sync(trim_heap)

    async def _load(self) -> None:
        await self._db.read(self._storage.load)
        await self._storage.discard_unusable()
        self._has_worked = True
        await anyio.to_thread.run_sync(trim_heap)
        self._is_current = True
        if self._index.columns.live_count <= self._batch:
            for embedder in self._embedders:
                await self._fill_batch(embedder)
        self.loaded.set()
        self._call_on_indexed()

    def _call_on_indexed(self) -> None:
        if self._on_indexed is not None:
            self._on_indexed()

    async def _fill_spaces(self) -> None:
        """Embed what the local spaces lack, newest first; index new changes in between."""
        for embedder in self._embedders:
            count = 1
            while count:
                started = anyio.current_time()
                async with self._lock:
                    count = await self._fill_batch(embedder)
                if count:
                    await anyio.sleep(_REST * (anyio.current_time() - started))
                if count and self._wakeup.is_set:
                    await self.settle()

    async def _fill_batch(self, embedder: Embedder) -> int:
        """Embed some passages that lack a vector in the embedder's space; return how many."""
        name = embedder.space.name
        lacking = partial(self._index.missing_vectors, name, self._batch)
        some = await anyio.to_thread.run_sync(lacking)
        texts = (
            await self._db.read(partial(backfill.texts_to_embed, passage_ids=some)) if some else {}
        )
        if not texts:
            return 0
        try:
            rows = (await _embed_texts(embedder, list(texts.values()))).astype(np.float16)
        except EngineFailed as error:
            self._failed[name] = error.message
            return 0
        self._failed.pop(name, None)
        await anyio.to_thread.run_sync(self._index.fill, name, list(texts), rows)
        return len(texts)

    async def _index_batch(self, last: int) -> bool:
        """Index one batch of the changes up to number `last`; return whether there was one."""
        work = await self._db.read(lambda tx: _read_changes(tx, self._batch, last))
        self._pending = work.waiting
        if not work.changes:
            return False
        self._has_worked = True
        plan = await anyio.to_thread.run_sync(self._make_plan, work)
        plan = await self._add_vectors(plan)
        # The caller may be cancelled, but not between the commit and the index.
        with anyio.CancelScope(shield=True):
            batch = await self._db.write(lambda tx: _write_batch(tx, plan))
            self._is_current = False
            await anyio.to_thread.run_sync(self._index.apply, batch)
            self._is_current = True
        if batch.gone:
            await self._storage.sweep()
        self._pending -= len(work.changes)
        self._call_on_indexed()
        return True

    def _make_plan(self, work: ChangedSummaries) -> IndexingPlan:
        """Plan new passages for the summaries whose text differs from what was indexed."""
        digests = {number: _text_digest(summary) for number, summary in work.summaries.items()}
        known = self._indexed_digests(work.summaries)
        rewritten = {
            number: split_into_passages(summary)
            for number, summary in work.summaries.items()
            if known.get(number) != digests[number]
        }
        texts = [
            passage_text(work.summaries[number].title, work.summaries[number].body, p.start, p.stop)
            for number, new in rewritten.items()
            for p in new
        ]
        named = {number: entities_of_summary(work.summaries[number]) for number in rewritten}
        written = {number: digests[number] for number in rewritten}
        return IndexingPlan(work, rewritten, written, texts, entities=named)

    def _indexed_digests(self, numbers: Mapping[int, Summary]) -> dict[int, int]:
        with self._index.lock:
            columns = self._index.columns
            rows = {number: columns.rows_of(number) for number in numbers}
            return {number: int(columns.digest[at[0]]) for number, at in rows.items() if len(at)}

    async def _add_vectors(self, plan: IndexingPlan) -> IndexingPlan:
        found: dict[Space, HalfVectors] = {}
        for embedder in self._embedders if plan.texts else ():
            try:
                rows = await _embed_texts(embedder, plan.texts)
            except EngineFailed as error:
                # Index the passages without this vector rather than not at all.
                self._failed[embedder.space.name] = error.message
                continue
            found[embedder.space] = rows.astype("<f2")
            self._failed.pop(embedder.space.name, None)
        return replace(plan, vectors=found)


async def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    if isinstance(embedder, LocalEmbedder):
        return await anyio.to_thread.run_sync(embedder.embed, texts)
    return await embedder.documents(texts)


def _text_digest(summary: Summary) -> int:
    """Return a hash of all of a summary's text that is indexed; never 0."""
    names = (summary.topic_key or "", *summary.tags, "\x1e", *summary.files)
    text = digest(str(TERMS_VERSION), summary.title, summary.body, *names)
    return int(text[:16], 16) or 1


def _read_changes(tx: Connection, limit: int, last: int) -> ChangedSummaries:
    due = [(seq, number) for seq, number in fulltext.pending_changes(tx, limit) if seq <= last]
    found = store_summaries.summaries_by_ids(tx, [number for _, number in due]) if due else {}
    return ChangedSummaries(due, found, fulltext.count_changes(tx))


def _write_batch(tx: Connection, plan: IndexingPlan) -> IndexUpdate:
    """Write a batch. Summaries that changed again since it was read are left for the next one."""
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


SAMPLE = 40
"""Memories, or passages: enough to see what concerns all, in a moment."""
_NEAR = 0.02
"""How much a value of a vector may differ that was quantized to a byte."""


def check_sample(tx: Connection, tokens_max: int = TOKENS_MAX, limit: int = SAMPLE) -> Finding:
    """Compute the passages of up to `limit` memories and report how many differ from the stored ones.

    This finds what no count finds: an index made by another memd or with another tokenizer.
    """
    chosen = summaries.summaries_by_ids(tx, integrity.sample_summaries(tx, limit))
    stale = [
        number
        for number, one in sorted(chosen.items())
        if not has_same_passages(tx, one, tokens_max)
    ]
    if not stale:
        return Finding(
            "sample", "ok", f"{len(chosen)} memories were indexed again with the same result"
        )
    examples = ", ".join(f"#{number}" for number in stale[:5])
    words = f"{len(stale)} of {len(chosen)} memories would be indexed differently now: {examples}"
    remedy = "run `memd doctor --fix` or `memd reindex`"
    return Finding("sample", "problem", words, remedy, fixable=True)


def has_same_passages(
    tx: Connection, summary: Summary | None, tokens_max: int = TOKENS_MAX
) -> bool:
    """Return whether a memory would be indexed as it is now; False if it is gone."""
    if summary is None:
        return False
    stored = [
        (one.start, one.stop, one.length, dict(one.terms))
        for one in integrity.indexed_passages(tx, summary.id)
    ]
    return stored == [
        (one.start, one.stop, one.length, {p.term: (p.in_title, p.in_body) for p in one.postings})
        for one in split_into_passages(summary, tokens_max=tokens_max)
    ]


def check_snapshot(tx: Connection, vault: str, embedder: LocalEmbedder) -> Finding:
    """Compare the saved index with the vault: all passages, and of a sample the words and vectors.

    Memories indexed since are left out; a start reads them from the vault.
    """
    name, remedy = fulltext.snapshot_name(tx), "run `memd doctor --fix` or `memd reindex`"
    if name is None:
        return Finding("saved index", "ok", "none is saved yet; a start reads the vault")
    try:
        words = _compare_snapshot(tx, vault, name, embedder)
    except SnapshotDamaged as error:
        words = f"it is damaged: {error}"
    except SnapshotUnusable as error:
        words = f"it cannot be used: {error}"
        return Finding("saved index", "warning", words, remedy, fixable=True)
    except (LookupError, ValueError, TypeError) as error:
        words = f"it cannot be read: {error!r}"
    if words:
        return Finding("saved index", "problem", words, remedy, fixable=True)
    words = f"it matches the vault; {fulltext.count_unsaved(tx)} memories are newer"
    return Finding("saved index", "ok", words)


def _compare_snapshot(tx: Connection, vault: str, name: str, embedder: LocalEmbedder) -> str:
    """Say what is wrong with the snapshot; empty if nothing is."""
    found, index = read_snapshot(vault, name), MemoryIndex()
    index.restore(found, fulltext.snapshot_labels(tx))
    columns = index.columns
    newer = [*fulltext.unsaved_ids(tx), *(number for _, number in fulltext.pending_changes(tx, -1))]
    mine = columns.passage_id[columns.live & ~np.isin(columns.summary_id, newer)]
    owners = np.array(list(fulltext.passage_owners(tx).items()), np.int64).reshape(-1, 2)
    theirs = owners[~np.isin(owners[:, 1], newer), 0]
    if not np.array_equal(np.sort(mine), theirs):
        return f"it has {len(mine)} passages, the vault {len(theirs)}, and they are not the same"
    some = mine[:: max(1, -(-len(mine) // SAMPLE))].tolist()
    if not (wrong := _differing_passages(tx, index, embedder, some)):
        return ""
    examples = ", ".join(map(str, wrong[:5]))
    return f"{len(wrong)} of {len(some)} passages differ in words or vectors: {examples}"


def _differing_passages(
    tx: Connection, index: MemoryIndex, embedder: LocalEmbedder, passage_ids: Sequence[int]
) -> list[int]:
    if not passage_ids:
        return []
    rows = index.columns.rows_with(passage_ids)
    texts = [
        passage_text(t, b, start, stop)
        for _, start, stop, t, b in fulltext.passage_texts(tx, passage_ids)
    ]
    wanted, found = embedder.embed(texts), index.matrices[embedder.space.name].vectors(rows)
    is_near = (np.abs(wanted - found) < _NEAR).all(axis=1)
    stored = fulltext.terms_of(tx, passage_ids)
    return [
        number
        for number, row, near in zip(passage_ids, rows.tolist(), is_near.tolist(), strict=True)
        if not near
        or sorted(index.postings.terms_in(row, stored[number])) != sorted(stored[number])
    ]
