"""The retrievers: each ranks the rows of the index that a question may see, by topic, words or vectors.

Rows are passages; a summary ranks where its best passage ranks. Filters apply before the pool is cut.
What depends on the filter alone is cached until the index changes, so that a filter costs nothing that
grows with the vault. The caller holds the index's lock.
"""

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.embeddings.hashing import weigh_question
from memd.index.columns import NEVER, Columns
from memd.index.memory_index import MemoryIndex
from memd.index.postings import InvertedIndex, TermStatistics, idf
from memd.recall import Question
from memd.recall.lookup import IndexedTerms, PassageGroup, look_up_terms
from memd.recall.profiles import LexicalSettings
from memd.recall.query import ParsedQuery, QueryTerms, QueryVector
from memd.store.filter import Filter, Mask
from memd.text import terms as terms_of

VAULT_ROWS_MIN = 50
"""A young vault counts its words as if it had this many rows; else one unknown word would outweigh all known ones."""
_FEW_SHARE = 0.25
"""A filter that leaves a smaller share of the rows than this also lists them by number."""
_READ_AHEAD = 1.25
"""How many times the rows needed on average are read to find enough that pass the filter."""
_CACHE_BYTES_MAX = 1 << 23
"""Bytes of term frequencies by session that are cached."""
_SESSIONS_PER_POSTING_MAX = 16
"""A word with fewer postings than one for this many sessions is counted each time, not cached."""
_POSTINGS_PER_LOOKUP = 8
"""To find one row among a term's postings takes as long as to add up this many of them."""
_CACHED_FREQUENCY_MAX = 255
"""The highest frequency that fits into a cached byte."""
_BLOCK_ROWS = 1 << 15
"""Rows whose lengths are summed in one step."""
_UNKNOWN_WORD = 0.5
"""What a word that no row has counts in the hashing vector of a question; the rarest counts 1."""

_COLUMNS_MIN = 2_048
_COLUMNS_ROOT = 8
"""Columns per √n: then finding the column maxima costs as much as searching the columns that remain."""

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Scores = NDArray[np.float32]
_T = TypeVar("_T")
NO_ROWS: Rows = np.empty(0, dtype=np.int64)
NO_SCORES: Floats = np.empty(0)


# ── What a question may see ──────────────────────────────────────────────────────────────────────


class SessionTerms:
    """Term counts of whole sessions, each as one document of the rows that may be seen."""

    def __init__(self, columns: Columns, postings: InvertedIndex, among: TermStatistics) -> None:
        self._columns, self._postings = columns, postings
        self._session_of_row = columns.session_id
        self._mask = None if among.is_everything else among.mask
        self.size = int(self._session_of_row.max(initial=0)) + 1
        lengths = np.zeros(self.size, np.float32)
        for first in range(0, columns.n, _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            self._add_to_sessions(lengths, block, columns.length[block].astype(np.float32), 0)
        lengths[0] = 0
        self._lengths = lengths
        self._cached: dict[tuple[int, float], NDArray[np.uint8]] = {}
        self._cache_bytes_free = _CACHE_BYTES_MAX

    def count_terms(
        self, terms: Sequence[int], title_weight: float, sessions: NDArray[np.int32]
    ) -> tuple[Scores, Scores]:
        """Count each term in each of these sessions, (len(terms), m), and all terms of each session, (m,).

        A term in most sessions is counted everywhere once and cached. One with many postings, but fewer than there
        are sessions, is only looked for in the rows of these: the cache holds 64 terms of 125,000 sessions.
        """
        found = np.empty((len(terms), len(sessions)), np.float32)
        missing = []
        for place, term in enumerate(terms):
            cached = self._cached.pop((term, title_weight), None)
            if cached is None:
                missing.append(place)
            else:
                found[place] = cached[sessions]
                self._cached[term, title_weight] = cached
        missing = self._count_in_rows(terms, missing, title_weight, sessions, found)
        if missing:
            counted = self._count_everywhere([terms[place] for place in missing], title_weight)
            found[missing] = counted[:, sessions]
        return found, self._lengths[sessions]

    def _count_in_rows(
        self,
        terms: Sequence[int],
        places: list[int],
        title_weight: float,
        sessions: NDArray[np.int32],
        out: Scores,
    ) -> list[int]:
        """Write the counts of some of the terms at these places, found row by row; return the places of the others."""
        expected = _POSTINGS_PER_LOOKUP * len(sessions) * len(self._session_of_row) // self.size
        some = [p for p in places if expected <= self._postings.size(terms[p]) < self.size]
        # Fractions might be rounded in another way than where they are counted everywhere.
        if not some or not float(title_weight).is_integer():
            return places
        distinct, place_of_session = np.unique(sessions, return_inverse=True)
        rows = self._columns.rows_of_sessions(distinct[distinct > 0])
        least = _POSTINGS_PER_LOOKUP * len(rows)
        some = [p for p in some if least <= self._postings.size(terms[p])]
        counts = self._postings.count_terms([terms[p] for p in some], rows, title_weight)
        if self._mask is not None:
            counts *= self._mask[rows]
        own = distinct.searchsorted(self._session_of_row[rows])
        for place, values in zip(some, counts, strict=True):
            sums = np.zeros(len(distinct), np.float32)
            np.add.at(sums, own, values)
            out[place] = sums[place_of_session]
        return [p for p in places if p not in some]

    def _count_everywhere(self, terms: Sequence[int], title_weight: float) -> Scores:
        """Count each of these terms in each session, (len(terms), size)."""
        found = np.zeros((len(terms), self.size), np.float32)
        offsets = np.arange(len(terms)) * self.size
        for portion in self._postings.frequencies(terms, title_weight):
            self._add_to_sessions(
                found.reshape(-1), portion.rows, portion.tf, portion.spread(offsets)
            )
        found[:, 0] = 0
        for term, counts in zip(terms, found, strict=True):
            self._cache_frequencies(term, title_weight, counts)
        return found

    def _add_to_sessions(
        self,
        sums: Scores,
        rows: NDArray[np.intp] | slice,
        values: Scores,
        offsets: NDArray[np.intp] | int,
    ) -> None:
        """Add the values of visible rows to the sums of their sessions, from the offsets on."""
        if self._mask is not None:
            values *= self._mask[rows]
        places = self._session_of_row[rows].astype(np.intp)
        places += offsets
        np.add.at(sums, places, values)

    def _cache_frequencies(self, term: int, title_weight: float, tf: Scores) -> None:
        if self._postings.size(term) * _SESSIONS_PER_POSTING_MAX < self.size:
            return
        if float(title_weight).is_integer() and tf.max() <= _CACHED_FREQUENCY_MAX:
            self._cached[term, title_weight] = tf.astype(np.uint8)
            self._cache_bytes_free -= self.size
        while self._cache_bytes_free < 0:
            del self._cached[next(iter(self._cached))]
            self._cache_bytes_free += self.size


class ContextRows:
    """The rows that may support a memory, and the statistics of their words and sessions."""

    def __init__(self, index: MemoryIndex, mask: Mask) -> None:
        self._index = index
        self.mask = mask
        self.among = TermStatistics(mask, index.postings.df)

    @cached_property
    def length(self) -> float:
        """The sum of their lengths, in terms."""
        return float(self._index.columns.length.sum(dtype=np.float64, where=self.mask))

    @cached_property
    def short_length(self) -> float:
        """The lower quartile of their lengths; 0 if there is none."""
        lengths = self._index.columns.length[self.mask]
        place = len(lengths) // 4
        return float(np.partition(lengths, place)[place]) if len(lengths) else 0.0

    @cached_property
    def sessions(self) -> SessionTerms:
        """The sessions of these rows."""
        return SessionTerms(self._index.columns, self._index.postings, self.among)


class HiddenRows:
    """Rows that a question would see were they not superseded, or not expired."""

    def __init__(self, rows: Rows, summary_ids: NDArray[np.int64]) -> None:
        self.rows = rows
        self._summary_ids = summary_ids

    @cached_property
    def _summary_numbers(self) -> tuple[NDArray[np.int64], int]:
        """Return for each row the number of its summary among theirs, and how many summaries there are."""
        summaries, numbers = np.unique(self._summary_ids, return_inverse=True)
        return numbers, len(summaries)

    def count_summaries(self, matching: Mask) -> int:
        """Count the summaries that have at least one `matching` row."""
        numbers, count = self._summary_numbers
        is_matching = np.zeros(count, np.bool_)
        is_matching[numbers[matching]] = True
        return int(np.count_nonzero(is_matching))


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """Rows that a question may see; masks have shape (n,)."""

    wanted: Mask
    """The rows that pass every filter of the question."""
    share: float
    """The share of these among all rows."""
    few: Rows | None
    """The same as row numbers, where they are few."""
    context_rows: ContextRows
    """The same, but of any kind, tag, source and time."""
    hidden: Mapping[str, HiddenRows]
    """What would be wanted, were it not `superseded` or `expired`; without reasons that hide nothing."""

    def narrow(self, mask: Mask) -> "VisibleRows":
        """The same, where only the wanted rows in `mask` are wanted."""
        wanted = self.wanted & mask
        rows = np.flatnonzero(wanted)
        share = len(rows) / max(len(wanted), 1)
        return replace(self, wanted=wanted, share=share, few=rows if share < _FEW_SHARE else None)


def find_visible_rows(index: MemoryIndex, question: Question) -> VisibleRows:
    """The question's filter as masks over all rows."""
    # A supersession may be younger than `as_of`: only the vault knows; see Filter.was_superseded.
    wanted = question.make_filter(_find_last_expiry(index, question.asked_at))
    context = wanted.context
    context_rows = _cache_value(
        index, ("context", context), lambda: ContextRows(index, context.mask(index.columns))
    )
    return _cache_value(
        index, ("visible", wanted), lambda: _compute_visible_rows(index, wanted, context_rows)
    )


def _cache_value(index: MemoryIndex, key: Hashable, make: Callable[[], _T]) -> _T:
    return index.cache.get_or_compute(index.version, key, make)


def _find_last_expiry(index: MemoryIndex, now: int) -> int | None:
    """The last time until `now` at which anything expired: the same rows are hidden ever since."""
    c = index.columns
    if now < c.first_expiry:
        return None
    times = _cache_value(index, "expiries", lambda: np.unique(c.expires_at[c.expires_at < NEVER]))
    passed = int(times.searchsorted(now, "right"))
    return int(times[passed - 1]) if passed else None


def _compute_visible_rows(
    index: MemoryIndex, wanted: Filter, context_rows: ContextRows
) -> VisibleRows:
    chosen, mask = wanted.known(index.columns), context_rows.mask
    for criterion in wanted.chosen(index.columns).values():
        chosen, mask = chosen & criterion, mask & criterion
    share = int(np.count_nonzero(mask)) / max(len(mask), 1)
    hidden = {
        reason: np.flatnonzero(chosen & rows)
        for reason, rows in wanted.hidden(index.columns).items()
    }
    return VisibleRows(
        wanted=mask,
        share=share,
        few=np.flatnonzero(mask) if share < _FEW_SHARE else None,
        context_rows=context_rows,
        hidden={
            reason: HiddenRows(rows, index.columns.summary_id[rows])
            for reason, rows in hidden.items()
            if len(rows)
        },
    )


# ── The question in terms of the index ───────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class IndexedQuery:
    """A parsed query, looked up in one version of the index."""

    index: MemoryIndex
    parsed: ParsedQuery
    terms: IndexedTerms
    visible: VisibleRows


def look_up_query(
    index: MemoryIndex, parsed: ParsedQuery, passages: Sequence[PassageGroup]
) -> IndexedQuery:
    """Look a query up; `passages` are those that have each phrase or literal."""
    visible, question = find_visible_rows(index, parsed.question), parsed.question
    terms = look_up_terms(
        index,
        parsed.terms,
        passages,
        visible.context_rows.among,
        is_strict=question.relevance_gate is not None or question.all_words,
    )
    if question.all_words:
        every = [
            *(_find_rows_with_word(index, parsed.terms, w) for w in parsed.terms.words),
            *terms.groups,
        ]
        visible = visible.narrow(_find_rows_with_all(index, every))
    elif parsed.terms.required and question.relevance_gate is None:
        every = [_find_rows_with_word(index, parsed.terms, w) for w in parsed.terms.required]
        visible = visible.narrow(_find_rows_with_all(index, every))
    return IndexedQuery(index, parsed, terms, visible)


def _find_rows_with_all(index: MemoryIndex, having: Sequence[Rows]) -> Mask:
    """The rows of the memories that have some passage in each of these: of every word, phrase, prefix and literal."""
    mask = np.ones(index.columns.n, np.bool_)
    for rows in having:
        mask &= np.isin(index.columns.summary_id, index.columns.summary_id[rows])
    return mask


def _find_rows_with_word(index: MemoryIndex, terms: QueryTerms, word: str) -> Rows:
    """The rows that have a word as it stands, or all parts of an identifier."""
    alike = [(term, *terms.alternatives.get(term, ())) for term in terms_of(word)]
    found = []
    for some in alike:
        numbers = (index.vocabulary.number(term) for term in some)
        rows = [index.postings.rows_of(number) for number in numbers if number is not None]
        found.append(np.unique(np.concatenate([np.empty(0, np.int64), *rows])).astype(np.int64))
    whole, parts = found[0], found[1:]
    return np.union1d(whole, functools.reduce(np.intersect1d, parts)) if parts else whole


# ── By words ─────────────────────────────────────────────────────────────────────────────────────


def score_words(
    index: MemoryIndex, terms: IndexedTerms, lexical: LexicalSettings, among: TermStatistics
) -> Scores:
    """BM25 of every row, shape (n,), with words as rare as they are `among` the rows that may be seen.

    A phrase, prefix or literal counts like words that the row has once. The next call writes to the same
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
    for rows, weight in zip(terms.groups, terms.group_weights, strict=True):
        having = int(np.count_nonzero(among.mask[rows]))
        scores[rows] += np.float32(weight * idf(among.count, having))
    return scores


def best_rows(index: MemoryIndex, scores: Scores, visible: VisibleRows, pool: int) -> Rows:
    """The best row of each of the `pool` best summaries, best first; ties: the newer one first."""
    take = pool * 4
    while True:
        rows, is_all = _take_highest(scores, visible, take)
        firsts = first_row_per_summary(index, rows[sort_rows(index, rows, scores[rows])])
        if len(firsts) >= pool or is_all:
            return firsts[:pool]
        take *= 4


def _take_highest(scores: Scores, visible: VisibleRows, take: int) -> tuple[Rows, bool]:
    """The wanted rows with the `take` best scores above 0, and ties with the last; whether that is all."""
    if visible.few is not None:
        places, is_all = top_rows(scores[visible.few], take)
        rows = visible.few[places]
    else:
        rows, is_all = _take_highest_of_many(scores, visible, take)
    taken = keep_highest(rows, scores, take)
    return taken, is_all and len(taken) == len(rows)


def _take_highest_of_many(scores: Scores, visible: VisibleRows, take: int) -> tuple[Rows, bool]:
    """Return the highest wanted rows as `top_rows` does; they are many, so reading a few rows more finds enough."""
    count = take if visible.share == 1 else int(_READ_AHEAD * take / visible.share)
    while True:
        rows, is_all = top_rows(scores, count)
        rows = rows[visible.wanted[rows]]
        if is_all or len(rows) >= take:
            return rows, is_all
        count *= 4


def sort_rows(index: MemoryIndex, rows: Rows, scores: Scores | Floats) -> NDArray[np.intp]:
    """The order of `rows` by falling score, then by falling event time, then by falling id."""
    c = index.columns
    return np.lexsort((-c.summary_id[rows], -c.at[rows], -scores))


def first_row_per_summary(index: MemoryIndex, rows: Rows) -> Rows:
    """The first row of every summary, in the order given."""
    ids = index.columns.summary_id[rows].tolist()
    if len(set(ids)) == len(ids):
        return np.asarray(rows, np.int64)
    # Quicker than numpy's `unique` for some hundred rows; of equal keys a dict keeps the last value.
    firsts = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
    return np.asarray(rows[sorted(firsts.values())], np.int64)


def contains_rows(haystack: Rows, rows: Rows) -> Mask:
    """Return for each of `rows`, few, whether `haystack`, many and ascending, has it."""
    if not len(haystack):
        return np.zeros(len(rows), np.bool_)
    places = np.minimum(np.searchsorted(haystack, rows), len(haystack) - 1)
    return np.asarray(haystack[places] == rows, np.bool_)


# Top k without a full sort: scores lie in a few thousand columns, and the highest of each column shows which can hold
# a wanted score; only those are searched.


def top_rows(scores: Scores, count: int) -> tuple[Rows, bool]:
    """Return rows, ascending, with at least the `count` highest scores above 0, and whether these are all above 0.

    There may be more than `count`, with every row that ties with one of them.
    """
    columns = max(_COLUMNS_MIN, int(_COLUMNS_ROOT * len(scores) ** 0.5))
    height = len(scores) // columns
    if height < 2:  # noqa: PLR2004  # a column of one is nothing to choose from
        return np.flatnonzero(scores > 0), True
    width = len(scores) // height
    grid = scores[: height * width].reshape(height, width)
    tops = grid.max(axis=0)
    limit = _nth_highest(tops, count) if count <= width else 0
    if limit <= 0:
        return np.flatnonzero(scores > 0), True
    kept = np.flatnonzero(tops >= limit)
    down, across = np.nonzero(grid[:, kept] >= limit)
    rest = height * width + np.flatnonzero(scores[height * width :] >= limit)
    return np.concatenate((down * width + kept[across], rest)), False


def _nth_highest(scores: Scores, count: int) -> np.float32:
    """Return the lowest of the `count` highest. Sorts, because partition is slow with many equal scores."""
    limit: np.float32 = np.sort(scores)[len(scores) - count]
    return limit


def keep_highest(rows: Rows, scores: Scores, count: int) -> Rows:
    """Return those of the rows, in their order, with the `count` highest scores, and ties with the last."""
    if len(rows) <= count:
        return rows
    own = scores[rows]
    kept: Rows = rows[own >= _nth_highest(own, count)]
    return kept


# ── By vectors, by topic key ─────────────────────────────────────────────────────────────────────


def weigh_by_rarity(query: IndexedQuery, vector: QueryVector) -> QueryVector:
    """The question's hashing vector with each word counting by its idf, as a share of the rarest's.

    A word that no row has can only be met by its n-grams, so a misspelt one counts less than a rare one.
    """
    among, vocabulary = query.visible.context_rows.among, query.index.vocabulary
    rarest = idf(among.count, 0)

    def weigh(word: str) -> float:
        numbers = (vocabulary.number(term) for term in terms_of(word))
        known = [among.idf(number) for number in numbers if number is not None]
        return max(known) / rarest if known else _UNKNOWN_WORD

    return replace(vector, vector=weigh_question(query.parsed.question.text, weigh))


def search_vectors(
    index: MemoryIndex, query: QueryVector, mask: Mask, pool: int, floor: float = -1.0
) -> tuple[Rows, Floats]:
    """The rows nearest to a vector in its space, and their cosines; those with a lower one than `floor` may be left out."""
    rows, cosines = index.matrices[query.space].top(query.vector, pool * 4, mask, floor)
    return np.asarray(rows, dtype=np.int64), np.asarray(cosines, dtype=np.float64)


def find_nearest(
    query: IndexedQuery, vector: QueryVector, mask: Mask, pool: int
) -> tuple[Rows, Floats]:
    """The nearest row of each of the nearest summaries above the profile's floor, and its cosine."""
    floor = query.parsed.profile.cosine_floor
    rows, cosines = search_vectors(query.index, vector, mask, pool, floor)
    near = (cosines >= floor) & (cosines != 0.0)
    return nearest_summaries(query.index, rows[near], cosines[near], pool)


def nearest_summaries(
    index: MemoryIndex, rows: Rows, cosines: Floats, pool: int
) -> tuple[Rows, Floats]:
    """The nearest row of each of the `pool` nearest summaries, and its cosine."""
    order = sort_rows(index, rows, cosines)
    _, first = np.unique(index.columns.summary_id[rows[order]], return_index=True)
    taken = order[np.sort(first)][:pool]
    return rows[taken], cosines[taken]


def find_near_pairs(query: IndexedQuery, rows: Rows) -> frozenset[frozenset[int]]:
    """The pairs of these rows' memories whose hashing vectors are near, if the profile makes one of three alike."""
    index, parsed = query.index, query.parsed
    least, hashing = parsed.profile.diversity.alike, parsed.hashing_vector
    # What is told unasked has its own judgement of what is said twice.
    is_told = parsed.question.relevance_gate is not None
    if least is None or is_told or hashing is None or hashing.space not in index.matrices:
        return frozenset()
    is_near = index.matrices[hashing.space].likeness(rows) >= least
    if np.count_nonzero(is_near) == np.count_nonzero(is_near.diagonal()):
        return frozenset()  # most often each is near itself alone
    ids = index.columns.summary_id[rows].tolist()
    places = np.argwhere(np.triu(is_near, 1)).tolist()
    return frozenset(frozenset({ids[one], ids[other]}) for one, other in places)


def find_topic(index: MemoryIndex, summary_ids: Sequence[int], mask: Mask) -> Rows:
    """The first row of each summary with the topic key, in the order given (newest first)."""
    firsts = [index.columns.rows_of(number)[:1] for number in summary_ids]
    rows = np.concatenate([np.empty(0, np.int64), *firsts]).astype(np.int64)
    return np.asarray(rows[mask[rows]], np.int64)


# ── Neighbours in a session ──────────────────────────────────────────────────────────────────────


def add_neighbours(index: MemoryIndex, rows: Rows, mask: Mask) -> Rows:
    """`rows`, then those previous and next rows of theirs that are wanted too."""
    beside = np.concatenate(index.columns.neighbours(rows)).tolist()
    others = set(beside).difference(rows.tolist(), (-1,))
    more = np.array(sorted(others), dtype=np.int64)
    return np.concatenate((rows, more[mask[more]]))
