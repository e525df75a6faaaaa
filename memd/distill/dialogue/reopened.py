"""Have turns distilled again of which a later exchange takes something back."""

from memd.distill.dialogue import withdrawing
from memd.distill.dialogue.corrections import find_correction
from memd.distill.dialogue.heard import AFTER_MAX
from memd.distill.episodes import Exchange
from memd.models import Session, Summary
from memd.store import events, links, summaries
from memd.store.database import Connection

_TURN = "turn"
"""The rule of a turn's own memory, which tells what was granted to be wrong in it."""


def reopen_withdrawn(tx: Connection, said: Exchange, session: Session) -> int:
    """Have the turns distilled again of which this exchange takes something back; how many memories it is about."""
    correction = find_correction([said])
    told = correction.tell() if correction else ""
    count = 0
    first = events.find_prompt_back(tx, session.id, said.at, AFTER_MAX)
    for one in summaries.session_summaries(tx, session.id, (*withdrawing.RULES, _TURN), first):
        since = events.count_prompts(tx, session.id, one.at, said.at) if one.at < said.at else 0
        if not 0 < since <= AFTER_MAX:
            continue
        is_wrong = since == 1 and one.rule == _TURN and told not in one.body
        prompt = events.prompt_before(tx, session.id, None, one.at + 1) or ""
        if is_wrong or any(
            withdrawing.takes_back(said, since - 1, rule, claim, prompt)
            for rule, claim in _list_claims(one)
        ):
            sources = links.sources_of(tx, one.id)
            events.mark_pending(tx, [number for number, _ in sources])
            count += 1
    return count


def _list_claims(one: Summary) -> list[tuple[str, str]]:
    """(rule, what it says) of each claim in a memory that an exchange may take back."""
    if one.rule != _TURN:
        return [(one.rule, one.title)]
    labels = {withdrawing.CAUSE_LABEL: "found:cause", withdrawing.FOUND_LABEL: "found:limit"}
    return [
        (rule, line.removeprefix(label))
        for line in one.body.split("\n")
        for label, rule in labels.items()
        if line.startswith(label)
    ]
