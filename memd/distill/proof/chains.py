"""Failures in a piece of work and what followed them, check by check. Pure.

A chain: a check fails, something is changed, the same check or a wider one passes, and nobody says that it is still broken.
Whose runs they are, the agent's or a subagent's, makes no difference. A check that was skipped, removed or set aside proves
nothing, and neither does a sentence.

What becomes of a chain (`_judge`): what was there before the work and is proven to be mended makes the memory of the work a
fix; what was left failing is a memory of its own; what came right by something outside the work's own code, such as an
install, another way to call a command or a second run, is a line in the memory of the work. What the agent itself broke
and mended is nothing that anybody would look for.
"""

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Literal

from memd.distill.edits import FileEdit, diff_edit
from memd.distill.episodes import Dispute, EpisodeContext, ShellCommand, Story
from memd.distill.proof import checks, command_output
from memd.distill.proof.checks import Check, is_failing, read_proven
from memd.distill.proof.command_output import CommandError, list_failed_tests
from memd.distill.proof.objections import (
    SUPPRESSION,
    Denial,
    find_silencing,
    find_story_denials,
    is_configuration,
    name_sorts,
)
from memd.distill.proof.shell import TOOLS, SimpleCommand, list_started, parse_line
from memd.distill.text import clip, clip_quote, make_title, score_quality
from memd.models import Authority, Draft, DraftEdge, EdgeType, Kind, Source
from memd.patterns import compile_lazily, split_words
from memd.text import content_stems, normalised, one_line, unique

CHAINS_MAX = 8
_ABOUT_CHARACTERS = 2_000
"""Of an output or a change, whose words tell what a failure is about."""
SAME_COMMAND = "same-command"
WIDER_COMMAND = "wider-command"
UNMENDED = "unmended"
SILENCED = "silenced"
SUPPRESSED = "suppressed"
DISPUTED = "disputed"
OTHER_WAY = "other-way"
_PROVEN = frozenset({SAME_COMMAND, WIDER_COMMAND})


Outcome = Literal["fixed", "open", "told", "nothing"]
"""The form in which a chain is remembered; `told` is a line in the memory of the work."""


@dataclass(frozen=True, slots=True)
class FailureChain:
    """One check from its first failure to the run that passed."""

    failures: tuple[ShellCommand, ...]
    passed: ShellCommand | None
    edits: tuple[FileEdit, ...]
    """Between the first failure and the pass, or the end of the piece of work."""
    steps: tuple[ShellCommand, ...]
    """Commands in between that did something, such as installing a package."""
    rule: str
    """`same-command`, `wider-command`, `other-way`, `unmended`, `silenced`, `suppressed` or `disputed`."""
    objection: str = ""
    """Why the pass proves nothing, as a sentence."""
    outcome: Outcome = "nothing"

    @property
    def is_mended(self) -> bool:
        """Return whether something was changed that is proven to have made it pass."""
        return self.rule in _PROVEN and bool(self.edits or self.steps)

    @property
    def error_lines(self) -> list[str]:
        """The error of each failed run in one line."""
        return [command_output.read_error(run.output).line for run in self.failures]

    @property
    def stems(self) -> frozenset[str]:
        """The stems of what it is about."""
        runs = (f"{run.command} {run.output[-_ABOUT_CHARACTERS:]}" for run in self.failures)
        changes = (f"{edit.path} {edit.new[:_ABOUT_CHARACTERS]}" for edit in self.edits)
        return frozenset(content_stems(" ".join((*runs, *changes))))


@dataclass(slots=True)
class _OpenCheck:
    """A check that failed and has not passed yet."""

    failures: list[ShellCommand]
    waiting: set[Check]
    """Those of the line that have to pass."""
    excused: tuple[ShellCommand, str] | None = None
    """The last pass that proved nothing, and why it did not."""


def find_chains(story: Story, disputes: Sequence[Dispute] = ()) -> list[FailureChain]:
    """The failures of a piece of work, each with what followed, in order of the first failure.

    `disputes` is what was said of them afterwards.
    """
    waiting: list[_OpenCheck] = []
    chains: list[FailureChain] = []
    for command in story.commands:
        if is_failing(command) and (_can_teach(command) or _passes_after_edit(story, command)):
            failed = list_failed(command)
            known = next((one for one in waiting if one.waiting == failed), None)
            if known is None:
                waiting.append(known := _OpenCheck([], failed))
            known.failures.append(command)
        elif waiting and (proven := read_proven(command)):
            chains.extend(_close_checks(story, waiting, command, proven))
    chains = [_take_back(chain, waiting) for chain in chains]
    chains.extend(_leave_open(story, one) for one in waiting)
    chains.sort(key=lambda chain: _when(chain.failures[0]))
    chains = [_dispute(chain, story, disputes) for chain in chains[:CHAINS_MAX]]
    return [replace(chain, outcome=_judge(chain, story)) for chain in chains]


def _can_teach(command: ShellCommand) -> bool:
    """Return whether something can be learned from this failure: a check failed, a call was refused, or the error has a signature."""
    if command_output.is_read_only(command.command) or command_output.ran_nowhere(command.output):
        return False
    is_known = command_output.is_check(command.command) or _refused_to_start(command)
    return is_known or command_output.read_error(command.output).has_signature


def _passes_after_edit(story: Story, failed: ShellCommand) -> bool:
    """Return whether the very same line passes later, and a file was edited since it failed last: that needs no known program.

    What passes without an edit between, or only sends, moves or installs something, may have come right by itself.
    """
    place = failed.line, failed.directory
    runs = [one for one in story.commands if (one.line, one.directory) == place]
    after = range(runs.index(failed) + 1, len(runs))
    passed = next((number for number in after if read_proven(runs[number])), 0)
    if not failed.failed or not passed or all(map(checks.is_errand, parse_line(*place))):
        return False
    since, until = map(_when, runs[passed - 1 : passed + 1])
    return any(since < _when(edit) < until for edit in story.edits)


def list_failed(command: ShellCommand) -> set[Check]:
    """List what has to pass before this failure is mended: the checks of the line, else its commands."""
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
        if silencing := _find_silencing(story, one.failures, command):
            one.excused = command, silencing
            continue
        is_same = is_same and all(
            any(checks.covers(check, p) for check in one.waiting) for p in proven
        )
        one.waiting = left
        if not left:
            waiting.remove(one)
            closed.append(one)
    failures = sorted((run for one in closed for run in one.failures), key=_when)
    rule = SAME_COMMAND if is_same else WIDER_COMMAND
    return [_make_chain(story, failures, command, rule)] if closed else []


def _find_silencing(story: Story, failures: Sequence[ShellCommand], passed: ShellCommand) -> str:
    """Find what silenced a check between its first failure and a pass."""
    if not any(checks.read_checks(run.line, run.directory) for run in failures):
        return ""  # what checks nothing cannot be silenced
    edits, commands = _list_between(story, failures, passed)
    # The run itself may set the work aside: `git stash && pytest`.
    return find_silencing(edits, [*commands, passed], failures, passed)


def _list_between(
    story: Story, failures: Sequence[ShellCommand], passed: ShellCommand | None
) -> tuple[tuple[FileEdit, ...], tuple[ShellCommand, ...]]:
    """List (edits, commands) between the first failure and a pass, or the end of the piece of work."""
    start, end = _when(failures[0]), _when(passed) if passed else (story.last_at + 1, 0)
    return (
        tuple(edit for edit in story.edits if start < _when(edit) < end),
        tuple(run for run in story.commands if start < _when(run) < end),
    )


def _leave_open(story: Story, one: _OpenCheck) -> FailureChain:
    """The chain of a check that did not pass; where its call was refused, with the call that worked instead."""
    if one.excused:
        passed, silencing = one.excused
        rule = SUPPRESSED if silencing == SUPPRESSION else SILENCED
        chain = _make_chain(story, one.failures, passed, rule)
        objection = f"That it passed later proves nothing: {silencing}."
        return replace(chain, passed=None, objection=objection)
    if other := _find_other_way(one.failures[-1], story.commands) or _find_fuller_call(story, one):
        return _make_chain(story, one.failures, other, OTHER_WAY)
    return _make_chain(story, one.failures, None, UNMENDED)


def _when(one: ShellCommand | FileEdit) -> tuple[int, int]:
    return one.at, one.event_id


def _make_chain(
    story: Story, failures: Sequence[ShellCommand], passed: ShellCommand | None, rule: str
) -> FailureChain:
    edits, ran = _list_between(story, failures, passed)
    steps = tuple(
        run
        for run in ran
        if not (
            is_failing(run) or checks.read_checks(run.line, run.directory) or _only_records(run)
        )
    )
    last = failures[-1]
    if passed and rule in _PROVEN and not (edits or steps) and passed.line != last.line:
        is_otherwise = _refused_to_start(last) or _does_more_before(passed, last)
        rule = OTHER_WAY if is_otherwise else rule
    return FailureChain(tuple(failures), passed, edits, steps, rule)


def _take_back(chain: FailureChain, waiting: Sequence[_OpenCheck]) -> FailureChain:
    """The chain, unless the same check fails with the same error at the end of the piece of work."""
    last = chain.passed
    for again in (one.failures[-1] for one in waiting):
        is_later = last is not None and again.at >= last.at
        if is_later and any(
            command_output.is_same_error(run.output, again.output) for run in chain.failures
        ):
            return replace(chain, rule=DISPUTED, objection="It passed, and then it failed again.")
    return chain


def _dispute(chain: FailureChain, story: Story, disputes: Sequence[Dispute]) -> FailureChain:
    """The chain, or why its pass does not count: the user or the agent says that it is still broken."""
    passed = chain.passed
    if passed is None or chain.rule not in {*_PROVEN, OTHER_WAY}:
        return chain
    about = chain.stems | frozenset(content_stems(story.prompt))
    times = {run.at for run in chain.failures}
    said: list[tuple[str, Denial | Dispute]] = [
        ("said", one)
        for one in find_story_denials(story)
        if one.event_id != passed.event_id and one.concerns(about, chain.failures[0].command)
    ]
    said += [("said later", one) for one in disputes if one.failed_at in times]
    for verb, one in said:
        if one.at >= passed.at:
            who = "the user" if one.speaker == "User" else "the agent"
            objection = f"It passed, but {who} {verb}: “{one.quote}”"
            return replace(chain, rule=DISPUTED, objection=objection)
    return chain


# ── What becomes of a chain ───────────────────────────────────────────────────────────────────────

_REQUEST_CHARACTERS = 800
_PASTED_MIN = 12
"""Characters from which an error's line is found in what the user said."""


def _judge(chain: FailureChain, story: Story) -> Outcome:
    """Decide what a chain is remembered as."""
    asked, has_changed = _find_request(chain, story)
    is_reported = not has_changed and (_asks_for_fix(asked) or _is_pasted(chain, asked))
    if chain.is_mended:
        is_all = set(story.edits) == set(chain.edits) != set() and _names_code(chain)
        if is_reported or (is_all and not has_changed):
            return "fixed"
        is_slip = has_changed and not (
            _is_cured_outside(chain) or _answer_names_error(chain, story)
        )
        return "nothing" if is_slip else "told"
    if chain.rule in _PROVEN:
        # It passed as it was: only a test that fails at times is worth a word.
        return "told" if _is_flaky(chain, story) else "nothing"
    if chain.rule == OTHER_WAY:
        return "told"
    is_left = is_reported or (_names_code(chain) and not (has_changed and _goes_on(chain, story)))
    if chain.rule == SUPPRESSED or not is_left or not _stands(chain):
        return "nothing"
    return "open"


def _find_request(chain: FailureChain, story: Story) -> tuple[str, bool]:
    """Return (what the user had said last of a failure, or at first; whether the work had changed something since)."""
    first = chain.failures[0]
    before = [said for said in story.prompts if said.at <= first.at]
    asked = next((said for said in before[:0:-1] if _asks_for_fix(said.text)), None)
    asked = asked or next(iter(before), None)
    begun = asked.at if asked else first.at
    edited = any(begun <= edit.at and _when(edit) < _when(first) for edit in story.edits)
    ran = (run for run in story.commands if begun <= run.at and _when(run) <= _when(first))
    text = "\n".join(said.text for said in before if said.at <= begun)
    return text, edited or any(map(_may_edit, ran))


_ERROR_NAME = compile_lazily(r"\b[A-Z]\w*(?:Error|Exception|Panic)\b|\b[A-Z]{1,6}\d{3,5}\b")
"""`KeyError`, `TS2339`, `E0277`."""


def _answer_names_error(chain: FailureChain, story: Story) -> bool:
    """Return whether the closing message names the error: the agent holds it worth a word."""
    names = {found[0] for line in chain.error_lines if (found := _ERROR_NAME.search(line))}
    return any(name in story.answer for name in names)


def _asks_for_fix(prompt: str) -> bool:
    if len(prompt) > _REQUEST_CHARACTERS:
        # Of a plan or a log that was pasted, the request stands at an end.
        prompt = f"{prompt[: _REQUEST_CHARACTERS // 2]}\n{prompt[-_REQUEST_CHARACTERS // 2 :]}"
    return TOOLS["asks for a fix"].search(prompt) is not None


def _is_pasted(chain: FailureChain, prompt: str) -> bool:
    """Return whether the user showed the error."""
    said = normalised(prompt)
    lines = map(normalised, chain.error_lines)
    return any(len(line) >= _PASTED_MIN and line in said for line in lines)


def _names_code(chain: FailureChain) -> bool:
    """Return whether a test failed, or code did not compile or run."""
    output = chain.failures[-1].output
    return command_output.read_error(output).is_of_code or bool(list_failed_tests(output))


def _is_flaky(chain: FailureChain, story: Story) -> bool:
    """Return whether a test failed that passed when it was run again, with nothing that may have changed a file in between."""
    start, end = chain.failures[-1], chain.passed
    between = (run for run in story.commands if end and _when(start) < _when(run) < _when(end))
    is_test = "test" in name_sorts(start.command) and bool(list_failed_tests(start.output))
    return is_test and not any(map(_may_edit, between))


def _goes_on(chain: FailureChain, story: Story) -> bool:
    """Return whether the work went on after the check failed: something was changed or run, or the check itself changed something."""
    last = chain.failures[-1]
    has_edits = any(_when(edit) > _when(last) for edit in story.edits)
    later = (run for run in story.commands if _when(run) > _when(last))
    return has_edits or _may_edit(last) or not all(map(_only_records, later))


def _stands(chain: FailureChain) -> bool:
    """Return whether what was left failing is a check that says what is wrong."""
    last = chain.failures[-1]
    error = command_output.read_error(last.output)
    says_why = error.has_signature or command_output.shows_failure(last.output)
    is_check = bool(checks.read_checks(last.line, last.directory)) and not _runs_inline(last)
    return is_check and says_why and (error.has_signature or not _refused_to_start(last))


# ── What commands do to the work ──────────────────────────────────────────────────────────────────

_SHARED_WORDS_MIN = 0.5
"""Jaccard of the words of two commands from which the one is another way to call the other."""
_CODE_OPTIONS = split_words("-c -e -E -p -r --eval --print --execute -")
_EDITING_TOOLS = split_words("ed patch cp mv rm tee gofmt goimports")
_IN_PLACE = compile_lazily(r"-\w*i|--in-place")
_NO_FILE = compile_lazily(r"/dev/|/tmp/|\d$|&")
_LOOKING_OPTIONS = split_words("--help --version --dry-run")
_RECORDING_VERBS = split_words("add commit push tag status diff log show fetch branch notes remote")
_PROGRAM_VERSION = compile_lazily(r"^((?:python|pip|pypy))[\d.]+$")


def _may_edit(run: ShellCommand) -> bool:
    """Return whether a command may change the files that are worked on, as one does with an editor."""
    return any(
        any(not _NO_FILE.match(path) for path in one.writes) or _edits_files(one.words)
        for one in list_started(run.command)
    ) or _runs_inline(run)


def _edits_files(words: Sequence[str]) -> bool:
    tool = posixpath.basename(words[0])
    if tool in {"sed", "perl"}:
        return any(map(_IN_PLACE.match, words))
    return tool in _EDITING_TOOLS or TOOLS["fixes files"].search(" ".join(words)) is not None


def _runs_inline(run: ShellCommand) -> bool:
    """Return whether an interpreter runs code that stands in the command itself."""
    return any(
        TOOLS["interpreter"].match(words[0])
        and any(word in _CODE_OPTIONS or word.startswith("<<") for word in words[1:])
        for words in (checks.strip_wrappers(one.words)[0] for one in parse_line(run.command))
    )


def _is_cured_outside(chain: FailureChain) -> bool:
    """Return whether no change of code mended it, but a command that is more than an editor: an install, a service, a migration."""
    is_code = any(not is_configuration(edit.path) for edit in chain.edits)
    return not is_code and any(not _may_edit(step) for step in chain.steps)


def _only_records(command: ShellCommand) -> bool:
    """Return whether a command only records or shows what is there, and so changes nothing: `git commit`."""
    return all(_is_record(one.words) for one in parse_line(command.command))


def _is_record(words: Sequence[str]) -> bool:
    is_git = any(one == "git" and verb in _RECORDING_VERBS for one, verb in pairwise(words[:3]))
    return is_git or command_output.is_read_only(" ".join(words))


def _does_more_before(passed: ShellCommand, failed: ShellCommand) -> bool:
    """Return whether a line does something before the check that the line that failed did not: `npm rebuild x && npm test`."""
    wanted, known = list_failed(failed), {one.words for one in parse_line(failed.line)}
    for one in parse_line(passed.line, passed.directory):
        line = shlex.join(one.words)
        found = [check for check, _ in checks.read_commands(line, one.directory)]
        if any(checks.covers(check, other) for check in found for other in wanted):
            return False
        is_new = one.words not in known and not _is_record(one.words)
        if is_new and not checks.read_checks(line, one.directory):
            return True
    return False


def _refused_to_start(command: ShellCommand) -> bool:
    """Return whether a program was not found, or is called otherwise here."""
    return command.failed and TOOLS["refused"].search(command.output) is not None


def _find_other_way(failed: ShellCommand, commands: Sequence[ShellCommand]) -> ShellCommand | None:
    """The first later command that did what a call that was refused had meant to do; None if there is none."""
    if not _refused_to_start(failed):
        return None
    wanted = [_name_words(one) for one in parse_line(failed.line, failed.directory)]
    for run in commands:
        is_over = not (run.failed or run.is_interrupted or run.is_background or is_failing(run))
        is_same = (run.line, run.directory) == (failed.line, failed.directory)
        if _when(run) <= _when(failed) or not is_over or is_same or "||" in run.line:
            continue  # not later, the same, or nobody knows which of several ways it was
        others = (
            _name_words(one)
            for one in parse_line(run.line, run.directory)
            if not command_output.is_read_only(" ".join(one.words))
        )
        if any(_is_alike(words, other) for other in others for words in wanted):
            return run
    return None


def _find_fuller_call(story: Story, one: _OpenCheck) -> ShellCommand | None:
    """The first later run of the same commands with other variables or more options, no file having been changed; maybe none."""
    last = one.failures[-1]
    sorts = name_sorts(last.command)
    for run in story.commands if sorts.isdisjoint(("lint", "types")) else ():
        proven = read_proven(run) if _when(run) > _when(last) else ()
        if all(any(_is_fuller(p, check, sorts) for p in proven) for check in one.waiting):
            edits, _ = _list_between(story, one.failures, run)
            return None if edits or _find_silencing(story, one.failures, run) else run
    return None


def _is_fuller(run: Check, failed: Check, sorts: AbstractSet[str]) -> bool:
    """Return whether a run is the call that failed with other variables, or more options: of a test those may leave something out."""
    as_failed = replace(run, environment=failed.environment, options=failed.options)
    more = (run.environment ^ failed.environment) | (run.options - failed.options)
    may_have_options = "test" not in sorts and run.tool != "git" and failed.options <= run.options
    return (
        checks.covers(as_failed, failed)
        and _LOOKING_OPTIONS.isdisjoint(more)
        and (may_have_options or run.options == failed.options)
        and not any(map(TOOLS["leaves out in configuration"].search, map(str.lower, more)))
    )


def _name_words(command: SimpleCommand) -> frozenset[str]:
    words, _ = checks.strip_wrappers(command.words)
    program = posixpath.basename(words[0])
    return frozenset((_PROGRAM_VERSION.sub(r"\1", program), *words[1:]))


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if {word for word in one ^ other if " " in word}:
        return False  # other code, another message: it does another thing
    return len(one & other) / len(one | other) >= _SHARED_WORDS_MIN


# ── What is told of a chain ────────────────────────────────────────────────────────────────────────

_ERRORS_MAX, _EDITS_MAX, _TOLD_MAX, _BRIEF_LINES = 3, 4, 3, 4
_TITLE_CHARACTERS = 100
_PLACE_CHARACTERS = 40
"""A longer path in a title is told by its last part."""
_WORDS_MIN = 4
_SHELL = compile_lazily(r"^(?:/(?:usr/)?bin/)?(?:ba|z|da)?sh: (?:line \d+: )?(?=\S)")
_SAID_MIN, _SAID_CHARACTERS, _COMMAND_CHARACTERS = 12, 400, 300
"""Characters from which a cut line still says something; of what the agent said, and of a command in a body."""


def draft_failures(
    story: Story, context: EpisodeContext, chains: Sequence[FailureChain]
) -> list[Draft]:
    """A draft of each failure that was left, and of each that the memory of the work tells as fixed."""
    return [
        replace(_draft_failure(chain, story, context), slot=f"failure/{number}")
        for number, chain in enumerate(chains)
        if chain.outcome in ("fixed", "open")
    ]


def _draft_failure(chain: FailureChain, story: Story, context: EpisodeContext) -> Draft:
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
        slot="", kind=Kind.FAILURE, title=_name_error(command, error, context), body=body,
        at=command.at, rule=chain.rule, authority=Authority.TOOL_OUTPUT,
        sources=(Source(command.event_id, quote, Authority.TOOL_OUTPUT),),
        files=unique(map(context.relative, error.files)),
        confidence=0.8 if chain.is_mended else 0.6, quality=score_quality(body), edges=tuple(edges),
    )  # fmt: skip


def tell_chains(
    story: Story, context: EpisodeContext, chains: Iterable[FailureChain]
) -> Iterator[str]:
    """Yield what the memory of the work tells of its failures: each error, and on the next line what made it pass."""
    told = (
        one
        for one in chains
        if one.outcome in ("fixed", "told") or (one.outcome == "open" and one.objection)
    )
    for chain in islice(told, _TOLD_MAX):
        is_fixed = chain.outcome == "fixed"
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
    is_test = TOOLS["named test"].match(text)
    if is_test:
        name = is_test["test"] or is_test["go"] or is_test["unittest"]
        said = (is_test["said"] or "").removesuffix("...").strip()
        text = f"test {name} failed: {said}" if len(said) >= _SAID_MIN else f"test {name} failed"
        place = is_test["path"] or place
    elif located := TOOLS["located"].match(text):
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
