"""Which of the hits for a prompt are shown unasked, and why each of the others is not. Pure.

Three things must hold: the best of all covers enough of the prompt (the floor, see surface.py), a
hit is not too far below it (the ratio), and two of the prompt's content words stand in the hit, or
one name, or it was named by its topic key. What the agent sees already is not shown again, but still
is what the others are measured by: the second best of a good answer is no better for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memd.recall.answer import Hit
from memd.recall.surface import support
from memd.recall.worth import WORDS_MIN, Worth, standing


@dataclass(frozen=True, slots=True)
class Limits:
    """What a hit must be; see InjectConfig."""

    floor: float
    ratio: float
    hits: int


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate, whether it is shown, and in words why."""

    hit: Hit
    is_shown: bool
    why: str
    is_near: bool = True
    """Whether it is not too far below the best, and that one covers enough."""


def choose(
    hits: Sequence[Hit], worth: Worth, seen: Mapping[int, str], limits: Limits
) -> list[Offer]:
    """A verdict for each hit, best first. `seen`: summary id → why the agent has it before it already."""
    if not hits:
        return []
    best = hits[0].score
    bound = best - (1.0 - limits.ratio) * abs(best)
    near = [hit for hit in hits if hit.score >= bound]
    strongest = max((support(hit) for hit in near[: limits.hits]), default=0.0)
    if strongest < limits.floor:
        why = f"below the floor: {strongest:.2f} of the prompt is covered, {limits.floor:.2f} is asked"
        return [Offer(hit, False, why, is_near=False) for hit in hits]
    offers: list[Offer] = []
    chosen: list[Hit] = []
    for hit in hits:
        far = _far(hit, bound)
        why_not = far or seen.get(hit.summary.id)
        if why_not is None and len(chosen) >= limits.hits:
            why_not = "there were enough better ones"
        why_not = why_not or _told(hit, chosen) or _thin(hit, worth)
        offers.append(Offer(hit, why_not is None, why_not or _why(hit), is_near=far is None))
        chosen += [hit] if why_not is None else []
    return offers


def _far(hit: Hit, bound: float) -> str | None:
    if hit.score >= bound:
        return None
    return f"too far below the best: {hit.score:.3g}, {bound:.3g} is asked"


def _told(hit: Hit, chosen: Sequence[Hit]) -> str | None:
    """Of one turn one memory is enough: the others tell the same story."""
    mine = (hit.summary.session_id, hit.summary.episode)
    for other in chosen:
        if None not in mine and mine == (other.summary.session_id, other.summary.episode):
            return f"from the same turn as #{other.summary.id}"
    return None


def _thin(hit: Hit, worth: Worth) -> str | None:
    if hit.topic_rank is not None:
        return None
    count, is_named = standing(worth, hit.summary)
    if count < WORDS_MIN and not is_named:
        return f"{count} of the prompt's words stands in it, {WORDS_MIN} are asked"
    return None


def _why(hit: Hit) -> str:
    if hit.topic_rank is not None:
        return "the prompt names its topic"
    return f"covers {support(hit):.2f} of the prompt, score {hit.score:.3g}"
