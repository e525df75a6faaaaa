import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.recall.ranking import RetrieverRanking, fuse_rankings


def ranking(*pairs):
    return RetrieverRanking(
        np.array([c for c, _ in pairs], dtype=np.int64),
        np.array([s for _, s in pairs], dtype=np.float64),
    )


def test_reciprocal_rank_fusion_as_published():
    # candidate 0: ranks (1, 4) -> 1/61 + 1/64 = 0.03202; candidate 1: ranks (12, 1) -> 1/72 + 1/61 = 0.03028
    lexical = ranking((0, 9), *((i, 8.0 - i / 10) for i in range(2, 12)), (1, 1))
    vector = ranking((1, 0.9), (12, 0.8), (13, 0.7), (0, 0.6))
    added = fuse_rankings(
        {"lexical": lexical, "vector": vector},
        {"lexical": 1, "vector": 1},
        fusion="rrf",
        rrf_k=60,
        count=14,
    )
    total = added["lexical"] + added["vector"]
    assert total[:2] == pytest.approx([0.03202, 0.03028], abs=1e-5)


def test_a_leg_adds_nothing_to_what_it_did_not_return():
    added = fuse_rankings(
        {"lexical": ranking((1, 5.0))}, {"lexical": 1}, fusion="rrf", rrf_k=60, count=2
    )
    assert added["lexical"].tolist() == [0, 1 / 61]


def test_the_best_of_a_leg_has_its_whole_weight_under_max():
    added = fuse_rankings(
        {"lexical": ranking((0, 8.0), (1, 2.0))},
        {"lexical": 0.5},
        fusion="max",
        rrf_k=60,
        count=2,
    )
    assert added["lexical"] == pytest.approx([0.5, 0.125])


def test_standardised_scores_have_mean_nought_and_deviation_one():
    # scores 3, 1: mean 2, deviation 1 -> +1, -1
    added = fuse_rankings(
        {"lexical": ranking((0, 3.0), (1, 1.0))},
        {"lexical": 2},
        fusion="zscore",
        rrf_k=60,
        count=2,
    )
    assert added["lexical"] == pytest.approx([2, -2])


def test_memus_fusion_squares_the_cosine_and_ranks_the_words():
    # by meaning 0.7·0.8² = 0.448 and 0.7·0.5² = 0.175, below nought: 0; by words 0.3/(1 + 0.2·i), i from 0
    added = fuse_rankings(
        {
            "vector": ranking((1, 0.8), (0, 0.5), (2, -0.1)),
            "lexical": ranking((0, 7.0), (1, 3.0), (2, 1.0)),
        },
        {"vector": 0.7, "lexical": 0.3},
        fusion="squared",
        rrf_k=60,
        count=4,
    )
    assert added["vector"] == pytest.approx([0.175, 0.448, 0, 0])
    assert added["lexical"] == pytest.approx([0.3, 0.25, 0.3 / 1.4, 0])


@pytest.mark.parametrize("fusion", ["rrf", "max", "zscore", "squared"])
def test_equal_scores_empty_legs_and_weights_of_nought_make_no_trouble(fusion):
    legs = {
        "lexical": ranking((0, 2.0), (1, 2.0)),
        "vector": ranking(),
        "topic": ranking((0, 1.0)),
    }
    added = fuse_rankings(legs, {"lexical": 1, "topic": 0}, fusion=fusion, rrf_k=60, count=3)
    assert all(np.isfinite(values).all() for values in added.values())
    assert not added["topic"].any()


def test_ranks_count_from_one_and_absence_is_said():
    r = ranking((2, 5.0), (0, 4.0))
    assert r.ranks(3).tolist() == [2, 0, 1]
    assert np.isnan(r.values(3)[1])


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.sampled_from(["rrf", "max", "zscore", "squared"]),
)
def test_a_leg_never_puts_a_lower_score_above_a_higher_one(scores, fusion):
    scores = sorted(scores, reverse=True)
    added = fuse_rankings(
        {"l": ranking(*enumerate(scores))}, {"l": 1}, fusion=fusion, rrf_k=60, count=len(scores)
    )["l"]
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(added))
