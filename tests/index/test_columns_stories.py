import numpy as np

from memd.index.columns import Stories


class Told:
    """Sessions in the order of their rows, counting what was asked."""

    def __init__(self, sessions):
        self.sessions = np.array(sessions, np.int32)
        self.asked = []

    def __call__(self, wanted):
        self.asked += sorted(wanted)
        return np.concatenate([np.flatnonzero(self.sessions == s) for s in wanted])


def sides(stories, told, rows):
    before, after = stories.beside(np.array(rows), told.sessions, told)
    return before.tolist(), after.tolist()


def test_each_row_has_those_beside_it_in_its_session_and_none_without_a_session():
    stories, told = Stories(), Told([1, 2, 1, 0, 1, 2])
    assert sides(stories, told, [2, 3, 5, 0]) == ([0, -1, 1, -1], [4, -1, -1, 2])


def test_a_session_is_worked_out_once_and_again_after_it_changed():
    stories, told = Stories(), Told([1, 2, 1, 2])
    sides(stories, told, [0, 1])
    sides(stories, told, [2, 3])
    assert told.asked == [1, 2]
    told.sessions = np.array([1, 2, 1, 2, 1], np.int32)
    stories.forget(np.array([1], np.int32))
    assert sides(stories, told, [2, 3, 4]) == ([0, 1, 2], [4, -1, -1])
    assert told.asked == [1, 2, 1]


def test_a_row_that_left_is_beside_nobody():
    stories, told = Stories(), Told([1, 1, 1])
    sides(stories, told, [0, 1, 2])
    told.sessions = np.array([1, 0, 1], np.int32)
    stories.forget(np.array([1], np.int32))
    assert sides(stories, told, [0, 1, 2]) == ([-1, -1, 0], [2, -1, -1])
