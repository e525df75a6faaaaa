"""kill -9 in the middle of anything: the short form of `scripts/torture crash`."""

import pytest

from tests.stress.crash import kills as crash

pytestmark = pytest.mark.usefixtures("forked_daemons")


def test_whatever_the_daemon_was_doing_when_it_was_killed_what_was_promised_holds():
    tally = crash.Tally()
    crash.torture(1, 4, tally, ("forgetting",))
    assert sum(tally.kills.values()) == 1
    assert tally.events
    assert tally.broken == []


def test_a_vault_that_was_killed_at_its_upgrade_is_upgraded_by_the_next_daemon():
    tally = crash.Tally()
    crash.kill_upgrades(2, 1, crash.random.Random(1), tally)
    assert tally.kills["upgrading"] == 1
    assert tally.broken == []
