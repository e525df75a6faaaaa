"""Rank candidates in one order: collect them from the retrievers, fuse the rankings, apply the profile's steps.

Everything is an array over the candidates, so that a search has no loop over them. Every step keeps its
name, so that each score can be taken apart again.

A ranking is (candidate indexes, scores), best first; a retriever that did not return a candidate adds
nothing to it. Reciprocal rank fusion (`rrf`): weight/(k + rank), rank from 1 (Cormack, Clarke and
Büttcher 2009). `squared`, MemU's: weight × cosine² for vectors, else weight/(1 + 0.2 · (rank − 1)). `sum`: weight × the
retriever's own score, of every candidate.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import KIND_CODES, TIER_CODES, Columns
from memd.index.memory_index import MemoryIndex
from memd.index.passages import is_name_in
from memd.models import SIGNIFICANCE_TAG, Tier
from memd.recall import ScorePart, profiles, retrievers, semantic
from memd.recall.likelihood import QueryLikelihood
from memd.recall.profiles import Profile, ProfileStep
from memd.recall.query import QueryVector
from memd.recall.retrievers import VAULT_ROWS_MIN, Floats, IndexedQuery, Rows, Scores
from memd.store import SummaryPair, SummaryUse
from memd.store.filter import Mask
from memd.text import fold

_TELLING_NATS = 30.0
"""The information of some ten words in common; from twice as much on, more adds nothing."""
_CHANCE_NATS = (-3.5, 0.5)
"""The nats beyond those of the best by chance of N memories, below which a match is chance and from which it is none."""
_COMMON_SHARE = 0.5
"""How far words are worth what they are without a model where a question is near to all memories alike; cosines then still
tell functions from each other."""
_RATING = re.compile(rf"{SIGNIFICANCE_TAG}\d+")
_TOP_SHARE = 0.25
"""Co-activation lifts what was returned together with this share of the candidates, the best ones."""
_WORD_EDGES = "\"'`?!.,;:()[]{}*"

ScoreStep = tuple[str, str, Floats]
"""(name, op, value per candidate)."""


# ── What a signal may read ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """Facts on the candidates from the vault that the index lacks; empty where no signal asks for them."""

    uses: Mapping[int, SummaryUse] = field(default_factory=dict)
    """Summary id → how often answers returned it."""
    together: Mapping[SummaryPair, int] = field(default_factory=dict)
    """Two summary ids → how often one answer returned both."""
    entities: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Summary id → the names in it."""
    titles: Mapping[int, str] = field(default_factory=dict)
    """Summary id → its title, folded."""
    confidences: Mapping[int, float] = field(default_factory=dict)
    """Summary id → its confidence, had it begun with what the profile says."""
    failed: str | None = None
    """Why the vault could not be read; then the steps of the second stage are left out."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Rows and scores from the retrievers, best first."""

    lexical: Rows
    lexical_scores: Scores
    """Of all rows of the index."""
    topic: Rows
    vector: Rows
    cosines: Floats
    """Of the rows of the vector retriever."""
    learned: semantic.LearnedMatch | None = None
    """What a learned space matches, if the profile weighs it; if it leads, it is `vector`, too."""
    likelihood: QueryLikelihood | None = None
    """What `lexical_scores` are of, if not BM25."""
    compared: QueryVector | None = None
    """What the vector retriever compared."""

    def lexical_worth(self, rows: Rows) -> Floats:
        """The lexical scores of some rows, by which they are compared."""
        scores = self.lexical_scores[rows]
        if self.likelihood is not None:
            return self.likelihood.worth(scores)
        return scores.astype(np.float64)

    @property
    def learned_beside(self) -> semantic.LearnedMatch | None:
        """The learned space that does not lead yet: a retriever of its own."""
        return self.learned if self.learned is not None and not self.learned.leads else None


@dataclass(frozen=True, slots=True)
class RankingContext:
    """The candidates, one row each, the question, and what the vault knows of both."""

    query: IndexedQuery
    rows: Rows
    found: Retrieved
    fused: Floats
    """The score of each candidate before any signal."""
    facts: CandidateFacts = field(default_factory=CandidateFacts)

    @property
    def columns(self) -> Columns:
        """The columns of the index."""
        return self.query.index.columns

    @property
    def profile(self) -> Profile:
        """The profile of the question."""
        return self.query.parsed.profile

    @property
    def ids(self) -> list[int]:
        """The summary of each candidate."""
        return [int(number) for number in self.columns.summary_id[self.rows]]

    @property
    def relevance(self) -> Floats:
        """Return each candidate's lexical score as a share of the best one's."""
        scores = self.found.lexical_worth(self.rows)
        best = float(scores.max(initial=0.0))
        return scores / best if best > 0 else scores

    @property
    def ages(self) -> Floats:
        """Return the candidates' ages in days."""
        return profiles.ages_in_days(self.columns.at[self.rows], self.query.parsed.now)

    @property
    def used(self) -> Floats:
        """Count how often answers returned each candidate."""
        uses = self.facts.uses
        return np.array([uses[i].count if i in uses else 0 for i in self.ids], np.float64)

    @property
    def unused_days(self) -> Floats:
        """The days since an answer last returned each candidate; infinite if none ever did."""
        uses = self.facts.uses
        last = np.array([uses[i].last_at if i in uses else -1 for i in self.ids], np.int64)
        return np.where(last < 0, np.inf, profiles.ages_in_days(last, self.query.parsed.now))


# ── The order ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RetrieverRanking:
    """Ranking by one retriever: candidate indexes (p,) int64, best first, and their scores (p,)."""

    candidates: NDArray[np.int64]
    scores: Floats

    def ranks(self, count: int) -> NDArray[np.int64]:
        """Rank from 1 per candidate, shape (count,); 0 where it was not returned."""
        ranks = np.zeros(count, dtype=np.int64)
        ranks[self.candidates] = np.arange(1, len(self.candidates) + 1)
        return ranks

    def values(self, count: int) -> Floats:
        """Score per candidate, shape (count,); NaN where it was not returned."""
        values = np.full(count, np.nan)
        values[self.candidates] = self.scores
        return values


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates, one row of the index each, with every step of their scores."""

    rows: Rows
    ids: tuple[int, ...]
    """Summary ids."""
    passage_ids: tuple[int, ...]
    rankings: Mapping[str, RetrieverRanking]
    steps: tuple[ScoreStep, ...]
    """In the order in which they are applied."""
    scores: Floats
    cosines: Floats
    recency: Floats
    is_passing: Mask
    """Whether each passes the profile's threshold."""
    coverage: Floats | None = None
    """The share of the question that each candidate covers; only for a relevance gate."""

    def parts(self, candidate: int) -> tuple[ScorePart, ...]:
        """The parts of one candidate's score; a part that changes nothing is left out."""
        return make_parts([(name, op, float(values[candidate])) for name, op, values in self.steps])

    def scores_by_id(self) -> dict[int, float]:
        """Summary id → its score."""
        return dict(zip(self.ids, self.scores.tolist(), strict=True))

    def ranks(self) -> dict[str, NDArray[np.int64]]:
        """Retriever → the rank of each candidate."""
        return {name: one.ranks(len(self.rows)) for name, one in self.rankings.items()}

    def with_steps(self, more: Sequence[ScoreStep]) -> "ScoredCandidates":
        """The same after some more steps."""
        steps = (*self.steps, *more)
        return replace(self, steps=steps, scores=_apply_steps(steps, len(self.rows)))


def make_parts(steps: Sequence[tuple[str, str, float]]) -> tuple[ScorePart, ...]:
    """The parts of a score from (name, op, value) of each step; one that changes nothing is left out."""
    return tuple(
        ScorePart(name, value, op)
        for name, op, value in steps
        if not (op == "+" and value == 0.0) and value != math.inf
    )


def collect_candidates(query: IndexedQuery, found: Retrieved) -> Rows:
    """The best row of every summary that a retriever, or a neighbour of a lexical hit, brings."""
    lexical, beside = found.lexical, found.learned_beside
    if any(step.signal == "context" for step in query.parsed.profile.steps) and len(lexical):
        lexical = retrievers.add_neighbours(query.index, lexical, query.visible.wanted)
        # What stands beside a memory supports it, but is no hit without a match of its own.
        lexical = lexical[found.lexical_scores[lexical] > 0]
    rows = [found.topic, lexical, found.vector, *([] if beside is None else [beside.rows])]
    if found.learned is not None and found.learned.spelt_alike is not None:
        rows.append(found.learned.spelt_alike)
    return retrievers.first_row_per_summary(query.index, np.concatenate(rows))


def score_candidates(
    query: IndexedQuery, rows: Rows, found: Retrieved, facts: CandidateFacts
) -> ScoredCandidates:
    """Apply the profile to its candidates."""
    index, profile, learned = query.index, query.parsed.profile, found.learned
    rankings = _rank_by_retriever(index, rows, found)
    weights: dict[str, float] = dict(profile.legs.items())
    if learned is not None and learned.leads:
        weights["vector"] = 0.0  # it counts by its shares and not by its ranking
    if profile.fusion == "sum":
        fused = _add_own_scores(query, rows, found, weights)
    else:
        fused = fuse_rankings(
            rankings, weights, fusion=profile.fusion, rrf_k=profile.rrf_k, count=len(rows)
        )
    total = sum(fused.values(), start=np.zeros(len(rows)))
    context = RankingContext(query, rows, found, total, facts)
    steps = [(name, "+", profile.scale * values) for name, values in fused.items()]
    cosines = {name: ranking.values(len(rows)) for name, ranking in rankings.items()}
    if learned is not None:
        name = "vector" if learned.leads else "learned"
        # A candidate may be another passage of its summary than the one that is nearest.
        nearest = semantic.measure_cosines(index, learned, rows)
        cosines[name] = np.fmax(nearest, cosines.get(name, nearest))
        steps.extend(learned.steps(cosines[name]))
    # A second stage that cannot do its work leaves the order of the first.
    wanted = [step for step in profile.steps if not (step.rerank and facts.failed)]
    for step in wanted:
        if not step.late:
            steps.extend(_compute_step(step, context))
    is_passing = np.ones(len(rows), np.bool_)
    if (threshold := profile.threshold) is not None and len(rows):
        first = _apply_steps(steps, len(rows))
        best = float(first.max())
        is_passing = (first >= threshold.ratio * best) & (best >= threshold.floor)
    for step in (step for step in wanted if step.late):
        for name, op, values in _compute_step(step, context):
            neutral = 1.0 if op == "*" else 0.0
            steps.append((name, op, np.where(is_passing, values, neutral)))
    recency = [values for name, _, values in steps if name == "recency"]
    unknown = np.full(len(rows), np.nan)
    return ScoredCandidates(
        rows=rows,
        ids=tuple(index.columns.summary_id[rows].tolist()),
        passage_ids=tuple(index.columns.passage_id[rows].tolist()),
        rankings=rankings,
        steps=tuple(steps),
        scores=_apply_steps(steps, len(rows)),
        cosines=cosines.get("vector", unknown),
        recency=recency[0] if recency else unknown,
        is_passing=is_passing,
    )


def _rank_by_retriever(
    index: MemoryIndex, rows: Rows, found: Retrieved
) -> dict[str, RetrieverRanking]:
    """The retrievers' rankings in terms of candidate indexes."""
    summary_ids = index.columns.summary_id
    places = dict(zip(summary_ids[rows].tolist(), range(len(rows)), strict=True))
    results = {
        "topic": (found.topic, np.ones(len(found.topic))),
        "lexical": (found.lexical, found.lexical_worth(found.lexical)),
        "vector": (found.vector, found.cosines),
    }
    if (beside := found.learned_beside) is not None:
        results["learned"] = (beside.rows, beside.cosines)
    return {
        name: RetrieverRanking(
            np.array([*map(places.get, summary_ids[own].tolist())], dtype=np.int64), scores
        )
        for name, (own, scores) in results.items()
        if len(own)
    }


def _add_own_scores(
    query: IndexedQuery, rows: Rows, found: Retrieved, weights: Mapping[str, float]
) -> dict[str, Floats]:
    """Retriever → weight × its own score of each candidate, also of those that it ranks too low to return."""
    is_topic = np.isin(rows, found.topic) if len(found.topic) else np.zeros(len(rows))
    lexical = found.lexical_worth(rows)
    own = {"topic": is_topic.astype(np.float64), "lexical": lexical}
    if found.learned is not None and found.learned.leads:
        own |= _weigh_beside_learned(query, rows, lexical, found)
    elif found.compared is not None:
        matrix = query.index.matrices[found.compared.space]
        cosines = matrix.cosines(found.compared.vector, rows).astype(np.float64)
        own["vector"] = np.maximum(cosines, 0.0)
    weights = {"spelling": 1.0, **weights}  # it is weighed beside the learned space
    return {
        name: weights.get(name, 0.0) * values
        for name, values in own.items()
        if weights.get(name, 0.0) > 0
    }


def weigh_words(query: IndexedQuery, found: Retrieved) -> tuple[float, float]:
    """Weigh words beside a learned space that leads, and how surely they match by more than chance.

    Measured in nats, by how much likelier the best match makes the question. Of N memories the best has about ln N by
    chance: one word of four, with most of them. Without a learned space, both are 1.
    """
    if found.learned is None or not found.learned.leads or found.likelihood is None:
        return 1.0, 1.0
    learned = found.learned
    settings, misspelt, common = learned.settings, learned.misspelt, learned.common
    best = float(found.lexical_worth(found.lexical[:1]).max(initial=0.0))
    count = max(query.visible.context_rows.among.count, VAULT_ROWS_MIN)
    excess = best * found.likelihood.information - math.log(count)
    worth = settings.words + settings.information * min(max(excess / _TELLING_NATS, 0.0), 2.0)
    least, sure = _CHANCE_NATS
    certainty = min(max((excess - least) / (sure - least), 0.0), 1.0)
    worth += max(_COMMON_SHARE * common, misspelt) * (1.0 - worth)
    return worth, max(certainty, common, misspelt)


def _weigh_beside_learned(
    query: IndexedQuery, rows: Rows, lexical: Floats, found: Retrieved
) -> dict[str, Floats]:
    """The worth of words and of spelling where a learned space leads.

    A memory that has one of a question's four words scores nearly as much as the nearest in meaning. If that is
    the best that words find, it is chance; if the best has several rare ones, the words know what they say.
    """
    if (learned := found.learned) is None:
        return {}
    settings = learned.settings
    worth, certainty = weigh_words(query, found)
    own = {"lexical": worth * np.maximum(lexical - settings.chance * (1.0 - certainty), 0.0)}
    if (spelling := learned.spelling) is not None:
        matrix = query.index.matrices[spelling.space]
        cosines = np.maximum(matrix.cosines(spelling.vector, rows).astype(np.float64), 0.0)
        whole = query.parsed.profile.legs.get("vector", 0.0)
        weight = settings.spelling + learned.misspelt * (whole - settings.spelling)
        own["spelling"] = worth * certainty * weight * cosines
    return own


def fuse_rankings(
    rankings: Mapping[str, RetrieverRanking],
    weights: Mapping[str, float],
    *,
    fusion: str,
    rrf_k: int,
    count: int,
) -> dict[str, Floats]:
    """Retriever → what it adds to each of `count` candidates, shape (count,)."""
    result = {}
    for name, ranking in rankings.items():
        weight = weights.get(name, 0.0)
        added = np.zeros(count)
        if weight > 0 and len(ranking.candidates):
            added[ranking.candidates] = weight * _normalise_scores(
                name, ranking.scores, fusion, rrf_k
            )
        result[name] = added
    return result


def _normalise_scores(name: str, scores: Floats, fusion: str, rrf_k: int) -> Floats:
    if fusion == "rrf":
        return np.asarray(1.0 / (rrf_k + np.arange(1, len(scores) + 1)), dtype=np.float64)
    if name == "vector":
        return np.square(np.maximum(scores, 0.0))
    return np.asarray(1.0 / (1.0 + 0.2 * np.arange(len(scores))), dtype=np.float64)


def _compute_step(step: ProfileStep, context: RankingContext) -> list[ScoreStep]:
    """One step of a profile; `context` makes three."""
    if step.signal == "context":
        return _compute_context(step, context)
    values = SIGNALS[step.signal](step, context)
    if step.op == "+":
        values = step.weight * values
    elif step.op == "*":
        values = (1.0 - step.weight) + step.weight * values
    return [(step.signal, step.op, values)]


def _compute_context(step: ProfileStep, context: RankingContext) -> list[ScoreStep]:
    """Compute each memory's gain from its neighbours and from its session.

    The question is in one turn, the answer in the next.
    """
    likelihood = context.found.likelihood
    if likelihood is None:
        return []  # a profile without it cannot have this signal
    worth, certainty = weigh_words(context.query, context.found)
    weight = float(context.profile.legs.get("lexical", 0.0)) * worth * certainty
    return [
        (name, "+", weight * values)
        for name, values in likelihood.context(context.rows, step).items()
    ]


def _apply_steps(steps: Sequence[ScoreStep], count: int) -> Floats:
    """Apply the steps to 0, in order; the same arithmetic as `apply_parts`."""
    total = np.zeros(count)
    for _, op, values in steps:
        if op == "+":
            total = total + values
        elif op == "*":
            total = total * values
        else:
            total = np.minimum(total, values)
    return total


# ── The signals by name ──────────────────────────────────────────────────────────────────────────


def _compute_recency(step: ProfileStep, context: RankingContext) -> Floats:
    if step.shape == "exponential":
        return profiles.exponential_decay(context.ages, step.days)
    if step.shape == "hyperbolic":
        return profiles.hyperbolic_decay(context.ages, step.days)
    if step.shape == "logarithmic":
        return profiles.logarithmic_decay(context.ages)
    # ClawMem's: each kind fades at its own pace, and more slowly while it is in use.
    days = profiles.half_lives()[context.columns.kind[context.rows]]
    return profiles.half_life_decay(
        context.ages, days * profiles.half_life_stretch(context.used, context.unused_days)
    )


def _compute_title_all(_: ProfileStep, context: RankingContext) -> Floats:
    titles = [context.facts.titles.get(number, "") for number in context.ids]
    return profiles.title_has_all_words(
        titles, split_words_as_typed(context.query.parsed.terms.text)
    )


def split_words_as_typed(text: str) -> tuple[str, ...]:
    """The words of a question as Covalence compares them: folded, whole, stop words too."""
    found = (word.strip(_WORD_EDGES) for word in fold(text).split())
    return tuple(dict.fromkeys(word for word in found if word))


def _compute_intent(_: ProfileStep, context: RankingContext) -> Floats:
    """Compute the intent's part, limited by how far the words match: it must not lift unrelated memories."""
    wanted = [KIND_CODES[kind.value] for kind in context.query.parsed.intent.kinds]
    if not wanted:
        return np.zeros(len(context.rows))
    return np.isin(context.columns.kind[context.rows], wanted) * context.relevance


def _compute_coactivation(_: ProfileStep, context: RankingContext) -> Floats:
    """Count how often answers returned a candidate together with the best quarter of them.

    The published description does not say with which others; the published code takes the best quarter
    of what the search found, before any metadata, and lifts only candidates outside it.
    """
    counts = np.zeros(len(context.rows))
    together = context.facts.together
    if together and len(counts) > 1:
        ids = context.ids
        order = np.argsort(-context.fused, kind="stable")
        top = {ids[i] for i in order[: max(1, int(len(ids) * _TOP_SHARE))]}
        for i, number in enumerate(ids):
            if number not in top:
                pairs = ((min(number, other), max(number, other)) for other in top)
                counts[i] = sum(together.get(pair, 0) for pair in pairs)
    return profiles.coactivation_factor(counts)


def _compute_significance(_: ProfileStep, context: RankingContext) -> Floats:
    """MemU's 1 to 10 as a share: the rating that a memory was stored with; else pinned is core, else the kind decides."""
    c = context.columns
    is_core = c.tier[context.rows] == TIER_CODES[Tier.CORE.value]
    levels = np.where(
        is_core, profiles.LEVELS["core"], profiles.significances()[c.kind[context.rows]]
    )
    rated = [
        next(
            (float(tag.removeprefix(SIGNIFICANCE_TAG)) for tag in tags if _RATING.fullmatch(tag)),
            np.nan,
        )
        for tags in (c.tag_sets[place] for place in c.tags[context.rows].tolist())
    ]
    levels = np.where(np.isnan(rated), levels, rated)
    return np.asarray(levels / 10.0, dtype=np.float64)


def _compute_entity(_: ProfileStep, context: RankingContext) -> Floats:
    names, words = context.facts.entities, frozenset(context.query.parsed.terms.words)
    named = [any(is_name_in(name, words) for name in names.get(i, ())) for i in context.ids]
    return profiles.entity_factor(np.array(named, dtype=np.float64))


def _compute_confidence(step: ProfileStep, context: RankingContext) -> Floats:
    if step.start is None:
        return context.columns.confidence[context.rows].astype(np.float64)
    found = (context.facts.confidences.get(number, step.start) for number in context.ids)
    return np.fromiter(found, dtype=np.float64, count=len(context.rows))


SIGNALS: Mapping[str, Callable[[ProfileStep, RankingContext], Floats]] = {
    "recency": _compute_recency,
    "tier": lambda _, v: profiles.tier_share(v.columns.tier[v.rows], v.profile.rrf_k),
    "title_all": _compute_title_all,
    "intent": _compute_intent,
    "pin": lambda _, v: v.columns.pinned[v.rows].astype(np.float64),
    "cap": lambda step, v: np.full(len(v.rows), step.weight),
    # Infinity caps nothing: the cap is for pinned memories alone.
    "cap_pinned": lambda step, v: np.where(v.columns.pinned[v.rows], step.weight, np.inf),
    "confidence": _compute_confidence,
    "quality": lambda _, v: profiles.quality_factor(v.columns.quality[v.rows]),
    "length": lambda _, v: profiles.length_factor(v.columns.body_length[v.rows]),
    "frequency": lambda _, v: profiles.frequency_factor(
        v.columns.revisions[v.rows], v.columns.duplicates[v.rows]
    ),
    "coactivation": _compute_coactivation,
    "significance": _compute_significance,
    # Both saying it again and recalling it reinforce a memory.
    "reinforcement": lambda _, v: profiles.reinforcement(v.columns.duplicates[v.rows] + v.used),
    "entity": _compute_entity,
}
"""The name of a step → its value per candidate. `context` is no single signal; see `_compute_context`."""
