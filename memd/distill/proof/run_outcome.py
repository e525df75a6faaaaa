"""Whether a run of a command failed, and which checks it proves to pass: by its status, else by its output. Pure."""

from memd.caches import cached
from memd.distill.episodes import ShellCommand
from memd.distill.proof import checks, command_output
from memd.distill.proof.checks import Check
from memd.patterns import compile_lazily

_RUNS_CACHED = 512
"""Runs of which it is kept how they ended: each is asked about by several rules."""
_ENDS_IN_GREP = compile_lazily(r"\|\s*(?:e|f)?(?:grep|rg)\b[^|;&]*$")
_EXIT_CODE = compile_lazily(r"^Exit code 1\b")
_SHOWS_COMPLAINTS = compile_lazily(r"2>&1\s*\|&?\s*(?:tail|head|tee|cat)\b[^|;&<>]*$")
_SILENT = frozenset({("go", "build"), ("go", "vet"), ("tsc",), ("eslint",), ("flake8",), ("gcc",), ("g++",), ("shellcheck",)})  # fmt: skip


@cached(_RUNS_CACHED)
def is_failing(command: ShellCommand) -> bool:
    """Whether the command failed, even if a pipe swallowed its exit code."""
    if command.is_interrupted or command.is_background:
        return False
    if command.failed:
        return not (_only_found_nothing(command) or _only_tells_of_a_pass(command))
    if not command_output.is_check(command.command):
        return False
    if command_output.shows_failure(command.output):
        return True
    runs = checks.read_checks(command.line, command.directory)
    is_hidden = bool(runs) and not any(has_status for _, has_status in runs)
    return (
        is_hidden
        and not command_output.shows_pass(command.output)
        and command_output.shows_error(command.output)
    )


def _only_found_nothing(command: ShellCommand) -> bool:
    """Whether the exit code is that of a `grep` at the end of a pipe that selected no line."""
    return (
        _ENDS_IN_GREP.search(command.command) is not None
        and not _EXIT_CODE.sub("", command.output, count=1).strip()
    )


def _only_tells_of_a_pass(command: ShellCommand) -> bool:
    """Whether a check passed by its own words and no line says what failed: the exit code is of something beside it."""
    output = _EXIT_CODE.sub("", command.output, count=1)
    return command_output.shows_pass(output) and not command_output.read_error(output).line


@cached(_RUNS_CACHED)
def read_proven(command: ShellCommand) -> frozenset[Check]:
    """The checks that this run proves to pass: by its exit status, else by what its output counts."""
    if command.failed or command.is_interrupted or command.is_background or is_failing(command):
        return frozenset()
    if command_output.ran_nothing(command.output):
        return frozenset()
    runs = checks.read_commands(command.line, command.directory)
    says_so = command_output.shows_pass(command.output)
    hidden = [check for check, has_status in runs if not has_status]
    found = {check for check, has_status in runs if has_status}
    if len(hidden) == 1 and len(runs) == 1 and (says_so or _is_silently_clean(hidden[0], command)):
        found.add(hidden[0])
    elif hidden and says_so and runs[-1][0] is hidden[-1]:
        # Of several, the end of the output is about the last.
        found.add(hidden[-1])
    for check in tuple(found):
        found |= set(checks.read_echoed_checks(check, command.output))
    return frozenset(found)


def _is_silently_clean(check: Check, command: ShellCommand) -> bool:
    """Whether nothing was printed by a tool that prints its complaints, behind a pipe that shows them."""
    is_shown = _SHOWS_COMPLAINTS.search(command.command) is not None
    if not is_shown:
        return False
    printed = [line for line in command.output.splitlines() if line.strip()]
    if not printed:
        return _is_silent(check)
    # A task runner prints what it runs, and then nothing.
    echoed = list(checks.read_echoed_checks(check, command.output))
    return len(echoed) == len(printed) and all(map(_is_silent, echoed))


def _is_silent(check: Check) -> bool:
    """Whether a tool prints its complaints and nothing else."""
    return (check.tool, *check.verb[:1]) in _SILENT or (check.tool,) in _SILENT
