"""`memd reindex`: compute everything derived anew."""

import time

from memd.cli import door, show

_LONG_S = 3_600.0


def run() -> None:
    """Rebuild full text and vectors from the memories. Always safe."""
    started = time.monotonic()
    door.call("memd/reindex", _LONG_S)
    took = time.monotonic() - started
    count = door.call("memd/status")["summaries"]["count"]
    print(f"done in {took:.1f} s: {show.plural(count, 'memory')}")
