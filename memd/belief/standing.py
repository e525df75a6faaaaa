"""Describe how long a proposal of the agent's stood: what the user said and undid after it."""

import re

from memd.belief.proof import count_turns, find_contradiction
from memd.models import EventKind
from memd.store import events
from memd.store.database import Connection
from memd.text import one_line

_UNDOES = re.compile(r"\bgit\s+(?:revert|reset\s+--hard|restore|checkout\s+--)(?=\s|$)")
_COMMITS = re.compile(r"\bgit\b[^|;&]*\bcommit\b")


def describe_standing(tx: Connection, proposal: str, event_id: int) -> str:
    """Describe how long the user let a proposal stand, or objected to or undid since; empty if it is not here."""
    event = events.events_by_ids(tx, [event_id]).get(event_id)
    if event is None:
        return ""
    prompts = [
        str(one.payload.get("prompt", ""))
        for one in events.spoken_record(tx, event.session_id)
        if one.kind is EventKind.PROMPT and (one.at, one.id) > (event.at, event.id)
    ]
    if turned := find_contradiction(proposal, prompts):
        return f"the agent proposed it, and the user contradicted: “{one_line(turned, 120)}”"
    commands = events.commands_since(tx, event.session_id, event.at)
    if any(_UNDOES.search(command) for command in commands):
        return "the agent proposed it, and it was undone later"
    built = " and a commit" if any(_COMMITS.search(command) for command in commands) else ""
    return f"the agent proposed it, and it stood for {count_turns(len(prompts))}{built}"
