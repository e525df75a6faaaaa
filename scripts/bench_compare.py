"""Two commits of memd against each other on this machine, in turns: medians, and their ratios.

    scripts/bench compare OLD NEW [--summaries N] [--rounds N] [--json]

Each commit is checked out apart and serves a vault that it has filled itself, through the socket. A
ratio above 1 means that NEW takes longer (or more). The dependencies are those of this .venv.
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

from benchmarks import corpus, harness, metrics

ROOT = Path(__file__).resolve().parents[1]


class Side:
    """One commit: its checkout, and a home in which its daemon runs."""

    def __init__(self, commit: str, place: Path) -> None:
        self.commit = commit
        self._checkout = place / f"checkout-{commit}"
        git("worktree", "add", "--detach", "--force", str(self._checkout), commit)
        home = place / f"home-{commit}"
        home.mkdir()
        self.daemon = harness.Daemon(str(home))
        self.daemon.environ["PYTHONPATH"] = str(self._checkout)
        # Else the code of where this is called from would come before the checkout's.
        self.daemon.command = [sys.executable, "-P", "-m", "memd"]
        self.figures: dict[str, list[float]] = {}

    def fill(self, count: int) -> None:
        """Remember `count` made-up memories."""
        memories = list(corpus.Corpus().memories(count, int(time.time() * 1000)))
        self.daemon.start()
        self.daemon.remember(memories)
        with self.daemon.client(600) as client:
            # Else it would tidy while it is searched.
            while client.call("memd/status")["summaries"]["to_consolidate"]:
                client.call("memd/consolidate")
        self.daemon.stop()

    def search(self, searches: int) -> None:
        """One round of starting and searching."""
        self._note("start s", self.daemon.start())
        self.daemon.settle(is_distilled=False)
        self._note("idle MB", self.daemon.rss_mb())
        found = metrics.searches(self.daemon.paths.socket, searches)
        self._note("search p50 ms", found["p50"])
        self._note("search p95 ms", found["p95"])
        self.daemon.stop()

    def capture(self, number: int) -> None:
        """One round of capturing; it leaves behind what is distilled for a while."""
        self.daemon.start()
        self.daemon.settle(is_distilled=False)
        taken = metrics.captures(self.daemon.paths.socket, 4.0, 16, first=number * 1_000_000)
        self._note("captures a second", taken["per_s"])
        alone = metrics.captures(
            self.daemon.paths.socket, 1.0, 1, first=number * 1_000_000 + 500_000
        )
        self._note("one capture p50 ms", alone["p50"])
        self.daemon.stop()

    def _note(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)

    def close(self) -> None:
        """Stop what runs and take the checkout away."""
        self.daemon.stop()
        git("worktree", "remove", "--force", str(self._checkout))


def git(*words: str) -> str:
    """What git says; SystemExit if it refuses."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), *words],  # noqa: S607  # the one on the path
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def compare(old: Side, new: Side, rounds: int, searches: int) -> dict[str, dict[str, float]]:
    """Each figure of both, taken in turns, and their ratio."""
    turns = [(old, new), (new, old)] * rounds
    for pair in turns[:rounds]:
        for side in pair:
            side.search(searches)
    for number, pair in enumerate(turns[:rounds], 1):
        for side in pair:
            side.capture(number)
    return {
        name: {
            old.commit: (before := round(statistics.median(values), 2)),
            new.commit: (after := round(statistics.median(new.figures[name]), 2)),
            "ratio": round(after / before, 2) if before else 0.0,
        }
        for name, values in old.figures.items()
    }


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench compare")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--summaries", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="memd-compare-"))
    sides: list[Side] = []
    try:
        for commit in (options.old, options.new):
            short = git("rev-parse", "--short", "--verify", f"{commit}^{{commit}}")
            sides.append(Side(short, place))
            sides[-1].fill(options.summaries)
        figures = compare(sides[0], sides[1], options.rounds, options.searches)
    finally:
        for side in sides:
            side.close()
        shutil.rmtree(place, ignore_errors=True)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"noise of this machine: {metrics.noise()} (1 is none)")
    for name, values in figures.items():
        print(f"{name:<20} " + "  ".join(f"{key} {value:g}" for key, value in values.items()))


if __name__ == "__main__":
    main()
