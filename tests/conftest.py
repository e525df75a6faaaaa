"""What every test may lean on: the event loop, a vault in a temporary directory, a stopped clock."""

import pytest

from memd.store.database import Database


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


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
def db(tmp_path, clock):
    database = Database(str(tmp_path / "vault.db"), clock())
    yield database
    database.close()
