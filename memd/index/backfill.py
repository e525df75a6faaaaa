"""Embed passages that lack a vector; re-embed; drop spaces.

The index never waits for a model. Passages that lack a vector are embedded here, newest first, a batch at a time and
outside any transaction; so a new memory, a model that returns, another model (another space) and a start are the same
case, and a crash costs one batch. A vector that the vault has and the index lacks is read, not computed. A text
that the model cannot embed gets a row of zeros. A text that makes the model fail is found by asking for fewer and
fewer texts, so that it does not hold up the others.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memd import log
from memd.caches import trim_heap
from memd.config import EnginesConfig
from memd.embeddings import BATCH_S, Embedder, ModelEmbedder, Vectors
from memd.errors import BadRequest, EngineAbsent, EngineFailed
from memd.index.memory_index import MemoryIndex
from memd.index.passages import passage_text
from memd.index.quantization import decode_vectors, encode_vectors, is_float16
from memd.models import Space
from memd.store import fulltext
from memd.store import vectors as store_vectors
from memd.store.database import Connection, Database
from memd.store.vectors import SpaceSize
from memd.wakeup import AutoResetEvent

_REST = 0.5
"""Pause after a batch, as a share of its time: searches share the interpreter with it."""
_POLL_S = 60.0
"""Seconds to sleep after all work is done, unless woken."""
_RETRY_S = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds to sleep after the model's first, second … failure, unless woken."""
_STORED_READ = 2_048
"""Vectors that are read from the vault at a time."""
_DELETED_AT_ONCE = 500
"""Vectors that one transaction deletes, so that captures need not wait for all of them."""
_RATED_BATCHES = 20
"""Batches from which the rate is computed."""
_FAILURES_ALONE = 3
"""Failures of a text that was sent alone, after which it gets no vector."""
_PROBE = "Is anybody there?"


class Backfill:
    """Background worker: fills the learned space of the index and the vault, as far as the model answers."""

    name = "backfill"

    def __init__(
        self,
        db: Database,
        learned: ModelEmbedder,
        index: MemoryIndex,
        config: EnginesConfig,
        clock: Callable[[], int],
    ) -> None:
        self._db = db
        self._learned = learned
        self._index = index
        self._config = config
        self._clock = clock
        self._wakeup = AutoResetEvent()
        self._lock = anyio.Lock()
        """Held while vault and index differ, never during a request to the model."""
        self._failures = 0
        self._waiting_reason = ""
        self._batch_size = config.batch
        """Texts per request: halved after a failure, doubled after a success."""
        self._suspect = (0, 0)
        """The passage last sent alone, and how often it failed."""
        self._rates: deque[tuple[int, int]] = deque(maxlen=_RATED_BATCHES)
        """(milliseconds, passages) of the last batches."""
        self._started_at: int | None = None
        """When filling the space began; None while it is complete."""

    async def run(self) -> None:
        """Embed what is missing, now and after each wake-up, until cancelled."""
        while True:
            await self._wakeup.wait(await self._fill_space())

    def nudge(self) -> None:
        """Wake the worker: memories were indexed, or the model answers again."""
        self._wakeup.set()

    def status(self) -> dict[str, object]:
        """Return `space`, `active`, `done`, `missing`, `rate_per_s`, `eta_s`, and `why` it waits (or empty)."""
        space = self._index.learned
        done, rows = self._index.counts(space or "")
        missing = rows - done
        rate = self._compute_rate() if missing else None
        return {
            "space": space,
            "active": space is not None and self._index.active == space,
            "done": done,
            "missing": missing,
            "rate_per_s": rate and round(rate, 1),
            "eta_s": round(missing / rate) if rate else None,
            "why": self._waiting_reason,
        }

    def _compute_rate(self) -> float | None:
        took = sum(ms for ms, _ in self._rates)
        return 1000 * sum(count for _, count in self._rates) / took if took else None

    async def reembed(self) -> dict[str, object]:
        """Drop the vectors of the model's space and embed again in the background; return `space`, `missing`.

        Raises EngineFailed, before anything is dropped, if the model does not answer now.
        """
        await self._learned.documents([_PROBE])
        space = self._learned.current
        if space is None:
            raise EngineFailed(f"no learned model has answered yet: {self._learned.why_not}")
        async with self._lock:
            await anyio.to_thread.run_sync(self._index.adopt_learned_space, space)
            await drop_vectors(self._db, space.name)
            await anyio.to_thread.run_sync(self._index.empty_learned_space)
        self._started_at = None
        self.nudge()
        return {"space": space.name, "missing": self._index.columns.live_count}

    async def _fill_space(self) -> float:
        """Embed what is missing while the model answers; return the seconds to sleep then."""
        try:
            started = anyio.current_time()
            while await self._fill_batch():
                self._failures, self._waiting_reason = 0, ""
                await anyio.sleep(_REST * (anyio.current_time() - started))
                started = anyio.current_time()
        except EngineFailed as error:
            self._failures += 1
            self._waiting_reason = error.message
            return _RETRY_S[min(self._failures, len(_RETRY_S)) - 1]
        return _POLL_S

    async def _fill_batch(self) -> bool:
        """Fill some vectors; return whether there may be more to do."""
        space = self._learned.current
        if space is None and self._index.learned is not None:
            await anyio.to_thread.run_sync(self._index.drop_learned_space)
        if space is None or not self._index.loaded:
            self._waiting_reason = "" if self._learned.is_ready else self._learned.why_not
            return False
        await anyio.to_thread.run_sync(self._index.adopt_learned_space, space)
        lacking = await anyio.to_thread.run_sync(
            self._index.missing_vectors, space.name, _STORED_READ
        )
        if not lacking:
            self._log_completion(space)
            return False
        async with self._lock:
            found = await self._db.read(
                lambda tx: find_missing(tx, space, lacking, self._batch_size)
            )
            if found.stored:
                await fill_index(self._index, space, found.stored)
                await recode_old_vectors(self._db, space, found.stored)
                return True
        # A deleted memory has passages in the index until the indexer follows and wakes us.
        return bool(found.texts) and await self._embed_texts(space, found.texts)

    async def _embed_texts(self, space: Space, texts: Mapping[int, str]) -> bool:
        if not self._learned.is_ready:
            raise EngineFailed(self._learned.why_not)
        started = self._clock()
        self._started_at = self._started_at or started
        rows = await self._request_vectors(texts, space)
        if self._learned.current != space:
            # Another model may have answered: these vectors may be of either.
            return True
        async with self._lock:
            stored = await save_vectors(self._db, self._index, space, list(texts), rows)
        self._rates.append((self._elapsed_ms(started), stored))
        return True

    def _elapsed_ms(self, started: int) -> int:
        """Return the milliseconds of a batch, within sane bounds even if the clock is set meanwhile."""
        return min(max(0, self._clock() - started), int(BATCH_S * 1000))

    async def _request_vectors(self, texts: Mapping[int, str], space: Space) -> Vectors:
        """Return a row per text; zeros for a text that makes an available model fail."""
        try:
            rows = await self._learned.documents(list(texts.values()))
        except EngineAbsent:
            raise
        except EngineFailed as error:
            if not self._is_text_at_fault(list(texts)):
                raise
            (number,) = texts
            log.get(self.name).warning("text_not_taken", passage=number, reason=error.message)
            return np.zeros((1, space.dimensions), np.float32)
        self._batch_size = min(self._config.batch, 2 * self._batch_size)
        return rows

    def _is_text_at_fault(self, passage_ids: Sequence[int]) -> bool:
        """Return whether a text failed repeatedly when it was sent alone; if there were more, send fewer next time.

        Between the failures the model was ready, so it had embedded another text.
        """
        if len(passage_ids) > 1:
            self._batch_size = len(passage_ids) // 2
            return False
        again = self._suspect[0] == passage_ids[0]
        self._suspect = (passage_ids[0], self._suspect[1] + 1 if again else 1)
        return self._suspect[1] >= _FAILURES_ALONE

    def _log_completion(self, space: Space) -> None:
        self._waiting_reason = ""
        if self._started_at is not None:
            took, self._started_at = max(0, self._clock() - self._started_at), None
            log.get(self.name).info("space_completed", space=space.name, took_ms=took)


@dataclass(frozen=True, slots=True)
class MissingVectors:
    """Stored vectors, or texts to embed, for passages that the index has no vectors of."""

    stored: Mapping[int, bytes]
    """Passage id → the vector in the vault."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """Passage id → what to embed."""


def find_missing(
    tx: Connection, space: Space, passage_ids: Sequence[int], limit: int
) -> MissingVectors:
    """Look passages up: their stored vectors, or if there are none the texts of the first `limit`."""
    stored = store_vectors.vectors_of(tx, space.name, passage_ids)
    return (
        MissingVectors(stored)
        if stored
        else MissingVectors({}, texts_to_embed(tx, passage_ids[:limit]))
    )


def texts_to_embed(tx: Connection, passage_ids: Sequence[int]) -> dict[int, str]:
    """Return passage id → text to embed, in the order given; deleted passages are skipped."""
    found = {
        number: passage_text(title, body, start, stop)
        for number, start, stop, title, body in fulltext.passage_texts(tx, passage_ids)
    }
    return {number: found[number] for number in passage_ids if number in found}


async def save_vectors(
    db: Database,
    index: MemoryIndex,
    space: Space,
    passage_ids: Sequence[int],
    rows: NDArray[np.float32],
) -> int:
    """Store one row per passage in vault and index; return how many passages still existed.

    A row of zeros is stored, too: it means that there is nothing to embed.
    """
    # The caller may be cancelled, but not between the commit and the index.
    with anyio.CancelScope(shield=True):
        coded = await anyio.to_thread.run_sync(encode_vectors, rows)
        pairs = dict(zip(passage_ids, coded, strict=True))
        stored = await db.write(partial(_put_vectors, space=space, vectors=pairs))
        await fill_index(index, space, {number: pairs[number] for number in stored})
    return len(stored)


async def fill_index(index: MemoryIndex, space: Space, stored: Mapping[int, bytes]) -> None:
    """Write vectors of the vault into the index."""

    def put() -> None:
        rows = decode_vectors(list(stored.values()), space.dimensions)
        index.fill(space.name, list(stored), rows)

    await anyio.to_thread.run_sync(put)


async def recode_old_vectors(db: Database, space: Space, stored: Mapping[int, bytes]) -> None:
    """Store the float16 vectors of an earlier memd again, in half the bytes."""
    former = {n: blob for n, blob in stored.items() if is_float16(blob, space.dimensions)}
    if former:
        coded = encode_vectors(decode_vectors(list(former.values()), space.dimensions))
        pairs = dict(zip(former, coded, strict=True))
        await db.write(partial(_put_vectors, space=space, vectors=pairs))


def _put_vectors(tx: Connection, space: Space, vectors: Mapping[int, bytes]) -> list[int]:
    number = store_vectors.ensure_space(tx, space)
    return store_vectors.put_existing_vectors(tx, number, vectors.items())


async def drop_vectors(db: Database, space_name: str) -> None:
    """Delete all vectors of a space from the vault, some at a time."""
    part = partial(store_vectors.drop_vectors, name=space_name, limit=_DELETED_AT_ONCE)
    while await db.write(part):
        pass


@dataclass(frozen=True, slots=True)
class DroppedSpace:
    """A space that was dropped, or would be."""

    space: str
    vectors: int
    bytes: int


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """Results of a vacuum, or of its dry run. Sizes are bytes of the vault with its write-ahead log."""

    is_dry_run: bool
    dropped: tuple[DroppedSpace, ...]
    free: int
    """Unused bytes in the file before anything was dropped."""
    before: int
    after: int | None
    """None if nothing was done."""
    note: str = ""
    """Why a space stays although it may not be needed; else empty."""


class VectorMaintenance:
    """Re-embeds and vacuums at the user's request.

    The spaces of models used before stay until then, so that going back to such a model is immediate.
    """

    def __init__(
        self,
        db: Database,
        embedders: Sequence[Embedder],
        learned: ModelEmbedder | None = None,
        backfill: Backfill | None = None,
    ) -> None:
        self._db = db
        self._local = embedders
        self._learned = learned
        self._backfill = backfill

    async def reembed(self) -> dict[str, object]:
        """Embed everything again in the space of the learned model; return `space`, `missing`.

        Raises BadRequest if none is configured, and EngineFailed if it does not answer.
        """
        if self._backfill is None:
            raise BadRequest(
                'there is no learned model: engines.embedder is "hashing", whose vectors'
                " `memd reindex` computes again"
            )
        return await self._backfill.reembed()

    async def vacuum(self, *, dry_run: bool) -> VacuumReport:
        """Drop the spaces that are not in use, then compact the file; a dry run reports what that would free."""
        sizes = await self._db.read(store_vectors.measure_spaces)
        free = await self._db.read(store_vectors.free_bytes)
        unused, note = self._find_unused(sizes)
        before = await anyio.to_thread.run_sync(self._db.size)
        after = None
        if not dry_run:
            for size in unused:
                await drop_vectors(self._db, size.name)
                await self._db.write(partial(store_vectors.drop_space, name=size.name))
            await self._db.compact()
            await anyio.to_thread.run_sync(trim_heap)
            after = await anyio.to_thread.run_sync(self._db.size)
        dropped = tuple(DroppedSpace(one.name, one.vectors, one.bytes) for one in unused)
        return VacuumReport(dry_run, dropped, free, before, after, note)

    def _find_unused(self, sizes: Sequence[SpaceSize]) -> tuple[list[SpaceSize], str]:
        """Return the spaces that no embedder uses, and a note about those that may be in use."""
        used = {embedder.space.name for embedder in self._local}
        rest = [size for size in sizes if size.name not in used]
        if self._learned is None:
            return rest, ""
        current = self._learned.current
        if current is not None:
            return [size for size in rest if size.name != current.name], ""
        local = {embedder.space.provider for embedder in self._local}
        unsure = [size.name for size in rest if size.provider not in local]
        note = f"not dropped before the model answers and its space is known: {', '.join(unsure)}"
        return [size for size in rest if size.name not in unsure], note if unsure else ""
