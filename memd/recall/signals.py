"""The formulas: what a candidate's age, kind, title … are worth, one array in, one array out. Pure.

Each takes arrays over the candidates, shape (m,), and returns shape (m,), float64. Ages are days;
a time in the future is an age of 0. Sources: DESIGN §7 and the published pages named there.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DAY_MS = 86_400_000
TITLE_CHARACTERS_MIN = 2


def ages_in_days(at: NDArray[np.int64], now: int) -> Floats:
    """How old events at `at` (UTC ms) are at `now`, never below 0."""
    return np.asarray(np.maximum(now - at, 0) / DAY_MS, dtype=np.float64)


def exponential(age_days: Floats, tau_days: float) -> Floats:
    """exp(−age/τ): siftcoder's decay. τ = 7 d: 0.867 after a day, 0.0138 after thirty."""
    return np.exp(-age_days / tau_days)


def hyperbolic(age_days: Floats, half_days: float) -> Floats:
    """1/(1 + age/half): covalence's recency. half = 365 d: 0.5 after a year, 0.33 after two."""
    return np.asarray(1.0 / (1.0 + age_days / half_days), dtype=np.float64)


def logarithmic(age_days: Floats) -> Floats:
    """1 − 0.1 · log10(1 + age in days): 0.9 after nine days, 0.74 after a year."""
    return np.asarray(1.0 - 0.1 * np.log10(1.0 + age_days), dtype=np.float64)


def tier_share(tier_codes: NDArray[np.int8], rrf_k: int) -> Floats:
    """1/(k + tier), tier counted from 1: core, file, then what an agent said or memd captured."""
    tier = np.minimum(tier_codes.astype(np.int64) + 1, 3)
    return np.asarray(1.0 / (rrf_k + tier), dtype=np.float64)


def title_share(titles: Sequence[str], query_words: Sequence[str]) -> Floats:
    """The part of the query's words that stand in the title as substrings, squared; titles folded.

    Squared, because a title that has every word says much more than one that has half of them.
    """
    if not query_words:
        return np.zeros(len(titles))
    shares = [sum(word in title for word in query_words) / len(query_words) for title in titles]
    return np.square(np.array(shares, dtype=np.float64))


def kind_share(kind_codes: NDArray[np.int8], wanted: NDArray[np.float64]) -> Floats:
    """How much each candidate's kind is asked for; `wanted` has a value per kind code."""
    return np.asarray(wanted[kind_codes], dtype=np.float64)


def quality_factor(quality: Floats) -> Floats:
    """0.7 + 0.6 · quality: ClawMem's."""
    return 0.7 + 0.6 * quality


def length_factor(body_characters: NDArray[np.int64]) -> Floats:
    """1/(1 + ½ · log2(max(length/500, 1))), at least 0.3: ClawMem's."""
    penalty = 1.0 / (1.0 + 0.5 * np.log2(np.maximum(body_characters / 500.0, 1.0)))
    return np.asarray(np.maximum(penalty, 0.3), dtype=np.float64)


def frequency_factor(revisions: NDArray[np.int64], duplicates: NDArray[np.int64]) -> Floats:
    """1 + min(0.10, 0.03 · ln(1 + 2(revisions − 1) + (duplicates − 1))): ClawMem's."""
    signal = np.maximum(2 * (revisions - 1) + (duplicates - 1), 0)
    return np.asarray(1.0 + np.minimum(0.10, 0.03 * np.log1p(signal)), dtype=np.float64)
