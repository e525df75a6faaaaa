"""What a failed command says: the line that tells, the files it blames, whether it matters. Pure.

Not here: what mended it (failures.py).
"""

import re
from dataclasses import dataclass

from memd.text import one_line, unique

LINE_CHARACTERS = 200
_LINE_READ = 500
_FILES_MAX = 6

_TELLING = tuple(
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
_GENERAL = len(_TELLING) - 1
"""The last pattern tells which line to show, but any program may print it."""
_NO_NEWS = re.compile(r"^(?:Exit code \d+|\s*[-=~^_*#\s]*|Ran \d+ tests? in .*|FAILED \(.*\))$")
_SHOWS_FAILURE = re.compile(
    r"^FAILED \(|^Traceback \(most recent call last\):|^=+ .*\b\d+ (?:failed|error)|^--- FAIL: "
    r"|^error: could not compile|^npm (?:ERR!|error) |^Tests:\s+\d+ failed|^[ \t]+\d+ failing\b|^BUILD FAILED"
    r"|^Found \d+ errors? in |^FAILED \S+::|^test result: FAILED",
    re.MULTILINE,
)
_FRAME = re.compile(
    r"File \"([^\"\n]+)\", line \d+"
    r"|^[ \t]*at .*?\(?((?:/|\w:\\|\.{0,2}/)?[^\s():]+):\d+:\d+\)?$"
    r"|^[ \t]*--> (\S+?):\d+:\d+"
    r"|^[ \t]*(/?[\w./-]+\.\w{1,5})[:(]\d+",
    re.MULTILINE,
)
_FOREIGN = re.compile(
    r"site-packages/|dist-packages/|node_modules/|/usr/(?:local/)?lib/|^<|^node:|/lib/python\d|\.cargo/registry/"
    r"|/rustlib/|/go/pkg/|^internal/"
)
_CHECK = re.compile(
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
_LOOK = re.compile(
    r"(?:cat|ls|ll|grep|egrep|rg|ag|find|fd|head|tail|less|wc|which|type|command|stat|file|cd|pwd|echo|printf|env"
    r"|test|\[+|diff|cmp|tree|du|df|ps|pgrep|sleep|true|false|exit|kill|sed -n|jq|curl|ping|date|whoami|uname"
    r"|git (?:status|diff|log|show|branch|grep|ls-files|rev-parse|remote|blame|stash list))(?=\s|$)"
)
_LEADING = re.compile(
    r"^(?:\s*(?:cd\s+\S+|source\s+\S+|\.\s+\S+|set -\w+|export \S+)\s*(?:&&|;)\s*)+"
)
_ASSIGNMENTS = re.compile(r"^(?:[A-Za-z_]\w*=\S*\s+)+")
_TRAILING = re.compile(
    r"(?:\s*\d?>&\d|\s*2>\s*/dev/null|\s*\|\s*(?:tail|head|tee|cat)\b[^|;&]*|\s*;\s*echo\b[^;]*|\s*\|\|\s*true)+\s*$"
)  # fmt: skip
_RUNNER = re.compile(
    r"^(?:(?:uv|poetry|hatch|pdm|rye|pipenv) run|npx|python[\d.]* -m|bunx|sudo|time|timeout \d+)\s+"
)


@dataclass(frozen=True, slots=True)
class Complaint:
    """The telling part of a failed command's output."""

    line: str
    """One line, bounded; empty if the output says nothing."""
    files: tuple[str, ...]
    """The project's own files that it blames, the innermost first."""
    has_signature: bool
    """Whether it is an exception, a compiler's error or a failed test."""


def read(output: str) -> Complaint:
    """The complaint in a failed command's output."""
    # No line that tells is longer than this, and minified code must not cost minutes.
    output = "\n".join(line[:_LINE_READ] for line in output.split("\n"))
    line, has_signature = _telling_line(output)
    files = [next(part for part in match if part) for match in _FRAME.findall(output)]
    own = [path for path in reversed(files) if not _FOREIGN.search(path)]
    return Complaint(one_line(line, LINE_CHARACTERS), unique(own)[:_FILES_MAX], has_signature)


def _telling_line(output: str) -> tuple[str, bool]:
    for rank, pattern in enumerate(_TELLING):
        if found := [match.strip() for match in pattern.findall(output) if match.strip()]:
            # An exception ends a traceback; of compilers and test runners the first line counts.
            return found[-1 if rank == 0 else 0], rank < _GENERAL
    lines = [line.strip() for line in output.split("\n") if not _NO_NEWS.match(line)]
    return (lines[-1] if lines else ""), False


def shows_failure(output: str) -> bool:
    """Whether the output of a check says that it failed, whatever its exit code."""
    return _SHOWS_FAILURE.search(output) is not None


def normal(command: str) -> str:
    """The command without what does not change its meaning: where from, which pipe, which spaces."""
    text = " ".join(command.split())
    text = _ASSIGNMENTS.sub("", _LEADING.sub("", text))
    return _TRAILING.sub("", text).strip() or text


def tool_of(command: str) -> str:
    """What a check runs, without its arguments: `pytest -x tests/a.py` is `pytest`; else empty."""
    text = normal(command)
    if not is_check(text):
        return ""
    bare = _RUNNER.sub("", text)
    names = [word for word in bare.split()[:3] if re.fullmatch(r"[A-Za-z][\w:-]*", word)]
    is_bare_tool = bare != text or bare.split()[0] in (
        "pytest",
        "make",
        "tox",
        "nox",
        "mypy",
        "ruff",
    )
    return " ".join(names[:1] if is_bare_tool else names[:2]) if names else ""


def is_check(command: str) -> bool:
    """Whether the command tests, builds, lints or runs something, so that its failure is news."""
    text = normal(command)
    return _LOOK.match(text) is None and _CHECK.search(text) is not None


def is_look(command: str) -> bool:
    """Whether the command only looks, so that neither its success nor its failure is news."""
    return _LOOK.match(normal(command)) is not None
