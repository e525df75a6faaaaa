"""The doer that keeps a copy of the index beside the vault: made at rest, so that a start maps it.

A start reads the copy that the vault says holds, and then, from the vault's tables, only the memories
that were indexed since. Without one everything is read from the tables. What is few is embedded at once;
what is more takes up to a millisecond each, and the indexer does it behind the first answers. A copy is
never mended: once enough has changed since, another takes its place, and the index lets go of its own
arrays for those of the copy.
What a start has mapped is read through behind the first answers; a copy that proves damaged is dropped,
and everything is read from the tables after all.
Not here: the files (copy.py, intact.py), which copy holds (store/saved.py), when it is quiet (indexer.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memd import log
from memd.embeddings.base import Embedder, LocalEmbedder
from memd.errors import VaultError
from memd.index import copy, intact
from memd.index.chunking import wording
from memd.index.copied import SYMPTOMS, Draft
from memd.index.copy import GivenUp, Mapped, Odd
from memd.index.intact import Damaged
from memd.index.memory_index import Batch, Contents, MemoryIndex
from memd.models import Space
from memd.store import fulltext, saved
from memd.store.database import Connection, Database
from memd.store.rows import IndexRow, StoredPassage

ROWS_MIN = 2_000
"""Fewer rows are read in a moment: no copy of them is made."""
EMBEDDED_MAX = 256
"""So many rows without a vector are embedded before the index is used."""
_CHANGED_SHARE, _CHANGED_MIN, _CHANGED_MAX = 0.05, 200, 2_000
"""So much of the rows, but no fewer and no more than that, must have changed for a new copy."""
_AT_ONCE = 256
_TRIES = 3
"""How often the writing of a copy gives way to who waits for the index."""
_AFTER_FAILURE_S = 600.0
_PAUSE = 2.0
"""Of the time that it took to read a step of a copy: searches go between."""
_DROPPED = "the saved copy of the index was dropped"
_DAMAGED = "the saved copy of the index was damaged; it is being read from the vault"

Halves = NDArray[np.float16]


class Keeper:
    """Over one vault and its index. The caller sees to it that nothing is indexed meanwhile."""

    def __init__(self, db: Database, index: MemoryIndex, embedders: Sequence[Embedder]) -> None:
        self._db = db
        self._index = index
        self._embedders = embedders
        self._copy: Mapped | None = None
        """What the index has mapped, if it has."""
        self._given_up = 0
        self._not_before = 0.0
        self.trouble = ""
        """Why the last copy could not be used or written; else empty."""
        self.damage = ""
        """What was wrong with a copy that was in use, until there is another; else empty."""
        self._refused: dict[str, str] = {}
        """Copies that are not to be used any more → why."""

    def load(self, tx: Connection) -> None:
        """Fill the index: from the copy that holds, and what was indexed since; or from the tables."""
        name = saved.name(tx)
        self._copy, self.trouble = None, ""
        try:
            self._copy = None if name is None else self._open(tx, name)
        except Odd as odd:
            name = None
            self.trouble = f"the copy of the index was not used: {odd}"
            if isinstance(odd, Damaged):
                self.damage = f"{_DROPPED}: {odd}"
            log.get("indexer").warning("index_copy_not_used", reason=str(odd))
        if name is None:
            self._index.load(self._contents(tx))
        copy.sweep(self._db.path, name)
        tx.release_memory()

    def _open(self, tx: Connection, name: str) -> Mapped:
        """Fill the index from this copy. Raises Odd; then the index is as it was."""
        if name in self._refused:
            raise Odd(self._refused[name])
        found = copy.read(self._db.path, name)
        for _ in intact.read_through(found, intact.small(found)):
            pass
        fresh = MemoryIndex()
        try:
            spaces = [[e.space.name, e.space.dimensions] for e in self._embedders]
            if found.about["spaces"] != spaces:
                raise Odd("it was made for other vectors")
            fresh.restore(found, saved.labels(tx))
            fresh.vocabulary.load(*fulltext.terms_in_order(tx))
            touched = saved.unsaved(tx)
            if touched:
                fresh.apply(self._since(tx, fresh, touched))
        except SYMPTOMS as error:
            raise Odd(f"it has not what is expected: {error!r}") from error
        rows, wanted = fresh.columns.live_count, fulltext.count(tx)
        if rows != wanted:
            raise Odd(f"it makes {rows} passages of {wanted}")
        self._index.become(fresh, is_proven=False)
        return found

    async def prove(self) -> bool:
        """Read through the copy that is mapped, gently but at once if it is doubted; False: load anew."""
        found = self._copy
        if found is None or self._index.is_proven:
            return True
        steps = intact.read_through(found, found.checks)
        try:
            with closing(steps):
                started = anyio.current_time()
                while await anyio.to_thread.run_sync(next, steps, None):
                    if self._index.loaded:
                        await anyio.sleep(_PAUSE * (anyio.current_time() - started))
                    started = anyio.current_time()
        except Odd as odd:
            return self._copy is not found or not self.refuse(str(odd))
        if self._copy is found:
            self._index.trust()
            log.get("indexer").info("index_copy_proven", files=len(found.checks))
        return True

    def refuse(self, why: str) -> bool:
        """Use the copy that is mapped no more; False if there is none, or it is proven. Then load anew."""
        if self._copy is None or not self._index.doubt(_DAMAGED):
            return False
        self._refused[self._copy.folder.name] = why
        self.damage = f"{_DROPPED}: {why}"
        log.get("indexer").error("index_copy_damaged", reason=why)
        return True

    async def drop(self) -> None:
        """Let no copy hold if the one that the vault names could not be used."""
        if self._copy is None and await self._db.read(saved.name) is not None:
            # A disk that is full keeps nobody from loading: without its files it is odd again.
            with suppress(VaultError):
                await self._db.write(saved.drop)

    def _since(self, tx: Connection, fresh: MemoryIndex, touched: Sequence[int]) -> Batch:
        """What was indexed after the copy was made, as one batch."""
        stored = [p for some in _blocks(touched) for p in fulltext.load(tx, some)]
        stored.sort(key=lambda passage: passage.id)
        columns = fresh.columns
        known = set(columns.passage_id[columns.rows_of_any(touched)].tolist())
        added = [passage for passage in stored if passage.id not in known]
        if added and columns.n and added[0].id <= columns.passage_id[-1]:
            raise Odd("it lacks a passage that is older than it")
        return Batch(
            removed=sorted(known - {passage.id for passage in stored}),
            added=added,
            vectors=self._few(tx, added),
            facts=[row for some in _blocks(touched) for row in _facts(tx, some)],
        )

    def _local(self) -> dict[Space, LocalEmbedder]:
        return {e.space: e for e in self._embedders if isinstance(e, LocalEmbedder)}

    def _few(self, tx: Connection, added: Sequence[StoredPassage]) -> dict[Space, Halves]:
        """The vectors of passages in local spaces, if there are not many."""
        if len(added) > EMBEDDED_MAX:
            return {}
        texts = {
            number: wording(title, body, start, stop)
            for number, start, stop, title, body in fulltext.texts(tx, [p.id for p in added])
        }
        worded = [texts.get(passage.id, "") for passage in added]
        return {
            space: embedder.embed(worded).astype(np.float16)
            for space, embedder in self._local().items()
        }

    def _contents(self, tx: Connection) -> Contents:
        local = self._local() if fulltext.count(tx) <= EMBEDDED_MAX else {}
        return Contents(
            passages=fulltext.load(tx),
            words=fulltext.terms_in_order(tx),
            facts=fulltext.index_rows(tx),
            vectors={
                space: _embedded(local[space], fulltext.texts(tx)) if space in local else ()
                for space in (embedder.space for embedder in self._embedders)
            },
        )

    async def save(self, give_up: Callable[[], bool]) -> None:
        """Write a copy if it is worth it, and hold its arrays; give way if `give_up` says so."""
        if anyio.current_time() < self._not_before or not await self._is_due():
            return
        started = anyio.current_time()
        try:
            await self._save(give_up if self._given_up < _TRIES else lambda: False)
        except GivenUp:
            self._given_up += 1
        except (OSError, Odd) as error:
            self.trouble = f"no copy of the index could be made: {error}"
            self._not_before = anyio.current_time() + _AFTER_FAILURE_S
            log.get("indexer").warning("index_not_saved", reason=str(error))
        else:
            took = round(1000 * (anyio.current_time() - started))
            rows = self._index.columns.n
            log.get("indexer").info("index_saved", rows=rows, took_ms=took)

    async def _is_due(self) -> bool:
        rows = self._index.columns.live_count
        # What is not proven must not become a copy that is taken for whole.
        if not (self._index.loaded and self._index.is_proven):
            return False
        is_whole = all(self._index.coverage(e.space.name) == 1 for e in self._embedders)
        if rows < ROWS_MIN or not is_whole:
            return False
        if self._copy is None or await self._db.read(saved.name) is None:
            return True
        enough = min(max(_CHANGED_SHARE * rows, _CHANGED_MIN), _CHANGED_MAX)
        return await self._db.read(saved.unsaved_count) >= enough

    async def _save(self, give_up: Callable[[], bool]) -> None:
        name = await self._db.read(saved.new_name)
        draft = await anyio.to_thread.run_sync(self._index.draft)
        await self._write(name, draft, give_up)
        del draft
        # Who waits for this may give up, but not between the commit and the index.
        with anyio.CancelScope(shield=True):
            labels = self._index.columns.labels()
            if not await self._db.write(partial(saved.hold, name=name, labels=labels)):
                await self.sweep()
                raise GivenUp
            await anyio.to_thread.run_sync(self._exchange, name)
        self._given_up, self.trouble, self.damage = 0, "", ""

    async def _write(self, name: str, draft: Draft, give_up: Callable[[], bool]) -> None:
        """Write the copy's files; a daemon that leaves does not wait for them."""
        leaving = False
        failed: list[OSError | GivenUp] = []

        def look() -> bool:
            return leaving or give_up()

        def write() -> None:
            try:
                copy.write(self._db.path, name, draft, look)
            except (OSError, GivenUp) as error:
                failed.append(error)

        async def watch() -> None:
            nonlocal leaving
            try:
                await anyio.sleep_forever()
            finally:
                leaving = True

        async with anyio.create_task_group() as both:
            both.start_soon(watch)
            await anyio.to_thread.run_sync(write)
            both.cancel_scope.cancel()
        if failed:
            raise failed[0]

    def _exchange(self, name: str) -> None:
        self._copy = copy.read(self._db.path, name)
        self._index.exchange(self._copy)
        copy.sweep(self._db.path, name)

    async def sweep(self) -> None:
        """Take away every copy that does not hold."""
        name = await self._db.read(saved.name)
        await anyio.to_thread.run_sync(copy.sweep, self._db.path, name)

    def status(self) -> dict[str, object]:
        """Tell `mapped`, whether the index holds a copy's arrays, and `trouble`, if there is any."""
        return {"mapped": self._copy is not None, "trouble": self.trouble}


def _facts(tx: Connection, summary_ids: Sequence[int]) -> Iterator[IndexRow]:
    return fulltext.index_rows(tx, summary_ids)


def _embedded(
    embedder: LocalEmbedder, texts: Iterable[tuple[int, int, int, str, str]]
) -> Iterator[tuple[list[int], Halves]]:
    """Passage ids and their vectors, block by block."""
    stream = iter(texts)
    while block := list(islice(stream, _AT_ONCE)):
        worded = [wording(title, body, start, stop) for _, start, stop, title, body in block]
        yield [number for number, *_ in block], embedder.embed(worded).astype(np.float16)


def _blocks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(numbers), _AT_ONCE):
        yield numbers[first : first + _AT_ONCE]
