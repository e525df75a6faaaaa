"""How much a memory is trusted: where it begins, and what raises and lowers it. Pure.

Trust is counted in odds, so that what raises and what lowers it may come in any order, can be taken
back exactly, and never makes a memory certain or worthless. A captured memory begins below one that
somebody said on purpose. Not here: when any of this happens (doubts.py, summaries.py).
"""

from math import log2

SAID = {"user": 0.9, "agent": 0.8}
"""Who said it on purpose → where it begins."""
ELSEWHERE = 0.5
"""Where a memory begins that was read from another place."""
CAPTURED_MOST = 0.7
"""Where a captured memory begins at most, however certain the rule that found it."""
REPEATED = 0.5
"""Twice as often said: the odds rise by this part of what they were at first."""
CONTRADICTED = 0.5
"""For each memory that contradicts it the odds are multiplied by this."""
_LEAST, _MOST = 0.001, 0.999
_DIGITS = 6


def said_by(source: str) -> float:
    """Where a memory begins that this source gave."""
    return SAID.get(source, ELSEWHERE)


def captured(certainty: float) -> float:
    """Where a memory begins that a rule found with this certainty, 0 to 1."""
    return min(certainty, CAPTURED_MOST)


def repeated(confidence: float, was: int, now: int) -> float:
    """After having been said `now` times in place of `was` times, each at least once."""
    return _times(confidence, _firmness(now) / _firmness(was))


def doubted(confidence: float, was: int, now: int) -> float:
    """After being contradicted by `now` others in place of `was`."""
    return _times(confidence, CONTRADICTED ** (now - was))


def _firmness(count: int) -> float:
    return 1 + REPEATED * log2(max(count, 1))


def _times(confidence: float, factor: float) -> float:
    kept = min(max(confidence, _LEAST), _MOST)
    odds = kept / (1 - kept) * factor
    return round(odds / (1 + odds), _DIGITS)
