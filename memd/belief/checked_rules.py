"""The rules of a project that have a check, and which of their checks act."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memd.belief.changes import StandingStatement, find_outdated
from memd.belief.checks import RuleCheck, read_checks
from memd.belief.notes import split_note
from memd.caches import cached
from memd.models import RULE_KINDS, Authority, Summary
from memd.store import judgments
from memd.store import reviews as store
from memd.store.database import Connection

_COMPARED_CACHED = 32
"""Sets of rules whose comparison is kept: each call that a rule may be about asks for its project's, which seldom change."""


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
    live = store.live_rules(tx, project_ids, now)
    outdated = _find_outdated_rules(tx, live)
    return read_rules(tx, [one for one in live if one.id not in outdated])


def find_later_rule(tx: Connection, rule: Summary, now: int) -> int | None:
    """Return the later rule of its project that says what holds of a rule since, as a session's start leaves it out."""
    if rule.kind not in RULE_KINDS:
        return None
    return _find_outdated_rules(tx, store.live_rules(tx, [rule.project_id], now)).get(rule.id)


def _find_outdated_rules(tx: Connection, rules: Iterable[Summary]) -> Mapping[int, int]:
    free = {one.id: one for one in rules if one.pinned_at is None}
    # What contradicts each other waits for the user's judgment.
    against = judgments.visible_contradictions(tx, list(free))
    statements = (
        StandingStatement(one.id, one.project_id, one.title, one.at, one.authority, tuple(one.tags))
        for one in free.values()
        if one.id not in against
    )
    return _compare_rules(tuple(statements))


@cached(_COMPARED_CACHED)
def _compare_rules(statements: tuple[StandingStatement, ...]) -> Mapping[int, int]:
    return find_outdated(statements)


def read_rules(tx: Connection, memories: Iterable[Summary]) -> list[Rule]:
    """Return the memories among these that have a check."""
    found = [one for one in memories if one.kind in RULE_KINDS]
    kept = store.kept_ids(tx, [one.id for one in found])
    enforced = store.enforced_ids(tx) if found else frozenset()
    rules = []
    for one in found:
        note = split_note(one.body)
        is_pinned = (one.pinned_by or Authority.AGENT_CALL) >= Authority.USER_HAND
        is_approved = one.id in kept or is_pinned
        is_users = is_approved or (one.authority >= Authority.USER_TOLD and not one.author)
        said = read_checks(note.text) or read_checks(one.title) or read_checks(note.said)
        given = read_checks(note.check)
        is_given = is_approved or one.authority is Authority.USER_HAND
        acts = tuple(dict.fromkeys((*(said if is_users else ()), *(given if is_given else ()))))
        waits = tuple(check for check in dict.fromkeys(said + given) if check not in acts)
        rules.append(Rule(one, acts, waits, one.id in enforced and bool(acts)))
    return [one for one in rules if one.checks or one.proposed]


def describe_checks(tx: Connection, summary: Summary) -> tuple[str, ...]:
    """Describe how a rule is checked: shown or refused, or waiting for the user."""
    found: list[str] = []
    for rule in read_rules(tx, [summary]):
        told = "told when it is about to be broken"
        does = "a call that breaks it is refused" if rule.is_enforced else told
        found += [f"{check}: {does}" for check in rule.checks]
        found += [f"{check}: acts once the user keeps this memory" for check in rule.proposed]
    return tuple(found)
