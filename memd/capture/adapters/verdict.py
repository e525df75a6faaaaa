"""What may become of a payload instead of an event. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ignored:
    """Understood, and not kept. Counted as filtered."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Not understood. Counted as refused."""

    reason: str
