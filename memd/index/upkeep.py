"""What a person may have done with derived vectors: embed them anew, or drop those that nobody asks.

The spaces of models that were used once are kept, for whoever goes back to such a model has its
vectors at once; they go when a person says so. Not here: what goes with a memory (the store's
triggers), or filling a space (backfill.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from memd.embeddings.base import Embedder, ModelEmbedder
from memd.errors import BadRequest
from memd.index.backfill import Backfill
from memd.index.gaps import clear
from memd.index.malloc import give_back
from memd.store import spaces
from memd.store.database import Database
from memd.store.spaces import Weight


@dataclass(frozen=True, slots=True)
class Dropped:
    """A space that went, or would go."""

    space: str
    vectors: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What a vacuum did, or would do. Sizes: bytes of the vault, its write-ahead log included."""

    is_dry_run: bool
    dropped: tuple[Dropped, ...]
    free: int
    """Bytes that were in the file and unused before anything was dropped."""
    before: int
    after: int | None
    """None if nothing was done."""
    note: str = ""
    """Why a space was kept although it may not be needed; else empty."""


class Upkeep:
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

    async def vacuum(self, *, dry_run: bool) -> Vacuumed:
        """Drop the spaces that nobody asks, then write the file anew; or say what that would free."""
        weights = await self._db.read(spaces.weigh)
        free = await self._db.read(spaces.free_bytes)
        stale, note = self._stale(weights)
        before = await anyio.to_thread.run_sync(self._db.size)
        after = None
        if not dry_run:
            for weight in stale:
                await self._drop(weight.name)
            await self._db.compact()
            await anyio.to_thread.run_sync(give_back)
            after = await anyio.to_thread.run_sync(self._db.size)
        dropped = tuple(Dropped(one.name, one.vectors, one.bytes) for one in stale)
        return Vacuumed(dry_run, dropped, free, before, after, note)

    def _stale(self, weights: Sequence[Weight]) -> tuple[list[Weight], str]:
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
        await clear(self._db, name)
        await self._db.write(partial(spaces.drop, name=name))
