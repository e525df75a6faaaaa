import pytest

from memd.recall.types import ScorePart, apply_parts


def test_a_score_is_its_parts_in_order():
    # (0.5 + 0.3) * 2 = 1.6, capped at 1
    assert (
        apply_parts(
            [
                ScorePart("a", 0.5),
                ScorePart("b", 0.3),
                ScorePart("c", 2.0, "*"),
                ScorePart("d", 1.0, "<"),
            ]
        )
        == 1.0
    )
    assert apply_parts(
        [ScorePart("a", 0.5), ScorePart("c", 2.0, "*"), ScorePart("b", 0.3)]
    ) == pytest.approx(1.3)
    assert apply_parts([]) == 0.0
