import math

import pytest

from memd.index.postings import idf


def test_the_idf_is_lucenes_and_never_negative():
    assert idf(10, 2) == pytest.approx(math.log(1 + 8.5 / 2.5))
    assert idf(10, 10) > 0
