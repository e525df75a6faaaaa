"""How a command that failed worked after all: as another command, or when it was run again. Pure."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from memd.distill.edits import FileEdit
from memd.distill.episodes import ShellCommand
from memd.distill.proof import checks, command_output
from memd.distill.proof.run_outcome import is_failing
from memd.distill.proof.shell import SimpleCommand, parse_line, split_words
from memd.patterns import compile_lazily

_SHARED_WORDS_MIN = 0.5
"""Jaccard of the words of two commands from which the one is another way to call the other."""
_FIXES_FILES = compile_lazily(
    r"(?:^|\s)(?:--fix\S*|--write|--unsafe|--apply|--in-place|-w|fmt|format|autofix)(?=\s|$)|[\w-]+[:-](?:fix|format|fmt|write)(?=\s|$)"
)
_ONLY_CHECKS_FORMAT = compile_lazily(r"(?:^|\s)--?(?:check|diff|dry-run|list-different|l)(?=\s|$)")
_REFUSED = compile_lazily(
    r"command not found|^\S*sh: (?:\d+: )?\S+: not found$|unrecognized (?:sub)?command|unknown (?:sub)?command|is not recognized as|No module named"
    r"|externally[- ]managed|does not contain (?:main )?(?:package|module)|cannot find (?:main )?module|did not match any file|not a git repository"
    r"|[Mm]issing script|[Ss]cript not found|(?:unknown|unrecognized|invalid|illegal|unexpected) (?:option|flag|argument)|[Nn]o such file or directory"
    r"|[Pp]ermission denied|no configuration file provided|[Nn]o rule to make target|Could not open requirements file|[Nn]o such command",
    re.MULTILINE,
)
_TEACHES_CALL = compile_lazily(
    r"command not found|^\S*sh: (?:\d+: )?\S+: not found$|un(?:recognized|known) (?:sub)?command|is not recognized as|No module named|externally[- ]managed"
    r"|does not contain (?:main )?(?:package|module)|cannot find (?:main )?module|[Mm]issing script|[Ss]cript not found|[Nn]o rule to make target|no configuration file provided"
    r"|[Nn]o such command|[Pp]ermission denied",
    re.MULTILINE,
)
"""A refusal that says something of the machine or the project, not of a path or an option that was mistyped."""
_HAND_TOOLS = split_words(
    "sed perl awk ed patch cp mv rm mkdir touch tee cat echo printf gofmt goimports git"
)
_RECORDING_VERBS = split_words("add commit push tag status diff log show fetch branch notes remote")
_NOT_FOUND = compile_lazily(r"command not found|^\S*sh: (?:\d+: )?\S+: not found$", re.MULTILINE)
_PROGRAM_VERSION = compile_lazily(r"^((?:python|pip|pypy))[\d.]+$")


def is_same_run(one: ShellCommand, other: ShellCommand) -> bool:
    """Whether the very same command line ran in the same directory."""
    return (one.line, one.directory) == (other.line, other.directory)


def fixes_files(command: ShellCommand) -> bool:
    """Whether a command changes the files that it checks: a formatter, `lint:fix`."""
    return any(
        _FIXES_FILES.search(text) and not _ONLY_CHECKS_FORMAT.search(text)
        for text in (" ".join(one.words) for one in parse_line(command.command))
    )


def list_changing(
    commands: Sequence[ShellCommand],
    edits: Sequence[FileEdit],
    start: ShellCommand,
    end: ShellCommand,
) -> tuple[ShellCommand, ...] | None:
    """The commands between two runs that may have changed something; None if a file was edited, too."""
    after, before = (start.at, start.event_id), (end.at, end.event_id)
    if any(after < (edit.at, edit.event_id) < before for edit in edits):
        return None
    between = [c for c in commands if after <= (c.at, c.event_id) < before]
    return tuple(c for c in between if _may_change(c) and (c is not start or fixes_files(c)))


def list_changing_after(
    commands: Sequence[ShellCommand], run: ShellCommand
) -> tuple[ShellCommand, ...]:
    """The commands after a run that may have changed something, were it by running a program."""
    return tuple(
        one
        for one in commands
        if (one.at, one.event_id) > (run.at, run.event_id)
        and _may_change(one)
        and not only_records(one)
    )


def is_by_hand(command: ShellCommand) -> bool:
    """Whether a command writes or moves files as one does with an editor: `sed -i`, a loop over files, `gofmt -w`."""
    parts = [one.words for one in parse_line(command.command)]
    return fixes_files(command) or all(
        " " in words[0]
        or posixpath.basename(words[0]) in _HAND_TOOLS
        or command_output.is_read_only(" ".join(words))
        for words in parts
    )


def only_records(command: ShellCommand) -> bool:
    """Whether a command only records or shows what is there, and so mends nothing: `git commit`."""
    parts = [one.words for one in parse_line(command.command)]
    return all(
        command_output.is_read_only(" ".join(words)) or any(map(_is_record, (words, words[1:])))
        for words in parts
    )


def _is_record(words: Sequence[str]) -> bool:
    return len(words) > 1 and words[0] == "git" and words[1] in _RECORDING_VERBS


def _may_change(command: ShellCommand) -> bool:
    return not command_output.is_read_only(command.command)


def refused_to_start(command: ShellCommand) -> bool:
    """Whether a program was not found, or did not accept how it was called."""
    return command.failed and _REFUSED.search(command.output) is not None


def was_not_found(command: ShellCommand) -> bool:
    """Whether a shell did not find the program itself."""
    return command.failed and _NOT_FOUND.search(command.output) is not None


def teaches_a_call(command: ShellCommand) -> bool:
    """Whether the way that worked after this refusal is of use to the next one who calls the program."""
    return _TEACHES_CALL.search(command.output) is not None


def find_other_way(failed: ShellCommand, commands: Sequence[ShellCommand]) -> ShellCommand | None:
    """The first later command that did what a call that was refused had meant to do; None if there is none."""
    wanted = [_name_words(one) for one in parse_line(failed.line, failed.directory)]
    for run in commands:
        if (run.at, run.event_id) <= (failed.at, failed.event_id) or not _worked(run):
            continue
        if is_same_run(run, failed) or "||" in run.line:
            continue  # the same, or nobody knows which of several ways it was
        if any(_is_alike(words, other) for words in wanted for other in _list_proper(run)):
            return run
    return None


def _worked(run: ShellCommand) -> bool:
    is_over = not (run.failed or run.is_interrupted or run.is_background)
    return is_over and not is_failing(run) and _REFUSED.search(run.output) is None


def _list_proper(run: ShellCommand) -> Iterator[frozenset[str]]:
    for one in parse_line(run.line, run.directory):
        if not command_output.is_read_only(" ".join(one.words)):
            yield _name_words(one)


def _name_words(command: SimpleCommand) -> frozenset[str]:
    words, _ = checks.strip_wrappers(command.words)
    program = posixpath.basename(words[0])
    return frozenset((_PROGRAM_VERSION.sub(r"\1", program), *words[1:]))


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if {word for word in one ^ other if " " in word}:
        return False  # other code, another message: it does another thing
    return len(one & other) / len(one | other) >= _SHARED_WORDS_MIN
