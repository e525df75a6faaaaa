"""What memd asks of a model, one verb each, in the domain's words. Pure.

Vectors of two spaces never meet, so an embedder names its space. A model that does not answer raises
EngineFailed, and nothing else; who asked decides what to do without it. Not here: any model.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memd.models import Space

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Text to vectors of one space."""

    @property
    def space(self) -> Space:
        """What makes these vectors comparable."""
        ...

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, (n, dimensions), each of length 1, or all zeros if it has no feature.

        Raises EngineFailed.
        """
        ...

    async def query(self, text: str) -> Vectors:
        """Return the vector of a question, (dimensions,), of length 1 or all zeros. Raises EngineFailed."""
        ...


@runtime_checkable
class LocalEmbedder(Embedder, Protocol):
    """An embedder that computes in this process: call `embed` in a thread, off the event loop."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return what `documents` does, computed in the caller's thread."""
        ...


class Learned(Protocol):
    """A learned model that may not be there: it says so, and comes back. Never asked without a deadline."""

    @property
    def current(self) -> Space | None:
        """The space of the model as it last answered; None before it ever did. Outages do not change it."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether asking now is worth it: the model answered last time, or is due to be tried again."""
        ...

    @property
    def why_not(self) -> str:
        """Why it is not ready, in words, with what to do; empty if it is."""
        ...

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, (n, dimensions), each of length 1. Raises EngineFailed.

        A text that the model cannot take at all has a row of zeros.
        """
        ...

    async def query(self, text: str) -> Vectors:
        """Return the vector of a question, (dimensions,), of length 1, in time. Raises EngineFailed."""
        ...


class Writer(Protocol):
    """Text to text."""

    @property
    def name(self) -> str:
        """Who writes, as `mem_why` shall say it: `ollama/qwen2.5:3b`."""
        ...

    async def write(self, system: str, text: str, schema: Mapping[str, Any]) -> str:
        """Return the model's reply as it came, in time. Raises EngineFailed.

        `schema` is the JSON schema that the reply should fit; who asked checks whether it does.
        """
        ...


class Reranker(Protocol):
    """A second, closer look at a few candidates."""

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text, higher is better, in the order of the texts. Raises EngineFailed."""
        ...
