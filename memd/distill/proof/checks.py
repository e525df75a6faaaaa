"""The check that a command is, whether a run of it failed, and when one that passed proves that another would pass. Pure.

A check covers another if it runs all that the other runs: the same tool in the same environment, at the same
or a wider scope, with nothing left out that the other has. What an option means is in the table of tools; an
option that the table does not know must be the same in both.
"""

import functools
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.caches import cached
from memd.distill.episodes import ShellCommand
from memd.distill.proof import command_output, shell
from memd.distill.proof.shell import TOOLS, Words, join_directory, read_grammars
from memd.patterns import compile_lazily, split_words
from memd.text import one_line

_SCRIPT_VERBS = {"t": "test", "tst": "test", "run-script": "run"}
_VERBS_IMPLIED = {"ruff": "check", "golangci-lint": "run", "vitest": "run", "mise": "run"}
_SCRIPTS_OF = {"gradlew": "gradle", "gradlew.bat": "gradle", "mvnw": "mvn"}
_PACKAGE_MANAGERS = split_words("npm pnpm yarn bun")
_BIN_DIRECTORY = compile_lazily(r"(?:^|/)(?:bin|\.bin|Scripts|shims)/[^/]+$")
_PYTHON = compile_lazily(r"(?:python|pypy|py)([\d.]*)(?:\.exe)?")
_WIDENING_VALUED = split_words("--max-warnings --cov-fail-under")
_VALUED = split_words("directory narrowing excluding harmless_valued")
_SKIPS_TESTS = compile_lazily(r"-D(?:skipTests|maven\.test\.skip)(?:=true)?$")


@dataclass(frozen=True, slots=True)
class Check:
    """One check as it is compared with another."""

    tool: str
    verb: tuple[str, ...]
    where: tuple[str, ...]
    """The container and the version of the interpreter, if the command names one."""
    directory: str
    environment: Words
    targets: Words
    """Paths are joined with the directory."""
    selectors: frozenset[tuple[str, str]]
    exclusions: frozenset[tuple[str, str]]
    options: Words
    widenings: Words = field(default=frozenset(), compare=False)

    @property
    def grammar(self) -> shell.ToolGrammar:
        """The meaning of its words."""
        return read_grammars().get(self.tool, shell.PLAIN)


CheckRuns = tuple[tuple[Check, bool], ...]
"""Checks, each with whether the line's success is its own."""


@cached(1_024)
def read_checks(line: str, directory: str = "") -> CheckRuns:
    """The checks of a line of shell in order."""
    return tuple(_read_commands(line, directory, _is_check))


@cached(1_024)
def read_commands(line: str, directory: str = "") -> CheckRuns:
    """Read the same of all its commands that do more than look, for a failure that is not a check's."""
    return tuple(_read_commands(line, directory, _does_more_than_look))


def _does_more_than_look(command: shell.SimpleCommand) -> bool:
    return not command_output.is_read_only(" ".join(command.words))


def _read_commands(
    line: str, directory: str, is_wanted: Callable[[shell.SimpleCommand], bool]
) -> Iterator[tuple[Check, bool]]:
    """Yield the commands of a line with the state of the work that they run on, if the line set some of it aside."""
    state: tuple[str, ...] = ()
    for command in shell.parse_line(line, directory):
        if command.words[:2] == ("git", "stash"):
            state = () if command.words[2:3] in (("pop",), ("apply",)) else ("with work set aside",)
        if is_wanted(command):
            yield _read_check(command, state), command.has_status


def _is_check(command: shell.SimpleCommand) -> bool:
    """Return whether a command tests, builds, lints or runs something."""
    return not is_errand(command) and command_output.is_check(" ".join(command.words))


def is_errand(command: shell.SimpleCommand) -> bool:
    """Return whether a command moves, sends, prints or installs something, and so checks nothing."""
    name, *rest = strip_wrappers(command.words)[0]
    name = _name_tool(name)
    is_install = TOOLS.list_words("installs").intersection(rest[:1]) and name in read_grammars()
    return bool(is_install) or name in TOOLS.list_words("no checks")


def _read_check(command: shell.SimpleCommand, state: tuple[str, ...]) -> Check:
    words, where = strip_wrappers(command.words)
    name, rest = _read_script(_name_tool(words[0]), list(words[1:]))
    grammar = read_grammars().get(name, shell.PLAIN)
    found = _sort_words(grammar, rest)
    directory, plain = (
        functools.reduce(join_directory, found["directories"], command.directory),
        found["plain"],
    )
    verbs = 2 if name in {"docker", "podman"} and plain[:1] == ["compose"] else grammar.verbs
    verb, targets = tuple(plain[:verbs]), plain[verbs:]
    if grammar.targets in {"path", "package"}:
        targets = [join_directory(directory, target.removeprefix("./")) for target in targets]
    if not grammar.targets:
        verb, targets = (*verb, *targets), []
    return Check(
        tool=name, verb=verb, where=(*where, *state), directory=directory,
        environment=frozenset(a for a in command.assignments if not TOOLS["harmless environment"].match(a)),
        targets=frozenset(targets), selectors=frozenset(found["selectors"]), exclusions=frozenset(found["exclusions"]),
        options=frozenset(found["options"]), widenings=frozenset(found["widenings"]),
    )  # fmt: skip


def _read_script(name: str, rest: list[str]) -> tuple[str, list[str]]:
    """Bring the forms of a script to one: `npm run test` is `npm test`, `yarn build` is `yarn run build`; `vitest run` is `vitest`."""
    verb = next((i for i, word in enumerate(rest) if not word.startswith("-")), None)
    if name in _PACKAGE_MANAGERS and verb is not None:
        said = _SCRIPT_VERBS.get(rest[verb], rest[verb])
        rest[verb : verb + 1] = [] if said == "run" and verb + 1 < len(rest) else [said]
    if name == "node" and "--test" in rest:
        return "node --test", [word for word in rest if word != "--test"]
    implied = _VERBS_IMPLIED.get(name)
    if name in {"vitest", "mise"} and rest[:1] in ([implied], ["r"]):
        return name, rest[1:]
    if name in {"ruff", "golangci-lint"} and (not rest or rest[0].startswith((".", "-", "/"))):
        return name, [str(implied), *rest]
    return name, rest


def _sort_words(  # noqa: C901  # a list of cases, in order
    grammar: shell.ToolGrammar, words: list[str]
) -> Mapping[str, list[Any]]:
    """Sort the words after a tool's name by what they mean."""
    found: defaultdict[str, list[Any]] = defaultdict(list)
    while words:
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        meaning = grammar.meanings.get(name, "")
        is_valued = meaning in _VALUED or (meaning == "widening" and name in _WIDENING_VALUED)
        if not word.startswith("-") or word == "-":
            if grammar.meanings.get(word) not in {"harmless", "widening"}:
                found["plain"].append(word)
            continue
        if is_valued and not has_value and words:
            value = words.pop(0)
        if meaning == "directory":
            found["directories"].append(value)
        elif meaning == "excluding" or (meaning == "narrowing" and re.search(r"\bnot\b", value)):
            found["exclusions"].append((name, value))
        elif meaning in {"narrowing", "flags_narrowing"}:
            found["selectors"].append((name, value if meaning == "narrowing" else ""))
        elif _SKIPS_TESTS.match(name):
            found["exclusions"].append(("-DskipTests", ""))
        elif meaning == "widening":
            found["widenings"].append(f"{name}={value}" if is_valued else word)
        elif meaning != "harmless_valued" and not _is_harmless(word, grammar):
            found["options"].append(word)
    return found


def _is_harmless(word: str, grammar: shell.ToolGrammar) -> bool:
    """Return whether an option, or each letter of `-xvs`, `-n4`, `-rA`, only changes how a run looks."""

    def is_known(option: str) -> bool:
        everywhere = TOOLS.list_words("harmless everywhere")
        return grammar.meanings.get(option) == "harmless" or option in everywhere

    if is_known(word) or word.startswith("--"):
        return word == "--" or is_known(word)
    is_flags = all(is_known(f"-{letter}") for letter in word[1:])
    return is_flags or grammar.meanings.get(word[:2]) == "harmless_valued"


def strip_wrappers(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words without what starts them (`sudo`, `timeout 60`, `uv run`, `python -m`), and where they run."""
    where: tuple[str, ...] = ()
    while len(words) > 1 and (shorter := _strip_wrapper(words)):
        words, where = shorter[0], (*where, *shorter[1])
    return words, where


def _strip_wrapper(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return (the words after one wrapper, where they run); None if none begins them."""
    name, second = posixpath.basename(words[0]), words[1]
    python = _PYTHON.fullmatch(name)
    verbs = TOOLS.rows["runners"].get(name)
    where: tuple[str, ...] = ()
    if (valued := TOOLS.rows["wrappers"].get(name)) is not None:
        rest = _skip_options(words[1:], split_words(valued))
        rest = rest[1:] if name.endswith("timeout") else rest
        while rest and re.match(r"[A-Za-z_]\w*=", rest[0]):
            rest = rest[1:]
    elif name in _PACKAGE_MANAGERS and name != "npm" and second in read_grammars():
        rest = words[1:]  # `pnpm vitest run`
    elif verbs is not None and (not verbs or second in verbs.split()):
        rest = _skip_options(words[2 if verbs else 1 :], TOOLS.list_words("options of runners"))
    elif python and second == "-m" and words[2:] and words[2] not in TOOLS.list_words("modules that run nothing"):  # fmt: skip
        rest, where = words[2:], ((python[1],) if "." in python[1] else ())
    elif context := _read_container(words):
        where, rest = context
    else:
        return None
    return (rest, where) if rest else None


def _skip_options(words: tuple[str, ...], valued: Words) -> tuple[str, ...]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in valued else words[1:]
    return words


def _read_container(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return (container, what runs in it) of `docker compose exec web pytest`."""
    name = posixpath.basename(words[0])
    is_compose = name in {"docker", "podman"} and words[1] == "compose"
    verb, rest = (words[2:3], words[3:]) if is_compose else (words[1:2], words[2:])
    is_service = is_compose or name == "docker-compose"
    is_inside = verb == ("exec",) or (is_service and verb == ("run",))
    if not is_inside or not (is_service or name in {"docker", "podman", "kubectl"}):
        return None
    rest = _skip_options(rest, TOOLS.list_words("options of containers"))
    inner = rest[2:] if rest[1:2] == ("--",) else rest[1:]
    return (("in " + rest[0],), inner) if inner else None


def _name_tool(word: str) -> str:
    name = posixpath.basename(word)
    if name in _SCRIPTS_OF:
        return _SCRIPTS_OF[name]
    if version := _PYTHON.fullmatch(name):
        return f"python{version[1]}" if "." in version[1] else "python"
    if "/" not in word or _BIN_DIRECTORY.search(word) or name in read_grammars():
        return name
    return posixpath.normpath(word)


def covers(wide: Check, narrow: Check) -> bool:
    """Return whether `wide` runs all that `narrow` runs, so that its pass is one of `narrow`."""
    return (
        (wide.tool, wide.verb, wide.where) == (narrow.tool, narrow.verb, narrow.where)
        and (wide.environment, wide.options) == (narrow.environment, narrow.options)
        and narrow.widenings <= wide.widenings
        and wide.exclusions <= narrow.exclusions
        and all(_selects_more(one, narrow) for one in wide.selectors)
        and _covers_targets(wide, narrow)
    )


def _selects_more(selector: tuple[str, str], narrow: Check) -> bool:
    """Return whether a selector of the wider check leaves all of the narrower one in."""
    if selector in narrow.selectors:
        return True
    option, value = selector
    if not re.fullmatch(r"[\w|]+", value):
        return False
    # A name selects all names that it is a part of.
    chosen = [word for word in value.split("|") if word]
    values = [v for o, v in narrow.selectors if o == option and re.fullmatch(r"[\w|/^$]+", v)]
    return any(
        all(any(part in name for part in chosen) for name in v.strip("^$").split("|"))
        for v in values
    )


def _covers_targets(wide: Check, narrow: Check) -> bool:
    ours, theirs = wide.targets, narrow.targets
    if wide.grammar.targets in {"path", "package"}:
        ours = ours or frozenset({wide.directory})
        theirs = theirs or frozenset({narrow.directory})
    elif wide.directory != narrow.directory:
        return False
    elif not ours or not theirs:
        # `make` alone makes one target; other tools run all of their tests.
        return (wide.grammar.targets != "goal" and not ours) or ours == theirs
    return all(any(_contains(wide, one, other) for one in ours) for other in theirs)


def _contains(check: Check, wide: str, narrow: str) -> bool:
    """Return whether a target of a check contains another."""
    kind = check.grammar.targets
    if wide == narrow:
        return True
    if kind == "path":
        return _contains_path(wide, narrow)
    if kind == "package":
        is_below = wide == "..." or wide.endswith("/...")
        return is_below and _contains_path(wide[:-3], narrow.removesuffix("..."))
    if kind == "goal":
        is_of_module = check.tool == "gradle" and narrow.endswith(":" + wide)
        contained = TOOLS.rows["goals"].get(f"{check.tool} {wide}", "")
        return is_of_module or narrow in contained.split()
    return narrow.startswith(wide + ".") if kind == "module" else wide in narrow


def _contains_path(wide: str, narrow: str) -> bool:
    wide, narrow = wide.rstrip("/"), narrow.rstrip("/")
    if wide in {"", narrow}:
        # All below an unknown directory: a relative path may only not lead out of it.
        return wide == narrow or not narrow.startswith(("/", ".."))
    return narrow.startswith((wide + "/", wide + "::", wide + ":", wide + "["))


_ECHO_LINES_MAX = 200


def _read_echoed_checks(check: Check, output: str) -> Iterator[Check]:
    """The checks that a task runner says it ran: `make` and `npm run` print their commands."""
    if check.tool not in TOOLS.list_words("echo what they run"):
        return
    for line in output.splitlines()[:_ECHO_LINES_MAX]:
        if (match := TOOLS["echoed"].match(line.rstrip())) is None:
            continue
        said = match["line"] or match["bare"]
        if match["bare"] and _name_tool(said.split()[0]) not in read_grammars():
            continue
        for inner, has_status in read_checks(said, check.directory):
            if has_status and inner.environment <= check.environment | inner.environment:
                yield inner


# ── How a run ended ──────────────────────────────────────────────────────────────────────────────

_RUNS_CACHED = 512
"""Runs of which it is kept how they ended: each is asked about by several rules."""
_ENDS_IN_GREP = compile_lazily(r"\|\s*(?:e|f)?(?:grep|rg)\b[^|;&]*$")
_EXIT_CODE = compile_lazily(r"^Exit code 1\b")
_SHOWS_COMPLAINTS = compile_lazily(r"2>&1\s*\|&?\s*(?:tail|head|tee|cat)\b[^|;&<>]*$")
_SILENT = frozenset({("go", "build"), ("go", "vet"), ("tsc",), ("eslint",), ("flake8",), ("gcc",), ("g++",), ("shellcheck",)})  # fmt: skip


@cached(_RUNS_CACHED)
def is_failing(command: ShellCommand) -> bool:
    """Return whether the command failed, even if a pipe swallowed its exit code."""
    if command.is_interrupted or command.is_background:
        return False
    if command.failed:
        # A `grep` at the end of a pipe selected no line, or the exit code is of something beside a check that passed.
        is_empty = not _EXIT_CODE.sub("", command.output, count=1).strip()
        found_nothing = is_empty and _ENDS_IN_GREP.search(command.command) is not None
        return not (found_nothing or _only_tells_of_a_pass(command))
    if not command_output.is_check(command.command):
        return False
    if command_output.shows_failure(command.output):
        return True
    runs = read_checks(command.line, command.directory)
    is_hidden = bool(runs) and not any(has_status for _, has_status in runs)
    return (
        is_hidden
        and not command_output.shows_pass(command.output)
        and command_output.shows_error(command.output)
    )


def _only_tells_of_a_pass(command: ShellCommand) -> bool:
    """Return whether a check passed by its own words and no line says what failed: the exit code is of something beside it."""
    output = _EXIT_CODE.sub("", command.output, count=1)
    return command_output.shows_pass(output) and not command_output.read_error(output).line


LAST_FAILURE = "failed when it was run last"


def name_last_failure(run: ShellCommand) -> str:
    """Say of the last check of a turn that it failed, as a body does."""
    return f"`{one_line(run.command, 120)}` {LAST_FAILURE}"


@cached(_RUNS_CACHED)
def read_proven(command: ShellCommand) -> frozenset[Check]:
    """The checks that this run proves to pass: by its exit status, else by what its output counts."""
    if command.failed or command.is_interrupted or command.is_background or is_failing(command):
        return frozenset()
    if command_output.ran_nothing(command.output):
        return frozenset()
    runs = read_commands(command.line, command.directory)
    says_so = command_output.shows_pass(command.output)
    hidden = [check for check, has_status in runs if not has_status]
    found = {check for check, has_status in runs if has_status}
    if len(hidden) == 1 and len(runs) == 1 and (says_so or _is_silently_clean(hidden[0], command)):
        found.add(hidden[0])
    elif hidden and says_so and runs[-1][0] is hidden[-1]:
        # Of several, the end of the output is about the last.
        found.add(hidden[-1])
    for check in tuple(found):
        found |= set(_read_echoed_checks(check, command.output))
    return frozenset(found)


def _is_silently_clean(check: Check, command: ShellCommand) -> bool:
    """Return whether nothing was printed by a tool that prints its complaints, behind a pipe that shows them."""
    is_shown = _SHOWS_COMPLAINTS.search(command.command) is not None
    if not is_shown:
        return False
    printed = [line for line in command.output.splitlines() if line.strip()]
    if not printed:
        return _is_silent(check)
    # A task runner prints what it runs, and then nothing.
    echoed = list(_read_echoed_checks(check, command.output))
    return len(echoed) == len(printed) and all(map(_is_silent, echoed))


def _is_silent(check: Check) -> bool:
    """Return whether a tool prints its complaints and nothing else."""
    return (check.tool, *check.verb[:1]) in _SILENT or (check.tool,) in _SILENT
