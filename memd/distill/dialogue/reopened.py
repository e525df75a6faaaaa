"""Have turns distilled again of which a later exchange takes something back."""

from memd.distill.dialogue import withdrawing
from memd.distill.dialogue.heard import EXCHANGES_MAX
from memd.distill.episodes import Exchange
from memd.models import Session
from memd.store import events, links, summaries
from memd.store.database import Connection

_LOOKED_BACK_MS = 12 * 3_600_000


def reopen_withdrawn(tx: Connection, said: Exchange, session: Session) -> int:
    """Have the turns distilled again of which this exchange takes something back; how many memories it is about."""
    count = 0
    for one in summaries.session_summaries(
        tx, session.id, withdrawing.RULES, said.at - _LOOKED_BACK_MS
    ):
        since = events.count_prompts(tx, session.id, one.at, said.at)
        if one.at >= said.at or not 0 < since <= EXCHANGES_MAX:
            continue
        prompt = events.prompt_before(tx, session.id, None, one.at + 1) or ""
        if withdrawing.takes_back(said, since - 1, one.rule, one.title, prompt):
            sources = links.sources_of(tx, one.id)
            events.mark_pending(tx, [number for number, _ in sources])
            count += 1
    return count
