"""Notes and rules for which a tool call, or a subagent's task, is evidence: notes of its place, rules that apply to it."""

from dataclasses import replace

from memd.belief.standing import OF_COMMAND, OF_FILE
from memd.injection import start
from memd.injection.calls.places import TouchedPlaces, find_mentioned, read_places
from memd.injection.choice import CandidateGroup
from memd.injection.moments import InjectionMoment
from memd.injection.origins import shorten_name
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
        touched = {n: place for n, place in touched.items() if told.get(n, -1) < lost}
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
