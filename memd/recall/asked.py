"""A question that has been read: its terms, its intent, its profile, its vectors. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from numpy import float32
from numpy.typing import NDArray

from memd.recall.answer import Question
from memd.recall.intent import Intent
from memd.recall.profiles import Profile
from memd.recall.query import Query


@dataclass(frozen=True, slots=True)
class Aim:
    """A question's vector, and the name of the space that it belongs to."""

    space: str
    vector: NDArray[float32]
    unrelated: NDArray[float32] | None = None
    """Its cosines with what it is not about, if they are known; see meaning.py."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, read."""

    question: Question
    query: Query
    intent: Intent
    profile: Profile
    """As it is for this question: its legs, its intent."""
    profile_name: str
    k: int
    local: Aim | None
    """In the space that is always whole. None: no leg compares vectors, or the other one was brought."""
    learned: Aim | None
    """In a learned space. None: there is none, or `degraded` says why not."""
    degraded: Mapping[str, str]

    @property
    def now(self) -> int:
        """From when ages count."""
        return self.question.now if self.question.as_of is None else self.question.as_of

    @property
    def last(self) -> int:
        """The rank after the last hit of the page, from 0."""
        return self.question.offset + self.k

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read between the lines, in words."""
        notes = []
        if self.intent.is_recent and self.profile.when_recent:
            notes.append("the question asks for the latest: recency leads")
        if self.intent.kinds and any(step.signal == "intent" for step in self.profile.steps):
            kinds = " or ".join(self.intent.kinds)
            notes.append(
                f"the question asks for {'an' if kinds[0] in 'aeiou' else 'a'} {kinds}"
            )
        return tuple(notes)
