"""Decide whether a tool call breaks a rule that has a checkable form. Pure.

A command line is read as a shell reads it, so a rule's words in a quotation, a commit message or a here-document are none
of its commands. A short flag stands for a long one only where the program's own manual says so (`_EQUAL_FLAGS`).
"""

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memd.belief.checks import RuleCheck
from memd.caches import cached
from memd.distill.proof.shell import StartedCommand, join_directory, list_started
from memd.patterns import Table

EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
SHELL_TOOL = "Bash"

PROGRAMS = Table("injection/programs.toml")
_EQUAL_FLAGS: Mapping[str, str] = PROGRAMS.rows["equal flags"]
_VALUED_LETTERS: Mapping[str, str] = PROGRAMS.rows["valued letters"]
_BOTH_FLAGS: Mapping[str, str] = PROGRAMS.rows["both flags"]
_VALUED: Mapping[str, str] = PROGRAMS.rows["before subcommand"]
_ALIASES: Mapping[str, Mapping[str, str]] = PROGRAMS.rows["aliases"]
_RUNNERS = [one.split() for one in PROGRAMS.rows["words"]["runners"].split("|")]
_WRITERS = PROGRAMS.list_words("writers")
_IN_PLACE = {"sed": re.compile(r"-[A-Za-z]*i|--in-place"), "perl": re.compile(r"-[A-Za-z]*i")}
_PROSE = (".md", ".mdx", ".rst", ".txt", ".adoc")
_ASKS = frozenset({"--help", "--version"})
_LISTS = frozenset({"list", "show", "ls"})
_PIECE = re.compile(r"[A-Za-z0-9_.-]{2,}")
_DOTTED = re.compile(r"\.+")
_ANCHOR_COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "commit": (("git", "commit"),), "push": (("git", "push"),), "pull request": (("gh", "pr", "create"), ("glab", "mr", "create")),
}  # fmt: skip
_LINES_CACHED = 512


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that an agent is about to make, or made."""

    tool: str
    given: Mapping[str, Any] = field(default_factory=dict)
    directory: str = ""
    roots: tuple[str, ...] = ()
    """The directories that a relative path of a rule may start in: that of the session and that of its project."""
    previous: str = ""
    """The text that a `Write` replaces."""
    tops: frozenset[str] = frozenset()
    """The names that stand directly in one of the roots."""

    @property
    def line(self) -> str:
        """The command line; empty for another tool."""
        found = self.given.get("command") if self.tool == SHELL_TOOL else ""
        return found if isinstance(found, str) else ""

    @property
    def edited(self) -> str:
        """The file that it edits; empty for another tool."""
        if self.tool not in EDIT_TOOLS:
            return ""
        found = self.given.get("file_path") or self.given.get("notebook_path")
        return found if isinstance(found, str) else ""


def breaks(check: RuleCheck, call: ToolCall) -> bool:
    """Return whether a call breaks a rule that forbids something; for what has to be done before, see `needs` and `runs`."""
    if check.form == "path":
        return any(_is_in(check.what, path, call) for path in _list_written(call))
    if check.form == "code":
        return _adds_code(check.what, call)
    commands = list_started(call.line, call.directory) if call.line else ()
    ways = [tuple(_read_ways(one.words)) for one in commands]
    if check.form == "command" and check.other:
        # “`uv run pytest`, never `pytest`”: what is to be used runs what is not.
        ways = [one for one in ways if not any(matches(check.other, reading) for reading in one)]
    readings = [reading for one in ways for reading in one]
    if check.form == "flag":
        return any(_has_flags(one, [check.what]) for one in readings)
    if check.form == "command":
        return any(matches(check.what, one) for one in readings)
    if check.form == "required flag":
        return any(
            matches(check.what, one) and not _has_flags(one, [check.other.split()[0]])
            for one in readings
        )  # fmt: skip
    return False


def needs(check: RuleCheck, call: ToolCall) -> bool:
    """Return whether a call does what the command of a `before` must precede, and its line does not run that first."""
    anchors = [" ".join(words) for words in _ANCHOR_COMMANDS.get(check.other, ())]
    for reading, _ in read_commands(call.line, call.directory):
        if matches(check.what, reading):
            return False
        if any(matches(one, reading) for one in anchors):
            return not _ASKS & set(reading.words) and "--dry-run" not in reading.words
    return False


def runs(check: RuleCheck, call: ToolCall) -> bool:
    """Return whether a call runs the command of a `before`."""
    return any(matches(check.what, way) for way, _ in read_commands(call.line, call.directory))


def list_watched_words(check: RuleCheck) -> tuple[tuple[str, ...], ...]:
    """Return rows of words: only a call whose JSON has all words of a row can break the rule. No rows: it is not looked for."""
    match check.form:
        case "before":
            return tuple(words for words in _ANCHOR_COMMANDS.get(check.other, ()))
        case "flag":
            rows = [_find_names(check.what)]
            rows += [
                tuple(name.split())
                for name, groups in _GROUPS.items()
                if any(check.what in one for one in groups)
            ]
            return tuple(rows)
        case "path" | "code":
            return (_find_names(check.what),)
        case _:
            command = _parse(tuple(check.what.split()))
            aliased = command.program in _ALIASES
            return (
                tuple(
                    piece
                    for word in (command.program, *command.operands[: 0 if aliased else 1])
                    for piece in _find_names(word)
                ),
            )


def _find_names(text: str) -> tuple[str, ...]:
    found = (piece.strip("-") for piece in _PIECE.findall(text))
    return tuple(piece for piece in found if piece and not _DOTTED.fullmatch(piece))


# ── Commands ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Command:
    program: str
    operands: tuple[str, ...]
    flags: frozenset[str]
    words: tuple[str, ...]
    name: str = ""
    """The entry of `_EQUAL_FLAGS`, if there is one."""


_GROUPS: Mapping[str, Sequence[frozenset[str]]] = {
    name: [frozenset(group.split()) for group in groups.split("|")]
    for name, groups in _EQUAL_FLAGS.items()
}


def _read_ways(words: tuple[str, ...]) -> Iterator[_Command]:
    """Yield a command, and the one that it runs: `npx jest`, `uv run pytest`, `python -m pip`."""
    if not words or not words[0]:
        return
    yield _parse(words)
    name = posixpath.basename(words[0])
    if re.fullmatch(r"python[\d.]*", name) and "-m" in words[:4]:
        yield from _read_ways(words[words.index("-m") + 1 :])
    for runner in _RUNNERS:
        if [name, *words[1 : len(runner)]] == runner:
            rest = words[len(runner) :]
            while rest and rest[0].startswith("-"):
                rest = rest[1:]
            yield from _read_ways(rest)


@cached(64)
def read_commands(line: str, directory: str) -> tuple[tuple[_Command, str], ...]:
    """Each way to read each command that a line starts, with the directory that it runs in."""
    started = list_started(line, directory) if line else ()
    return tuple((way, one.directory) for one in started for way in _read_ways(one.words))


@cached(_LINES_CACHED)
def _parse(words: tuple[str, ...]) -> _Command:
    program = posixpath.normpath(words[0]) if "/" in words[0] else words[0]
    name = posixpath.basename(program)
    valued, aliases = _VALUED.get(name, "").split(), _ALIASES.get(name, {})
    operands: list[str] = []
    options: list[str] = []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if word.startswith("-") and len(word) > 1:
            options.append(word)
            if not operands and word in valued and rest:
                rest.pop(0)
        elif not (name == "cargo" and word.startswith("+")):
            operands.append(word)
    if operands and operands[0] in aliases:
        operands[0] = aliases[operands[0]]
    known = next(
        (one for one in (f"{name} {operands[0] if operands else ''}", name) if one in _EQUAL_FLAGS),
        "",
    )
    flags = frozenset(flag for option in options for flag in _read_option(option, known))
    if known == "git push" and any(one.startswith("+") for one in operands[1:]):
        flags |= {"-f", "--force"}  # a refspec with a plus
    return _Command(program, tuple(operands), flags, words, known)


def _read_option(option: str, known: str) -> Iterator[str]:
    """Yield what an option is called: itself, without its value, the letters of a bundle, and its other names."""
    names = {option, option.partition("=")[0]}
    if known and not option.startswith("--"):
        valued = _VALUED_LETTERS.get(known, "")
        for letter in option[1:] if valued != "*" else "":
            names |= {f"-{letter}", *_BOTH_FLAGS.get(f"{known} -{letter}", "").split()}
            if letter in valued:
                break
    for name in tuple(names):
        names.update(*(group for group in _GROUPS.get(known, ()) if name in group))
        if known == "" and re.match(r"-[a-z]{2}", name):
            names.add(
                f"-{name}"
            )  # Go's flags take one dash or two; a bundle under that name is no flag of anybody
    return iter(names)


def matches(rule: str, command: _Command) -> bool:
    """Return whether a command is the one that a rule names, with whatever other arguments."""
    wanted = _parse(tuple(rule.split()))
    if _only_looks(wanted, command):
        return False
    if not _is_same_program(wanted.program, command.program):
        return False
    if wanted.operands[:1] != command.operands[: len(wanted.operands[:1])]:
        return False
    left = iter(command.operands)
    if not all(any(_is_same_operand(word, other) for other in left) for word in wanted.operands):
        return False
    return _has_flags(
        command,
        [word for word in wanted.words[1:] if word.startswith("-") and word in wanted.flags],
    )


def _only_looks(wanted: _Command, command: _Command) -> bool:
    """Return whether a command asks for help, or lists what a rule's command has made: `git stash list`."""
    more = command.operands[len(wanted.operands) : len(wanted.operands) + 1]
    is_list = (
        bool(wanted.operands) and bool(_LISTS & set(more)) and not _LISTS & set(wanted.operands)
    )
    return is_list or bool(_ASKS & set(command.words) - set(wanted.words))


def _is_same_operand(wanted: str, word: str) -> bool:
    return wanted == word or (
        wanted.rstrip("/") == posixpath.normpath(word) if "/" in wanted else False
    )


def _is_same_program(wanted: str, program: str) -> bool:
    if "/" in wanted:
        return program == wanted or program.endswith(f"/{wanted}")
    return posixpath.basename(program) == wanted


def _has_flags(command: _Command, flags: Iterable[str]) -> bool:
    return all(_has_flag(command, flag) for flag in flags)


def _has_flag(command: _Command, flag: str) -> bool:
    if flag in command.flags:
        return True
    if command.name and re.fullmatch(r"-[A-Za-z]{2,}", flag):
        # `-rf` asks for both letters, in whatever bundle they come.
        return all(f"-{letter}" in command.flags for letter in flag[1:])
    return not command.flags.isdisjoint({*_read_option(flag, command.name)} - {flag})


# ── Files and their text ────────────────────────────────────────────────────────────────────────


def _list_written(call: ToolCall) -> Iterator[str]:
    if call.edited:
        yield call.edited
    for one in list_started(call.line, call.directory) if call.line else ():
        yield from (join_directory(one.directory, path) for path in _list_written_by(one))


def _list_written_by(one: StartedCommand) -> Iterator[str]:
    yield from one.writes
    name = posixpath.basename(one.words[0])
    operands = [word for word in one.words[1:] if not word.startswith("-")]
    pattern = _IN_PLACE.get(name)
    if name in _WRITERS or (pattern and any(pattern.match(word) for word in one.words[1:])):
        yield from operands
    elif name == "cp" and operands:
        yield operands[-1]
    elif name == "git" and operands[:1] in (["rm"], ["mv"]):
        yield from operands[1:]


def _is_in(rule: str, path: str, call: ToolCall) -> bool:
    """Return whether a path is or lies in the one that a rule names: as named, below the project's or session's directory."""
    full = posixpath.normpath(posixpath.join(call.directory or "/", path))
    for root in dict.fromkeys((*call.roots, call.directory)):
        base = root.rstrip("/")
        if base and full.startswith(f"{base}/"):
            return _is_named(rule, full[len(base) + 1 :], call.tops) or (
                rule.startswith("/") and _is_below(rule, full)
            )
    return rule.startswith("/") and _is_below(rule, full)


def _is_below_root(path: str, call: ToolCall) -> bool:
    return any(
        _is_below(root, posixpath.join(call.directory, path))
        for root in call.roots
        if root and path
    )


def _is_below(rule: str, full: str) -> bool:
    return full == rule.rstrip("/") or full.startswith(f"{rule.rstrip('/')}/")


def _is_named(rule: str, path: str, tops: frozenset[str]) -> bool:
    """Match a path as `.gitignore` does: a pattern with a slash from the root, a name alone at any depth unless it is in the root."""
    wanted = (
        rule.removeprefix("./").removesuffix("**").removesuffix("*" if rule.endswith("/*") else "")
    )
    is_directory, wanted = wanted.endswith("/"), wanted.strip("/")
    parts, names = path.split("/"), wanted.split("/")
    starts = range(len(parts)) if len(names) == 1 and wanted not in tops else (0,)
    for start in starts:
        here = parts[start : start + len(names)]
        is_match = len(here) == len(names) and all(map(fnmatch.fnmatchcase, here, names))
        if is_match and not (is_directory and start + len(names) == len(parts)):
            return True
    return False


def _adds_code(code: str, call: ToolCall) -> bool:
    if not _is_below_root(call.edited, call) or call.edited.endswith(_PROSE):
        return False
    given = call.given
    if call.tool == "MultiEdit" and isinstance(given.get("edits"), Sequence):
        pairs = [
            (one.get("old_string"), one.get("new_string"))
            for one in given["edits"]
            if isinstance(one, Mapping)
        ]
    elif call.tool == "Edit":
        pairs = [(given.get("old_string"), given.get("new_string"))]
    else:
        pairs = [(call.previous, given.get("content") or given.get("new_source"))]
    return any(_count_code(code, new) > _count_code(code, old) for old, new in pairs)


def _count_code(code: str, text: object) -> int:
    if not isinstance(text, str) or not text:
        return 0
    head = r"(?<![\w.])" if re.match(r"\w", code) else ""
    tail = r"(?!\w)" if re.search(r"\w\Z", code) else ""
    return len(re.findall(f"{head}{re.escape(code)}{tail}", text))
