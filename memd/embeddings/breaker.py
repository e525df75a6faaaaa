"""When a model that failed is asked again: a circuit breaker as a frozen value. Pure.

Closed: it is asked. Open: nobody asks, so that an outage costs one deadline and not one per
question. Half-open: it is due to be tried, by one. Waits double with each failed trial and are
jittered, and stay so short that a server that is back is found within seconds. Not here: the clock,
chance, or what a failure is.
"""

from dataclasses import dataclass, replace
from typing import Literal

State = Literal["closed", "open", "half-open"]

LATE_IN_A_ROW = 2
"""Answers that came too late, until it opens: one may be bad luck."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 4.0
JITTER = 0.25
"""Waits vary by this share up and down; so the longest is 5 s."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """How a model has fared lately."""

    late: int = 0
    """Late answers in a row while closed."""
    trials: int = 0
    """Failures since it was last closed; 0: it is closed."""
    due: float = 0.0
    """When it is to be tried again, in the seconds of whoever asks."""

    def state(self, now: float) -> State:
        """Whether to ask it."""
        if not self.trials:
            return "closed"
        return "half-open" if now >= self.due else "open"

    def succeeded(self) -> "Breaker":
        """Close it: it answered."""
        return _CLOSED

    def was_late(self, now: float, jitter: float) -> "Breaker":
        """Count an answer that did not come in time; the second in a row opens it."""
        if not self.trials and self.late + 1 < LATE_IN_A_ROW:
            return replace(self, late=self.late + 1)
        return self.failed(now, jitter)

    def failed(self, now: float, jitter: float) -> "Breaker":
        """Open it, for longer than last time. `jitter` is a random number in [0, 1).

        A failure while it is open is of a request that was under way, and tells nothing new.
        """
        if self.state(now) == "open":
            return self
        doubled = FIRST_WAIT_S * 2.0 ** min(self.trials, 16)
        wait_s = min(doubled, LONGEST_WAIT_S) * (1 - JITTER + 2 * JITTER * jitter)
        return Breaker(trials=self.trials + 1, due=now + wait_s)

    def now_due(self) -> "Breaker":
        """Have it tried at once."""
        return replace(self, due=0.0) if self.trials else self


_CLOSED = Breaker()
