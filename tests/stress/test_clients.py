"""Clients that misbehave beside clients that do not. How long the others wait is for `scripts/torture clients`."""

import pytest

from benchmarks import harness
from tests.stress import clients

pytestmark = pytest.mark.usefixtures("forked_daemons")

SECONDS = 0.2
SIZE = 0.1


@pytest.fixture(scope="module")
def stress(forked_daemons):  # noqa: ARG001  # before its daemon
    with harness.daemon() as daemon:
        clients.fill(daemon, 200, seed=1)
        made = clients.Stress(daemon, seed=1)
        made.measure_idle(0.1)
        yield made


@pytest.mark.parametrize(
    "name", ["crowd", "never_read", "half_open", "garbage", "long_lines", "deep_json", "flood"]
)
def test_bad_clients_do_not_harm_good_ones(stress, name):
    seen = stress.attack(name, SECONDS, SIZE)
    assert seen.search.times
    assert seen.capture.times
    assert seen.wrong == []


def test_every_request_of_very_many_on_one_socket_is_answered_once(stress):
    assert clients.send_in_flight(stress.daemon, 1_000) == []


def test_no_proxy_outlives_its_client(stress):
    before = stress.count_descriptors()
    assert clients.end_proxies(stress.daemon, 1, is_held=False) == []
    assert stress.await_descriptors(before) <= before
    assert stress.find_complaints() == []
