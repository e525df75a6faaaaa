"""A circuit breaker and a restart backoff, which say when to try again what failed, as frozen values. Pure.

closed     ask                   → open after one failure or two late answers in a row
open       do not ask            → half-open when its wait is over
half-open  let one trial through → closed if it succeeds, open for twice as long if it fails
"""

from dataclasses import dataclass, replace
from typing import Literal

CircuitState = Literal["closed", "open", "half-open"]

LATE_ANSWERS_MAX = 2
"""Late answers in a row that open the circuit: a single one may be chance."""
TRIAL_WAIT_MIN_S = 0.5
TRIAL_WAIT_MAX_S = 4.0
"""Short, so that a server that is back is used again within seconds."""
RESTART_WAIT_MIN_S = 1.0
RESTART_WAIT_MAX_S = 60.0
HEALTHY_S = 60.0
"""A worker that ran for this long has recovered: its next crash counts as the first."""
JITTER = 0.25
"""Waits vary by this share up and down, so that workers that failed together do not return together."""
_DOUBLINGS_MAX = 16
"""The exponent is bounded, so that weeks of failures do not overflow a float."""


def backoff_s(failures: int, shortest_s: float, longest_s: float, jitter: float = 0.5) -> float:
    """Return the seconds to wait after this many failures in a row, doubled for each after the first.

    `jitter` is a random number in [0, 1); 0.5 leaves the wait as it is.
    """
    doubled = shortest_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX)
    return min(doubled, longest_s) * (1 - JITTER + 2 * JITTER * jitter)


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """The recent failures of a model server. Times are seconds of the caller's clock."""

    late: int = 0
    """Late answers in a row while closed."""
    trials: int = 0
    """Failures since it was last closed; 0 while it is closed."""
    due: float = 0.0
    """When the next trial may be made."""

    def state(self, now: float) -> CircuitState:
        """Return whether to ask the server."""
        if not self.trials:
            return "closed"
        return "half-open" if now >= self.due else "open"

    def record_late(self, now: float, jitter: float) -> "CircuitBreaker":
        """Count an answer that missed its deadline; the second in a row opens the circuit."""
        if not self.trials and self.late + 1 < LATE_ANSWERS_MAX:
            return replace(self, late=self.late + 1)
        return self.record_failure(now, jitter)

    def record_failure(self, now: float, jitter: float) -> "CircuitBreaker":
        """Open the circuit, for longer than last time.

        A failure while it is open belongs to a request that was sent before, and changes nothing.
        """
        if self.state(now) == "open":
            return self
        wait_s = backoff_s(self.trials + 1, TRIAL_WAIT_MIN_S, TRIAL_WAIT_MAX_S, jitter)
        return CircuitBreaker(trials=self.trials + 1, due=now + wait_s)

    def allow_trial(self) -> "CircuitBreaker":
        """Let the next trial be made at once."""
        return replace(self, due=0.0) if self.trials else self


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """The crashes of a worker in a row, and how long to wait before it is restarted."""

    crashes: int = 0
    wait_s: float = 0.0

    def after_crash(self, ran_s: float, jitter: float) -> "RestartBackoff":
        """Return the backoff after one more crash, of a worker that had run for `ran_s` seconds."""
        crashes = 1 if ran_s >= HEALTHY_S else self.crashes + 1
        wait_s = backoff_s(crashes, RESTART_WAIT_MIN_S, RESTART_WAIT_MAX_S, jitter)
        return RestartBackoff(crashes, wait_s)
