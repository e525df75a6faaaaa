"""Notes and rules for which a tool call, or a subagent's task, is evidence: notes of its place, rules that apply to it."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memd.belief.standing import OF_COMMAND, OF_FILE
from memd.injection import start
from memd.injection.choice import CandidateGroup
from memd.injection.moments import InjectionMoment
from memd.injection.origins import shorten_name
from memd.injection.places import TouchedPlaces, find_mentioned, read_places
from memd.injection.start import SessionCandidates, SessionPlace, SessionState
from memd.injection.working_tree import WorkingTree
from memd.store import events, session_context, usage
from memd.store.database import Connection
from memd.store.types import ContextCandidate
from memd.text import content_stems, unique

_NOTED_SHOWN, _RULES_SHOWN, _PLACES_SHOWN = 3, 10, 3
NOTED_HEADING = "Noted for"
SUBAGENT_HEADING = "Rules of the user's project that apply to this task"


def find_touched_notes(tx: Connection, moment: InjectionMoment) -> dict[int, str]:
    """Memory → its place that a call touches and that the session has not been shown."""
    if moment.call is None or not session_context.has_scoped(tx):
        return {}
    here = start.read_session_place(tx, SessionPlace(moment.client, moment.session), None)
    if here.session is None:
        return {0: ""}  # where it stands has still to be looked up on the disk
    return _match_places(tx, here, moment)


def _match_places(tx: Connection, here: SessionState, moment: InjectionMoment) -> dict[int, str]:
    assert moment.call is not None
    call = TouchedPlaces(moment.call)
    tagged = session_context.scoped_tags(tx, here.project_ids)
    possible = [(n, places) for n, tags in tagged if call.may_touch(places := read_places(tags))]
    roots = _list_roots(here, moment) if possible else ()
    found = ((number, call.find(places, roots)) for number, places in possible)
    touched = {number: place for number, place in found if place is not None}
    if touched and here.session is not None:
        told = usage.last_injected(tx, here.session.id)
        lost = events.last_context_loss(tx, here.session.id) or 0
        touched = {n: place for n, place in touched.items() if told.get(n, (-1, ""))[0] < lost}
    return touched


def _list_roots(here: SessionState, moment: InjectionMoment) -> tuple[str, ...]:
    """The directories to which the places of memories are relative."""
    tree = WorkingTree(moment.directory).root
    session = here.session.directory if here.session else None
    known = (tree and str(tree), here.project and here.project.key, session, moment.directory)
    return unique(one for one in known if one and one.startswith("/"))


def find_noted(
    tx: Connection, moment: InjectionMoment, here: SessionState, now: int
) -> CandidateGroup:
    """Find the notes for the file, directory or command of a call alone."""
    touched = _match_places(tx, here, moment) if moment.call else {}
    found = session_context.candidates_by_ids(tx, list(touched), now) if touched else []
    places = ", ".join(unique(shorten_name(touched[one.id]) for one in found)[:_PLACES_SHOWN])
    heading = f"{NOTED_HEADING} {places}"
    return CandidateGroup(heading, tuple(found), limit=_NOTED_SHOWN)


def find_rules(
    tx: Connection, here: SessionState, moment: InjectionMoment, task: str, now: int
) -> CandidateGroup:
    """Find the rules for a task: those of a place that it names, those on its subject, those without a place."""
    roots, about = _list_roots(here, moment), set(content_stems(task))
    ranked: list[tuple[int, ContextCandidate]] = []
    for one in start.read_rules(tx, here, now):
        is_placed = any(tag.startswith((OF_FILE, OF_COMMAND)) for tag in one.tags)
        if is_placed and not find_mentioned(one.tags, task, roots):
            continue
        shared = len(about.intersection(content_stems(one.title)))
        ranked.append((-shared - is_placed, one))
    ranked.sort(key=lambda pair: pair[0])
    found = tuple(one for _, one in ranked)
    return CandidateGroup(SUBAGENT_HEADING, found, limit=_RULES_SHOWN, is_ordered=True)


def drop_gone(found: SessionCandidates, tree: WorkingTree) -> SessionCandidates:
    """Drop memories that name something that is gone from the working tree."""
    groups = [
        replace(
            group,
            candidates=tuple(c for c in group.candidates if not tree.note_gone(c.title, c.at)),
        )
        for group in found.groups
    ]
    return replace(found, groups=tuple(groups))


# ── Tasks of subagents ───────────────────────────────────────────────────────────────────────────

_TAIL_BYTES = 256 * 1024
_TOOLS = frozenset({"Agent", "Task"})
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_task(transcript: str, agent_type: str) -> str:
    """Return what the latest call of a subagent of this type asks for; empty if the transcript does not say.

    Of several in one message all: which of them begins is not known.
    """
    try:
        tail = _read_tail(transcript)
    except (OSError, ValueError):  # also a path with a zero byte
        return ""
    message, asked = None, []
    for line in reversed(tail.split(b"\n")):
        if b'"tool_use"' not in line or b'"prompt"' not in line:
            continue
        number, tasks = _list_tasks(line)
        of_type = [one for one in tasks if one.get("subagent_type", agent_type) == agent_type]
        if of_type and message not in (None, number):
            break
        message = number if of_type else message
        asked += [f"{one.get('description', '')}\n{one['prompt']}" for one in of_type]
    return "\n".join(asked)


def _list_tasks(line: bytes) -> tuple[object, list[Mapping[str, Any]]]:
    """Return (the id of a line's message, the tasks that its calls of subagents were given)."""
    try:
        message = json.loads(line)["message"]
        blocks = message["content"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, []  # the first line of the tail is cut
    given = [
        block.get("input")
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, Mapping) and block.get("name") in _TOOLS
    ]
    tasks = [g for g in given if isinstance(g, Mapping) and isinstance(g.get("prompt"), str)]
    return message.get("id"), tasks


def _read_tail(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    finally:
        os.close(descriptor)
