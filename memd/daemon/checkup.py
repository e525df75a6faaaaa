"""What `memd doctor` finds and mends in a vault: in the daemon that serves it, or beside none.

Looking is one snapshot. Mending takes away what refers to nothing, takes in what waits in the spool,
and computes everything derived anew where something of it was wrong; no truth is touched. Not here:
the files around the vault (premises.py), Claude Code and service managers (setup/checkup.py).
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread

from memd.config import IndexConfig
from memd.daemon import lock
from memd.embeddings.hashing import HashingEmbedder
from memd.errors import Broken, VaultCorrupt
from memd.index import check
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.models import Finding
from memd.paths import Paths
from memd.store import integrity, sweeping
from memd.store.database import Database, open_database
from memd.store.snapshot import snapshot

_SETTLE_S = 2.0
"""How long a look waits for the indexer to have learnt what was just written."""
_SWEPT = {"references", "provenance", "vectors"}
"""Findings that are mended by taking rows away; all others need the index computed anew."""


class Drains(Protocol):
    """Takes in what waits in the spool."""

    async def drain(self) -> int:
        """How many lines that was; SpoolBroken if a place of it cannot be read."""


class Checkup:
    """Looks at one open vault. `intake` is None where no daemon takes events in."""

    def __init__(
        self,
        db: Database,
        indexer: Indexer,
        intake: Drains | None,
        tokens_max: int,
        clock: Callable[[], int],
    ) -> None:
        self._db = db
        self._indexer = indexer
        self._intake = intake
        self._tokens_max = tokens_max
        self._clock = clock

    async def examine(self) -> list[Finding]:
        """Say what is right and wrong with the vault."""
        with anyio.move_on_after(_SETTLE_S):
            await self._indexer.settle()
        return await self._look()

    async def mend(self) -> list[str]:
        """Mend what can be mended without touching truth, and say what was done."""
        done = []
        if self._intake is not None and (lines := await self._intake.drain()):
            done.append(f"took in {lines} lines of the spool")
        wrong = await self._fixable()
        if wrong:
            gone = await self._db.write(sweeping.sweep)
            done += [f"took away {count} rows of {table}" for table, count in gone.items()]
            wrong |= await self._fixable()
        if wrong - _SWEPT:
            await self._indexer.reindex()
            done.append("computed full text and vectors anew")
        return done

    async def _fixable(self) -> set[str]:
        return {one.name for one in await self._look() if one.fixable}

    async def _look(self) -> list[Finding]:
        look = partial(examined, self._db.path, self._tokens_max, self._clock(), is_served=True)
        return await anyio.to_thread.run_sync(look)


def examined(path: str, tokens_max: int, now: int, *, is_served: bool) -> list[Finding]:
    """Look at a vault: by its tables, and by a sample of it indexed anew. `now`: UTC milliseconds.

    Whatever keeps it from being read is a finding, too. It is read through a connection of its own: in
    one that was open before, FTS5 checks the rows of now by the structure that it had once read.
    """
    try:
        with snapshot(path) as tx:
            found = integrity.examine(tx, now, is_served=is_served)
            if any(one.name == "passages" for one in found):
                found.append(check.check_sample(tx, tokens_max))
                found.append(check.check_snapshot(tx, path, HashingEmbedder()))
            return found
    except VaultCorrupt as error:
        return [Finding("database", "problem", error.message, integrity.RESTORE)]
    except Broken as error:
        return [Finding("database", "problem", error.message)]


def mend_unserved(paths: Paths, settings: IndexConfig, now: int) -> list[str]:
    """Mend a vault that no daemon serves, as its only holder. Raises AlreadyRunning or a VaultError."""

    async def work() -> list[str]:
        indexer = Indexer(db, (HashingEmbedder(),), MemoryIndex(), settings)
        return await Checkup(db, indexer, None, settings.passage_tokens, lambda: now).mend()

    with lock.held(paths.lock, now, "repair"), open_database(paths.database, now) as db:
        return anyio.run(work)
