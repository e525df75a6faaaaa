"""Apply the decisions of a consolidation run, and undo them; take back the last change of any kind, or one of the last.

Each applied decision carries its run, so that a run can be undone. An undone
decision is not applied again: its supersession stays, marked as undone, and an undone contradiction
becomes a judgment that both are compatible.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memd.belief import rejections, supersede
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
from memd.consolidate import judgments as judging
from memd.consolidate import projects
from memd.consolidate.forget import require_memory
from memd.errors import BadRequest
from memd.models import ENDING_RULES, HIDING_RELATIONS, RELATION_WORDS, Authority, EdgeType, Stance
from memd.store import judgments, links, reviews, summaries
from memd.store.database import Connection
from memd.store.reviews import Change, latest_changes

_RULES = frozenset({NEAR_DUPLICATE_RULE, CHANGED_VALUE_RULE})
"""The rules of the supersessions and edges that consolidation writes and can undo."""
_RUN = re.compile(r"r(\d{1,15})")
MERGED = "merged"
"""The rule of an observation that several near-duplicates were merged into."""
_UNDO_REASON = f"{judging.UNDONE}: `memd consolidate --undo`"


@dataclass(frozen=True, slots=True)
class UndoResult:
    """Result of an undo; pairs are (newer, older)."""

    run: int
    shown: tuple[tuple[int, int], ...]
    """The older one of each is no longer hidden."""
    compatible: tuple[tuple[int, int], ...]
    """Pairs that no longer count as contradicting each other."""
    is_dry_run: bool = False


def parse_run(text: str) -> int:
    """Read `r7`. Raises BadRequest."""
    found = _RUN.fullmatch(text.strip().casefold())
    if found is None:
        raise BadRequest("name a run (r7); `memd consolidate --runs` lists them")
    return int(found[1])


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


def undo_run(tx: Connection, number: int, now: int) -> UndoResult:
    """Undo the decisions of a run. BadRequest if nothing of it holds."""
    if links.get_run(tx, number) is None:
        raise BadRequest(f"undo: there is no run r{number}; `memd consolidate --runs` lists them")
    hidden, opposed = links.run_supersessions(tx, number), links.run_contradictions(tx, number)
    if not hidden and not opposed:
        raise BadRequest(f"undo: nothing of run r{number} holds any more")
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
    links.mark_run_undone(tx, number, now)
    pairs = tuple((past.newer_id, past.older_id) for past in hidden)
    return UndoResult(number, pairs, tuple(opposed))


# ── Taking back a change of any kind ───────────────────────────────────────────────────────────
# What each table records of a change is enough to take it back; what is not recorded or is erased for good says so,
# with what can be done instead.

_LOOKED_AT = 100
"""Changes among which one is looked for that can be undone."""
_VERDICTS = {
    "rejected": "it is told again, and waits for your review",
    "everywhere": "what holds everywhere goes, and what it hid is shown again",
}
_REVIEWED_AGAIN = "it waits for your review again"


@dataclass(frozen=True, slots=True)
class UndoableChange:
    """A change, and what taking it back does."""

    name: str
    at: int
    by: str
    did: str
    title: str
    """Of the memory that it is about; empty if there is none."""
    effect: str
    """What taking it back does; empty if that is impossible."""
    refusal: str = ""
    """Why it cannot be taken back, and what to do."""


def list_changes(
    tx: Connection, limit: int, project_ids: Sequence[int] | None = None
) -> list[UndoableChange]:
    """The latest changes, of these projects or all, the last first."""
    return [_describe(tx, one) for one in _read(tx, limit, project_ids=project_ids)]


def undo_change(
    tx: Connection, name: str | None, now: int, project_ids: Sequence[int] | None = None
) -> UndoableChange:
    """Take back the last change of these projects or all, or the one of this name. BadRequest if that is impossible, with what to do."""
    found = _read(tx, 1, name, None if name else project_ids)
    if not found:
        elsewhere = (
            "; `memd undo --project all` looks in every project" if project_ids is not None else ""
        )
        raise BadRequest(
            f"nothing was changed here yet that could be undone{elsewhere}"
            if name is None
            else f"there is no change {name!r} that holds; `memd undo --list` names the last ten"
        )
    change = _describe(tx, found[0])
    if change.refusal:
        before = next(
            (
                one
                for one in list_changes(tx, _LOOKED_AT, project_ids)
                if one.at <= change.at and one.effect
            ),
            None,
        )
        other = (
            f"`memd undo {before.name}` takes back what came before: {before.did}; but since then "
            if before
            else ""
        )
        raise BadRequest(f"{other}{change.did}, which cannot be undone: {change.refusal}")
    _take_back(tx, found[0], now)
    return change


def _read(
    tx: Connection, limit: int, name: str | None = None, project_ids: Sequence[int] | None = None
) -> list[Change]:
    return latest_changes(
        tx, judging.EDITED, judging.UNDONE, limit=limit, name=name, project_ids=project_ids
    )


# ── What it was, and what undoing does ─────────────────────────────────────────────────────────


def _describe(tx: Connection, change: Change) -> UndoableChange:
    did, effect, refusal = _find_words(change)
    has_memory = change.one and change.kind not in {"consolidated", "forgotten"}
    memory = summaries.get_summary(tx, change.one) if has_memory else None
    title = memory.title if memory else ""
    if memory and memory.rule in ENDING_RULES:
        effect = effect.replace(" beside ", " instead of ")
    if memory and change.kind == "remembered" and (above := memory.superseded_by):
        # Without the middle of a chain its stale beginning would come back.
        refusal = (
            f"#{above} stands in its place; take that back first (`memd undo --list`), or forget it"
        )
    return UndoableChange(
        change.name, change.at, change.by, did, title, "" if refusal else effect, refusal
    )


def _find_words(change: Change) -> tuple[str, str, str]:
    """(what was done, what undoing does, why it cannot be undone)."""
    one, other, text = f"#{change.one}", f"#{change.other}", change.text
    target = change.name[2:]
    words: Mapping[str, tuple[str, str, str]] = {
        "judged": (
            f"{one} {RELATION_WORDS.get(text, text)} {other}",
            f"{other} is shown again beside {one}"
            if text in HIDING_RELATIONS
            else "the judgment goes, and what held before holds again",
            "",
        ),
        "edited": (f"{other} was edited, into {one}", f"{other} holds again, in its old words", ""),
        "superseded": (f"{one} hides {other} ({text})", f"{other} is shown again beside {one}", ""),
        "consolidated": (
            f"run r{change.one} hid {change.other} and marked {text} contradictions",
            "what it hid is shown again, and its contradictions go",
            "",
        ),
        "pinned": (f"{one} was pinned", f"{one} is pinned no more", ""),
        "reviewed": (f"{one} was reviewed: {text}", _VERDICTS.get(text, _REVIEWED_AGAIN), ""),
        "enforced": (f"{one} is enforced", f"{one} is only told again", ""),
        "merged": (
            f"project {target} was merged into {text}", f"{target} gets back what it had", "",
        ),
        "renamed": (f"project {target} was renamed", f"it is called {text} again", ""),
        "switched": (
            f"memd was switched for {target}", "",
            "what it was before is not recorded; `memd switch on` there, or another state, sets it",
        ),
        "remembered": (
            f"{one} was remembered",
            "it ends, and what it replaced is shown again; remembered again, it is back",
            "",
        ),
        "forgotten": (
            "something was forgotten", "",
            "it is erased for good; a backup from before has it: `memd backup --list`, `memd restore FILE`",
        ),
    }  # fmt: skip
    return words[change.kind]


# ── Taking back ────────────────────────────────────────────────────────────────────────────────


def _take_back(tx: Connection, change: Change, now: int) -> None:
    match change.kind:
        case "judged" | "superseded" | "edited":
            judging.undo_judgment(tx, change.one, change.other, Authority.USER_HAND, now)
        case "consolidated":
            undo_run(tx, change.one, now)
        case "pinned":
            if (one := summaries.get_summary(tx, change.one)) is not None:
                supersede.unpin(tx, one, Authority.USER_HAND)
        case "reviewed":
            rejections.take_back(tx, change.one)
        case "enforced":
            reviews.set_enforced(tx, change.one, now, is_on=False)
        case "remembered":
            _retract(tx, change.one, now)
        case "renamed":
            projects.undo_rename(tx, change.name.removeprefix("c:"))
        case _:  # merged
            projects.undo_merge(tx, change.name.removeprefix("m:"), now)


def _retract(tx: Connection, number: int, now: int) -> None:
    """Let a memory end now, and show what it hid; what undoing an edit hid stays hidden."""
    memory = require_memory(tx, number)
    for past in active_supersessions(tx, number):
        judged = judgments.judgment_between(tx, number, past.older_id)
        if past.newer_id != number or (judged and judged.reason.startswith(judging.UNDONE)):
            continue
        judging.undo_judgment(tx, number, past.older_id, Authority.USER_HAND, now)
    supersede.unpin(tx, memory, Authority.USER_HAND)
    summaries.renew_summary(tx, number, at=memory.at, expires_at=now, now=now)
