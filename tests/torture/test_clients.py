import pytest
import torture_clients
import torture_clients_bridges

from benchmarks import harness

SECONDS = 0.2
SIZE = 0.1
FLOOR_MS = 100.0
"""Below this, idle times on a busy machine say nothing."""


@pytest.fixture(scope="module")
def torture():
    with harness.daemon() as daemon:
        torture_clients.fill(daemon, 200, seed=1)
        made = torture_clients.Torture(daemon, seed=1)
        made.quiet(0.1)
        yield made


@pytest.mark.parametrize(
    "name", ["crowd", "never_read", "half_open", "garbage", "long_lines", "deep_json", "flood"]
)
def test_bad_clients_do_not_harm_good_ones(torture, name):
    seen = torture.attack(name, SECONDS, SIZE)
    assert seen.search.times
    assert torture_clients.judged(seen, (FLOOR_MS, FLOOR_MS)) == []


def test_every_request_of_very_many_on_one_socket_is_answered_once(torture):
    assert torture_clients.in_flight(torture.daemon, 1_000) == []


def test_no_bridge_outlives_its_client(torture):
    before = torture.descriptors()
    assert torture_clients_bridges.bridges(torture.daemon, 1, is_held=False) == []
    assert torture.settled(before) <= before
    assert torture.unhealthy() == []
