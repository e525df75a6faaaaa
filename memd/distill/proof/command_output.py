"""Classify shell commands and find the error line and the stack frames in their output. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memd.caches import cached
from memd.patterns import compile_lazily
from memd.text import one_line, unique

_FAILED = compile_lazily(r"^\(fail\) (?P<test>\S.*?)(?: \[[\d.]+m?s\]?)?$")
_ENDED = compile_lazily(
    r"^\((?:pass|fail|skip|todo)\) |^\S+\.\w+:$|^# Unhandled error between tests$"
)
_MESSAGE = compile_lazily(r"^((?:error|[A-Z]\w*(?:Error|Exception)): \S.*)$")
_BETWEEN_TESTS = "# Unhandled error between tests"
_ASSERTION = compile_lazily(r"^error: expect\(")
_COUNT = compile_lazily(r"^\s*(?P<number>[1-9]\d*) (?P<what>fail|errors?)$")
_RAN = compile_lazily(r"^\s*Ran (?P<number>\d+) tests? across ")
_LINES_AFTER_MAX = 4
_WORDS_SHOWN_MAX = 40
"""Characters of what a test expected and got, to be shown."""


def find_failed_test(output: str) -> str:
    """The first failed test of such a run with what it says, in one line; empty if the output names none."""
    lines = output.split("\n")
    for number, line in enumerate(lines):
        if match := _FAILED.match(line):
            return _tell(match["test"], lines, number)
        if line == _BETWEEN_TESTS:
            after = lines[number + 1 : number + 1 + _LINES_AFTER_MAX]
            if said := next(filter(_MESSAGE.match, after), ""):
                return said
    return ""


def find_failed_count(output: str) -> str:
    """How many tests failed, of a run that does not show which; empty if the output does not count them so."""
    lines = output.split("\n")
    counts = {m["what"]: m["number"] for line in lines if (m := _COUNT.match(line))}
    if not counts.get("fail"):
        return ""
    ran = next((m["number"] for line in lines if (m := _RAN.match(line))), "")
    return f"{counts['fail']} of {ran} tests failed" if ran else f"{counts['fail']} tests failed"


def _tell(test: str, lines: list[str], failed_at: int) -> str:
    block = list(_read_block(lines, failed_at))
    said = next(filter(_MESSAGE.match, block), "")
    if said and not _ASSERTION.match(said):
        return f"{said}, in the test {test}"
    values = {
        name: line.partition(":")[2].strip()
        for line in block
        for name in ("Expected", "Received")
        if line.startswith(f"{name}:") and len(line) <= _WORDS_SHOWN_MAX
    }
    told = f": expected {values['Expected']}, got {values['Received']}" if len(values) > 1 else ""
    return f"test failed: {test}{told}"


def _read_block(lines: list[str], failed_at: int) -> Iterator[str]:
    """What was printed since the test before, the last line first."""
    for line in reversed(lines[:failed_at]):
        if _ENDED.match(line):
            return
        yield line


LINE_CHARACTERS = 200
_LINE_READ_CHARACTERS = 500
_FILES_MAX = 6

_ERROR_LINES = tuple(
    compile_lazily(pattern, re.MULTILINE)
    for pattern in (
        # An exception, of Python, JavaScript, Java …; the last one is the one that got out.
        r"^(?:E\s+|Caused by: |Exception in thread \S+ |Uncaught )?((?:[\w$]+[.:]{1,2})*[A-Z]\w*(?:Error|Exception|Interrupt|Fault|Failure|Warning|Panic)\b(?::.*|[ \t]*$))",
        r"^[ \t]*(\*\* \([A-Z][\w.]*\) .+)$",  # Elixir
        r"^(?:.*?:[ \t]*)?(panic: .+|thread '.*' panicked at .*)$",
        r"^(error(?:\[E\d+\]| [A-Z]{2,6}\d+): .+)$",
        r"^(\S+?[:(]\d+(?:[:,]\d+)?\)?:? (?:fatal )?error:? .+)$",
        r"^(\S+\.\w+:\d+:\d+: \S.+)$",
        r"^((?:FAILED|ERROR) \S+(?:::| - ).*)$",
        r"^[ \t]*(--- FAIL: .+)$",
        r"^(FAIL[ \t]+\S+ \[\w+ failed\])$",
        r"^((?:FAIL|ERROR): .+)$",
        r"^[ \t]*((?:npm ERR!|npm error|make(?:\[\d+\])?: \*\*\*) .+)$",
        r"^(Assertion failed.*|Segmentation fault.*|.*\bundefined reference to .+)$",
        r"^[ \t]*(?:●|✗|✖|×) (.+)$",  # what test runners print
        r"^(Error: .+)$",
        r"^(error: .+|fatal: .+|BUILD FAILED.*)$",
    )
)
_GENERAL_RANK = len(_ERROR_LINES) - 1
"""Rank of the last pattern, which finds a line to show but is no signature: any program may print it."""
_TEST_RANK = _GENERAL_RANK - 1
_CODE_RANK = 4
"""Rank of the last pattern of exceptions and compilers; after it come test runners and linters."""
_EXCEPTION_RANK = 2
_WRAPPERS_LINE = compile_lazily(
    r"error: test failed, to rerun|error: script \".*\" exited with|error: could not compile|error: Recipe|error: \d+ targets? failed|npm (?:ERR!|error) |make(?:\[\d+\])?: \*\*\*"
    r"|.*\bELIFECYCLE\b|.*[Cc]ommand failed with exit code|error: aborting due to|Error: Process completed with exit code|error Command failed"
)
"""What a program says of another one that failed: the last line, not the cause."""
_WARNING_LINE = compile_lazily(
    r"(?:\S+?[:(]\d+(?:[:,]\d+)?\)?:? )?[\[(]?(?:[\w.]*Warning|warning|warn|WARN(?:ING)?)\b"
)
"""A warning, with or without its place: what failed is something else."""
_COUNTS_ONLY = compile_lazily(
    r"^\W*\d[\d,]* (?:of \d+ )?(?:tests? )?(?:fail(?:ed|ures?)?|errors?)\b[^:]{0,30}$"
)
_UNINFORMATIVE_LINE = compile_lazily(
    r"^(?:Exit code \d+|\s*[-=~^_*#\s]*|Ran \d+ tests? in .*|FAILED \(.*\)|FAIL|\[[\w:./-]+\] ERROR task failed"
    r"|\[[\w:./-]+\] Finished in .*|Dropped refs/stash@.*|\* \w+: \d+|ok[ \t]+\S+[ \t].*|\?[ \t]+\S+[ \t]+\[no test files\]|\d+ issues:"
    r"|[=~*#-]{2,}.*[=~*#-]{2,}|==+> .*)$"
)
_SAYS_FAILURE = compile_lazily(
    r"\b(?:err(?:or)?s?|fail(?:s|ed|ing|ures?)?|fatal|abort(?:ed|ing)?|cannot|can['’]?t|could ?n['’]?t|unable|not|no such|denied|refused|rejected|forbidden|unauthorized"
    r"|invalid|illegal|unknown|unrecognized|unexpected|unsupported|undefined|unresolved|missing|must|requires?d?|expected|mismatch|conflicts?|duplicate|timed? ?out|killed"
    r"|externally[- ]managed|broken|corrupt(?:ed)?|exceeds?|exceeded|bad|no)\b|✗|✖|✘|❌",
    re.IGNORECASE,
)
"""What a line says that tells of a failure without a program's own form for it."""
_CONTINUED = compile_lazily(r"\b(?:requires|because)$")
_FAILURE_REPORT = compile_lazily(
    r"^FAILED \(|^Traceback \(most recent call last\):|^=+ .*\b[1-9]\d* (?:failed|error)|^[ \t]*--- FAIL: "
    r"|^error: could not compile|^npm (?:ERR!|error) |^[ \t]*Tests:?[ \t].*?\b[1-9]\d* failed|^[ \t]+[1-9]\d* failing\b|^BUILD FAIL"
    r"|^Found [1-9]\d* errors?\b|^FAILED \S+::|^test result: FAILED|^[1-9]\d* failed\b|^FAIL(?:[ \t]|$)|^FAILURES!"
    r"|\b\d+ (?:tests?|examples?|doctests?), [1-9]\d* (?:failures?|errors?)\b|^Failed![ \t]+- |^[ \t]*✖ [1-9]\d* problems? \([1-9]"
    r"|^# fail [1-9]|\b[1-9]\d* tests failed out of\b|^[ \t]*[1-9]\d* fail$|^error: Recipe |^make(?:\[\d+\])?: \*\*\* ",
    re.MULTILINE,
)
_PASS_REPORT = compile_lazily(
    r"^(?:=+ )?(?:.*, )?[1-9]\d* passed\b.*|^Ran [1-9]\d* tests? in [^\n]*\n\s*^OK\b|^ok[ \t]+\S+(?![^\n]*\[no tests)|^[ \t]*--- PASS: |^test result: ok\. [1-9]"
    r"|^[ \t]*Tests:?[ \t].*?\b[1-9]\d* passed|^[ \t]*[1-9]\d* passing\b|\b[1-9]\d* (?:tests?|examples?), 0 failures\b|^OK \([1-9]"
    r"|^Passed![ \t]+- |^BUILD SUCCESS|^Success: no issues found|^All checks passed!|\bAll tests passed\b|^0 issues\.|^# pass [1-9]"
    r"|^100% tests passed|^[ \t]*[1-9]\d* pass$|^ok \| [1-9]|^[ \t]*Finished (?:`|dev|release|test)|^Compiled successfully|^Build succeeded|^No errors found"
    r"|^Executed [1-9]\d* tests?, with 0 failures|^✓ built in|^(?:Successfully built|No changes\.|Plan: \d)|^0 errors, |^\S+: OK$|^[1-9]\d* files? would be left unchanged",
    re.MULTILINE,
)
_RAN_NOTHING = compile_lazily(
    r"^(?:=+ )?(?:no tests ran|\d+ deselected)\b|^collected 0 items|^Ran 0 tests|^No tests? (?:found|files? found|executed|to run)|^No test files? found"
    r"|^\?[ \t]+\S+[ \t]+\[no test files\]|^testing: warning: no tests to run|\[no tests to run\]|^0 examples, 0 failures|^[ \t]*0 passing\b|^[ \t]*Tests:?[ \t]{1,20}0 total"
    r"|^No tests executed!|^NO TESTS RAN|^0 tests?, 0 failures|\b0 tests? (?:collected|ran|run|executed|found)\b|^(?:=+ )?[\d, skippedxfailorn]*\d (?:skipped|xfailed|xpassed)\b[^\n]* in [\d.]+s"
    r"|^No test is available|^There are no tests|^test result: ok\. 0 passed|^# tests 0$|^running 0 tests|^Executed 0 tests|^1\.\.0\b"
    r"|^[ \t]*Tests:?[ \t](?:[\d, |\t]+(?:skipped|todo))+(?:,? \d+ total|[ \t]+\(\d+\))?[ \t]*$|^make(?:\[\d+\])?: (?:Nothing to be done for|'\S+' is up to date)",
    re.MULTILINE | re.IGNORECASE,
)
_RAN_COUNTS = (
    compile_lazily(r"^Ran (\d+) tests? in ", re.MULTILINE),
    compile_lazily(r"^[ \t]*Tests:?[ \t].*?(\d+) total", re.MULTILINE),
    compile_lazily(r"^[ \t]*Tests[ \t][^\n(]*\((\d+)\)", re.MULTILINE),
    compile_lazily(r"^(\d+) (?:tests?|examples?), \d+ failures?", re.MULTILINE),
    compile_lazily(r"^Executed (\d+) tests?, with", re.MULTILINE),
    compile_lazily(r"^# tests (\d+)$", re.MULTILINE),
)
_RAN_PARTS = compile_lazily(r"\b(\d+) (passed|failed)\b")
_SUMMARY_LINE = compile_lazily(
    r"^(?:=+ )?(?:\d+ \w+, )*\d+ (?:passed|failed)\b.*$|^test result: .*$", re.MULTILINE
)
_SKIPPED_COUNT = compile_lazily(
    r"\b([1-9]\d*) (?:skipped|xfailed|pending|ignored|todo)\b|\bskipped=([1-9]\d*)|\bexpected failures=([1-9]\d*)"
)
_STOPPED_EARLY = compile_lazily(
    r"stopping after \d+ fail|! Interrupted|\bfail(?:ed)? fast\b|\berrors? during collection\b",
    re.IGNORECASE,
)
_WRONG_PLACE = compile_lazily(
    r"^.*\bcd:(?:\d+:| line \d+:)? .*(?:[Nn]o such file or directory|not a directory)|^.*\bcd: can't cd to |^stat \S+: directory not found",
    re.MULTILINE,
)
_STACK_FRAME = compile_lazily(
    r"File \"([^\"\n]+)\", line \d+"
    r"|^[ \t]*at .*?\(?((?:/|\w:\\|\.{0,2}/)?[^\s():]+):\d+:\d+\)?$"
    r"|^[ \t]*--> (\S+?):\d+:\d+"
    r"|^[ \t]*(/?[\w./-]+\.\w{1,5})[:(]\d+",
    re.MULTILINE,
)
_LIBRARY_PATH = compile_lazily(
    r"site-packages/|dist-packages/|node_modules/|/usr/(?:local/)?lib/|^<|^node:|/lib/python\d|\.cargo/registry/"
    r"|/rustlib/|/go/pkg/|^internal/"
)
_OUTPUTS_CACHED = 64
"""Outputs of which it is kept what they tell: each is asked about several times while a turn is distilled."""
_COMMANDS_CACHED = 512
"""Commands that are kept normalised: each is asked about by several rules."""
_CHECK_COMMAND = compile_lazily(
    r"\b(?:pytest|unittest|tox|nox|doctest|coverage|mypy|pyright|ruff|flake8|pylint|black|isort|jest|vitest|mocha"
    r"|ava|eslint|prettier|tsc|playwright|cypress|rspec|rubocop|phpunit|phpstan|gradlew?|mvnw?|ctest|cmake|ninja"
    r"|bazel|mise|rustc|clippy|gcc|g\+\+|clang|javac|swiftc|kotlinc|shellcheck|hadolint|dotnet|make)\b"
    r"|\b(?:npm|pnpm|yarn|bun|deno|cargo|go|swift|mix|zig|flutter|uv|poetry|hatch|pdm|rye)\s+(?:run\s+|exec\s+)?"
    r"(?:test|build|lint|check|start|run|vet|typecheck|type-check|compile|ci|bench|e2e|dev)\b"
    r"|\b(?:python[\d.]*|node|ruby|perl|php|deno|bun|bash|sh|java)\s+\S"
    r"|\b(?:docker|podman)(?:[ -]compose)?\s+(?:build|up|run)\b|\bterraform\s+(?:plan|apply|validate)\b"
    r"|\b(?:alembic|manage\.py|rails|rake|artisan|invoke|just|task)\b"
    r"|(?:^|[;&|]\s*)\.{0,2}/[\w./-]+"
)
_READ_ONLY_COMMAND = compile_lazily(
    r"(?:cat|nl|ls|ll|grep|egrep|rg|ag|find|fd|head|tail|less|wc|which|type|command|stat|file|cd|pwd|echo|printf|env"
    r"|test|\[+|diff|cmp|tree|du|df|ps|pgrep|sleep|true|false|exit|kill|sed -n|jq|curl|ping|date|whoami|uname"
    r"|git (?:status|diff|log|show|branch|grep|ls-files|rev-parse|remote|blame|stash list))(?=\s|$)"
)
_LEADING_SETUP = compile_lazily(
    r"^(?:\s*(?:cd\s+\S+|source\s+\S+|\.\s+\S+|set -\w+|export \S+)\s*(?:&&|;)\s*)+"
)
_LEADING_ASSIGNMENTS = compile_lazily(r"^(?:[A-Za-z_]\w*=\S*\s+)+")
_TRAILING_PIPES = compile_lazily(
    r"(?:\s*\d?>&\d|\s*2>\s*/dev/null|\s*\|\s*(?:tail|head|tee|cat)\b[^|;&]*|\s*;\s*echo\b[^;]*|\s*\|\|\s*true)+\s*$"
)  # fmt: skip


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
    is_exception: bool = False
    is_of_code: bool = False
    """Whether it is an exception or a compiler's error."""


@cached(_OUTPUTS_CACHED)
def read_error(output: str) -> CommandError:
    """The complaint in a failed command's output."""
    output = _cut_lines(output)
    line, rank = _find_error_line(output)
    line = _continue_line(output, line)
    files = [next(part for part in match if part) for match in _STACK_FRAME.findall(output)]
    own = [path for path in reversed(files) if not _LIBRARY_PATH.search(path)]
    return CommandError(
        line=one_line(line, LINE_CHARACTERS),
        files=unique(own)[:_FILES_MAX],
        has_signature=rank < _GENERAL_RANK,
        tells=bool(line) and not (_WRAPPERS_LINE.match(line) or _COUNTS_ONLY.match(line)),
        is_exception=rank <= _EXCEPTION_RANK,
        is_of_code=rank <= _CODE_RANK,
    )


@cached(16)
def _cut_lines(output: str) -> str:
    """The output with short lines: what it tells is in them, and patterns would take minutes on minified code."""
    return "\n".join(line[:_LINE_READ_CHARACTERS] for line in output.split("\n"))


def _find_error_line(output: str) -> tuple[str, int]:
    """(the line that tells most, the rank of its pattern; a greater one for no pattern)."""
    if failed := find_failed_test(output):
        return failed, _TEST_RANK
    weak: tuple[str, int] | None = None
    for rank, pattern in enumerate(_ERROR_LINES):
        found = [match.strip() for match in pattern.findall(output) if match.strip()]
        if rank == _GENERAL_RANK and (count := find_failed_count(output)):
            # What a program logs while it is tested is not why a test failed.
            return count, _TEST_RANK
        telling = [line for line in found if not _is_weak(line)]
        if telling:
            # An exception ends a traceback; of compilers and test runners the first line counts.
            return _name_panic(output, telling[-1 if rank == 0 else 0]), rank
        if found and weak is None and not _WARNING_LINE.match(found[0]):
            weak = found[0], rank
    if tests := list_failed_tests(output):
        return _name_tests(tests), _TEST_RANK
    return weak or (_find_last_complaint(output), _GENERAL_RANK + 1)


def _is_weak(line: str) -> bool:
    return (_WRAPPERS_LINE.match(line) or _WARNING_LINE.match(line)) is not None


def _find_last_complaint(output: str) -> str:
    """The last line that says that something failed; empty if none does: a banner or progress tells nothing."""
    lines = (line.strip() for line in reversed(output.split("\n")))
    return next(
        (
            line
            for line in lines
            if not _UNINFORMATIVE_LINE.match(line)
            and not _WARNING_LINE.match(line)
            and _SAYS_FAILURE.search(line)
        ),
        "",
    )


def _continue_line(output: str, line: str) -> str:
    """The line with the one after it, if it ends before it says what is wrong."""
    if not _CONTINUED.search(line):
        return line
    after = output.partition(line)[2].lstrip().partition("\n")[0].strip()
    return f"{line} {after}" if after else line


def _name_tests(tests: tuple[str, ...]) -> str:
    more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return f"test failed: {tests[0]}{more}"


_PANIC = compile_lazily(
    r"^thread '(?P<test>[^'\n]+)'(?: \(\d+\))? panicked at (?:'(?P<old>[^'\n]+)', )?(?P<place>\S+?):?$(?:\n(?P<said>\S[^\n]*))?",
    re.MULTILINE,
)


def _name_panic(output: str, line: str) -> str:
    """The line; of a panic of Rust the test and what it says, which is the next line."""
    match = _PANIC.search(output) if "panicked at" in line else None
    if match is None:
        return line
    said = match["said"] or match["old"]
    return f"{match['test']} panicked: {said}" if said else line


def ran_nowhere(output: str) -> bool:
    """Whether a command failed only because its directory is not there."""
    output = _cut_lines(output)
    return _WRONG_PLACE.search(output) is not None


@cached(_OUTPUTS_CACHED)
def shows_failure(output: str) -> bool:
    """Whether the output of a check says that it failed, whatever its exit code."""
    output = _cut_lines(output)
    return _FAILURE_REPORT.search(output) is not None


def shows_error(output: str) -> bool:
    """Whether the output has an exception, a compiler's error or a failed test; a warning is none."""
    error = read_error(output)
    return error.has_signature and re.search(r"Warning\b", error.line) is None


@cached(_OUTPUTS_CACHED)
def shows_pass(output: str) -> bool:
    """Whether the output itself says that a check ran something and found nothing wrong."""
    output = _cut_lines(output)
    return _PASS_REPORT.search(output) is not None and not shows_failure(output)


@cached(_OUTPUTS_CACHED)
def ran_nothing(output: str) -> bool:
    """Whether the output says that no test ran, such as `collected 0 items` or `3 skipped`."""
    output = _cut_lines(output)
    return _RAN_NOTHING.search(output) is not None and _PASS_REPORT.search(output) is None


def count_tests(output: str) -> int | None:
    """How many tests ran (not those that were skipped); None if the output does not say, or a run stopped early."""
    output = _cut_lines(output)
    if _STOPPED_EARLY.search(output):
        return None
    for pattern in _RAN_COUNTS:
        if found := pattern.findall(output):
            return max(sum(map(int, found)) - _count_skipped(output), 0)
    lines = [line for line in _SUMMARY_LINE.findall(output) if "passed" in line or "failed" in line]
    counts = [int(number) for line in lines for number, _ in _RAN_PARTS.findall(line)]
    return sum(counts) if counts else None


def _count_skipped(output: str) -> int:
    return sum(int(next(filter(None, groups))) for groups in _SKIPPED_COUNT.findall(output))


_FAILED_TEST = compile_lazily(
    r"^(?:FAILED|ERROR) (?P<path>[^\s:]+)::(?P<id>\S+)|^[ \t]*--- FAIL: (?P<go>[^\s/]+)|^(?:FAIL|ERROR): (?P<unittest>\w+) \("
    r"|^test (?P<rust>\S+) \.\.\. FAILED|^_{3,} (?P<pytest>[\w.\[\]-]+) _{3,}|^[ \t]*(?:●|✗|✖|×|✕) (?P<jest>\S.*)$"
    r"|^\(fail\) (?P<bun>\S.*?)(?: \[[\d.]+m?s\])?$|^[ \t]*\d+\) test (?P<exunit>\S.*) \([\w.]+\)$",
    re.MULTILINE,
)


def list_failed_tests(output: str) -> tuple[str, ...]:
    """The names of the tests that failed, as far as the output says, in order."""
    names = ("id", "go", "unittest", "rust", "pytest", "jest", "bun", "exunit")
    found = (next(m[n] for n in names if m[n]) for m in _FAILED_TEST.finditer(_cut_lines(output)))
    return unique(found)


def names_failed_tests(output: str) -> bool:
    """Whether the output of a failed run says which tests failed."""
    output = _cut_lines(output)
    return _FAILED_TEST.search(output) is not None


def failed_tests_of(output: str, path: str) -> list[str]:
    """The names of the tests in this file that failed, as far as the output says."""
    return [
        match["id"].split("::")[-1].partition("[")[0]
        for match in _FAILED_TEST.finditer(output)
        if match["path"] and (path == match["path"] or path.endswith("/" + match["path"]))
    ]


@cached(_COMMANDS_CACHED)
def normalize_command(command: str) -> str:
    """The command without what does not change its meaning: where from, which pipe, which spaces."""
    text = " ".join(command.split())
    text = _LEADING_ASSIGNMENTS.sub("", _LEADING_SETUP.sub("", text))
    return _TRAILING_PIPES.sub("", text).strip() or text


def strip_pipes(command: str) -> str:
    """The command in one line without redirections and pipes that only shape what it prints."""
    text = " ".join(command.split())
    return _TRAILING_PIPES.sub("", text).strip() or text


@cached(_COMMANDS_CACHED)
def is_check(command: str) -> bool:
    """Whether the command tests, builds, lints or runs something, so that its failure is news."""
    text = normalize_command(command)
    return _READ_ONLY_COMMAND.match(text) is None and _CHECK_COMMAND.search(text) is not None


def is_read_only(command: str) -> bool:
    """Whether the command only looks, so that neither its success nor its failure is news."""
    return _READ_ONLY_COMMAND.match(normalize_command(command)) is not None
