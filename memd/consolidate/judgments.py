"""User verdicts on pairs, and undoing them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import anyio.to_thread

from memd.consolidate import forget
from memd.consolidate.near_duplicates import (
    COSINE_MIN,
    LEARNED_COSINE_MIN,
    JudgmentCandidate,
    Neighbour,
    read_vector_rows,
    select_candidates,
)
from memd.errors import BadRequest, UnknownId
from memd.index.memory_index import MemoryIndex
from memd.models import GLOBAL_PROJECT, EdgeType, Judgment, Stance, Summary, Supersession
from memd.store import judgments, links, projects, summaries
from memd.store.database import Connection, Database
from memd.text import one_line, storable

# MERGED from memd.consolidate.stances:
# MERGED What a judgment of two memories does, and why it may not be: decided before anything is written. Pure.
# MERGED
# MERGED `supersedes` and `duplicate` hide the other memory; the rest show both. A memory is hidden only where
# MERGED it would be found if it were not: by another of its project, or by one that holds everywhere. What is
# MERGED pinned is kept by somebody's wish, and only that somebody can end it. Not here: writing (judging.py).


HIDING_RELATIONS = frozenset({Stance.SUPERSEDES, Stance.DUPLICATE})
"""What lets the first memory hide the other."""
SEPARATING_RELATIONS = frozenset(Stance) - HIDING_RELATIONS
"""After these no rule may hide one of the pair by the other."""


def explain_refusal(
    one: Summary, other: Summary, relation: Stance, global_id: int | None
) -> str:
    """Why `one` cannot be `relation` to `other`, and what to do; empty if it can be."""
    if one.id == other.id:
        return f"other: #{one.id} twice; a judgment is about two memories"
    if relation not in HIDING_RELATIONS:
        return ""
    if other.pinned_at is not None:
        return (
            f"#{other.id} is pinned, so it is never hidden: unpin it first"
            f" (mem_pin, or `memd pin --off {other.id}`), or let it supersede #{one.id} instead"
        )
    if one.project_id not in {other.project_id, global_id}:
        return (
            f"#{one.id} and #{other.id} belong to different projects, so neither can hide the other:"
            " judge them compatible or contradicts, or forget the one that is wrong"
        )
    return ""


# MERGED from memd.consolidate.judging:
# MERGED What becomes of two memories when somebody says what they are to each other, or takes that back.
# MERGED
# MERGED A judgment stands above every rule: it hides what it says is replaced, and shows what a rule had hidden
# MERGED although the two do not exclude each other. What it changed is put back when it is undone. One judgment
# MERGED of a pair holds at a time; a new one takes the place of the last. Everything happens in the caller's
# MERGED transaction. Not here: what may be judged (stances.py), redaction (curator.py).


JUDGED_RULE = "judged"
"""The rule of supersessions and edges that come from here."""


@dataclass(frozen=True, slots=True)
class NewJudgment:
    """What somebody says: `one` is `relation` to `other`; `who` is `agent` or `user`."""

    one_id: int
    other_id: int
    relation: Stance
    reason: str
    who: str


@dataclass(frozen=True, slots=True)
class JudgmentResult:
    """What a judgment, or undoing one, did."""

    id: int
    other: int
    outcome: str
    """`judged`, `unchanged` (it was judged so already) or `undone`."""
    relation: Stance | None
    """What holds of the pair now; None if nothing does."""
    hidden: tuple[int, ...] = ()
    """Of the two, what is hidden now."""
    shown: tuple[int, ...] = ()
    """What was hidden before and is not any more."""
    was: str | None = None
    """What held before: a relation, or the rule of a supersession."""
    stays: tuple[tuple[int, int], ...] = ()
    """(one of `hidden`, what hides it) for those that the same memory hid before."""


def apply_judgment(tx: Connection, ruling: NewJudgment, now: int) -> JudgmentResult:
    """Let a ruling hold from now on. UnknownId or BadRequest if it cannot, with what to do."""
    one, other = _both(tx, ruling.one_id, ruling.other_id)
    everywhere = projects.project_by_key(tx, GLOBAL_PROJECT)
    objection = explain_refusal(
        one, other, ruling.relation, everywhere.id if everywhere else None
    )
    if objection:
        raise BadRequest(objection)
    before = judgments.judgment_between(tx, one.id, other.id)
    if before is not None and _is_the_same(before, ruling):
        return _report(tx, one, other, "unchanged", before.relation.value)
    was = before.relation.value if before else _rule_between(tx, one.id, other.id)
    now = _moment(tx, (one.id, other.id), now)
    if before is not None:
        _take_back(tx, before, now)
    _apply(tx, ruling, now)
    return _report(tx, one, other, "judged", was)


def _moment(tx: Connection, pair: tuple[int, int], now: int) -> int:
    """The first from now on at which neither was shown again: what is undone then is this judgment's work."""
    taken = {s.undone_at for number in pair for s in links.supersessions_of(tx, number)}
    while now in taken:
        now += 1
    return now


def undo_judgment(tx: Connection, one_id: int, other_id: int, now: int) -> JudgmentResult:
    """Take back what holds of a pair: its judgment, or else the supersession that a rule made."""
    one, other = _both(tx, one_id, other_id)
    before = judgments.judgment_between(tx, one.id, other.id)
    if before is not None:
        _take_back(tx, before, now)
        return _report(tx, one, other, "undone", before.relation.value)
    was = _rule_between(tx, one.id, other.id)
    if was is None:
        raise BadRequest(
            f"nothing to undo: neither a judgment nor a supersession links #{one.id} and #{other.id};"
            f" ask why of each (mem_why, `memd why {one.id}`)"
        )
    _part(tx, one.id, other.id, now)
    return _report(tx, one, other, "undone", was)


def drop_judgment(tx: Connection, one_id: int, other_id: int, now: int) -> None:
    """Let a judgment hold no longer, for what it hid was said again since; nothing is put back."""
    before = judgments.judgment_between(tx, one_id, other_id)
    if before is not None:
        judgments.undo_judgment(tx, before, now)
        _drop_doubt(tx, before)


def _both(tx: Connection, one_id: int, other_id: int) -> tuple[Summary, Summary]:
    found = forget.find_memories(tx, [one_id, other_id])
    for number in (one_id, other_id):
        if number not in found:
            raise UnknownId(f"there is no memory #{number}; it never was, or it was forgotten")
    return found[one_id], found[other_id]


def _is_the_same(before: Judgment, ruling: NewJudgment) -> bool:
    if before.relation is not ruling.relation:
        return False
    return before.relation not in HIDING_RELATIONS or before.newer_id == ruling.one_id


def _apply(tx: Connection, ruling: NewJudgment, now: int) -> None:
    one, other = ruling.one_id, ruling.other_id
    if ruling.relation in HIDING_RELATIONS:
        _hide(tx, one, other, ruling.relation, now)
    else:
        _part(tx, one, other, now)
    judgments.put_judgment(
        tx,
        newer_id=one,
        older_id=other,
        relation=ruling.relation,
        reason=ruling.reason,
        who=ruling.who,
        at=now,
    )
    if ruling.relation is Stance.CONTRADICTS:
        edge = links.NewEdge(
            "summary", str(one), EdgeType.CONTRADICTS, "summary", str(other), JUDGED_RULE, now,
            detail={"finding": f"said by {ruling.who}"},
        )  # fmt: skip
        links.add_edges(tx, [edge])
    if ruling.relation is Stance.DUPLICATE:
        summaries.strengthen_summary(tx, one, now)


def _hide(tx: Connection, one: int, other: int, relation: Stance, now: int) -> None:
    """Let one hide the other, whatever hid that before, and whatever hid the first because of it."""
    _show(tx, other, now)
    if _is_under(tx, one, other):
        _show(tx, one, now)
    made = links.supersede(
        tx,
        newer_id=one,
        older_id=other,
        rule=JUDGED_RULE,
        cosine=None,
        guard=relation.value,
        at=now,
    )
    assert made is not None


def _is_under(tx: Connection, one: int, other: int) -> bool:
    """Whether `other` hides `one`, directly or through others."""
    current = summaries.get_summary(tx, one)
    while current is not None and current.superseded_by is not None:
        if current.superseded_by == other:
            return True
        current = summaries.get_summary(tx, current.superseded_by)
    return False


def _show(tx: Connection, summary_id: int, now: int) -> None:
    for one in links.supersessions_of(tx, summary_id):
        if one.older_id == summary_id and one.undone_at is None:
            links.undo_supersession(tx, one.id, now)


def _part(tx: Connection, one: int, other: int, now: int) -> None:
    """Let neither of the two hide the other."""
    for between in links.supersessions_of(tx, one):
        if between.undone_at is None and {between.newer_id, between.older_id} == {one, other}:
            links.undo_supersession(tx, between.id, now)


def _rule_between(tx: Connection, one: int, other: int) -> str | None:
    """The rule by which one of the two hides the other now."""
    return next(
        (
            between.rule
            for between in links.supersessions_of(tx, one)
            if between.undone_at is None
            and {between.newer_id, between.older_id} == {one, other}
        ),
        None,
    )


def _take_back(tx: Connection, before: Judgment, now: int) -> None:
    """Undo a judgment and what it did, and let hold again what held before it."""
    judgments.undo_judgment(tx, before, now)
    pair = (before.newer_id, before.older_id)
    for one in links.supersessions_of(tx, before.newer_id):
        if (
            one.undone_at is None
            and one.rule == JUDGED_RULE
            and (one.newer_id, one.older_id) == pair
        ):
            links.undo_supersession(tx, one.id, now)
    _drop_doubt(tx, before)
    if before.relation is Stance.DUPLICATE:
        summaries.strengthen_summary(tx, before.newer_id, now, times=-1)
    _put_back(tx, before, now)


def _drop_doubt(tx: Connection, before: Judgment) -> None:
    start, end = ("summary", str(before.newer_id)), ("summary", str(before.older_id))
    links.drop_edge(tx, start, EdgeType.CONTRADICTS, end, JUDGED_RULE)


def _put_back(tx: Connection, before: Judgment, now: int) -> None:
    """Hide again what this judgment had shown: it was undone in the same transaction."""
    for number in (before.newer_id, before.older_id):
        for one in links.supersessions_of(tx, number):
            was_here = one.undone_at == before.at and one.older_id == number
            if was_here and _still_holds(tx, one):
                links.supersede(
                    tx,
                    newer_id=one.newer_id,
                    older_id=one.older_id,
                    rule=one.rule,
                    cosine=one.cosine,
                    guard=one.guard,
                    at=now,
                )


def _still_holds(tx: Connection, one: Supersession) -> bool:
    """Whether nothing but the judgment that is undone stood against this supersession."""
    older = summaries.get_summary(tx, one.older_id)
    if older is None or older.pinned_at is not None:
        return False
    verdict = judgments.stance_between(tx, one.newer_id, one.older_id)
    return (
        verdict in HIDING_RELATIONS
        if one.rule == JUDGED_RULE
        else verdict not in SEPARATING_RELATIONS
    )


def _report(
    tx: Connection, one: Summary, other: Summary, outcome: str, was: str | None
) -> JudgmentResult:
    hides = {
        s.id: s.superseded_by
        for s in summaries.summaries_by_ids(tx, (one.id, other.id)).values()
    }
    hidden, shown, stays = [], [], []
    for before in (one, other):
        by = hides[before.id]
        if by is not None:
            hidden.append(before.id)
            stays += [(before.id, by)] if by == before.superseded_by else []
        elif before.superseded_by is not None:
            shown.append(before.id)
    holds = judgments.stance_between(tx, one.id, other.id)
    return JudgmentResult(
        one.id, other.id, outcome, holds, tuple(hidden), tuple(shown), was, tuple(stays)
    )


# MERGED from memd.consolidate.judge:
# MERGED The doer of judgments: takes a ruling, and says which memories one is asked about.
# MERGED
# MERGED Redaction and looking for what is near happen before and after the transaction, off the loop. Not
# MERGED here: what a ruling does (judging.py), what is like what (candidates.py).


REASON_CHARACTERS_MAX = 1_000
Cosines = tuple[Mapping[int, float], Mapping[int, float]]
"""Summary id → cosine, in the space that is always there and in the learned one that leads."""


class JudgmentService:
    """Settles what two memories are to each other."""

    name = "judge"

    def __init__(
        self,
        db: Database,
        redact: Callable[[str], str],
        clock: Callable[[], int],
        on_written: Callable[[], None],
        index: MemoryIndex,
        space_name: str,
    ) -> None:
        self._db = db
        self._redact = redact
        self._clock = clock
        self._on_written = on_written
        self._index = index
        self._space_name = space_name

    async def judge(self, ruling: NewJudgment) -> JudgmentResult:
        """Let a ruling hold. BadRequest or UnknownId if it cannot, with what to do."""
        reason = self._redact(storable(ruling.reason).replace("\0", "")).strip()
        if not reason:
            raise BadRequest("say in a few words why (reason); it is shown to whoever asks why")
        ruling = replace(ruling, reason=one_line(reason, REASON_CHARACTERS_MAX))
        now = self._clock()
        return self._told(await self._db.write(lambda tx: apply_judgment(tx, ruling, now)))

    async def undo(self, one_id: int, other_id: int) -> JudgmentResult:
        """Take back the judgment of a pair, or the supersession that a rule made."""
        now = self._clock()
        return self._told(
            await self._db.write(lambda tx: undo_judgment(tx, one_id, other_id, now))
        )

    async def candidates(self, summary_id: int) -> tuple[JudgmentCandidate, ...]:
        """What is like this memory, so that somebody should judge the pair; the most alike first."""
        cosines = await anyio.to_thread.run_sync(self._near, summary_id)
        now = self._clock()
        return await self._db.read(lambda tx: _undecided(tx, summary_id, cosines, now))

    def _told(self, judged: JudgmentResult) -> JudgmentResult:
        if judged.outcome != "unchanged":
            self._on_written()
        return judged

    def _near(self, summary_id: int) -> Cosines:
        near = self._alike(self._space_name, summary_id, COSINE_MIN)
        with self._index.lock:
            learned = self._index.learned if self._index.active == self._index.learned else None
        return near, self._alike(learned, summary_id, LEARNED_COSINE_MIN) if learned else {}

    def _alike(self, space: str, summary_id: int, threshold: float) -> dict[int, float]:
        rows = read_vector_rows(self._index, space)
        if rows is None or summary_id not in rows.indexed([summary_id]):
            return {}
        found = rows.pairs([summary_id], threshold)
        if not rows.is_current():
            return {}
        return {one if other == summary_id else other: cosine for one, other, cosine in found}


def _undecided(
    tx: Connection, summary_id: int, cosines: Cosines, now: int
) -> tuple[JudgmentCandidate, ...]:
    near, learned = cosines
    mine = summaries.get_summary(tx, summary_id)
    ids: Sequence[int] = sorted(near.keys() | learned.keys())
    if mine is None or mine.superseded_by is not None or not ids:
        return ()
    settled = judgments.stances_of_pairs(tx, [summary_id])
    judged = {number for pair in settled for number in pair} - {summary_id}
    others = [
        Neighbour(one, near.get(number, 0.0), learned.get(number, 0.0))
        for number, one in summaries.summaries_by_ids(tx, ids).items()
    ]
    return select_candidates(mine, others, judged, now)
