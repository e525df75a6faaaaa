"""The signals of the published recipes over the candidates: a step in, a value per candidate out. Pure.

The formulas are in signals.py; here is where each takes its numbers from. Not here: the signals that
are memd's own (rank.py), the order in which a profile applies them (profiles.py).
"""

from collections.abc import Callable, Mapping

import numpy as np

from memd.index.columns import TIER_CODES
from memd.index.entities import is_named
from memd.models import Tier
from memd.recall import kinds, signals
from memd.recall.legs import Floats
from memd.recall.profiles import Step
from memd.recall.view import View
from memd.text import fold

Signal = Callable[[Step, View], Floats]
_TOP_SHARE = 0.25
_EDGES = "\"'`?!.,;:()[]{}*"


def half_life(view: View) -> Floats:
    """ClawMem's recency: each kind fades at its own pace, more slowly what is in use."""
    bases = kinds.half_lives()[view.index.columns.kind[view.rows]]
    stretch = signals.stretch(view.used, view.unused_for)
    return signals.halving(view.ages, bases * stretch)


def words_as_typed(text: str) -> tuple[str, ...]:
    """The words of a question as Covalence compares them: folded, whole, stop words too."""
    found = (word.strip(_EDGES) for word in fold(text).split())
    return tuple(dict.fromkeys(word for word in found if word))


def _title_all(_: Step, view: View) -> Floats:
    known = view.about.background.titles
    titles = [known.get(number, "") for number in view.ids]
    return signals.title_bonus(titles, words_as_typed(view.about.query.text))


def _cap_pinned(step: Step, view: View) -> Floats:
    """The cap is for pinned ones alone; infinity changes nothing."""
    return np.where(view.index.columns.pinned[view.rows], step.weight, np.inf)


def _coactivation(_: Step, view: View) -> Floats:
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


def _significance(_: Step, view: View) -> Floats:
    """MemU's 1 to 10 as a share. Nobody rates memories here: pinned is core, else the kind tells."""
    c = view.index.columns
    levels = kinds.significances()[c.kind[view.rows]]
    core = c.tier[view.rows] == TIER_CODES[Tier.CORE.value]
    return np.asarray(np.where(core, kinds.LEVELS["core"], levels) / 10.0, dtype=np.float64)


def _reinforcement(_: Step, view: View) -> Floats:
    """Both what was said again and what was recalled reinforces; the latter feeds on itself."""
    return signals.reinforcement(view.index.columns.duplicates[view.rows] + view.used)


def _entity(_: Step, view: View) -> Floats:
    names, asked = view.about.background.entities, frozenset(view.about.query.words)
    found = [any(is_named(n, asked) for n in names.get(i, ())) for i in view.ids]
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
