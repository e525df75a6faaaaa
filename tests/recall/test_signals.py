"""Every formula against numbers worked out by hand."""

import math

import numpy as np
import pytest

from memd.index.columns import KIND_CODES
from memd.models import Kind
from memd.recall import profiles
from tests.tables import every_row


def f(*values):
    return np.array(values, dtype=np.float64)


def test_ages_are_days_and_the_future_has_none():
    ages = profiles.ages_in_days(np.array([0, 86_400_000, 200_000_000]), 86_400_000)
    assert ages.tolist() == [1.0, 0.0, 0.0]


@every_row(
    ("found", "expected"),
    [
        # siftcoder: exp(-1/7) = 0.8669; exp(-30/7) = exp(-4.2857) = 0.01377
        (profiles.exponential_decay(f(0, 1, 30), 7), [1, 0.8669, 0.01377]),
        # covalence: 1/(1+0/365) = 1; one year: 1/2; two: 1/3; a day: 365/366 = 0.99727
        (profiles.hyperbolic_decay(f(0, 365, 730, 1), 365), [1, 0.5, 1 / 3, 365 / 366]),
        # 1 - 0.1*log10(1+9) = 0.9; 1 - 0.1*log10(1+99) = 0.8
        (profiles.logarithmic_decay(f(0, 9, 99)), [1, 0.9, 0.8]),
        # core 1/61, file 1/62, agent and captured 1/63
        (profiles.tier_share(np.arange(4, dtype=np.int8), 60), [1 / 61, 1 / 62, 1 / 63, 1 / 63]),
        # clawmem
        (profiles.quality_factor(f(0, 0.5, 1)), [0.7, 1.0, 1.3]),
        # up to 500: 1; 1000: 1/(1+0.5*1) = 0.6667; 2000: 1/(1+0.5*2) = 0.5; 2^40*500: 1/21 -> floor 0.3
        (
            profiles.length_factor(np.array([0, 500, 1000, 2000, 500 * 2**40])),
            [1, 1, 2 / 3, 0.5, 0.3],
        ),
        # 1 revision, 1 copy: ln(1) = 0 -> 1; 2 revisions: 0.03*ln(3) = 0.03296; many: capped at 0.10
        (
            profiles.frequency_factor(np.array([1, 2, 1, 500]), np.array([1, 1, 3, 1])),
            [1, 1 + 0.03 * np.log(3), 1 + 0.03 * np.log(3), 1.1],
        ),
        # 2^(-60/60) = 0.5; 2^(-90/30) = 0.125; no age: 1; an infinite half-life: 1
        (profiles.half_life_decay(f(60, 90, 0, 9999), f(60, 30, 60, np.inf)), [0.5, 0.125, 1, 1]),
        # never used: 1 + 0.3*ln(1) = 1; once, today: 1 + 0.3*ln 2 = 1.207944
        # four times, 45 days ago: freshness 0.5, 1 + 0.3*ln 3 = 1.329584; 90 days ago: freshness 0 -> 1
        # 1000 times: 1 + 0.3*ln 1001 = 3.07263 -> 3
        (
            profiles.half_life_stretch(f(0, 1, 4, 4, 1000), f(np.inf, 0, 45, 90, 0)),
            [1, 1.207944, 1.329584, 1, 3],
        ),
        # never together: 1; once: 1 + 1/10; twice: 1 + min(2/10, 0.15); from then on capped
        (profiles.coactivation_factor(f(0, 1, 2, 99)), [1, 1.1, 1.15, 1.15]),
        # memu: log2(1 + 1) = 1; log2(1 + 3) = 2; log2(1 + 7) = 3
        (profiles.reinforcement(f(1, 3, 7)), [1, 2, 3]),
        (profiles.entity_factor(f(0, 1)), [1, 1.3]),
    ],
)
def test_a_formula_gives_what_was_worked_out_by_hand(found, expected):
    assert found == pytest.approx(expected, rel=1e-3)


def test_covalences_title_bonus_wants_every_word():
    titles = ["v1.4-roadmap", "roadmap", ""]
    assert profiles.title_has_all_words(titles, ["roadmap", "1.4"]).tolist() == [1, 0, 0]
    assert profiles.title_has_all_words(titles, []).tolist() == [0, 0, 0]


def test_what_a_wrong_clock_dated_years_ahead_is_as_old_as_it_lies_ahead():
    day = 86_400_000
    ages = profiles.ages_in_days(np.array([6 * day, 7 * day, 4_000 * day]), 0)
    assert ages.tolist() == [0.0, 7.0, 4_000.0]


def test_every_kind_has_an_equivalent_in_the_published_systems():
    assert set(profiles.KIND_MAPPINGS) == set(Kind)
    for clawmem, significance in profiles.KIND_MAPPINGS.values():
        assert clawmem in profiles.HALF_LIVES
        assert significance in profiles.LEVELS


@every_row(
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
    assert profiles.half_lives()[KIND_CODES[kind.value]] == days


def test_significance_is_on_a_scale_to_ten():
    assert profiles.significances()[KIND_CODES["decision"]] == 8
    assert profiles.significances()[KIND_CODES["change"]] == 3
    assert profiles.significances().max() <= 10
