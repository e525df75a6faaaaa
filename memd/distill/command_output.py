"""Classify shell commands and find the error line and the stack frames in their output. Pure."""

import re
from dataclasses import dataclass

from memd.text import one_line, unique

LINE_CHARACTERS = 200
_LINE_READ_CHARACTERS = 500
_FILES_MAX = 6

_ERROR_LINES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # An exception, of Python, JavaScript, Java …; the last one is the one that got out.
        r"^(?:E\s+|Caused by: |Exception in thread \S+ |Uncaught )?((?:[\w$]+[.:]{1,2})*[A-Z]\w*(?:Error|Exception|Interrupt|Fault|Failure|Warning|Panic)\b(?::.*|[ \t]*$))",
        r"^(?:.*?:[ \t]*)?(panic: .+|thread '.*' panicked at .*)$",
        r"^(error\[E\d+\]: .+)$",
        r"^(\S+?[:(]\d+(?:[:,]\d+)?\)?:? (?:fatal )?error:? .+)$",
        r"^(\S+\.\w+:\d+:\d+: [A-Z]+\d+ .+)$",
        r"^((?:FAILED|ERROR) \S+(?:::| - ).*)$",
        r"^(--- FAIL: .+)$",
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
_UNINFORMATIVE_LINE = re.compile(
    r"^(?:Exit code \d+|\s*[-=~^_*#\s]*|Ran \d+ tests? in .*|FAILED \(.*\))$"
)
_FAILURE_REPORT = re.compile(
    r"^FAILED \(|^Traceback \(most recent call last\):|^=+ .*\b\d+ (?:failed|error)|^--- FAIL: "
    r"|^error: could not compile|^npm (?:ERR!|error) |^Tests:\s+\d+ failed|^[ \t]+\d+ failing\b|^BUILD FAILED"
    r"|^Found \d+ errors? in |^FAILED \S+::|^test result: FAILED",
    re.MULTILINE,
)
_STACK_FRAME = re.compile(
    r"File \"([^\"\n]+)\", line \d+"
    r"|^[ \t]*at .*?\(?((?:/|\w:\\|\.{0,2}/)?[^\s():]+):\d+:\d+\)?$"
    r"|^[ \t]*--> (\S+?):\d+:\d+"
    r"|^[ \t]*(/?[\w./-]+\.\w{1,5})[:(]\d+",
    re.MULTILINE,
)
_LIBRARY_PATH = re.compile(
    r"site-packages/|dist-packages/|node_modules/|/usr/(?:local/)?lib/|^<|^node:|/lib/python\d|\.cargo/registry/"
    r"|/rustlib/|/go/pkg/|^internal/"
)
_CHECK_COMMAND = re.compile(
    r"\b(?:pytest|unittest|tox|nox|doctest|coverage|mypy|pyright|ruff|flake8|pylint|black|isort|jest|vitest|mocha"
    r"|ava|eslint|prettier|tsc|playwright|cypress|rspec|rubocop|phpunit|phpstan|gradlew?|mvnw?|ctest|cmake|ninja"
    r"|bazel|rustc|clippy|gcc|g\+\+|clang|javac|swiftc|kotlinc|shellcheck|hadolint|dotnet|make)\b"
    r"|\b(?:npm|pnpm|yarn|bun|deno|cargo|go|swift|mix|zig|flutter|uv|poetry|hatch|pdm|rye)\s+(?:run\s+|exec\s+)?"
    r"(?:test|build|lint|check|start|run|vet|typecheck|type-check|compile|ci|bench|e2e|dev)\b"
    r"|\b(?:python[\d.]*|node|ruby|perl|php|deno|bun|bash|sh|java)\s+\S"
    r"|\b(?:docker|podman)(?:[ -]compose)?\s+(?:build|up|run)\b|\bterraform\s+(?:plan|apply|validate)\b"
    r"|\b(?:alembic|manage\.py|rails|rake|artisan|invoke|just|task)\b"
    r"|(?:^|[;&|]\s*)\.{0,2}/[\w./-]+"
)
_READ_ONLY_COMMAND = re.compile(
    r"(?:cat|ls|ll|grep|egrep|rg|ag|find|fd|head|tail|less|wc|which|type|command|stat|file|cd|pwd|echo|printf|env"
    r"|test|\[+|diff|cmp|tree|du|df|ps|pgrep|sleep|true|false|exit|kill|sed -n|jq|curl|ping|date|whoami|uname"
    r"|git (?:status|diff|log|show|branch|grep|ls-files|rev-parse|remote|blame|stash list))(?=\s|$)"
)
_LEADING_SETUP = re.compile(
    r"^(?:\s*(?:cd\s+\S+|source\s+\S+|\.\s+\S+|set -\w+|export \S+)\s*(?:&&|;)\s*)+"
)
_LEADING_ASSIGNMENTS = re.compile(r"^(?:[A-Za-z_]\w*=\S*\s+)+")
_TRAILING_PIPES = re.compile(
    r"(?:\s*\d?>&\d|\s*2>\s*/dev/null|\s*\|\s*(?:tail|head|tee|cat)\b[^|;&]*|\s*;\s*echo\b[^;]*|\s*\|\|\s*true)+\s*$"
)  # fmt: skip
_RUNNER_PREFIX = re.compile(
    r"^(?:(?:uv|poetry|hatch|pdm|rye|pipenv) run|npx|python[\d.]* -m|bunx|sudo|time|timeout \d+)\s+"
)

_TOOLS_WITHOUT_SUBCOMMANDS = frozenset({"pytest", "make", "tox", "nox", "mypy", "ruff"})


@dataclass(frozen=True, slots=True)
class CommandError:
    """The telling part of a failed command's output."""

    line: str
    """One line, bounded; empty if the output has none."""
    files: tuple[str, ...]
    """The project's own files that it blames, the innermost first."""
    has_signature: bool
    """Whether it is an exception, a compiler's error or a failed test."""


def read_error(output: str) -> CommandError:
    """The complaint in a failed command's output."""
    # Error lines are shorter; patterns would take minutes on minified code.
    output = "\n".join(line[:_LINE_READ_CHARACTERS] for line in output.split("\n"))
    line, has_signature = _find_error_line(output)
    files = [next(part for part in match if part) for match in _STACK_FRAME.findall(output)]
    own = [path for path in reversed(files) if not _LIBRARY_PATH.search(path)]
    return CommandError(one_line(line, LINE_CHARACTERS), unique(own)[:_FILES_MAX], has_signature)


def _find_error_line(output: str) -> tuple[str, bool]:
    for rank, pattern in enumerate(_ERROR_LINES):
        if found := [match.strip() for match in pattern.findall(output) if match.strip()]:
            # An exception ends a traceback; of compilers and test runners the first line counts.
            return found[-1 if rank == 0 else 0], rank < _GENERAL_RANK
    lines = [line.strip() for line in output.split("\n") if not _UNINFORMATIVE_LINE.match(line)]
    return (lines[-1] if lines else ""), False


def shows_failure(output: str) -> bool:
    """Whether the output of a check says that it failed, whatever its exit code."""
    return _FAILURE_REPORT.search(output) is not None


def normalize_command(command: str) -> str:
    """The command without what does not change its meaning: where from, which pipe, which spaces."""
    text = " ".join(command.split())
    text = _LEADING_ASSIGNMENTS.sub("", _LEADING_SETUP.sub("", text))
    return _TRAILING_PIPES.sub("", text).strip() or text


def find_tool(command: str) -> str:
    """What a check runs, without its arguments: `pytest -x tests/a.py` is `pytest`; else empty."""
    text = normalize_command(command)
    if not is_check(text):
        return ""
    bare = _RUNNER_PREFIX.sub("", text)
    names = [word for word in bare.split()[:3] if re.fullmatch(r"[A-Za-z][\w:-]*", word)]
    is_bare_tool = bare != text or bare.split()[0] in _TOOLS_WITHOUT_SUBCOMMANDS
    return " ".join(names[:1] if is_bare_tool else names[:2]) if names else ""


def is_check(command: str) -> bool:
    """Whether the command tests, builds, lints or runs something, so that its failure is news."""
    text = normalize_command(command)
    return _READ_ONLY_COMMAND.match(text) is None and _CHECK_COMMAND.search(text) is not None


def is_read_only(command: str) -> bool:
    """Whether the command only looks, so that neither its success nor its failure is news."""
    return _READ_ONLY_COMMAND.match(normalize_command(command)) is not None
