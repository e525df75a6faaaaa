"""What failed and what fixed it, as drafts, and checks that pass in a later turn. Pure.

The failure causes the fix, the fix derives from the failure. An unfixed failure is remembered too, unless nothing can
be learned from it, and stays open until such a check passes in a later turn. What the record does not prove, no
sentence says: neither that something was mended nor that it was not.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memd.distill.edits import FileEdit
from memd.distill.episodes import Dispute, EpisodeContext, ShellCommand, Story
from memd.distill.proof import checks, command_output, cures, worth
from memd.distill.proof.chains import (
    DISPUTED,
    REWRITTEN,
    SAME_COMMAND,
    SILENCED,
    FailureChain,
    find_excuse,
    list_failed,
)
from memd.distill.proof.checks import Check
from memd.distill.proof.command_output import CommandError
from memd.distill.proof.disputes import Denial, find_story_denials
from memd.distill.proof.run_outcome import is_failing, read_proven
from memd.distill.proof.silencing import find_silencing
from memd.distill.text import clip, clip_quote, make_title, score_quality
from memd.models import Authority, Draft, DraftEdge, EdgeType, Kind, Source, Summary
from memd.patterns import compile_lazily
from memd.text import content_stems, one_line, unique

_ERRORS_MAX = 3
_TITLE_CHARACTERS = 100
_FIXED_CHARACTERS = len("Fixed: ")
_PLACE_CHARACTERS = 40
"""A longer path in a title is told by its last part."""
_WORDS_MIN = 4
_LOCATED = compile_lazily(r"^([\w./\\-]+\.\w{1,5}):(\d+)(?::\d+)?:\s+(\S.*)$")
_LOCATED_BY_TYPESCRIPT = compile_lazily(
    r"^([\w./\\@-]+\.\w{1,5})\((\d+),\d+\):\s+(?:error\s+)?(\S.*)$"
)
_FAILED_TEST = compile_lazily(
    r"^(?:FAILED|ERROR) (?P<path>[^\s:]+)::(?P<test>\S+)(?: - (?P<said>.*))?$"
    r"|^--- FAIL: (?P<go>\S+)(?: \([\d.]+s\))?$|^(?:FAIL|ERROR): (?P<unittest>\w+) \([\w.]+\)$"
)
"""What a test runner prints of a test that failed. pytest cuts what it says: `- a...`."""
_FAILED_PACKAGE = compile_lazily(
    r"^FAIL[ \t]+(?P<package>[\w./-]+)(?:[ \t]+[\d.]+s|[ \t]+\[(?P<why>\w+) failed\])$"
)
_SHELL = compile_lazily(r"^(?:/(?:usr/)?bin/)?(?:ba|z|da)?sh: (?:line \d+: )?(?=\S)")
_SAID_MIN = 12
"""Characters from which a line that was cut still says something."""
_EDITS_MAX = 8
_STEPS_MAX = 3
_DIFF_LINES = 14
_LINE_CHARACTERS = 160
_ASKED_CHARACTERS = 300
_SAID_CHARACTERS = 400
_COMMAND_CHARACTERS = 300
"""Characters of a command in a failure's body."""


def draft_failures(
    story: Story,
    context: EpisodeContext,
    chains: Sequence[FailureChain],
    disputes: Sequence[Dispute] = (),
) -> list[Draft]:
    """A failure draft per error of these chains of a story, and a fix draft per chain that was mended.

    A fix that was disputed afterwards becomes the change that it was. What goes wrong with what the agent has just
    written, and is mended at once, is part of writing it.
    """
    found: list[Draft] = []
    objected = {chain.objection: chain for chain in chains if chain.excused}
    for number, chain in enumerate(chains):
        if chain is not objected.get(chain.objection, chain):
            continue  # the same thing silenced a later one
        if worth.is_slip(chain, story) or not worth.is_news(chain, story):
            continue
        report = _ChainReport(number, chain, _list_errors(chain, story), story, context)
        found.extend(report.draft_failure(index) for index in range(len(report.errors)))
        if chain.is_mended:
            found.append(report.draft_fix())
        elif chain.rule == DISPUTED and disputes and (chain.edits or chain.steps):
            found.append(report.draft_attempt())
    return found


def _list_errors(chain: FailureChain, story: Story) -> list[tuple[ShellCommand, CommandError]]:
    """The different errors of a chain, each with its first run; of one that was silenced those that it concerned."""
    errors: dict[str, tuple[ShellCommand, CommandError]] = {}
    for command in chain.failures:
        error = command_output.read_error(command.output)
        errors.setdefault(error.line, (command, error))
    found = list(errors.values())
    if chain.excused is not None:
        found = [one for one in found if find_excuse(chain, *one, story)]
    telling = [one for one in found if one[1].tells]
    return (telling or found)[:_ERRORS_MAX]


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
            lines += [chain.objection, *self._describe_changes(since=command)]
        elif chain.passed:
            lines += self._describe_pass(chain.passed)
        else:
            lines += self._describe_rest()
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

    def _describe_rest(self) -> list[str]:
        """What is known of the rest of the turn where the check did not run again."""
        chain = self.chain
        last = chain.failures[-1]
        changed = unique(self.context.relative(e.path) for e in chain.edits if e.at >= last.at)
        steps = cures.list_changing_after(self.story.commands, last)
        if changed or steps:
            more = [f"`{one_line(step.command, 100)}`" for step in steps[:_STEPS_MAX]]
            return ["After that: " + ", ".join([*changed[:_EDITS_MAX], *more])]
        return ["Nothing was changed after that in this turn."]

    def draft_fix(self) -> Draft:
        """Return the draft of what mended the chain."""
        chain, story, context = self.chain, self.story, self.context
        name = make_title(story.prompt) if worth.is_asked_for(self.chain, self.story) else ""
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
        text, printed = _read_printed(error.line)
        place = printed or place
        if located := _LOCATED.match(text) or _LOCATED_BY_TYPESCRIPT.match(text):
            # What went wrong comes first; a compiler begins with the place.
            place, text = f"{located[1].rsplit('/', 1)[-1]}:{located[2]}", located[3]
        is_test = _FAILED_TEST.match(error.line) is not None
        is_long = len(f"{text} ({place})") > _TITLE_CHARACTERS - _FIXED_CHARACTERS
        if len(place) > _PLACE_CHARACTERS or (is_test and is_long):
            place = place.rsplit("/", 1)[-1][:_PLACE_CHARACTERS]
        where = f" ({place})" if place and place not in text else ""
        is_brief = len(f"{text}{where}".split()) < _WORDS_MIN
        if is_brief or self.chain.is_other_way:
            run = command_output.strip_pipes(command.command)
            where += f", from `{one_line(run, _PLACE_CHARACTERS)}`"
        room = _TITLE_CHARACTERS - _FIXED_CHARACTERS
        if is_test and len(text) + len(where) > room:
            where = ""  # the name of a test says more than its file
        return one_line(text, room - len(where)) + where

    def _write_fix_lines(self) -> list[str]:
        story, passed = self.story, self.chain.passed
        is_asked = worth.is_asked_for(self.chain, story)
        asked = f"Asked: {clip(story.prompt, _ASKED_CHARACTERS)}" if is_asked else ""
        asked = asked or (story.prompt and f"While: {make_title(story.prompt)}")
        lines = [asked] if asked else []
        lines.extend(f"Error: {error.line}" for _, error in self.errors if error.line)
        if said := self._find_said():
            lines.append(f"Said of it: {said}")
        lines.append(f"Fix: {self._name_fix()}")
        if passed:
            lines.append(f"Then {_name_command(passed)} passed.")
        return [*lines, *self._describe_changes()]

    def _find_said(self) -> str:
        """Return what the agent said last between the failed run and the pass."""
        start, passed = self.chain.failures[-1].at, self.chain.passed
        end = passed.at if passed else self.story.last_at + 1
        said = [one.text for one in self.story.texts if start <= one.at < end]
        return one_line(said[-1], _SAID_CHARACTERS) if said else ""

    def _name_fix(self) -> str:
        """The files that were changed and the commands that were run, in a line."""
        changed = unique(self.context.relative(edit.path) for edit in self.chain.edits)
        steps = self.chain.steps[:_EDITS_MAX]
        named = [f"changed {', '.join(changed[:_EDITS_MAX])}"] if changed else []
        ran = ", ".join(f"`{one_line(step.command, 100)}`" for step in steps)
        return "; ".join([*named, f"ran {ran}"] if ran else named)

    def _describe_changes(self, since: ShellCommand | None = None) -> list[str]:
        """The edits and steps of the chain, or those after this run."""
        start = since.at if since else 0
        lines: list[str] = []
        for edit in [one for one in self.chain.edits if one.at >= start][:_EDITS_MAX]:
            lines += [f"Changed {self.context.relative(edit.path)}:", *diff_edit(edit)]
        steps = [one for one in self.chain.steps if one.at >= start][:_EDITS_MAX]
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
        asked = story.prompts[:1] if worth.is_asked_for(self.chain, self.story) else ()
        said = (*asked, *story.answers[-1:])
        quoted += [(one.event_id, one.text, one.authority) for one in said]
        return tuple(Source(number, clip_quote(text), whose) for number, text, whose in quoted)


def _name_command(command: ShellCommand) -> str:
    purpose = f" ({command.description})" if command.description else ""
    return f"`{one_line(command.command, _COMMAND_CHARACTERS)}`{purpose}"


def _read_printed(line: str) -> tuple[str, str]:
    """(what a line of a test runner or a shell says, the file that it names): FAILED and `a_test.py`, `::b` become `test b failed`."""
    if match := _FAILED_TEST.match(line):
        name = match["test"] or match["go"] or match["unittest"]
        said = (match["said"] or "").removesuffix("...").strip()
        text = f"test {name} failed: {said}" if len(said) >= _SAID_MIN else f"test {name} failed"
        return text, match["path"] or ""
    if match := _FAILED_PACKAGE.match(line):
        package = "/".join(match["package"].split("/")[-2:])
        return f"{(match['why'] or 'tests').capitalize()} of {package} failed", ""
    return _SHELL.sub("", line), ""


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


def find_passed_checks(story: Story) -> tuple[PassedCheck, ...]:
    """The runs of an episode that prove a check and that nobody contradicts in it."""
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


def find_denials_of_earlier(story: Story) -> tuple[Denial, ...]:
    """What this episode says against fixes of earlier ones; of the agent only if no check failed in it."""
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
        if not waiting or failure.rule in {SILENCED, REWRITTEN}:
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
