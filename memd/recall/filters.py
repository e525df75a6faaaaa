"""Which rows of the index a question may see, cached until the index changes. Pure.

The same few filters are asked for again and again: of a project, of everything. So their masks are
computed once, and a filter costs nothing that grows with the vault. The caller holds the index's lock.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import NEVER
from memd.index.memory_index import MemoryIndex
from memd.index.postings import TermStatistics
from memd.recall.session_bm25 import SessionBm25
from memd.recall.types import Question
from memd.store.filter import Filter, Mask

Rows = NDArray[np.int64]
_T = TypeVar("_T")
_FEW_SHARE = 0.25
"""A smaller part of all rows is also listed row by row."""


class EvidenceRows:
    """The rows that may support a memory, and the statistics of their words and sessions."""

    def __init__(self, index: MemoryIndex, mask: Mask) -> None:
        self._index = index
        self.mask = mask
        self.among = TermStatistics(mask, index.postings.df)

    @cached_property
    def sessions(self) -> SessionBm25:
        """The sessions of these rows."""
        return SessionBm25(self._index.columns, self._index.postings, self.among)


class HiddenRows:
    """Rows that a question would want, were it not for one reason."""

    def __init__(self, rows: Rows, summary_ids: NDArray[np.int64]) -> None:
        self.rows = rows
        self._summary_ids = summary_ids

    @cached_property
    def _numbered(self) -> tuple[NDArray[np.int64], int]:
        """The number of each row's summary among theirs, and how many summaries there are."""
        summaries, numbers = np.unique(self._summary_ids, return_inverse=True)
        return numbers, len(summaries)

    def summaries(self, matching: Mask) -> int:
        """How many summaries those of the rows belong to that are `matching`."""
        numbers, count = self._numbered
        is_met = np.zeros(count, np.bool_)
        is_met[numbers[matching]] = True
        return int(np.count_nonzero(is_met))


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """Which rows may be seen, shape (n,) each."""

    wanted: Mask
    """The rows that pass every filter of the question."""
    share: float
    """The share of these among all rows."""
    few: Rows | None
    """The same as row numbers, where they are few."""
    evidence: EvidenceRows
    """The same, but of any kind, tag, source and time."""
    hidden: Mapping[str, HiddenRows]
    """What would be wanted, were it not `superseded` or `expired`; without reasons that hide nothing."""


def find_visible_rows(index: MemoryIndex, question: Question) -> VisibleRows:
    """The question's filter as masks over all rows."""
    # A supersession may be younger than `as_of`: only the vault can tell; see Filter.was_superseded.
    asked = replace(question.filter, now=_last_expiry(index, question.now))
    evidence = _cached(
        index, ("evidence", asked.evidence), lambda: _evidence(index, asked.evidence)
    )
    return _cached(index, ("masks", asked), lambda: _masks(index, asked, evidence))


def _cached(index: MemoryIndex, key: Hashable, make: Callable[[], _T]) -> _T:
    return index.cache.get_or_compute(index.version, key, make)


def _last_expiry(index: MemoryIndex, now: int) -> int | None:
    """The last time until `now` at which anything expired: the same rows are hidden ever since."""
    c = index.columns
    if now < c.first_expiry:
        return None
    times = _cached(index, "expiries", lambda: np.unique(c.expires_at[c.expires_at < NEVER]))
    passed = int(times.searchsorted(now, "right"))
    return int(times[passed - 1]) if passed else None


def _evidence(index: MemoryIndex, asked: Filter) -> EvidenceRows:
    return EvidenceRows(index, asked.mask(index.columns))


def _masks(index: MemoryIndex, asked: Filter, evidence: EvidenceRows) -> VisibleRows:
    chosen, wanted = asked.known(index.columns), evidence.mask
    for mask in asked.chosen(index.columns).values():
        chosen, wanted = chosen & mask, wanted & mask
    share = int(np.count_nonzero(wanted)) / max(len(wanted), 1)
    found = {
        reason: np.flatnonzero(chosen & mask)
        for reason, mask in asked.hidden(index.columns).items()
    }
    return VisibleRows(
        wanted=wanted,
        share=share,
        few=np.flatnonzero(wanted) if share < _FEW_SHARE else None,
        evidence=evidence,
        hidden={
            reason: HiddenRows(rows, index.columns.summary_id[rows])
            for reason, rows in found.items()
            if len(rows)
        },
    )
