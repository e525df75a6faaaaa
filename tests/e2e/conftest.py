import itertools

import pytest

from tests.e2e.hooked_session import Session
from tests.e2e.real_daemon import RealDaemon

NUMBERS = itertools.count(1)


@pytest.fixture
def daemon(tmp_path):
    it = RealDaemon(tmp_path)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory):
    """One daemon for the tests of a module: each has a place of its own."""
    it = RealDaemon(tmp_path_factory.mktemp("d")).start()
    yield it
    it.stop()


@pytest.fixture
def place(tmp_path):
    """A project of the test's own."""
    (tmp_path / ".git").mkdir()
    return str(tmp_path)


@pytest.fixture
def says(shared_daemon, place):
    """A session of Claude Code in which the user types these prompts, distilled."""

    def say(*prompts, where=place, key=None, answer="OK."):
        session = Session(shared_daemon, key or f"said{next(NUMBERS)}", where)
        session.hook("SessionStart", source="startup")
        for prompt in prompts:
            session.asks(prompt)
            session.ends(answer)
        return session

    return say


@pytest.fixture
def call(shared_daemon, place):
    """What the daemon answers in the test's place."""

    def ask(method, **params):
        with shared_daemon.client() as client:
            return client.call(method, {"directory": place, **params})

    return ask
