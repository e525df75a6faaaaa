import numpy as np

from memd.index.columns import SessionNeighbours


class Told:
    """Sessions in the order of their rows, counting what was asked."""

    def __init__(self, sessions):
        self.sessions = np.array(sessions, np.int32)
        self.asked = []

    def __call__(self, wanted):
        self.asked += sorted(wanted)
        return np.concatenate([np.flatnonzero(self.sessions == s) for s in wanted])


def neighbours(lookup, told, rows):
    before, after = lookup.neighbours(np.array(rows), told.sessions, told)
    return before.tolist(), after.tolist()


def test_each_row_has_its_neighbours_in_its_session_and_none_without_a_session():
    lookup, told = SessionNeighbours(), Told([1, 2, 1, 0, 1, 2])
    assert neighbours(lookup, told, [2, 3, 5, 0]) == ([0, -1, 1, -1], [4, -1, -1, 2])


def test_a_session_is_worked_out_once_and_again_after_it_changed():
    lookup, told = SessionNeighbours(), Told([1, 2, 1, 2])
    neighbours(lookup, told, [0, 1])
    neighbours(lookup, told, [2, 3])
    assert told.asked == [1, 2]
    told.sessions = np.array([1, 2, 1, 2, 1], np.int32)
    lookup.forget(np.array([1], np.int32))
    assert neighbours(lookup, told, [2, 3, 4]) == ([0, 1, 2], [4, -1, -1])
    assert told.asked == [1, 2, 1]


def test_a_row_that_left_its_session_has_no_neighbours():
    lookup, told = SessionNeighbours(), Told([1, 1, 1])
    neighbours(lookup, told, [0, 1, 2])
    told.sessions = np.array([1, 0, 1], np.int32)
    lookup.forget(np.array([1], np.int32))
    assert neighbours(lookup, told, [0, 1, 2]) == ([-1, -1, 0], [2, -1, -1])
