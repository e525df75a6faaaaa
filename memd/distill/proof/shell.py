"""Split a line of shell into its commands, with their directory and whether the line's exit status is theirs. Pure.

It knows the parts of the grammar that agents use: lists, pipes, groups, assignments, redirections, `cd`,
`bash -c`. A line with loops, conditions or unbalanced quotes is one command that is only equal to itself.
"""

import functools
import itertools
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memd.caches import cached
from memd.patterns import Table, compile_lazily, split_words

Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class ToolGrammar:
    """The meaning of the words after a tool's name. Options that are not named must be equal in two runs."""

    verbs: int = 0
    """Words of the subcommand: 1 for `go test`."""
    targets: str = ""
    """What a bare word is: `path`, `package`, `module`, `goal`, `name` (part of a test's name); else a plain argument."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Option, or bare word → what it does: see the head of `tools.toml`."""


TOOLS = Table("distill/proof/tools.toml")
PLAIN = ToolGrammar()


@functools.cache
def read_grammars() -> Mapping[str, ToolGrammar]:
    """The grammar of each tool that the table knows."""
    found: dict[str, ToolGrammar] = {}
    kinds = TOOLS.rows["words"]["meanings"].split()
    for row in TOOLS.rows["tool"]:
        meanings = {word: kind for kind in kinds for word in row.get(kind, "").split()}
        grammar = ToolGrammar(row.get("verbs", 0), row.get("targets", ""), meanings)
        found.update(dict.fromkeys(row["names"], grammar))
    return found


_LINE_CHARACTERS_MAX = 8_000
_LINES_CACHED = 512
"""Lines that are kept parsed: rules about checks, files and work read the same ones."""
_COMMANDS_MAX = 100
_NESTING_MAX = 3
_QUOTE = r"\$'(?:[^'\\]|\\.)*'|'[^']*'|\"(?:[^\"\\]|\\.)*\""
_INNER = r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`"
_TOKEN = compile_lazily(
    r"(?P<space>[ \t\r]+|\\\n)"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<redirection>&>>?|\d*(?:<<<|<<-?|>>|>&|<&|>\||[<>]))"
    r"|(?P<operator>&&|\|\||\|&|;;|[|;&()\n])"
    rf"|(?P<word>(?:{_QUOTE}|{_INNER}|\\.|[^\s|;&()<>'\"`\\])+)",
    re.DOTALL,
)
_WORD_PART = compile_lazily(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)", re.DOTALL)
_ASSIGNMENT = compile_lazily(r"[A-Za-z_]\w*=")
_KEYWORDS = split_words(
    "if then elif else fi for while until do done case esac function select { } [[ !"
)
_STOPS_AT_FAILURE = compile_lazily(r"-\w*e\w*$")
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_IGNORED_SETUP = frozenset({"source", ".", "set", "trap", "ulimit", "shopt", "unset", "alias"})


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command of a line."""

    words: tuple[str, ...]
    """Without quotes, assignments and redirections."""
    assignments: frozenset[str]
    """`NAME=value`, from its own front, `env` and earlier exports."""
    directory: str
    """Where it runs; empty if the line does not say and its caller does not know."""
    has_status: bool
    """Whether the line's success is the command's own: no `|| true`, `; exit 0` or pipe hides it."""


@dataclass(slots=True)
class _Part:
    """A command with the operators around it, while a line is read."""

    words: list[str]
    before: str
    after: str = ""
    pipe_end: bool = True
    directory: str = ""
    assignments: frozenset[str] = frozenset()


@cached(_LINES_CACHED)
def parse_line(text: str, directory: str = "") -> tuple[SimpleCommand, ...]:
    """The commands of a line in order, without those that only set up (`cd`, `export`, `source`)."""
    return _parse_nested(text.strip(), directory, frozenset(), 0)


def _parse_nested(
    text: str, directory: str, assignments: frozenset[str], depth: int
) -> tuple[SimpleCommand, ...]:
    tokens = _read_tokens(text)
    is_plain = tokens is not None and not any(k == "word" and w in _KEYWORDS for k, w in tokens)
    parts = _read_parts(tokens, directory, assignments) if tokens and is_plain else []
    if not is_plain or len(parts) > _COMMANDS_MAX:
        # A line that is only equal to itself.
        return (SimpleCommand((" ".join(text.split()),), assignments, directory, has_status=False),)
    set_options = [word for part in parts if part.words[0] == "set" for word in part.words]
    stops_at_failure = any(map(_STOPS_AT_FAILURE.match, set_options))
    has_pipefail = "pipefail" in set_options
    found: list[SimpleCommand] = []
    for number, part in enumerate(parts):
        if part.words[0] in _IGNORED_SETUP:
            continue
        has_status = (part.pipe_end or has_pipefail) and _decides_status(
            parts, number, stops_at_failure=stops_at_failure
        )
        command = SimpleCommand(tuple(part.words), part.assignments, part.directory, has_status)
        inner = _find_inner_line(command) if depth < _NESTING_MAX else None
        if inner is None:
            found.append(command)
            continue
        within = _parse_nested(inner, command.directory, command.assignments, depth + 1)
        found.extend(replace(c, has_status=c.has_status and has_status) for c in within)
    return tuple(found)


# ── Every command, wherever it stands ────────────────────────────────────────────────────────────

_HERE_DOCUMENT = compile_lazily(
    r"<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1([^\n]*)\n(?:.*?\n)?[ \t]*\2[ \t]*(?=\n|\Z)", re.DOTALL
)
_QUOTATION = compile_lazily(r"\"(?:[^\"\\]|\\.)*\"|\$'(?:[^'\\]|\\.)*'|'[^']*'", re.DOTALL)
_SUBSTITUTION = compile_lazily(r"\$\(((?:[^()]|\([^()]*\))*)\)|`([^`]*)`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StartedCommand:
    """A command that a line starts under some circumstances, and the files that its redirections write."""

    words: tuple[str, ...]
    directory: str
    writes: tuple[str, ...] = ()


@cached(_LINES_CACHED)
def list_started(text: str, directory: str = "") -> tuple[StartedCommand, ...]:
    """Every command of a line: in lists, loops, conditions, groups, substitutions and inner shells; none if it cannot be read."""
    return tuple(_list_started(text, directory, 0))[:_COMMANDS_MAX]


def _list_started(text: str, directory: str, depth: int) -> Iterator[StartedCommand]:
    tokens = _read_tokens(_HERE_DOCUMENT.sub(r" \3", text.strip()))
    if tokens is None or depth > _NESTING_MAX:
        return
    outer: list[str] = []
    for words, writes, operator in _split_commands(tokens):
        for word in (*words, *writes):
            yield from _list_substituted(word, directory, depth)
        yield from _list_wrappers(words, directory)
        started = _start_words(words)
        if started[:1] == ["cd"]:
            directory = join_directory(directory, started[1] if len(started) > 1 else "~")
        elif started or writes:
            yield from _list_inner(started, directory, tuple(map(_unquote, writes)), depth)
        if operator == "(":
            outer.append(directory)
        elif operator == ")" and outer:
            directory = outer.pop()


def _split_commands(
    tokens: Sequence[tuple[str, str]],
) -> Iterator[tuple[list[str], list[str], str]]:
    """Yield (words, the files that its redirections write, the operator after them) of each command."""
    words: list[str] = []
    writes: list[str] = []
    redirection = ""
    for kind, text in (*tokens, ("operator", "")):
        if kind == "redirection":
            redirection = text
        elif kind == "word":
            target = writes if ">" in redirection else None if redirection else words
            if target is not None:
                target.append(text)
            redirection = ""
        else:
            yield words, writes, text
            words, writes, redirection = [], [], ""


def _list_substituted(token: str, directory: str, depth: int) -> Iterator[StartedCommand]:
    bare = _QUOTATION.sub(lambda found: found.group() if found.group()[0] == '"' else "", token)
    for found in _SUBSTITUTION.finditer(bare):
        yield from _list_started(found[1] or found[2] or "", directory, depth + 1)


@functools.cache
def _read_wrappers() -> Mapping[str, str]:
    """Programs that start the program after them → their options that take a word."""
    return {**TOOLS.rows["wrappers"], "xargs": "-n -I -P -L -d -s -a"}


def _list_wrappers(words: Sequence[str], directory: str) -> Iterator[StartedCommand]:
    """Yield `sudo …` and its like as commands of their own."""
    for at, word in enumerate(words):
        if posixpath.basename(word) in _read_wrappers():
            yield StartedCommand(tuple(map(_unquote, words[at:])), directory)
        elif not (word in _KEYWORDS or _ASSIGNMENT.match(word) or word.startswith("-")):
            return


def _start_words(words: Sequence[str]) -> list[str]:
    """The words from the program on: without keywords, assignments, and what only starts it."""
    left = list(words)
    while left:
        first = left[0]
        if first in _KEYWORDS or _ASSIGNMENT.match(first):
            if first in {"for", "case", "select", "function"}:
                return []
            del left[0]
        elif (name := posixpath.basename(_unquote(first))) in _read_wrappers():
            if name == "command" and {"-v", "-V"} & set(left[1:2]):
                return []  # it only asks where the program is
            valued = _read_wrappers()[name].split()
            del left[0]
            while left and left[0].startswith("-"):
                del left[: 2 if left[0] in valued else 1]
            if name == "timeout" and left:
                del left[0]
        else:
            break
    return [_unquote(word) for word in left]


def _list_inner(
    words: Sequence[str], directory: str, writes: tuple[str, ...], depth: int
) -> Iterator[StartedCommand]:
    command = SimpleCommand(tuple(words or ("",)), frozenset(), directory, has_status=False)
    inner = " ".join(words[1:]) if words[:1] == ["eval"] else _find_inner_line(command)
    if inner is not None:
        yield from _list_started(inner, directory, depth + 1)
    yield StartedCommand(command.words, directory, writes)


def _read_tokens(text: str) -> list[tuple[str, str]] | None:
    """Return (kind, text) of each token; None if the line cannot be read. A here-document is one word."""
    if len(text) > _LINE_CHARACTERS_MAX:
        return None
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        kind = str(match.lastgroup)
        if kind == "redirection" and match.group().lstrip("0123456789") in {"<<", "<<-"}:
            found.append(("word", text[at:]))
            return found
        if kind not in {"space", "comment"}:
            found.append((kind, match.group()))
        at = match.end()
    return found


def _read_parts(
    tokens: Sequence[tuple[str, str]], directory: str, assignments: frozenset[str]
) -> list[_Part]:
    parts: list[_Part] = []
    groups: list[tuple[str, frozenset[str]]] = []
    before = ""
    for words, _, operator in _split_commands(tokens):
        if words:
            part = _Part(words, before, operator, operator not in {"|", "|&"})
            directory, assignments = _apply_setup(part, directory, assignments)
            if part.words:
                parts.append(part)
            before = operator
        elif operator not in {"(", ")", "\n"}:
            before = operator
            if parts and operator:
                parts[-1].after = operator
                parts[-1].pipe_end = parts[-1].pipe_end and operator not in {"|", "|&"}
        if operator == "(":
            groups.append((directory, assignments))
        elif operator == ")" and groups:
            directory, assignments = groups.pop()
    return parts


def _apply_setup(
    part: _Part, directory: str, assignments: frozenset[str]
) -> tuple[str, frozenset[str]]:
    """Take what a part sets for itself out of its words; return what holds for the parts after it."""
    own = set(assignments)
    words = part.words
    if words[0] == "env":
        words = [w for w in words[1:] if w not in {"-i", "-", "--"}]
        words = words or ["env"]
    while words and _ASSIGNMENT.match(words[0]):
        own.add(_unquote(words.pop(0)))
    part.words = [_unquote(word) for word in words]
    part.directory, part.assignments = directory, frozenset(own)
    if not part.words:
        return directory, frozenset(own)
    if part.words[0] in {"cd", "pushd"}:
        given = [w for w in part.words[1:] if w != "--"]
        target = given[0] if given else "~"
        part.words = []
        return join_directory(directory, target), assignments
    if part.words[0] == "export":
        exported = {w for w in part.words[1:] if _ASSIGNMENT.match(w)}
        part.words = []
        return directory, assignments | exported
    return directory, assignments


def join_directory(base: str, path: str) -> str:
    """Return `path` as seen from `base`, normalised; empty for the base of an unknown directory."""
    joined = posixpath.normpath(posixpath.join(base, path or "."))
    return "" if joined == "." else joined


def _unquote(word: str) -> str:
    if word.startswith(("<<", "$(")):
        return word
    return _WORD_PART.sub(lambda m: next(g for g in m.groups() if g is not None), word)


def _decides_status(parts: Sequence[_Part], number: int, *, stops_at_failure: bool) -> bool:
    """Return whether the line can only have succeeded if this part did."""
    after = [part.after for part in parts[number:]]
    before = parts[number].before
    if before == "||" or "||" in itertools.takewhile(
        lambda one: one not in {";", "\n", "&"}, after
    ):
        return False
    ends = [
        i for i, operator in enumerate(after[:-1]) if operator in {";", "\n", "&", ")", "(", ";;"}
    ]
    if after[-1] == "&" or (ends and after[ends[0]] == "&"):
        return False
    return not ends or stops_at_failure


def _find_inner_line(command: SimpleCommand) -> str | None:
    """The line that `bash -lc "…"` runs; None for any other command."""
    words = command.words
    if posixpath.basename(words[0]) not in _SHELLS:
        return None
    for word, following in itertools.pairwise(words[1:]):
        if re.fullmatch(r"-\w*c", word):
            return following
        if not word.startswith("-"):
            return None
    return None
