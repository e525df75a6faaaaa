"""What a forked memd finds done: all that a daemon imports, and every pattern compiled."""

import gc
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as `memd serve` does before numpy is loaded
os.environ["OMP_NUM_THREADS"] = "1"

import memd.cli.app
import memd.daemon.app
import memd.server.connection  # noqa: F401
from memd.patterns import _LazyPattern

for one in gc.get_objects():
    if type(one) is _LazyPattern:
        for method in ("search", "match", "fullmatch", "findall", "finditer", "sub", "split"):
            getattr(one, method)
gc.freeze()
