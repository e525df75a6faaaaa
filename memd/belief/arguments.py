"""Find the commands, flags, paths and pieces of code that a sentence names, and what in a text can be run. Pure.

What stands in backticks is meant as it stands. Without them only what can hardly be anything else counts: a
known program with its subcommand or flags, a long flag, a path that ends with `/` or has a file's ending.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from memd.belief.polarity import WORDS
from memd.patterns import compile_lazily

_QUOTED = compile_lazily(r"`+([^`\n]{1,200})`+|[\"“„«「]([^\"“”„«»「」\n]{2,200})[\"”“»」]")
_FLAG = compile_lazily(r"--?[A-Za-z][\w-]*(?:=\S*)?\Z")
_LONG_FLAG = compile_lazily(r"--[a-z][\w-]{2,}(?:=\S+)?\Z")
_WORD = compile_lazily(r"[\w@./:+-]+\Z")
_NAME = compile_lazily(r"[a-z][a-z0-9_.-]*\Z")
_PATH = compile_lazily(r"~?\.{0,2}/?[\w.@*?+-]+(?:/[\w.@*?+-]+)*/?(?:\*\*)?\Z")
_SCRIPT = compile_lazily(r"\.{0,2}/?[\w.@+-]+(?:/[\w@+-]+)*/[\w@+-]+(?:\.(?:sh|bash))?\Z")
"""A path that can be run: its name has no ending, or a shell's."""
_CODE = compile_lazily(r".*(?:\w\.\w|\w\(|::|->|@\w|!\w|#\s?\w|_\w|[a-z][A-Z]|[<>{}\[\]$=]).*\Z")
_PLACEHOLDER = compile_lazily(r"<[^>]*>|\[[^\]]*\]|\{[^}]*\}|\.{3}|…|\*")

_SUBCOMMANDS: dict[str, str] = WORDS.rows["subcommands"]
_PROGRAMS = WORDS.list_words("programs") | set(_SUBCOMMANDS)
"""What is a command in backticks; without them, only those above with their subcommands."""
_RUNS_NAME = frozenset({("npm", "run"), ("pnpm", "run"), ("yarn", "run"), ("bun", "run"), ("uv", "run"), ("poetry", "run"),
                        ("npm", "exec"), ("pnpm", "exec"), ("pnpm", "dlx"), ("docker", "compose"), ("gh", "pr"),
                        ("gh", "release"), ("glab", "mr"), ("uv", "pip"), ("conda", "env"), ("go", "mod")})  # fmt: skip
_WORDS_MAX = 8


@dataclass(frozen=True, slots=True)
class Argument:
    """An exact argument; the sentence decides what it is where its form does not."""

    text: str
    start: int
    end: int
    is_command: bool = False
    is_flag: bool = False
    is_path: bool = False
    is_code: bool = False
    is_name: bool = False
    """Whether it begins with a word that no known program has: a command only if the sentence says that it is run."""


def find_arguments(text: str) -> Iterator[Argument]:
    """Yield the arguments of a text in their order."""
    at = 0
    for quoted in _QUOTED.finditer(text):
        yield from _find_bare(text, at, quoted.start())
        at = quoted.end()
        content = next(group for group in quoted.groups() if group is not None).strip()
        found = _classify(content, quoted.start(), quoted.end())
        if quoted.group(1) is None:
            # Quotation marks are around words as well: they must be a command, flag or path by themselves.
            found = _classify_bare(content, quoted.start(), quoted.end()) if found else None
        if found is not None:
            yield found
    yield from _find_bare(text, at, len(text))


def _classify(content: str, start: int, end: int) -> Argument | None:
    """Classify the text of a code span."""
    bare = " ".join(_PLACEHOLDER.sub(" ", content).split()) if " " in content else content
    tokens = bare.split()
    if not tokens or len(tokens) > _WORDS_MAX:
        return None
    first = tokens[0]
    is_script = bool(_SCRIPT.match(first))
    is_name, is_code = bool(_NAME.match(bare)), bool(_CODE.match(bare))
    if _FLAG.match(first) and _are_shell_words(tokens[1:]):
        found = Argument(bare, start, end, is_flag=True)
    elif len(tokens) > 1:
        is_plain = bool(_NAME.match(first)) and _are_shell_words(tokens[1:])
        has_flag = any(token.startswith("-") for token in tokens[1:])
        is_shell = first in _PROGRAMS or is_script or (is_plain and has_flag)
        found = Argument(
            bare, start, end, is_command=is_shell, is_code=not is_shell, is_name=is_plain
        )
    elif first in _PROGRAMS:
        found = Argument(bare, start, end, is_command=True)
    elif _PATH.match(bare) and ("/" in bare or WORDS["file with an ending"].match(bare)):
        # `process.env` looks like a file, too.
        is_code = "/" not in bare and bool(re.match(r"[A-Za-z]\w*\.\w+\Z", bare))
        found = Argument(bare, start, end, is_path=True, is_command=is_script, is_code=is_code)
    else:
        found = Argument(bare, start, end, is_code=is_code, is_name=is_name)
    is_any = found.is_flag or found.is_command or found.is_path or found.is_code or found.is_name
    return found if is_any else None


def _are_shell_words(tokens: list[str]) -> bool:
    return all(_WORD.match(token) or _FLAG.match(token) for token in tokens)


def _find_bare(text: str, start: int, end: int) -> Iterator[Argument]:
    """Yield what is plainly a command, a flag or a path without any marks."""
    tokens = list(WORDS["bare word"].finditer(text, start, end))
    number = 0
    while number < len(tokens):
        count = _measure_command(text, tokens[number:])
        first, last = tokens[number], tokens[number + max(count, 1) - 1]
        content = " ".join(one.group() for one in tokens[number : number + max(count, 1)])
        if count:
            yield Argument(content, first.start(), last.end(), is_command=True)
        elif found := _classify_bare(content, first.start(), first.end()):
            yield found
        number += count or 1


def _classify_bare(content: str, start: int, end: int) -> Argument | None:
    tokens = list(WORDS["bare word"].finditer(content))
    if _measure_command(content, tokens) == len(tokens) > 0:
        return Argument(content, start, end, is_command=True)
    if _LONG_FLAG.match(content):
        return Argument(content, start, end, is_flag=True)
    is_directory = content.endswith("/") and len(content) > 2  # noqa: PLR2004  # `a/` may be a half of a word
    is_file = "/" in content or content.startswith(".") or content.count(".") == 1
    if "://" in content or not _PATH.match(content):
        return None
    if is_directory or (is_file and WORDS["file with an ending"].match(content)):
        return Argument(content, start, end, is_path=True)
    return None


def _measure_command(text: str, tokens: list[re.Match[str]]) -> int:
    """Count the leading words that are one command; 0 if they begin none."""
    if not tokens or (program := tokens[0].group()) not in _SUBCOMMANDS:
        return 0
    known = _SUBCOMMANDS[program].split()
    words = [program]
    for before, token in itertools.pairwise(tokens):
        word = token.group()
        if text[before.end() : token.start()].strip(" ") or len(words) == _WORDS_MAX:
            break
        is_sub = len(words) == 1 and word in known
        is_name = tuple(words) in _RUNS_NAME and _NAME.match(word)
        is_option = word.startswith("-") and _FLAG.match(word)
        is_operand = program in {"rm", "chmod"} and len(words) > 1 and "/" in word
        if not (is_sub or is_name or is_option or (is_operand and _PATH.match(word))):
            break
        words.append(word)
    is_english = program in WORDS.list_words("programs that are English words")
    return 0 if len(words) == 1 and is_english else len(words)


# ── What can be run, fetched or installed ─────────────────────────────────────────────────────────

_ASSIGNMENT = compile_lazily(r"(?:export\s+)?[A-Za-z_]\w*=\S*\s+\S")
"""A variable that is set for what follows it."""
_CODE_SPAN = compile_lazily(r"`([^`\n]{1,300})`")
_URL = compile_lazily(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s`'\"<>)]+", re.IGNORECASE)
_ADDRESS = compile_lazily(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_SET_VARIABLE = compile_lazily(r"(?<![\w.])[A-Z][A-Z0-9_]{2,}=\S*")
_ANY_FLAG = compile_lazily(r"(?<![\w-])--?[a-zA-Z][\w-]*(?:=\S+)?")
_PIPE = compile_lazily(
    r"\|\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|python\d?|node|perl)\b|\$\(|\s>{1,2}\s+/"
)
_SHELL_HEADS = WORDS.list_words("shell heads")
_BEFORE_COMMAND = WORDS.list_words("before a command") | {""}
"""Words before a program's name that make it a command, not a noun; the empty one is a sentence's beginning."""
_NO_ARGUMENT = WORDS.list_words("no arguments")
_VERB_LETTERS = 4


def find_runnable(text: str) -> Iterator[str]:
    """Yield every command, URL, host, package, flag and path to run in a text."""
    host, path = WORDS["host"], WORDS["path to run"]
    for pattern in (_URL, host, _ADDRESS, _SET_VARIABLE, _ANY_FLAG, path, _PIPE):
        yield from (
            (match[match.lastindex or 0]).rstrip(".,;:") for match in pattern.finditer(text)
        )
    yield from (match[1].rstrip(".,;:") for match in WORDS["package"].finditer(text))
    for span in _CODE_SPAN.findall(text):
        is_line = re.search(r"\s-|[|;&$]", span) or _ASSIGNMENT.match(span)
        if _SHELL_HEADS.intersection(span.split()[:1]) or (span.strip() and is_line):
            yield span
    for sentence in re.split(r"[.,;:()\n]\s|\n", text):
        tokens = re.findall(r"[^\s,;:()`\"'“”]+", sentence)
        for before, head, following in zip(["", *tokens], tokens, tokens[1:], strict=False):
            is_command = head in _SHELL_HEADS and before.lower() in _BEFORE_COMMAND
            # “npm breaks the lockfile” says what npm does.
            is_verb = not before and len(following) > _VERB_LETTERS and following[-1:] == "s"
            is_verb = is_verb and following not in WORDS.list_words("plural arguments")
            if is_command and following.islower() and not is_verb and following not in _NO_ARGUMENT:
                yield f"{head} {following}"
