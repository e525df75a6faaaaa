"""What is told of the failures of a piece of work, and checks that pass in a later one. Pure.

A failure that was there before the work and is proven to be mended is hidden by the memory of the work, which tells error and
fix; it is there to be opened again if somebody says that it is not fixed. One that was left stays open until such a check
passes in a later turn. What the record does not prove, no sentence says: neither that something was mended nor that it was not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memd.distill.edits import FileEdit, diff_edit
from memd.distill.episodes import EpisodeContext, ShellCommand, Story
from memd.distill.proof import checks, command_output
from memd.distill.proof.chains import OTHER_WAY, SILENCED, FailureChain, Outcome, list_failed
from memd.distill.proof.checks import Check, is_failing, read_proven
from memd.distill.proof.command_output import CommandError
from memd.distill.proof.disputes import Denial, find_story_denials
from memd.distill.proof.silencing import find_silencing
from memd.distill.text import clip, clip_quote, make_title, score_quality
from memd.models import Authority, Draft, DraftEdge, EdgeType, Kind, Source, Summary
from memd.patterns import compile_lazily
from memd.text import content_stems, one_line, unique

_ERRORS_MAX, _EDITS_MAX, _TOLD_MAX, _BRIEF_LINES = 3, 4, 3, 4
_TITLE_CHARACTERS = 100
_PLACE_CHARACTERS = 40
"""A longer path in a title is told by its last part."""
_WORDS_MIN = 4
_LOCATED = compile_lazily(
    r"^([\w./\\@-]+\.\w{1,5})(?::(\d+)(?::\d+)?:|\((\d+),\d+\):)\s+(?:error\s+)?(\S.*)$"
)
_FAILED_TEST = compile_lazily(
    r"^(?:FAILED|ERROR) (?P<path>[^\s:]+)::(?P<test>\S+)(?: - (?P<said>.*))?$"
    r"|^--- FAIL: (?P<go>\S+)(?: \([\d.]+s\))?$|^(?:FAIL|ERROR): (?P<unittest>\w+) \([\w.]+\)$"
)
"""What a test runner prints of a test that failed. pytest cuts what it says: `- a...`."""
_SHELL = compile_lazily(r"^(?:/(?:usr/)?bin/)?(?:ba|z|da)?sh: (?:line \d+: )?(?=\S)")
_SAID_MIN, _SAID_CHARACTERS, _COMMAND_CHARACTERS = 12, 400, 300
"""Characters from which a cut line still says something; of what the agent said, and of a command in a body."""


def draft_failures(
    story: Story, context: EpisodeContext, chains: Sequence[FailureChain]
) -> list[Draft]:
    """A draft of each failure that was left, and of each that the memory of the work tells as fixed."""
    return [
        _draft_failure(number, chain, story, context)
        for number, chain in enumerate(chains)
        if chain.outcome in (Outcome.FIXED, Outcome.OPEN)
    ]


def _draft_failure(
    number: int, chain: FailureChain, story: Story, context: EpisodeContext
) -> Draft:
    command, error = _list_errors(chain)[0]
    lines = [f"{_name_command(command)} failed: {error.line or 'it said nothing'}"]
    if error.files:
        lines.append("In: " + ", ".join(map(context.relative, error.files)))
    if story.prompt:
        lines.append("While: " + make_title(story.prompt))
    changed = _name_changes(chain, context)
    if chain.is_mended:
        lines.append(f"Mended by: {changed}")
    elif chain.objection:
        lines.append(chain.objection)
    else:
        lines.append(f"After that: {changed}" if changed else "Nothing was changed after that in this turn.")  # fmt: skip
    body = clip("\n".join(lines), context.body_characters)
    edges = [DraftEdge(EdgeType.CAUSES, "slot", "turn")] if chain.is_mended else []
    edges += [DraftEdge(EdgeType.REFERENCES, "file", path) for path in error.files]
    quote = clip_quote(error.line or command.output or command.command)
    return Draft(
        slot=f"failure/{number}", kind=Kind.FAILURE, title=_name_error(command, error, context), body=body,
        at=command.at, rule=chain.rule, authority=Authority.TOOL_OUTPUT,
        sources=(Source(command.event_id, quote, Authority.TOOL_OUTPUT),),
        files=unique(map(context.relative, error.files)),
        confidence=0.8 if chain.is_mended else 0.6, quality=score_quality(body), edges=tuple(edges),
    )  # fmt: skip


def tell_chains(
    story: Story, context: EpisodeContext, chains: Iterable[FailureChain]
) -> Iterator[str]:
    """Yield what the memory of the work tells of its failures: each error, and on the next line what made it pass."""
    for chain in list(filter(_is_told, chains))[:_TOLD_MAX]:
        is_fixed = chain.outcome is Outcome.FIXED
        errors = [error.line for _, error in _list_errors(chain) if error.line]
        yield from (f"Error: {line}" for line in errors[: _ERRORS_MAX if is_fixed else 1])
        if not errors:
            yield f"Error: {_name_command(chain.failures[0])} failed"
        if chain.objection:
            yield chain.objection
        elif chain.rule == OTHER_WAY and chain.passed:
            yield f"Fix: worked as {_name_command(chain.passed)}"
        elif not chain.is_mended:
            yield "Fix: none, it passed when it was run again"
        else:
            if is_fixed and (said := _find_said(chain, story)):
                yield f"Said of it: {said}"
            yield f"Fix: {_name_changes(chain, context)}"
        if is_fixed and chain.passed:
            yield f"Then {_name_command(chain.passed)} passed."
        for edit in chain.edits[:_EDITS_MAX] if chain.is_mended else ():
            changed = diff_edit(edit)
            if is_fixed or len(changed) <= _BRIEF_LINES:
                yield f"Changed {context.relative(edit.path)}:"
                yield from changed


def _is_told(chain: FailureChain) -> bool:
    is_doubtful = chain.outcome is Outcome.OPEN and bool(chain.objection)
    return chain.outcome in (Outcome.FIXED, Outcome.TOLD) or is_doubtful


def _list_errors(chain: FailureChain) -> list[tuple[ShellCommand, CommandError]]:
    """The different errors of a chain, each with its first run, those that say what is wrong before the others."""
    errors: dict[str, tuple[ShellCommand, CommandError]] = {}
    for command in chain.failures:
        error = command_output.read_error(command.output)
        errors.setdefault(error.line, (command, error))
    return sorted(errors.values(), key=lambda one: not one[1].tells)


def _find_said(chain: FailureChain, story: Story) -> str:
    """Return what the agent said last between the failed run and the pass."""
    start, end = chain.failures[-1].at, chain.passed.at if chain.passed else story.last_at + 1
    said = [one.text for one in story.texts if start <= one.at < end]
    return one_line(said[-1], _SAID_CHARACTERS) if said else ""


def _name_changes(chain: FailureChain, context: EpisodeContext) -> str:
    """The files that were changed and the commands that were run, in a line."""
    last = chain.failures[-1]
    since = 0 if chain.is_mended else last.at
    changed = unique(context.relative(edit.path) for edit in chain.edits if edit.at >= since)
    ran = [f"`{one_line(step.command, 100)}`" for step in chain.steps if step.at >= since]
    named = [f"changed {', '.join(changed[:_EDITS_MAX])}"] if changed else []
    return "; ".join([*named, f"ran {', '.join(ran[:_EDITS_MAX])}"] if ran else named)


def _name_command(command: ShellCommand) -> str:
    purpose = f" ({command.description})" if command.description else ""
    return f"`{one_line(command.command, _COMMAND_CHARACTERS)}`{purpose}"


def _name_error(command: ShellCommand, error: CommandError, context: EpisodeContext) -> str:
    """Return the error in one line, with the file that it happened in, or the command if that is not enough."""
    run = command_output.strip_pipes(command.command)
    if not error.line:
        return f"`{one_line(run, 70)}` failed"
    place = context.relative(error.files[0]) if error.files else ""
    text = _SHELL.sub("", error.line)
    is_test = _FAILED_TEST.match(text)
    if is_test:
        name = is_test["test"] or is_test["go"] or is_test["unittest"]
        said = (is_test["said"] or "").removesuffix("...").strip()
        text = f"test {name} failed: {said}" if len(said) >= _SAID_MIN else f"test {name} failed"
        place = is_test["path"] or place
    elif located := _LOCATED.match(text):
        # What went wrong comes first; a compiler begins with the place.
        place, text = f"{located[1].rsplit('/', 1)[-1]}:{located[2] or located[3]}", located[4]
    if len(place) > _PLACE_CHARACTERS or len(text) + len(place) > _TITLE_CHARACTERS:
        place = place.rsplit("/", 1)[-1][:_PLACE_CHARACTERS]
    where = f" ({place})" if place and place not in text else ""
    if len(f"{text}{where}".split()) < _WORDS_MIN:
        where += f", from `{one_line(run, _PLACE_CHARACTERS)}`"
    if is_test and len(text) + len(where) > _TITLE_CHARACTERS:
        where = ""  # the name of a test says more than its file
    return one_line(text, _TITLE_CHARACTERS - len(where)) + where


# ── Checks that pass in a later piece of work ─────────────────────────────────────────────────────


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
        if not checks.read_checks(run.line, run.directory) or not (proven := read_proven(run)):
            continue
        about = frozenset(content_stems(f"{run.command} {story.prompt}"))
        if not any(said.at >= run.at and said.concerns(about, run.command) for said in denials):
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
        if not waiting or failure.rule == SILENCED:
            # What was skipped or removed passes for ever.
            continue
        for run in sorted(runs, key=lambda one: one.at):
            covered = {w for w in waiting if any(checks.covers(p, w) for p in run.checks)}
            if run.at <= failure.at or not covered:
                continue
            if not find_silencing(run.edits, run.commands, [failed], run.run):
                waiting -= covered
            if not waiting:
                found.append((failure, run))
                break
    return found
