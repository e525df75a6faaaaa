"""The objections to a check that passed: it was skipped, removed, set aside or suppressed, or somebody says otherwise. Pure.

What counts of the edits is the net change between the failure and the pass: a skip that was added and taken back again
silences nothing. Of what is said: the agent describes in its closing message what was wrong before, so only what it says
of the present counts, and what it says of the past only if nothing after it says that it works. The user answers to a
claim, so a plain `doesn't work` is enough. Conditions, yes-or-no questions and other people's words deny nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memd.distill import text as sentences
from memd.distill.edits import FileEdit
from memd.distill.episodes import ShellCommand, Story, Utterance
from memd.distill.proof import command_output
from memd.distill.proof.shell import TOOLS, parse_line
from memd.patterns import Table, compile_lazily
from memd.text import content_stems, is_stop_word, stem, words

DENIALS = Table("distill/proof/denials.toml")
_PLAIN_NO_WORDS = 4
_WHEN = compile_lazily(r"^\W*when\b", re.IGNORECASE)
GENERIC_STEMS = frozenset(map(stem, DENIALS.list_words("generic")))
_SORTS = {sort: DENIALS.compile(sort, re.IGNORECASE) for sort in ("test", "build", "lint", "types")}
_USER_CHARACTERS = 2_000


def name_sorts(text: str) -> frozenset[str]:
    """The sorts of checks that a sentence or a command names: `npm run lint` is of the sort `lint`."""
    return frozenset(sort for sort, pattern in _SORTS.items() if pattern.search(text))


def claims_fix(title: str) -> bool:
    """Return whether a title says that something is fixed, which takes proof."""
    return DENIALS["claims fix"].search(title) is not None


@dataclass(frozen=True, slots=True)
class Denial:
    """A sentence that says that something is not fixed. `at` is UTC milliseconds."""

    event_id: int
    at: int
    speaker: str
    quote: str
    subject: frozenset[str]
    """Stems of what it says so about; empty: whatever was spoken of last."""
    sorts: frozenset[str] = frozenset()
    """The sorts of checks that it names."""

    def concerns(self, about: frozenset[str], command: str = "") -> bool:
        """Return whether it can be about something with these stems, which this command checked."""
        checked = name_sorts(command)
        if self.sorts and checked and not self.sorts & checked:
            return False
        return not self.subject or bool(self.subject & about)


def find_denials(said: Utterance) -> list[Denial]:
    """The sentences of this speaker that say that something is still broken."""
    is_user = said.speaker == "User"
    text = sentences.extract_own_words(said.text)
    split = sentences.split_sentences(text[:_USER_CHARACTERS] if is_user else text)
    found = (
        (one, _find_denied(one, split[number:], is_user=is_user))
        for number, one in enumerate(split, start=1)
    )
    return [
        Denial(
            said.event_id, said.at, said.speaker, sentences.clip_quote(one), subject, name_sorts(one)
        )
        for one, subject in found
        if subject is not None
    ]  # fmt: skip


def find_story_denials(story: Story) -> list[Denial]:
    """All denials of an episode, of the user and the agent, in order of time."""
    found = [one for said in (*story.prompts, *story.answers) for one in find_denials(said)]
    return sorted(found, key=lambda one: (one.at, one.event_id))


def _find_denied(
    sentence: str, following: Sequence[str], *, is_user: bool
) -> frozenset[str] | None:
    """The subject of a denial; None if the sentence denies nothing."""
    bare = sentences.blank_quotes(sentence)
    if _asks_whether(bare):
        return None
    if is_user and DENIALS["plain no"].match(bare) and len(words(bare)) <= _PLAIN_NO_WORDS:
        return frozenset()
    if DENIALS["other thing"].search(bare):
        return None
    for clause in DENIALS["clause end"].split(bare):
        if is_user:
            match = DENIALS["user says"].search(clause)
        else:
            match = DENIALS["agent says"].search(clause)
            if match is None and (match := DENIALS["agent said"].search(clause)):
                rest = [bare[bare.find(clause) + len(clause) :], *following]
                match = None if any(DENIALS["works"].search(one) for one in rest) else match
        if match and not _is_conditional(clause, match, bare):
            return _read_subject(clause[: match.start()])
    return None


def _asks_whether(sentence: str) -> bool:
    """Return whether this is a question that yes or no answers; `why is it still red?` takes for granted that it is."""
    if DENIALS["explains why"].match(sentence):
        return False
    return (
        sentence.rstrip("\"')”» ").endswith("?")
        or DENIALS["asks whether"].match(sentence) is not None
    )


def _is_conditional(clause: str, match: re.Match[str], sentence: str) -> bool:
    before = sentence[: sentence.find(clause) + match.start()]
    within = clause[: match.start()]
    if DENIALS["condition"].search(within) or _WHEN.match(within):
        return True
    # `If you run it again, it still fails`: the condition is a clause of its own.
    return re.match(r"^\W*(?:if|unless|in case|should)\b", before, re.IGNORECASE) is not None


def _read_subject(text: str) -> frozenset[str]:
    if not text.strip() or DENIALS["pronoun ends"].search(text):
        return frozenset()
    telling = " ".join(word for word in words(text) if not is_stop_word(word.lower()))
    return frozenset(content_stems(telling)) - GENERIC_STEMS


# ── A check that was silenced ──────────────────────────────────────────────────────────────────────

_SUPPRESSED_NAMES = compile_lazily(r"(?:[:=(\[]| )[ \t]*([\w@/-]+(?:,[ \t]*[\w@/-]+)*)")
"""What follows a mark: `:errcheck,gosec`, `[arg-type]`, `(dead_code)`, ` no-undef`."""
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
    """Find what silenced a check between its failures and a run of it that passed, as a clause; empty if it was satisfied.

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
    """Count how many more matches the new texts have than the old ones."""
    return sum(len(pattern.findall(e.new)) - len(pattern.findall(e.old)) for e in edits)


def is_configuration(path: str) -> bool:
    """Return whether a file sets up how a project is built or checked."""
    return TOOLS["configuration"].search(path) is not None


def _suppresses_finding(edits: Iterable[FileEdit], failing: str) -> bool:
    """Return whether a suppression was added that may be of a finding in the failed output."""
    balance: Counter[tuple[str, str, str]] = Counter()
    for edit in edits:
        balance.update((edit.path, *one) for one in _list_suppressions(edit.new))
        balance.subtract((edit.path, *one) for one in _list_suppressions(edit.old))
    return any(
        count > 0 and (not name or re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", failing))
        for (_, _, name), count in balance.items()
    )


def _list_suppressions(text: str) -> list[tuple[str, str]]:
    """List (mark, name of what it suppresses, empty for all) of each suppression in a text."""
    found: list[tuple[str, str]] = []
    for match in TOOLS["suppresses"].finditer(text):
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
        ("a test was marked to be skipped", TOOLS["skips a test"], code),
        ("other tests alone were selected", TOOLS["selects other tests"], code),
        ("its failure was ignored", TOOLS["ignores the status"], setup),
        ("something was left out of it", TOOLS["leaves out"], list({*setup, *code})),
        ("something was left out of it", TOOLS["leaves out in configuration"], partial),
    ):
        if _count_added(pattern, among) > 0:
            return reason
    is_commented = any(_comments_out(e) for e in code if TOOLS["test file"].search(e.path))
    return "a test was commented out" if is_commented else ""


def _comments_out(edit: FileEdit) -> bool:
    live = {line.strip() for line in edit.old.splitlines() if not _COMMENT.match(line)}
    dead = (line for line in edit.new.splitlines() if _COMMENT.match(line))
    return any(re.search(r"\w", bare := _COMMENT.sub("", line).strip()) and bare in live for line in dead)  # fmt: skip


def _find_removed_tests(edits: Sequence[FileEdit], failing: str) -> str:
    in_tests = [
        e for e in edits if TOOLS["test file"].search(e.path) or TOOLS["test"].search(e.old)
    ]
    removed = {name for e in in_tests for name in _list_tests(e.old)}
    removed -= {name for e in edits for name in _list_tests(e.new)}
    is_any = bool(removed) and not command_output.list_failed_tests(failing)
    is_rewritten = any(
        name not in edit.new
        for edit in in_tests
        if edit.is_whole_file
        for name in command_output.failed_tests_of(failing, edit.path)
    )
    if is_any or is_rewritten or any(name in failing for name in removed):
        return "a test was removed or renamed"
    fewer = _count_added(TOOLS["assertion"], [e for e in in_tests if not e.is_whole_file]) < 0
    emptied = any(not e.new.strip() and re.search(r"\bassert|expect\(", e.old) for e in in_tests)
    return "an assertion was removed" if fewer or emptied else ""


def _list_tests(text: str) -> list[str]:
    return [next(filter(None, m.groups()[::-1])) for m in TOOLS["test"].finditer(text)]


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
    """Find what a command that removes, moves or edits files does to the tests, or to what the failure names."""
    name, *rest = words
    paths = [w for w in rest if not w.startswith("-")]
    if name in {"rm", "mv", "unlink", "trash"}:
        for path in paths[:-1] if name == "mv" else paths:
            stem = re.escape(path.rstrip("/*").rsplit("/", 1)[-1])
            is_named = stem and re.search(rf"(?<![\w-]){stem}(?![\w-])", failing)
            if not TOOLS["generated"].search(path) and (
                is_named or TOOLS["test file"].search(path)
            ):
                return f"`{path}` was {'moved' if name == 'mv' else 'removed'}"
    is_in_place = any(map(_IN_PLACE.match, rest))  # without it, `sed` only prints
    if name in {"ed", "patch"} or (name in {"sed", "perl"} and is_in_place):
        text = " ".join(words)
        if TOOLS["skips a test"].search(text) or any(map(TOOLS["test file"].search, paths)):
            return "a test was changed by a command"
        if TOOLS["ignores the status"].search(text) or TOOLS["suppresses"].search(text):
            return "its failure was ignored"
    return ""


def _find_fewer_tests(failures: Sequence[ShellCommand], passed: ShellCommand) -> str:
    """Find out whether the same command ran fewer tests than before; of an output that a pipe cuts, nobody knows."""
    line = command_output.normalize_command(passed.command)
    after = command_output.count_tests(passed.output)
    for run in failures:
        is_cut = _CUT_OUTPUT.search(run.command) or _CUT_OUTPUT.search(passed.command)
        before = command_output.count_tests(run.output)
        is_same = command_output.normalize_command(run.command) == line and not is_cut
        if is_same and before is not None and after is not None and after < before:
            return f"{after} tests ran instead of {before}"
    return ""
