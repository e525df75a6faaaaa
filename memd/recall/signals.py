"""Score formulas: what a candidate's age, kind, title or use is worth, one array in, one array out.

Arrays are over the candidates, shape (m,), float64; ages are in days. The published systems name kinds of
things that memd does not have: KIND_MAPPINGS maps ours to theirs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import KIND_CODES
from memd.models import CLOCK_SKEW_MAX_MS, Kind

DAY_MS = 86_400_000

Floats = NDArray[np.float64]


def ages_in_days(at: NDArray[np.int64], now: int) -> Floats:
    """Return the ages of events of `at` (UTC ms) at `now`, in days, never below 0.

    An event that a wrong clock dated far ahead is as old as it lies ahead: else it would be the newest
    for years.
    """
    elapsed = now - at
    ages = np.where(elapsed <= -CLOCK_SKEW_MAX_MS, -elapsed, np.maximum(elapsed, 0))
    return np.asarray(ages / DAY_MS, np.float64)


def exponential_decay(age_days: Floats, tau_days: float) -> Floats:
    """exp(−age/τ): siftcoder's decay. τ = 7 d: 0.867 after a day, 0.0138 after thirty."""
    return np.exp(-age_days / tau_days)


def hyperbolic_decay(age_days: Floats, half_days: float) -> Floats:
    """1/(1 + age/half): covalence's recency. half = 365 d: 0.5 after a year, 0.33 after two."""
    return np.asarray(1.0 / (1.0 + age_days / half_days), dtype=np.float64)


def logarithmic_decay(age_days: Floats) -> Floats:
    """1 − 0.1 · log10(1 + age in days): 0.9 after nine days, 0.74 after a year."""
    return np.asarray(1.0 - 0.1 * np.log10(1.0 + age_days), dtype=np.float64)


def tier_share(tier_codes: NDArray[np.int8], rrf_k: int) -> Floats:
    """1/(k + tier), tier counted from 1: core, file, then what agents remembered or memd captured."""
    tier = np.minimum(tier_codes.astype(np.int64) + 1, 3)
    return np.asarray(1.0 / (rrf_k + tier), dtype=np.float64)


def quality_factor(quality: NDArray[Any]) -> Floats:
    """0.7 + 0.6 · quality: ClawMem's."""
    return 0.7 + 0.6 * quality.astype(np.float64)


def length_factor(body_characters: NDArray[Any]) -> Floats:
    """1/(1 + ½ · log2(max(length/500, 1))), at least 0.3: ClawMem's."""
    penalty = 1.0 / (1.0 + 0.5 * np.log2(np.maximum(body_characters / 500.0, 1.0)))
    return np.asarray(np.maximum(penalty, 0.3), dtype=np.float64)


def frequency_factor(revisions: NDArray[Any], duplicates: NDArray[Any]) -> Floats:
    """1 + min(0.10, 0.03 · ln(1 + 2(revisions − 1) + (duplicates − 1))): ClawMem's."""
    again = revisions.astype(np.int64) - 1
    signal = np.maximum(2 * again + (duplicates.astype(np.int64) - 1), 0)
    return np.asarray(1.0 + np.minimum(0.10, 0.03 * np.log1p(signal)), dtype=np.float64)


def half_life_decay(age_days: Floats, half_lives: Floats) -> Floats:
    """2^(−age/half-life): ClawMem's recency; always 1 where the half-life is infinite."""
    return np.exp2(-age_days / half_lives)


def half_life_stretch(uses: Floats, unused_days: Floats) -> Floats:
    """Return the factor by which use prolongs a half-life: ClawMem's, at most 3.

    1 + 0.3 · ln(1 + uses · freshness); freshness falls from 1 to 0 in a line over 90 days without use.
    """
    freshness = np.maximum(1.0 - unused_days / 90.0, 0.0)
    return np.minimum(1.0 + 0.3 * np.log1p(uses * freshness), 3.0)


def coactivation_factor(counts: Floats) -> Floats:
    """1 + min(n/10, 0.15): ClawMem's, n how often a memory was returned with the best ones."""
    return 1.0 + np.minimum(counts / 10.0, 0.15)


def title_has_all_words(titles: Sequence[str], query_words: Sequence[str]) -> Floats:
    """1 if every word of the query is a substring of the title, else 0: Covalence's; titles folded."""
    if not query_words:
        return np.zeros(len(titles))
    found = [all(word in title for word in query_words) for title in titles]
    return np.array(found, dtype=np.float64)


def reinforcement(counts: Floats) -> Floats:
    """log2(1 + n): MemU's, n how often it was said or recalled; 1 for a memory that was said once."""
    return np.log2(1.0 + counts)


def entity_factor(named: Floats) -> Floats:
    """1.3 if the question names an entity of the memory, else 1: MemU's 1 + 0.3 · bond, bond 1."""
    return 1.0 + 0.3 * named


# ── memd's kinds in the words of the published systems ───────────────────────────────────────────


_NEVER = math.inf
HALF_LIVES: Mapping[str, float] = {
    "decision": _NEVER, "preference": _NEVER, "antipattern": _NEVER, "hub": _NEVER, "project": 120.0,
    "research": 90.0, "problem": 60.0, "milestone": 60.0, "note": 60.0, "conversation": 45.0,
    "progress": 45.0, "handoff": 30.0,
}  # fmt: skip
"""ClawMem's types and their half-lives in days, as the seed published them."""

LEVELS: Mapping[str, float] = {"routine": 3, "noteworthy": 5, "important": 8, "core": 10}
"""MemU's levels on its scale from 1 to 10. The publication does not say which level is where, only that
an important fact has 8 and an unrated one gets 5."""

KIND_MAPPINGS: Mapping[Kind, tuple[str, str]] = {
    Kind.DECISION: ("decision", "important"),  # the same word, and it governs later work
    Kind.FIX: ("problem", "noteworthy"),  # ClawMem files a bug with its solution as a problem
    Kind.FAILURE: ("problem", "noteworthy"),  # only a rule against it is an antipattern
    Kind.CHANGE: ("progress", "routine"),  # finished work, overtaken by the next
    Kind.DISCOVERY: ("research", "noteworthy"),  # found out by looking
    Kind.PREFERENCE: ("preference", "important"),  # the same word
    Kind.INSTRUCTION: ("preference", "important"),  # a standing wish, until it is replaced
    Kind.FACT: ("hub", "noteworthy"),  # stated on purpose, to be looked up at any time
    Kind.TASK: ("progress", "routine"),  # an open end; done or stale after some weeks
    Kind.NOTE: ("note", "noteworthy"),  # the same word, and the default of both
    Kind.SESSION: ("handoff", "routine"),  # ClawMem writes one when a session stops
}
"""memd's kinds → the nearest type of ClawMem's, and the nearest level of MemU's."""


def half_lives() -> Floats:
    """ClawMem's half-life in days by kind code; infinite for what never fades."""
    return _index_by_kind_code({k: HALF_LIVES[like] for k, (like, _) in KIND_MAPPINGS.items()})


def significances() -> Floats:
    """MemU's significance by kind code, 1 to 10."""
    return _index_by_kind_code({k: LEVELS[level] for k, (_, level) in KIND_MAPPINGS.items()})


def _index_by_kind_code(values: Mapping[Kind, float]) -> Floats:
    row = np.zeros(len(KIND_CODES))
    for kind, value in values.items():
        row[KIND_CODES[kind.value]] = value
    return row
