"""`memd reindex`: compute everything derived anew."""

import time

from memd.cli import door

_LONG_S = 3_600.0


def run() -> None:
    """Rebuild full text and vectors from the memories. Always safe."""
    started = time.monotonic()
    door.call("memd/reindex", _LONG_S)
    print(f"done in {time.monotonic() - started:.1f} s")
