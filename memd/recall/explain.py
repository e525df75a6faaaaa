"""What matches a question's words and was not to be seen: for the trace of an explained search. Pure.

Superseded, expired or left out by a filter. Nothing later than `as_of` and nothing of a project that
was not asked for: what the question must not see, its explanation must not tell.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from memd.index.memory_index import MemoryIndex
from memd.recall import filters, retrievers
from memd.recall.types import Question

NEAR_MISSES_MAX = 20


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A memory that would have been a candidate."""

    summary_id: int
    row: int
    why: str
    """`superseded`, `expired` or `filtered: kind, time`."""


def find_near_misses(
    index: MemoryIndex,
    question: Question,
    seen: filters.VisibleRows,
    scores: retrievers.Scores,
    candidates: Collection[int],
) -> Sequence[NearMiss]:
    """The 20 that match best by their words, best first; none of the `candidates`, summary ids."""
    chosen = question.filter.chosen(index.columns)
    known = question.filter.known(index.columns)
    rows = np.flatnonzero(known & ~seen.wanted & (scores > 0))
    found = []
    for row in retrievers.first_row_per_summary(
        index, retrievers.sort_rows(index, rows, scores)
    ).tolist():
        number = int(index.columns.summary_id[row])
        if number not in candidates:
            names = [name for name, mask in chosen.items() if not mask[row]]
            found.append(NearMiss(number, row, _why(index, question, row, names)))
        if len(found) == NEAR_MISSES_MAX:
            break
    return found


def _why(index: MemoryIndex, question: Question, row: int, filtered_by: Sequence[str]) -> str:
    if filtered_by:
        return f"filtered: {', '.join(filtered_by)}"
    return "expired" if index.columns.expires_at[row] <= question.now else "superseded"
