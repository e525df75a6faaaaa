"""How many events a second memd acknowledges, each redacted and committed, and how long one takes.

    scripts/bench captures [--seconds N] [--connections N] [--json]

The bar for one event at a time is one fsync of the same disk, measured in the same run, and 1 ms.
"""

import argparse
import json
from typing import Any

from benchmarks import harness, metrics

ALONE_S = 3.0


def measure(seconds: float, connections: int) -> dict[str, Any]:
    """Both figures, and what they are held against."""
    with harness.daemon() as daemon:
        metrics.captures(daemon.paths.socket, 1.0, connections, first=10_000_000)
        together = metrics.captures(daemon.paths.socket, seconds, connections)
        alone = metrics.captures(daemon.paths.socket, ALONE_S, 1, first=20_000_000)
        disk = metrics.fsync(daemon.home)
    return {
        "machine": metrics.machine(),
        "captures": {**together, "bar": "≥ 4,000 a second"},
        "one at a time": {**alone, "bar": f"p50 ≤ {disk['p50'] + 1:.2f} ms (fsync + 1 ms)"},
        "fsync": disk,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench captures")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.seconds, options.connections)
    if options.json:
        print(json.dumps(figures))
        return
    for name, values in figures.items():
        print(f"{name:<15} " + "  ".join(f"{key} {value}" for key, value in values.items()))


if __name__ == "__main__":
    main()
