"""Three machines that share one memory: the short form of `scripts/torture sync`."""

import random

import pytest

from tests.stress import sync

pytestmark = pytest.mark.usefixtures("forked_daemons")


def test_machines_killed_while_they_sync_end_up_with_one_memory_and_no_byte_of_what_was_forgotten():
    wrong, seen = sync.share("folder", 9, random.Random(6004))  # no secret
    assert wrong == []
    assert " 0 forgotten" not in seen
    assert " 0 syncs cut off" not in seen
