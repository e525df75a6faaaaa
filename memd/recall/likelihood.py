"""Query likelihood: the question as drawn from each memory; the lexical score of the profile `memd`.

Query likelihood with Dirichlet smoothing (Zhai and Lafferty, 2004). In a memory of |d| terms the term t stands tf times;
of all rows that may be seen it is p(t) = (df + ½)/(the sum of their lengths). Then

    raw(d) = Σ weight·(ln((tf + μ·b(t)) / (μ·p(t))) - ln(1 + (|d|/λ)²))        with b = p

is how many nats likelier the memory makes the question than chance does. BM25 asks how often the words stand in a
memory; this also asks how much else stands there, so that a long answer does not win by its length. Dirichlet smoothing
subtracts ln(1 + |d|/μ), so that of two short statements the shorter is preferred nearly as much as either is to a long
answer. But up to λ terms a memory says one thing, whether in ten words or in forty; what is longer says several. λ is
100 terms, or twice the length of a short memory (the lower quartile of all that may be seen), if that is more: where
even the short ones are long, that is how things are said there. What stands beside
a memory counts as what it may be expected to say: b is a mixture of p with the share that the term has in the previous
and in the next passage and in the whole session (as clusters in Liu and Croft, 2004).

The score is the share of the question's information, `raw` divided by what a memory of one term would have for each
term of the question, bent so that it stays above 0: τ·ln(1 + e^(share/τ)).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Columns
from memd.recall import retrievers
from memd.recall.profiles import LexicalSettings, ProfileStep
from memd.recall.retrievers import VAULT_ROWS_MIN, Floats, IndexedQuery, Rows, Scores
from memd.store.filter import Mask

_BEND = 0.2
"""τ. A share well above it counts as it is, one well below 0 for nothing."""
_BESIDE_MAX = 0.75
"""A word beside a memory counts at most so much of one in it, however short the memory is."""
_SHORT_STATEMENTS = 2.0
"""λ is at least this many lengths of a short memory."""
_BLOCK_ROWS = 1 << 15
"""Rows whose scores are moved in one step, so that they stay in the cache."""
_F = TypeVar("_F", np.float32, np.float64)


@dataclass(frozen=True)
class QueryLikelihood:
    """A question, and how likely its terms, phrases and prefixes are by chance."""

    query: IndexedQuery
    settings: LexicalSettings
    counted: list[tuple[Rows, Floats]] = field(default_factory=list, init=False)
    """Rows whose terms were counted, and how often each has each term, (m, terms)."""

    @cached_property
    def _weights(self) -> Floats:
        """Return the weights of the terms, then of the groups."""
        terms = self.query.terms
        return np.array([*terms.numbers.values(), *terms.group_weights], np.float64)

    @cached_property
    def _chance_of_unseen(self) -> float:
        """Return the chance level of a term that no row has."""
        seen = self.query.visible.context_rows
        # Few memories show little of what else could be said: they count as a part of more.
        share_of_vault = min(seen.among.count / VAULT_ROWS_MIN, 1.0)
        return 0.5 * (share_of_vault or 1.0) / max(seen.length, 1.0)

    @cached_property
    def _chance_levels(self) -> Floats:
        """Return p for each term and group: how likely it is by chance."""
        seen, terms = self.query.visible.context_rows, self.query.terms
        having = [seen.among.df(number) for number in terms.numbers]
        having += [int(np.count_nonzero(seen.mask[rows])) for rows in terms.groups]
        return (np.array(having, np.float64) + 0.5) * (2.0 * self._chance_of_unseen)

    @cached_property
    def information(self) -> float:
        """The information of the question: the score, in nats, of a memory that has each of its terms.

        Unknown terms count as the rarest.
        """
        unknown = self.query.terms.unknown
        expected = self.settings.mu * self._chance_levels
        known = float((self._weights * np.log1p(1.0 / expected)).sum())
        return (
            known + unknown * float(np.log1p(1.0 / (self.settings.mu * self._chance_of_unseen)))
            or 1.0
        )

    @cached_property
    def _score_offset(self) -> float:
        """Return the offset added to the raw score of all rows, so that one that matches is above 0."""
        return float(self._weights.sum() * self._length_costs[1])

    @cached_property
    def _length_costs(self) -> tuple[Scores, np.float32]:
        """Return the cost of every row's length for each word of the question, and the greatest of them."""
        index, statement = self.query.index, self._statement

        def compute() -> tuple[Scores, np.float32]:
            costs = _compute_length_costs(self._columns.length.astype(np.float32), statement)
            return costs, costs.max(initial=np.float32(0.0))

        return index.cache.get_or_compute(index.version, ("length costs", statement), compute)

    @cached_property
    def _statement(self) -> float:
        """λ."""
        short = self.query.visible.context_rows.short_length
        return max(self.settings.statement, _SHORT_STATEMENTS * short)

    @property
    def _columns(self) -> Columns:
        return self.query.index.columns

    def score_rows(self) -> Scores:
        """The raw score of every row, (n,), moved above 0 where the row has a term; else 0.

        The next call writes to the same array.
        """
        index, mu, terms = self.query.index, self.settings.mu, self.query.terms
        expected = mu * self._chance_levels
        scores = index.postings.add_logarithms(
            {
                number: (weight, float(at_chance))
                for (number, weight), at_chance in zip(
                    terms.numbers.items(), expected, strict=False
                )
            },
            title_weight=self.settings.title_weight,
            out=index.cache.scratch("scores", index.postings.n),
        )
        of_groups = zip(
            terms.groups, terms.group_weights, expected[len(terms.numbers) :], strict=True
        )
        for rows, weight, at_chance in of_groups:
            scores[rows] += np.float32(weight * np.log1p(1.0 / at_chance))
        longest, total = np.float32(self._score_offset), np.float32(self._weights.sum())
        moved = np.empty(min(_BLOCK_ROWS, len(scores)), np.float32)
        for first in range(0, len(scores), _BLOCK_ROWS):
            own = scores[first : first + _BLOCK_ROWS]
            costs = self._length_costs[0][first : first + _BLOCK_ROWS]
            by = np.multiply(costs, -total, out=moved[: len(own)])
            by += longest
            is_matching = own > 0
            own += by
            own *= is_matching
        return scores

    def worth(self, scores: Scores | Floats) -> Floats:
        """The share of the question's information, from what `score_rows` returned; 0 stays 0."""
        return np.where(
            scores > 0, self._saturate(scores.astype(np.float64) - self._score_offset), 0.0
        )

    def _saturate(self, raw: Floats) -> Floats:
        share = raw / (self.information * _BEND)
        return np.asarray(_BEND * np.logaddexp(0.0, share), np.float64)

    def context(self, rows: Rows, step: ProfileStep) -> dict[str, Floats]:
        """Return each row's gain from the passages beside it and from the rest of its session.

        A row that matches nothing gains nothing by its session alone.
        """
        counts, lengths = self._count_beside(rows)
        own, beside = counts[0], counts[1:]
        says_some = np.asarray((counts > 0).any(axis=2))
        by_chance = self.settings.mu * self._chance_levels
        shares = np.array([step.previous, step.next, step.session])
        # Each array goes on from one place beside the rows to the next: (3, m, terms).
        mixed = (self.settings.mu * step.weight * shares[:, np.newaxis] * says_some[1:])[
            ..., np.newaxis
        ]
        said = np.cumsum(mixed * beside / np.maximum(lengths[1:], 1.0)[..., np.newaxis], axis=0)
        most = np.maximum.accumulate(beside, axis=0)
        expected = np.empty_like(counts)
        expected[0] = by_chance
        expected[1:] = by_chance - np.cumsum(mixed, axis=0) * self._chance_levels
        expected[1:] += np.minimum(said, _BESIDE_MAX * most)
        is_supported = np.logical_or.accumulate(says_some, axis=0)
        is_supported[3] = is_supported[2]
        gains = np.log((own + expected) / by_chance)
        costs = _compute_length_costs(lengths[0], self._statement)[:, np.newaxis]
        worth = self._saturate((self._weights * (gains - costs)).sum(axis=2))
        gained = np.diff(np.where(is_supported, worth, 0.0), axis=0)
        return dict(zip(("previous", "next", "session"), gained, strict=True))

    def _count_terms(self, rows: Rows) -> Floats:
        """Count each term in each of `rows`, (m, terms); a title counts `title_weight` times."""
        postings, terms = self.query.index.postings, self.query.terms
        found = np.zeros((len(rows), len(self._weights)))
        counted = postings.count_terms(list(terms.numbers), rows, self.settings.title_weight)
        found[:, : len(counted)] = counted.T
        for place, group in enumerate(terms.groups, start=len(terms.numbers)):
            found[:, place] = retrievers.contains_rows(group, rows)
        return found

    def _count_beside(self, rows: Rows) -> tuple[Floats, Floats]:
        """The counts of the terms, (4, m, terms), and the lengths, (4, m): of `rows`, before, after, in the rest of their sessions.

        Both are 0 where nothing stands beside a row that may be seen.
        """
        size = len(rows)
        all_rows = np.concatenate((rows, *self._columns.neighbours(rows))).astype(np.int64)
        is_there = (all_rows >= 0) & self.query.visible.context_rows.mask[all_rows]
        is_there[:size] = True
        lengths = np.zeros((4, size))
        lengths[:3].reshape(-1)[is_there] = self._columns.length[all_rows[is_there]]
        counts = np.zeros((4, size, len(self._weights)))
        counts[:3].reshape(3 * size, len(self._weights))[is_there] = self._count_terms(
            all_rows[is_there]
        )
        counts[3], lengths[3] = self._count_sessions(rows, counts[0], lengths[0])
        self.counted.append((rows, counts[0]))
        return counts, lengths

    def find_terms(self, rows: Rows) -> Mask | None:
        """Mark which of `rows` have which term or group, (m, terms), if `context` has counted them; else None."""
        for counted, counts in self.counted:
            if counted is rows and self.settings.title_weight > 0:
                return counts > 0
        return None

    def _count_sessions(
        self, rows: Rows, own: Floats, own_lengths: Floats
    ) -> tuple[Floats, Floats]:
        """The same of the rest of the session of each row; phrases and prefixes are not counted."""
        terms, statistics = self.query.terms.numbers, self.query.visible.context_rows.sessions
        sessions = self._columns.session_id[rows]
        found, lengths = statistics.count_terms(list(terms), self.settings.title_weight, sessions)
        counts = np.zeros((len(rows), len(self._weights)))
        counts[:, : len(terms)] = found.T
        rest = np.maximum(lengths - own_lengths, 0.0)
        return np.maximum(counts - own, 0.0) * (rest > 0)[:, np.newaxis], rest


def _compute_length_costs(lengths: NDArray[_F], statement: float) -> NDArray[_F]:
    """ln(1 + (length/λ)²)."""
    costs: NDArray[_F] = np.log1p(np.square(lengths / lengths.dtype.type(statement)))
    return costs
