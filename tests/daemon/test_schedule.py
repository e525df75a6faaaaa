from hypothesis import given
from hypothesis import strategies as st

from memd.daemon.schedule import HEALTHY_S, JITTER, LONGEST_WAIT_S, Patience, after_crash

MIDDLE = 0.5


def waits(crashes, ran_s=0.0):
    patience = Patience()
    for _ in range(crashes):
        patience = after_crash(patience, ran_s, MIDDLE)
        yield patience.wait_s


def test_waits_double_from_one_second_to_a_minute():
    assert list(waits(8)) == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_minute_of_health_forgives_every_crash_before():
    assert after_crash(Patience(crashes=9, wait_s=60), HEALTHY_S, MIDDLE) == Patience(1, 1.0)


def test_almost_a_minute_of_health_forgives_nothing():
    assert after_crash(Patience(crashes=2, wait_s=2), HEALTHY_S - 0.1, MIDDLE) == Patience(
        3, 4.0
    )


@given(st.integers(0, 10**9), st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_always_bounded_whatever_came_before(crashes, ran_s, jitter):
    wait_s = after_crash(Patience(crashes), ran_s, jitter).wait_s
    assert 1 - JITTER <= wait_s <= LONGEST_WAIT_S * (1 + JITTER)
