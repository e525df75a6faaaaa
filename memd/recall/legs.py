"""The legs: independent rankings of the shelf's rows. Filters come first, the pool is cut after. Pure.

Rows are passages; a summary stands where its best passage stands. The caller holds the shelf's
lock. Not here: how rankings are fused.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import KIND_CODES
from memd.index.shelf import Shelf
from memd.recall.answer import Question
from memd.recall.profiles import Lexical
from memd.recall.query import Query

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_NONE: Rows = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Masks:
    """Which rows may be seen, shape (n,) each."""

    wanted: Mask
    """Every filter of the question."""
    evidence: Mask
    """What may speak for a neighbour: the same, but of any kind, tag and source."""
    superseded: Mask
    """Would be wanted, were they not superseded."""
    expired: Mask
    """Would be wanted, were they not expired."""


def masks(shelf: Shelf, question: Question) -> Masks:
    """The question's filters as masks over all rows."""
    c = shelf.columns
    seen = visible(shelf, question)
    expired = c.expires_at <= question.now
    superseded = c.superseded
    # A supersession may be younger than `as_of`: then only the recaller can tell, from the vault.
    hidden = (
        expired
        if question.include_superseded or question.as_of is not None
        else expired | superseded
    )
    chosen = seen.copy()
    for mask in filters(shelf, question).values():
        chosen &= mask
    return Masks(
        wanted=chosen & ~hidden,
        evidence=seen & ~hidden,
        superseded=chosen & superseded & ~expired & hidden,
        expired=chosen & expired,
    )


def visible(shelf: Shelf, question: Question) -> Mask:
    """What lies in the projects asked for and was known at the time, whatever else is filtered."""
    c = shelf.columns
    seen = c.live.copy()
    if question.as_of is not None:
        seen &= c.at <= question.as_of
    if question.project_ids is not None:
        seen &= np.isin(c.project_id, np.array(question.project_ids, dtype=np.int32))
    return seen


def filters(shelf: Shelf, question: Question) -> dict[str, Mask]:
    """What the question asks for by kind, session, source, time and tags: a mask a filter."""
    c = shelf.columns
    masks: dict[str, Mask] = {}
    if question.kinds:
        masks["kind"] = np.isin(c.kind, [KIND_CODES[kind.value] for kind in question.kinds])
    if question.session_id is not None:
        masks["session"] = c.session_id == question.session_id
    if question.source is not None:
        masks["source"] = c.source == c.source_code(question.source)
    if question.since is not None:
        masks["since"] = c.at >= question.since
    if question.until is not None:
        masks["until"] = c.at <= question.until
    if question.tags:
        masks["tags"] = c.with_tags(question.tags)
    return masks


@dataclass(frozen=True, slots=True)
class Terms:
    """A query in the index's own words."""

    numbers: Mapping[int, float]
    """Term number → weight."""
    groups: tuple[Rows, ...] = ()
    """For each phrase or prefix, the rows where it stands."""


def terms_of(shelf: Shelf, query: Query, phrase_passages: Sequence[Sequence[int]]) -> Terms:
    """Look the query up; `phrase_passages` are the passage ids where each phrase stands."""
    numbers = {
        number: weight
        for term, weight in query.terms.items()
        if (number := shelf.vocabulary.number(term)) is not None
    }
    groups = [shelf.columns.rows_with(passages) for passages in phrase_passages]
    for prefix in query.prefixes:
        found = [shelf.postings.rows_of(number) for number in shelf.vocabulary.expand(prefix)]
        groups.append(
            np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)
        )
    return Terms(numbers, tuple(groups))


def lexical_scores(shelf: Shelf, terms: Terms, lexical: Lexical, among: Mask) -> Floats:
    """BM25 of every row, shape (n,), with words as rare as they are `among` the rows that are seen.

    A phrase or prefix counts like one word that stands there once.
    """
    scores = np.asarray(
        shelf.postings.scores(
            terms.numbers,
            k1=lexical.k1,
            b=lexical.b,
            title_weight=lexical.title_weight,
            among=among,
        ),
        dtype=np.float64,
    )
    for rows in terms.groups:
        scores[rows] += rarity(among, rows)
    return scores


def rarity(among: Mask, rows: Rows, rows_min: int = 0) -> float:
    """BM25's idf of a word that stands in `rows`, counted over the rows that are seen.

    As if these were at least `rows_min`: of three memories chance says how rare a word is.
    """
    count, having = int(np.count_nonzero(among)), int(np.count_nonzero(among[rows]))
    count = max(count, rows_min)
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def rarities(shelf: Shelf, terms: Terms, among: Mask) -> dict[str, float]:
    """Term → its idf over the rows that are seen, of the words of a query that stand somewhere."""
    return {
        shelf.vocabulary.term(number) or "": rarity(among, shelf.postings.rows_of(number))
        for number in terms.numbers
    }


def is_among(rows: Rows, others: Rows) -> Mask:
    """Tell of each of `rows`, few, whether it is one of `others`, many and ascending."""
    if not len(others):
        return np.zeros(len(rows), np.bool_)
    places = np.minimum(np.searchsorted(others, rows), len(others) - 1)
    return np.asarray(others[places] == rows, np.bool_)


def best(shelf: Shelf, scores: Floats, mask: Mask, pool: int) -> Rows:
    """The best row of each of the `pool` best summaries, best first; ties: the newer one first."""
    rows = np.flatnonzero(mask & (scores > 0))
    take = pool * 4
    while True:
        cut = rows
        if len(rows) > take:
            weakest = np.partition(scores[rows], len(rows) - take)[len(rows) - take]
            cut = rows[scores[rows] >= weakest]  # all that tie with the last one
        firsts = first_of_each(shelf, in_order(shelf, cut, scores))
        if len(firsts) >= pool or len(cut) == len(rows):
            return firsts[:pool]
        take *= 4


def in_order(shelf: Shelf, rows: Rows, scores: Floats) -> Rows:
    """Rows by falling score, then by falling event time, then by falling id."""
    c = shelf.columns
    return rows[np.lexsort((-c.summary_id[rows], -c.at[rows], -scores[rows]))]


def first_of_each(shelf: Shelf, rows: Rows) -> Rows:
    """The first row of every summary, the order kept."""
    _, first = np.unique(shelf.columns.summary_id[rows], return_index=True)
    kept: Rows = rows[np.sort(first)]
    return kept


def vector_scores(
    shelf: Shelf, space: str, vector: NDArray[np.float32], mask: Mask, pool: int
) -> tuple[Rows, Floats]:
    """The rows nearest to `vector` in one space, and their cosines."""
    rows, cosines = shelf.matrices[space].top(vector, pool * 4, mask)
    return np.asarray(rows, dtype=np.int64), np.asarray(cosines, dtype=np.float64)


def nearest(shelf: Shelf, rows: Rows, cosines: Floats, pool: int) -> tuple[Rows, Floats]:
    """The nearest row of each of the `pool` nearest summaries, and its cosine."""
    c = shelf.columns
    order = np.lexsort((-c.summary_id[rows], -c.at[rows], -cosines))
    _, first = np.unique(c.summary_id[rows[order]], return_index=True)
    kept = order[np.sort(first)][:pool]
    return rows[kept], cosines[kept]


def topic(shelf: Shelf, summary_ids: Sequence[int], mask: Mask) -> Rows:
    """The first row of each summary with the topic key, in the order given (newest first)."""
    firsts = [shelf.columns.rows_of(number)[:1] for number in summary_ids]
    rows = (
        np.concatenate([np.asarray(f, dtype=np.int64) for f in firsts])
        if firsts
        else np.empty(0, np.int64)
    )
    kept: Rows = rows[mask[rows]]
    return kept
