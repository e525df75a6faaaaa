"""Say in words how a memory was made: the rule that wrote it; of an agent's note also which agent, where and when."""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path

from memd.belief.notes import split_note
from memd.models import NOTED, REMEMBERED, Session, Summary
from memd.time_expressions import format_time


def describe_rule(rule: str) -> str:
    """Describe a rule in words; empty for an unknown one."""
    meanings, (family, colon, _) = _read_meanings(), rule.partition(":")
    return meanings.get(rule) or meanings.get(family + colon) or meanings.get(family, "")


@functools.cache
def _read_meanings() -> Mapping[str, str]:
    return tomllib.loads((Path(__file__).parent / "rules.toml").read_text(encoding="utf-8"))


def describe_making(one: Summary, session: Session | None) -> str:
    """Describe the rule that made a memory; of what an agent noted also which agent, in which session, and when."""
    family, told = one.rule.partition(":")[0], describe_rule(one.rule)
    if one.source != "agent" or family not in {REMEMBERED, NOTED}:
        return told
    who, where = "an agent", "a session that its client did not name"
    if session is not None:
        title = f" “{session.title}”" if session.title else ""
        who, where = f"an agent ({session.client})", f"session{title} {session.key}"
    made = f"{who} noted it in {where}, {format_time(one.created_at)}"
    note = split_note(one.body)
    if family == NOTED:
        return f"{made}, and the user's own words prove it"
    has_basis = note.said or note.quoted or note.stood or note.seen or note.line
    return made if has_basis else f"{made}, without a quote"
