import pytest

from tests.distill.told_sessions import ToldSession


@pytest.fixture
def session(db, clock, tmp_path):
    return ToldSession(db, clock, tmp_path)
