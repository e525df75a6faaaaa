import pytest

from tests.e2e.house import House


@pytest.fixture
def house(tmp_path):
    it = House(tmp_path)
    yield it
    it.stop()
