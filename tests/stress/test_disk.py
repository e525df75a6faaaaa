"""Bad disks: the short form of `scripts/torture disk`. Damaged files: tests/cli/test_archive_restore.py."""

import pytest

from tests.stress import disk


def holds(trial):
    """Run a trial; skipped where mounting is not allowed, or no C compiler is there."""
    try:
        wrong, seen = trial()
    except LookupError as error:
        pytest.skip(str(error))
    assert wrong == [], seen


def test_a_disk_that_runs_full_is_named_and_when_it_has_room_nothing_is_missing():
    holds(lambda: disk.full(3))


def test_one_call_that_fails_in_the_middle_of_others_costs_nothing_acknowledged():
    holds(lambda: disk.mid_call(6, 0, seed=1))
