"""What `memd sync` costs: a first sync of generated memories, one with nothing new, and one with a single new memory.

Two daemons share a folder. `sends` has the vault, `reads` begins empty. Seconds by the clock of the whole command, and
of the daemon's CPU; the reader's until all is in its vault, the index follows.
"""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks import harness, metrics, vault_generator

_CONFIG = "[engines]\nembedder = 'hashing'\n[sync]\nplace = \"{place}\"\ninterval_s = 0\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("--sizes", default="10000", help="memories (default: %(default)s)")


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Seconds of each kind of sync for each size."""
    figures: metrics.Figures = {}
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="memd-sync-") as place:
            config = _CONFIG.format(place=place)
            with harness.stopped_daemon(config) as sends, harness.daemon(config) as reads:
                vault = Path(sends.paths.database)
                vault.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
                vault_generator.fill(str(vault), size)
                sends.start()
                sends.settle()
                for what in ("first", "nothing new", "one new memory"):
                    if what.startswith("one"):
                        sends.remember(
                            [{"text": f"The one of {size} that is new", "directory": "/a"}]
                        )
                    for name, daemon in (("sends", sends), ("reads", reads)):
                        figures[f"{what}, {name}, {size:,}"] = _time_sync(daemon)
    return figures


def _time_sync(daemon: harness.Daemon) -> dict[str, float]:
    began, cpu_s = time.perf_counter(), daemon.cpu_s()
    done = daemon.run("sync")
    if done.returncode:
        raise SystemExit(f"memd sync failed: {done.stderr.decode()}")
    took = time.perf_counter() - began
    return {"s": round(took, 2), "daemon CPU s": round(daemon.cpu_s() - cpu_s, 2)}
