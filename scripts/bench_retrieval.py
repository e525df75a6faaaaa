"""Whether the right memory comes back first, through the shipped path.

    scripts/bench retrieval FILE… [--profile P]… [--embedder E] [--config FILE]
        [--per-type] [--json]
    scripts/bench retrieval FILE… --embedder all-minilm-standin      a real learned model

FILE holds JSON lines: {"corpus","doc","text","title"?,"ts","session"?} and {"corpus","query",
"gold":[doc…],"ts","type"}, `ts` in UTC milliseconds. A corpus is a project, `ts` the event time; each
query is asked over MCP with `as_of` its own time. A failed query ends the run. A stand-in is one of
the models of minilm.py behind Ollama's protocol; its vectors are kept, so a second run is quick, and
its times are memd's own. `degraded` counts answers that the model had no part in. Public sets of this
form: LoCoMo (snap-research/locomo, CC BY-NC 4.0), and any repository's commit messages asked for by
its news entries.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import harness

BATCH = 500
DEPTH = 10
CUTS = (1, 5, 10)
STANDIN = "-standin"
PATIENCE_S = 10.0
"""For a question's vector: quality is measured here, not what happens at a deadline."""
ENGINES = '\n[engines]\nembedder = "{}"\n'
WITHOUT = "memd, hashing only"
PUBLISHED = ("siftcoder", "covalence", "clawmem", "memoturn", "memu")
ROWS: dict[str, dict[str, Any]] = {
    "lexical only": {"profile": "lexical"},
    "vector only": {"profile": "vector"},
}
ALONE = """
[profiles.lexical]
base = "memd"
legs = {topic = 0.0, lexical = 1.0, vector = 0.0}
steps = []
[profiles.vector]
base = "siftcoder"
cosine_floor = 0.2
diversity = {per_episode = 1}
legs = {topic = 0.0, lexical = 0.0, vector = 1.0}
steps = []
"""
"""config.toml: one leg at a time, without signals; `vector` in the leading space, fused as the published do."""


def load(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The documents and the queries of a file."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [x for x in lines if "doc" in x], [x for x in lines if "query" in x]


def store(daemon: harness.Daemon, documents: list[dict[str, Any]]) -> dict[int, set[str]]:
    """Remember every document; memory id → the documents it stands for (equal texts are one memory)."""
    names: dict[int, set[str]] = defaultdict(set)
    with daemon.client() as client:
        for first in range(0, len(documents), BATCH):
            some = documents[first : first + BATCH]
            memories = [
                {
                    "text": d["text"],
                    "title": d.get("title", ""),
                    "at": d["ts"],
                    "project": d["corpus"],
                    "source": "bench",
                    **({"session": d["session"]} if d.get("session") else {}),
                }
                for d in some
            ]
            for document, kept in zip(
                some,
                client.call("memd/remember", {"memories": memories})["remembered"],
                strict=True,
            ):
                names[kept["id"]].add(document["doc"])
    daemon.settle()
    return names


def ask(
    mcp: harness.Mcp, query: dict[str, Any], names: dict[int, set[str]], row: dict[str, Any]
) -> dict[str, Any]:
    """One query's figures: ranks from an answer of ten, time and size from the default answer."""
    asked = {
        "query": query["query"][:4000],
        "project": query["corpus"],
        "as_of": query["ts"],
        **row,
    }
    began = time.perf_counter()
    answer = mcp.tool("mem_search", **asked)
    took = time.perf_counter() - began
    deep = mcp.tool("mem_search", k=DEPTH, **asked)
    found = [names[hit["id"]] for hit in deep["hits"]]
    gold = set(query["gold"])
    ranks = [rank for rank, some in enumerate(found, start=1) if some & gold]
    ideal = sum(1 / math.log2(i + 1) for i in range(1, min(len(gold), DEPTH) + 1))
    return {
        "type": query["type"],
        **{f"recall@{cut}": len(gold & set().union(*found[:cut])) / len(gold) for cut in CUTS},
        "MRR": 1 / ranks[0] if ranks else 0.0,
        "nDCG@10": sum(1 / math.log2(rank + 1) for rank in ranks) / ideal,
        "empty": not found,
        "degraded": "vector" in answer.get("degraded", {}),
        "seconds": took,
        "characters": len(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))),
    }


def summed(results: list[dict[str, Any]]) -> dict[str, float]:
    """The means over queries, and the times."""
    figures = {
        key: round(mean(r[key] for r in results) * 100, 1)
        for key in (*(f"recall@{cut}" for cut in CUTS), "MRR", "nDCG@10")
    }
    times = harness.milliseconds([r["seconds"] for r in results])
    return {
        **figures,
        "empty": sum(r["empty"] for r in results),
        "degraded": sum(r["degraded"] for r in results),
        "p50 ms": times["p50"],
        "p95 ms": times["p95"],
        "characters": round(mean(r["characters"] for r in results)),
    }


def show(name: str, rows: dict[str, dict[str, float]]) -> None:
    """A table of rows."""
    columns = list(next(iter(rows.values())))
    print(f"\n{name}")
    print(" " * 22 + "".join(f"{column:>11}" for column in columns))
    for row, figures in rows.items():
        print(f"{row:<22}" + "".join(f"{figures.get(column, ''):>11}" for column in columns))


def measure(
    path: Path,
    wanted: list[str],
    own: str,
    server: harness.ModelServer | None = None,
    *,
    per_type: bool,
) -> dict[str, dict[str, float]]:
    """Every row of the table for one file."""
    documents, queries = load(path)
    rows: dict[str, dict[str, float]] = {}
    with harness.daemon(config=ALONE + own) as daemon:
        names = store(daemon, documents)
        if server is not None:
            daemon.wait_learned()
        mcp = harness.Mcp(daemon.paths.socket)
        for label in wanted:
            row = ROWS.get(label, {"profile": label})
            before = server.spent()["seconds"] if server else 0.0
            results = [ask(mcp, query, names, row) for query in queries]
            rows[label] = summed(results)
            if server is not None:
                computing = (server.spent()["seconds"] - before) / len(queries)
                rows[label]["model ms"] = round(computing * 1000, 2)
            if per_type:
                by_type = defaultdict(list)
                for result in results:
                    by_type[result["type"]].append(result)
                rows |= {f"{label}: {t}": summed(r) for t, r in sorted(by_type.items())}
        mcp.close()
    return rows


def table(
    path: Path, wanted: list[str], own: str, options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """The rows of one file; beside a stand-in's, those of memd without it."""
    per_type = options.per_type
    if not options.embedder.endswith(STANDIN):
        own += ENGINES.format(options.embedder)
        return measure(path, wanted, own, per_type=per_type)
    with harness.model_server(options.embedder.removesuffix(STANDIN)) as server:
        learned = own + server.engines(PATIENCE_S)
        rows = measure(path, wanted, learned, server, per_type=per_type)
    alone = measure(path, ["memd"], own + ENGINES.format("hashing"), per_type=per_type)
    return rows | {label.replace("memd", WITHOUT): figures for label, figures in alone.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench retrieval")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument(
        "--profile", action="append", help="only these rows; may be given several times"
    )
    parser.add_argument(
        "--embedder",
        default="auto",
        help="engines.embedder (default: auto), or a model of minilm.py: all-minilm-standin",
    )
    parser.add_argument("--config", type=Path, help="a TOML file with profiles of your own")
    parser.add_argument("--per-type", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wanted = options.profile or [*ROWS, "memd", *PUBLISHED]
    own = options.config.read_text(encoding="utf-8") if options.config else ""
    tables = {f.name: table(f, wanted, own, options) for f in options.files}
    if options.json:
        print(json.dumps(tables))
        return
    for name, rows in tables.items():
        show(name, rows)


if __name__ == "__main__":
    main()
