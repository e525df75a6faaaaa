"""BM25 of whole sessions, each as if it were one document, over the rows that may be seen. Pure.

How often a word stands in each session is remembered for the words that stand in many: a question costs
little then, however long the sessions are. Not here: what a memory gains by its session.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Columns
from memd.index.postings import InvertedIndex, TermStatistics, idf
from memd.recall.profiles import LexicalSettings

_REMEMBERED = 1 << 23
"""Bytes of all that is remembered."""
_MANY = 16
"""What has one posting for so many sessions is remembered."""
_BYTE_MAX = 255
_AT_ONCE = 1 << 17
"""Values of several words that are worked out in one step."""
_ROWS_AT_ONCE = 1 << 15
_TINY = np.float32(1e-12)

Floats = NDArray[np.float32]
Numbers = NDArray[np.intp]


class SessionBm25:
    """The sessions of the rows that are seen. To be made anew when rows change."""

    def __init__(
        self, columns: Columns, postings: InvertedIndex, among: TermStatistics
    ) -> None:
        self._postings = postings
        self._of_row = columns.session_id
        self._mask = None if among.is_everything else among.mask
        self.size = int(self._of_row.max(initial=0)) + 1
        lengths = np.zeros(self.size, np.float32)
        for first in range(0, columns.n, _ROWS_AT_ONCE):
            some = slice(first, first + _ROWS_AT_ONCE)
            self._add(lengths, some, columns.length[some].astype(np.float32), 0)
        lengths[0] = 0
        self.count = max(int(np.count_nonzero(lengths)), 1)
        average = float(lengths.sum(dtype=np.float64)) / self.count
        self._relative = lengths / np.float32(average or 1.0)
        self._norms: dict[tuple[float, float], Floats] = {}
        self._remembered: dict[tuple[int, float], NDArray[np.uint8]] = {}
        self._room = _REMEMBERED

    def scores(self, terms: Mapping[int, float], lexical: LexicalSettings) -> Floats:
        """BM25 of each session, shape (largest session id + 1,); 0 for no session."""
        scores = np.zeros(self.size, np.float32)
        numbers, step = list(terms), max(1, _AT_ONCE // self.size)
        for first in range(0, len(numbers), step):
            some = numbers[first : first + step]
            tf = self._frequencies(some, lexical.title_weight)
            weights = [
                terms[term] * idf(self.count, having) * (lexical.k1 + 1)
                for term, having in zip(
                    some, np.count_nonzero(tf, axis=1).tolist(), strict=True
                )
            ]
            worth = tf * np.array(weights, np.float32)[:, np.newaxis]
            tf += self._norm(lexical.k1, lexical.b)
            worth /= tf
            scores += worth.sum(axis=0)
        return scores

    def _frequencies(self, terms: Sequence[int], title_weight: float) -> Floats:
        """The tf of each of these words in each session, (len(terms), size)."""
        found = np.zeros((len(terms), self.size), np.float32)
        fresh = []
        for place, term in enumerate(terms):
            known = self._remembered.pop((term, title_weight), None)
            if known is None:
                fresh.append(place)
            else:
                found[place] = known
                self._remembered[term, title_weight] = known
        if fresh:
            self._count(terms, fresh, title_weight, found)
            for place in fresh:
                self._remember(terms[place], title_weight, found[place])
        return found

    def _count(
        self, terms: Sequence[int], fresh: Sequence[int], title_weight: float, into: Floats
    ) -> None:
        """Write the tf of the words at these places into their rows, which are zeros."""
        offsets = np.array(fresh) * self.size
        asked = [terms[place] for place in fresh]
        for portion in self._postings.frequencies(asked, title_weight):
            self._add(into.reshape(-1), portion.rows, portion.tf, portion.spread(offsets))
        into[:, 0] = 0

    def _add(
        self, sums: Floats, rows: Numbers | slice, values: Floats, offsets: Numbers | int
    ) -> None:
        """Add the values of rows that are seen to the sums of their sessions, from the offsets on."""
        if self._mask is not None:
            values *= self._mask[rows]
        places = self._of_row[rows].astype(np.intp)
        places += offsets
        np.add.at(sums, places, values)

    def _remember(self, term: int, title_weight: float, tf: Floats) -> None:
        if self._postings.size(term) * _MANY < self.size:
            return
        if float(title_weight).is_integer() and tf.max() <= _BYTE_MAX:
            self._remembered[term, title_weight] = tf.astype(np.uint8)
            self._room -= self.size
        while self._room < 0:
            del self._remembered[next(iter(self._remembered))]
            self._room += self.size

    def _norm(self, k1: float, b: float) -> Floats:
        if (k1, b) not in self._norms:
            norms = np.float32(k1) * (np.float32(1 - b) + np.float32(b) * self._relative)
            self._norms[k1, b] = norms + _TINY
        return self._norms[k1, b]
