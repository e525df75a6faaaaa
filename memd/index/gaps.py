"""Passages that have no vector in a space yet: what is to be embedded, and how the vectors get there.

A vector that the vault has and the index lacks is no gap: it is read, not computed again. So a crash
between the two, a model that comes back, and a start are the same case. Not here: who embeds, when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memd.index.blobs import decode, encode, is_former
from memd.index.chunking import wording
from memd.index.memory_index import MemoryIndex
from memd.models import Space
from memd.store import fulltext, spaces, vectors
from memd.store.database import Connection, Database

_CLEARED_AT_ONCE = 500
"""Vectors that one transaction drops: captures must not wait for all of them."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What to do for some passages that the index lacks."""

    stored: Mapping[int, bytes]
    """Passage id → the vector that the vault has."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """Passage id → what to embed."""


def look(tx: Connection, space: Space, passage_ids: Sequence[int], limit: int) -> Gap:
    """Look these passages up; texts only if no vector is stored, and of the first `limit` alone."""
    stored = vectors.of(tx, space.name, passage_ids)
    return Gap(stored) if stored else Gap({}, texts(tx, passage_ids[:limit]))


def texts(tx: Connection, passage_ids: Sequence[int]) -> dict[int, str]:
    """Passage id → what to embed, in the order given; those that have gone are left out."""
    found = {
        number: wording(title, body, start, stop)
        for number, start, stop, title, body in fulltext.texts(tx, passage_ids)
    }
    return {number: found[number] for number in passage_ids if number in found}


async def bring(
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
        coded = await anyio.to_thread.run_sync(encode, rows)
        pairs = dict(zip(passage_ids, coded, strict=True))
        kept = await db.write(
            lambda tx: vectors.put_where_wanted(
                tx, vectors.ensure_space(tx, space), pairs.items()
            )
        )
        await restore(index, space, {number: pairs[number] for number in kept})
    return len(kept)


async def restore(index: MemoryIndex, space: Space, stored: Mapping[int, bytes]) -> None:
    """Put vectors on the index as the vault has them."""

    def put() -> None:
        rows = decode(list(stored.values()), space.dimensions)
        index.fill(space.name, list(stored), rows)

    await anyio.to_thread.run_sync(put)


async def recode(db: Database, space: Space, stored: Mapping[int, bytes]) -> None:
    """Write those of these vectors anew that a memd before this one has written, in half the bytes."""
    former = {n: blob for n, blob in stored.items() if is_former(blob, space.dimensions)}
    if former:
        coded = encode(decode(list(former.values()), space.dimensions))
        pairs = list(zip(former, coded, strict=True))
        await db.write(
            lambda tx: vectors.put_where_wanted(tx, vectors.ensure_space(tx, space), pairs)
        )


async def clear(db: Database, space_name: str) -> None:
    """Take all vectors of a space out of the vault, a part at a time."""
    part = partial(spaces.clear, name=space_name, limit=_CLEARED_AT_ONCE)
    while await db.write(part):
        pass
