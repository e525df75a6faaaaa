"""What failed in an episode and what followed, check by check. Pure.

A failure and its fix are a chain: a check fails, something is changed, the same check or a wider one passes,
and nobody says that it is still broken. The session's own agent and each subagent have chains of their own, unless
one mends what failed for the other. A check that was skipped, removed or set aside proves nothing, and
neither does a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memd.distill.edits import FileEdit
from memd.distill.episodes import Dispute, ShellCommand, Story
from memd.distill.proof import checks, command_output, cures
from memd.distill.proof.checks import Check
from memd.distill.proof.command_output import CommandError
from memd.distill.proof.disputes import find_story_denials
from memd.distill.proof.run_outcome import is_failing, read_proven
from memd.distill.proof.silencing import Silencing, find_silencing, is_configuration
from memd.text import content_stems, unique

CHAINS_MAX = 8
_ABOUT_CHARACTERS = 2_000
"""Of an output or a change, whose words tell what a failure is about."""
SAME_COMMAND = "same-command"
WIDER_COMMAND = "wider-command"
UNMENDED = "unmended"
SILENCED = "silenced"
SUPPRESSED = "suppressed"
REWRITTEN = "rewritten"
DISPUTED = "disputed"
OTHER_WAY = "other-way"
_PROVEN = frozenset({SAME_COMMAND, WIDER_COMMAND})


@dataclass(frozen=True, slots=True)
class FailureChain:
    """One check from its first failure to the run that passed."""

    failures: tuple[ShellCommand, ...]
    passed: ShellCommand | None
    edits: tuple[FileEdit, ...]
    """Between the first failure and the pass, or the end of the episode."""
    steps: tuple[ShellCommand, ...]
    """Commands in between that did something, such as installing a package."""
    rule: str
    """`same-command`, `wider-command`, `other-way`, `unmended`, `silenced`, `suppressed`, `rewritten` or `disputed`."""
    objection: str = ""
    """Why the pass proves nothing, as a sentence."""
    excused: ShellCommand | None = None
    """The pass that proves nothing, of a check that was silenced."""
    between: tuple[ShellCommand, ...] | None = ()
    """Commands from the last failure to the pass that may have changed something; None if files were edited."""

    @property
    def is_mended(self) -> bool:
        """Whether something was changed that is proven to have made it pass."""
        return self.rule in _PROVEN and bool(self.edits or self.steps)

    @property
    def is_other_way(self) -> bool:
        """Whether another command line, or the same in another directory, did it."""
        passed = self.passed
        return (
            passed is not None
            and self.rule in _PROVEN | {OTHER_WAY}
            and not self.is_mended
            and not cures.is_same_run(self.failures[-1], passed)
        )

    @property
    def stems(self) -> frozenset[str]:
        """What it is about."""
        runs = (f"{run.command} {run.output[-_ABOUT_CHARACTERS:]}" for run in self.failures)
        changes = (f"{edit.path} {edit.new[:_ABOUT_CHARACTERS]}" for edit in self.edits)
        return frozenset(content_stems(" ".join((*runs, *changes))))


def is_worth_remembering(command: ShellCommand) -> bool:
    """Whether something can be learned from this failure: a check failed, a call was refused, or the error has a signature."""
    if command_output.is_read_only(command.command) or command_output.ran_nowhere(command.output):
        return False
    return (
        command_output.is_check(command.command)
        or cures.refused_to_start(command)
        or command_output.read_error(command.output).has_signature
    )


@dataclass(slots=True)
class _OpenCheck:
    """A check that failed and has not passed yet."""

    failures: list[ShellCommand]
    waiting: set[Check]
    """Those of the line that have to pass."""
    excused: ShellCommand | None = None
    """The last pass that proved nothing."""
    silencing: Silencing | None = None
    """Why it did not."""

    @property
    def agent_id(self) -> str:
        """Return whose runs they were."""
        return self.failures[0].agent_id

    def is_closed_by(self, passed: ShellCommand, story: Story) -> bool:
        """Whether this run may close it: of its own agent, or of one that has mended it where its own does not try again."""
        if passed.agent_id == self.agent_id:
            return True
        if "" not in (passed.agent_id, self.agent_id):
            return False
        has_mended = any(
            edit.agent_id == passed.agent_id and _when(edit) > _when(self.failures[-1])
            for edit in story.edits
        )
        return has_mended and not any(
            run.agent_id == self.agent_id and self.waiting & list_failed(run)
            for run in story.commands
            if _when(run) > _when(passed)
        )


def find_chains(story: Story, disputes: Sequence[Dispute] = ()) -> list[FailureChain]:
    """The failures of an episode, each with what followed, in order of the first failure.

    `disputes` is what was said of them after the episode.
    """
    waiting: list[_OpenCheck] = []
    chains: list[FailureChain] = []
    for command in story.commands:
        if is_failing(command):
            if is_worth_remembering(command):
                _add_failure(waiting, command)
        elif proven := read_proven(command):
            chains.extend(_close_checks(story, waiting, command, proven))
    chains = [_take_back(chain, waiting) for chain in chains]
    chains.extend(_leave_open(story, one) for one in waiting)
    chains.sort(key=lambda chain: (chain.failures[0].at, chain.failures[0].event_id))
    return [_dispute(chain, story, disputes) for chain in chains[:CHAINS_MAX]]


def _add_failure(waiting: list[_OpenCheck], command: ShellCommand) -> None:
    failed = list_failed(command)
    for one in waiting:
        if one.waiting == failed and one.agent_id == command.agent_id:
            one.failures.append(command)
            return
    waiting.append(_OpenCheck([command], failed))


def list_failed(command: ShellCommand) -> set[Check]:
    """What has to pass before this failure is mended: the checks of the line, else its commands."""
    runs = checks.read_checks(command.line, command.directory)
    runs = runs or checks.read_commands(command.line, command.directory)
    return {check for check, _ in runs}


def _close_checks(
    story: Story, waiting: list[_OpenCheck], command: ShellCommand, proven: frozenset[Check]
) -> list[FailureChain]:
    """The chains that end with this run; what is silenced stays open."""
    closed: list[_OpenCheck] = []
    is_same = True
    for one in list(waiting):
        left = {check for check in one.waiting if not any(checks.covers(p, check) for p in proven)}
        if left == one.waiting or not one.is_closed_by(command, story):
            continue
        silencing = _find_silencing(story, one.failures, command)
        if silencing:
            one.excused, one.silencing = command, silencing
            continue
        is_same = is_same and all(
            any(checks.covers(check, p) for check in one.waiting) for p in proven
        )
        one.waiting = left
        if not left:
            waiting.remove(one)
            closed.append(one)
    if not closed:
        return []
    rule = SAME_COMMAND if is_same else WIDER_COMMAND
    return [
        _make_chain(
            story, sorted((f for one in of_agent for f in one.failures), key=_when), command, rule
        )
        for agent in unique(one.agent_id for one in closed)
        if (of_agent := [one for one in closed if one.agent_id == agent])
    ]


def _find_silencing(
    story: Story,
    failures: Sequence[ShellCommand],
    passed: ShellCommand,
    error: CommandError | None = None,
) -> Silencing | None:
    """What silenced a check between its first failure and a pass; or this one error of it."""
    if not any(checks.read_checks(run.line, run.directory) for run in failures):
        return None  # what checks nothing cannot be silenced
    start, end = _when(failures[0]), _when(passed)
    edits = [edit for edit in story.edits if start < _when(edit) < end]
    if error and error.is_of_code and not error.is_exception and error.files:
        # A compiler's error is silenced in its own file or in a setting, if anywhere.
        blamed = {path.rsplit("/", 1)[-1] for path in error.files}
        edits = [
            edit
            for edit in edits
            if edit.path.rsplit("/", 1)[-1] in blamed or is_configuration(edit.path)
        ]
    # The run itself may set the work aside: `git stash && pytest`.
    commands = [run for run in story.commands if start < _when(run) <= end]
    return find_silencing(edits, commands, failures, passed, error.line if error else "")


def find_excuse(
    chain: FailureChain, failed: ShellCommand, error: CommandError, story: Story
) -> Silencing | None:
    """What silenced this one error of a chain, between the run that showed it and the next one that did not."""
    if chain.excused is None:
        return None
    runs = [run for run in chain.failures if _when(run) > _when(failed)]
    gone = next((run for run in runs if error.line not in run.output), chain.excused)
    return _find_silencing(story, [failed], gone, error)


def _leave_open(story: Story, one: _OpenCheck) -> FailureChain:
    """The chain of a check that did not pass; where its call was refused, with the call that worked instead."""
    last = one.failures[-1]
    if one.silencing is not None:
        chain = _make_chain(story, one.failures, one.excused, _name_rule(one.silencing))
        objection = f"That it passed later proves nothing: {one.silencing.reason}."
        return replace(chain, passed=None, objection=objection, excused=one.excused)
    if cures.refused_to_start(last):
        other = cures.find_other_way(last, story.commands)
        if other:
            return _make_chain(story, one.failures, other, OTHER_WAY)
    return _make_chain(story, one.failures, None, UNMENDED)


def _name_rule(silencing: Silencing) -> str:
    if silencing.is_suppression:
        return SUPPRESSED
    return REWRITTEN if silencing.is_rewriting else SILENCED


def _when(one: ShellCommand | FileEdit) -> tuple[int, int]:
    return one.at, one.event_id


def _make_chain(
    story: Story, failures: Sequence[ShellCommand], passed: ShellCommand | None, rule: str
) -> FailureChain:
    start = _when(failures[0])
    end = _when(passed) if passed else (story.last_at + 1, 0)
    agents = {run.agent_id for run in (*failures, *([passed] if passed else ()))}
    edits = tuple(edit for edit in story.edits if start < _when(edit) < end)
    # Where its agents changed nothing themselves, they had another one do it.
    edits = tuple(edit for edit in edits if edit.agent_id in agents) or edits
    steps = tuple(
        c
        for c in story.commands
        if start < _when(c) < end
        and c.agent_id in agents
        and not is_failing(c)
        and not command_output.is_read_only(c.command)
        and not checks.read_checks(c.line, c.directory)
        and not cures.only_records(c)
    )
    between: tuple[ShellCommand, ...] | None = ()
    if passed:
        between = cures.list_changing(story.commands, story.edits, failures[-1], passed)
    return FailureChain(tuple(failures), passed, edits, steps, rule, between=between)


def _take_back(chain: FailureChain, waiting: Sequence[_OpenCheck]) -> FailureChain:
    """The chain, unless the same check fails with the same error at the end of the episode."""
    lines = {command_output.read_error(run.output).line for run in chain.failures}
    last = chain.passed
    for one in waiting:
        again = one.failures[-1]
        is_same = last is not None and one.agent_id in {last.agent_id, chain.failures[0].agent_id}
        if (
            is_same
            and last
            and again.at >= last.at
            and command_output.read_error(again.output).line in lines
        ):
            return replace(chain, rule=DISPUTED, objection="It passed, and then it failed again.")
    return chain


def _dispute(chain: FailureChain, story: Story, disputes: Sequence[Dispute]) -> FailureChain:
    """The chain, or why its pass does not count: the user or the agent says that it is still broken."""
    passed = chain.passed
    if passed is None or chain.rule not in _PROVEN:
        return chain
    about = chain.stems | frozenset(content_stems(story.prompt))
    for said in find_story_denials(story):
        if (
            said.at >= passed.at
            and said.event_id != passed.event_id
            and said.concerns(about, chain.failures[0].command)
        ):
            who = "the user" if said.speaker == "User" else "the agent"
            return replace(
                chain, rule=DISPUTED, objection=f"It passed, but {who} said: “{said.quote}”"
            )
    times = {run.at for run in chain.failures}
    for later in disputes:
        if later.failed_at in times and later.at >= passed.at:
            who = "the user" if later.speaker == "User" else "the agent"
            return replace(
                chain, rule=DISPUTED, objection=f"It passed, but {who} said later: “{later.quote}”"
            )
    return chain
