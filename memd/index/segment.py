"""Immutable segment of postings, sorted by term and row like a sparse matrix in CSR form. Pure.

Consecutive segments are merged without sorting, since each is sorted and covers later rows than the previous one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEP_POSTINGS = 1 << 20
"""Postings that are copied in one step, which bounds the memory of a merge."""

ByteCounts = NDArray[np.uint8]
TermNumbers = NDArray[np.uint32]
Starts = NDArray[np.int64]
RowNumbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Segment:
    """Postings of consecutive rows, sorted by (term, row)."""

    terms: TermNumbers
    """Each term once, ascending."""
    starts: Starts
    """Where a term's postings begin; one longer than `terms`."""
    rows: RowNumbers
    title: ByteCounts
    body: ByteCounts

    def slice(self, term: int) -> slice:
        """Where this term's postings lie."""
        at = int(self.terms.searchsorted(np.uint32(term)))
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))


ARRAY_NAMES = ("terms", "starts", "rows", "title", "body")
"""The arrays of a segment."""


def build_segment(
    terms: TermNumbers, rows: RowNumbers, title: ByteCounts, body: ByteCounts
) -> Segment:
    """Sort postings, which come in order of row, by term."""
    order = np.argsort(terms, kind="stable")
    ordered = terms[order]
    firsts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + np.uint32(1)))
    starts = np.append(firsts, len(ordered))
    return Segment(ordered[firsts], starts, rows[order], title[order], body[order])


def join_segments(segments: Sequence[Segment]) -> Segment:
    """Merge consecutive segments, a range of terms at a time."""
    terms = np.unique(np.concatenate([one.terms for one in segments]))
    places = [terms.searchsorted(one.terms) for one in segments]
    counts = np.zeros(len(terms), np.int64)
    for one, at in zip(segments, places, strict=True):
        counts[at] += np.diff(one.starts)
    starts = np.append(0, np.cumsum(counts))
    size = int(starts[-1])
    whole = Segment(
        terms, starts, np.empty(size, np.int32), np.empty(size, np.uint8), np.empty(size, np.uint8)
    )
    free = starts[:-1].copy()  # per term, where its next posting goes
    for one, at in zip(segments, places, strict=True):
        _copy_postings(one, free[at], whole)
        free[at] += np.diff(one.starts)
    return whole


def _copy_postings(one: Segment, places: Starts, into: Segment) -> None:
    """Copy the postings of each term of a segment to its place."""
    for first, stop in _split_terms(one.starts):
        some = slice(int(one.starts[first]), int(one.starts[stop]))
        lengths = np.diff(one.starts[first : stop + 1])
        shift = np.repeat(places[first:stop] - one.starts[first:stop], lengths)
        at = shift + np.arange(some.start, some.stop)
        for name in ("rows", "title", "body"):
            getattr(into, name)[at] = getattr(one, name)[some]


def _split_terms(starts: Starts) -> Iterator[tuple[int, int]]:
    """Split the terms into ranges of about `_STEP_POSTINGS` postings, at least one term each."""
    first, last = 0, len(starts) - 1
    while first < last:
        stop = int(starts.searchsorted(starts[first] + _STEP_POSTINGS, "right")) - 1
        stop = min(max(stop, first + 1), last)
        yield first, stop
        first = stop


def renumber_rows(one: Segment, mapping: RowNumbers) -> Segment:
    """Replace row numbers, whose order stays; drop rows whose new number is -1."""
    rows, title, body = [], [], []
    counts = np.zeros(len(one.terms), np.int64)
    for first, stop in _split_terms(one.starts):
        some = slice(int(one.starts[first]), int(one.starts[stop]))
        new = mapping[one.rows[some]]
        stay = new >= 0
        counts[first:stop] = np.add.reduceat(
            stay, one.starts[first:stop] - some.start, dtype=np.int64
        )
        rows.append(new[stay])
        title.append(one.title[some][stay])
        body.append(one.body[some][stay])
    left = counts > 0
    starts = np.append(0, np.cumsum(counts[left]))
    return Segment(
        one.terms[left],
        starts,
        np.concatenate(rows) if rows else one.rows,
        np.concatenate(title) if title else one.title,
        np.concatenate(body) if body else one.body,
    )
