"""Two daemons, two versions: the short form of `scripts/torture versions`."""

import random

import pytest

from tests.stress import versions

pytestmark = pytest.mark.usefixtures("forked_daemons")


def test_a_vault_of_the_first_version_is_all_there_and_its_index_as_if_rebuilt():
    assert versions.upgraded(versions.OLDER[0]) == []


def test_a_vault_of_a_newer_memd_is_refused_in_words_and_left_as_it_is():
    assert versions.newer_file(["serve"]) == []


def test_of_two_daemons_at_once_one_serves_and_the_other_says_who_does():
    assert versions.rivals(1, random.Random(1), 2) == []  # no secret
