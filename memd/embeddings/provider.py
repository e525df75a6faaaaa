"""What memd asks of a server that may have the model, and what it may hear. Pure.

Deadlines, patience and what to do meanwhile are learned.py's. Not here: any server.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Served:
    """A model that a server has; two that are equal make the same vectors."""

    provider: str
    model: str
    digest: str = ""
    """What tells two models of one name apart, as far as the server says."""
    context: int = 0
    """Tokens it can take; 0 if the server does not say."""
    dimensions: int = 0
    """Values of a whole vector; 0 if the server does not say."""


@dataclass(frozen=True, slots=True)
class NotServed:
    """A server answers, but this model is not to be had from it."""

    state: Literal["no model", "remote refused"]
    why: str
    """In words, with what to do."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there are no vectors for these texts; for others there may be."""

    reason: str
    is_length: bool = False
    """Whether it is because a text is too long for the model."""


class Provider(Protocol):
    """A server, and the name of a model there."""

    async def look(self) -> Served | NotServed:
        """Return what the server says of the model. Raises EngineFailed."""
        ...

    async def embed(self, texts: Sequence[str]) -> Any | Refused:
        """Return what the server sends as vectors, unvetted, in the order of the texts.

        Raises EngineFailed if it would have refused any other texts, too.
        """
        ...
