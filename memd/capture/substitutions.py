"""Read what a shell command gives way and puts in place in files with `sed -i` or `perl -pi`. Pure.

A substitution is a pattern. What it names stands in it word for word, so the pattern is read as the shortest text that it
matches; a value that it leaves open (`[0-9]*`, `.*`) is unknown in the old text and stands in the new one.
"""

import re
import shlex
from collections.abc import Iterator

_COMMANDS_MAX = 20
_COMMAND_CHARACTERS_MAX = 8_000
_LEADING_CD = re.compile(r"\s*cd\s+([^\s;&|$~]+)\s*(?:&&|;|\n)")
_IN_PLACE = re.compile(r"-\w*i\S*$|--in-place(?:=.*)?$")
_SUBSTITUTION = re.compile(r"\s*(?:\d+\s*)?s(?P<mark>[^\w\s\\])(?P<rest>.+)$", re.DOTALL)
_OPEN = re.compile(
    r"(?:\[(?:\^?\]?[^\]]*)\]|\\[dwsSDWb]|(?<!\\)\.)(?:[*+?]|\\[+?]|\\?\{\d*,?\d*\\?\})?|[*+?](?=\s|$)"
)
"""What stands for any text in a pattern, with how often."""
_SPACES = re.compile(r"(?:\\s|\[\[:space:\]\]|\[ (?:\\t)?\]| )(?:[*+]|\\\+)")
_GROUP = re.compile(r"\\?\((?:\?:)?((?:[^()\\]|\\[^()])*)\\?\)")
_ESCAPED = re.compile(r"\\([^\w\s])")
_REFERENCE = re.compile(r"[\\$]\{?(\d)\}?|\\g<(\d)>|(?<!\\)&")


def read_substitutions(command: str) -> list[tuple[str, str, str]]:
    """(file, old, new) of each substitution that a command line makes in a file."""
    if len(command) > _COMMAND_CHARACTERS_MAX or not re.search(r"\b(?:sed|perl)\b", command):
        return []
    found: list[tuple[str, str, str]] = []
    for words in _split_commands(command)[:_COMMANDS_MAX]:
        scripts, files = _read_words(words)
        for script in scripts:
            for old, new in _read_script(script, is_perl=words[0].endswith("perl")):
                found += [(file, old, new) for file in files]
    return found


def find_directory(command: str) -> str:
    """Find the directory that a command line enters first, as far as it says: `cd api && …`; empty if it stays."""
    moved = _LEADING_CD.match(command)
    return moved[1].strip("'\"") if moved else ""


def _split_commands(line: str) -> list[list[str]]:
    """The words of each command of a line; none if it cannot be read."""
    try:
        lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars="&;|\n")
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
        parts = list(lexer)
    except ValueError:
        return []
    commands: list[list[str]] = [[]]
    for part in parts:
        if set(part) <= set("&;|\n") and part:
            commands.append([])
        else:
            commands[-1].append(part)
    return [words for words in commands if words]


def _read_words(words: list[str]) -> tuple[list[str], list[str]]:
    """(scripts, files) of a command that edits files in place; nothing of any other."""
    if words[0] == "sudo":
        words[:] = words[1:]
    name = words[0].rpartition("/")[2] if words else ""
    if name not in ("sed", "gsed", "perl"):
        return [], []
    scripts: list[str] = []
    rest: list[str] = []
    is_in_place, at = False, 1
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith("-") and len(word) > 1:
            is_in_place |= _IN_PLACE.match(word) is not None
            takes_script = word == "--expression" or (word[1] != "-" and word.endswith("e"))
            if word.startswith("--expression="):
                scripts.append(word.partition("=")[2])
            elif takes_script and at < len(words):
                scripts.append(words[at])
                at += 1
        elif word:  # `sed -i ''`, as on macOS
            rest.append(word)
    if not is_in_place:
        return [], []
    if not scripts and name != "perl":
        scripts, rest = rest[:1], rest[1:]
    files = [one for one in rest if not set(one) & set("*?$<>`")]
    return scripts, files if len(files) == len(rest) else []


def _read_script(script: str, *, is_perl: bool) -> Iterator[tuple[str, str]]:
    """(old, new) of each `s/old/new/`."""
    text = script
    while found := _SUBSTITUTION.match(text):
        parts, text = _split_at(found["rest"], found["mark"])
        if len(parts) < 2:  # noqa: PLR2004  # the pattern and what takes its place
            return
        if pair := _read_pattern(*parts, is_perl=is_perl):
            yield pair
        flags = re.match(r"[a-zA-Z0-9]*\s*(?:[;\n]|$)", text)
        if flags is None:
            return
        text = text[flags.end() :]


def _split_at(text: str, mark: str) -> tuple[list[str], str]:
    """The two parts before unescaped marks, and what follows."""
    parts: list[str] = []
    begin, at = 0, 0
    while at < len(text) and len(parts) < 2:  # noqa: PLR2004  # as above
        if text[at] == "\\":
            at += 1
        elif text[at] == mark:
            parts.append(text[begin:at].replace("\\" + mark, mark))
            begin = at + 1
        at += 1
    return parts, text[begin:]


def _read_pattern(pattern: str, new: str, *, is_perl: bool) -> tuple[str, str] | None:
    """The shortest text of a pattern, and what it becomes; None if it leaves open more than a value."""
    plain = _SPACES.sub(" ", pattern.removeprefix("^").removesuffix("$"))
    groups = [_strip_open_parts(one[1])[0] for one in _GROUP.finditer(plain)] if _has_groups(plain, is_perl=is_perl) else []  # fmt: skip
    if groups:
        plain = _GROUP.sub(r"\1", plain)
    old, is_open = _strip_open_parts(plain)
    whole = old
    replaced = _REFERENCE.sub(lambda found: _expand_reference(found, groups, whole), new)
    replaced = _ESCAPED.sub(r"\1", replaced)
    if "|" in plain and not is_open and "\\|" in plain:
        return None
    return ("" if is_open else old, replaced)


def _has_groups(pattern: str, *, is_perl: bool) -> bool:
    return "\\(" in pattern or is_perl or ("(" in pattern and ")" in pattern)


def _expand_reference(found: re.Match[str], groups: list[str], whole: str) -> str:
    number = int(found[1] or found[2] or 0)
    if number == 0:
        return whole
    return groups[number - 1] if number <= len(groups) else ""


def _strip_open_parts(pattern: str) -> tuple[str, bool]:
    """A pattern without what it leaves open and without escapes, and whether it left something open."""
    # A dot that nothing follows stands for itself: nobody escapes those of 1.2.3.
    open_dots = re.sub(r"(?<!\\)\.(?![*+?]|\\\+|\{)", r"\\.", pattern)
    text = _OPEN.sub("", open_dots)
    return _ESCAPED.sub(r"\1", text), text != open_dots
