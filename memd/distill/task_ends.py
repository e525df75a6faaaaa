"""End the open tasks that a later turn has done: a task is not listed for ever."""

import re

from memd.belief import supersede
from memd.models import Authority, Draft, Kind
from memd.store import judgments, links, summaries
from memd.store.database import Connection
from memd.text import content_stems

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
