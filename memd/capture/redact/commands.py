"""Passwords among the arguments of known programs: `docker login -p x`, `curl -su user:x`, `echo x | sudo -S`. Pure.

The second half finds what a command prints that is there to print a secret: `op read …`, `echo $DB_PASSWORD`.

`-p` is a port, a path or a process for most programs, so a table says which programs take a password, where, and
after which subcommand. A command ends with its line or at `|`, `;` and `&&`. References (`$PASS`) and words of a
usage (`-p PASSWORD`) stay.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from memd.capture.redact.names import (
    VOCABULARY,
    is_likely_secret,
    is_naming,
    is_reference,
    secret_rule,
)
from memd.capture.redact.regexes import Found, Reading, as_sign, compile_regex, read_tables

RULE = "cli-password"


class _Program(NamedTuple):
    """The places where a program takes a password: a row of `programs.toml`, which says what each field means."""

    names: str
    flags: str = ""
    glued: str = ""
    pairs: str = ""
    cookies: str = ""
    after: str = ""
    last: int = 0


_PROGRAMS = tuple([_Program(**row) for row in read_tables("programs.toml").values()])
_WITHOUT_FLAGS = frozenset(VOCABULARY["commands"]["flagless"])
_ROOTS = ("mongo", "ldap", "mysql", "maria", "snmp", "mosquitto_", "smb", "7z", "http", "unrar")


def _group_by_root(names: frozenset[str]) -> dict[str, list[str]]:
    """Group search words by a beginning that several share; so most texts are searched for few."""
    roots: dict[str, list[str]] = {}
    for needle in sorted(f"{name} " for name in names):
        root = next((root for root in _ROOTS if needle.startswith(root)), f"{needle[:-1]}\n")
        roots.setdefault(root, []).append(needle)
    return roots


_NEEDLES = _group_by_root(
    frozenset(name for program in _PROGRAMS for name in program.names.split())
)
_FLAGLESS_NEEDLES = _group_by_root(_WITHOUT_FLAGS)
PROGRAM_NEEDLES = frozenset((*_NEEDLES, *_FLAGLESS_NEEDLES))
"""What `find_in_commands` searches for in the words of a text."""
_WITHIN_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_ESCAPED_BREAKS = frozenset({"\\n", "\\t", "\\r"})
_ARGUMENT = (
    r"(?:\\{0,3}\"(?P<double>(?:[^\"\\\n]|\\(?!\\{0,2}\"))*)\\{0,3}\"|'(?P<single>[^'\n]*)'|[^\s\"'`|;&<>()\\]"
    r"|\\[^\s\"n])+"
)
_BLANK = r"(?:[ \t]|\\\n[ \t]*)+"
_COMMAND_CHARACTERS = 1_000
_ARGUMENTS_MAX = 60
_PAIR = r"[^\s:%,\"']{0,128}[:%,](?!//)(?P<s>[^\s\"']+)"
_SINK = (
    r"(?P<sink>sudo\s+-\w*S|chpasswd|vncpasswd|kinit|ssh-add|su\s|passwd\b|cryptsetup|--\w*password-stdin|"
    r"--pass(?:word|phrase)-(?:fd|file)[ =](?:0|-)|--with-token|env\s+add|secrets?:?\s*(?:put|set|create|add|versions|login)|"
    r"create\s+secret|pass\s+insert|vault\s+(?:login|write|kv\s+put)|read\s+-\w*s|-pass\s+stdin)"
)
"""What takes a password from its input."""
_PIPED = (
    r"(?:\becho(?:\s+-\w+)*|\bprintf(?:\s+['\"](?:%s)?(?:\\+n)?['\"])?)\s+(?P<q>\\{0,3}[\"']?)(?P<s>[^\n|\"'<>]{1,200}?)"
    rf"(?:\\+n)?(?P=q)\s*\|\s*(?:sudo\s+(?:-\S+\s+)*)?(?:[\w.-]{{2,20}}\s[^|\n]{{0,200}}?)?{_SINK}"
)
_HERE_STRING = (
    rf"{_SINK}[^\n|;<]{{0,120}}<<<\s*(?P<q>\\{{0,3}}[\"']?)(?P<s>[^\n\"'|;]{{1,200}})(?P=q)"
)
_ADDRESS = r"(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2}|:\d{1,5})?"
_PLAIN_WORDS = frozenset(VOCABULARY["commands"]["plain"])
_Span = tuple[int, int]


def find_in_commands(reading: Reading) -> list[Found]:
    """Return the passwords that are given to known programs."""
    text = reading.text
    spans: list[_Span] = []
    has_flags = " -" in text or " /p" in text
    needles = _NEEDLES if has_flags else _FLAGLESS_NEEDLES
    for root in reading.signs & PROGRAM_NEEDLES:
        for needle in needles.get(root, ()):
            for at in _find_program(text, needle):
                spans += _find_in_command(text, needle[:-1], at + len(needle) - 1)
    if "|" in text and ("echo " in text or "printf " in text):
        spans += _find_piped(text, _PIPED)
    if "<<<" in text:
        spans += _find_piped(text, _HERE_STRING)
    return [(start, end, RULE) for start, end in spans if _is_password(text[start:end])]


def _find_program(text: str, needle: str) -> Iterator[int]:
    """Yield where a program's name begins: not within a word, but after an escaped line break."""
    at = text.find(needle)
    while at >= 0:
        before = text[max(0, at - 2) : at]
        if not before or before[-1] not in _WITHIN_WORD or before in _ESCAPED_BREAKS:
            yield at
        at = text.find(needle, at + 1)


def _find_in_command(text: str, name: str, after: int) -> Iterator[_Span]:
    """Yield where passwords may stand among the arguments of one command."""
    arguments = list(_split_arguments(text, after))
    if not arguments:
        return
    words = [text[start:end].strip("\"'\\") for start, end in arguments]
    for program in _PROGRAMS:
        if name not in program.names.split():
            continue
        needed = program.after.split()
        if needed and not any(word.startswith(one) for word in words for one in needed):
            continue
        yield from _find_by_flags(text, program, arguments, words)
        if program.last:
            free = [
                span for span, word in zip(arguments, words, strict=True) if word[:1] not in "-/"
            ]
            subcommands = sum(word in needed for word in words if word[:1] not in "-/")
            if len(free) >= subcommands + program.last:
                yield _inside_quotes(text, *free[-1])


def _split_arguments(text: str, at: int) -> Iterator[_Span]:
    """Yield the spans of a command's arguments, up to where it ends."""
    limit = min(len(text), at + _COMMAND_CHARACTERS)
    blank, argument = compile_regex(_BLANK), compile_regex(_ARGUMENT)
    for _ in range(_ARGUMENTS_MAX):
        gap = blank.match(text, at, limit)
        word = argument.match(text, gap.end(), limit) if gap else None
        if word is None or not word[0]:
            return
        yield word.span()
        at = word.end()


def _find_by_flags(
    text: str, program: _Program, arguments: list[_Span], words: list[str]
) -> Iterator[_Span]:
    flags, pairs, cookies = (s.split() for s in (program.flags, program.pairs, program.cookies))
    for n, (span, word) in enumerate(zip(arguments, words, strict=True)):
        following = arguments[n + 1] if n + 1 < len(arguments) else None
        name, _, given = word.partition("=")
        value = (text.index("=", *span) + 1, span[1]) if given and name[:2] == "--" else following
        if value is None:
            pass
        elif name in flags or _ends_cluster(word, flags):
            yield _without_scheme(text, *_inside_quotes(text, *value))
        elif name in pairs or _ends_cluster(word, pairs):
            yield from _password_of_pair(text, *_inside_quotes(text, *value))
        elif name in cookies and "=" in text[value[0] : value[1]]:
            yield _inside_quotes(text, *value)
        for prefix in program.glued.split():
            if word.startswith(prefix) and len(word) > len(prefix) and word[:2] != "--":
                start = _inside_quotes(text, *span)[0] + len(prefix)
                inside = _inside_quotes(text, start, span[1])
                yield from _password_of_pair(text, *inside) if pairs else [inside]


def _ends_cluster(word: str, flags: list[str]) -> bool:
    """Return whether a cluster of flags ends with one: `-su` with `-u`."""
    if not (word[:1] == "-" and word[1:].isalpha() and 2 < len(word) <= 6):  # noqa: PLR2004
        return False
    return any(len(flag) == 2 and word.endswith(flag[1]) for flag in flags)  # noqa: PLR2004


def _inside_quotes(text: str, start: int, end: int) -> _Span:
    while start < end and text[start] in "\\\"'":
        start += 1
    while end > start and text[end - 1] in "\\\"'":
        end -= 1
    return start, end


def _without_scheme(text: str, start: int, end: int) -> _Span:
    """Return `x` of `pass:x`, the notation of OpenSSL and apksigner."""
    return (start + 5, end) if text.startswith("pass:", start) else (start, end)


def _password_of_pair(text: str, start: int, end: int) -> Iterator[_Span]:
    found = compile_regex(_PAIR).match(text, start, end)
    if found:
        yield found.span("s")


def _find_piped(text: str, regex: str) -> Iterator[_Span]:
    """Yield what is written into a program that reads a password."""
    for found in compile_regex(regex).finditer(text):
        start, end = found.span("s")
        while end > start and text[end - 1] in " \t\\":
            end -= 1
        if found["sink"].endswith("chpasswd"):
            start = text.find(":", start, end) + 1 or start
        yield start, end


def _is_address(value: str) -> bool:
    """Return whether this is the address of a computer or a network."""
    return compile_regex(_ADDRESS).fullmatch(value) is not None


def _is_password(value: str) -> bool:
    """Return whether an argument where a password belongs is one, and no reference or word of a usage."""
    if is_reference(value) or value[:1] in "-$<>{[%" or is_naming(value) or _is_address(value):
        return False
    if value.isalpha():
        return len(value) > 3 and not value.isupper() and value.lower() not in _PLAIN_WORDS  # noqa: PLR2004
    schemes = ("env:", "file:", "fd:", "oauth2:$", "/", "./", "~/")
    return not value.startswith(schemes) and (len(value) > 3 or is_likely_secret(value))  # noqa: PLR2004


# ── What is printed ──────────────────────────────────────────────────────────────────────────────

PRINTED_RULE = "printed-secret"
_PRINTS = "|".join(VOCABULARY["commands"]["printing"])
_NAMED = r"(?:printenv\s+|echo\s+[\"']?\$\{?|output\s+-raw\s+|Env:)(?P<name>\w{2,60})"
_PRINTING_NEEDLES = tuple(VOCABULARY["commands"]["printing_needles"])
PRINTED_SIGNS = frozenset(as_sign(needle.lower()) for needle in _PRINTING_NEEDLES)
"""What is in the words of a text in which `find_printed` may find something."""
_PROMPTED = r"(?m)^(?:[^\n$#%>❯]{0,60}[$#%>❯][ \t]{1,4})?(?P<command>[^\n]{6,400})\r?\n(?P<s>\S{5,512})[ \t]*\r?$"
_WHOLE_MAX = 4_096
_OUTPUTS = ("stdout", "output", "content", "text", "tool_response")


def prints_secret(command: str) -> bool:
    """Return whether what this command prints is a secret, by its program or by the name that it prints."""
    if len(command) > _WHOLE_MAX or not any(map(command.__contains__, _PRINTING_NEEDLES)):
        return False
    if compile_regex(_PRINTS).search(command):
        return True
    named = compile_regex(_NAMED).finditer(command)
    return any(secret_rule(found["name"]) is not None for found in named)


def find_printed(text: str) -> Iterator[Found]:
    """Yield what stands in a shell's transcript below a command that prints a secret."""
    if "\n" not in text or not any(map(text.__contains__, _PRINTING_NEEDLES)):
        return
    for found in compile_regex(_PROMPTED).finditer(text):
        if prints_secret(found["command"]) and is_likely_secret(found["s"]):
            yield (*found.span("s"), PRINTED_RULE)


def redact_output(response: Any) -> Any:
    """Redact the first line that a command printed, if it is one word; the rest has names of its own."""
    if isinstance(response, dict):
        return {k: redact_output(v) if k in _OUTPUTS else v for k, v in response.items()}
    if isinstance(response, list):
        return [redact_output(one) for one in response]
    if not isinstance(response, str):
        return response
    first, line_break, rest = response.lstrip().partition("\n")
    is_word = len(first) > 3 and len(first.split()) == 1 and not is_reference(first)  # noqa: PLR2004
    is_secret = is_word and re.fullmatch(r"[\[{<].*|\w+:", first) is None
    return f"[REDACTED:{PRINTED_RULE}]{line_break}{rest}" if is_secret else response
