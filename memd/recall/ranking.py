"""Candidates, fusion (RRF, z-score), signals: one order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import KIND_CODES, TIER_CODES
from memd.index.entities import is_name_in
from memd.index.memory_index import MemoryIndex
from memd.index.postings import idf
from memd.models import Tier
from memd.recall import semantic, signals
from memd.recall.filters import VisibleRows
from memd.recall.profiles import Profile, ProfileStep
from memd.recall.ranking_context import RankingContext, RankingQuestion
from memd.recall.retrievers import Floats, Rows, Scores
from memd.recall.types import ScorePart
from memd.text import fold

# MERGED from memd.recall.weigh:
# MERGED The signals of the published recipes over the candidates: a step in, a value per candidate out. Pure.
# MERGED
# MERGED The formulas are in signals.py; here is where each takes its numbers from. Not here: the signals that
# MERGED are memd's own (rank.py), the order in which a profile applies them (profiles.py).


Signal = Callable[[ProfileStep, RankingContext], Floats]
_TOP_SHARE = 0.25
_EDGES = "\"'`?!.,;:()[]{}*"


def half_life(view: RankingContext) -> Floats:
    """ClawMem's recency: each kind fades at its own pace, more slowly what is in use."""
    bases = signals.half_lives()[view.index.columns.kind[view.rows]]
    stretch = signals.half_life_stretch(view.used, view.unused_for)
    return signals.half_life_decay(view.ages, bases * stretch)


def split_words_as_typed(text: str) -> tuple[str, ...]:
    """The words of a question as Covalence compares them: folded, whole, stop words too."""
    found = (word.strip(_EDGES) for word in fold(text).split())
    return tuple(dict.fromkeys(word for word in found if word))


def _title_all(_: ProfileStep, view: RankingContext) -> Floats:
    known = view.about.background.titles
    titles = [known.get(number, "") for number in view.ids]
    return signals.title_has_all_words(titles, split_words_as_typed(view.about.query.text))


def _cap_pinned(step: ProfileStep, view: RankingContext) -> Floats:
    """The cap is for pinned ones alone; infinity changes nothing."""
    return np.where(view.index.columns.pinned[view.rows], step.weight, np.inf)


def _coactivation(_: ProfileStep, view: RankingContext) -> Floats:
    """How often a candidate was returned with the best quarter of them, as the legs rank them.

    The published description leaves open with which others; the code takes the best quarter of what
    the search brought, before any metadata, and lifts only what is outside it.
    """
    counts = np.zeros(len(view.rows))
    together = view.about.background.together
    if together and len(counts) > 1:
        ids = view.ids
        order = np.argsort(-view.fused, kind="stable")
        top = {ids[i] for i in order[: max(1, int(len(ids) * _TOP_SHARE))]}
        for i, number in enumerate(ids):
            if number not in top:
                pairs = ((min(number, other), max(number, other)) for other in top)
                counts[i] = sum(together.get(pair, 0) for pair in pairs)
    return signals.coactivation_factor(counts)


def _significance(_: ProfileStep, view: RankingContext) -> Floats:
    """MemU's 1 to 10 as a share. Nobody rates memories here: pinned is core, else the kind tells."""
    c = view.index.columns
    levels = signals.significances()[c.kind[view.rows]]
    core = c.tier[view.rows] == TIER_CODES[Tier.CORE.value]
    return np.asarray(np.where(core, signals.LEVELS["core"], levels) / 10.0, dtype=np.float64)


def _reinforcement(_: ProfileStep, view: RankingContext) -> Floats:
    """Both what was said again and what was recalled reinforces; the latter feeds on itself."""
    return signals.reinforcement(view.index.columns.duplicates[view.rows] + view.used)


def _entity(_: ProfileStep, view: RankingContext) -> Floats:
    names, asked = view.about.background.entities, frozenset(view.about.query.words)
    found = [any(is_name_in(n, asked) for n in names.get(i, ())) for i in view.ids]
    return signals.entity_factor(np.array(found, dtype=np.float64))


SIGNALS: Mapping[str, Signal] = {
    "title_all": _title_all,
    "cap_pinned": _cap_pinned,
    "coactivation": _coactivation,
    "significance": _significance,
    "reinforcement": _reinforcement,
    "entity": _entity,
}
"""By the name that a step gives. `recency` of the shape `half_life` is half_life."""


# MERGED from memd.recall.fuse:
# MERGED Several rankings into one, each leg's share kept apart so that a score can explain itself. Pure.
# MERGED
# MERGED A leg is (candidate indexes, scores), best first. Reciprocal rank fusion: weight/(k + rank), rank
# MERGED from 1 (Cormack, Clarke and Büttcher 2009). `max`: weight × score/best. `zscore`: weight × (score −
# MERGED mean)/deviation over that leg's own candidates. `squared`, MemU's: weight × cosine² for the vector
# MERGED leg, for the others weight/(1 + 0.2 · (rank − 1)). A leg that did not return a candidate adds nothing.


Floats_fuse = NDArray[np.float64]
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class RetrieverRanking:
    """What one leg found: candidate indexes (p,) int64, best first, and their scores (p,)."""

    candidates: NDArray[np.int64]
    scores: Floats_fuse

    def ranks(self, count: int) -> NDArray[np.int64]:
        """Rank from 1 per candidate, shape (count,); 0 where the leg did not return it."""
        ranks = np.zeros(count, dtype=np.int64)
        ranks[self.candidates] = np.arange(1, len(self.candidates) + 1)
        return ranks

    def values(self, count: int) -> Floats_fuse:
        """Score per candidate, shape (count,); NaN where the leg did not return it."""
        values = np.full(count, np.nan)
        values[self.candidates] = self.scores
        return values


def fuse_rankings(
    rankings: Mapping[str, RetrieverRanking],
    weights: Mapping[str, float],
    *,
    fusion: str,
    rrf_k: int,
    count: int,
) -> dict[str, Floats_fuse]:
    """Leg → what it adds to each of `count` candidates, shape (count,)."""
    result = {}
    for leg, ranking in rankings.items():
        weight = weights.get(leg, 0.0)
        added = np.zeros(count)
        if weight > 0 and len(ranking.candidates):
            added[ranking.candidates] = weight * _score_positions(
                leg, ranking.scores, fusion, rrf_k
            )
        result[leg] = added
    return result


def _score_positions(leg: str, scores: Floats_fuse, fusion: str, rrf_k: int) -> Floats_fuse:
    if fusion == "rrf":
        return np.asarray(1.0 / (rrf_k + np.arange(1, len(scores) + 1)), dtype=np.float64)
    if fusion == "max":
        best = float(scores.max())
        return np.maximum(scores, 0.0) / best if best > _TINY else np.zeros(len(scores))
    if fusion == "squared":
        if leg == "vector":
            return np.square(np.maximum(scores, 0.0))
        return np.asarray(1.0 / (1.0 + 0.2 * np.arange(len(scores))), dtype=np.float64)
    deviation = float(scores.std())
    return (scores - scores.mean()) / deviation if deviation > _TINY else np.zeros(len(scores))


# MERGED from memd.recall.rank:
# MERGED From legs to one order: candidates, their shares, and the steps of the profile. Pure.
# MERGED
# MERGED Everything is an array over the candidates, so that a search costs no loop over them; every step is
# MERGED kept by name, so that the score of each can be taken apart again.


_BY_WORD = frozenset({"coverage", "title"})
"""Signals that ask of each word in which candidates it stands."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the legs found: rows and scores per leg, best first, and the lexical score of all rows."""

    lexical: Rows
    vector: Rows
    topic: Rows
    lexical_all: Scores
    cosines: Floats
    """Of the rows of the vector leg."""
    near: semantic.LearnedEvidence | None = None
    """What a learned space says, if the profile weighs that; if it leads, it is the vector leg, too."""


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates, one row each, with every step of their scores."""

    rows: Rows
    rankings: Mapping[str, RetrieverRanking]
    steps: tuple[tuple[str, str, Floats], ...]
    """(name, op, value per candidate), in the order in which they are applied."""
    scores: Floats
    cosines: Floats
    recency: Floats

    def parts(self, index: int) -> tuple[ScorePart, ...]:
        """The parts of one candidate's score; a part that changes nothing is left out."""
        return tuple(
            ScorePart(name, float(values[index]), op)
            for name, op, values in self.steps
            if not (op == "+" and values[index] == 0.0) and values[index] != np.inf
        )


def collect_candidates(
    index: MemoryIndex, found: Retrieved, masks: VisibleRows, profile: Profile
) -> Rows:
    """The best row of every summary that a leg, or a neighbour of the lexical leg, brings."""
    lexical = found.lexical
    if any(step.signal == "context" for step in profile.steps) and len(lexical):
        lexical = semantic.add_neighbours(index, lexical, masks.wanted)
    beside = [leg_rows for leg_rows, _ in _beside(found).values()]
    rows = np.concatenate((found.topic, lexical, found.vector, *beside))
    _, first = np.unique(index.columns.summary_id[rows], return_index=True)
    return rows[np.sort(first)]


def _beside(found: Retrieved) -> dict[str, tuple[Rows, Floats]]:
    """The leg of a learned space that does not lead yet: it has a name of its own."""
    near = found.near
    return {} if near is None or near.leads else {"learned": (near.rows, near.cosines)}


def _recency(step: ProfileStep, view: RankingContext) -> Floats:
    if step.shape == "exponential":
        return signals.exponential_decay(view.ages, step.days)
    if step.shape == "half_life":
        return half_life(view)
    if step.shape == "hyperbolic":
        return signals.hyperbolic_decay(view.ages, step.days)
    return signals.logarithmic_decay(view.ages)


def _title(_: ProfileStep, view: RankingContext) -> Floats:
    found = np.zeros(len(view.rows))
    for standing in view.standing.values():
        found += standing[1]
    return signals.title_share(found, len(view.about.query.terms))


def _intent(_: ProfileStep, view: RankingContext) -> Floats:
    """Only as far as the words match too: an intent must not bring up what has no bearing."""
    wanted = np.zeros(len(KIND_CODES))
    for kind, share in view.about.intent.kinds.items():
        wanted[KIND_CODES[kind.value]] = share
    return signals.kind_share(view.index.columns.kind[view.rows], wanted) * view.relevance


def _coverage(_: ProfileStep, view: RankingContext) -> Floats:
    """How much of what was asked stands in a candidate, squared, so that most of it says most."""
    terms, among = view.about.terms.numbers, view.about.masks.evidence.among
    # A word that stands nowhere was asked for, too: it is the rarest of all.
    asked = idf(among.count, 0) * (len(view.about.query.terms) - len(terms))
    found = np.zeros(len(view.rows))
    for number in terms:
        weight = among.idf(number)
        found += weight * view.standing[number][0]
        asked += weight
    return np.square(found / asked) if asked > 0 else found


SIGNALS_rank: Mapping[str, Callable[[ProfileStep, RankingContext], Floats]] = {
    "recency": _recency,
    "tier": lambda _, v: signals.tier_share(v.index.columns.tier[v.rows], v.profile.rrf_k),
    "title": _title,
    "intent": _intent,
    "pin": lambda _, v: v.index.columns.pinned[v.rows].astype(np.float64),
    "coverage": _coverage,
    "cap": lambda s, v: np.full(len(v.rows), s.weight),
    "confidence": lambda _, v: v.index.columns.confidence[v.rows].astype(np.float64),
    "quality": lambda _, v: signals.quality_factor(
        v.index.columns.quality[v.rows].astype(np.float64)
    ),
    "length": lambda _, v: signals.length_factor(
        v.index.columns.body_length[v.rows].astype(np.int64)
    ),
    "frequency": lambda _, v: signals.frequency_factor(
        v.index.columns.revisions[v.rows].astype(np.int64),
        v.index.columns.duplicates[v.rows].astype(np.int64),
    ),
    **SIGNALS,
}


def score_candidates(
    index: MemoryIndex, rows: Rows, found: Retrieved, profile: Profile, about: RankingQuestion
) -> ScoredCandidates:
    """Apply a profile to its candidates."""
    rankings = _rankings(index, rows, found)
    fused = fuse_rankings(
        rankings,
        _weights(profile, found),
        fusion=profile.fusion,
        rrf_k=profile.rrf_k,
        count=len(rows),
    )
    together = sum(fused.values(), start=np.zeros(len(rows)))
    standing = {}
    if any(step.signal in _BY_WORD for step in profile.steps):
        standing = {n: index.postings.find_term(n, rows) for n in about.terms.numbers}
    view = RankingContext(
        index, rows, found.lexical_all, profile, about, together, found.near, standing
    )
    steps = [(leg, "+", profile.scale * values) for leg, values in fused.items()]
    cosines = {leg: ranking.values(len(rows)) for leg, ranking in rankings.items()}
    if found.near is not None:
        leg = "vector" if found.near.leads else "learned"
        near = semantic.cosines_of(index, found.near, rows, cosines.get(leg))
        steps.extend(found.near.steps(near))
        cosines[leg] = near
    for step in profile.steps:
        # A second stage that cannot do its work leaves the order of the first.
        if not (step.rerank and about.background.failed):
            steps.extend(_apply(step, view))
    recency = [values for name, _, values in steps if name == "recency"]
    unknown = np.full(len(rows), np.nan)
    return ScoredCandidates(
        rows=rows,
        rankings=rankings,
        steps=tuple(steps),
        scores=_total(steps, len(rows)),
        cosines=cosines.get("vector", unknown),
        recency=recency[0] if recency else unknown,
    )


def _weights(profile: Profile, found: Retrieved) -> dict[str, float]:
    """The legs' weights; a learned space that leads counts by its shares and not as a leg."""
    weights = {str(leg): weight for leg, weight in profile.legs.items()}
    leads = found.near is not None and found.near.leads
    return {**weights, "vector": 0.0} if leads else weights


def _total(steps: Sequence[tuple[str, str, Floats]], count: int) -> Floats:
    """What the steps make of nothing, in order; the same arithmetic as `apply_parts`."""
    total = np.zeros(count)
    for _, op, values in steps:
        if op == "+":
            total = total + values
        elif op == "*":
            total = total * values
        else:
            total = np.minimum(total, values)
    return total


def apply_more_steps(
    scored: ScoredCandidates, more: Sequence[tuple[str, str, Floats]]
) -> ScoredCandidates:
    """The same after some more steps."""
    steps = (*scored.steps, *more)
    return replace(scored, steps=steps, scores=_total(steps, len(scored.rows)))


def _rankings(index: MemoryIndex, rows: Rows, found: Retrieved) -> dict[str, RetrieverRanking]:
    """The legs' rankings in terms of candidate indexes."""
    summary_ids = index.columns.summary_id
    places = {number: i for i, number in enumerate(summary_ids[rows].tolist())}
    legs = {
        "topic": (found.topic, np.ones(len(found.topic))),
        "lexical": (found.lexical, found.lexical_all[found.lexical].astype(np.float64)),
        "vector": (found.vector, found.cosines),
        **_beside(found),
    }
    return {
        leg: RetrieverRanking(
            np.array([places[n] for n in summary_ids[leg_rows].tolist()], dtype=np.int64),
            scores,
        )
        for leg, (leg_rows, scores) in legs.items()
        if len(leg_rows)
    }


def _apply(step: ProfileStep, view: RankingContext) -> list[tuple[str, str, Floats]]:
    """One step of a profile as (name, op, values); `context` makes three, with a learned space five."""
    if step.signal == "context":
        return _context(step, view)
    values = SIGNALS_rank[step.signal](step, view)
    if step.op == "+":
        values = step.weight * values
    elif step.op == "*":
        values = (1.0 - step.weight) + step.weight * values
    return [(step.signal, step.op, values)]


def _context(step: ProfileStep, view: RankingContext) -> list[tuple[str, str, Floats]]:
    evidence = view.about.masks.evidence
    best = float(view.lexical_all[view.rows].max(initial=0.0)) or 1.0
    before, after = semantic.score_neighbours(
        view.index,
        view.rows,
        evidence.mask,
        lambda rows: view.lexical_all[rows].astype(np.float64),
    )
    sessions = evidence.sessions.scores(view.about.terms.numbers, view.profile.lexical)
    weight = step.weight * float(view.profile.legs.get("lexical", 0.0))
    highest = float(sessions.max(initial=0.0)) or 1.0
    session_ids = view.index.columns.session_id[view.rows]
    # What was said outside any session is a session of its own: it speaks for itself as much.
    of_session = np.where(session_ids > 0, sessions[session_ids] / highest, view.relevance)
    return [
        ("previous", "+", weight * step.previous * before / best),
        ("next", "+", weight * step.next * after / best),
        ("session", "+", weight * step.session * of_session),
        *_learned_context(step, view),
    ]


def _learned_context(step: ProfileStep, view: RankingContext) -> list[tuple[str, str, Floats]]:
    """The neighbours' meaning is evidence as their words are: 69.6 instead of 68.1 on LoCoMo's dev turns."""
    if view.near is None:
        return []
    weight = step.weight * view.near.context
    before, after = semantic.share_of_neighbours(
        view.index, view.near, view.rows, view.about.masks.evidence.mask
    )
    return [
        ("learned_previous", "+", weight * step.previous * before),
        ("learned_next", "+", weight * step.next * after),
    ]
