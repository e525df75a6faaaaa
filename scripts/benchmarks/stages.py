"""Where the CPU time of a search goes: stage by stage, in this process, on a generated vault.

    scripts/bench stages --rows 10000

CPU time of the searching thread hardly depends on what else the machine does. A stage is without the stages in it.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from benchmarks import corpus, metrics, vault_generator
from memd.config import Config
from memd.embeddings.hashing import HashingEmbedder
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.recall import Question, likelihood, precedence, ranking, recaller, retrievers, search
from memd.store.database import Database

_WARM_UP = 50
_NOW = 1_800_000_000_000
_STAGES: dict[str, list[tuple[Any, str]]] = {
    "words to terms": [(retrievers, "look_up_query")],
    "words": [(likelihood.QueryLikelihood, "score_rows"), (retrievers, "best_rows")],
    "vectors": [(search, "_compare_vectors")],
    "context": [(likelihood.QueryLikelihood, "context")],
    "fusing and signals": [(ranking, "score_candidates")],
    "what holds": [(precedence, "read_relations"), (precedence, "find_precedence")],
    "order": [(search, "order_candidates"), (retrievers, "find_near_pairs")],
    "page and snippets": [(search, "fetch_hits")],
    "the rest of the search": [(search, "_answer_query")],
    "verdict": [(recaller, "judge_answer")],
}
"""Stage → the functions that are timed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    metrics.add_counts(parser, rows=10_000, searches=200)


def measure(options: argparse.Namespace) -> metrics.Figures:
    """A row per stage, and one of all."""
    spent: Counter[str] = Counter()
    _time_stages(spent)
    with tempfile.TemporaryDirectory(prefix="memd-stages-") as folder:
        path = str(Path(folder, "default.db"))
        vault_generator.fill(path, options.rows)
        totals, stages = anyio.run(_search, path, options.searches, spent)
    rows = {
        name: {"CPU ms": round(spent_s * 1000 / options.searches, 2)}
        for name, spent_s in stages.most_common()
    }
    whole = {
        "CPU ms": round(statistics.mean(totals), 2),
        "p50": round(statistics.median(totals), 2),
    }
    return {"all": whole, **rows}


async def _search(path: str, count: int, spent: Counter[str]) -> tuple[list[float], Counter[str]]:
    """The milliseconds of each search, and the seconds of each stage in all of them."""
    index, embedder = MemoryIndex(), HashingEmbedder()
    db = Database(path, _NOW)
    await Indexer(db, [embedder], index).load()
    asked = recaller.Recaller(db, [embedder], index, Config().recall, {})
    totals, stages = [], Counter[str]()
    for number, text in enumerate(corpus.Corpus(seed=11).questions(count + _WARM_UP)):
        spent.clear()
        await asked.search(Question(text=text, now=_NOW, count_use=False))
        if number >= _WARM_UP:
            totals.append(1000 * spent.total())
            stages.update(spent)
    return totals, stages


def _time_stages(spent: Counter[str]) -> None:
    """Add to `spent` the CPU time that the functions of each stage take, without that of stages in them."""
    nested: list[float] = []

    def timed(stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **more: Any) -> Any:
            began = time.thread_time()
            nested.append(0.0)
            try:
                return work(*args, **more)
            finally:
                took = time.thread_time() - began
                spent[stage] += took - nested.pop()
                if nested:
                    nested[-1] += took

        return run

    for stage, functions in _STAGES.items():
        for owner, name in functions:
            setattr(owner, name, timed(stage, getattr(owner, name)))
