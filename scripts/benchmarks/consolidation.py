"""What a run of consolidation costs, what searches notice of it, and whether it hides only duplicates.

`cost`: a daemon with a vault of generated memories consolidates new ones, a tenth of which restate older ones.
CPU is what the daemon used for a run while nothing searched; searches are timed alone and during runs in turns,
so that both see the same machine.
`pairs`: each labelled pair of tests/data/pairs.jsonl is decided as a run would decide it, for each model: a
candidate by its cosine or because both have the same normal form, then the guards. Nothing but a duplicate
may be superseded.
"""

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus, harness, metrics, minilm
from memd.belief.decide import CandidatePair, decide
from memd.config import Config
from memd.consolidate.near_duplicates import hash_text
from memd.embeddings.hashing import HashingEmbedder
from memd.models import EdgeType, Kind, Summary, Tier

LIMITS = {
    "cost, 10000 live": {"cpu_s": "<= 0.5"},
    "cost, *": {"cpu_s": "<= 3", "superseded": ">= 1", "p95 ratio": "<= 2"},
    "pairs, *": {"wrong": "<= 0", "recall of near": ">= 0.8"},
}
_RESTATED = 10
"""One in this many new memories restates an old one."""
_CPU_RUNS = 3
_RUN_S = 600.0
"""Longest wait for one run."""
_BY_REQUEST = {"consolidate.interval_s": 1_000_000}
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
            row = _measure_cost(live, options.new, options.rounds)
            figures[f"cost, {live} live"] = row
    if options.only != "cost":
        pairs = [json.loads(line) for line in _PAIRS.read_text("utf-8").splitlines()]
        for model in options.model:
            figures[f"pairs, {model}"] = _measure_pairs(model, pairs)
    return figures


class _Vault:
    """A daemon with a vault that is consolidated only when asked."""

    def __init__(self, daemon: harness.Daemon, live: int) -> None:
        self._daemon = daemon
        self._texts = corpus.Corpus()
        self._mcp = harness.Mcp(daemon.paths.socket)
        self._old = self._generate(live)
        daemon.remember(self._old)
        daemon.consolidate_all()

    def _generate(self, count: int) -> list[dict[str, Any]]:
        return list(self._texts.memories(count, int(time.time() * 1000)))

    def remember_new(self, count: int) -> None:
        """Remember new memories, some of which restate old ones."""
        memories = self._generate(count)
        for place in range(0, count, _RESTATED):
            old = self._old.pop()
            text = f"{old['text']} Indeed."
            memories[place] = {**old, "text": text, "at": memories[place]["at"]}
        self._daemon.remember(memories)

    def run(self) -> int:
        """Consolidate once; how many memories were superseded."""
        with self._daemon.client(_RUN_S) as client:
            return int(client.call("memd/consolidate")["report"]["superseded"])

    def search_while(self, is_going_on: Callable[[], bool]) -> list[float]:
        """Search while a condition holds; the seconds of each search."""
        times = []
        while is_going_on():
            (question,) = self._texts.questions(1)
            search = partial(self._mcp.tool, "mem_search", query=question, project="all")
            times.append(metrics.elapsed(search))
            time.sleep(_PAUSE_S)
        return times

    def search_alone(self) -> list[float]:
        """Search while nothing else happens."""
        end = time.perf_counter() + _ALONE_S
        return self.search_while(lambda: time.perf_counter() < end)

    def search_during_run(self) -> list[float]:
        """Search while the daemon consolidates at the request of another process.

        Two calls at a time of one process are not independent: the second waits for its turn.
        """
        run = multiprocessing.get_context("fork").Process(target=self.run)
        run.start()
        return self.search_while(run.is_alive)


def _measure_cost(live: int, new: int, rounds: int) -> dict[str, Any]:
    with harness.daemon(tuning=_BY_REQUEST) as daemon:
        vault = _Vault(daemon, live)
        cpu, superseded = [], 0
        for _ in range(_CPU_RUNS):
            vault.remember_new(new)
            before = daemon.cpu_s()
            superseded += vault.run()
            cpu.append(daemon.cpu_s() - before)
        vault.search_alone()
        alone, during = [], []
        for _ in range(rounds):
            vault.remember_new(new)
            alone += vault.search_alone()
            during += vault.search_during_run()
    idle, busy = harness.milliseconds(alone), harness.milliseconds(during)
    return {
        "cpu_s": round(statistics.median(cpu), 3),
        "superseded": superseded,
        **{f"alone {name}": value for name, value in idle.items()},
        **{f"during {name}": value for name, value in busy.items()},
        "p95 ratio": round(busy["p95"] / idle["p95"], 2),
    }


def _measure_pairs(model: str, pairs: list[dict[str, str]]) -> dict[str, Any]:
    threshold = Config().consolidate.threshold
    rows = _embed(model, [text for pair in pairs for text in (pair["a"], pair["b"])])
    cosines = (rows[::2] * rows[1::2]).sum(axis=1).tolist()
    decided = [
        (pair, _hides_as_duplicate(pair, cosine, threshold), cosine >= threshold)
        for pair, cosine in zip(pairs, cosines, strict=True)
    ]
    duplicates = [one for one in decided if one[0]["label"] == "duplicate"]
    wrong = [pair for pair, hides, _ in decided if hides and pair["label"] != "duplicate"]
    return {
        "superseded": sum(hides for _, hides, _ in decided),
        "wrong": len(wrong),
        "recall": round(statistics.mean(hides for _, hides, _ in duplicates), 4),
        "recall of near": round(statistics.mean(h for _, h, is_near in duplicates if is_near), 4),
        **({"which": "; ".join(f"{one['a']} | {one['b']}" for one in wrong)} if wrong else {}),
    }


def _embed(model: str, texts: Sequence[str]) -> NDArray[np.float32]:
    if model == "hashing":
        return np.asarray(HashingEmbedder().embed(texts), np.float32)
    return minilm.load(model).vectors(texts)


def _hides_as_duplicate(pair: dict[str, str], cosine: float, threshold: float) -> bool:
    """Whether the newer one hides the older one as its duplicate, not because it changes a value."""
    if cosine < threshold and hash_text("", pair["a"]) != hash_text("", pair["b"]):
        return False
    older = _fact(1, pair["a"], 1)
    newer = _fact(2, pair["b"], 2 if pair["class"] == "project" else 1)
    candidate = CandidatePair(newer, older, cosine if cosine >= threshold else None)
    return any(
        one.type is EdgeType.SUPERSEDES and one.change is None for one in decide([candidate])
    )


def _fact(number: int, text: str, project_id: int) -> Summary:
    return Summary(
        id=number, uid=str(number), project_id=project_id, session_id=None, kind=Kind.FACT, tier=Tier.CAPTURED,
        source="bench", title="", body=text, at=number, created_at=number, updated_at=number, rule="bench",
    )  # fmt: skip
