"""The short form of `scripts/torture fuzz`: what nobody wrote is read, or refused, and nothing else happens."""

import time

import pytest
import torture_fuzz
import torture_fuzz_doors
import torture_fuzz_hooks
import torture_fuzz_matter as matters
from torture_fuzz_readers import Target

SECONDS = 0.2


@pytest.mark.parametrize("name", torture_fuzz.TARGETS)
def test_no_input_makes_it_raise_hang_or_do_half(name):
    outcome = torture_fuzz.put_through(name, 1, time.monotonic() + SECONDS, counts=False)
    assert outcome.inputs
    assert outcome.findings == {}


def test_no_line_to_a_daemon_goes_unanswered_or_is_a_fault_of_its_own():
    seen = torture_fuzz_doors.wire(1, time.monotonic() + SECONDS, counts=False)
    assert seen.wrong == []


def test_a_hook_says_nothing_wrong_and_nothing_that_it_is_given_is_lost():
    seen = torture_fuzz_hooks.hooks(1, time.monotonic() + SECONDS, counts=False)
    assert seen.wrong == []


def test_a_failure_is_found_made_small_and_can_be_repeated():
    def take(value):
        if "#" in value:
            raise LookupError("a number sign")

    target = Target(matters.Matter.text, take, "text")
    given = next(
        found for n in range(10_000) if "#" in (found := target.make(matters.drawn(n)))
    )
    what, said = torture_fuzz.failure(target, given)
    assert what.startswith("LookupError")
    assert said == "LookupError: a number sign"
    assert matters.smallest(given, lambda less: "#" in less, lambda: True) == "#"


def test_an_input_that_takes_too_long_is_a_failure():
    def take(_):
        while True:
            pass

    begun = torture_fuzz.CPU_S
    torture_fuzz.CPU_S = 0.05
    try:
        what, _ = torture_fuzz.failure(Target(matters.Matter.text, take, "text"), "")
    finally:
        torture_fuzz.CPU_S = begun
    assert what.startswith("Overtime")


def test_a_seed_makes_the_same_input_again():
    def drawn():
        return [matters.drawn(n).value() for n in range(50)]

    assert repr(drawn()) == repr(drawn())
