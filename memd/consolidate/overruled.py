"""Show again, once, what an earlier memd let a lesser authority hide of the user's.

Before memories had a speaker, an agent's sentence or tool call could hide what the user had said. Each such
supersession is undone; the two then contradict each other, and the user judges. What the user has hidden, by
a judgment or by saying something else, stays hidden.
"""

import json

from memd.belief import supersede
from memd.models import EdgeType, Supersession
from memd.store import judgments, ledger, links
from memd.store.database import Connection


def show_overruled(tx: Connection, now: int) -> list[tuple[int, int]]:
    """(newer, older) of each supersession that was undone; the first time in a vault only."""
    if ledger.read_note(tx, links.OVERRULED_NOTE) is not None:
        return []
    judgments.restore_confidence(tx)
    found = links.overruling_supersessions(tx)
    for past in found:
        _undo_supersession(tx, past, now)
    pairs = [(past.newer_id, past.older_id) for past in found]
    ledger.write_note(tx, links.OVERRULED_NOTE, json.dumps(pairs))
    return pairs


def _undo_supersession(tx: Connection, past: Supersession, now: int) -> None:
    judgment = judgments.judgment_between(tx, past.newer_id, past.older_id)
    if judgment is not None and judgment.who != "user":
        judgments.undo_judgment(tx, judgment, now)
    links.undo_supersession(tx, past.id, now)
    is_alike = past.rule == supersede.NEAR_DUPLICATE_RULE
    type_ = EdgeType.SIMILAR_TO if is_alike else EdgeType.CONTRADICTS
    supersede.relate(
        tx, past.newer_id, type_, past.older_id, past.rule, now, finding="a lesser voice", because=past.guard
    )  # fmt: skip
