"""When a room that crashed is tried again: doubling waits, forgiven after a minute of health. Pure."""

from dataclasses import dataclass

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
HEALTHY_S = 60.0
"""A room that ran for this long has recovered: its next crash counts as the first."""
JITTER = 0.25
"""Waits vary by this share up and down, so that rooms felled together do not return together."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often in a row a room has crashed, and how long to wait before it is tried again."""

    crashes: int = 0
    wait_s: float = 0.0


def after_crash(patience: Patience, ran_s: float, jitter: float) -> Patience:
    """Lose some patience with a room that crashed once more, after `ran_s` seconds.

    `jitter` is a random number in [0, 1). The wait is 1 s doubled per crash in a row, at most
    60 s, times a factor in [1 - JITTER, 1 + JITTER).
    """
    crashes = 1 if ran_s >= HEALTHY_S else patience.crashes + 1
    # The exponent is bounded first: a room that fails for weeks must not overflow a float.
    doubled = FIRST_WAIT_S * 2.0 ** min(crashes - 1, 16)
    wait_s = min(doubled, LONGEST_WAIT_S) * (1 - JITTER + 2 * JITTER * jitter)
    return Patience(crashes, wait_s)
