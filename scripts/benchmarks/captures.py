"""How many events a second are stored, each redacted and committed, and how long one alone takes.

One event at a time is compared with one fsync of the same disk, measured in the same run.
"""

import argparse

from benchmarks import harness, metrics

LIMITS = {"captures": {"per_s": ">= 4000"}, "one at a time": {"ms over fsync": "<= 1"}}
_ALONE_S = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    metrics.add_counts(parser, seconds=30.0, connections=16)


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Both figures, and the disk's."""
    with harness.daemon() as daemon:
        socket, connections = daemon.paths.socket, options.connections
        metrics.captures(socket, 1.0, connections, first=10_000_000)
        together = metrics.captures(socket, options.seconds, connections)
        alone = metrics.captures(socket, _ALONE_S, 1, first=20_000_000)
        disk = metrics.fsync(daemon.home)
    over = round(alone["p50"] - disk["p50"], 2)
    return {"captures": together, "one at a time": {**alone, "ms over fsync": over}, "fsync": disk}
