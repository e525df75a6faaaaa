import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.recall import retrievers
from memd.recall.retrievers import keep_highest, top_rows


@given(st.lists(st.integers(0, 6), max_size=80), st.integers(1, 12))
def test_the_highest_are_there_with_all_that_tie_and_in_order(scores, count):
    values = np.array(scores, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrievers, "_COLUMNS_MIN", 8)
        patch.setattr(retrievers, "_COLUMNS_ROOT", 1)
        rows, is_all = top_rows(values, count)
    positive = np.flatnonzero(values > 0)
    assert rows.tolist() == sorted(rows.tolist())
    if is_all:
        assert rows.tolist() == positive.tolist()
    else:
        assert len(rows) >= count
        assert rows.tolist() == np.flatnonzero(values >= values[rows].min()).tolist()
    few = keep_highest(rows, values, count)
    limit = sorted(scores, reverse=True)[:count][-1] if scores else 0
    assert few.tolist() == np.flatnonzero(values >= max(limit, 1)).tolist()


def test_scores_that_are_nearly_all_zero_or_equal_do_not_take_forever():
    values = np.zeros(1_000_000, np.float32)
    values[::5_000] = 1
    assert len(top_rows(values, 200)[0]) == 200
    assert len(top_rows(np.ones(100_000, np.float32), 200)[0]) == 100_000
