"""Close failures whose check passes in a later turn, and open those again that somebody says are not fixed.

A failure that was there before the work and is proven to be mended is hidden by the memory of the work, which tells error
and fix. One that was left stays open until such a check passes in a later turn; it is told then by the turn in which its
check passed, which is distilled again for it. What the record does not prove, no sentence says.

A dispute is an edge from the failure to the event that says so. The episode of the fix is then distilled again with the
dispute in its context, so that the same rules write what holds now.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memd.belief import supersede
from memd.distill import episodes
from memd.distill.edits import FileEdit
from memd.distill.episodes import Dispute, Episode, EpisodeContext, ShellCommand, Story
from memd.distill.proof import checks
from memd.distill.proof.chains import SILENCED, list_failed
from memd.distill.proof.checks import (
    LAST_FAILURE,
    Check,
    is_failing,
    name_last_failure,
    read_proven,
)
from memd.distill.proof.command_output import is_same_error
from memd.distill.proof.objections import Denial, find_silencing, find_story_denials
from memd.models import Draft, EdgeType, Kind, Session, Summary
from memd.store import events, links, projects, session_context, summaries
from memd.store.database import Connection
from memd.store.session_context import DISPUTED_LATER, OF_ANOTHER, PASSED_LATER, ClosedFailure
from memd.text import content_stems

_LATER = "its check passed in a later turn"
MENDED = "mended"
"""The rule of the supersession of a failure by the memory of the work that fixed it."""
_FAILURES_CHECKED_MAX = 100
"""The newest failures of the project."""
_EVENTS_BETWEEN_MAX = 2_000
_PROMPTS_MAX = 2
"""`still broken` is about a fix that is at most so many prompts ago, the denial counted."""
_TURN_MAX_MS = 86_400_000
_COMMANDS_MAX = 500
"""Of the time since a check failed, and of a turn before that."""
_STEMS_SHARED_MIN = 2
"""Stems that a denial shares with a failure of another session which it is about."""


@dataclass(frozen=True, slots=True)
class PassedCheck:
    """A run that proves that some checks pass, and what the episode had done before it."""

    run: ShellCommand
    checks: frozenset[Check]
    edits: tuple[FileEdit, ...] = ()
    commands: tuple[ShellCommand, ...] = ()
    """Those before it, and the run."""


def find_passed_checks(story: Story) -> tuple[PassedCheck, ...]:
    """The runs of an episode that prove a check and that nobody contradicts in it."""
    denials = find_story_denials(story)
    found = []
    for number, run in enumerate(story.commands):
        if not checks.read_checks(run.line, run.directory) or not (proven := read_proven(run)):
            continue
        about = frozenset(content_stems(f"{run.command} {story.prompt}"))
        if not any(said.at >= run.at and said.concerns(about, run.command) for said in denials):
            edits = tuple(e for e in story.edits if (e.at, e.event_id) < (run.at, run.event_id))
            found.append(PassedCheck(run, proven, edits, story.commands[: number + 1]))
    return tuple(found)


def find_denials_of_earlier(story: Story) -> tuple[Denial, ...]:
    """Find what this episode says against fixes of earlier ones; of the agent only if no check failed in it."""
    has_failed = any(map(is_failing, story.commands))
    return tuple(
        said
        for said in find_story_denials(story)
        if said.speaker == "User" or not (has_failed or story.edits)
    )


def match_passed_checks(
    runs: Sequence[PassedCheck], open_: Iterable[tuple[Summary, ShellCommand]]
) -> list[tuple[Summary, PassedCheck]]:
    """Each open failure that these runs close, with the run that did: all of its checks pass, and later.

    `open_` pairs each failure with the command that failed.
    """
    found = []
    for failure, failed in open_:
        waiting = list_failed(failed)
        if not waiting or failure.rule == SILENCED:
            # What was skipped or removed passes for ever.
            continue
        for run in sorted(runs, key=lambda one: one.run.at):
            covered = {w for w in waiting if any(checks.covers(p, w) for p in run.checks)}
            if run.run.at <= failure.at or not covered:
                continue
            if not find_silencing(run.edits, run.commands, [failed], run.run):
                waiting -= covered
            if not waiting:
                found.append((failure, run))
                break
    return found


def close_failures(
    tx: Connection, runs: Sequence[PassedCheck], session: Session, episode: str, turn: int | None
) -> frozenset[int]:
    """Link each failure of the project that one of these runs closes; the events of the runs that closed some.

    `turn` is the memory of the runs' own episode: it hides what it closes, or else the turn that failed does.
    Failures of that episode are left alone: whether they passed is in their rule.
    """
    if not runs:
        return frozenset()
    own = {one.id for one in summaries.episode_summaries(tx, session.id, episode)}
    ids = session_context.open_failure_ids(tx, session.project_id, _FAILURES_CHECKED_MAX)
    ids = [number for number in ids if number not in own]
    found = summaries.summaries_by_ids(tx, ids)
    failed = [(found[i], run) for i in ids if i in found and (run := _read_failed(tx, found[i]))]
    commands = {failure.id: run for failure, run in failed}
    closed = set()
    for failure, passed in match_passed_checks(runs, failed):
        run, is_other = passed.run, _fails_otherwise(passed, commands[failure.id])
        edge = links.NewEdge(
            "summary", str(failure.id), EdgeType.REFERENCES, "event", str(run.event_id), PASSED_LATER,
            run.at, detail={"episode": episode} | ({OF_ANOTHER: True} if is_other else {}),
        )  # fmt: skip
        # What is known already may have been disputed since: that stays open.
        if not _was_silenced(tx, failure, commands[failure.id], passed) and links.add_edges(
            tx, [edge]
        ):
            closed.add(run.event_id)
            own_turn = _find_turns(tx, failure) if turn is None or is_other else [turn]
            for tells in own_turn[:1]:
                supersede.hide(tx, tells, failure.id, PASSED_LATER, _LATER, run.at)
    return frozenset(closed)


def _fails_otherwise(passed: PassedCheck, failed: ShellCommand) -> bool:
    """Return whether the same check failed in this episode, too, but never with this error: then it mended another one."""
    waiting = list_failed(failed)
    again = [
        run
        for run in passed.commands
        if is_failing(run) and not waiting.isdisjoint(list_failed(run))
    ]
    return bool(again) and not any(is_same_error(run.output, failed.output) for run in again)


def _find_turns(tx: Connection, failure: Summary) -> list[int]:
    """The memory of the turn that a failure happened in, if it is there."""
    found = summaries.episode_summaries(tx, failure.session_id or 0, failure.episode or "")
    return [one.id for one in found if one.rule.startswith("turn")]


def read_closed(tx: Connection, due: Sequence[Episode]) -> dict[str, tuple[str, ...]]:
    """Key of an episode → what had failed in earlier ones and passed in it, a line each."""
    keys = {event.id: one.key for one in due for event in one.events if event.tool == "Bash"}
    found: dict[str, tuple[str, ...]] = {}
    for event_id, title, at in session_context.closed_by_events(tx, tuple(keys)):
        key = keys[event_id]
        line = f"{title} (failed on {time.strftime('%Y-%m-%d', time.gmtime(at / 1000))})"
        if line not in found.get(key, ()):
            found[key] = (*found.get(key, ()), line)
    return found


def _was_silenced(
    tx: Connection, failure: Summary, failed: ShellCommand, passed: PassedCheck
) -> bool:
    """Return whether the check was silenced in a turn between its failure and the run that passed."""
    between = events.session_events(tx, failure.session_id or 0, failure.at, _EVENTS_BETWEEN_MAX)
    since = [e for e in between if failure.at < e.at < passed.run.at]
    story = episodes.read_story(since, _context_of(tx, failure))
    return bool(find_silencing(story.edits, story.commands, [failed], passed.run))


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
    found = events.events_by_ids(tx, sources).values()
    commands = (episodes.read_command(event, roots) for event in found)
    return next(filter(None, commands), None)


def leave_passed(
    tx: Connection, left: Sequence[str], project_ids: Sequence[int], at: int
) -> tuple[str, ...]:
    """Return what a turn at about this time left open without the checks that have passed since, in any session."""
    if not any(LAST_FAILURE in line for line in left):
        return tuple(left)
    events_since = events.command_events(tx, project_ids, at - _TURN_MAX_MS, _COMMANDS_MAX)
    waiting: dict[str, set[Check]] = {}
    for run in filter(None, (episodes.read_command(event, ()) for event in events_since)):
        if is_failing(run):
            waiting[name_last_failure(run)] = list_failed(run)
        proven = read_proven(run)
        for failed in waiting.values():
            failed -= {check for check in failed if any(checks.covers(p, check) for p in proven)}
    passed = tuple(name for name, failed in waiting.items() if not failed)
    return tuple(line for line in left if not line.startswith(passed))


def settle_failures(
    tx: Connection, drafts: Sequence[Draft], ids: Mapping[str, int], now: int
) -> None:
    """Let the memory of the work alone tell of the failures that it fixed; one that was left, or is disputed, shows.

    `ids` has the memories of the drafts' slots.
    """
    for draft in drafts:
        if draft.kind is not Kind.FAILURE or draft.slot not in ids:
            continue
        fixes = (ids.get(edge.to_id) for edge in draft.edges if edge.type is EdgeType.CAUSES)
        fix = next(filter(None, fixes), None)
        failure = ids[draft.slot]
        if fix is None:
            if not session_context.is_closed_later(tx, failure):
                _show_again(tx, failure, now)
            elif (turn := ids.get("turn")) is not None:
                # The turn that told of it may have become a part of this one.
                supersede.hide(tx, turn, failure, PASSED_LATER, _LATER, draft.at)
        elif not any(one.newer_id == fix for one in links.supersessions_of(tx, failure)):
            supersede.hide(tx, fix, failure, MENDED, "the fix tells of it", draft.at)


def _show_again(tx: Connection, failure_id: int, at: int) -> None:
    for one in links.supersessions_of(tx, failure_id):
        if one.rule in {MENDED, PASSED_LATER} and one.older_id == failure_id:
            links.undo_supersession(tx, one.id, at)


def dispute_fixes(
    tx: Connection, denials: Sequence[Denial], session: Session, episode: str
) -> frozenset[int]:
    """Open the failures again that these sentences are about; the events of the turns to be distilled again for it."""
    again: set[int] = set()
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
            links.add_edges(tx, [edge])
            _show_again(tx, closed.summary_id, denial.at)
            if closed.is_own:
                again.update(number for number, _ in links.sources_of(tx, closed.summary_id))
    return frozenset(again)


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

    def is_meant(one: ClosedFailure) -> bool:
        summary = found[one.summary_id]
        stems = frozenset(content_stems(f"{summary.title} {summary.body}"))
        is_own = one.session_id == session.id
        if not denial.concerns(stems, summary.body.partition(" failed: ")[0]):
            return False
        if denial.subject:
            return is_own or len(denial.subject & stems) >= _STEMS_SHARED_MIN
        prompts = events.count_prompts(tx, session.id, one.closed_at, denial.at)
        return is_own and prompts <= _PROMPTS_MAX

    about = list(filter(is_meant, closed))
    return [one for one in about if one.closed_in == about[0].closed_in]


def read_disputes(tx: Connection, session_id: int) -> dict[str, tuple[Dispute, ...]]:
    """Key of an episode → what was said later against its fixes."""
    found: dict[str, tuple[Dispute, ...]] = {}
    for episode, failed_at, at, detail in session_context.disputes_of_session(tx, session_id):
        dispute = Dispute(failed_at, at, str(detail.get("speaker")), str(detail.get("quote")))
        found[episode] = (*found.get(episode, ()), dispute)
    return found
