"""What a tick of consolidation costs, and what searches notice of it.

    scripts/bench consolidate [--live N …] [--new N] [--rounds N] [--json]

In one process, as in the daemon: a vault of made-up memories with an index, then ticks over new ones,
a tenth of which restate older ones. CPU is what all threads of the process used for a tick while
nobody searched. Searches are timed in turns: a while alone, a while during a tick, so that both see
the same machine. Exit code 1 if a bar is missed: CPU per tick at most 0.5 s over 10,000 live memories
and 3 s over 100,000, and the searches' p95 during ticks at most twice what it is without.
"""

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from benchmarks import corpus, harness
from memd.config import Config
from memd.consolidate.consolidator import Consolidator
from memd.embeddings.hashing import HashingEmbedder
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.models import Draft, Kind
from memd.recall.answer import Question
from memd.recall.recaller import Recaller
from memd.store import projects, summaries
from memd.store.database import Connection, Database

BARS_S = {10_000: 0.5, 100_000: 3.0}
RATIO = 2.0
BATCH = 1_000
RESTATED = 10
"""Of new memories, every so manieth says again what an old one says."""
ALONE_S = 0.5
PAUSE_S = 0.005
"""Between two searches: one person searches, not a crowd."""


def clock() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


class Bench:
    """A vault, its index, its consolidator and its searches."""

    def __init__(self, path: str) -> None:
        config = Config()
        embedder = HashingEmbedder()
        self.db = Database(path, clock())
        self.index = MemoryIndex(config.engines.active_from)
        self.indexer = Indexer(self.db, (embedder,), self.index, config.index)
        self.recaller = Recaller(
            self.db, (embedder,), self.index, config.recall, config.profiles, None
        )
        self.consolidator = Consolidator(
            self.db, self.index, embedder.space.name, config.consolidate, clock, lambda: None
        )
        self._corpus = corpus.Corpus()
        self._questions = itertools.cycle(self._corpus.questions(400))
        self._numbers = itertools.count(1)
        self._old: list[dict[str, Any]] = []
        self._project = self.db.write_now(
            lambda tx: projects.ensure_project(tx, "/bench", "bench", "", clock())
        )

    async def put(self, count: int, *, is_new: bool) -> None:
        """Write memories and index them; those that are not new count as looked at."""
        given = list(self._corpus.memories(count, clock()))
        if is_new:
            for place in range(0, count, RESTATED):
                old = self._old[next(self._numbers) % len(self._old)]
                given[place] = {**old, "text": str(old["text"]).upper(), "at": clock()}
        else:
            self._old = given
        for first in range(0, count, BATCH):
            part = given[first : first + BATCH]
            await self.db.write(lambda tx, part=part: self._write(tx, part, is_new=is_new))
        await self.indexer.settle()

    def _write(self, tx: Connection, given: Sequence[dict[str, Any]], *, is_new: bool) -> None:
        owner = summaries.Owner(self._project, None, "bench")
        for one in given:
            draft = Draft(
                "turn", Kind(one["kind"]), one["title"], one["text"], one["at"], "bench", ()
            )
            summaries.put(tx, f"bench-{next(self._numbers)}", draft, owner, clock())
        if not is_new:
            tx.execute("UPDATE summaries SET consolidated = 1")

    async def search(self, is_over: Callable[[], bool]) -> list[float]:
        """One search after another until it is over; the seconds that each took."""
        times = []
        while not is_over():
            question = Question(next(self._questions), clock(), (self._project,))
            began = time.perf_counter()
            await self.recaller.search(question)
            times.append(time.perf_counter() - began)
            await anyio.sleep(PAUSE_S)
        return times

    async def search_alone(self) -> list[float]:
        """Search while nothing else happens."""
        end = time.perf_counter() + ALONE_S
        return await self.search(lambda: time.perf_counter() > end)

    async def search_beside(self) -> list[float]:
        """Search while a tick works."""
        done: list[object] = []

        async def tick() -> None:
            done.append(await self.consolidator.tick())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            return await self.search(lambda: bool(done))


async def measure(live: int, new: int, rounds: int) -> dict[str, Any]:
    """The figures over one vault of `live` memories."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(str(Path(folder, "v.db")))
        await bench.put(live, is_new=False)
        while (await bench.consolidator.tick()).has_more:
            pass
        cpu, superseded = [], 0
        for _ in range(3):
            await bench.put(new, is_new=True)
            began = time.process_time()
            superseded += (await bench.consolidator.tick()).superseded
            cpu.append(time.process_time() - began)
        await bench.search_alone()
        alone, beside = [], []
        for _ in range(rounds):
            await bench.put(new, is_new=True)
            alone += await bench.search_alone()
            beside += await bench.search_beside()
        bench.db.close()
    ratio = harness.milliseconds(beside)["p95"] / harness.milliseconds(alone)["p95"]
    return {
        "live": live, "new": new, "cpu_s": round(statistics.median(cpu), 3), "superseded": superseded,
        "alone": {**harness.milliseconds(alone), "searches": len(alone)},
        "beside": {**harness.milliseconds(beside), "searches": len(beside)},
        "ratio": round(ratio, 2),
        "fits": statistics.median(cpu) <= BARS_S.get(live, 3.0) and ratio <= RATIO,
    }  # fmt: skip


def main() -> None:
    """Print the figures; exit with 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--live", type=int, nargs="+", default=list(BARS_S))
    parser.add_argument("--new", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = []
    for live in given.live:
        found.append(anyio.run(measure, live, given.new, given.rounds))
        one = found[-1]
        if not given.json:
            print(
                f"{live:,} live, {given.new:,} new: {one['cpu_s']} s of CPU per tick (bar"
                f" {BARS_S.get(live, 3.0)}); search p50/p95 alone {one['alone']['p50']}/{one['alone']['p95']} ms,"
                f" beside {one['beside']['p50']}/{one['beside']['p95']} ms: × {one['ratio']} (bar {RATIO})"
            )
    if given.json:
        print(json.dumps(found))
    raise SystemExit(0 if all(one["fits"] for one in found) else 1)


if __name__ == "__main__":
    main()
