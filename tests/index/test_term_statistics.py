import math

import numpy as np
import pytest

from memd.index.postings import TermStatistics, idf


def test_the_idf_is_lucenes_and_never_negative():
    assert idf(10, 2) == pytest.approx(math.log(1 + 8.5 / 2.5))
    assert idf(10, 10) > 0


def test_a_word_is_counted_once_and_only_among_these_rows():
    asked = []

    def frequency(term, mask):
        asked.append((term, mask is None))
        return 3

    some = TermStatistics(np.array([True, False, True]), frequency)
    assert (some.count, some.df(7), some.df(7)) == (2, 3, 3)
    every = TermStatistics(np.ones(3, np.bool_), frequency)
    assert every.idf(7) == idf(3, 3)
    assert asked == [(7, False), (7, True)]
    assert (some.is_everything, every.is_everything) == (False, True)
