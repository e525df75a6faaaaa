"""Hide the rules that the user has taken back."""

from collections.abc import Sequence

from memd.belief import supersede
from memd.distill.retractions import RETRACTED, pick_ended, related_stems
from memd.models import Draft, Kind, Summary
from memd.store import judgments, summaries
from memd.store.database import Connection

_RULE_KINDS = (Kind.INSTRUCTION, Kind.PREFERENCE)
_RELATED_MAX = 100


def find_ended_rules(
    tx: Connection, drafts: Sequence[Draft], project_id: int
) -> dict[str, list[Summary]]:
    """The live rules of a project that each retraction among these drafts ends, by its slot."""
    return {d.slot: _find_ended(tx, d, project_id) for d in drafts if d.rule == RETRACTED}


def end_rules(tx: Connection, note_id: int, draft: Draft, ended: Sequence[Summary]) -> None:
    """Let a stored retraction hide the rules that it ends, as far as its speaker may."""
    for rule in ended:
        if judgments.stance_between(tx, note_id, rule.id) is None:
            reason = f"it was taken back: {draft.body}"
            supersede.hide(tx, note_id, rule.id, RETRACTED, reason, draft.at)


def _find_ended(tx: Connection, draft: Draft, project_id: int) -> list[Summary]:
    stems = related_stems(draft)
    if not stems:
        return []
    ids = [
        number
        for kind in _RULE_KINDS
        for number in summaries.ids_sharing_keys(tx, project_id, kind, stems, limit=_RELATED_MAX)
    ]
    return pick_ended(draft, list(summaries.summaries_by_ids(tx, ids).values()))
