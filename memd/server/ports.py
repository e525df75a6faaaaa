"""What the rooms offer to the front door, as ports: wiring hands over one App.

Not here: any of the rooms. A test may stand in for each of them.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memd.capture.prepare import CaptureRequest
from memd.capture.project import ProjectOverrides
from memd.capture.write import Receipt
from memd.consolidate.forget import ForgetResult, ForgetSelection
from memd.consolidate.judgments import JudgmentResult, NewJudgment
from memd.consolidate.near_duplicates import JudgmentCandidate
from memd.consolidate.projects import ProjectMerge
from memd.consolidate.remember import NewMemory, RememberResult
from memd.models import Finding, Project, Summary
from memd.recall.types import Answer, Question
from memd.server.injection_types import Looked, Opening
from memd.store.database import Database
from memd.store.usage import Injection


class Captures(Protocol):
    """Takes events in. Returns when they are committed."""

    async def capture(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """One receipt for each request, in order."""

    async def rehearse(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """What `capture` would answer, with nothing stored."""


class Searches(Protocol):
    """Answers questions."""

    async def search(self, question: Question) -> Answer:
        """The answer; a BadRequest if the question makes no sense."""


class Curates(Protocol):
    """Decides by hand what becomes of memories."""

    async def remember_many(self, memories: Sequence[NewMemory]) -> list[RememberResult]:
        """What became of each, in order."""

    async def withdraw(self, path: str, staying: Collection[int]) -> tuple[int, ...]:
        """The memories that were read from this file and are hidden, for it says only those staying."""

    async def forget(
        self, what: ForgetSelection, *, dry_run: bool, token: str = ""
    ) -> ForgetResult:
        """What was, or would be, erased; with a token nothing but what a dry run told under it."""

    async def scrub(self, pattern: str | None, *, dry_run: bool) -> object:
        """Where a pattern, or with None a secret, was found; without `dry_run` it is gone."""

    async def pin(self, summary_id: int, *, pinned: bool) -> Summary:
        """The memory afterwards; UnknownId if there is none."""

    async def merge(self, source_key: str, into_key: str, *, dry_run: bool) -> ProjectMerge:
        """What moved, or would move."""

    async def rename(self, key: str, name: str) -> Project:
        """The project afterwards."""


class Judges(Protocol):
    """Settles what two memories are to each other."""

    async def judge(self, ruling: NewJudgment) -> JudgmentResult:
        """What it did; a BadRequest if it cannot be."""

    async def undo(self, one_id: int, other_id: int) -> JudgmentResult:
        """What it brought back; a BadRequest if nothing holds of the pair."""

    async def candidates(self, summary_id: int) -> tuple[JudgmentCandidate, ...]:
        """What is like this memory and undecided, the most alike first."""


class Indexes(Protocol):
    """Makes summaries searchable."""

    async def settle(self) -> None:
        """Return once everything written so far is searchable."""

    async def reindex(self) -> object:
        """Rebuild everything derived; a report."""


class Keeps(Protocol):
    """Looks after vectors when a person says so."""

    async def reembed(self) -> object:
        """Begin to embed everything anew with the learned model; a report."""

    async def vacuum(self, *, dry_run: bool) -> object:
        """Drop vectors that nobody asks, and shrink the file; a report."""


class Retains(Protocol):
    """Keeps the vault from growing without end."""

    async def preview(self) -> object:
        """What a round would do now; a report."""

    async def apply(self) -> object:
        """Do a round now; a report."""


class Distils(Protocol):
    """Makes events into summaries."""

    async def settle(self, through: int) -> None:
        """Return once the events up to this sequence number are distilled."""


class Examines(Protocol):
    """Looks after the vault as a whole."""

    async def examine(self) -> list[Finding]:
        """What is right and wrong with it."""

    async def mend(self) -> list[str]:
        """What was mended, in words; no truth is touched."""


class Consolidates(Protocol):
    """Tidies near-duplicates away."""

    async def tick(self) -> object:
        """Do one round now; a report."""

    async def preview_tick(self) -> object:
        """What a round would do, without doing it."""

    async def undo(self, what: str, *, dry_run: bool) -> object:
        """What was taken back, or would be; BadRequest or UnknownId if there is nothing."""

    async def runs(self, limit: int) -> object:
        """The latest rounds that changed something."""


class Offers(Protocol):
    """Shows agents what they did not ask for."""

    async def offer(self, asked: Opening, event_id: int | None) -> str | None:
        """The text for this moment, in time; None if there is none. Raises nothing that goes wrong."""

    async def rehearse(self, asked: Opening, *, explain: bool) -> Looked:
        """What would be shown; with `explain` also what would not."""

    async def injected(self, session_id: int) -> list[Injection]:
        """What a session was shown, oldest first."""


@dataclass(frozen=True, slots=True)
class App:
    """Everything that the front door leads to."""

    db: Database
    ingestor: Captures
    recaller: Searches
    curator: Curates
    indexer: Indexes
    distiller: Distils
    consolidator: Consolidates
    status: Callable[[], Awaitable[dict[str, object]]]
    shutdown: Callable[[], None]
    """Asks the daemon to leave; returns at once."""
    clock: Callable[[], int]
    injector: Offers = field(kw_only=True)
    vector_maintenance: Keeps = field(kw_only=True)
    retention: Retains = field(kw_only=True)
    judge: Judges = field(kw_only=True)
    checkup: Examines = field(kw_only=True)
    overrides: ProjectOverrides = field(default_factory=lambda: ProjectOverrides(None, "/"))
    """Which directories a person has given to a project by hand."""
