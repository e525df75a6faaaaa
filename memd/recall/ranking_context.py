"""What a signal may look at: the candidates, the question, and what the vault knows of both. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from memd.index.memory_index import MemoryIndex
from memd.recall import signals
from memd.recall.filters import VisibleRows
from memd.recall.profiles import Profile
from memd.recall.query import Intent, QueryTerms
from memd.recall.retrievers import Floats, IndexedTerms, Mask, Rows, Scores
from memd.recall.semantic import LearnedEvidence
from memd.store.types import SummaryPair, SummaryUse


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """What the vault knows of the candidates beside the index; empty where no signal asks for it."""

    uses: Mapping[int, SummaryUse] = field(default_factory=dict)
    """Summary id → how often answers returned it."""
    together: Mapping[SummaryPair, int] = field(default_factory=dict)
    """Two summary ids → how often one answer returned both."""
    entities: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Summary id → the names in it."""
    titles: Mapping[int, str] = field(default_factory=dict)
    """Summary id → its title, folded."""
    failed: str | None = None
    """Why it could not be looked up; then the steps of the second stage are left out."""


@dataclass(frozen=True, slots=True)
class RankingQuestion:
    """What the steps of a profile need to know about the question."""

    query: QueryTerms
    intent: Intent
    terms: IndexedTerms
    masks: VisibleRows
    now: int
    background: CandidateFacts = field(default_factory=CandidateFacts)


@dataclass(frozen=True, slots=True)
class RankingContext:
    """The candidates as a signal sees them: one row each."""

    index: MemoryIndex
    rows: Rows
    lexical_all: Scores
    profile: Profile
    about: RankingQuestion
    fused: Floats
    """What the legs alone make of each candidate."""
    near: LearnedEvidence | None = None
    """What a learned space says, if the profile weighs that."""
    standing: Mapping[int, tuple[Mask, Mask]] = field(default_factory=dict)
    """Term → whether it is in each candidate, and whether in its title; empty where no signal asks."""

    @property
    def ids(self) -> list[int]:
        """The summary of each candidate."""
        return [int(number) for number in self.index.columns.summary_id[self.rows]]

    @property
    def relevance(self) -> Floats:
        """Each candidate's lexical score as a part of the best one's."""
        scores = self.lexical_all[self.rows].astype(np.float64)
        best = float(scores.max(initial=0.0))
        return scores / best if best > 0 else scores

    @property
    def ages(self) -> Floats:
        """In days."""
        return signals.ages_in_days(self.index.columns.at[self.rows], self.about.now)

    @property
    def used(self) -> Floats:
        """How often an answer returned each candidate."""
        uses = self.about.background.uses
        return np.array([uses[i].count if i in uses else 0 for i in self.ids], np.float64)

    @property
    def unused_for(self) -> Floats:
        """For how many days none has; infinite if none ever did."""
        uses = self.about.background.uses
        last = np.array([uses[i].last_at if i in uses else -1 for i in self.ids], np.int64)
        return np.where(last < 0, np.inf, signals.ages_in_days(last, self.about.now))
