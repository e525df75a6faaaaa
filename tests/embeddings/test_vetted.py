import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.embeddings.provider import Refused
from memd.embeddings.vetted import vetted

GOOD = [[3.0, 4.0], [0.0, -2.0]]


def test_good_vectors_come_back_in_order_with_length_one():
    rows = vetted(GOOD, 2)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, -1.0]]


def test_whole_numbers_are_numbers():
    assert vetted([[0, 2]], 1).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "no vectors"),
        ({"a": 1}, "no vectors"),
        ("text", "no vectors"),
        ([], "0 vectors came for 2 texts"),
        ([[1.0, 2.0]], "1 vectors came for 2 texts"),
        ([*GOOD, [1.0, 1.0]], "3 vectors came for 2 texts"),
        ([[1.0, 2.0], [1.0]], "different lengths"),
        ([[1.0, 2.0], None], "different lengths"),
        ([[], []], "not a number, or nothing"),
        ([[1.0, 2.0], [None, 1.0]], "not a number"),
        ([[1.0, 2.0], ["1", "2"]], "not a number"),
        ([[1.0, 2.0], [[1.0], [2.0]]], "not a number"),
        ([[[1.0], [2.0]], [[1.0], [2.0]]], "not a number"),
        ([[1.0, 2.0], [10**400, 1]], "not a number"),
        ([1.0, 2.0], "not a number"),
        ([[1.0, 2.0], [float("nan"), 1.0]], "not finite"),
        ([[1.0, 2.0], [float("-inf"), 1.0]], "not finite"),
        ([[1.0, 2.0], [1e300, 1.0]], "not finite"),
        ([[1.0, 2.0], [0.0, 0.0]], "all zeros"),
        ([[1.0, 2.0], [1e-30, 0.0]], "all zeros"),
    ],
)
def test_what_is_no_vector_is_refused_with_a_reason(raw, reason):
    refused = vetted(raw, 2)
    assert isinstance(refused, Refused)
    assert reason in refused.reason
    assert not refused.is_length


def test_vectors_of_another_space_are_refused():
    assert vetted(GOOD, 2, dimensions=3).reason == "vectors of 2 values came, not of 3"


def test_cutting_keeps_the_first_values_and_makes_the_length_one_again():
    rows = vetted([[3.0, 4.0, 12.0]], 1, cut=2, dimensions=2)
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
    assert vetted(GOOD, 2, cut=9, dimensions=2).shape == (2, 2)


def test_a_vector_whose_beginning_is_nothing_is_refused_after_the_cut():
    assert "zeros" in vetted([[0.0, 0.0, 1.0]], 1, cut=2).reason


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=1), inner, max_size=2)
    ),
    max_leaves=12,
)


@given(_JSON, st.integers(1, 3))
def test_whatever_json_comes_it_is_refused_or_finite_and_of_length_one(raw, count):
    found = vetted(raw, count)
    if not isinstance(found, Refused):
        assert found.shape[0] == count
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
