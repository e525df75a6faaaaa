"""What is worth showing unasked: hits near to the best one, and none if even the best is weak. Pure.

A score compares the hits of one answer and says nothing by itself: it depends on the profile and on
the vault. So the floor is on *coverage*, the share of what was asked that stands in a hit, each word
weighed by how rare it is among what is seen; 0 is nothing of it, 1 all of it, in any vault and with
any profile. Cosine is not used: what is near differs from space to space. So a hit by its meaning
alone has coverage 0 and is not shown unasked; who injects memories nobody asked for must rather be
silent than wrong. Of a long text only the eight rarest words count as asked, lest its length alone
sink everything. The ratio is on the scores.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memd.index.among import Among, idf
from memd.index.memory_index import MemoryIndex
from memd.recall.answer import Answer, Hit, Surface
from memd.recall.legs import Floats, Rows, Terms, is_among

ASKED_MAX = 8
ROWS_MIN = 50
"""A young vault counts its words as if it had so many rows; else one word that it does not know would
weigh more than all that it does."""


def coverage(
    index: MemoryIndex, rows: Rows, terms: Terms, unknown: int, among: Among
) -> Floats:
    """The share of what was asked that stands in each of `rows`, shape (m,), 0 to 1.

    Σ idf of the words that stand there / Σ idf of the eight rarest that were asked, at most 1.
    `unknown` of the words stand nowhere in the vault and are the rarest of all. A phrase or prefix
    counts like a word.
    """
    count = max(among.count, ROWS_MIN)
    having = [among.df(number) for number in terms.numbers]
    having += [int(np.count_nonzero(among.mask[group])) for group in terms.groups]
    weights = [idf(count, number) for number in having]
    standing = [index.postings.has(number, rows) for number in terms.numbers]
    standing += [is_among(rows, group) for group in terms.groups]
    found = np.zeros(len(rows))
    for weight, stands in zip(weights, standing, strict=True):
        found += weight * stands
    asked = sorted([*weights, *[idf(count, 0)] * unknown], reverse=True)
    most = sum(asked[:ASKED_MAX])
    return np.minimum(found / most, 1.0) if most > 0 else found


def surface(hits: Sequence[Hit], *, floor: float, ratio: float, limit: int) -> list[Hit]:
    """The hits, best first, whose score is at least `ratio` of the best one's; at most `limit`.

    None if none of these has a coverage of `floor`. A hit by topic key was asked for by name and
    covers everything. For scores below zero the distance counts alike: best − (1 − ratio) · |best|.
    """
    if not hits:
        return []
    best = hits[0].score
    kept = [hit for hit in hits if hit.score >= best - (1.0 - ratio) * abs(best)][:limit]
    strongest = max((support(hit) for hit in kept), default=0.0)
    return kept if strongest >= floor else []


def support(hit: Hit) -> float:
    """How much of the question a hit covers, 0 to 1."""
    return 1.0 if hit.topic_rank is not None else hit.coverage or 0.0


def surfaced(answer: Answer, wanted: Surface, limit: int) -> Answer:
    """The answer with only those hits, the others counted and, in the trace, told."""
    kept = surface(answer.hits, floor=wanted.floor, ratio=wanted.ratio, limit=limit)
    weak = len(answer.hits) - len(kept)
    if not weak:
        return answer
    why = "weak: too far below the best" if kept else "weak: even the best covers too little"
    shown = {hit.summary.id for hit in kept}
    return replace(
        answer,
        hits=tuple(kept),
        suppressed={**answer.suppressed, "weak": weak},
        trace=tuple(
            replace(one, verdict=why) if one.is_hit and one.summary_id not in shown else one
            for one in answer.trace
        ),
    )
