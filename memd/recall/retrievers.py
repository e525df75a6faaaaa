"""The legs: independent rankings of the index's rows. Filters come first, the pool is keep_highest after. Pure.

Rows are passages; a summary stands where its best passage stands. The caller holds the index's
lock. Not here: how rankings are fused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memd.index.memory_index import MemoryIndex
from memd.index.postings import TermStatistics, idf
from memd.index.topk import keep_highest, top_rows
from memd.recall.filters import VisibleRows
from memd.recall.profiles import LexicalSettings
from memd.recall.query import QueryTerms

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]
_WIDER = 1.25
"""So many more rows than it takes on average are looked at for those that are wanted."""


@dataclass(frozen=True, slots=True)
class IndexedTerms:
    """A query in the index's own words."""

    numbers: Mapping[int, float]
    """Term number → weight."""
    groups: tuple[Rows, ...] = ()
    """For each phrase or prefix, the rows where it stands."""


def look_up_terms(
    index: MemoryIndex, query: QueryTerms, phrase_passages: Sequence[Sequence[int]]
) -> IndexedTerms:
    """Look the query up; `phrase_passages` are the passage ids where each phrase stands."""
    numbers = {
        number: weight
        for term, weight in query.terms.items()
        if (number := index.vocabulary.number(term)) is not None
    }
    groups = [index.columns.rows_with(passages) for passages in phrase_passages]
    groups += [_beginning_with(index, prefix) for prefix in query.prefixes]
    return IndexedTerms(numbers, tuple(groups))


def _beginning_with(index: MemoryIndex, prefix: str) -> Rows:
    """The rows with a word that begins so."""
    having = np.zeros(index.postings.n, np.bool_)
    for number in index.vocabulary.expand(prefix):
        having[index.postings.rows_of(number)] = True
    return np.flatnonzero(having)


def score_words(
    index: MemoryIndex, terms: IndexedTerms, lexical: LexicalSettings, among: TermStatistics
) -> Scores:
    """BM25 of every row, shape (n,), with words as rare as they are `among` the rows that are seen.

    A phrase or prefix counts like one word that stands there once. The next call writes to the same
    array.
    """
    scores = index.postings.scores(
        terms.numbers,
        k1=lexical.k1,
        b=lexical.b,
        title_weight=lexical.title_weight,
        among=among,
        out=index.cache.scratch("scores", index.postings.n),
    )
    for rows in terms.groups:
        scores[rows] += np.float32(idf_of_rows(among, rows))
    return scores


def idf_of_rows(among: TermStatistics, rows: Rows) -> float:
    """BM25's idf of a word that stands in `rows`, counted over the rows that are seen."""
    return idf(among.count, int(np.count_nonzero(among.mask[rows])))


def idf_of_terms(
    index: MemoryIndex, terms: IndexedTerms, among: TermStatistics
) -> dict[str, float]:
    """Term → its idf over the rows that are seen, of the words of a query that stand somewhere."""
    return {index.vocabulary.term(number) or "": among.idf(number) for number in terms.numbers}


def is_among(rows: Rows, others: Rows) -> Mask:
    """Tell of each of `rows`, few, whether it is one of `others`, many and ascending."""
    if not len(others):
        return np.zeros(len(rows), np.bool_)
    places = np.minimum(np.searchsorted(others, rows), len(others) - 1)
    return np.asarray(others[places] == rows, np.bool_)


def best_rows(index: MemoryIndex, scores: Scores, seen: VisibleRows, pool: int) -> Rows:
    """The best row of each of the `pool` best summaries, best first; ties: the newer one first."""
    take = pool * 4
    while True:
        rows, is_all = _strongest(scores, seen, take)
        firsts = first_row_per_summary(index, sort_rows(index, rows, scores))
        if len(firsts) >= pool or is_all:
            return firsts[:pool]
        take *= 4


def _strongest(scores: Scores, seen: VisibleRows, take: int) -> tuple[Rows, bool]:
    """The wanted rows with the `take` best scores above 0, and what ties with the last; whether it is all."""
    if seen.few is not None:
        places, is_all = top_rows(scores[seen.few], take)
        rows = seen.few[places]
    else:
        rows, is_all = _wanted(scores, seen, take)
    best_rows = keep_highest(rows, scores, take)
    return best_rows, is_all and len(best_rows) == len(rows)


def _wanted(scores: Scores, seen: VisibleRows, take: int) -> tuple[Rows, bool]:
    """As `top_rows`, of the rows that are wanted: many are, so not many of the others are in the way."""
    wide = take if seen.share == 1 else int(_WIDER * take / seen.share)
    while True:
        rows, is_all = top_rows(scores, wide)
        rows = rows[seen.wanted[rows]]
        if is_all or len(rows) >= take:
            return rows, is_all
        wide *= 4


def sort_rows(index: MemoryIndex, rows: Rows, scores: Scores) -> Rows:
    """Rows by falling score, then by falling event time, then by falling id."""
    c = index.columns
    return rows[np.lexsort((-c.summary_id[rows], -c.at[rows], -scores[rows]))]


def first_row_per_summary(index: MemoryIndex, rows: Rows) -> Rows:
    """The first row of every summary, the order kept."""
    _, first = np.unique(index.columns.summary_id[rows], return_index=True)
    kept: Rows = rows[np.sort(first)]
    return kept


def search_vectors(
    index: MemoryIndex, space: str, vector: NDArray[np.float32], mask: Mask, pool: int
) -> tuple[Rows, Floats]:
    """The rows nearest to `vector` in one space, and their cosines."""
    rows, cosines = index.matrices[space].top(vector, pool * 4, mask)
    return np.asarray(rows, dtype=np.int64), np.asarray(cosines, dtype=np.float64)


def nearest_summaries(
    index: MemoryIndex, rows: Rows, cosines: Floats, pool: int
) -> tuple[Rows, Floats]:
    """The nearest row of each of the `pool` nearest summaries, and its cosine."""
    c = index.columns
    order = np.lexsort((-c.summary_id[rows], -c.at[rows], -cosines))
    _, first = np.unique(c.summary_id[rows[order]], return_index=True)
    kept = order[np.sort(first)][:pool]
    return rows[kept], cosines[kept]


def find_topic(index: MemoryIndex, summary_ids: Sequence[int], mask: Mask) -> Rows:
    """The first row of each summary with the topic key, in the order given (newest first)."""
    firsts = [index.columns.rows_of(number)[:1] for number in summary_ids]
    rows = (
        np.concatenate([np.asarray(f, dtype=np.int64) for f in firsts])
        if firsts
        else np.empty(0, np.int64)
    )
    kept: Rows = rows[mask[rows]]
    return kept
