"""Models: text to vector, text to text. Each behind a port in memd's own words. Pure.

Here: the protocols of embedders, rerankers, chat models and model servers, the values they exchange, and when to try again
what failed, as frozen values: a restart backoff, and a circuit breaker.

closed     ask                   → open after one failure or two late answers in a row
open       do not ask            → half-open when its wait is over
half-open  let one trial through → closed if it succeeds, open for twice as long if it fails
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memd.models import Space

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


Vectors = NDArray[np.float32]
BATCH_S = 60.0
"""Seconds that a model may take for one batch of texts: it may have to be loaded first."""


class Embedder(Protocol):
    """Text to vectors of one space. Vectors of two spaces are never compared."""

    @property
    def space(self) -> Space:
        """The name of the space in which these vectors are comparable."""

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, (n, dimensions), each of length 1, or all zeros if it has no feature.

        Raises EngineFailed.
        """

    async def query(self, text: str) -> Vectors:
        """Return the vector of a query, (dimensions,), of length 1 or all zeros. Raises EngineFailed."""


@runtime_checkable
class LocalEmbedder(Embedder, Protocol):
    """An embedder that computes in this process: call `embed` in a thread, off the event loop."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return what `documents` does, computed in the caller's thread."""


class ModelEmbedder(Protocol):
    """An embedding model on a server that may be down. Every call has a deadline."""

    @property
    def current(self) -> Space | None:
        """The space of the model as it last answered; None before its first answer. Outages do not change it."""

    @property
    def query_s(self) -> float:
        """Seconds that a question may take."""

    @property
    def is_starting(self) -> bool:
        """Return whether it is not known yet if there is a model that answers."""

    @property
    def is_wanted(self) -> bool:
        """Return whether the settings name it, rather than take whatever model there is."""

    @property
    def is_failing(self) -> bool:
        """Return whether there is a model, and it did not answer last time."""

    @property
    def is_ready(self) -> bool:
        """Return whether the model answered last time."""

    @property
    def why_not(self) -> str:
        """The reason that it is not ready, and what to do about it; empty if it is ready."""

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever the model is back, was replaced or was removed."""

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, (n, dimensions), each of length 1. Raises EngineFailed.

        A text that the model cannot embed at all has a row of zeros.
        """

    async def query(self, text: str) -> Vectors:
        """Return the vector of a query, (dimensions,), of length 1, within the deadline. Raises EngineFailed."""


class ChatModel(Protocol):
    """Text to text."""

    @property
    def name(self) -> str:
        """The name that `mem_why` shows: `ollama/qwen2.5:3b`."""

    @property
    def charges_failures(self) -> bool:
        """Return whether a call that brings no reply may have cost money."""

    async def find_obstacle(self) -> str:
        """Return why it cannot be called, and what to do about it, as far as that can be told for nothing."""

    async def complete(self, system: str, text: str, schema: Mapping[str, Any]) -> str:
        """Return the model's raw reply within the deadline. Raises EngineFailed.

        `schema` is the JSON schema that the reply should fit; the caller checks whether it does.
        """


class Reranker(Protocol):
    """Rates a few candidates more closely than the index can."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float | None]:
        """Return one score per text, higher is better, in the order of the texts; None leaves it out.

        Raises EngineFailed.
        """


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a server has; two that are equal make the same vectors."""

    provider: str
    model: str
    digest: str = ""
    """What tells two models of one name apart, as far as the server reports it."""
    context: int = 0
    """Tokens per text; 0 if the server does not report it."""
    dimensions: int = 0
    """Values of a whole vector; 0 if the server does not report it."""


@dataclass(frozen=True, slots=True)
class ModelNotServed:
    """The server answers, but this model cannot be used there."""

    state: Literal["no model", "remote refused", "absent", "failing"]
    why: str
    """The reason and what to do about it."""


@dataclass(frozen=True, slots=True)
class TextsRefused:
    """The reason that there are no vectors for these texts; other texts may be accepted."""

    reason: str
    is_length: bool = False
    """Whether a text is too long for the model."""


class Provider(Protocol):
    """A server, and the name of a model on it."""

    async def describe_model(self) -> ServedModel | ModelNotServed:
        """Return what the server reports of the model. Raises EngineFailed."""

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Any | TextsRefused:
        """Return the vectors as the server sends them, unchecked, in the order of the texts.

        `is_query`: somebody waits for it. Raises EngineFailed if the server would refuse any other texts, too.
        """
