"""How memd's figures grow with the vault: search, its retrievers, captures, start, memory and disk.

A vault of each size, with one learned space of 768 dimensions beside the hashing space, is generated as the
daemon would have left it; then a real daemon is started on it. A million memories take long to generate:
`--keep` reuses what an earlier run generated. `scripts/bench plot FILE` draws what `--json FILE` wrote.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import harness, metrics, vault_generator

_STARTS = 3
_REST_S = 70.0
"""How long a daemon is left alone before its memory counts as idle: it gives memory back within a minute."""
_CAPTURES_S = 8.0
LIMITS = {
    "1000": {"disk KB a summary": "<= 4"},
    "10000": {
        "search p50 ms": "<= 2", "search p95 ms": "<= 4", "words × FTS5": ">= 20", "captures a second": ">= 4000",
        "start s": "<= 1.5", "idle MB": "<= 110", "disk KB a summary": "<= 4",
    },
    "100000": {
        "search p50 ms": "<= 4", "search p95 ms": "<= 8", "vectors × a scan": ">= 4", "words × FTS5": ">= 80",
        "idle MB": "<= 190", "disk KB a summary": "<= 4",
    },
    "1000000": {
        "search p50 ms": "<= 15", "search p95 ms": "<= 30", "vectors × a scan": ">= 15", "start s": "<= 3",
        "idle MB": "<= 800", "disk KB a summary": "<= 4",
    },
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument(
        "--sizes", default="1000,10000,100000,1000000", help="memories (default: %(default)s)"
    )
    metrics.add_counts(parser, searches=400)
    parser.add_argument(
        "--retrievers", type=int, default=20, metavar="N",
        help="questions to the retrievers alone (default: 20; 0: none)",
    )  # fmt: skip
    parser.add_argument("--keep", type=Path, metavar="DIR", help="reuse the vaults in DIR")


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Every figure at each size; a size is reported as soon as it is measured."""
    figures: metrics.Figures = {}
    for size in map(int, options.sizes.split(",")):
        figures[str(size)] = _measure_size(size, options.searches, options.keep)
        if options.retrievers:
            figures[str(size)] |= _retrievers(size, options.retrievers)
        print(f"{size:,}: {figures[str(size)]}", file=sys.stderr, flush=True)
    return figures


def _measure_size(size: int, searches: int, keep: Path | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="memd-growth-", ignore_cleanup_errors=True) as home:
        _generate_vault(home, size, keep)
        daemon = harness.Daemon(home)

        def start() -> float:
            daemon.stop()
            took = daemon.start()
            daemon.settle(is_distilled=False)
            return took

        try:
            start()
            time.sleep(_REST_S)
            starts = [start() for _ in range(_STARTS)]
            found = metrics.searches(daemon.paths.socket, searches)
            time.sleep(_REST_S)
            idle = daemon.rss_mb()
            daemon.stop()
            disk = metrics.vault_bytes(home) / size / 1024
            start()
            captured = metrics.captures(daemon.paths.socket, _CAPTURES_S, 16)
        finally:
            daemon.stop()
    return {
        "search p50 ms": found["p50"],
        "search p95 ms": found["p95"],
        "captures a second": captured["per_s"],
        "start s": round(statistics.median(starts), 2),
        "idle MB": round(idle, 1),
        "disk KB a summary": round(disk, 2),
    }


def _generate_vault(home: str, size: int, keep: Path | None) -> None:
    """Put a vault of this size into a home, generated now or by an earlier run."""
    target = Path(harness.Daemon(home).paths.database)
    target.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    if keep is None:
        vault_generator.fill(str(target), size)
        return
    reused = keep / str(size) / target.name
    if not reused.exists():
        reused.parent.mkdir(parents=True, exist_ok=True)
        vault_generator.fill(str(reused), size)
    # The index beside it is mostly holes, which a plain copy would fill.
    shutil.rmtree(target.parent)
    subprocess.run(["cp", "-a", "--sparse=always", reused.parent, target.parent], check=True)  # noqa: S607


def _retrievers(size: int, questions: int) -> dict[str, float]:
    """How many times as fast as their counterparts the retrievers are, in a process of its own."""
    counts = ["--rows", str(size), "--questions", str(questions)]
    command = [sys.executable, "-m", "benchmarks", "retrievers", *counts, "--json"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    figures = json.loads(done.stdout)["figures"]
    words, vectors = (figures[f"{name}, {size} rows"] for name in ("words", "vectors"))
    return {
        "vectors × a scan": vectors["ratio"],
        "vectors recall": vectors["recall"],
        "words × FTS5": words["ratio"],
    }
