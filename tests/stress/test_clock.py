"""A clock that is wrong: the short form of `scripts/torture clock`."""

import pytest

from benchmarks import harness
from tests.forked_memd import PATIENT
from tests.stress import clock

pytestmark = pytest.mark.usefixtures("forked_daemons")


def test_what_a_clock_dated_in_2038_does_not_lead_once_it_is_right_again():
    wrong, seen = clock.trial("stood ahead", 1, 7)
    assert seen
    assert wrong == []


def test_a_clock_that_leaps_in_the_middle_of_a_turn_loses_and_shows_nothing_absurd():
    soon = {"distill.idle_s": 1, "distill.interval_s": 1}
    with harness.daemon("", clock.ClockedDaemon, soon | PATIENT) as daemon:
        clock.leaps(daemon, 0, clock.random.Random(3), few=True)
        assert daemon.wrong == []


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Havana", "Pacific/Apia"])
def test_days_lie_beside_each_other_around_every_change_of_the_clock(name):
    count, wrong = clock.tiled(name)
    assert count > 10
    assert wrong == []
