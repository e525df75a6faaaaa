"""How many texts to send at once, so that a question never waits long behind them. Pure.

A server works off what it has been sent before it turns to a question, so a request must be short,
on any machine: its size follows how long the last ones took. Not here: the stopwatch.
"""

from dataclasses import dataclass

REQUEST_S = 0.02
"""Aimed at. On a server that does one thing at a time a question waits for what is under way: with .05
searches beside a re-embedding took 2.3 times as long at the 95th percentile (`scripts/bench reembed`)."""
_FIRST = 4
_GROWTH = 2
_MEMORY = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """What a text has cost lately."""

    text_s: float = 0.0
    """Seconds for one text; 0: not known."""
    last: int = 0
    """How many were sent at once."""

    def size(self, limit: int) -> int:
        """Return how many texts to send, at least one."""
        if not self.text_s:
            return min(_FIRST, limit)
        wanted = int(REQUEST_S / self.text_s)
        return max(1, min(wanted, self.last * _GROWTH, limit))

    def after(self, count: int, seconds: float) -> "Pace":
        """Learn from a request of so many texts."""
        now_s = max(seconds, 1e-6) / count
        text_s = now_s if not self.text_s else _MEMORY * self.text_s + (1 - _MEMORY) * now_s
        return Pace(text_s, count)
