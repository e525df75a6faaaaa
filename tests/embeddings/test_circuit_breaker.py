from hypothesis import given
from hypothesis import strategies as st

from memd.embeddings import (
    HEALTHY_S,
    JITTER,
    RESTART_WAIT_MAX_S,
    TRIAL_WAIT_MIN_S,
    CircuitBreaker,
    RestartBackoff,
)

MIDDLE = 0.5
"""A jitter that changes nothing."""


def test_one_late_answer_is_bad_luck_and_two_in_a_row_open_it():
    once = CircuitBreaker().record_late(1.0, MIDDLE)
    assert once.state(1.0) == "closed"
    assert once.record_late(2.0, MIDDLE).state(2.0) == "open"
    assert CircuitBreaker().record_late(2.0, MIDDLE).state(2.0) == "closed"


def test_a_trial_that_fails_doubles_the_wait():
    first = CircuitBreaker().record_failure(0.0, MIDDLE)
    second = first.record_failure(first.due, MIDDLE)
    assert second.due - first.due == 2 * TRIAL_WAIT_MIN_S


def test_what_fails_while_it_is_open_tells_nothing_new():
    failed = CircuitBreaker().record_failure(0.0, MIDDLE)
    assert failed.record_failure(0.1, MIDDLE) == failed
    assert failed.record_late(0.1, MIDDLE) == failed


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=200))
def test_no_wait_is_longer_than_five_seconds(jitters):
    breaker, now = CircuitBreaker(), 0.0
    for jitter in jitters:
        breaker = breaker.record_failure(now, jitter)
        assert 0 < breaker.due - now <= 5.0 + 1e-9
        now = breaker.due


def waits(crashes, ran_s=0.0):
    backoff = RestartBackoff()
    for _ in range(crashes):
        backoff = backoff.after_crash(ran_s, MIDDLE)
        yield backoff.wait_s


def test_waits_double_from_one_second_to_a_minute():
    assert list(waits(8)) == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_minute_of_health_forgives_every_crash_before():
    assert RestartBackoff(crashes=9, wait_s=60).after_crash(HEALTHY_S, MIDDLE) == RestartBackoff(
        1, 1.0
    )


@given(st.integers(0, 10**9), st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_always_bounded_whatever_came_before(crashes, ran_s, jitter):
    wait_s = RestartBackoff(crashes).after_crash(ran_s, jitter).wait_s
    assert 1 - JITTER <= wait_s <= RESTART_WAIT_MAX_S * (1 + JITTER)
