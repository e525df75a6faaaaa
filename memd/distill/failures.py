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
        command_output.is_check(command.command)
        and command_output.shows_failure(command.output)
    )


def is_worth_remembering(command: ShellCommand) -> bool:
    """Whether somebody could learn from this failure: a check failed, or the error has a signature."""
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
        errors = _distinct_errors(chain.failures)
        for index, (command, said) in enumerate(errors):
            slot = f"failure/{number}" if index == 0 else f"failure/{number}/{index}"
            found.append(_draft_failure(slot, number, chain, (command, said), (story, context)))
        if chain.is_mended:
            found.append(_draft_fix(number, chain, errors, story, context))
    return found


def _distinct_errors(
    failures: Sequence[ShellCommand],
) -> list[tuple[ShellCommand, CommandError]]:
    """The different errors among these failures, the first run of each, at most three."""
    found: dict[str, tuple[ShellCommand, CommandError]] = {}
    for command in failures:
        said = command_output.read_error(command.output)
        found.setdefault(said.line, (command, said))
    return list(found.values())[:_ERRORS_MAX]


def _name_error(command: ShellCommand, said: CommandError, context: EpisodeContext) -> str:
    """The error in one line, with the file that it happened in."""
    if not said.line:
        return f"`{one_line(command.command, 70)}` failed"
    place = context.relative(said.files[0]) if said.files else ""
    line = one_line(said.line, 110)
    return f"{line} ({place})" if place and place not in line else line


def _draft_failure(
    slot: str,
    number: int,
    chain: FailureChain,
    error: tuple[ShellCommand, CommandError],
    told: tuple[Story, EpisodeContext],
) -> Draft:
    (command, said), (story, context) = error, told
    purpose = f" ({command.description})" if command.description else ""
    lines = [
        f"`{one_line(command.command, 300)}`{purpose} failed: {said.line or 'it said nothing'}"
    ]
    if said.files:
        lines.append("In: " + ", ".join(map(context.relative, said.files)))
    if story.prompt:
        lines.append("While: " + make_title(story.prompt))
    lines.append(_describe_end(chain, context))
    body = clip("\n".join(lines), context.body_characters)
    edges = [DraftEdge(EdgeType.REFERENCES, "file", path) for path in said.files]
    if chain.is_mended:
        edges.insert(0, DraftEdge(EdgeType.CAUSES, "slot", f"fix/{number}"))
    return Draft(
        slot=slot, kind=Kind.FAILURE, title=_name_error(command, said, context), body=body,
        at=command.at, rule=chain.rule,
        sources=(Source(command.event_id, clip_quote(said.line or command.output or command.command)),),
        files=unique(map(context.relative, said.files)),
        confidence=0.8 if chain.is_mended else 0.6,
        quality=score_quality(body), edges=tuple(edges),
    )  # fmt: skip


def _describe_end(chain: FailureChain, context: EpisodeContext) -> str:
    if chain.is_mended:
        return "Mended by:\n" + "\n".join(_describe_changes(chain, context))
    if chain.passed:
        return "It passed when it was run again; nothing had been changed."
    return "It was not mended in this turn."


def _draft_fix(
    number: int,
    chain: FailureChain,
    errors: Sequence[tuple[ShellCommand, CommandError]],
    story: Story,
    context: EpisodeContext,
) -> Draft:
    is_asked = _is_asked_for(chain, story)
    name = make_title(story.prompt) if is_asked else ""
    name = name or _name_error(*errors[0], context)
    body = clip(
        "\n".join(_write_fix_lines(chain, errors, story, context)), context.body_characters
    )
    edited = unique(edit.path for edit in chain.edits)
    edges = (
        DraftEdge(EdgeType.DERIVES_FROM, "slot", f"failure/{number}"),
        *(DraftEdge(EdgeType.EDITS, "file", path) for path in edited),
        *(DraftEdge(EdgeType.REFERENCES, "file", p) for p in story.reads if p not in edited),
    )
    return Draft(
        slot=f"fix/{number}", kind=Kind.FIX, title=f"Fixed: {name}", body=body,
        at=chain.passed.at if chain.passed else story.last_at, rule=chain.rule,
        sources=_collect_fix_sources(chain, errors, story, is_asked=is_asked),
        files=unique(map(context.relative, edited)),
        confidence={"same-command": 0.9, "same-tool": 0.75}.get(chain.rule, 0.5),
        quality=score_quality(body), edges=edges,
    )  # fmt: skip


def _is_asked_for(chain: FailureChain, story: Story) -> bool:
    """Whether the failure is what the user asked about: it was there before anything was changed."""
    if not _ASKS_FOR_FIX.search(story.prompt):
        return False
    first = (chain.failures[0].at, chain.failures[0].event_id)
    return not any((edit.at, edit.event_id) < first for edit in story.edits)


def _write_fix_lines(
    chain: FailureChain,
    errors: Sequence[tuple[ShellCommand, CommandError]],
    story: Story,
    context: EpisodeContext,
) -> list[str]:
    lines = []
    if story.prompt:
        lines.append("Asked: " + clip(story.prompt, 600))
    lines.extend(f"Error: {said.line}" for _, said in errors if said.line)
    if explained := _quote_explanation(chain, errors, story):
        lines.append("Cause and fix: " + explained)
    lines.extend(_describe_changes(chain, context))
    if chain.passed:
        purpose = f" ({chain.passed.description})" if chain.passed.description else ""
        lines.append(f"Then `{one_line(chain.passed.command, 300)}`{purpose} passed.")
    return lines


def _quote_explanation(
    chain: FailureChain, errors: Sequence[tuple[ShellCommand, CommandError]], story: Story
) -> str:
    """The closing message, or of it what bears on these errors if the turn was about something else."""
    if _is_asked_for(chain, story):
        return clip(story.answer, _ANSWER_CHARACTERS)
    about = {stem for _, said in errors for stem in content_stems(said.line)}
    kept = [s for s in split_sentences(story.answer) if about & set(content_stems(s))]
    return clip(" ".join(kept), _ANSWER_CHARACTERS)


def _describe_changes(chain: FailureChain, context: EpisodeContext) -> list[str]:
    lines: list[str] = []
    for edit in chain.edits[:_EDITS_MAX]:
        lines.append(f"Changed {context.relative(edit.path)}:")
        lines.extend(diff_edit(edit))
    lines.extend(f"Ran `{one_line(step.command, 200)}`." for step in chain.steps[:_EDITS_MAX])
    return lines


def diff_edit(edit: FileEdit) -> list[str]:
    """What an edit took away and put in, a line each, bounded."""
    if edit.is_whole_file:
        return [f"  written anew, {len(edit.new.splitlines())} lines"]
    changed = _changed_lines(edit.old.splitlines(), edit.new.splitlines())
    lines = [one_line(line, _LINE_CHARACTERS) for line in changed]
    if len(lines) > _DIFF_LINES:
        lines = [*lines[:_DIFF_LINES], f"  … and {len(lines) - _DIFF_LINES} more lines"]
    return lines


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> Iterable[str]:
    # Indentation alone is no change worth telling, and the sequences are what one edit replaced.
    before, after = [line.strip() for line in old[:400]], [line.strip() for line in new[:400]]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in before[i1:i2] if line)
            yield from (f"+ {line}" for line in after[j1:j2] if line)


def _collect_fix_sources(
    chain: FailureChain,
    errors: Sequence[tuple[ShellCommand, CommandError]],
    story: Story,
    *,
    is_asked: bool,
) -> tuple[Source, ...]:
    found = [
        Source(command.event_id, clip_quote(said.line or command.command))
        for command, said in errors
    ]
    found.extend(
        Source(edit.event_id, clip_quote(" ".join(diff_edit(edit)) or edit.path))
        for edit in chain.edits[:_EDITS_MAX]
    )
    if chain.passed:
        found.append(Source(chain.passed.event_id, clip_quote(chain.passed.command)))
    if is_asked:
        found.extend(Source(said.event_id, clip_quote(said.text)) for said in story.prompts[:1])
    found.extend(Source(said.event_id, clip_quote(said.text)) for said in story.answers[-1:])
    return tuple(found)


_COMMAND_CHARACTERS = 300
"""As many of a command as a failure's body tells."""
_FAILED_COMMAND = re.compile(r"`(.+?)`(?: \(.*\))? failed: ")


@dataclass(frozen=True, slots=True)
class PassedCheck:
    """A check that passed. `at` is UTC milliseconds."""

    command: str
    """As it is compared: without directories, assignments and pipes around it."""
    event_id: int
    at: int


def find_passed_checks(
    events: Sequence[Event], context: EpisodeContext
) -> tuple[PassedCheck, ...]:
    """The checks among these events that passed, the last run of each."""
    ran = episodes.read_story(
        [e for e in events if e.kind is EventKind.TOOL_RESULT], context
    ).commands
    found = {
        _normalize_clipped(run.command): PassedCheck(
            _normalize_clipped(run.command), run.event_id, run.at
        )
        for run in ran
        if command_output.is_check(run.command)
        and not run.is_interrupted
        and not is_failing(run)
    }
    return tuple(found.values())


def _closes_failure(run: PassedCheck, failed: Summary) -> bool:
    """Whether a failure is of the same check, and before it."""
    told = _FAILED_COMMAND.match(failed.body)
    return (
        told is not None and failed.at < run.at and _normalize_clipped(told[1]) == run.command
    )


def match_passed_checks(
    runs: Sequence[PassedCheck], open_: Iterable[Summary]
) -> list[tuple[Summary, PassedCheck]]:
    """Each open failure that one of these runs closes, with the run."""
    return [
        (failed, run)
        for failed in open_
        for run in [next((run for run in runs if _closes_failure(run, failed)), None)]
        if run is not None
    ]


def _normalize_clipped(command: str) -> str:
    return command_output.normalize_command(one_line(command, _COMMAND_CHARACTERS))
