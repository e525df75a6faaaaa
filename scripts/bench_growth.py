"""How memd's figures grow with the vault: search and its legs, captures, start, memory and disk.

    scripts/bench growth [--sizes 1000,10000,100000,1000000] [--searches N] [--legs N] [--keep DIR] [--json FILE]

A vault of each size, with one learned space of 768 dimensions beside the hashing space, is written by
`vault_generator.py` as the daemon would have left it (a million takes its time: `--keep` keeps what was filled
for the next run), then a real daemon is started on it. What the legs are compared with is asked N questions
at each size (`bench_legs.py`; at a million some minutes). `scripts/bench --plot FILE` draws what `--json`
wrote.
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
from typing import Any

from benchmarks import harness, metrics, vault_generator

SIZES = "1000,10000,100000,1000000"
STARTS = 3
REST_S = 26.0
"""So long a daemon is left alone before its memory counts as idle."""
CAPTURES_S = 8.0
_LEGS = str(Path(__file__).with_name("bench_legs.py"))
BARS: dict[str, dict[int, float]] = {
    "search p50 ms": {10_000: 2, 100_000: 4, 1_000_000: 15},
    "search p95 ms": {10_000: 4, 100_000: 8, 1_000_000: 30},
    "vectors × a scan": {100_000: 4, 1_000_000: 15},
    "words × FTS5": {10_000: 20, 100_000: 80},
    "captures a second": {10_000: 4_000},
    "start s": {10_000: 1.5, 1_000_000: 3},
    "idle MB": {10_000: 110, 100_000: 190, 1_000_000: 800},
    "disk KB a summary": {1_000: 4, 10_000: 4, 100_000: 4, 1_000_000: 4},
}


def filled(home: str, size: int, keep: Path | None) -> None:
    """Put a vault of this size into a home, as it was kept or made anew."""
    target = Path(harness.Daemon(home).paths.database)
    target.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    kept = target if keep is None else keep / f"{size}.db"
    if not kept.exists():
        vault_generator.fill(str(kept), size, learned=True)
    if keep is not None:
        shutil.copy(kept, target)
        # Its arrays are mostly holes, which a plain copy would fill.
        copy = ["cp", "-r", "--sparse=always", f"{kept}.shelf", f"{target}.shelf"]
        subprocess.run(copy, check=Path(f"{kept}.shelf").is_dir(), stderr=subprocess.DEVNULL)


def measure(size: int, searches: int, keep: Path | None) -> dict[str, float]:
    """Every figure at one size."""
    home = tempfile.mkdtemp(prefix="memd-growth-")
    try:
        filled(home, size, keep)
        daemon = harness.Daemon(home)
        daemon.start()
        daemon.settle(is_distilled=False)
        time.sleep(REST_S)
        daemon.stop()
        starts = []
        for _ in range(STARTS):
            starts.append(daemon.start())
            daemon.settle(is_distilled=False)
            daemon.stop()
        daemon.start()
        daemon.settle(is_distilled=False)
        found = metrics.searches(daemon.paths.socket, searches)
        time.sleep(REST_S)
        idle = daemon.rss_mb()
        daemon.stop()
        disk = metrics.vault_bytes(home) / size / 1024
        daemon.start()
        daemon.settle(is_distilled=False)
        captured = metrics.captures(daemon.paths.socket, CAPTURES_S, 16)
        daemon.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return {
        "search p50 ms": found["p50"],
        "search p95 ms": found["p95"],
        "captures a second": captured["per_s"],
        "start s": round(statistics.median(starts), 2),
        "idle MB": round(idle, 1),
        "disk KB a summary": round(disk, 2),
    }


def legs(size: int, questions: int) -> dict[str, float]:
    """How many times as fast the legs are as what they are compared with."""
    command = [
        sys.executable,
        _LEGS,
        "--rows",
        str(size),
        "--questions",
        str(questions),
        "--json",
    ]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    return {
        "vectors × a scan": found["vectors"]["ratio"],
        "vectors recall": found["vectors"]["recall"],
        "words × FTS5": found["words"]["ratio"],
    }


_MORE_IS_BETTER = ("vectors × a scan", "words × FTS5", "captures a second")


def told(figures: dict[int, dict[str, float]]) -> None:
    """A line a figure, each size with its bar."""
    for name in next(iter(figures.values())):
        cells = []
        for size, values in figures.items():
            bar = BARS.get(name, {}).get(size)
            sign = "≥" if name in _MORE_IS_BETTER else "≤"
            told = f" ({sign} {bar:g})" if bar is not None else ""
            cells.append(f"{size:>9,}: {values[name]:g}{told}")
        print(f"{name:<18} " + "  ".join(cells))


def main() -> None:
    """Measure each size and print; with --json also write."""
    parser = argparse.ArgumentParser(prog="scripts/bench growth")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--searches", type=int, default=400)
    parser.add_argument("--legs", type=int, default=20, help="questions to the legs; 0: none")
    parser.add_argument("--keep", type=Path, help="a directory for filled vaults")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine: dict[str, Any] = metrics.machine()
    print("  ".join(f"{key} {value}" for key, value in machine.items()))
    figures: dict[int, dict[str, float]] = {}
    for size in map(int, options.sizes.split(",")):
        figures[size] = measure(size, options.searches, options.keep)
        if options.legs:
            figures[size] |= legs(size, options.legs)
        print(f"{size:,}: {figures[size]}", flush=True)
    told(figures)
    if options.json:
        options.json.write_text(
            json.dumps({"machine": machine, "figures": figures}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
