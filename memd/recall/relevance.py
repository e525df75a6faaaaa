"""Relevance cut: keep the hits that are close enough to the best, if it covers enough of the question. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from memd.recall.types import Answer, Hit, RelevanceGate
from memd.recall.verdict import coverage_of


def keep_relevant(answer: Answer, gate: RelevanceGate, limit: int) -> Answer:
    """The answer with only the hits that pass; the others are counted, and explained in the trace."""
    passing = keep_relevant_hits(answer.hits, gate, limit)
    weak = len(answer.hits) - len(passing)
    if not weak:
        return answer
    why = "weak: too far below the best" if passing else "weak: even the best covers too little"
    ids = {hit.summary.id for hit in passing}
    return replace(
        answer,
        hits=tuple(passing),
        suppressed={**answer.suppressed, "weak": weak},
        trace=tuple(
            replace(one, verdict=why) if one.is_hit and one.summary_id not in ids else one
            for one in answer.trace
        ),
    )


def keep_relevant_hits(hits: Sequence[Hit], gate: RelevanceGate, limit: int) -> list[Hit]:
    """Keep at most `limit` hits close enough to the best; none if none of these covers enough."""
    score_floor = score_floor_of(hits, gate)
    close = [hit for hit in hits if hit.score >= score_floor][:limit]
    return close if best_coverage(close) >= gate.floor else []


def score_floor_of(hits: Sequence[Hit], gate: RelevanceGate) -> float:
    """The least score that is close to the best; below zero the distance counts alike."""
    best = hits[0].score if hits else 0.0
    return best - (1.0 - gate.ratio) * abs(best)


def best_coverage(hits: Sequence[Hit]) -> float:
    """The greatest coverage among them."""
    return max(map(coverage_of, hits), default=0.0)
