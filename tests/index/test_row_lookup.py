import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index import columns
from memd.index.columns import RowLookup


def walked(column, wanted):
    return np.flatnonzero(np.isin(column, wanted)).tolist()


STEPS = st.lists(
    st.one_of(
        st.lists(st.integers(0, 9), min_size=1, max_size=9),
        st.tuples(st.integers(0, 99), st.integers(0, 9)),
    ),
    max_size=12,
)


@given(STEPS, st.lists(st.integers(0, 11), max_size=4))
def test_what_is_found_is_what_walking_all_rows_would_find(steps, wanted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_UNSORTED_MIN", 5)
        patch.setattr(columns, "_STRAYS_MAX", 3)
        found, column = RowLookup(), np.zeros(0, np.int32)
        for step in steps:
            if isinstance(step, list):
                column = np.append(column, np.array(step, np.int32))
            elif len(column):
                row, value = step[0] % len(column), step[1]
                column[row] = value
                found.changed(np.array([row]))
            assert found.rows(column, wanted).tolist() == walked(column, wanted)


def test_rows_come_once_and_ascending_however_they_are_asked_for():
    column = np.array([7, 5, 7, 1], np.int64)
    assert RowLookup().rows(column, [7, 1, 7]).tolist() == [0, 2, 3]
    assert RowLookup().rows(column, []).tolist() == []
