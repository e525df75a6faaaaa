"""Whether a check passes because it was skipped, removed, set aside or suppressed instead of satisfied. Pure.

What counts is the net change between the failure and the pass: a skip that was added and taken back again
silences nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from memd.distill.edits import FileEdit
from memd.distill.episodes import ShellCommand
from memd.distill.proof import command_output
from memd.distill.proof.shell import TOOLS, SimpleCommand, parse_line
from memd.patterns import compile_lazily

_SKIP_MARKS = TOOLS.compile("skips a test")
_ONLY_MARKS = TOOLS.compile("selects other tests")
_IGNORED_STATUS = TOOLS.compile("ignores the status")
_LEFT_OUT = TOOLS.compile("leaves out")
_LEFT_OUT_IN_CONFIGURATION = compile_lazily(
    r"\b(?:exclude\w*|ignore\w*|skip\w*|disable\w*|\"off\"|'off'|allow)\b"
)
_CONFIGURATION_FILE = TOOLS.compile("configuration")
_SUPPRESSIONS = TOOLS.compile("suppresses")
_SUPPRESSED_NAMES = compile_lazily(r"(?:[:=(\[]| )[ \t]*([\w@/-]+(?:,[ \t]*[\w@/-]+)*)")
"""What follows a mark: `:errcheck,gosec`, `[arg-type]`, `(dead_code)`, ` no-undef`."""
_TEST_FILE = TOOLS.compile("test file")
_TEST_DEFINITION = TOOLS.compile("test")
_ASSERTIONS = compile_lazily(
    r"\b(?:assert(?:_\w+!?|[A-Z]\w*)?!?(?!\w)(?!\s*\(?\s*(?:True|true|1)\b\s*\)?\s*;?\s*$)|expect\s*\(|(?:require|assert)\.\w+\()",
    re.MULTILINE,
)
_MOVED_NAME = compile_lazily(r"\b(?:s/[^/]*\btest|def test|func Test|xfail|skip)", re.IGNORECASE)
_LINES_CHANGED_BY_COMMAND = frozenset({"sed", "perl", "ed", "patch"})
_GENERATED = TOOLS.compile("generated")
"""What a build or a run leaves behind: to remove it is how many a failure is mended."""
_REPLACED = "a test that failed was removed or renamed"
SUPPRESSION = "its finding was suppressed"
"""By the way that linters and type checkers offer."""
_CUT_OUTPUT = compile_lazily(r"\|&?\s*(?:head|tail|grep|egrep|rg|sed|awk)\b")
_COMMENT = compile_lazily(r"^\s*(?:#(?!!?\[)|//|--|;|/\*|\*|<!--)")


def find_silencing(
    edits: Sequence[FileEdit],
    commands: Sequence[ShellCommand],
    failures: Sequence[ShellCommand],
    passed: ShellCommand,
) -> str:
    """What silenced a check between its failures and a run of it that passed, as a clause; empty if it was satisfied.

    `edits` and `commands` are those in between, in order.
    """
    failing = "\n".join(f"{run.command}\n{run.output}" for run in failures)
    return (
        _find_marks(edits)
        or _find_removed_tests(edits, failing)
        or _find_command_silencing(commands, failing)
        or _find_fewer_tests(failures, passed)
        or (SUPPRESSION if _suppresses_finding(edits, failing) else "")
    )


def _count_added(pattern: re.Pattern[str], edits: Iterable[FileEdit]) -> int:
    """How many more matches the new texts have than the old ones."""
    return sum(len(pattern.findall(e.new)) - len(pattern.findall(e.old)) for e in edits)


def is_configuration(path: str) -> bool:
    """Whether a file sets up how a project is built or checked."""
    return _CONFIGURATION_FILE.search(path) is not None


def _suppresses_finding(edits: Iterable[FileEdit], failing: str) -> bool:
    """Whether a suppression was added that may be of a finding in the failed output."""
    balance: Counter[tuple[str, str, str]] = Counter()
    for edit in edits:
        balance.update((edit.path, *one) for one in _list_suppressions(edit.new))
        balance.subtract((edit.path, *one) for one in _list_suppressions(edit.old))
    return any(
        count > 0 and (not name or re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", failing))
        for (_, _, name), count in balance.items()
    )


def _list_suppressions(text: str) -> list[tuple[str, str]]:
    """(mark, name of what it suppresses, empty for all) of each suppression in a text."""
    found: list[tuple[str, str]] = []
    for match in _SUPPRESSIONS.finditer(text):
        names = _SUPPRESSED_NAMES.match(text, match.end())
        given = re.findall(r"[\w@/-]+", names[1]) if names else [""]
        mark = " ".join(match.group().split())
        found.extend((mark, name) for name in given or [""])
    return found


def _find_marks(edits: Sequence[FileEdit]) -> str:
    tests = [e for e in edits if _is_code(e.path)]
    if _count_added(_SKIP_MARKS, tests) > 0:
        return "a test was marked to be skipped"
    if _count_added(_ONLY_MARKS, tests) > 0:
        return "other tests alone were selected"
    setup = [e for e in edits if _CONFIGURATION_FILE.search(e.path) or _is_script(e.path)]
    if _count_added(_IGNORED_STATUS, setup) > 0:
        return "its failure was ignored"
    if _count_added(_LEFT_OUT, [*setup, *tests]) > 0:
        return "something was left out of it"
    partial = [e for e in setup if not e.is_whole_file and _CONFIGURATION_FILE.search(e.path)]
    if _count_added(_LEFT_OUT_IN_CONFIGURATION, partial) > 0:
        return "something was left out of it"
    return _find_commented_tests(tests)


def _is_code(path: str) -> bool:
    return not path.endswith((".md", ".txt", ".rst", ".adoc"))


def _is_script(path: str) -> bool:
    return (
        path.endswith((".sh", ".bash", ".mk", ".bat", ".ps1")) or "." not in path.rsplit("/", 1)[-1]
    )


def _find_commented_tests(edits: Sequence[FileEdit]) -> str:
    for edit in edits:
        if not _TEST_FILE.search(edit.path):
            continue
        live = {line.strip() for line in edit.old.splitlines() if not _COMMENT.match(line)}
        for line in edit.new.splitlines():
            bare = _COMMENT.sub("", line).strip()
            if (
                bare
                and bare in live
                and _COMMENT.match(line)
                and bare not in {"", "{", "}", ")", "});"}
            ):
                return "a test was commented out"
    return ""


def _find_removed_tests(edits: Sequence[FileEdit], failing: str) -> str:
    in_tests = [e for e in edits if _TEST_FILE.search(e.path) or _TEST_DEFINITION.search(e.old)]
    before = {name for e in in_tests for name in _list_tests(e.old)}
    after = {name for e in edits for name in _list_tests(e.new)}
    removed = before - after
    if any(name in failing for name in removed):
        return _REPLACED
    if removed and not command_output.names_failed_tests(failing):
        return "a test was removed or renamed"
    for edit in edits:
        if edit.is_whole_file and _TEST_FILE.search(edit.path):
            wanted = command_output.failed_tests_of(failing, edit.path)
            if any(name not in edit.new for name in wanted):
                return _REPLACED
    if _count_added(_ASSERTIONS, [e for e in in_tests if not e.is_whole_file]) < 0:
        return "an assertion was removed"
    if any(
        not e.new.strip() and e.old.strip() and re.search(r"\bassert|expect\(", e.old)
        for e in in_tests
    ):
        return "an assertion was removed"
    return ""


def _list_tests(text: str) -> list[str]:
    names = ("python", "go", "class", "said", "rust", "java")
    return [next(m[n] for n in names if m[n]) for m in _TEST_DEFINITION.finditer(text)]


def _find_command_silencing(commands: Sequence[ShellCommand], failing: str) -> str:
    is_stashed = is_elsewhere = False
    for run in commands:
        for command in parse_line(run.command):
            words = command.words
            if words[0] == "git" and len(words) > 1:
                if words[1] == "stash":
                    action = words[2] if len(words) > 2 else "push"  # noqa: PLR2004  # `git stash ACTION`
                    is_stashed = (
                        action in {"push", "save", "-u", "-k"} or action.startswith("-")
                        if action not in {"pop", "apply"}
                        else False
                    )
                elif _switches_branch(words):
                    is_elsewhere = not is_elsewhere
                elif words[1] == "reset" and "--hard" in words:
                    return "the work was thrown away"
            if reason := _find_file_silencing(command, failing):
                return reason
    if is_stashed:
        return "the work was set aside (`git stash`)"
    return "another branch was checked out" if is_elsewhere else ""


def _switches_branch(words: Sequence[str]) -> bool:
    if words[1] == "switch":
        return not {"-c", "-C", "--create"} & set(words)
    if words[1] != "checkout" or {"-b", "-B", "--"} & set(words):
        return False
    given = [w for w in words[2:] if not w.startswith("-") or w == "-"]
    return len(given) == 1 and re.search(r"\.\w{1,5}$|^\.$", given[0]) is None


def _find_file_silencing(command: SimpleCommand, failing: str) -> str:
    words = command.words
    name = words[1] if words[0] == "git" and len(words) > 1 else words[0]
    paths = [w for w in words[1:] if not w.startswith("-")]
    if name in {"rm", "mv", "unlink", "trash"}:
        given = paths[1:] if words[0] == "git" else paths
        for path in given if name != "mv" else given[:-1]:
            stem = path.rstrip("/*").rsplit("/", 1)[-1]
            if _GENERATED.search(path):
                continue
            if _TEST_FILE.search(path) or (
                stem and re.search(rf"(?<![\w-]){re.escape(stem)}(?![\w-])", failing)
            ):
                return f"`{path}` was {'moved' if name == 'mv' else 'removed'}"
    if words[0] in _LINES_CHANGED_BY_COMMAND:
        text = " ".join(words)
        if (
            _SKIP_MARKS.search(text)
            or (_MOVED_NAME.search(text) and any(map(_TEST_FILE.search, paths)))
            or (any(map(_TEST_FILE.search, paths)) and re.search(r"\bassert|\bexpect\b", text))
            or (
                any(map(_TEST_FILE.search, paths))
                and re.search(r"(?:^|[/\d$])d['\"]?(?:\s|$)", text)
            )
        ):
            return "a test was changed by a command"
        if _IGNORED_STATUS.search(text) or _SUPPRESSIONS.search(text):
            return "its failure was ignored"
    return ""


def _find_fewer_tests(failures: Sequence[ShellCommand], passed: ShellCommand) -> str:
    """Whether the same command ran fewer tests than before; of an output that a pipe cuts, nobody knows."""
    if _CUT_OUTPUT.search(passed.command):
        return ""
    for run in failures:
        if _CUT_OUTPUT.search(run.command):
            continue
        if command_output.normalize_command(run.command) == command_output.normalize_command(
            passed.command
        ):
            before = command_output.count_tests(run.output)
            after = command_output.count_tests(passed.output)
            if before is not None and after is not None and after < before:
                return f"{after} tests ran instead of {before}"
    return ""
