"""End a choice that the user made anew: a later answer to the same question of a session hides the earlier one."""

import re
from collections.abc import Iterator

from memd.belief import supersede
from memd.models import Session, Summary
from memd.store import judgments, links, summaries
from memd.store.database import Connection
from memd.text import content_stems

CHOSEN_AGAIN = "chosen-again"
"""The rule of the supersession of a choice by a later one."""
_ANSWERS = ("answer:chosen", "answer:agreed", "answer:declined")
_QUESTION = re.compile(r"^Assistant asked: “(.+)”$", re.MULTILINE)
_STEMS_MIN, _SHARE_MIN = 3, 0.8
"""Stems of a question, and their share that two wordings of it have in common."""


def end_earlier_choices(tx: Connection, summary_id: int, session: Session) -> int:
    """Let the later of two answers to one question hide the earlier, whichever was stored first; how many."""
    mine = summaries.get_summary(tx, summary_id)
    if mine is None or mine.superseded_by is not None or mine.rule not in _ANSWERS:
        return 0
    others = summaries.session_summaries(tx, session.id, _ANSWERS, 0)
    return sum(_end(tx, *pair) for pair in _find_pairs(mine, others))


def _find_pairs(mine: Summary, others: list[Summary]) -> Iterator[tuple[Summary, Summary]]:
    """Each (newer, older) of two answers to one question that differ."""
    asked = _question_stems(mine)
    for other in others:
        if other.at != mine.at and other.title != mine.title and _is_same(asked, other):
            yield (mine, other) if mine.at > other.at else (other, mine)


def _question_stems(answer: Summary) -> frozenset[str]:
    found = _QUESTION.search(answer.body)
    return frozenset(content_stems(found[1])) if found else frozenset()


def _is_same(asked: frozenset[str], other: Summary) -> bool:
    theirs = _question_stems(other)
    if min(len(asked), len(theirs)) < _STEMS_MIN:
        return False
    return len(asked & theirs) >= _SHARE_MIN * len(asked | theirs)


def _end(tx: Connection, newer: Summary, older: Summary) -> bool:
    past = {one.older_id for one in links.supersessions_of(tx, newer.id)}
    if older.id in past or judgments.stance_between(tx, newer.id, older.id) is not None:
        return False  # what a person undid stays undone
    reason = f"the same question was answered again: {newer.title}"
    return supersede.hide(tx, newer.id, older.id, CHOSEN_AGAIN, reason, newer.at) is not None
