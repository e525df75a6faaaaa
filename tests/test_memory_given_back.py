import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
from memd import caches

caches.limit_arenas()


def resident():
    with open("/proc/self/status", encoding="utf-8") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


before = resident()
held = [np.ones(90_000, np.uint8) for _ in range(400)]
last = held[-1]
del held
caches.trim_heap()
assert resident() - before < 10, (before, resident())
assert last.sum() == 90_000
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_what_was_used_and_freed_goes_back_although_something_is_left():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)
