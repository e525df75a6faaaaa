"""What later words or work end: a rule that the user takes back, a task that was done, a choice that is made anew."""

import re
from collections.abc import Iterator, Sequence

from memd.belief import supersede
from memd.distill.assertions import RETRACTED, pick_ended, related_stems
from memd.models import Authority, Draft, Kind, Session, Summary
from memd.store import judgments, links, summaries
from memd.store.database import Connection
from memd.text import content_stems

# ── Rules that are taken back ────────────────────────────────────────────────────────────────────

_RULE_KINDS = (Kind.INSTRUCTION, Kind.PREFERENCE)
_RULES_EXAMINED_MAX = 100


def find_ended_rules(
    tx: Connection, drafts: Sequence[Draft], project_id: int
) -> dict[str, list[Summary]]:
    """The live rules of a project that each retraction among these drafts ends, by its slot."""
    return {d.slot: _find_ended(tx, d, project_id) for d in drafts if d.rule == RETRACTED}


def end_rules(tx: Connection, note_id: int, draft: Draft, ended: Sequence[Summary]) -> None:
    """Let a stored retraction hide the rules that it ends, as far as its speaker may."""
    for rule in ended:
        if judgments.stance_between(tx, note_id, rule.id) is None:
            reason = f"it was taken back: {draft.body}"
            supersede.hide(tx, note_id, rule.id, RETRACTED, reason, draft.at)


def _find_ended(tx: Connection, draft: Draft, project_id: int) -> list[Summary]:
    stems = related_stems(draft)
    if not stems:
        return []
    ids = [
        number
        for kind in _RULE_KINDS
        for number in summaries.ids_sharing_keys(
            tx, project_id, kind, stems, limit=_RULES_EXAMINED_MAX
        )
    ]
    return pick_ended(draft, list(summaries.summaries_by_ids(tx, ids).values()))


# ── Tasks that were done ─────────────────────────────────────────────────────────────────────────

TASK_DONE = "task-done"
"""The rule of the supersession of a task by the turn that did it."""
_DONE_KINDS = (Kind.CHANGE, Kind.FIX)
_SHARED_MIN, _SHARED_PART = 3, 0.6
"""Stems of a task that the outcome of a turn, or what was asked for in it, must have."""
_TASKS_EXAMINED_MAX = 50
_SAID = re.compile(r"^User: “([^”]{20,})”", re.MULTILINE)
_LABEL = re.compile(r"^(?:put off|to be continued|to-?do):\s+", re.IGNORECASE)


def end_done_tasks(tx: Connection, turn_id: int, draft: Draft, project_id: int) -> int:
    """Let a stored turn hide the earlier tasks of its project that it has done; how many."""
    if draft.slot != "turn" or draft.kind not in _DONE_KINDS:
        return 0
    asked = draft.body.partition("\n")[0]
    done = frozenset(content_stems(f"{draft.title} {asked}"))
    ids = summaries.ids_sharing_keys(tx, project_id, Kind.TASK, done, limit=_TASKS_EXAMINED_MAX)
    past = {one.older_id for one in links.supersessions_of(tx, turn_id)}
    turn = summaries.get_summary(tx, turn_id)
    count = 0
    for task in summaries.summaries_by_ids(tx, ids).values():
        # What a turn leaves open it has not done, though its outcome says the same.
        is_own = turn is not None and task.episode == turn.episode
        # Of a prompt that was broken off, the turn after it tells what was asked.
        is_own = is_own or any(said in asked for said in _SAID.findall(task.body))
        is_past = task.at < draft.at and not is_own
        if not is_past or task.id in past or not _is_done(task.title, done):
            continue
        if judgments.stance_between(tx, turn_id, task.id) is None:
            reason = f"a later turn did it: {draft.title}"
            # The user had the turn do it, whoever words its outcome.
            hidden = supersede.hide(
                tx, turn_id, task.id, TASK_DONE, reason, draft.at, voice=Authority.USER_PROMPT
            )
            count += hidden is not None
    return count


def _is_done(task: str, done: frozenset[str]) -> bool:
    wanted = frozenset(content_stems(_LABEL.sub("", task)))
    return len(wanted & done) >= max(_SHARED_MIN, _SHARED_PART * len(wanted))


# ── Choices that are made anew ───────────────────────────────────────────────────────────────────

CHOSEN_AGAIN = "chosen-again"
"""The rule of the supersession of a choice by a later one."""
_ANSWERS = ("answer:chosen",)
_QUESTION = re.compile(r"^Assistant asked: “(.+)”$", re.MULTILINE)
_ASKED_MIN, _ASKED_SHARE = 3, 0.8
"""Stems of a question, and their share that two wordings of it have in common."""


def end_earlier_choices(tx: Connection, summary_id: int, session: Session) -> int:
    """Let the later of two answers to one question hide the earlier, whichever was stored first; how many."""
    mine = summaries.get_summary(tx, summary_id)
    if mine is None or mine.superseded_by is not None or mine.rule not in _ANSWERS:
        return 0
    others = summaries.session_summaries(tx, session.id, _ANSWERS, 0)
    return sum(_end_choice(tx, *pair) for pair in _find_pairs(mine, others))


def _find_pairs(mine: Summary, others: list[Summary]) -> Iterator[tuple[Summary, Summary]]:
    """Each (newer, older) of two answers to one question that differ."""
    asked = _question_stems(mine)
    for other in others:
        if other.at != mine.at and other.title != mine.title and _asks_the_same(asked, other):
            yield (mine, other) if mine.at > other.at else (other, mine)


def _question_stems(answer: Summary) -> frozenset[str]:
    found = _QUESTION.search(answer.body)
    return frozenset(content_stems(found[1])) if found else frozenset()


def _asks_the_same(asked: frozenset[str], other: Summary) -> bool:
    theirs = _question_stems(other)
    if min(len(asked), len(theirs)) < _ASKED_MIN:
        return False
    return len(asked & theirs) >= _ASKED_SHARE * len(asked | theirs)


def _end_choice(tx: Connection, newer: Summary, older: Summary) -> bool:
    past = {one.older_id for one in links.supersessions_of(tx, newer.id)}
    if older.id in past or judgments.stance_between(tx, newer.id, older.id) is not None:
        return False  # what a person undid stays undone
    reason = f"the same question was answered again: {newer.title}"
    return supersede.hide(tx, newer.id, older.id, CHOSEN_AGAIN, reason, newer.at) is not None
