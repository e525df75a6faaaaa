"""Failed commands, what fixed them, and checks that pass in a later turn. Pure.

A failure and its fix are a chain: a check fails, something is changed, the same check or a wider one passes,
and nobody says that it is still broken. A check that was skipped, removed or set aside proves nothing, and
neither does a sentence. The failure causes the fix, the fix derives from the failure. An unfixed failure is
remembered too, unless nothing can be learned from it, and stays open until such a check passes in a later turn.
"""

import difflib
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memd.distill import episodes
from memd.distill.episodes import Dispute, EpisodeContext, FileEdit, ShellCommand, Story
from memd.distill.proof import checks, command_output, cures, worth
from memd.distill.proof.checks import Check
from memd.distill.proof.command_output import CommandError
from memd.distill.proof.disputes import Denial, find_story_denials
from memd.distill.proof.run_outcome import is_failing, read_proven
from memd.distill.proof.silencing import find_silencing
from memd.distill.sentences import clip, clip_quote, make_title, score_quality, split_sentences
from memd.models import Authority, Draft, DraftEdge, EdgeType, Event, Kind, Source, Summary
from memd.patterns import compile_lazily
from memd.text import content_stems, one_line, unique

CHAINS_MAX = 8
_ERRORS_MAX = 3
_TITLE_CHARACTERS = 100
_FIXED_CHARACTERS = len("Fixed: ")
_PLACE_CHARACTERS = 40
"""A longer path in a title is told by its last part."""
_WORDS_MIN = 4
_LOCATED = compile_lazily(r"^([\w./\\-]+\.\w{1,5}):(\d+)(?::\d+)?:\s+(\S.*)$")
_EDITS_MAX = 8
_STEPS_MAX = 3
_DIFF_LINES = 14
_LINE_CHARACTERS = 160
_ANSWER_CHARACTERS = 2_000
_ASKS_FOR_FIX = compile_lazily(
    r"\b(?:fix(?:es|ed|ing)?|bug|bugs|why|broken?|breaks|crash\w*|fails?|failed|failing|failure|error|errors"
    r"|exception|wrong|debug|traceback|stack trace|regression|hangs?|flaky|40\d|50\d"
    r"|(?:does|do|is|are|did)(?: not|n't)|can(?: not|'t|not)|won't|no longer works?)\b",
    re.IGNORECASE,
)
_ABOUT_CHARACTERS = 2_000
"""Of an output or a change, whose words tell what a failure is about."""
_COMMAND_CHARACTERS = 300
"""Characters of a command in a failure's body."""
SAME_COMMAND = "same-command"
WIDER_COMMAND = "wider-command"
UNMENDED = "unmended"
SILENCED = "silenced"
SUPPRESSED = "suppressed"
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
    """`same-command`, `wider-command`, `other-way`, `unmended`, `silenced`, `suppressed` or `disputed`."""
    objection: str = ""
    """Why the pass proves nothing, as a sentence."""
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
    objection: tuple[str, str] = ("", "")
    """(rule, sentence) of the last pass that proved nothing."""


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
    failed = _list_failed(command)
    for one in waiting:
        if one.waiting == failed:
            one.failures.append(command)
            return
    waiting.append(_OpenCheck([command], failed))


def _list_failed(command: ShellCommand) -> set[Check]:
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
        if left == one.waiting:
            continue
        rest = _make_chain(story, one.failures, command, SAME_COMMAND)
        before = [
            c
            for c in story.commands
            if rest.failures[0].event_id != c.event_id and _is_between(c, rest)
        ]
        silencing = find_silencing(rest.edits, before, one.failures, command)
        if silencing:
            rule = SUPPRESSED if silencing.is_suppression else SILENCED
            one.objection = rule, f"It passed only because {silencing.reason}."
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
    failures = sorted((f for one in closed for f in one.failures), key=lambda f: (f.at, f.event_id))
    return [_make_chain(story, failures, command, SAME_COMMAND if is_same else WIDER_COMMAND)]


def _leave_open(story: Story, one: _OpenCheck) -> FailureChain:
    """The chain of a check that did not pass; where its call was refused, with the call that worked instead."""
    last = one.failures[-1]
    if not one.objection[0] and cures.refused_to_start(last):
        other = cures.find_other_way(last, story.commands)
        if other:
            return _make_chain(story, one.failures, other, OTHER_WAY)
    return _make_chain(story, one.failures, None, one.objection[0] or UNMENDED, one.objection[1])


def _is_between(command: ShellCommand, chain: FailureChain) -> bool:
    end = chain.passed
    start = (chain.failures[0].at, chain.failures[0].event_id)
    # The run itself may set the work aside: `git stash && pytest`.
    return start < (command.at, command.event_id) and (
        end is None or (command.at, command.event_id) <= (end.at, end.event_id)
    )


def _make_chain(
    story: Story,
    failures: Sequence[ShellCommand],
    passed: ShellCommand | None,
    rule: str,
    objection: str = "",
) -> FailureChain:
    start = (failures[0].at, failures[0].event_id)
    end = (passed.at, passed.event_id) if passed else (story.last_at + 1, 0)
    edits = tuple(e for e in story.edits if start < (e.at, e.event_id) < end)
    steps = tuple(
        c
        for c in story.commands
        if start < (c.at, c.event_id) < end
        and not is_failing(c)
        and not command_output.is_read_only(c.command)
        and not checks.read_checks(c.line, c.directory)
    )
    between: tuple[ShellCommand, ...] | None = ()
    if passed:
        between = cures.list_changing(story.commands, story.edits, failures[-1], passed)
    return FailureChain(tuple(failures), passed, edits, steps, rule, objection, between)


def _take_back(chain: FailureChain, waiting: Sequence[_OpenCheck]) -> FailureChain:
    """The chain, unless the same check fails with the same error at the end of the episode."""
    lines = {command_output.read_error(run.output).line for run in chain.failures}
    last = chain.passed
    for one in waiting:
        again = one.failures[-1]
        if last and again.at >= last.at and command_output.read_error(again.output).line in lines:
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


def _is_slip(chain: FailureChain, story: Story) -> bool:
    """Whether a turn mended only what a compiler or linter said about files that it had changed itself."""
    passed = chain.passed
    if passed is None or not chain.is_mended:
        return False
    first = chain.failures[0]
    begun = max((said.at for said in story.prompts if said.at <= first.at), default=first.at)
    if any(first.at < said.at <= passed.at for said in story.prompts):
        return False
    changed = {posixpath.basename(e.path) for e in story.edits if begun <= e.at < first.at}
    places = [_LOCATED.match(command_output.read_error(run.output).line) for run in chain.failures]
    return all(place and posixpath.basename(place[1]) in changed for place in places)


def draft_failures(
    story: Story, context: EpisodeContext, disputes: Sequence[Dispute] = ()
) -> list[Draft]:
    """A failure draft per error, and a fix draft per chain that was mended.

    A fix that was disputed afterwards becomes the change that it was. What a compiler or linter says about a line
    that the agent has just written, and mends at once, is part of writing it.
    """
    found: list[Draft] = []
    for number, chain in enumerate(find_chains(story, disputes)):
        if _is_slip(chain, story) or not _is_news(chain, story):
            continue
        # The different errors of the chain, each with its first run.
        errors: dict[str, tuple[ShellCommand, CommandError]] = {}
        for command in chain.failures:
            error = command_output.read_error(command.output)
            errors.setdefault(error.line, (command, error))
        report = _ChainReport(number, chain, list(errors.values())[:_ERRORS_MAX], story, context)
        found.extend(report.draft_failure(index) for index in range(len(report.errors)))
        if chain.is_mended:
            found.append(report.draft_fix())
        elif chain.rule == DISPUTED and disputes and (chain.edits or chain.steps):
            found.append(report.draft_attempt())
    return found


def _is_asked_for(chain: FailureChain, story: Story) -> bool:
    """Whether the user asked about the failure: it happened before anything was changed."""
    if not _ASKS_FOR_FIX.search(story.prompt):
        return False
    first = (chain.failures[0].at, chain.failures[0].event_id)
    return not any((edit.at, edit.event_id) < first for edit in story.edits)


def _is_news(chain: FailureChain, story: Story) -> bool:
    """Whether a colleague would want to hear of it, with what mended it or that it still stands."""
    last = chain.failures[-1]
    if all(map(worth.is_about_style, chain.failures)) and not _is_asked_for(chain, story):
        return False
    if chain.rule == UNMENDED:
        return worth.still_stands(last)
    if chain.is_mended or chain.objection:
        return True
    if chain.is_other_way:
        # A look at what is not there is no failure; a program that is not there is one.
        is_found = cures.was_not_found(last) or not worth.is_probe(last.command)
        return is_found and cures.refused_to_start(last)
    # It passed as it was: only a test that fails at times is worth a word.
    return command_output.names_failed_tests(last.output)


@dataclass(frozen=True, slots=True)
class _ChainReport:
    """Writes the drafts of one chain."""

    number: int
    chain: FailureChain
    errors: Sequence[tuple[ShellCommand, CommandError]]
    story: Story
    context: EpisodeContext

    def draft_failure(self, index: int) -> Draft:
        """Return the draft of one of the chain's errors."""
        command, error = self.errors[index]
        chain, context = self.chain, self.context
        lines = [f"{_name_command(command)} failed: {error.line or 'it said nothing'}"]
        if error.files:
            lines.append("In: " + ", ".join(map(context.relative, error.files)))
        if self.story.prompt:
            lines.append("While: " + make_title(self.story.prompt))
        if chain.is_mended:
            lines += ["Mended by:", *self._describe_changes()]
        elif chain.objection:
            lines += [chain.objection, "What was changed:", *self._describe_changes()]
        elif chain.passed:
            lines += self._describe_pass(chain.passed)
        else:
            lines.append("It was not mended in this turn.")
        body = clip("\n".join(lines), context.body_characters)
        edges = [DraftEdge(EdgeType.REFERENCES, "file", path) for path in error.files]
        if chain.is_mended:
            edges.insert(0, DraftEdge(EdgeType.CAUSES, "slot", f"fix/{self.number}"))
        slot = f"failure/{self.number}" + (f"/{index}" if index else "")
        quote = clip_quote(error.line or command.output or command.command)
        return Draft(
            slot=slot, kind=Kind.FAILURE, title=self._name_failure(command, error), body=body,
            at=command.at, rule=chain.rule, authority=Authority.TOOL_OUTPUT,
            sources=(Source(command.event_id, quote, Authority.TOOL_OUTPUT),),
            files=unique(map(context.relative, error.files)),
            confidence=0.8 if chain.is_mended else 0.6,
            quality=score_quality(body), edges=tuple(edges),
        )  # fmt: skip

    def _describe_pass(self, passed: ShellCommand) -> list[str]:
        """Return how it worked after all, though nothing is known to have mended it."""
        chain = self.chain
        if chain.is_other_way:
            lines = [f"Worked as: {_name_command(passed)}"]
        elif chain.between == ():
            return ["It passed when it was run again; nothing had been changed."]
        else:
            lines = ["It passed when it was run again."]
        changing = chain.between or ()
        return lines + [
            f"Before that: `{one_line(c.command, 200)}`" for c in changing[-_STEPS_MAX:]
        ]

    def draft_fix(self) -> Draft:
        """Return the draft of what mended the chain."""
        chain, story, context = self.chain, self.story, self.context
        name = make_title(story.prompt) if _is_asked_for(self.chain, self.story) else ""
        name = name or self._name_error(*self.errors[0])
        body = clip("\n".join(self._write_fix_lines()), context.body_characters)
        edited = unique(edit.path for edit in chain.edits)
        caused_by = DraftEdge(EdgeType.DERIVES_FROM, "slot", f"failure/{self.number}")
        return Draft(
            slot=f"fix/{self.number}", kind=Kind.FIX, title=one_line(f"Fixed: {name}", _TITLE_CHARACTERS).rstrip("?"), body=body,
            at=chain.passed.at if chain.passed else story.last_at, rule=chain.rule,
            sources=self._collect_fix_sources(),
            files=unique(map(context.relative, edited)),
            confidence=0.9 if chain.rule == SAME_COMMAND else 0.8,
            quality=score_quality(body), edges=(caused_by, *link_files(edited, story.reads)),
        )  # fmt: skip

    def draft_attempt(self) -> Draft:
        """Return the draft of a change that passed for a fix until somebody said otherwise."""
        fix = self.draft_fix()
        title = "Tried to fix: " + fix.title.removeprefix("Fixed: ")
        body = clip(f"{self.chain.objection}\n{fix.body}", self.context.body_characters)
        return replace(fix, kind=Kind.CHANGE, title=title, body=body, confidence=0.4)

    def _name_failure(self, command: ShellCommand, error: CommandError) -> str:
        """Return the error in one line, and where there is space the other way that worked."""
        name = self._name_error(command, error)
        if self.chain.is_other_way and self.chain.passed:
            tail = f"; worked as `{command_output.strip_pipes(self.chain.passed.command)}`"
            name += tail if len(name + tail) <= _TITLE_CHARACTERS else ""
        return name

    def _name_error(self, command: ShellCommand, error: CommandError) -> str:
        """Return the error in one line, with the file that it happened in."""
        if not error.line:
            return f"`{one_line(command.command, 70)}` failed"
        place = self.context.relative(error.files[0]) if error.files else ""
        text = error.line
        if located := _LOCATED.match(text):
            # What went wrong comes first; a compiler begins with the place.
            place, text = f"{located[1].rsplit('/', 1)[-1]}:{located[2]}", located[3]
        if len(place) > _PLACE_CHARACTERS:
            place = place.rsplit("/", 1)[-1][:_PLACE_CHARACTERS]
        where = f" ({place})" if place and place not in text else ""
        if len(f"{text}{where}".split()) < _WORDS_MIN or self.chain.is_other_way:
            run = command_output.strip_pipes(command.command)
            where += f", from `{one_line(run, _PLACE_CHARACTERS)}`"
        return one_line(text, _TITLE_CHARACTERS - _FIXED_CHARACTERS - len(where)) + where

    def _write_fix_lines(self) -> list[str]:
        story, passed = self.story, self.chain.passed
        lines = ["Asked: " + clip(story.prompt, 600)] if story.prompt else []
        lines.extend(f"Error: {error.line}" for _, error in self.errors if error.line)
        explained = story.answer
        if not _is_asked_for(self.chain, self.story):
            # Of a turn about something else, only what bears on these errors.
            about = {stem for _, error in self.errors for stem in content_stems(error.line)}
            said = split_sentences(story.answer)
            explained = " ".join(s for s in said if about & set(content_stems(s)))
        if explained := clip(explained, _ANSWER_CHARACTERS):
            lines.append("Cause and fix: " + explained)
        lines.extend(self._describe_changes())
        if passed:
            lines.append(f"Then {_name_command(passed)} passed.")
        return lines

    def _describe_changes(self) -> list[str]:
        lines: list[str] = []
        for edit in self.chain.edits[:_EDITS_MAX]:
            lines += [f"Changed {self.context.relative(edit.path)}:", *diff_edit(edit)]
        steps = self.chain.steps[:_EDITS_MAX]
        return lines + [f"Ran `{one_line(step.command, 200)}`." for step in steps]

    def _collect_fix_sources(self) -> tuple[Source, ...]:
        passed, story = self.chain.passed, self.story
        tool, agent = Authority.TOOL_OUTPUT, Authority.AGENT_TEXT
        quoted = [
            (command.event_id, error.line or command.command, tool)
            for command, error in self.errors
        ]
        edits = self.chain.edits[:_EDITS_MAX]
        quoted += [(edit.event_id, " ".join(diff_edit(edit)) or edit.path, agent) for edit in edits]
        if passed:
            quoted.append((passed.event_id, passed.command, tool))
        asked = story.prompts[:1] if _is_asked_for(self.chain, self.story) else ()
        said = (*asked, *story.answers[-1:])
        quoted += [(one.event_id, one.text, one.authority) for one in said]
        return tuple(Source(number, clip_quote(text), whose) for number, text, whose in quoted)


def _name_command(command: ShellCommand) -> str:
    purpose = f" ({command.description})" if command.description else ""
    return f"`{one_line(command.command, _COMMAND_CHARACTERS)}`{purpose}"


def link_files(edited: Sequence[str], reads: Sequence[str]) -> tuple[DraftEdge, ...]:
    """The edges to the files that were edited or only read."""
    return (
        *(DraftEdge(EdgeType.EDITS, "file", path) for path in edited),
        *(DraftEdge(EdgeType.REFERENCES, "file", path) for path in reads if path not in edited),
    )


def diff_edit(edit: FileEdit) -> list[str]:
    """What an edit took away and put in, a line each, bounded."""
    if edit.is_whole_file:
        return [f"  written anew, {len(edit.new.splitlines())} lines"]
    # A change of indentation alone is not worth a line.
    before = [line.strip() for line in edit.old.splitlines()[:400]]
    after = [line.strip() for line in edit.new.splitlines()[:400]]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changed: list[str] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            changed += [f"- {line}" for line in before[i1:i2] if line]
            changed += [f"+ {line}" for line in after[j1:j2] if line]
    lines = [one_line(line, _LINE_CHARACTERS) for line in changed]
    if len(lines) > _DIFF_LINES:
        lines = [*lines[:_DIFF_LINES], f"  … and {len(lines) - _DIFF_LINES} more lines"]
    return lines


@dataclass(frozen=True, slots=True)
class PassedCheck:
    """A run that proves that some checks pass, and what the episode had done before it."""

    run: ShellCommand
    checks: frozenset[Check]
    edits: tuple[FileEdit, ...] = ()
    commands: tuple[ShellCommand, ...] = ()
    """Those before it, and the run."""

    @property
    def at(self) -> int:
        """UTC milliseconds."""
        return self.run.at


def find_passed_checks(events: Sequence[Event], context: EpisodeContext) -> tuple[PassedCheck, ...]:
    """The runs among these events that prove a check and that nobody contradicts in the same episode."""
    story = episodes.read_story(events, context)
    denials = find_story_denials(story)
    found = []
    for number, run in enumerate(story.commands):
        proven = read_proven(run)
        about = frozenset(content_stems(f"{run.command} {story.prompt}"))
        is_check = bool(checks.read_checks(run.line, run.directory))
        if (
            proven
            and is_check
            and not any(said.at >= run.at and said.concerns(about, run.command) for said in denials)
        ):
            edits = tuple(e for e in story.edits if (e.at, e.event_id) < (run.at, run.event_id))
            found.append(PassedCheck(run, proven, edits, story.commands[: number + 1]))
    return tuple(found)


def find_denials_of_earlier(events: Sequence[Event], context: EpisodeContext) -> tuple[Denial, ...]:
    """What this episode says against fixes of earlier ones; of the agent only if no check failed in it."""
    story = episodes.read_story(events, context)
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
        waiting = _list_failed(failed)
        if not waiting or failure.rule == SILENCED:
            # What was skipped or removed passes for ever.
            continue
        for run in sorted(runs, key=lambda one: one.at):
            covered = {w for w in waiting if any(checks.covers(p, w) for p in run.checks)}
            if run.at <= failure.at or not covered:
                continue
            if find_silencing(run.edits, run.commands, [failed], run.run) is None:
                waiting -= covered
            if not waiting:
                found.append((failure, run))
                break
    return found
