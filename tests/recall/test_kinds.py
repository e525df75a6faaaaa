import math

import pytest

from memd.index.columns import KIND_CODES
from memd.models import Kind
from memd.recall import kinds


def test_every_kind_is_like_something_that_was_published_and_says_why():
    assert set(kinds.KINDS) == set(Kind)
    for like in kinds.KINDS.values():
        assert like.clawmem in kinds.HALF_LIVES
        assert like.significance in kinds.LEVELS
        assert len(like.why) > 5


@pytest.mark.parametrize(
    ("kind", "days"),
    [
        (Kind.DECISION, math.inf),
        (Kind.PREFERENCE, math.inf),
        (Kind.DISCOVERY, 90),
        (Kind.FIX, 60),
        (Kind.NOTE, 60),
        (Kind.CHANGE, 45),
        (Kind.SESSION, 30),
    ],
)
def test_half_lives_are_looked_up_by_kind_code(kind, days):
    assert kinds.half_lives()[KIND_CODES[kind.value]] == days


def test_significance_is_on_a_scale_to_ten():
    assert kinds.significances()[KIND_CODES["decision"]] == 8
    assert kinds.significances()[KIND_CODES["change"]] == 3
    assert kinds.significances().max() <= 10
