"""Which test failed and why, in the output of runners that print what the tested program logs between their lines. Pure.

Bun prints an error and then `(fail) name`; a test that passes may log errors of its own before that.
"""

from collections.abc import Iterator

from memd.patterns import compile_lazily

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
