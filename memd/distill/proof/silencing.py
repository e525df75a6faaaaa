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
from memd.distill.proof.shell import TOOLS, parse_line
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
_GENERATED = TOOLS.compile("generated")
"""What a build or a run leaves behind: to remove it is how many a failure is mended."""
SUPPRESSION = "its finding was suppressed"
"""By the way that linters and type checkers offer."""
_CUT_OUTPUT = compile_lazily(r"\|&?\s*(?:head|tail|grep|egrep|rg|sed|awk)\b")
_SCRIPT = compile_lazily(r"\.(?:sh|bash|mk|bat|ps1)$|(?:^|/)[^/.]+$")
_IN_PLACE = compile_lazily(r"-\w*i|--in-place")
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
    code = [e for e in edits if not e.path.endswith((".md", ".txt", ".rst", ".adoc"))]
    setup = [e for e in edits if is_configuration(e.path) or _SCRIPT.search(e.path)]
    partial = [e for e in setup if not e.is_whole_file and is_configuration(e.path)]
    for reason, pattern, among in (
        ("a test was marked to be skipped", _SKIP_MARKS, code),
        ("other tests alone were selected", _ONLY_MARKS, code),
        ("its failure was ignored", _IGNORED_STATUS, setup),
        ("something was left out of it", _LEFT_OUT, list({*setup, *code})),
        ("something was left out of it", _LEFT_OUT_IN_CONFIGURATION, partial),
    ):
        if _count_added(pattern, among) > 0:
            return reason
    is_commented = any(_comments_out(e) for e in code if _TEST_FILE.search(e.path))
    return "a test was commented out" if is_commented else ""


def _comments_out(edit: FileEdit) -> bool:
    live = {line.strip() for line in edit.old.splitlines() if not _COMMENT.match(line)}
    dead = (line for line in edit.new.splitlines() if _COMMENT.match(line))
    return any(re.search(r"\w", bare := _COMMENT.sub("", line).strip()) and bare in live for line in dead)  # fmt: skip


def _find_removed_tests(edits: Sequence[FileEdit], failing: str) -> str:
    in_tests = [e for e in edits if _TEST_FILE.search(e.path) or _TEST_DEFINITION.search(e.old)]
    removed = {name for e in in_tests for name in _list_tests(e.old)}
    removed -= {name for e in edits for name in _list_tests(e.new)}
    is_any = bool(removed) and not command_output.names_failed_tests(failing)
    is_rewritten = any(
        name not in edit.new
        for edit in in_tests
        if edit.is_whole_file
        for name in command_output.failed_tests_of(failing, edit.path)
    )
    if is_any or is_rewritten or any(name in failing for name in removed):
        return "a test was removed or renamed"
    fewer = _count_added(_ASSERTIONS, [e for e in in_tests if not e.is_whole_file]) < 0
    emptied = any(not e.new.strip() and re.search(r"\bassert|expect\(", e.old) for e in in_tests)
    return "an assertion was removed" if fewer or emptied else ""


def _list_tests(text: str) -> list[str]:
    return [next(filter(None, m.groups()[::-1])) for m in _TEST_DEFINITION.finditer(text)]


def _find_command_silencing(commands: Sequence[ShellCommand], failing: str) -> str:
    is_stashed = is_elsewhere = False
    for command in (one for run in commands for one in parse_line(run.command)):
        git = command.words[1:] if command.words[0] == "git" else ()
        if git[:1] == ("stash",):
            action = (*git[1:2], "push")[0]
            is_stashed = action in {"push", "save"} or action.startswith("-")
        elif git and _switches_branch(git):
            is_elsewhere = not is_elsewhere
        elif git[:1] == ("reset",) and "--hard" in git:
            return "the work was thrown away"
        elif reason := _find_file_silencing(git or command.words, failing):
            return reason
    if is_stashed:
        return "the work was set aside (`git stash`)"
    return "another branch was checked out" if is_elsewhere else ""


def _switches_branch(git: Sequence[str]) -> bool:
    if git[0] == "switch":
        return not {"-c", "-C", "--create"} & set(git)
    if git[0] != "checkout" or {"-b", "-B", "--"} & set(git):
        return False
    given = [w for w in git[1:] if not w.startswith("-") or w == "-"]
    return len(given) == 1 and re.search(r"\.\w{1,5}$|^\.$", given[0]) is None


def _find_file_silencing(words: Sequence[str], failing: str) -> str:
    """What a command that removes, moves or edits files does to the tests, or to what the failure names."""
    name, *rest = words
    paths = [w for w in rest if not w.startswith("-")]
    if name in {"rm", "mv", "unlink", "trash"}:
        for path in paths[:-1] if name == "mv" else paths:
            stem = re.escape(path.rstrip("/*").rsplit("/", 1)[-1])
            is_named = stem and re.search(rf"(?<![\w-]){stem}(?![\w-])", failing)
            if not _GENERATED.search(path) and (is_named or _TEST_FILE.search(path)):
                return f"`{path}` was {'moved' if name == 'mv' else 'removed'}"
    is_in_place = any(map(_IN_PLACE.match, rest))  # without it, `sed` only prints
    if name in {"ed", "patch"} or (name in {"sed", "perl"} and is_in_place):
        text = " ".join(words)
        if _SKIP_MARKS.search(text) or any(map(_TEST_FILE.search, paths)):
            return "a test was changed by a command"
        if _IGNORED_STATUS.search(text) or _SUPPRESSIONS.search(text):
            return "its failure was ignored"
    return ""


def _find_fewer_tests(failures: Sequence[ShellCommand], passed: ShellCommand) -> str:
    """Whether the same command ran fewer tests than before; of an output that a pipe cuts, nobody knows."""
    line = command_output.normalize_command(passed.command)
    after = command_output.count_tests(passed.output)
    for run in failures:
        is_cut = _CUT_OUTPUT.search(run.command) or _CUT_OUTPUT.search(passed.command)
        before = command_output.count_tests(run.output)
        is_same = command_output.normalize_command(run.command) == line and not is_cut
        if is_same and before is not None and after is not None and after < before:
            return f"{after} tests ran instead of {before}"
    return ""
