"""What a run of consolidation costs, what searches notice of it, and whether it hides only duplicates.

`cost`: in one process, as in the daemon, a vault of generated memories with an index, then runs over new ones,
a tenth of which restate older ones. CPU is what all threads of the process used for a run while nothing
searched; searches are timed alone and during runs in turns, so that both see the same machine.
`pairs`: each labelled pair of tests/data/pairs.jsonl is decided as a run would decide it, for each model: a
candidate by its cosine or because both have the same normal form, then the guards. Nothing but a duplicate
may be superseded.
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
import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus, harness, metrics, minilm
from memd.config import Config
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.decide import Pair, Relate, Supersede, decide
from memd.consolidate.near_duplicates import form_of
from memd.embeddings.hashing import HashingEmbedder
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.models import Draft, Kind, Summary, Tier
from memd.recall.recaller import Recaller
from memd.recall.types import Question
from memd.store import projects, summaries
from memd.store.database import Connection, Database

LIMITS = {
    "cost, 10000 live": {"cpu_s": "<= 0.5"},
    "cost, *": {"cpu_s": "<= 3", "p95 ratio": "<= 2"},
    "pairs, *": {"wrong": "<= 0", "recall of near": ">= 0.8"},
}
_BATCH = 1_000
_RESTATED = 10
"""One of so many new memories restates an old one."""
_CPU_RUNS = 3
_ALONE_S = 0.5
_PAUSE_S = 0.005
"""Between two searches: one user searches, not a crowd."""
_PAIRS = harness.ROOT / "tests" / "data" / "pairs.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("--only", choices=("cost", "pairs"), help="default: both")
    parser.add_argument(
        "--live", type=int, nargs="+", default=[10_000, 100_000], metavar="N",
        help="live memories (default: 10,000 and 100,000)",
    )  # fmt: skip
    metrics.add_counts(parser, new=500, rounds=8)
    parser.add_argument(
        "--model", nargs="+", choices=("hashing", *minilm.MODELS), default=["hashing", "all-minilm"],
        help="for the pairs (default: hashing and all-minilm)",
    )  # fmt: skip


def measure(options: argparse.Namespace) -> metrics.Figures:
    """A row per size of the vault, and one per model."""
    figures: metrics.Figures = {}
    if options.only != "pairs":
        for live in options.live:
            row = anyio.run(_measure_cost, live, options.new, options.rounds)
            figures[f"cost, {live} live"] = row
    if options.only != "cost":
        pairs = [json.loads(line) for line in _PAIRS.read_text("utf-8").splitlines()]
        for model in options.model:
            figures[f"pairs, {model}"] = _measure_pairs(model, pairs)
    return figures


def _now() -> int:
    return time.time_ns() // 1_000_000


class _Vault:
    """A vault with its index, its consolidator and its searches."""

    def __init__(self, path: str) -> None:
        config = Config()
        embedder = HashingEmbedder()
        self.db = Database(path, _now())
        index = MemoryIndex(config.engines.active_from)
        self.indexer = Indexer(self.db, (embedder,), index, config.index)
        self.recaller = Recaller(
            self.db, (embedder,), index, config.recall, config.profiles, None
        )
        self.consolidator = Consolidator(
            self.db, index, embedder.space.name, config.consolidate, _now, lambda: None
        )
        self._corpus = corpus.Corpus()
        self._questions = itertools.cycle(self._corpus.questions(400))
        self._numbers = itertools.count(1)
        self._old: list[dict[str, Any]] = []
        self._project = self.db.write_now(
            lambda tx: projects.ensure_project(tx, "/bench", "bench", "", _now())
        )

    async def put(self, count: int, *, is_new: bool) -> None:
        """Write memories and index them; those that are not new count as consolidated."""
        memories = list(self._corpus.memories(count, _now()))
        if is_new:
            for place in range(0, count, _RESTATED):
                old = self._old[next(self._numbers) % len(self._old)]
                memories[place] = {**old, "text": str(old["text"]).upper(), "at": _now()}
        else:
            self._old = memories
        for first in range(0, count, _BATCH):
            batch = memories[first : first + _BATCH]
            await self.db.write(lambda tx, batch=batch: self._write(tx, batch, is_new=is_new))
        await self.indexer.settle()

    def _write(
        self, tx: Connection, memories: Sequence[dict[str, Any]], *, is_new: bool
    ) -> None:
        owner = summaries.Owner(self._project, None, "bench")
        for one in memories:
            draft = Draft(
                "turn", Kind(one["kind"]), one["title"], one["text"], one["at"], "bench", ()
            )
            summaries.put_summaries(tx, f"bench-{next(self._numbers)}", draft, owner, _now())
        if not is_new:
            tx.execute("UPDATE summaries SET consolidated = 1")

    async def search_until(self, is_over: Callable[[], bool]) -> list[float]:
        """Search until a condition holds; the seconds of each search."""
        times = []
        while not is_over():
            question = Question(next(self._questions), _now(), (self._project,))
            began = time.perf_counter()
            await self.recaller.search(question)
            times.append(time.perf_counter() - began)
            await anyio.sleep(_PAUSE_S)
        return times

    async def search_alone(self) -> list[float]:
        """Search while nothing else happens."""
        end = time.perf_counter() + _ALONE_S
        return await self.search_until(lambda: time.perf_counter() > end)

    async def search_during_run(self) -> list[float]:
        """Search while a run works."""
        done: list[object] = []

        async def run() -> None:
            done.append(await self.consolidator.tick())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            return await self.search_until(lambda: bool(done))


async def _measure_cost(live: int, new: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        vault = _Vault(str(Path(folder, "v.db")))
        await vault.put(live, is_new=False)
        while (await vault.consolidator.tick()).has_more:
            pass
        cpu, superseded = [], 0
        for _ in range(_CPU_RUNS):
            await vault.put(new, is_new=True)
            began = time.process_time()
            superseded += (await vault.consolidator.tick()).superseded
            cpu.append(time.process_time() - began)
        await vault.search_alone()
        alone, during = [], []
        for _ in range(rounds):
            await vault.put(new, is_new=True)
            alone += await vault.search_alone()
            during += await vault.search_during_run()
        vault.db.close()
    before, after = harness.milliseconds(alone), harness.milliseconds(during)
    return {
        "cpu_s": round(statistics.median(cpu), 3),
        "superseded": superseded,
        **{f"alone {name}": value for name, value in before.items()},
        **{f"during {name}": value for name, value in after.items()},
        "p95 ratio": round(after["p95"] / before["p95"], 2),
    }


def _measure_pairs(model: str, pairs: list[dict[str, str]]) -> dict[str, Any]:
    threshold = Config().consolidate.threshold
    rows = _embed(model, [text for pair in pairs for text in (pair["a"], pair["b"])])
    cosines = (rows[::2] * rows[1::2]).sum(axis=1).tolist()
    decided = [
        (pair, _decide(pair, cosine, threshold) == "supersedes", cosine >= threshold)
        for pair, cosine in zip(pairs, cosines, strict=True)
    ]
    duplicates = [one for one in decided if one[0]["label"] == "duplicate"]
    wrong = [pair for pair, hides, _ in decided if hides and pair["label"] != "duplicate"]
    return {
        "superseded": sum(hides for _, hides, _ in decided),
        "wrong": len(wrong),
        "recall": round(statistics.mean(hides for _, hides, _ in duplicates), 4),
        "recall of near": round(
            statistics.mean(h for _, h, is_near in duplicates if is_near), 4
        ),
        **({"which": "; ".join(f"{one['a']} | {one['b']}" for one in wrong)} if wrong else {}),
    }


def _embed(model: str, texts: Sequence[str]) -> NDArray[np.float32]:
    if model == "hashing":
        return np.asarray(HashingEmbedder().embed(texts), np.float32)
    return minilm.load(model).vectors(texts)


def _decide(pair: dict[str, str], cosine: float, threshold: float) -> str:
    """`supersedes`, `contradicts`, `similar_to`, or `none` if it is no candidate."""
    if cosine < threshold and form_of("", pair["a"]) != form_of("", pair["b"]):
        return "none"
    older = _fact(1, pair["a"], 1)
    newer = _fact(2, pair["b"], 2 if pair["class"] == "project" else 1)
    for move in decide([Pair(newer, older, cosine if cosine >= threshold else None)]):
        if isinstance(move, Supersede):
            return "supersedes"
        if isinstance(move, Relate):
            return move.type.value
    return "none"


def _fact(number: int, text: str, project_id: int) -> Summary:
    return Summary(
        id=number, uid=str(number), project_id=project_id, session_id=None, kind=Kind.FACT, tier=Tier.CAPTURED,
        source="bench", title="", body=text, at=number, created_at=number, updated_at=number, rule="bench",
    )  # fmt: skip
