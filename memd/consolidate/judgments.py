"""Judge the relation of two memories, undo a judgment, and find the pairs that need one.

`supersedes` and `duplicate` hide the other memory; the other relations show both. A judgment stands
above every rule: it hides what a rule had shown and shows what a rule had hidden, and undoing it restores
that. At most one judgment of a pair holds; a new one replaces it.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import anyio.to_thread

from memd.belief import supersede
from memd.belief.standing import authority_of, is_pinned_by_user
from memd.consolidate import forget, near_duplicates
from memd.consolidate.near_duplicates import JudgmentCandidate
from memd.errors import BadRequest, UnknownId
from memd.index.memory_index import MemoryIndex
from memd.models import (
    GLOBAL_PROJECT,
    HIDING_RELATIONS,
    Authority,
    EdgeType,
    Judgment,
    Stance,
    Summary,
    Supersession,
)
from memd.store import judgments, links, projects, summaries
from memd.store.database import Connection, Database
from memd.store.judgments import ASKED_RULE, JUDGED_RULE
from memd.text import one_line, storable

SEPARATING_RELATIONS = frozenset(Stance) - HIDING_RELATIONS
"""Relations after which no rule may hide one of the pair behind the other."""
UNDONE = "undone by hand"
"""How the reason of a judgment begins that takes something back."""
EDITED = "edited by hand"
"""How the reason of the judgment begins by which an edit hides the old words."""
REASON_CHARACTERS_MAX = 1_000
_Cosines = tuple[Mapping[int, float], Mapping[int, float]]
"""Summary id → cosine, in the space that is always complete and in the learned space."""


@dataclass(frozen=True, slots=True)
class NewJudgment:
    """`one` is `relation` to `other`, judged by `who` (`agent` or `user`)."""

    one_id: int
    other_id: int
    relation: Stance
    reason: str
    who: str
    voice: Authority | None = None
    """As whose word it counts; None: that of `who`."""


@dataclass(frozen=True, slots=True)
class JudgmentResult:
    """Result of a judgment, or of undoing one."""

    id: int
    other: int
    outcome: str
    """`judged`, `unchanged` (it was judged so already), `undone`, or `asked` (it is the user's to judge;
    until then both are shown as a contradiction)."""
    relation: Stance | None
    """The relation that holds now, if any."""
    hidden: tuple[int, ...] = ()
    """Those of the two that are hidden now."""
    shown: tuple[int, ...] = ()
    """Those that were hidden before and are not now."""
    was: str | None = None
    """What held before: a relation, or the rule of a supersession."""
    stays: tuple[tuple[int, int], ...] = ()
    """(one of `hidden`, what hides it) where that did not change."""


@dataclass(frozen=True, slots=True)
class OpenQuestions:
    """Pairs of visible memories that contradict each other."""

    pairs: tuple[tuple[Summary, Summary], ...]
    count: int
    """All of them, also those that are not listed."""


@dataclass(frozen=True, slots=True)
class JudgmentService:
    """Judges pairs of memories for users and agents."""

    db: Database
    redact: Callable[[str], str]
    clock: Callable[[], int]
    on_written: Callable[[], None]
    index: MemoryIndex
    space_name: str
    """The space that is always complete."""

    async def judge(self, judgment: NewJudgment) -> JudgmentResult:
        """Write a judgment. BadRequest or UnknownId if that is impossible, with what to do."""
        reason = self.redact(storable(judgment.reason).replace("\0", "")).strip()
        reason = reason or f"the {judgment.who} gave no reason"
        judgment = replace(judgment, reason=one_line(reason, REASON_CHARACTERS_MAX))
        now = self.clock()
        result = await self.db.write(lambda tx: apply_judgment(tx, judgment, now))
        if result.outcome != "unchanged":
            self.on_written()
        return result

    async def undo(self, one_id: int, other_id: int, voice: Authority) -> JudgmentResult:
        """Undo the judgment of a pair, or the supersession that a rule made.

        BadRequest if a greater authority made it.
        """
        now = self.clock()
        result = await self.db.write(lambda tx: undo_judgment(tx, one_id, other_id, voice, now))
        self.on_written()
        return result

    async def candidates(self, summary_id: int) -> tuple[JudgmentCandidate, ...]:
        """The memories similar to this one that should be judged, the most similar first."""
        cosines = await anyio.to_thread.run_sync(self._find_similar, summary_id)
        now = self.clock()
        return await self.db.read(lambda tx: _read_candidates(tx, summary_id, cosines, now))

    def _find_similar(self, summary_id: int) -> _Cosines:
        complete = self._find_cosines(self.space_name, summary_id, near_duplicates.COSINE_MIN)
        with self.index.lock:
            learned = self.index.learned if self.index.active == self.index.learned else None
        if learned is None:
            return complete, {}
        return complete, self._find_cosines(learned, summary_id, near_duplicates.LEARNED_COSINE_MIN)

    def _find_cosines(self, space: str, summary_id: int, threshold: float) -> dict[int, float]:
        rows = near_duplicates.read_vector_rows(self.index, space)
        if rows is None or summary_id not in rows.find_comparable([summary_id]):
            return {}
        pairs = rows.find_pairs([summary_id], threshold)
        if not rows.is_current():
            return {}
        return {one if other == summary_id else other: cosine for one, other, cosine in pairs}


def explain_refusal(one: Summary, other: Summary, relation: Stance, global_id: int | None) -> str:
    """Explain why `one` cannot be `relation` to `other`, and what to do; empty if it can be."""
    if one.id == other.id:
        return f"#{one.id} twice; a judgment is about two memories"
    if relation not in HIDING_RELATIONS:
        return ""
    if is_pinned_by_user(other):
        return (
            f"#{other.id} is pinned, so it is never hidden: unpin it first"
            f" (mem_pin or `memd pin --off {other.id}`), or let it supersede #{one.id} instead"
        )
    if one.project_id not in {other.project_id, global_id}:
        return (
            f"#{one.id} and #{other.id} belong to different projects, so neither can hide the other:"
            " judge them compatible or contradicts, or forget the one that is wrong"
        )
    return ""


def apply_judgment(tx: Connection, judgment: NewJudgment, now: int) -> JudgmentResult:
    """Write a judgment. UnknownId or BadRequest if that is impossible, with what to do."""
    one, other = _get_pair(tx, judgment.one_id, judgment.other_id)
    relation = judgment.relation
    if one.id == other.id:
        raise BadRequest(explain_refusal(one, other, relation, None))
    everywhere = projects.project_by_key(tx, GLOBAL_PROJECT)
    voice = judgment.voice or authority_of(judgment.who)
    before = judgments.judgment_between(tx, one.id, other.id)
    is_same_way = before is not None and one.id == before.newer_id
    if before and before.relation is relation and (is_same_way or relation not in HIDING_RELATIONS):
        return _describe_result(tx, one, other, "unchanged", relation.value)
    _require_authority(tx, voice, one, other, before)
    is_team_s = bool(other.author) and voice < Authority.USER_PROMPT
    is_quoted = voice < Authority.USER_TOLD and relation is Stance.SUPERSEDES
    is_his = is_quoted and supersede.find_quoted_objection(one, other) is not None
    if relation in HIDING_RELATIONS and (voice < other.standing or is_team_s or is_his):
        return _ask_user(tx, judgment, one, other, now)
    refusal = explain_refusal(one, other, relation, everywhere.id if everywhere else None)
    if refusal:
        raise BadRequest(refusal)
    was = before.relation.value if before else _find_rule_between(tx, one.id, other.id)
    now = _find_unused_time(tx, (one.id, other.id), now)
    if before is not None:
        _revert_judgment(tx, before, now)
    if relation in HIDING_RELATIONS:
        _hide_behind(tx, one.id, other.id, relation, voice, now)
    else:
        _separate_pair(tx, one.id, other.id, now)
    judgments.put_judgment(
        tx, newer_id=one.id, older_id=other.id, relation=relation, reason=judgment.reason,
        who=judgment.who, at=now,
    )  # fmt: skip
    if relation is Stance.CONTRADICTS:
        said = f"said by {judgment.who}"
        supersede.relate(tx, one.id, EdgeType.CONTRADICTS, other.id, JUDGED_RULE, now, finding=said)
    elif relation is Stance.DUPLICATE:
        summaries.strengthen_summary(tx, one.id, None)
    elif relation is Stance.SUPERSEDES:
        _hide_twins(tx, one, other, voice, now)
    return _describe_result(tx, one, other, "judged", was)


def undo_judgment(
    tx: Connection, one_id: int, other_id: int, voice: Authority, now: int
) -> JudgmentResult:
    """Undo the judgment of a pair, or else the supersession that a rule made."""
    one, other = _get_pair(tx, one_id, other_id)
    before = judgments.judgment_between(tx, one.id, other.id)
    _require_authority(tx, voice, one, other, before)
    if before is not None and before.reason.startswith(EDITED):
        _revert_edit(tx, before, now)
        return _describe_result(tx, one, other, "undone", "an edit")
    if before is not None:
        _revert_judgment(tx, before, now)
        return _describe_result(tx, one, other, "undone", before.relation.value)
    was = _find_rule_between(tx, one.id, other.id)
    if was is None:
        raise BadRequest(
            f"nothing to undo: neither a judgment nor a supersession links #{one.id} and #{other.id};"
            f" mem_why or `memd why {one.id}` says what links them"
        )
    _separate_pair(tx, one.id, other.id, now)
    return _describe_result(tx, one, other, "undone", was)


def drop_judgment(tx: Connection, one_id: int, other_id: int, now: int) -> None:
    """End a judgment without restoring anything, because the hidden memory was stated again."""
    before = judgments.judgment_between(tx, one_id, other_id)
    if before is not None:
        judgments.undo_judgment(tx, before, now)
        supersede.drop_contradiction(tx, before.newer_id, before.older_id, JUDGED_RULE)


def _require_authority(
    tx: Connection, voice: Authority, one: Summary, other: Summary, before: Judgment | None
) -> None:
    """Refuse to change what a greater authority has said about a pair. Raises BadRequest."""
    made = [authority_of(before.who)] if before else []
    made += [
        supersede.supersession_authority(tx, past)
        for past in _find_supersessions_between(tx, one.id, other.id)
    ]
    if made and voice < max(made):
        raise BadRequest(
            f"#{one.id} and #{other.id} were settled by {max(made).description}, so only the user may"
            f" change that: `memd judge {one.id} RELATION {other.id}`"
        )


def _ask_user(
    tx: Connection, judgment: NewJudgment, one: Summary, other: Summary, now: int
) -> JudgmentResult:
    """Record as a contradiction what an agent may not decide. BadRequest for a duplicate."""
    if judgment.relation is Stance.DUPLICATE:
        raise BadRequest(
            f"#{other.id} is the word of {other.standing.description}: it is not hidden behind a copy;"
            f" let it hide #{one.id} instead (id {other.id}, other {one.id})"
        )
    supersede.relate(
        tx, one.id, EdgeType.CONTRADICTS, other.id, ASKED_RULE, now,
        finding=f"asked by {judgment.who}: {judgment.reason}",
    )  # fmt: skip
    return _describe_result(tx, one, other, "asked", None)


def _get_pair(tx: Connection, one_id: int, other_id: int) -> tuple[Summary, Summary]:
    found = forget.find_memories(tx, [one_id, other_id])
    for number in (one_id, other_id):
        if number not in found:
            raise UnknownId(f"there is no memory #{number}; it never was, or it was forgotten")
    return found[one_id], found[other_id]


def _find_unused_time(tx: Connection, pair: tuple[int, int], now: int) -> int:
    """Find the first time from now on at which no supersession of the two was undone.

    Supersessions undone at the time of a judgment are those that it undid.
    """
    used = {s.undone_at for number in pair for s in links.supersessions_of(tx, number)}
    return next(at for at in itertools.count(now) if at not in used)


def _hide_behind(
    tx: Connection, one: int, other: int, relation: Stance, voice: Authority, now: int
) -> None:
    """Let one hide the other, and show it first if the other hides it, directly or through others.

    BadRequest if one of them is hidden by the word of a greater authority.
    """
    _show_as(tx, other, voice, now)
    above = links.superseder_of(tx, one)
    while above is not None and above != other:
        above = links.superseder_of(tx, above)
    if above == other:
        _show_as(tx, one, voice, now)
    written = supersede.hide(tx, one, other, JUDGED_RULE, relation.value, now, voice=voice)
    assert written is not None


def _hide_twins(tx: Connection, one: Summary, other: Summary, voice: Authority, now: int) -> None:
    """Let what replaces a memory replace what says the same as that, too, as part of one judgment."""
    for twin in supersede.find_twins(tx, other):
        if twin.id != one.id and judgments.stance_between(tx, one.id, twin.id) is None:
            reason = f"says the same as #{other.id}"
            supersede.hide(tx, one.id, twin.id, supersede.TWIN_RULE, reason, now, voice=voice)


def _show_as(tx: Connection, summary_id: int, voice: Authority, now: int) -> None:
    for past in supersede.find_hiding(tx, summary_id):
        if voice < supersede.supersession_authority(tx, past):
            raise BadRequest(
                f"#{summary_id} is hidden by #{past.newer_id}, the word of a greater speaker; only the"
                " user may change that with `memd judge`"
            )
    supersede.show(tx, summary_id, now)


def _find_supersessions_between(tx: Connection, one: int, other: int) -> list[Supersession]:
    active = supersede.active_supersessions(tx, one)
    return [past for past in active if {past.newer_id, past.older_id} == {one, other}]


def _find_rule_between(tx: Connection, one: int, other: int) -> str | None:
    """The rule by which one of the two hides the other."""
    return next((past.rule for past in _find_supersessions_between(tx, one, other)), None)


def _separate_pair(tx: Connection, one: int, other: int, now: int) -> None:
    """Let neither of the two hide the other."""
    for past in _find_supersessions_between(tx, one, other):
        links.undo_supersession(tx, past.id, now)


def _revert_judgment(tx: Connection, before: Judgment, now: int) -> None:
    """Undo a judgment and its effects, and let hold again what held before it."""
    judgments.undo_judgment(tx, before, now)
    for past in _find_supersessions_between(tx, before.newer_id, before.older_id):
        if past.rule == JUDGED_RULE and past.newer_id == before.newer_id:
            links.undo_supersession(tx, past.id, now)
    for past in supersede.active_supersessions(tx, before.newer_id):
        if (past.rule, past.at) == (supersede.TWIN_RULE, before.at):
            links.undo_supersession(tx, past.id, now)
    supersede.drop_contradiction(tx, before.newer_id, before.older_id, JUDGED_RULE)
    if before.relation is Stance.DUPLICATE:
        summaries.strengthen_summary(tx, before.newer_id, None, times=-1)
    for number in (before.newer_id, before.older_id):
        for past in links.supersessions_of(tx, number):
            was_undone_by_it = past.undone_at == before.at and past.older_id == number
            if was_undone_by_it and _may_hold_again(tx, past):
                supersede.hide(
                    tx, past.newer_id, past.older_id, past.rule, past.guard, now,
                    voice=supersede.supersession_authority(tx, past), cosine=past.cosine,
                )  # fmt: skip


def _revert_edit(tx: Connection, before: Judgment, now: int) -> None:
    """Let the old version hide the new one, and take its pin back."""
    new, old = _get_pair(tx, before.newer_id, before.older_id)
    if new.pinned_by is not None:
        supersede.unpin(tx, new, Authority.USER_HAND)
    reason = f"{UNDONE}: the edit"
    apply_judgment(tx, NewJudgment(old.id, new.id, Stance.SUPERSEDES, reason, "user"), now)
    if new.pinned_by is not None:
        supersede.pin(tx, old, new.pinned_by, new.pinned_at or now)


def _may_hold_again(tx: Connection, past: Supersession) -> bool:
    """Return whether nothing but the undone judgment speaks against this supersession."""
    older = summaries.get_summary(tx, past.older_id)
    if older is None or older.pinned_at is not None:
        return False
    relation = judgments.stance_between(tx, past.newer_id, past.older_id)
    if past.rule == JUDGED_RULE:
        return relation in HIDING_RELATIONS
    return relation not in SEPARATING_RELATIONS


def _describe_result(
    tx: Connection, one: Summary, other: Summary, outcome: str, was: str | None
) -> JudgmentResult:
    before = {summary.id: summary.superseded_by for summary in (one, other)}
    now = {s.id: s.superseded_by for s in summaries.summaries_by_ids(tx, list(before)).values()}
    hidden = {number: by for number in before if (by := now[number]) is not None}
    shown = (number for number, by in before.items() if by is not None and number not in hidden)
    return JudgmentResult(
        one.id, other.id, outcome, judgments.stance_between(tx, one.id, other.id),
        tuple(hidden), tuple(shown), was,
        tuple(pair for pair in hidden.items() if pair in before.items()),
    )  # fmt: skip


def _read_candidates(
    tx: Connection, summary_id: int, cosines: _Cosines, now: int
) -> tuple[JudgmentCandidate, ...]:
    complete, learned = cosines
    mine = summaries.get_summary(tx, summary_id)
    ids = sorted(complete.keys() | learned.keys())
    if mine is None or mine.superseded_by is not None:
        return ()
    against = judgments.visible_contradictions(tx, [summary_id]).get(summary_id, ())
    opposed = summaries.summaries_by_ids(tx, against) if against else {}
    asked = tuple(
        near_duplicates.make_candidate(one, 1.0, f"contradicts it: {one.standing.description}")
        for one in opposed.values()
    )
    judged = {number for pair in judgments.stances_of_pairs(tx, [summary_id]) for number in pair}
    near = [
        near_duplicates.Neighbour(one, complete.get(number, 0.0), learned.get(number, 0.0))
        for number, one in (summaries.summaries_by_ids(tx, ids) if ids else {}).items()
    ]
    found = near_duplicates.select_candidates(mine, near, {*judged, *against}, now)
    return (*asked, *found)[: near_duplicates.CANDIDATES_MAX]
