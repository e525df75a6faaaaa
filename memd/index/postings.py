"""Exact BM25 in numpy: which passages a word stands in, and what that is worth. Pure.

Postings lie in a few segments, each sorted by term like a sparse matrix in CSR form and each covering
the rows after those of the one before. An append makes a small segment; one that is not four times as
big as its successor is merged with it, so there are few, and a posting is moved a few times at most.
A retired row keeps its postings until `compact`, scores 0 and counts for nothing.

score(row) = Σ weight · idf · tf·(k1 + 1) / (tf + k1·(1 - b + b·length/average)), with
tf = title_weight·(in title) + (in body) and idf = ln(1 + (N - df + ½)/(df + ½))
(Robertson and Zaragoza, 2009; the idf as in Lucene, never negative). Not here: what a word is.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Rows

POSTING = np.dtype([("term", "<u4"), ("title", "u1"), ("body", "u1")])
"""One posting as the store keeps it."""
_MERGE_RATIO = 4
_SEGMENT_MIN = 4_096
_RECALLED_MAX = 64
"""Words whose rows are kept at hand: those of one question are asked for three or four times."""

Counts = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Segment:
    """Postings of consecutive rows, sorted by (term, row)."""

    terms: NDArray[np.uint32]
    """Each term once, ascending."""
    starts: NDArray[np.int64]
    """Where a term's postings begin; one longer than `terms`."""
    rows: NDArray[np.int32]
    title: Counts
    body: Counts

    def slice(self, term: int) -> slice:
        """Where this term's postings lie."""
        at = int(np.searchsorted(self.terms, np.uint32(term)))
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))


def _segment(
    terms: NDArray[np.uint32], rows: NDArray[np.int32], title: Counts, body: Counts
) -> Segment:
    """Sort postings, which come in order of row, by term."""
    order = np.argsort(terms, kind="stable")
    ordered = terms[order]
    firsts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + np.uint32(1)))
    starts = np.append(firsts, len(ordered))
    return Segment(ordered[firsts], starts, rows[order], title[order], body[order])


def _joined(segments: Sequence[Segment]) -> Segment:
    return _segment(
        np.concatenate([np.repeat(s.terms, np.diff(s.starts)) for s in segments]),
        np.concatenate([s.rows for s in segments]),
        np.concatenate([s.title for s in segments]),
        np.concatenate([s.body for s in segments]),
    )


class Postings:
    """The postings of the shelf's rows, in step with its columns."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._lengths = np.zeros(0, np.float32)
        self._live = np.zeros(0, np.bool_)
        self._norms: dict[tuple[float, float], Floats] = {}
        self._recalled: dict[int, tuple[Rows, Counts, Counts]] = {}
        self._recalled_rows = 0

    @property
    def n(self) -> int:
        """How many rows there are, retired ones too."""
        return len(self._live)

    def append(self, blobs: Sequence[bytes], lengths: Sequence[int]) -> None:
        """Add one row per blob of postings, as the store keeps them."""
        found = np.frombuffer(b"".join(blobs), POSTING)
        sizes = np.array([len(blob) // POSTING.itemsize for blob in blobs], np.int64)
        rows = np.repeat(np.arange(self.n, self.n + len(blobs), dtype=np.int32), sizes)
        if len(found):
            self._segments.append(_segment(found["term"], rows, found["title"], found["body"]))
            self._merge()
        self._lengths = np.append(self._lengths, np.asarray(lengths, np.float32))
        self._live = np.append(self._live, np.ones(len(blobs), np.bool_))
        self._changed()

    def _changed(self) -> None:
        self._norms.clear()
        self._recalled.clear()
        self._recalled_rows = 0

    def _merge(self) -> None:
        count = 1
        size = len(self._segments[-1].rows)
        for segment in reversed(self._segments[:-1]):
            if len(segment.rows) >= max(_MERGE_RATIO * size, _SEGMENT_MIN):
                break
            count += 1
            size += len(segment.rows)
        if count > 1:
            self._segments[-count:] = [_joined(self._segments[-count:])]

    def retire(self, rows: Rows) -> None:
        """Let these rows count for nothing any more."""
        self._live[rows] = False
        self._changed()

    def compact(self, mapping: NDArray[np.int32]) -> None:
        """Drop the retired rows; `mapping` tells each row's new number, -1 for none."""
        kept = mapping >= 0
        self._lengths, self._live = self._lengths[kept], self._live[kept]
        self._changed()
        if self._segments:
            old = _joined(self._segments)
            stay = kept[old.rows]
            terms = np.repeat(old.terms, np.diff(old.starts))[stay]
            self._segments = [
                _segment(terms, mapping[old.rows[stay]], old.title[stay], old.body[stay])
            ]

    def terms(self) -> Iterable[int]:
        """List every term that stands somewhere, if only in a retired row."""
        return {int(term) for segment in self._segments for term in segment.terms}

    def term(self, term: int) -> tuple[Rows, Counts, Counts]:
        """Return the live rows with a term, ascending, and how often it is in their title and body."""
        known = self._recalled.get(term)
        if known is None:
            known = self._look_up(term)
            self._recalled_rows += len(known[0])
            if len(self._recalled) == _RECALLED_MAX or self._recalled_rows > 4 * self.n:
                self._recalled.clear()
                self._recalled_rows = len(known[0])
            self._recalled[term] = known
        return known

    def _look_up(self, term: int) -> tuple[Rows, Counts, Counts]:
        found = [self._live_slice(segment, term) for segment in self._segments]
        if not found:
            none = np.zeros(0, np.uint8)
            return np.zeros(0, np.intp), none, none
        rows, title, body = zip(*found, strict=True)
        return np.concatenate(rows).astype(np.intp), np.concatenate(title), np.concatenate(body)

    def _live_slice(
        self, segment: Segment, term: int
    ) -> tuple[NDArray[np.int32], Counts, Counts]:
        at = segment.slice(term)
        rows = segment.rows[at]
        live = self._live[rows]
        if live.all():
            return rows, segment.title[at], segment.body[at]
        return rows[live], segment.title[at][live], segment.body[at][live]

    def rows_of(self, term: int) -> Rows:
        """Return the live rows with a term, ascending."""
        return self.term(term)[0]

    def df(self, term: int) -> int:
        """Count the live rows with a term."""
        return sum(
            int(np.count_nonzero(self._live[s.rows[s.slice(term)]])) for s in self._segments
        )

    def matched(self, row: int, terms: Iterable[int]) -> list[int]:
        """Return those of these terms that stand in a live row."""
        return [term for term in terms if self._live[row] and self._has(row, term)]

    def _has(self, row: int, term: int) -> bool:
        for segment in self._segments:
            rows = segment.rows[segment.slice(term)]
            at = int(np.searchsorted(rows, row))
            if at < len(rows) and rows[at] == row:
                return True
        return False

    def scores(
        self,
        terms: Mapping[int, float],
        *,
        k1: float,
        b: float,
        title_weight: float,
        among: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """BM25 of every row, (n,), for term number → weight in the query; see the top of the file.

        `among`, (n,), says which rows a word's rarity is counted over: what is common in one project
        may be rare in the vault, and says nothing there.
        """
        scores = np.zeros(self.n, np.float32)
        norms = self._norm(k1, b)
        count = int(np.count_nonzero(self._live if among is None else among))
        for term, weight in terms.items():
            rows, title, body = self.term(term)
            tf = np.float32(title_weight) * title + body
            having = len(rows) if among is None else int(np.count_nonzero(among[rows]))
            idf = math.log(1 + (count - having + 0.5) / (having + 0.5))
            scores[rows] += np.float32(weight * idf * (k1 + 1)) * tf / (tf + norms[rows])
        return scores

    def _norm(self, k1: float, b: float) -> Floats:
        """Return k1·(1 - b + b·length/average), (n,), kept until a row comes or goes."""
        if (k1, b) not in self._norms:
            live = self._lengths[self._live]
            average = float(live.mean(dtype=np.float64)) if len(live) else 1.0
            relative = self._lengths / np.float32(average or 1.0)
            # Never 0: a word that counts nothing in a passage without length is worth 0, not NaN.
            self._norms[k1, b] = np.maximum(k1 * (1 - b + b * relative), 1e-9).astype(
                np.float32
            )
        return self._norms[k1, b]
