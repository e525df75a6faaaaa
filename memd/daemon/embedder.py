"""Which space answers questions, and why: the `embedder` part of how memd is.

The room of the learned model says how the model is, the room that fills its space how far that is, and
the index which space leads; here that becomes one value. Not here: any of these decisions.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


class LearnedStatus(BaseModel):
    """A model beside the hashing space."""

    provider: str
    model: str
    space: str | None
    """None until it has answered for the first time."""
    state: str
    """`starting`, `absent`, `no model`, `remote refused`, `failing` or `ready`."""
    since: int
    """When it became that."""
    why_not: str
    """Why it is not ready, with what to do; empty if it is."""
    asked: int
    """Questions and batches since the start."""
    failed: int
    """Of these, late ones included."""
    timeouts: int
    p50_ms: float | None
    """What half of the last questions took at most, of those that were answered."""
    coverage: float
    """The share of what is remembered that has a vector in its space."""
    missing: int
    """Passages without one."""


class Embedder(BaseModel):
    """What turns text into vectors."""

    configured: str
    active: str
    """Whose vectors lead: `hashing`, or the provider of the learned model."""
    space: str
    """What its vectors are comparable within."""
    why: str
    """Why this one is active."""
    since: int | None = None
    """When it was first seen to lead, since the start."""
    learned: LearnedStatus | None = None
    """None if the settings want none."""


class Lead:
    """Remembers which space was last seen to lead."""

    def __init__(self, configured: str, hashing: str, now: int) -> None:
        self._configured = configured
        self._hashing = hashing
        """The name of the space that is always there."""
        self._seen = hashing, now

    def told(
        self, active: str, said: Mapping[str, Any], filled: Mapping[str, Any], now: int
    ) -> Embedder:
        """Tell how it is now.

        `active` names the space that leads, `said` and `filled` are what the rooms of the model and of
        its space say of themselves, empty if they do not exist.
        """
        space = active or self._hashing
        if space != self._seen[0]:
            self._seen = space, now
        learned = _learned(said, filled) if said else None
        is_learned = learned is not None and space != self._hashing
        return Embedder(
            configured=self._configured,
            active=learned.provider if learned and is_learned else "hashing",
            space=space,
            why=_why(learned, is_learned=is_learned),
            since=self._seen[1],
            learned=learned,
        )


def _learned(said: Mapping[str, Any], filled: Mapping[str, Any]) -> LearnedStatus:
    done, missing = filled.get("done", 0), filled.get("missing", 0)
    coverage = round(done / (done + missing), 4) if done + missing else 0.0
    return LearnedStatus.model_validate({**said, "coverage": coverage, "missing": missing})


def _why(learned: LearnedStatus | None, *, is_learned: bool) -> str:
    if learned is None:
        return "the settings want no model"
    if learned.state != "ready":
        return learned.why_not + ("; hashing answers alone until then" if is_learned else "")
    if is_learned:
        return f"{learned.model} answers"
    return f"{learned.model} answers, and {learned.missing:,} passages wait for their vectors"
