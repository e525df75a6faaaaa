from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.store import judgments

trust = st.floats(0.1, 0.9)
counts = st.integers(1, 50)


def test_what_is_captured_begins_below_what_somebody_said():
    assert (
        judgments.captured_confidence(1.0)
        < judgments.initial_confidence("agent")
        < judgments.initial_confidence("user")
    )
    assert judgments.captured_confidence(0.4) == 0.4
    assert judgments.initial_confidence("import:elsewhere") < judgments.initial_confidence(
        "agent"
    )


def test_a_repetition_raises_it_and_each_further_one_less():
    steps = [judgments.confidence_after_repeats(0.5, 1, count) for count in range(1, 6)]
    gains = [after - before for before, after in pairwise(steps)]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > 0


def test_a_contradiction_halves_the_odds():
    assert judgments.confidence_after_contradictions(0.8, 0, 1) == pytest.approx(
        2 / 3, abs=1e-5
    )
    assert judgments.confidence_after_contradictions(0.5, 0, 1) == pytest.approx(
        1 / 3, abs=1e-5
    )


@given(trust, counts, counts, st.integers(0, 4))
def test_what_moved_it_can_be_taken_back_in_any_order(first, was, now, others):
    moved = judgments.confidence_after_contradictions(
        judgments.confidence_after_repeats(first, was, now), 0, others
    )
    back = judgments.confidence_after_repeats(
        judgments.confidence_after_contradictions(moved, others, 0), now, was
    )
    assert back == pytest.approx(first, abs=1e-3)


@given(st.floats(0, 1), counts, st.integers(0, 50))
def test_nothing_becomes_certain_or_worthless(first, times, others):
    held = judgments.confidence_after_contradictions(
        judgments.confidence_after_repeats(first, 1, times), 0, others
    )
    assert 0 <= held <= 1
