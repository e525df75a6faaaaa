import pytest

from tests.e2e.real_daemon import RealDaemon


@pytest.fixture
def daemon(tmp_path):
    it = RealDaemon(tmp_path)
    yield it
    it.stop()
