"""One file per client: its payloads in, memd's events out."""

from collections.abc import Mapping
from typing import Any, Protocol

from memd.capture.adapters import claude_code
from memd.capture.adapters.verdict import Ignored, Refused
from memd.models import NewEvent

__all__ = ["ADAPTERS", "Adapter", "Ignored", "Refused", "adapter"]


class Adapter(Protocol):
    """Turns one clean payload of a client into an event, or says why not. `at` is UTC ms."""

    def __call__(
        self, payload: Any, at: int, *, directory: str | None, source: str
    ) -> NewEvent | Ignored | Refused:
        """One payload, as its client sent it."""


ADAPTERS: Mapping[str, Adapter] = {claude_code.CLIENT: claude_code.adapt}


def adapter(client: str) -> Adapter | None:
    """The adapter of a client, or None if memd does not know it."""
    return ADAPTERS.get(client)
