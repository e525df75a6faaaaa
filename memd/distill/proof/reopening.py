"""Close failures whose check passes in a later turn, and open those again that somebody says are not fixed.

A dispute is an edge from the failure to the event that says so. The episode of the fix is then distilled
again with the dispute in its context, so that the same rules write what holds now.
"""

import re
from collections.abc import Mapping, Sequence

from memd.belief import supersede
from memd.distill import episodes
from memd.distill.episodes import Dispute, EpisodeContext, ShellCommand
from memd.distill.proof.disputes import Denial
from memd.distill.proof.failures import PassedCheck, match_passed_checks
from memd.distill.proof.silencing import find_silencing
from memd.models import Draft, EdgeType, Kind, Session, Summary
from memd.store import events, links, projects, session_context, summaries
from memd.store.database import Connection
from memd.store.session_context import DISPUTED_LATER, PASSED_LATER, ClosedFailure
from memd.text import content_stems

SAME_PROBLEM = "same-problem"
"""The rule of the supersession of a failure by the same one at a later time."""
_WHERE_OF_TITLE = re.compile(r", from `[^`]*`|; worked as `.*$")
MENDED = "mended"
"""The rule of the supersession of a failure by the fix of its own turn."""
_FAILURES_CHECKED_MAX = 100
"""The newest failures of the project."""
_SAME_CHECKED_MAX = 500
"""The newest live failures of the project, among which the same one is looked for."""
_EVENTS_BETWEEN_MAX = 2_000
_PROMPTS_MAX = 2
"""`still broken` is about a fix that is at most so many prompts ago, the denial counted."""
_STEMS_SHARED_MIN = 2
"""Stems that a denial shares with a failure of another session which it is about."""


def close_failures(
    tx: Connection, runs: Sequence[PassedCheck], session: Session, episode: str
) -> int:
    """Link each failure of the project that one of these runs closes; how many were open until now.

    Those of the runs' own episode are left alone: whether they passed is in their rule.
    """
    if not runs:
        return 0
    own = {one.id for one in summaries.episode_summaries(tx, session.id, episode)}
    ids = session_context.open_failure_ids(tx, session.project_id, _FAILURES_CHECKED_MAX)
    ids = [number for number in ids if number not in own]
    found = summaries.summaries_by_ids(tx, ids)
    failed = [(found[i], run) for i in ids if i in found and (run := _read_failed(tx, found[i]))]
    commands = {failure.id: run for failure, run in failed}
    edges = [
        links.NewEdge(
            "summary", str(failure.id), EdgeType.REFERENCES, "event", str(passed.run.event_id), PASSED_LATER,
            passed.at, detail={"episode": episode},
        )
        for failure, passed in match_passed_checks(runs, failed)
        if not _was_silenced(tx, failure, commands[failure.id], passed)
    ]  # fmt: skip
    return links.add_edges(tx, edges)


def _was_silenced(
    tx: Connection, failure: Summary, failed: ShellCommand, passed: PassedCheck
) -> bool:
    """Whether the check was silenced in a turn between its failure and the run that passed."""
    if failure.session_id is None:
        return False
    between = events.session_events(tx, failure.session_id, failure.at, _EVENTS_BETWEEN_MAX)
    since = [e for e in between if failure.at < e.at < passed.at]
    story = episodes.read_story(since, _context_of(tx, failure))
    return find_silencing(story.edits, story.commands, [failed], passed.run) is not None


def _context_of(tx: Connection, failure: Summary) -> EpisodeContext:
    """The directories of the failure's project and session."""
    project = projects.project(tx, failure.project_id)
    session = projects.session(tx, failure.session_id) if failure.session_id else None
    roots = (project.key if project else "", (session and session.directory) or "")
    return EpisodeContext(roots=tuple(root for root in roots if root.startswith("/")))


def _read_failed(tx: Connection, failure: Summary) -> ShellCommand | None:
    """The command that failed; None if its event is gone."""
    sources = [number for number, _ in links.sources_of(tx, failure.id)]
    roots = _context_of(tx, failure).roots
    for event in events.events_by_ids(tx, sources).values():
        if command := episodes.read_command(event, roots):
            return command
    return None


def settle_failures(
    tx: Connection, drafts: Sequence[Draft], ids: Mapping[str, int], project_id: int, now: int
) -> None:
    """Let a fix alone tell of the failures that it mended; a failure without one, or whose fix is disputed, shows.

    Of the same failures of a project only the latest does. `ids` has the memories of the drafts' slots.
    """
    for draft in drafts:
        if draft.kind is not Kind.FAILURE or draft.slot not in ids:
            continue
        fixes = (ids.get(edge.to_id) for edge in draft.edges if edge.type is EdgeType.CAUSES)
        fix = next(filter(None, fixes), None)
        failure = ids[draft.slot]
        if fix is None:
            _show_again(tx, failure, now)
            _join_same_failures(tx, failure, project_id, now)
        elif not any(one.newer_id == fix for one in links.supersessions_of(tx, failure)):
            supersede.hide(tx, fix, failure, MENDED, "the fix tells of it", draft.at)


def _join_same_failures(tx: Connection, summary_id: int, project_id: int, now: int) -> None:
    """Let the latest failure alone tell of a problem that a project has had before; each time strengthens it."""
    mine = summaries.get_summary(tx, summary_id)
    if mine is None or mine.superseded_by is not None:
        return
    for number in session_context.failure_ids(tx, project_id, _SAME_CHECKED_MAX):
        other = summaries.get_summary(tx, number)
        if other is None or other.id == mine.id or _name_problem(other) != _name_problem(mine):
            continue
        newer, older = (mine, other) if _rank(mine) >= _rank(other) else (other, mine)
        if supersede.hide(tx, newer.id, older.id, SAME_PROBLEM, "the same error again", newer.at):
            summaries.strengthen_summary(tx, newer.id, now)
        if older is mine:
            return


def _name_problem(failure: Summary) -> str:
    """What two failures have in common that are the same: the error without its numbers and how it was called."""
    return re.sub(r"\d+", "0", _WHERE_OF_TITLE.sub("", failure.title)).casefold()


def _rank(failure: Summary) -> tuple[bool, int, int]:
    """Of the same failures the one with a way that worked tells most, then the latest."""
    return "\nWorked as: " in failure.body, failure.at, failure.id


def _show_again(tx: Connection, failure_id: int, at: int) -> None:
    for one in links.supersessions_of(tx, failure_id):
        if one.rule == MENDED and one.older_id == failure_id:
            links.undo_supersession(tx, one.id, at)


def dispute_fixes(tx: Connection, denials: Sequence[Denial], session: Session, episode: str) -> int:
    """Open the failures again that these sentences are about; how many."""
    count = 0
    for denial in denials:
        event = ("event", str(denial.event_id))
        if any(edge.rule == DISPUTED_LATER for edge in links.edges_at(tx, *event)):
            continue  # the turn is distilled again: what it denied is open by now
        for closed in _find_disputed(tx, denial, session, episode):
            detail = {"quote": denial.quote, "speaker": denial.speaker, "episode": episode}
            edge = links.NewEdge(
                "summary", str(closed.summary_id), EdgeType.REFERENCES, *event, DISPUTED_LATER,
                denial.at, detail=detail,
            )  # fmt: skip
            count += links.add_edges(tx, [edge])
            _show_again(tx, closed.summary_id, denial.at)
            if closed.is_own:
                sources = [number for number, _ in links.sources_of(tx, closed.summary_id)]
                events.mark_pending(tx, sources)
    return count


def _find_disputed(
    tx: Connection, denial: Denial, session: Session, episode: str
) -> list[ClosedFailure]:
    """The failures that a denial is about, all closed in one turn: the latest that fits."""
    closed = [
        one
        for one in session_context.closed_failures(tx, session.project_id, _FAILURES_CHECKED_MAX)
        if one.closed_at <= denial.at and not (one.is_own and one.closed_in == episode)
    ]
    found = summaries.summaries_by_ids(tx, [one.summary_id for one in closed])
    about: list[ClosedFailure] = []
    for one in closed:
        summary = found[one.summary_id]
        stems = frozenset(content_stems(f"{summary.title} {summary.body}"))
        is_own = one.session_id == session.id or not one.is_own
        if not denial.concerns(stems, summary.body.partition(" failed: ")[0]):
            continue
        if not denial.subject:
            prompts = events.count_prompts(tx, session.id, one.closed_at, denial.at)
            is_meant = is_own and prompts <= _PROMPTS_MAX
        else:
            is_meant = is_own or len(denial.subject & stems) >= _STEMS_SHARED_MIN
        if is_meant:
            about.append(one)
    return _take_latest_turn(about)


def _take_latest_turn(closed: Sequence[ClosedFailure]) -> list[ClosedFailure]:
    return [one for one in closed if one.closed_in == closed[0].closed_in]


def read_disputes(tx: Connection, session_id: int) -> dict[str, tuple[Dispute, ...]]:
    """Key of an episode → what was said later against its fixes."""
    found: dict[str, tuple[Dispute, ...]] = {}
    for episode, failed_at, at, detail in session_context.disputes_of_session(tx, session_id):
        dispute = Dispute(failed_at, at, str(detail.get("speaker")), str(detail.get("quote")))
        found[episode] = (*found.get(episode, ()), dispute)
    return found
