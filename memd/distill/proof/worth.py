"""Failures that a colleague would want to hear of: not what merely asked, what a formatter says, or a slip. Pure."""

import re
from collections.abc import Sequence

from memd.distill.edits import FileEdit
from memd.distill.episodes import ShellCommand, Story
from memd.distill.proof import checks, command_output, cures
from memd.distill.proof.chains import REWRITTEN, SUPPRESSED, UNMENDED, FailureChain
from memd.distill.proof.shell import parse_line, split_words
from memd.distill.proof.silencing import is_configuration
from memd.patterns import compile_lazily

_CODE_OPTIONS = split_words("-c -e -E -p -r --eval --print --execute -")
_INTERPRETER = compile_lazily(
    r"(?:.*/)?(?:python|pypy|py|node|ruby|perl|php|deno|bun|elixir|iex|Rscript|lua)[\d.]*$"
)
_CLIENTS = split_words(
    "psql sqlite3 mysql mariadb mongosh redis-cli duckdb clickhouse-client bq curl wget http https nc dig nslookup host ping lsof netstat ss"
    " ifconfig ip journalctl ps pgrep top htop free uptime sleep wait xxd file locate man timeout strings awk sed sort uniq cut tr xargs"
)
"""Programs that ask, and those that only shape what others say."""
_ASKING_VERBS = {
    "systemctl": split_words("status is-active is-enabled is-failed show cat list-units list-unit-files"),
    "launchctl": split_words("list print"), "service": split_words("status"),
    "docker": split_words("ps logs inspect images port top stats version info ls config"), "podman": split_words("ps logs inspect images"),
    "docker-compose": split_words("ps logs config images"),
    "kubectl": split_words("get describe logs version top explain"), "helm": split_words("list status get"),
    "gh": split_words("view list status diff checks api search watch"), "glab": split_words("view list status"),
    "pip": split_words("show list freeze index check"), "npm": split_words("ls list view outdated info why"), "pnpm": split_words("ls list why outdated"),
    "cargo": split_words("metadata tree search"), "go": split_words("list env version doc"), "brew": split_words("list info search"),
    "terraform": split_words("show output state"), "mix": split_words("help"), "uv": split_words("tree"), "git": split_words("config"),
    "aws": split_words("describe list get"), "gcloud": split_words("describe list"),
}  # fmt: skip
"""Program → a word of its subcommand with which it only tells."""
_ASKS_FOR_HELP = split_words("--version -V --help -h version help")
_REMOTE_VALUED = split_words("-i -p -o -l -F -J -L -R")
_STYLE_CHECK = compile_lazily(
    r"(?:^|[\s/:])(?:lint\S*|\S*:lint|eslint|biome|prettier|fmt|format\S*|ruff|black|isort|flake8|pylint|clippy|rubocop|shellcheck|markdownlint\S*|stylelint|oxlint"
    r"|golangci-lint|yamllint|pre-commit|commitlint|hadolint|credo|swiftlint|ktlint)(?=\s|$)"
)
_STYLE_COMPLAINT = compile_lazily(
    r"Formatter would have|would reformat|would be reformatted|File content differs from formatting|[Cc]ode style issues|not sorted|is(?: defined but)? never used|\b(?:is|are) unused\b"
    r"|(?:errors|warnings) were emitted while running checks|\bMD\d{3}/|\bUnexpected (?:any|empty block)\b|^Diff in "
)
_HOOKED = split_words("commit push merge rebase")
"""What of git runs hooks: their complaints are of checks that somebody runs anyway."""


def is_probe(line: str) -> bool:
    """Whether a line of shell merely asks, so that no for an answer is no failure: inline code, a status, a query, a loop that waits."""
    parts = [one.words for one in parse_line(line)]
    return all(map(_asks, parts))


def _asks(words: tuple[str, ...]) -> bool:
    words, _ = checks.strip_wrappers(words)
    name = words[0].rsplit("/", 1)[-1]
    if " " in words[0]:
        return True  # a loop or a condition: nothing tells which of its commands failed
    if command_output.is_read_only(" ".join((name, *words[1:]))) or name in _CLIENTS:
        return True
    if _INTERPRETER.match(words[0]):
        return runs_inline_code(words)
    if name == "ssh":
        return is_probe(_find_remote_line(words))
    return bool(
        {*words[1:4]} & _ASKING_VERBS.get(name, frozenset()) or _ASKS_FOR_HELP & {*words[1:]}
    )


def runs_inline_code(words: Sequence[str]) -> bool:
    """Whether an interpreter runs code that stands in the command itself, or asks for its version."""
    given = words[1:]
    return not given or any(
        word in _CODE_OPTIONS | _ASKS_FOR_HELP or word.startswith("<<") for word in given
    )


def _find_remote_line(words: Sequence[str]) -> str:
    """What `ssh` runs on the other machine; empty for a session there."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in _REMOTE_VALUED else 1]
    return " ".join(rest[1:])


def is_about_style(run: ShellCommand) -> bool:
    """Whether a failure is a linter's or a formatter's: the next run of it says the same again."""
    error = command_output.read_error(run.output)
    if _STYLE_COMPLAINT.search(error.line):
        return True
    commands = [" ".join(one.words) for one in parse_line(run.command)]
    judged = [text for text in commands if not command_output.is_read_only(text)]
    has_hooks = any(
        text.startswith("git ") and text.split()[1] in _HOOKED for text in judged if " " in text
    )
    if has_hooks:
        return not (error.is_of_code or command_output.names_failed_tests(run.output))
    return (
        bool(judged)
        and not error.is_of_code
        and any(map(_STYLE_CHECK.search, judged))
        and not any(
            command_output.is_check(text) and not _STYLE_CHECK.search(text) for text in judged
        )
    )


def still_stands(run: ShellCommand) -> bool:
    """Whether a failure that nothing mended is news to others: of a check that says what is wrong."""
    error = command_output.read_error(run.output)
    says_why = error.has_signature or command_output.shows_failure(run.output)
    if not says_why or is_probe(run.command):
        return False
    is_refused = cures.refused_to_start(run) and not error.has_signature
    return bool(checks.read_checks(run.line, run.directory)) and not is_refused


# ── What an agent's own hand caused and fixed ─────────────────────────────────────────────────────

_ASKS_FOR_FIX = compile_lazily(
    r"\b(?:fix(?:es|ed|ing)?|bug|bugs|why|broken?|breaks|crash\w*|fails?|failed|failing|failure|error|errors"
    r"|exception|wrong|debug|traceback|stack trace|regression|hangs?|flaky|40\d|50\d"
    r"|(?:does|is|are|did)(?: not|n't)|(?<=\w )(?<!please )do(?: not|n't)|can(?: not|'t|not)|won't|no longer works?)\b",
    re.IGNORECASE,
)

_BLAMED = compile_lazily(r"(\S+?\.\w{1,5})[:(]\d+")
_REQUEST_CHARACTERS = 800
_ERROR_NAME = compile_lazily(r"\b[A-Z]\w*(?:Error|Exception|Panic)\b|\b[A-Z]{1,6}\d{3,5}\b")
"""`KeyError`, `TS2339`, `E0277`."""


def is_slip(chain: FailureChain, story: Story) -> bool:
    """Whether a failure came of what the turn had just changed and went away in it, and teaches nothing that lasts."""
    if chain.is_other_way:
        return not cures.teaches_a_call(chain.failures[-1])
    if is_asked_for(chain, story):
        return False
    own = _list_own_edits(chain, story)
    if not own or _was_told_between(chain, story) or not _is_blamed(own, chain):
        return False
    if chain.rule == UNMENDED:
        # It went on with its work, and what came of the check nobody saw.
        last = chain.failures[-1]
        return any((e.at, e.event_id) > (last.at, last.event_id) for e in chain.edits)
    return chain.rule in {REWRITTEN, SUPPRESSED} or _is_mended_by_hand(chain, story)


def _is_mended_by_hand(chain: FailureChain, story: Story) -> bool:
    """Whether changes of code alone mended it, and its cause lies in that code."""
    if not chain.is_mended or not all(map(cures.is_by_hand, chain.steps)):
        return False
    is_code = not any(is_configuration(edit.path) for edit in chain.edits)
    is_told = _is_told(chain, story)
    return is_code and not is_told


def _is_told(chain: FailureChain, story: Story) -> bool:
    """Whether the closing message names the error: the agent holds it worth a word."""
    lines = (command_output.read_error(run.output).line for run in chain.failures)
    names = {match[0] for line in lines if (match := _ERROR_NAME.search(line))}
    return any(name in story.answer for name in names)


def _is_blamed(own: list[FileEdit], chain: FailureChain) -> bool:
    """Whether the last error may be of these changes: it names one of their files, or none at all."""
    error = command_output.read_error(chain.failures[-1].output)
    blamed = {path.rsplit("/", 1)[-1] for path in error.files}
    if located := _BLAMED.match(error.line):
        blamed.add(located[1].rsplit("/", 1)[-1])
    return not blamed or any(edit.path.rsplit("/", 1)[-1] in blamed for edit in own)


def _list_own_edits(chain: FailureChain, story: Story) -> list[FileEdit]:
    """What the piece of work had changed before the check failed, since the user last spoke of a failure."""
    first = chain.failures[0]
    before = [said for said in story.prompts if said.at <= first.at]
    begun = max(
        (said.at for said in before[1:] if _asks_for_fix(said.text)),
        default=min((said.at for said in before), default=first.at),
    )
    return [
        e for e in story.edits if begun <= e.at and (e.at, e.event_id) < (first.at, first.event_id)
    ]


def _was_told_between(chain: FailureChain, story: Story) -> bool:
    """Whether the user said something between the failure and the pass, or what was changed next."""
    passed = chain.passed or chain.excused
    later = (edit.at for edit in chain.edits if edit.at > chain.failures[-1].at)
    end = passed.at if passed else next(later, story.last_at)
    return any(chain.failures[0].at < said.at <= end for said in story.prompts)


def is_asked_for(chain: FailureChain, story: Story) -> bool:
    """Whether the user asked about the failure: it happened before anything was changed."""
    if not _asks_for_fix(story.prompt):
        return False
    first = (chain.failures[0].at, chain.failures[0].event_id)
    return not any((edit.at, edit.event_id) < first for edit in story.edits)


def _asks_for_fix(prompt: str) -> bool:
    if len(prompt) > _REQUEST_CHARACTERS:
        # Of a plan or a log that was pasted, the request stands at an end.
        prompt = f"{prompt[: _REQUEST_CHARACTERS // 2]}\n{prompt[-_REQUEST_CHARACTERS // 2 :]}"
    return _ASKS_FOR_FIX.search(prompt) is not None


def is_news(chain: FailureChain, story: Story) -> bool:
    """Whether a colleague would want to hear of it, with what mended it or that it still stands."""
    last = chain.failures[-1]
    if all(map(is_about_style, chain.failures)) and not is_asked_for(chain, story):
        return False
    if chain.rule == UNMENDED:
        return still_stands(last)
    if chain.is_mended or chain.objection:
        return True
    if chain.is_other_way:
        # A look at what is not there is no failure; a program that is not there is one.
        is_found = cures.was_not_found(last) or not is_probe(last.command)
        return is_found and cures.refused_to_start(last)
    # It passed as it was: only a test that fails at times is worth a word.
    return command_output.names_failed_tests(last.output)
