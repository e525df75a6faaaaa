"""How many events a second are stored, each redacted and committed, and how long one alone takes.

One event at a time is compared with one fsync of the same disk, measured in the same run. `CPU µs` is what an event
costs the daemon by its own CPU clock, which others on the machine change less than the rate. With `--against COMMIT`
both take turns, and `CPU, ratio` is the median over the turns (below 1: this checkout is cheaper).
"""

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks import commits, harness, metrics

LIMITS = {"captures": {"per_s": ">= 4000"}, "one at a time": {"ms over fsync": "<= 1"}}
_ALONE_S = 3.0
_FIRST_EVENTS = itertools.count(0, 10_000_000)
"""The number of each run's first event: no event is sent twice."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    metrics.add_counts(parser, seconds=6.0, rounds=5, connections=16)
    parser.add_argument("--against", metavar="COMMIT", help="take turns with this commit")


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Medians of all rounds, and the disk's."""
    chosen = [None, options.against] if options.against else [None]
    with ExitStack() as stack:
        at = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="memd-captures-", ignore_cleanup_errors=True)
        )
        sides = [
            stack.enter_context(commits.Side(commit, Path(at, str(number))))
            for number, commit in enumerate(chosen)
        ]
        for side in sides:
            side.daemon.start()
            _capture(side.daemon, 1.0, options.connections)
        rounds = [
            _take_turns(sides, number, options.seconds, options.connections)
            for number in range(options.rounds)
        ]
        daemon = sides[0].daemon
        alone = metrics.captures(daemon.paths.socket, _ALONE_S, 1, next(_FIRST_EVENTS))
        disk = metrics.fsync(daemon.home)
    figures = {
        "captures" if side.name == "now" else f"captures, {side.name}": _take_medians(found)
        for side, found in zip(sides, zip(*rounds, strict=True), strict=True)
    }
    if options.against:
        ratios = [now["CPU µs"] / before["CPU µs"] for now, before in rounds]
        figures["captures"]["CPU, ratio"] = round(statistics.median(ratios), 3)
    over = round(alone["p50"] - disk["p50"], 2)
    return {**figures, "one at a time": {**alone, "ms over fsync": over}, "fsync": disk}


def _take_turns(
    sides: Sequence[commits.Side], number: int, seconds: float, connections: int
) -> list[dict[str, float]]:
    """One round of every side, each of them first every other time."""
    found = {}
    for side in sides if number % 2 else sides[::-1]:
        found[side.name] = _capture(side.daemon, seconds, connections)
    return [found[side.name] for side in sides]


def _capture(daemon: harness.Daemon, seconds: float, connections: int) -> dict[str, float]:
    before = daemon.cpu_s()
    found = metrics.captures(daemon.paths.socket, seconds, connections, next(_FIRST_EVENTS))
    stored = found["per_s"] * seconds
    return {**found, "CPU µs": (daemon.cpu_s() - before) / stored * 1e6}


def _take_medians(rounds: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(one[name] for one in rounds), 2) for name in rounds[0]}
