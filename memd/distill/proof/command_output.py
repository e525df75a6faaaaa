"""Classify shell commands and find the error line and the stack frames in their output. Pure."""

import re
from dataclasses import dataclass

from memd.caches import cached
from memd.distill.proof.shell import TOOLS
from memd.patterns import compile_lazily
from memd.text import one_line, unique

_LINE_CHARACTERS, _LINE_READ_CHARACTERS, _FILES_MAX = 200, 500, 6

_GENERAL_RANK = 14
"""Rank of the last pattern, which finds a line to show but is no signature: any program may print it."""
_TEST_RANK = _GENERAL_RANK - 1
_CODE_RANK = 4
"""Rank of the last pattern of exceptions and compilers; after it come test runners and linters."""
_FAILED_COUNT = compile_lazily(r"^[ \t]*([1-9]\d*) fail$", re.MULTILINE)
_CONTINUED = compile_lazily(r"\b(?:requires|because)$")
_RAN_PARTS = compile_lazily(r"\b(\d+) (passed|failed)\b")
_LINE_NUMBER = compile_lazily(r"(?<=[:(,])\d+\b")
_OUTPUTS_CACHED = 64
"""Outputs of which it is kept what they tell: each is asked about several times while a turn is distilled."""
_COMMANDS_CACHED = 512
"""Commands that are kept normalised: each is asked about by several rules."""
_LEADING_ASSIGNMENTS = compile_lazily(r"^(?:[A-Za-z_]\w*=\S*\s+)+")


@dataclass(frozen=True, slots=True)
class CommandError:
    """The telling part of a failed command's output."""

    line: str
    """One line, bounded; empty if the output has none."""
    files: tuple[str, ...]
    """The project's own files that it blames, the innermost first."""
    has_signature: bool
    """Whether it is an exception, a compiler's error or a failed test."""
    tells: bool = True
    """Whether it says what is wrong: not a count, nor one program's word that another one failed."""
    is_of_code: bool = False
    """Whether it is an exception or a compiler's error."""


@cached(_OUTPUTS_CACHED)
def read_error(output: str) -> CommandError:
    """The complaint in a failed command's output."""
    output = _cut_lines(output)
    line, rank = _find_error_line(output)
    line = _continue_line(output, line)
    files = [next(part for part in match if part) for match in TOOLS["stack frame"].findall(output)]
    own = [path for path in reversed(files) if not TOOLS["library"].search(path)]
    return CommandError(
        line=one_line(line, _LINE_CHARACTERS),
        files=unique(own)[:_FILES_MAX],
        has_signature=rank < _GENERAL_RANK,
        tells=bool(line)
        and not (TOOLS["of another program"].match(line) or TOOLS["counts only"].match(line)),
        is_of_code=rank <= _CODE_RANK,
    )


@cached(16)
def _cut_lines(output: str) -> str:
    """The output with short lines: what it tells is in them, and patterns would take minutes on minified code."""
    return "\n".join(line[:_LINE_READ_CHARACTERS] for line in output.split("\n"))


def _find_error_line(output: str) -> tuple[str, int]:
    """Return (the line that tells most, the rank of its pattern; a greater one for no pattern)."""
    weak: tuple[str, int] | None = None
    for rank, pattern in enumerate(TOOLS.list_patterns("error lines")):
        found = [match.strip() for match in pattern.findall(output) if match.strip()]
        if rank == _GENERAL_RANK:
            # What a program logs while it is tested is not why a test failed.
            if tests := list_failed_tests(output):
                more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
                return f"test failed: {tests[0]}{more}", _TEST_RANK
            if count := _FAILED_COUNT.search(output):
                return f"{count[1]} tests failed", _TEST_RANK
        weaker = (TOOLS["of another program"], TOOLS["warning line"])
        if telling := [line for line in found if not any(one.match(line) for one in weaker)]:
            # An exception ends a traceback; of compilers and test runners the first line counts.
            return _name_panic(output, telling[-1 if rank == 0 else 0]), rank
        if found and weak is None and not TOOLS["warning line"].match(found[0]):
            weak = found[0], rank
    said = _find_last_complaint(output)
    # `make: *** Error 1` says that a program failed; what that said stands above it.
    return (said or weak[0], weak[1]) if weak else (said, _GENERAL_RANK + 1)


def _find_last_complaint(output: str) -> str:
    """The last line that says that something failed; empty if none does: a banner or progress tells nothing."""
    for line in map(str.strip, reversed(output.split("\n"))):
        mute = (TOOLS["tells nothing"], TOOLS["warning line"], TOOLS["of another program"])
        is_mute = any(one.match(line) for one in mute)
        if not is_mute and TOOLS["says failure"].search(line):
            return line
    return ""


def _continue_line(output: str, line: str) -> str:
    """The line with the one after it, if it ends before it says what is wrong."""
    if not _CONTINUED.search(line):
        return line
    after = output.partition(line)[2].lstrip().partition("\n")[0].strip()
    return f"{line} {after}" if after else line


def _name_panic(output: str, line: str) -> str:
    """The line; of a panic of Rust the test and what it says, which is the next line."""
    match = TOOLS["panic"].search(output) if "panicked at" in line else None
    said = match and (match["said"] or match["old"])
    return f"{match['test']} panicked: {said}" if match and said else line


def is_same_error(one: str, other: str) -> bool:
    """Return whether two outputs complain of the same, wherever its line stands now; of those that do not say what, all of it counts."""
    mine, theirs = read_error(one), read_error(other)
    if not (mine.tells and theirs.tells):
        return one.strip() == other.strip()
    return _LINE_NUMBER.sub("", mine.line) == _LINE_NUMBER.sub("", theirs.line)


def ran_nowhere(output: str) -> bool:
    """Return whether a command failed only because its directory is not there."""
    return TOOLS["wrong place"].search(_cut_lines(output)) is not None


@cached(_OUTPUTS_CACHED)
def shows_failure(output: str) -> bool:
    """Return whether the output of a check says that it failed, whatever its exit code."""
    return TOOLS["failed"].search(_cut_lines(output)) is not None


def shows_error(output: str) -> bool:
    """Return whether the output has an exception, a compiler's error or a failed test; a warning is none."""
    error = read_error(output)
    return error.has_signature and re.search(r"Warning\b", error.line) is None


@cached(_OUTPUTS_CACHED)
def shows_pass(output: str) -> bool:
    """Return whether the output itself says that a check ran something and found nothing wrong."""
    return TOOLS["passed"].search(_cut_lines(output)) is not None and not shows_failure(output)


@cached(_OUTPUTS_CACHED)
def ran_nothing(output: str) -> bool:
    """Return whether the output says that no test ran, such as `collected 0 items` or `3 skipped`."""
    output = _cut_lines(output)
    return (
        TOOLS["ran nothing"].search(output) is not None and TOOLS["passed"].search(output) is None
    )


def count_tests(output: str) -> int | None:
    """Count the tests that ran (not those that were skipped); None if the output does not say, or a run stopped early."""
    output = _cut_lines(output)
    if TOOLS["stopped early"].search(output):
        return None
    for pattern in TOOLS.list_patterns("tests run"):
        if found := pattern.findall(output):
            skipped = TOOLS["skipped count"].findall(output)
            left_out = sum(int(next(filter(None, groups))) for groups in skipped)
            return max(sum(map(int, found)) - left_out, 0)
    lines = [
        line
        for line in TOOLS["summary line"].findall(output)
        if "passed" in line or "failed" in line
    ]
    counts = [int(number) for line in lines for number, _ in _RAN_PARTS.findall(line)]
    return sum(counts) if counts else None


def list_failed_tests(output: str) -> tuple[str, ...]:
    """The names of the tests that failed, as far as the output says, in order."""
    names = ("id", "go", "unittest", "rust", "pytest", "jest", "bun", "exunit")
    found = (
        next(m[n] for n in names if m[n]) for m in TOOLS["failed test"].finditer(_cut_lines(output))
    )
    return unique(found)


def failed_tests_of(output: str, path: str) -> list[str]:
    """The names of the tests in this file that failed, as far as the output says."""
    return [
        match["id"].split("::")[-1].partition("[")[0]
        for match in TOOLS["failed test"].finditer(output)
        if match["path"] and (path == match["path"] or path.endswith("/" + match["path"]))
    ]


@cached(_COMMANDS_CACHED)
def normalize_command(command: str) -> str:
    """The command without what does not change its meaning: where from, which pipe, which spaces."""
    text = " ".join(command.split())
    text = _LEADING_ASSIGNMENTS.sub("", TOOLS["leading setup"].sub("", text))
    return TOOLS["trailing pipes"].sub("", text).strip() or text


def strip_pipes(command: str) -> str:
    """The command in one line without redirections and pipes that only shape what it prints."""
    text = " ".join(command.split())
    return TOOLS["trailing pipes"].sub("", text).strip() or text


@cached(_COMMANDS_CACHED)
def is_check(command: str) -> bool:
    """Return whether the command tests, builds, lints or runs something, so that its failure is news."""
    text = normalize_command(command)
    return TOOLS["read only"].match(text) is None and TOOLS["check"].search(text) is not None


def is_read_only(command: str) -> bool:
    """Return whether the command only looks, so that neither its success nor its failure is news."""
    return TOOLS["read only"].match(normalize_command(command)) is not None
