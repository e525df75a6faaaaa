"""What a forked memd finds done: all that a daemon imports, every pattern compiled and every tool described."""

import contextlib
import gc
import os
import re

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as `memd serve` does before numpy is loaded
os.environ["OMP_NUM_THREADS"] = "1"

import anyio._backends._asyncio  # noqa: F401
import numpy.ma  # noqa: F401

import memd.cli.app
import memd.daemon.app
import memd.installers.agents
import memd.server.connection  # noqa: F401
from memd.patterns import Table, _LazyPattern, _ListedPattern
from memd.server.tools import TOOLS

for one in gc.get_objects():
    if type(one) in (_LazyPattern, _ListedPattern):
        for method in ("search", "match", "fullmatch", "findall", "finditer", "sub", "split"):
            getattr(one, method)
    elif type(one) is Table:
        for name in one.rows.get("patterns", ()):
            with contextlib.suppress(re.error):  # it is only used as a list
                one[name]
for tool in TOOLS.values():
    tool.describe()
gc.freeze()
