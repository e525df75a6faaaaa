import numpy as np

from memd.index.copied import Layout


def test_there_is_a_quarter_more_room_for_rows_and_none_for_what_does_not_grow():
    rows = np.zeros((8_000, 3), np.int8)
    assert Layout(rows, 0).room() == (10_000, 3)
    assert Layout(rows.T, 1).room() == (3, 10_000)
    assert Layout(rows).room() == (8_000, 3)
    assert Layout(rows[:10], 0).room() == (1_034, 3)
