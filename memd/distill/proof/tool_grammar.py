"""What the words after a tool's name mean: a table of the tools that agents check their work with."""

from dataclasses import dataclass

Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class ToolGrammar:
    """What the words after a tool's name mean. Options that are not named must be equal in two runs."""

    verbs: int = 0
    """Words of the subcommand: 1 for `go test`."""
    targets: str = ""
    """What a bare word is: `path`, `package`, `module`, `goal`, `name` (part of a test's name); else a plain argument."""
    narrowing: Words = frozenset()
    """Options with a value that select a part of what would run."""
    excluding: Words = frozenset()
    """Options with a value that leave something out."""
    flags_narrowing: Words = frozenset()
    """The same without a value."""
    harmless: Words = frozenset()
    """Options that change how a run looks, not what it finds."""
    harmless_valued: Words = frozenset()
    widening: Words = frozenset()
    """Options that make a run find more."""
    directory: Words = frozenset()
    """Options that name the directory to run in."""


def split_words(words: str) -> Words:
    """The words of a table's entry."""
    return frozenset(words.split())


COMMON_HARMLESS = split_words(
    "-v -vv -vvv --verbose -q -qq --quiet --silent --color --no-color --colors --colour --nocolor -s"
)
PYTEST = ToolGrammar(
    targets="path", narrowing=split_words("-k -m"), excluding=split_words("--ignore --ignore-glob --deselect"),
    flags_narrowing=split_words("--lf --last-failed --sw --stepwise"),
    harmless=split_words("-x -l --showlocals --ff --nf --failed-first --no-header --no-summary --cache-clear --exitfirst --full-trace"),
    harmless_valued=split_words("--tb --maxfail -n --dist --durations --capture --color --timeout --junitxml --junit-xml -r --cov-report --log-level --log-cli-level --verbosity --durations-min"),
    widening=split_words("--cov --cov-fail-under --strict-markers"),
)  # fmt: skip
_JEST = ToolGrammar(
    targets="path", narrowing=split_words("-t --testNamePattern --testPathPattern --testPathPatterns --grep --project --selectProjects --shard"),
    excluding=split_words("--testPathIgnorePatterns --exclude"),
    flags_narrowing=split_words("-o --onlyChanged --onlyFailures --changed --related --findRelatedTests --bail"),
    harmless=split_words("--ci -i --runInBand --watch=false --watchAll=false --no-watch --run --no-cache --detectOpenHandles --forceExit --passWithNoTests --headed --no-coverage"),
    harmless_valued=split_words("--reporter --reporters --maxWorkers -w --workers --silent --outputFile"), widening=split_words("--coverage"),
)  # fmt: skip
_MOCHA = ToolGrammar(
    targets="path", narrowing=split_words("-g --grep -f --fgrep"), excluding=split_words("--exclude --ignore"),
    harmless=split_words("-b --bail --exit --colors"), harmless_valued=split_words("-R --reporter"),
)  # fmt: skip
_LINTER = ToolGrammar(
    targets="path", narrowing=split_words("--select"), excluding=split_words("--ignore-pattern --exclude --ignore --extend-exclude --extend-ignore --per-file-ignores"),
    harmless=split_words("--fix --cache --no-cache --no-progress --stats --show-source"), harmless_valued=split_words("-f --format --output-format --cache-location -o --output-file -j --jobs"),
    widening=split_words("--strict --max-warnings"),
)  # fmt: skip
_RUFF = ToolGrammar(
    verbs=1, targets="path", narrowing=_LINTER.narrowing, excluding=_LINTER.excluding,
    harmless=_LINTER.harmless, harmless_valued=_LINTER.harmless_valued, widening=_LINTER.widening,
)  # fmt: skip
_TYPE_CHECKER = ToolGrammar(
    targets="path", excluding=split_words("--exclude"),
    harmless=split_words("--pretty --no-pretty --show-error-codes --no-error-summary --show-column-numbers --stats --noEmit --incremental --install-types --non-interactive"),
    harmless_valued=split_words("--cache-dir --outDir"), widening=split_words("--strict"),
)  # fmt: skip
_GO = ToolGrammar(
    verbs=1, targets="package", narrowing=split_words("-run --run -bench"), excluding=split_words("-skip"), flags_narrowing=split_words("-short"),
    harmless=split_words("-v -json -failfast -x -a -cover -trimpath"), harmless_valued=split_words("-count -timeout -p -parallel -o -coverprofile -covermode -cpu -shuffle"),
    widening=split_words("-race"), directory=split_words("-C"),
)  # fmt: skip
_CARGO = ToolGrammar(
    verbs=1, targets="name", narrowing=split_words("-p --package --test --bin --example --bench"), excluding=split_words("--exclude --skip"),
    flags_narrowing=split_words("--lib --doc --bins --tests"), harmless=split_words("--nocapture --no-fail-fast --locked --offline --frozen --show-output -j --exact"),
    harmless_valued=split_words("-j --jobs --message-format --color"), widening=split_words("--workspace --all --all-targets"),
)  # fmt: skip
_SCRIPTS = ToolGrammar(
    verbs=1, targets="name", narrowing=split_words("-t --testNamePattern --grep -g --testPathPattern -run -k --filter --tests"), flags_narrowing=split_words("--onlyChanged --changed"),
    harmless=split_words("--ci --run --watch=false --watchAll=false --runInBand --loglevel --foreground-scripts --no-fund --no-audit"),
    harmless_valued=split_words("--reporter"), directory=split_words("--prefix --cwd -C --dir"),
)  # fmt: skip
_SPEC = ToolGrammar(
    targets="path", narrowing=split_words("-e --example --tag --filter --only --name -n --plain-name -t --tags --group --testsuite"),
    excluding=split_words("--exclude --exclude-group --exclude-tag --exclude-tags"),
    harmless=split_words("-b --backtrace --trace --fail-fast --stop-on-failure --colors --no-interaction --testdox --warnings-as-errors"),
    harmless_valued=split_words("-f --format --seed --order --max-failures"),
)  # fmt: skip
_SPEC_VERB = ToolGrammar(
    verbs=1, targets="path", narrowing=_SPEC.narrowing, excluding=_SPEC.excluding, harmless=_SPEC.harmless, harmless_valued=_SPEC.harmless_valued,
)  # fmt: skip
_DOTNET = ToolGrammar(
    verbs=1, targets="path", narrowing=split_words("--filter"), harmless=split_words("--nologo"), harmless_valued=split_words("--logger -l --verbosity -v"),
)  # fmt: skip
_GOALS = ToolGrammar(
    targets="goal", narrowing=split_words("--tests -Dtest -Dit.test -pl --projects -e -s --session --test-only -R --tests-regex"),
    excluding=split_words("-x --exclude-task -E --exclude-regex"),
    harmless=split_words("--info --stacktrace --console --build-cache --no-daemon --daemon --parallel -B --batch-mode -V --output-on-failure --no-print-directory --rerun-tasks --scan --no-build-cache -j"),
    harmless_valued=split_words("-j --jobs --console"), directory=split_words("-C --directory -p --project-dir"), widening=split_words("clean"),
)  # fmt: skip
_UNITTEST = ToolGrammar(
    targets="module", narrowing=split_words("-k -p --pattern"), harmless=split_words("-f --failfast -b --buffer --locals discover"),
    harmless_valued=split_words("--durations"),
)  # fmt: skip
_IMAGE = ToolGrammar(
    verbs=1, harmless=split_words("--pull --no-input -no-color -input=false -compact-warnings --load"), widening=split_words("--no-cache"),
    harmless_valued=split_words("-t --tag --progress -out -parallelism"),
)  # fmt: skip
PLAIN = ToolGrammar()

GRAMMARS = {
    name: grammar
    for names, grammar in (
        ("pytest py.test", PYTEST), ("unittest", _UNITTEST), ("jest vitest ava", _JEST), ("mocha", _MOCHA),
        ("eslint flake8 pylint stylelint rubocop shellcheck hadolint standard xo pycodestyle pydocstyle isort black prettier yamllint markdownlint bandit", _LINTER),
        ("ruff biome oxlint golangci-lint", _RUFF), ("mypy pyright tsc vue-tsc phpstan psalm pyre basedpyright ty", _TYPE_CHECKER),
        ("go", _GO), ("cargo", _CARGO), ("npm pnpm yarn bun mise", _SCRIPTS), ("rspec phpunit pest minitest bats ginkgo", _SPEC),
        ("mix rails flutter dart swift deno zig playwright cypress artisan", _SPEC_VERB), ("dotnet", _DOTNET),
        ("make gmake just task rake invoke nox tox gradle mvn ctest ninja bazel mage earthly", _GOALS),
        ("docker podman terraform tofu docker-compose", _IMAGE),
    )
    for name in names.split()
} | {"node --test": _SPEC}  # fmt: skip
