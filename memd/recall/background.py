"""Looks up what the index does not know of the candidates, and only what some step asks for."""

from collections.abc import Sequence

from memd.errors import VaultError
from memd.recall.asked import Asked
from memd.recall.profiles import Profile
from memd.recall.view import Background
from memd.store import entities, summaries, uses
from memd.store.database import Connection, translated
from memd.store.rows import Use
from memd.text import fold

_NOTHING = Background()


def look(tx: Connection, summary_ids: Sequence[int], asked: Asked) -> Background:
    """Uses, co-activations, entities and titles of these. A failure is told in `failed`, and nothing else."""
    wanted = _wanted(asked.profile)
    if not wanted or not summary_ids:
        return _NOTHING
    try:
        with translated():
            return Background(
                uses=_uses(tx, summary_ids, asked) if "uses" in wanted else {},
                together=_together(tx, summary_ids, asked) if "together" in wanted else {},
                entities=entities.of(tx, summary_ids) if "entities" in wanted else {},
                titles=_titles(tx, summary_ids) if "titles" in wanted else {},
            )
    except VaultError as error:
        return Background(failed=error.message)


_NEEDS = {
    "coactivation": "together",
    "entity": "entities",
    "reinforcement": "uses",
    "title_all": "titles",
}


def _wanted(profile: Profile) -> set[str]:
    wanted = {_NEEDS[step.signal] for step in profile.steps if step.signal in _NEEDS}
    return wanted | {
        "uses"
        for step in profile.steps
        if step.signal == "recency" and step.shape == "half_life"
    }


def _uses(tx: Connection, summary_ids: Sequence[int], asked: Asked) -> dict[int, Use]:
    """With `as_of`, only the uses that were all before it: nothing later is seen."""
    found = uses.of(tx, summary_ids)
    as_of = asked.question.as_of
    return {i: use for i, use in found.items() if as_of is None or use.last_at <= as_of}


def _titles(tx: Connection, summary_ids: Sequence[int]) -> dict[int, str]:
    return {
        number: fold(head.title) for number, head in summaries.heads(tx, summary_ids).items()
    }


def _together(
    tx: Connection, summary_ids: Sequence[int], asked: Asked
) -> dict[tuple[int, int], int]:
    """With `as_of`, nothing: when two were returned together is not kept."""
    return {} if asked.question.as_of is not None else uses.together(tx, summary_ids)
