"""Failed commands, what fixed them, and checks that pass in a later turn. Pure.

A failure and its fix are a chain: a check fails, something is changed, the same check passes. The failure
causes the fix, the fix derives from the failure. An unfixed failure is remembered too, unless nothing can be
learned from it, and stays open until the same check passes in a later turn.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memd.distill import command_output, episodes
from memd.distill.command_output import CommandError
from memd.distill.episodes import EpisodeContext, FileEdit, ShellCommand, Story
from memd.distill.sentences import clip, clip_quote, make_title, score_quality, split_sentences
from memd.models import Draft, DraftEdge, EdgeType, Event, EventKind, Kind, Source, Summary
from memd.text import content_stems, one_line, unique

CHAINS_MAX = 8
_ERRORS_MAX = 3
_EDITS_MAX = 8
_DIFF_LINES = 14
_LINE_CHARACTERS = 160
_ANSWER_CHARACTERS = 2_000
_ASKS_FOR_FIX = re.compile(
    r"\b(?:fix(?:es|ed|ing)?|bug|bugs|why|broken?|breaks|crash\w*|fails?|failed|failing|failure|error|errors"
    r"|exception|wrong|debug|traceback|stack trace|regression|hangs?|flaky|40\d|50\d"
    r"|(?:does|do|is|are|did)(?: not|n't)|can(?: not|'t|not)|won't|no longer works?)\b",
    re.IGNORECASE,
)
_STATES_FIX = re.compile(
    r"\b(?:fixed|fixes|resolved|resolves|the fix|now (?:works|passes|passing)|no longer (?:fails|crashes|raises))\b",
    re.IGNORECASE,
)
_COMMAND_CHARACTERS = 300
"""Characters of a command in a failure's body."""
_FAILED_COMMAND = re.compile(r"`(.+?)`(?: \(.*\))? failed: ")


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
    """`same-command`, `same-tool`, `stated-fix` or `unmended`."""

    @property
    def is_mended(self) -> bool:
        """Whether something was changed that made it pass."""
        return self.rule != "unmended" and bool(self.edits or self.steps)


def is_failing(command: ShellCommand) -> bool:
    """Whether the command failed, even if a pipe swallowed its exit code."""
    if command.is_interrupted:
        return False
    return command.failed or (
        command_output.is_check(command.command) and command_output.shows_failure(command.output)
    )


def is_worth_remembering(command: ShellCommand) -> bool:
    """Whether something can be learned from this failure: a check failed, or the error has a signature."""
    if command_output.is_read_only(command.command):
        return False
    return (
        command_output.is_check(command.command)
        or command_output.read_error(command.output).has_signature
    )


def find_chains(story: Story) -> list[FailureChain]:
    """The failures of an episode, each with what followed, in order of the first failure."""
    failing: dict[str, list[ShellCommand]] = {}
    closed: list[tuple[list[ShellCommand], ShellCommand | None, str]] = []
    for command in story.commands:
        name = command_output.normalize_command(command.command)
        if is_failing(command):
            if is_worth_remembering(command):
                failing.setdefault(name, []).append(command)
        elif not command.is_interrupted and (match := _match_failing(name, failing)):
            closed.append((failing.pop(match[0]), command, match[1]))
    closed.extend((failures, None, "") for failures in failing.values())
    closed.sort(key=lambda item: (item[0][0].at, item[0][0].event_id))
    return [_make_chain(story, *item) for item in closed[:CHAINS_MAX]]


def _match_failing(name: str, failing: dict[str, list[ShellCommand]]) -> tuple[str, str] | None:
    if name in failing:
        return name, "same-command"
    tool = command_output.find_tool(name)
    for other in failing:
        if tool and command_output.find_tool(other) == tool:
            return other, "same-tool"
    return None


def _make_chain(
    story: Story, failures: list[ShellCommand], passed: ShellCommand | None, rule: str
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
        and not command_output.is_check(c.command)
    )
    if passed is None:
        is_stated = bool(edits) and _STATES_FIX.search(story.answer) is not None
        rule = "stated-fix" if is_stated else "unmended"
    return FailureChain(tuple(failures), passed, edits, steps, rule)


def draft_failures(story: Story, context: EpisodeContext) -> list[Draft]:
    """A failure draft per error, and a fix draft per chain that was mended."""
    found: list[Draft] = []
    for number, chain in enumerate(find_chains(story)):
        # The different errors of the chain, each with its first run.
        errors: dict[str, tuple[ShellCommand, CommandError]] = {}
        for command in chain.failures:
            error = command_output.read_error(command.output)
            errors.setdefault(error.line, (command, error))
        report = _ChainReport(number, chain, list(errors.values())[:_ERRORS_MAX], story, context)
        found.extend(report.draft_failure(index) for index in range(len(report.errors)))
        if chain.is_mended:
            found.append(report.draft_fix())
    return found


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
        elif chain.passed:
            lines.append("It passed when it was run again; nothing had been changed.")
        else:
            lines.append("It was not mended in this turn.")
        body = clip("\n".join(lines), context.body_characters)
        edges = [DraftEdge(EdgeType.REFERENCES, "file", path) for path in error.files]
        if chain.is_mended:
            edges.insert(0, DraftEdge(EdgeType.CAUSES, "slot", f"fix/{self.number}"))
        slot = f"failure/{self.number}" + (f"/{index}" if index else "")
        quote = clip_quote(error.line or command.output or command.command)
        return Draft(
            slot=slot, kind=Kind.FAILURE, title=self._name_error(command, error), body=body,
            at=command.at, rule=chain.rule, sources=(Source(command.event_id, quote),),
            files=unique(map(context.relative, error.files)),
            confidence=0.8 if chain.is_mended else 0.6,
            quality=score_quality(body), edges=tuple(edges),
        )  # fmt: skip

    def draft_fix(self) -> Draft:
        """Return the draft of what mended the chain."""
        chain, story, context = self.chain, self.story, self.context
        name = make_title(story.prompt) if self._is_asked_for() else ""
        name = name or self._name_error(*self.errors[0])
        body = clip("\n".join(self._write_fix_lines()), context.body_characters)
        edited = unique(edit.path for edit in chain.edits)
        caused_by = DraftEdge(EdgeType.DERIVES_FROM, "slot", f"failure/{self.number}")
        return Draft(
            slot=f"fix/{self.number}", kind=Kind.FIX, title=f"Fixed: {name}", body=body,
            at=chain.passed.at if chain.passed else story.last_at, rule=chain.rule,
            sources=self._collect_fix_sources(),
            files=unique(map(context.relative, edited)),
            confidence={"same-command": 0.9, "same-tool": 0.75}.get(chain.rule, 0.5),
            quality=score_quality(body), edges=(caused_by, *link_files(edited, story.reads)),
        )  # fmt: skip

    def _name_error(self, command: ShellCommand, error: CommandError) -> str:
        """Return the error in one line, with the file that it happened in."""
        if not error.line:
            return f"`{one_line(command.command, 70)}` failed"
        place = self.context.relative(error.files[0]) if error.files else ""
        line = one_line(error.line, 110)
        return f"{line} ({place})" if place and place not in line else line

    def _is_asked_for(self) -> bool:
        """Whether the user asked about the failure: it happened before anything was changed."""
        if not _ASKS_FOR_FIX.search(self.story.prompt):
            return False
        first = (self.chain.failures[0].at, self.chain.failures[0].event_id)
        return not any((edit.at, edit.event_id) < first for edit in self.story.edits)

    def _write_fix_lines(self) -> list[str]:
        story, passed = self.story, self.chain.passed
        lines = ["Asked: " + clip(story.prompt, 600)] if story.prompt else []
        lines.extend(f"Error: {error.line}" for _, error in self.errors if error.line)
        explained = story.answer
        if not self._is_asked_for():
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
        quoted = [
            (command.event_id, error.line or command.command) for command, error in self.errors
        ]
        edits = self.chain.edits[:_EDITS_MAX]
        quoted += [(edit.event_id, " ".join(diff_edit(edit)) or edit.path) for edit in edits]
        if passed:
            quoted.append((passed.event_id, passed.command))
        asked = story.prompts[:1] if self._is_asked_for() else ()
        quoted += [(said.event_id, said.text) for said in (*asked, *story.answers[-1:])]
        return tuple(Source(event_id, clip_quote(text)) for event_id, text in quoted)


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
    """A check that passed. `at` is UTC milliseconds."""

    command: str
    """As it is compared: without directories, assignments and pipes around it."""
    event_id: int
    at: int


def find_passed_checks(events: Sequence[Event], context: EpisodeContext) -> tuple[PassedCheck, ...]:
    """The checks among these events that passed, the last run of each."""
    ran = episodes.read_story(
        [e for e in events if e.kind is EventKind.TOOL_RESULT], context
    ).commands
    found: dict[str, PassedCheck] = {}
    for run in ran:
        is_over = not run.is_interrupted and not is_failing(run)
        if is_over and command_output.is_check(run.command):
            command = _normalize_clipped(run.command)
            found[command] = PassedCheck(command, run.event_id, run.at)
    return tuple(found.values())


def match_passed_checks(
    runs: Sequence[PassedCheck], open_: Iterable[Summary]
) -> list[tuple[Summary, PassedCheck]]:
    """Each open failure that one of these runs closes, with the run: of the same check, and later."""
    found = []
    for failed in open_:
        if named := _FAILED_COMMAND.match(failed.body):
            command = _normalize_clipped(named[1])
            later = (run for run in runs if run.command == command and run.at > failed.at)
            if run := next(later, None):
                found.append((failed, run))
    return found


def _normalize_clipped(command: str) -> str:
    return command_output.normalize_command(one_line(command, _COMMAND_CHARACTERS))
