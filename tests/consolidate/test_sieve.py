import contextlib

import pytest

from memd.consolidate.sieve import Sieve
from memd.errors import BadRequest, Broken


@pytest.fixture
def sieve():
    with contextlib.ExitStack() as stack:

        def sieve(pattern, **given):
            return stack.enter_context(contextlib.closing(Sieve(pattern, **given)))

        yield sieve


def test_what_the_pattern_finds_is_taken_out_of_texts_and_values(sieve):
    found = sieve("zeb[a-z]+").clean(["a zebra", {"k": ["zebu"]}, 7, "ü\ud83d"])
    assert found == ["a [REDACTED:scrub]", {"k": ["[REDACTED:scrub]"]}, 7, "ü\ud83d"]


@pytest.mark.parametrize("pattern", ["", "(", "x*", "a" * 1_001, "(?P<"])
def test_a_pattern_that_cannot_be_meant_is_refused(sieve, pattern):
    with pytest.raises(BadRequest, match="pattern"):
        sieve(pattern)


def test_a_pattern_that_would_search_for_ever_is_ended_and_refused(sieve):
    slow = sieve("(a+)+$", time_max_s=0.2)
    assert slow.clean(["aaa"]) == ["[REDACTED:scrub]"]
    with pytest.raises(BadRequest, match=r"longer than 0\.2 seconds"):
        slow.clean(["a" * 64 + "!"])


def test_a_process_that_was_killed_is_no_fault_of_the_pattern(sieve):
    found = sieve("zebra")
    found.close()
    with pytest.raises(Broken, match="try again"):
        found.clean(["zebra"])
