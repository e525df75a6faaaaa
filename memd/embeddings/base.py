"""Protocols of embedders, rerankers, chat models and model servers, and the values they exchange. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memd.models import Space

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
