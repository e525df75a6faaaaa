"""Embed passages that lack a vector; re-embed; drop spaces."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memd import log
from memd.config import EnginesConfig
from memd.embeddings.base import Embedder, ModelEmbedder, Vectors
from memd.errors import BadRequest, EngineAbsent, EngineFailed
from memd.index.chunking import passage_text
from memd.index.malloc import trim_heap
from memd.index.memory_index import MemoryIndex
from memd.index.quantization import decode_vectors, encode_vectors, is_float16
from memd.models import Space
from memd.store import fulltext
from memd.store import vectors as store_vectors
from memd.store.database import Connection, Database
from memd.store.vectors import SpaceSize
from memd.wakeup import AutoResetEvent

_CLEARED_AT_ONCE = 500
"""Vectors that one transaction drops: captures must not wait for all of them."""


@dataclass(frozen=True, slots=True)
class MissingVectors:
    """What to do for some passages that the index lacks."""

    stored: Mapping[int, bytes]
    """Passage id → the vector that the vault has."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """Passage id → what to embed."""


def find_missing(
    tx: Connection, space: Space, passage_ids: Sequence[int], limit: int
) -> MissingVectors:
    """Look these passages up; texts only if no vector is stored, and of the first `limit` alone."""
    stored = store_vectors.vectors_of(tx, space.name, passage_ids)
    return (
        MissingVectors(stored)
        if stored
        else MissingVectors({}, texts_to_embed(tx, passage_ids[:limit]))
    )


def texts_to_embed(tx: Connection, passage_ids: Sequence[int]) -> dict[int, str]:
    """Passage id → what to embed, in the order given; those that have gone are left out."""
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
    """Store one row per passage and put it on the index; how many passages were still there.

    A row of zeros is kept, too: it says that there is nothing to embed.
    """
    # Who waits for this may give up, but not between the commit and the index.
    with anyio.CancelScope(shield=True):
        coded = await anyio.to_thread.run_sync(encode_vectors, rows)
        pairs = dict(zip(passage_ids, coded, strict=True))
        kept = await db.write(
            lambda tx: store_vectors.put_existing_vectors(
                tx, store_vectors.ensure_space(tx, space), pairs.items()
            )
        )
        await fill_index(index, space, {number: pairs[number] for number in kept})
    return len(kept)


async def fill_index(index: MemoryIndex, space: Space, stored: Mapping[int, bytes]) -> None:
    """Put vectors on the index as the vault has them."""

    def put() -> None:
        rows = decode_vectors(list(stored.values()), space.dimensions)
        index.fill(space.name, list(stored), rows)

    await anyio.to_thread.run_sync(put)


async def recode_old_vectors(db: Database, space: Space, stored: Mapping[int, bytes]) -> None:
    """Write those of these vectors anew that a memd before this one has written, in half the bytes."""
    former = {n: blob for n, blob in stored.items() if is_float16(blob, space.dimensions)}
    if former:
        coded = encode_vectors(decode_vectors(list(former.values()), space.dimensions))
        pairs = list(zip(former, coded, strict=True))
        await db.write(
            lambda tx: store_vectors.put_existing_vectors(
                tx, store_vectors.ensure_space(tx, space), pairs
            )
        )


async def drop_vectors(db: Database, space_name: str) -> None:
    """Take all vectors of a space out of the vault, a part at a time."""
    part = partial(store_vectors.drop_vectors, name=space_name, limit=_CLEARED_AT_ONCE)
    while await db.write(part):
        pass


_REST = 0.5
"""Of the time that a batch took: who searches meanwhile shares the interpreter with us."""
_LOOK_S = 60.0
"""How long to sleep when nobody rings."""
_AGAIN_S = (1.0, 2.0, 5.0, 15.0, 30.0)
"""How long to sleep when the model does not answer, unless it rings."""
_READ_AT_ONCE = 2_048
"""Vectors that are read from the vault for one look at the index."""
_RATED = 20
"""Batches by which the rate is told."""
_FAILURES_ALONE = 3
_PROBE = "Is anybody there?"


class Backfill:
    """Keeps the learned space of the index, and of the vault, as complete as the model allows."""

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
        """Held while the vault and the index differ; never while a model is asked."""
        self._failures = 0
        self._why = ""
        self._size = config.batch
        """Texts to ask for at once: half as many after a failure, twice as many after a success."""
        self._suspect = (0, 0)
        """The passage that was asked for alone last, and how often it failed."""
        self._rates: deque[tuple[int, int]] = deque(maxlen=_RATED)
        """(ms, passages) of the last batches."""
        self._begun: int | None = None
        """When the work at hand began; None while there is none."""

    async def run(self) -> None:
        """Fill for ever: what is missing now, then whatever somebody rings for."""
        while True:
            await self._wakeup.wait(await self._work())

    def nudge(self) -> None:
        """Tell it that memories were indexed, or that the model answers."""
        self._wakeup.set()

    def status(self) -> dict[str, object]:
        """Tell `space`, `active`, `done`, `missing`, `rate_per_s`, `eta_s`, and `why` it waits, if it does."""
        space = self._index.learned
        done, rows = self._index.counts(space or "")
        missing = rows - done
        rate = self._rate() if missing else None
        return {
            "space": space,
            "active": space is not None and self._index.active == space,
            "done": done,
            "missing": missing,
            "rate_per_s": rate and round(rate, 1),
            "eta_s": round(missing / rate) if rate else None,
            "why": self._why,
        }

    def _rate(self) -> float | None:
        took = sum(ms for ms, _ in self._rates)
        return 1000 * sum(count for _, count in self._rates) / took if took else None

    async def reembed(self) -> dict[str, object]:
        """Drop the vectors of the model's space and begin anew, in the background: `space`, `missing`.

        Raises EngineFailed, with nothing dropped, if the model does not answer now.
        """
        await self._learned.documents([_PROBE])
        space = self._learned.current
        if space is None:
            raise EngineFailed(f"no learned model has answered yet: {self._learned.why_not}")
        async with self._lock:
            await anyio.to_thread.run_sync(self._index.adopt_learned_space, space)
            await drop_vectors(self._db, space.name)
            await anyio.to_thread.run_sync(self._index.empty_learned_space)
        self._begun = None
        self.nudge()
        return {"space": space.name, "missing": self._index.columns.live_count}

    async def _work(self) -> float:
        """Fill what is missing for as long as the model answers; how long to sleep then."""
        try:
            started = anyio.current_time()
            while await self._batch():
                self._failures, self._why = 0, ""
                await anyio.sleep(_REST * (anyio.current_time() - started))
                started = anyio.current_time()
        except EngineFailed as error:
            self._failures += 1
            self._why = error.message
            return _AGAIN_S[min(self._failures, len(_AGAIN_S)) - 1]
        return _LOOK_S

    async def _batch(self) -> bool:
        """Give some passages their vectors; whether there may be more to do."""
        space = self._learned.current
        if space is None or not self._index.loaded:
            self._why = "" if self._learned.is_ready else self._learned.why_not
            return False
        await anyio.to_thread.run_sync(self._index.adopt_learned_space, space)
        lacking = await anyio.to_thread.run_sync(
            self._index.missing_vectors, space.name, _READ_AT_ONCE
        )
        if not lacking:
            self._finish(space)
            return False
        async with self._lock:
            gap = await self._db.read(lambda tx: find_missing(tx, space, lacking, self._size))
            if gap.stored:
                await fill_index(self._index, space, gap.stored)
                await recode_old_vectors(self._db, space, gap.stored)
                return True
        # A memory that has just gone leaves passages on the index until the index follows, and rings.
        return bool(gap.texts) and await self._embed(space, gap)

    async def _embed(self, space: Space, gap: MissingVectors) -> bool:
        """Ask the model; False if it is no use asking."""
        if not self._learned.is_ready:
            raise EngineFailed(self._learned.why_not)
        started = self._clock()
        self._begun = self._begun or started
        rows = await self._ask(gap.texts, space)
        if self._learned.current != space:
            # Another model may have answered: nobody can say whose vectors these are.
            return True
        async with self._lock:
            kept = await save_vectors(self._db, self._index, space, list(gap.texts), rows)
        self._rates.append((self._since(started), kept))
        return True

    def _since(self, started: int) -> int:
        """How long a batch took, in ms: a clock that is set meanwhile must not tell years, nor less than nothing."""
        return min(max(0, self._clock() - started), int(self._config.batch_s * 1000))

    async def _ask(self, texts: Mapping[int, str], space: Space) -> Vectors:
        """Return a row a text; of zeros for a text that alone makes a model fail that is there."""
        try:
            rows = await self._learned.documents(list(texts.values()))
        except EngineAbsent:
            raise
        except EngineFailed as error:
            if not self._is_at_fault(list(texts)):
                raise
            (number,) = texts
            log.get(self.name).warning("text_not_taken", passage=number, reason=error.message)
            return np.zeros((1, space.dimensions), np.float32)
        self._size = min(self._config.batch, 2 * self._size)
        return rows

    def _is_at_fault(self, passage_ids: Sequence[int]) -> bool:
        """Whether it was the text: it was asked alone, and failed again and again.

        In between the model was ready each time, so it had taken another text.
        """
        if len(passage_ids) > 1:
            self._size = len(passage_ids) // 2
            return False
        again = self._suspect[0] == passage_ids[0]
        self._suspect = (passage_ids[0], self._suspect[1] + 1 if again else 1)
        return self._suspect[1] >= _FAILURES_ALONE

    def _finish(self, space: Space) -> None:
        self._why = ""
        if self._begun is not None:
            took, self._begun = max(0, self._clock() - self._begun), None
            log.get(self.name).info("space_completed", space=space.name, took_ms=took)


@dataclass(frozen=True, slots=True)
class DroppedSpace:
    """A space that went, or would go."""

    space: str
    vectors: int
    bytes: int


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a vacuum did, or would do. Sizes: bytes of the vault, its write-ahead log included."""

    is_dry_run: bool
    dropped: tuple[DroppedSpace, ...]
    free: int
    """Bytes that were in the file and unused before anything was dropped."""
    before: int
    after: int | None
    """None if nothing was done."""
    note: str = ""
    """Why a space was kept although it may not be needed; else empty."""


class VectorMaintenance:
    """Over one vault; with a learned model, also over what fills its space."""

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
        """Embed everything anew in the space of the learned model: `space`, `missing`.

        Raises BadRequest if memd is set to do without one, and EngineFailed if it does not answer.
        """
        if self._backfill is None:
            raise BadRequest(
                'there is no learned model: engines.embedder is "hashing", whose vectors'
                " `memd reindex` computes anew"
            )
        return await self._backfill.reembed()

    async def vacuum(self, *, dry_run: bool) -> VacuumReport:
        """Drop the spaces that nobody asks, then write the file anew; or say what that would free."""
        weights = await self._db.read(store_vectors.measure_spaces)
        free = await self._db.read(store_vectors.free_bytes)
        stale, note = self._stale(weights)
        before = await anyio.to_thread.run_sync(self._db.size)
        after = None
        if not dry_run:
            for weight in stale:
                await self._drop(weight.name)
            await self._db.compact()
            await anyio.to_thread.run_sync(trim_heap)
            after = await anyio.to_thread.run_sync(self._db.size)
        dropped = tuple(DroppedSpace(one.name, one.vectors, one.bytes) for one in stale)
        return VacuumReport(dry_run, dropped, free, before, after, note)

    def _stale(self, weights: Sequence[SpaceSize]) -> tuple[list[SpaceSize], str]:
        used = {embedder.space.name for embedder in self._local}
        rest = [weight for weight in weights if weight.name not in used]
        if self._learned is None:
            return rest, ""
        current = self._learned.current
        if current is not None:
            return [weight for weight in rest if weight.name != current.name], ""
        local = {embedder.space.provider for embedder in self._local}
        kept = [weight.name for weight in rest if weight.provider not in local]
        note = f"kept until the model answers and tells which is its: {', '.join(kept)}"
        return [weight for weight in rest if weight.name not in kept], note if kept else ""

    async def _drop(self, name: str) -> None:
        await drop_vectors(self._db, name)
        await self._db.write(partial(store_vectors.drop_space, name=name))
