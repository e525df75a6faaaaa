"""Verdicts of consolidation, written down and taken back.

Every verdict carries the round that gave it, so that a pair, a memory or a whole round can be undone.
What was undone is not done again: the row stays, marked; an undone contradiction is judged compatible.
Not here: which verdict it is (decide.py).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from memd.consolidate.decide import Decision, Relate, Supersede
from memd.errors import BadRequest, UnknownId
from memd.models import EdgeType, Stance, Supersession
from memd.store import judgments, links, runs, summaries
from memd.store.database import Connection

NEAR_DUPLICATE_RULE = "near-duplicate"
"""The rule by which a supersession of this room is known, and can be undone."""
_TARGET = re.compile(
    r"r(?:un:?)?(?P<run>\d{1,15})|#?(?P<one>\d{1,15})(?:[,+:/-]#?(?P<other>\d{1,15}))?"
)
_REASON = "undone by hand: `memd consolidate --undo`"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class UndoTarget:
    """What is to be undone: a round, what hides one memory, or what two memories were found to be."""

    run: int | None = None
    one: int | None = None
    other: int | None = None


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What was taken back; pairs are (newer, older)."""

    run: int | None
    shown: tuple[tuple[int, int], ...]
    """The older one of each shows again."""
    compatible: tuple[tuple[int, int], ...]
    """They do not count as contradicting each other any more."""
    is_dry_run: bool = False


def parse_undo_target(text: str) -> UndoTarget:
    """Read `r7`, `#12` or `12,15`. Raises BadRequest."""
    found = _TARGET.fullmatch(text.replace(" ", "").casefold())
    if found is None:
        raise BadRequest(
            "undo: say a run (r7), the memory that was hidden (#12) or a pair (12,15);"
            " `memd consolidate --runs` lists the runs"
        )
    return UndoTarget(**{name: int(said) for name, said in found.groupdict().items() if said})


def is_settled(tx: Connection, one: int, other: int) -> bool:
    """Whether somebody has judged these two, or has undone what a round said of them."""
    if judgments.stance_between(tx, one, other) is not None:
        return True
    return any(
        past.undone_at is not None and {past.newer_id, past.older_id} == {one, other}
        for past in links.supersessions_of(tx, one)
    )


def write_decision(tx: Connection, decision: Decision, run: int, now: int) -> bool:
    """Whether a row was written."""
    if isinstance(decision, Supersede):
        return _supersede(tx, decision, run, now)
    if is_settled(tx, decision.a, decision.b):
        return False
    detail: dict[str, object] = {"finding": decision.finding.reason, "run": run}
    if decision.cosine is not None:
        detail["cosine"] = round(decision.cosine, 4)
    if decision.space:
        detail["space"] = decision.space
    edge = links.NewEdge(
        "summary", str(decision.a), decision.type, "summary", str(decision.b), NEAR_DUPLICATE_RULE, now,
        confidence=1.0 if decision.cosine is None else round(decision.cosine, 4), detail=detail,
    )  # fmt: skip
    return links.add_edges(tx, [edge]) > 0


def _supersede(tx: Connection, decision: Supersede, run: int, now: int) -> bool:
    if is_settled(tx, decision.newer_id, decision.older_id):
        return False
    number = links.supersede(
        tx,
        newer_id=decision.newer_id,
        older_id=decision.older_id,
        rule=NEAR_DUPLICATE_RULE,
        cosine=decision.cosine,
        guard=decision.guard + (f"; alike in {decision.space}" if decision.space else ""),
        at=now,
    )
    if number is not None:
        runs.assign_to_run(tx, number, run)
    return number is not None


def undo(tx: Connection, target: UndoTarget, now: int, *, dry_run: bool = False) -> UndoResult:
    """Take back. BadRequest if there is nothing to take back, UnknownId if there is no such memory."""
    if target.run is not None:
        hidden, opposed = _of_run(tx, target.run)
    else:
        hidden, opposed = _of_memory(tx, target.one or 0, target.other)
    if not dry_run:
        for past in hidden:
            links.undo_supersession(tx, past.id, now)
        for newer, older in opposed:
            _reconcile(tx, newer, older, now)
        if target.run is not None:
            runs.mark_run_undone(tx, target.run, now)
    pairs = tuple((past.newer_id, past.older_id) for past in hidden)
    return UndoResult(target.run, pairs, tuple(opposed), dry_run)


Found = tuple[list[Supersession], list[tuple[int, int]]]


def _of_run(tx: Connection, number: int) -> Found:
    run = runs.get_run(tx, number)
    if run is None:
        raise BadRequest(
            f"undo: there is no run r{number}; `memd consolidate --runs` lists them"
        )
    hidden, opposed = runs.run_supersessions(tx, number), runs.run_contradictions(tx, number)
    if not hidden and not opposed:
        raise BadRequest(f"undo: nothing of run r{number} holds any more")
    return hidden, opposed


def _of_memory(tx: Connection, one: int, other: int | None) -> Found:
    wanted = [one] if other is None else [one, other]
    known = summaries.summaries_by_ids(tx, wanted)
    for number in wanted:
        if number not in known:
            raise UnknownId(f"there is no memory #{number}")
    past = [x for x in links.supersessions_of(tx, one) if x.undone_at is None]
    if other is None:
        hidden = [x for x in past if x.older_id == one]
        opposed: list[tuple[int, int]] = []
    else:
        hidden = [x for x in past if {x.older_id, x.newer_id} == {one, other}]
        opposed = _opposed(tx, one, other)
    foreign = [x for x in hidden if x.rule != NEAR_DUPLICATE_RULE]
    if foreign:
        raise BadRequest(
            f"undo: #{foreign[0].newer_id} hides #{foreign[0].older_id} by the rule {foreign[0].rule},"
            f" not by consolidation; undo that with mem_judge, or `memd judge {foreign[0].newer_id}"
            f" {foreign[0].older_id} --undo`"
        )
    if not hidden and not opposed:
        raise BadRequest(f"undo: {_nothing(past, one, other)}")
    return hidden, opposed


def _opposed(tx: Connection, one: int, other: int) -> list[tuple[int, int]]:
    return [
        (int(edge.from_id), int(edge.to_id))
        for edge in links.edges_at(tx, "summary", str(one))
        if edge.type is EdgeType.CONTRADICTS
        and edge.rule == NEAR_DUPLICATE_RULE
        and edge.from_kind == edge.to_kind == "summary"
        and {edge.from_id, edge.to_id} == {str(one), str(other)}
    ]


def _nothing(past: Iterable[Supersession], one: int, other: int | None) -> str:
    if other is not None:
        return f"consolidation says nothing of #{one} and #{other}"
    below = [f"#{x.older_id}" for x in past][:_SHOWN]
    hides = f"; it hides {', '.join(below)}: name one of those" if below else ""
    return f"nothing hides #{one}{hides}"


def _reconcile(tx: Connection, newer: int, older: int, now: int) -> None:
    links.drop_edge(
        tx,
        ("summary", str(newer)),
        EdgeType.CONTRADICTS,
        ("summary", str(older)),
        NEAR_DUPLICATE_RULE,
    )
    if judgments.stance_between(tx, newer, older) is None:
        judgments.put_judgment(
            tx, newer_id=newer, older_id=older, relation=Stance.COMPATIBLE, reason=_REASON,
            who="user", at=now,
        )  # fmt: skip


def count(decisions: Iterable[Decision], type_: EdgeType) -> int:
    """How many of these are of this type; `supersedes` counts the supersessions."""
    return sum(
        (decision.type if isinstance(decision, Relate) else EdgeType.SUPERSEDES) is type_
        for decision in decisions
    )
