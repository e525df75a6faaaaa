"""Which failures a colleague would want to hear of: not what merely asked, nor what a formatter says. Pure."""

from collections.abc import Sequence

from memd.distill.episodes import ShellCommand
from memd.distill.proof import checks, command_output, cures
from memd.distill.proof.shell import parse_line
from memd.distill.proof.tool_grammar import split_words
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
