"""The user's rules that have a checkable form: their checks, and which of them act.

A check is read out of the sentence of a rule of the user's authority. One that an agent gave acts only once the user
kept, pinned or wrote that memory himself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memd.belief.checks import RuleCheck, read_checks
from memd.belief.notes import split_note
from memd.models import Authority, Summary
from memd.store.database import Connection
from memd.store.pages import reviews as store
from memd.store.pages.reviews import RULE_KINDS


@dataclass(frozen=True, slots=True)
class Rule:
    """A memory with checks."""

    summary: Summary
    checks: tuple[RuleCheck, ...]
    """Those that act."""
    proposed: tuple[RuleCheck, ...] = ()
    """Those that act once the user keeps the memory."""
    is_enforced: bool = False
    """Whether what breaks it is refused."""


def list_rules(tx: Connection, project_ids: Sequence[int], now: int) -> list[Rule]:
    """The rules of these projects that hold now and have a check."""
    return read_rules(tx, store.live_rules(tx, project_ids, now))


def read_rules(tx: Connection, memories: Iterable[Summary]) -> list[Rule]:
    """Return the memories among these that have a check."""
    found = [one for one in memories if one.kind in RULE_KINDS]
    kept = store.kept_ids(tx, [one.id for one in found])
    enforced = store.enforced_ids(tx) if found else frozenset()
    rules = (
        _read_rule(one, is_kept=one.id in kept, is_enforced=one.id in enforced) for one in found
    )
    return [one for one in rules if one.checks or one.proposed]


def _read_rule(one: Summary, *, is_kept: bool, is_enforced: bool) -> Rule:
    note = split_note(one.body)
    is_approved = is_kept or (one.pinned_by or Authority.AGENT_CALL) >= Authority.USER_HAND
    is_users = is_approved or (one.authority >= Authority.USER_TOLD and not one.author)
    said = read_checks(note.text) or read_checks(one.title) or read_checks(note.said)
    given = read_checks(note.check)
    acts = (said if is_users else ()) + (
        given if is_approved or one.authority is Authority.USER_HAND else ()
    )
    acts = tuple(dict.fromkeys(acts))
    waits = tuple(check for check in dict.fromkeys(said + given) if check not in acts)
    return Rule(one, acts, waits, is_enforced and bool(acts))


def describe_checks(tx: Connection, summary: Summary) -> tuple[str, ...]:
    """Describe how a rule is checked: shown or refused, or waiting for the user."""
    found: list[str] = []
    for rule in read_rules(tx, [summary]):
        does = (
            "a call that breaks it is refused"
            if rule.is_enforced
            else "told when it is about to be broken"
        )
        found += [f"{check}: {does}" for check in rule.checks]
        found += [f"{check}: acts once the user keeps this memory" for check in rule.proposed]
    return tuple(found)
