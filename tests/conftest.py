"""What every test may lean on: the event loop, a vault in a temporary directory, a stopped clock."""

import contextlib
import functools
import gc
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

from memd import log
from memd.capture import ignore
from memd.store import database
from tests.factories import open_new_vault

# Property tests try the same examples on every machine, as many as it takes to see the code broken;
# `scripts/torture properties` tries new and more ones.
PATIENT = settings(
    deadline=None, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.register_profile("ci", PATIENT, derandomize=True, max_examples=30)
settings.register_profile("stress", PATIENT, derandomize=False, max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
ORDER_SEED = 1
"""The tests run in this shuffled order unless --randomly-seed names another one."""


TESTS = Path(__file__).parent
MEMORY = Path("/dev/shm")  # noqa: S108  # tests write there what they would write to the disk
MEMORY_BYTES_MIN = 4 << 30
"""Free bytes there, so that nothing else is short of memory; what tests leave is removed as they end."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if config.getoption("randomly_seed", None) == "default":
        config.option.randomly_seed = ORDER_SEED
    # Vaults are written safely, and waiting for a disk took a third of the time of tests that write.
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES_MIN:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
        tempfile.tempdir = str(MEMORY)
    if config.args == config.getini("testpaths") and hasattr(config, "workerinput"):
        config.args = _rotate_directories(config.workerinput)


def _rotate_directories(worker):
    """Have each worker collect from another directory on: together they compile each file once, not each all."""
    entries = sorted(str(one) for one in TESTS.iterdir() if one.is_dir() or one.name[:5] == "test_")
    begin = len(entries) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    return entries[begin:] + entries[:begin]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collecting makes a million objects that all stay: looking for garbage among them took a third of its time, and
    looking through them again each time that a test leaves some."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# Thousands of vaults are opened here: two readers instead of four save 2 ms of each, patterns compiled once 6.
database.READERS = 2
ignore.parse_pattern = functools.cache(ignore.parse_pattern)


STARTING_DAEMONS = {"cli", "e2e", "stress"}
"""Directories of tests that mostly wait for other processes, with the longest files."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Those come first: at the end of a run nothing would be left to do beside them."""
    items.sort(key=lambda item: STARTING_DAEMONS.isdisjoint(item.path.parts))


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def plain_log():
    """Log lines as the daemon writes them; structlog's own default reads source files to be pretty."""
    log.configure(None, level="info", max_bytes=1, redact=str)


MAY_BLOCK = {
    "memd/paths.py": {"__init__", "private_dir", "find_writer_dirs"},  # once, at the start
    "memd/server/listener.py": {"remove"},  # at the end
    "memd/daemon/process.py": {
        "unmark_stopped",
        "mark_stopped",
        "remove_socket_directory",
    },  # at the start and the end
    "memd/daemon/status.py": {"software_versions"},  # once, then remembered
    "memd/daemon/backup.py": {"remove_leftovers"},  # once, at the start
    # Once, then remembered; and in the writer's thread, where tests write in their own.
    "memd/store/database.py": {"migrations", "_identify_file"},
    "memd/daemon/doctor.py": {"refuse_emptied_vault", "open_vault"},  # the same
    "memd/daemon/follower.py": {"_read_states"},  # once, at the start
    "memd/daemon/app.py": {"_make_follower"},  # the same
    "memd/log.py": {"configure"},
    "memd/sharing/workers.py": {"hash_host"},  # once, at the start
    "logging/handlers.py": {"emit", "shouldRollover"},  # a line of the log
    "memd/client.py": {
        "connect",
        "_send",
        "_read_result",
        "_read_answer",
    },  # synchronous; tests call it
    "memd/capture/spool.py": {"append", "measure"},  # the hook's side, called by tests themselves
}


@pytest.fixture(scope="session", autouse=True)
def no_blocking_calls():
    """Nothing in memd may hold the event loop up: files, sockets and sleeps belong in threads."""
    with blockbuster_ctx("memd") as watch:
        for function in watch.functions.values():
            for file, names in MAY_BLOCK.items():
                function.can_block_in(file, names)
        yield


class StoppedClock:
    """UTC milliseconds that stand still until a test moves them."""

    def __init__(self, now=1_800_000_000_000):
        self.now = now

    def __call__(self):
        return self.now

    def advance(self, *, s=0, ms=0):
        self.now += s * 1000 + ms


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def set_zone(monkeypatch):
    """Set the local time zone for one test: what a page calls a day does not depend on the machine's."""

    def set_zone(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def db(tmp_path, clock):
    with contextlib.closing(open_new_vault(tmp_path / "vault.db", clock())) as opened:
        yield opened
