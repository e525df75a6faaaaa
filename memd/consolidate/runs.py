"""Apply the decisions of a consolidation run, and undo them.

Each applied decision carries its run, so that a pair, a memory or a whole run can be undone. An undone
decision is not applied again: its supersession stays, marked as undone, and an undone contradiction
becomes a judgment that both are compatible.
"""

import re
from dataclasses import dataclass

from memd.belief.changes import CHANGED_VALUE_RULE
from memd.belief.decide import Decision
from memd.belief.supersede import (
    NEAR_DUPLICATE_RULE,
    active_supersessions,
    drop_contradiction,
    hide,
    is_judged,
    relate,
)
from memd.errors import BadRequest, UnknownId
from memd.models import EdgeType, Stance, Supersession
from memd.store import judgments, links, summaries
from memd.store.database import Connection

_RULES = frozenset({NEAR_DUPLICATE_RULE, CHANGED_VALUE_RULE})
"""The rules of the supersessions and edges that consolidation writes and can undo."""
_TARGET = re.compile(
    r"r(?:un:?)?(?P<run>\d{1,15})|#?(?P<one>\d{1,15})(?:[,+:/-]#?(?P<other>\d{1,15}))?"
)
MERGED = "merged"
"""The rule of an observation that several near-duplicates were merged into."""
UNDONE = "undone by hand"
"""How the reason of a judgment begins that takes something back."""
_UNDO_REASON = f"{UNDONE}: `memd consolidate --undo`"
_SHOWN_IDS_MAX = 5


@dataclass(frozen=True, slots=True)
class UndoTarget:
    """The target of an undo: a run, the supersession that hides `one`, or the decision about `one` and `other`."""

    run: int | None = None
    one: int | None = None
    other: int | None = None


@dataclass(frozen=True, slots=True)
class UndoResult:
    """Result of an undo; pairs are (newer, older)."""

    run: int | None
    shown: tuple[tuple[int, int], ...]
    """The older one of each is no longer hidden."""
    compatible: tuple[tuple[int, int], ...]
    """Pairs that no longer count as contradicting each other."""
    is_dry_run: bool = False


def parse_undo_target(text: str) -> UndoTarget:
    """Read `r7`, `#12` or `12,15`. Raises BadRequest."""
    found = _TARGET.fullmatch(text.replace(" ", "").casefold())
    if found is None:
        raise BadRequest(
            "undo: name a run (r7), the memory that was hidden (#12) or a pair (12,15);"
            " `memd consolidate --runs` lists the runs"
        )
    return UndoTarget(**{name: int(number) for name, number in found.groupdict().items() if number})


def write_decision(tx: Connection, decision: Decision, run: int, now: int) -> bool:
    """Apply a decision; False if the pair is judged or nothing changed."""
    if is_judged(tx, *decision.pair):
        return False
    reason, cosine, space = decision.reason, decision.cosine, decision.space
    rule = CHANGED_VALUE_RULE if decision.change else NEAR_DUPLICATE_RULE
    if decision.type is EdgeType.SUPERSEDES:
        guard = reason + (f"; alike in {space}" if space else "")
        number = hide(
            tx, *decision.pair, rule, guard, now,
            cosine=cosine, otherwise=EdgeType.SIMILAR_TO,
        )  # fmt: skip
        if number is not None:
            links.assign_to_run(tx, number, run)
        return number is not None
    detail: dict[str, object] = {"finding": reason, "run": run}
    if cosine is not None:
        detail["cosine"] = cosine = round(cosine, 4)
    if space:
        detail["space"] = space
    return relate(
        tx, decision.newer_id, decision.type, decision.older_id, rule, now,
        confidence=1.0 if cosine is None else cosine, **detail,
    )  # fmt: skip


def undo(tx: Connection, target: UndoTarget, now: int, *, dry_run: bool = False) -> UndoResult:
    """Undo decisions. BadRequest if there is nothing to undo, UnknownId if there is no such memory."""
    if target.run is not None:
        hidden, opposed = _find_decisions_of_run(tx, target.run)
    else:
        hidden, opposed = _find_decisions_about(tx, target.one or 0, target.other)
    if not dry_run:
        for past in hidden:
            links.undo_supersession(tx, past.id, now)
            merged = summaries.get_summary(tx, past.newer_id)
            if merged is not None and merged.rule == MERGED:  # it says nothing of its own
                summaries.renew_summary(tx, merged.id, at=merged.at, expires_at=now, now=now)
        for newer, older in opposed:
            for rule in _RULES:
                drop_contradiction(tx, newer, older, rule)
            if judgments.stance_between(tx, newer, older) is None:
                judgments.put_judgment(
                    tx, newer_id=newer, older_id=older, relation=Stance.COMPATIBLE,
                    reason=_UNDO_REASON, who="user", at=now,
                )  # fmt: skip
        if target.run is not None:
            links.mark_run_undone(tx, target.run, now)
    pairs = tuple((past.newer_id, past.older_id) for past in hidden)
    return UndoResult(target.run, pairs, tuple(opposed), dry_run)


_Decisions = tuple[list[Supersession], list[tuple[int, int]]]
"""(supersessions that hold, pairs that contradict each other)"""


def _find_decisions_of_run(tx: Connection, number: int) -> _Decisions:
    if links.get_run(tx, number) is None:
        raise BadRequest(f"undo: there is no run r{number}; `memd consolidate --runs` lists them")
    hidden, opposed = links.run_supersessions(tx, number), links.run_contradictions(tx, number)
    if not hidden and not opposed:
        raise BadRequest(f"undo: nothing of run r{number} holds any more")
    return hidden, opposed


def _find_decisions_about(tx: Connection, one: int, other: int | None) -> _Decisions:
    """The supersession that hides a memory, or the decision about a pair."""
    wanted = [one] if other is None else [one, other]
    known = summaries.summaries_by_ids(tx, wanted)
    for number in wanted:
        if number not in known:
            raise UnknownId(f"there is no memory #{number}")
    active = active_supersessions(tx, one)
    if other is None:
        hidden, opposed = [past for past in active if past.older_id == one], []
    else:
        hidden = [past for past in active if {past.older_id, past.newer_id} == {one, other}]
        opposed = _find_contradictions(tx, one, other)
    for past in hidden:
        if past.rule not in _RULES:
            raise BadRequest(
                f"undo: #{past.newer_id} hides #{past.older_id} by the rule {past.rule}, not by"
                " consolidation; mem_judge or"
                f" `memd judge {past.newer_id} {past.older_id} --undo` takes that back"
            )
    if not hidden and not opposed:
        raise BadRequest(f"undo: {_explain_nothing_found(active, one, other)}")
    return hidden, opposed


def _find_contradictions(tx: Connection, one: int, other: int) -> list[tuple[int, int]]:
    return [
        (int(edge.from_id), int(edge.to_id))
        for edge in links.edges_at(tx, "summary", str(one))
        if edge.type is EdgeType.CONTRADICTS
        and edge.rule in _RULES
        and edge.from_kind == edge.to_kind == "summary"
        and {edge.from_id, edge.to_id} == {str(one), str(other)}
    ]


def _explain_nothing_found(active: list[Supersession], one: int, other: int | None) -> str:
    if other is not None:
        return f"consolidation decided nothing about #{one} and #{other}"
    hidden = ", ".join(f"#{past.older_id}" for past in active[:_SHOWN_IDS_MAX])
    return f"nothing hides #{one}" + (f"; it hides {hidden}: name one of those" if hidden else "")
