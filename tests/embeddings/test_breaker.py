from hypothesis import given
from hypothesis import strategies as st

from memd.embeddings.breaker import FIRST_WAIT_S, Breaker

MIDDLE = 0.5
"""A jitter that changes nothing."""


def test_a_failure_opens_it_until_it_is_due():
    failed = Breaker().failed(10.0, MIDDLE)
    assert failed.state(10.0) == "open"
    assert failed.state(10.0 + FIRST_WAIT_S) == "half-open"


def test_one_late_answer_is_bad_luck_and_two_in_a_row_open_it():
    once = Breaker().was_late(1.0, MIDDLE)
    assert once.state(1.0) == "closed"
    assert once.was_late(2.0, MIDDLE).state(2.0) == "open"
    assert once.succeeded().was_late(2.0, MIDDLE).state(2.0) == "closed"


def test_a_trial_that_fails_doubles_the_wait_and_one_that_succeeds_closes_it():
    first = Breaker().failed(0.0, MIDDLE)
    second = first.failed(first.due, MIDDLE)
    assert second.due - first.due == 2 * FIRST_WAIT_S
    assert second.succeeded() == Breaker()


def test_what_fails_while_it_is_open_tells_nothing_new():
    failed = Breaker().failed(0.0, MIDDLE)
    assert failed.failed(0.1, MIDDLE) == failed
    assert failed.was_late(0.1, MIDDLE) == failed


def test_a_late_trial_counts_as_failed():
    failed = Breaker().failed(0.0, MIDDLE)
    assert failed.was_late(failed.due, MIDDLE).trials == 2


def test_it_can_be_had_tried_at_once():
    assert Breaker().failed(5.0, MIDDLE).now_due().state(5.0) == "half-open"
    assert Breaker().now_due() == Breaker()


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=200))
def test_no_wait_is_longer_than_five_seconds_so_whoever_returns_is_found(jitters):
    breaker, now = Breaker(), 0.0
    for jitter in jitters:
        breaker = breaker.failed(now, jitter)
        assert 0 < breaker.due - now <= 5.0 + 1e-9
        now = breaker.due
