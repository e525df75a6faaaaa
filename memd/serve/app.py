"""What the rooms offer to the front door, as ports: wiring hands over one App.

Not here: any of the rooms. A test may stand in for each of them.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memd.capture.intake import CaptureRequest, Receipt
from memd.consolidate.curator import Forgotten, Memory, Remembered
from memd.models import Summary
from memd.recall.answer import Answer, Question
from memd.store.database import Database


class Captures(Protocol):
    """Takes events in. Returns when they are committed."""

    async def capture(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """One receipt for each request, in order."""


class Searches(Protocol):
    """Answers questions."""

    async def search(self, question: Question) -> Answer:
        """The answer; a BadRequest if the question makes no sense."""


class Curates(Protocol):
    """Decides by hand what becomes of memories."""

    async def remember_many(self, memories: Sequence[Memory]) -> list[Remembered]:
        """What became of each, in order."""

    async def forget(self, ids: Sequence[int], *, dry_run: bool) -> Forgotten:
        """What was, or would be, erased."""

    async def pin(self, summary_id: int, *, pinned: bool) -> Summary:
        """The memory afterwards; UnknownId if there is none."""


class Indexes(Protocol):
    """Makes summaries searchable."""

    async def settle(self) -> None:
        """Return once everything written so far is searchable."""

    async def reindex(self) -> object:
        """Rebuild everything derived; a report."""


class Distils(Protocol):
    """Makes events into summaries."""

    async def settle(self, through: int) -> None:
        """Return once the events up to this sequence number are distilled."""


class Consolidates(Protocol):
    """Tidies near-duplicates away."""

    async def tick(self) -> object:
        """Do one round now; a report."""

    async def rehearse(self) -> object:
        """What a round would do, without doing it."""


@dataclass(frozen=True, slots=True)
class App:
    """Everything that the front door leads to."""

    db: Database
    intake: Captures
    recaller: Searches
    curator: Curates
    indexer: Indexes
    distiller: Distils
    consolidator: Consolidates
    status: Callable[[], Awaitable[dict[str, object]]]
    shutdown: Callable[[], None]
    """Asks the daemon to leave; returns at once."""
    clock: Callable[[], int]
