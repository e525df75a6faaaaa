"""Checks that passed, and which failures of earlier turns they close. Pure.

A failure that nothing mended in its own turn is open until the same check passes in a later one:
that turn shows no failure, so it yields no fix. Not here: failures mended in their own turn.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memd.distill import complaint, failures, story
from memd.distill.story import Context
from memd.models import Event, EventKind, Summary
from memd.text import one_line

_COMMAND_CHARACTERS = 300
"""As many of a command as a failure's body tells."""
_FAILED = re.compile(r"`(.+?)`(?: \(.*\))? failed: ")


@dataclass(frozen=True, slots=True)
class Passed:
    """A check that passed. `at` is UTC milliseconds."""

    command: str
    """As it is compared: without directories, assignments and pipes around it."""
    event_id: int
    at: int


def passed(events: Sequence[Event], context: Context) -> tuple[Passed, ...]:
    """The checks among these events that passed, the last run of each."""
    ran = story.read([e for e in events if e.kind is EventKind.TOOL_RESULT], context).commands
    found = {
        _normal(run.command): Passed(_normal(run.command), run.event_id, run.at)
        for run in ran
        if complaint.is_check(run.command)
        and not run.is_interrupted
        and not failures.is_failing(run)
    }
    return tuple(found.values())


def closes(run: Passed, failed: Summary) -> bool:
    """Whether a failure is of the same check, and before it."""
    told = _FAILED.match(failed.body)
    return told is not None and failed.at < run.at and _normal(told[1]) == run.command


def closed(runs: Sequence[Passed], open_: Iterable[Summary]) -> list[tuple[Summary, Passed]]:
    """Each open failure that one of these runs closes, with the run."""
    return [
        (failed, run)
        for failed in open_
        for run in [next((run for run in runs if closes(run, failed)), None)]
        if run is not None
    ]


def _normal(command: str) -> str:
    return complaint.normal(one_line(command, _COMMAND_CHARACTERS))
