"""Signals: what a candidate's age, kind, title or use adds to its score, one array in, one array out.

Formulas take and return arrays over the candidates, shape (m,), float64; ages are in days. SIGNALS maps
the name of a profile's step to the function that reads a formula's values from the ranking context. The
published systems name kinds of things that memd does not have: KIND_MAPPINGS maps ours to theirs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import KIND_CODES, TIER_CODES, Columns
from memd.index.entities import is_name_in
from memd.index.postings import idf
from memd.models import CLOCK_SKEW_MAX_MS, Kind, Tier
from memd.recall.profiles import Profile, ProfileStep
from memd.recall.retrievers import Floats, IndexedQuery, Rows, Scores
from memd.recall.semantic import LearnedEvidence
from memd.store.filter import Mask
from memd.store.types import SummaryPair, SummaryUse
from memd.text import fold

DAY_MS = 86_400_000
_TOP_SHARE = 0.25
"""Co-activation lifts what was returned together with this share of the candidates, the best ones."""
_WORD_EDGES = "\"'`?!.,;:()[]{}*"


# ── What a signal may read ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """What the vault knows of the candidates and the index does not; empty where no signal asks for it."""

    uses: Mapping[int, SummaryUse] = field(default_factory=dict)
    """Summary id → how often answers returned it."""
    together: Mapping[SummaryPair, int] = field(default_factory=dict)
    """Two summary ids → how often one answer returned both."""
    entities: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Summary id → the names in it."""
    titles: Mapping[int, str] = field(default_factory=dict)
    """Summary id → its title, folded."""
    failed: str | None = None
    """Why the vault could not be read; then the steps of the second stage are left out."""


@dataclass(frozen=True, slots=True)
class RankingContext:
    """The candidates, one row each, the question, and what the vault knows of both."""

    query: IndexedQuery
    rows: Rows
    lexical_scores: Scores
    """Of all rows of the index."""
    fused: Floats
    """The score of each candidate before any signal."""
    facts: CandidateFacts = field(default_factory=CandidateFacts)
    learned: LearnedEvidence | None = None
    """The evidence of a learned space, if the profile weighs it."""
    presence: Mapping[int, tuple[Mask, Mask]] = field(default_factory=dict)
    """Term → whether each candidate has it, and whether in its title; empty where no signal asks."""

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
        """Each candidate's lexical score as a share of the best one's."""
        scores = self.lexical_scores[self.rows].astype(np.float64)
        best = float(scores.max(initial=0.0))
        return scores / best if best > 0 else scores

    @property
    def ages(self) -> Floats:
        """In days."""
        return ages_in_days(self.columns.at[self.rows], self.query.parsed.now)

    @property
    def used(self) -> Floats:
        """How often answers returned each candidate."""
        uses = self.facts.uses
        return np.array([uses[i].count if i in uses else 0 for i in self.ids], np.float64)

    @property
    def unused_days(self) -> Floats:
        """The days since an answer last returned each candidate; infinite if none ever did."""
        uses = self.facts.uses
        last = np.array([uses[i].last_at if i in uses else -1 for i in self.ids], np.int64)
        return np.where(last < 0, np.inf, ages_in_days(last, self.query.parsed.now))


# ── Formulas ─────────────────────────────────────────────────────────────────────────────────────


def ages_in_days(at: NDArray[np.int64], now: int) -> Floats:
    """How old events at `at` (UTC ms) are at `now`, never below 0.

    An event that a wrong clock dated far ahead is as old as it lies ahead: else it would be the newest
    for years.
    """
    elapsed = now - at
    ages = np.where(elapsed <= -CLOCK_SKEW_MAX_MS, -elapsed, np.maximum(elapsed, 0))
    return np.asarray(ages / DAY_MS, np.float64)


def exponential_decay(age_days: Floats, tau_days: float) -> Floats:
    """exp(−age/τ): siftcoder's decay. τ = 7 d: 0.867 after a day, 0.0138 after thirty."""
    return np.exp(-age_days / tau_days)


def hyperbolic_decay(age_days: Floats, half_days: float) -> Floats:
    """1/(1 + age/half): covalence's recency. half = 365 d: 0.5 after a year, 0.33 after two."""
    return np.asarray(1.0 / (1.0 + age_days / half_days), dtype=np.float64)


def logarithmic_decay(age_days: Floats) -> Floats:
    """1 − 0.1 · log10(1 + age in days): 0.9 after nine days, 0.74 after a year."""
    return np.asarray(1.0 - 0.1 * np.log10(1.0 + age_days), dtype=np.float64)


def tier_share(tier_codes: NDArray[np.int8], rrf_k: int) -> Floats:
    """1/(k + tier), tier counted from 1: core, file, then what agents remembered or memd captured."""
    tier = np.minimum(tier_codes.astype(np.int64) + 1, 3)
    return np.asarray(1.0 / (rrf_k + tier), dtype=np.float64)


def title_share(found: Floats, asked: int) -> Floats:
    """The share of the `asked` terms that are in a title, squared; `found`: how many are.

    Squared, because a title that has every word is a much better sign than one that has half of them.
    """
    return np.asarray(np.square(found / max(asked, 1)), dtype=np.float64)


def quality_factor(quality: Floats) -> Floats:
    """0.7 + 0.6 · quality: ClawMem's."""
    return 0.7 + 0.6 * quality


def length_factor(body_characters: NDArray[np.int64]) -> Floats:
    """1/(1 + ½ · log2(max(length/500, 1))), at least 0.3: ClawMem's."""
    penalty = 1.0 / (1.0 + 0.5 * np.log2(np.maximum(body_characters / 500.0, 1.0)))
    return np.asarray(np.maximum(penalty, 0.3), dtype=np.float64)


def frequency_factor(revisions: NDArray[np.int64], duplicates: NDArray[np.int64]) -> Floats:
    """1 + min(0.10, 0.03 · ln(1 + 2(revisions − 1) + (duplicates − 1))): ClawMem's."""
    signal = np.maximum(2 * (revisions - 1) + (duplicates - 1), 0)
    return np.asarray(1.0 + np.minimum(0.10, 0.03 * np.log1p(signal)), dtype=np.float64)


def half_life_decay(age_days: Floats, half_lives: Floats) -> Floats:
    """2^(−age/half-life): ClawMem's recency; always 1 where the half-life is infinite."""
    return np.exp2(-age_days / half_lives)


def half_life_stretch(uses: Floats, unused_days: Floats) -> Floats:
    """By how much use prolongs a half-life: ClawMem's, at most 3.

    1 + 0.3 · ln(1 + uses · freshness); freshness falls from 1 to 0 in a line over 90 days without use.
    """
    freshness = np.maximum(1.0 - unused_days / 90.0, 0.0)
    return np.minimum(1.0 + 0.3 * np.log1p(uses * freshness), 3.0)


def coactivation_factor(counts: Floats) -> Floats:
    """1 + min(n/10, 0.15): ClawMem's, n how often a memory was returned with the best ones."""
    return 1.0 + np.minimum(counts / 10.0, 0.15)


def title_has_all_words(titles: Sequence[str], query_words: Sequence[str]) -> Floats:
    """1 if every word of the query is a substring of the title, else 0: Covalence's; titles folded."""
    if not query_words:
        return np.zeros(len(titles))
    found = [all(word in title for word in query_words) for title in titles]
    return np.array(found, dtype=np.float64)


def reinforcement(counts: Floats) -> Floats:
    """log2(1 + n): MemU's, n how often it was said or recalled; 1 for a memory that was said once."""
    return np.log2(1.0 + counts)


def entity_factor(named: Floats) -> Floats:
    """1.3 if the question names an entity of the memory, else 1: MemU's 1 + 0.3 · bond, bond 1."""
    return 1.0 + 0.3 * named


# ── memd's kinds in the words of the published systems ───────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class KindMapping:
    """The nearest equivalents of a kind in the published systems."""

    clawmem: str
    """A type of ClawMem's."""
    significance: str
    """A level of MemU's."""
    why: str


_NEVER = math.inf
HALF_LIVES: Mapping[str, float] = {
    "decision": _NEVER, "preference": _NEVER, "antipattern": _NEVER, "hub": _NEVER, "project": 120.0,
    "research": 90.0, "problem": 60.0, "milestone": 60.0, "note": 60.0, "conversation": 45.0,
    "progress": 45.0, "handoff": 30.0,
}  # fmt: skip
"""ClawMem's types and their half-lives in days, as the seed published them."""

LEVELS: Mapping[str, float] = {"routine": 3, "noteworthy": 5, "important": 8, "core": 10}
"""MemU's levels on its scale from 1 to 10. The publication does not say which level is where, only that
an important fact has 8 and an unrated one gets 5."""

KIND_MAPPINGS: Mapping[Kind, KindMapping] = {
    Kind.DECISION: KindMapping("decision", "important", "the same word, and it governs later work"),
    Kind.FIX: KindMapping("problem", "noteworthy", "ClawMem files a bug with its solution as a problem"),
    Kind.FAILURE: KindMapping(
        "problem", "noteworthy", "it went wrong once; only a rule against it is an antipattern"
    ),
    Kind.CHANGE: KindMapping("progress", "routine", "finished work, overtaken by the next"),
    Kind.DISCOVERY: KindMapping("research", "noteworthy", "found out by looking"),
    Kind.PREFERENCE: KindMapping("preference", "important", "the same word"),
    Kind.INSTRUCTION: KindMapping("preference", "important", "a standing wish, until it is replaced"),
    Kind.FACT: KindMapping("hub", "noteworthy", "stated on purpose, to be looked up at any time"),
    Kind.TASK: KindMapping("progress", "routine", "an open end; done or stale after some weeks"),
    Kind.NOTE: KindMapping("note", "noteworthy", "the same word, and the default of both"),
    Kind.SESSION: KindMapping("handoff", "routine", "ClawMem writes one when a session stops"),
}  # fmt: skip


def half_lives() -> NDArray[np.float64]:
    """ClawMem's half-life in days by kind code; infinite for what never fades."""
    return _index_by_kind_code(
        {kind: HALF_LIVES[like.clawmem] for kind, like in KIND_MAPPINGS.items()}
    )


def significances() -> NDArray[np.float64]:
    """MemU's significance by kind code, 1 to 10."""
    return _index_by_kind_code(
        {kind: LEVELS[like.significance] for kind, like in KIND_MAPPINGS.items()}
    )


def _index_by_kind_code(values: Mapping[Kind, float]) -> NDArray[np.float64]:
    row = np.zeros(len(KIND_CODES))
    for kind, value in values.items():
        row[KIND_CODES[kind.value]] = value
    return row


# ── The signals by name ──────────────────────────────────────────────────────────────────────────


def _compute_recency(step: ProfileStep, context: RankingContext) -> Floats:
    if step.shape == "exponential":
        return exponential_decay(context.ages, step.days)
    if step.shape == "hyperbolic":
        return hyperbolic_decay(context.ages, step.days)
    if step.shape == "logarithmic":
        return logarithmic_decay(context.ages)
    # ClawMem's: each kind fades at its own pace, and more slowly while it is in use.
    days = half_lives()[context.columns.kind[context.rows]]
    return half_life_decay(
        context.ages, days * half_life_stretch(context.used, context.unused_days)
    )


def _compute_title(_: ProfileStep, context: RankingContext) -> Floats:
    found = np.zeros(len(context.rows))
    for _has, has_in_title in context.presence.values():
        found += has_in_title
    return title_share(found, len(context.query.parsed.terms.weights))


def _compute_title_all(_: ProfileStep, context: RankingContext) -> Floats:
    titles = [context.facts.titles.get(number, "") for number in context.ids]
    return title_has_all_words(titles, split_words_as_typed(context.query.parsed.terms.text))


def split_words_as_typed(text: str) -> tuple[str, ...]:
    """The words of a question as Covalence compares them: folded, whole, stop words too."""
    found = (word.strip(_WORD_EDGES) for word in fold(text).split())
    return tuple(dict.fromkeys(word for word in found if word))


def _compute_intent(_: ProfileStep, context: RankingContext) -> Floats:
    """Only as far as the words match too: an intent must not lift what has nothing to do with it."""
    wanted = [KIND_CODES[kind.value] for kind in context.query.parsed.intent.kinds]
    return np.isin(context.columns.kind[context.rows], wanted) * context.relevance


def _compute_coverage(_: ProfileStep, context: RankingContext) -> Floats:
    """The share of the question that a candidate has, squared, so that most of it counts most."""
    terms, among = context.query.terms.numbers, context.query.visible.evidence.among
    # A word that no row has was asked for, too: it is the rarest of all.
    unknown = len(context.query.parsed.terms.weights) - len(terms)
    asked = idf(among.count, 0) * unknown
    found = np.zeros(len(context.rows))
    for number in terms:
        weight = among.idf(number)
        found += weight * context.presence[number][0]
        asked += weight
    return np.square(found / asked) if asked > 0 else found


def _compute_coactivation(_: ProfileStep, context: RankingContext) -> Floats:
    """How often answers returned a candidate together with the best quarter of them.

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
    return coactivation_factor(counts)


def _compute_significance(_: ProfileStep, context: RankingContext) -> Floats:
    """MemU's 1 to 10 as a share. memd has no ratings: pinned is core, else the kind decides."""
    c = context.columns
    is_core = c.tier[context.rows] == TIER_CODES[Tier.CORE.value]
    levels = np.where(is_core, LEVELS["core"], significances()[c.kind[context.rows]])
    return np.asarray(levels / 10.0, dtype=np.float64)


def _compute_entity(_: ProfileStep, context: RankingContext) -> Floats:
    names, words = context.facts.entities, frozenset(context.query.parsed.terms.words)
    named = [any(is_name_in(name, words) for name in names.get(i, ())) for i in context.ids]
    return entity_factor(np.array(named, dtype=np.float64))


def _compute_frequency(_: ProfileStep, context: RankingContext) -> Floats:
    c, rows = context.columns, context.rows
    return frequency_factor(
        c.revisions[rows].astype(np.int64), c.duplicates[rows].astype(np.int64)
    )


SIGNALS: Mapping[str, Callable[[ProfileStep, RankingContext], Floats]] = {
    "recency": _compute_recency,
    "tier": lambda _, v: tier_share(v.columns.tier[v.rows], v.profile.rrf_k),
    "title": _compute_title,
    "title_all": _compute_title_all,
    "intent": _compute_intent,
    "coverage": _compute_coverage,
    "pin": lambda _, v: v.columns.pinned[v.rows].astype(np.float64),
    "cap": lambda step, v: np.full(len(v.rows), step.weight),
    # Infinity caps nothing: the cap is for pinned memories alone.
    "cap_pinned": lambda step, v: np.where(v.columns.pinned[v.rows], step.weight, np.inf),
    "confidence": lambda _, v: v.columns.confidence[v.rows].astype(np.float64),
    "quality": lambda _, v: quality_factor(v.columns.quality[v.rows].astype(np.float64)),
    "length": lambda _, v: length_factor(v.columns.body_length[v.rows].astype(np.int64)),
    "frequency": _compute_frequency,
    "coactivation": _compute_coactivation,
    "significance": _compute_significance,
    # Both saying it again and recalling it reinforce a memory.
    "reinforcement": lambda _, v: reinforcement(v.columns.duplicates[v.rows] + v.used),
    "entity": _compute_entity,
}
"""The name of a step → its value per candidate. `context` is no single signal: ranking.py adds it."""
