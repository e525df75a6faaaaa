"""An episode to drafts: every rule of this room, applied in one place. Pure.

The same episode and context always give the same drafts with the same slots, so that distilling
again revises what is there and adds nothing. Not here: the rules themselves (turn.py, failures.py,
decisions.py, standing.py).
"""

from memd.distill import decisions, failures, standing, story, turn
from memd.distill.segment import Episode
from memd.distill.story import Context
from memd.models import Draft
from memd.text import is_private


def distil(episode: Episode, context: Context) -> list[Draft]:
    """What this episode is remembered as; an empty list is an answer, and that of a private turn."""
    if any(is_private(event.payload.get("prompt")) for event in episode.events):
        return []
    told = story.read(episode.events, context)
    decided = decisions.drafts(told, context)
    sentences = frozenset(statement.sentence for statement in decisions.statements(told))
    whole = turn.draft(told, context)
    found = [
        *([whole] if whole else []),
        *failures.drafts(told, context),
        *decided,
        *standing.drafts(told, context, sentences),
        *turn.sessions(told, context),
    ]
    return [draft for draft in found if draft.title.strip() and draft.body.strip()]
