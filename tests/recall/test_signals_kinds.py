import math

import pytest

from memd.index.columns import KIND_CODES
from memd.models import Kind
from memd.recall import signals


def test_every_kind_has_an_equivalent_in_the_published_systems():
    assert set(signals.KIND_MAPPINGS) == set(Kind)
    for clawmem, significance in signals.KIND_MAPPINGS.values():
        assert clawmem in signals.HALF_LIVES
        assert significance in signals.LEVELS


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
    assert signals.half_lives()[KIND_CODES[kind.value]] == days


def test_significance_is_on_a_scale_to_ten():
    assert signals.significances()[KIND_CODES["decision"]] == 8
    assert signals.significances()[KIND_CODES["change"]] == 3
    assert signals.significances().max() <= 10
