"""Secrets known by their form: issued tokens, headers, URLs with credentials, command lines, known files. Pure.

The patterns are rows of `patterns.toml`. Only the last group of a regex is redacted, so that the text around a password
stays: `postgres://user:[REDACTED:database-url]@host`. A regex is compiled when one of its needles is first seen,
so a hook without a daemon compiles few.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from memd.capture.redact.names import is_likely_secret, is_reference
from memd.capture.redact.regexes import (
    PLACEHOLDER,
    compile_regex,
    find_all,
    read_tables,
    replace_spans,
)

HEX_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
# Not inside a longer word, except after an escaped line break (`\n` inside a JSON string).
EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
WORD_EDGE = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_GAP = r"\\{0,7}[\"'`]?\s{0,4}[:=]\s{0,4}\\{0,7}[\"'`]?"
_NAME = r"(?:pass(?:word|wd|code|phrase|wort)?|pwd|pw|secret|token|api[ _-]?key|contraseña|senha|kennwort)"
_STRING = r"\\{0,3}[\"'`](?P<s>[^\"'`\n\\]{3,200})\\{0,3}[\"'`]"
_WORD_STRING = r"\\{0,3}[\"'`](?P<s>[^\s\"'`\\]{3,200})\\{0,3}[\"'`]"
# `user:password` names what belongs there.
_PAIR_OF_WORDS = r"(?!(?i:user(?:name)?|login|email|name):(?:pass(?:word|wd)?|pw|pwd)(?!\w))"
_ANY_STRING = r"@?\\{0,3}[\"'`][^\"'`\n\\]{0,200}\\{0,3}[\"'`]"

_PARTS = {
    "{EDGE}": EDGE, "{WORD_EDGE}": WORD_EDGE, "{GAP}": _GAP, "{UUID}": HEX_UUID, "{NAME}": _NAME,
    "{PAIR}": _PAIR_OF_WORDS, "{STRING}": _STRING, "{WORD_STRING}": _WORD_STRING, "{ANY_STRING}": _ANY_STRING,
}  # fmt: skip
"""What stands in braces in the regexes of the table."""
_PLACEHOLDER_CHARACTERS_MAX = 64


class Pattern(NamedTuple):
    """One secret known by its form: a row of `patterns.toml`, which says what each field means."""

    name: str
    regex: str
    needles: tuple[str, ...]
    folded: bool = False
    references: bool = False
    begins: bool = False
    run: int = 0
    gate: tuple[str, ...] = ()
    named: bool = False
    check: Callable[[str], bool] | None = None

    def compiled(self) -> re.Pattern[str]:
        """The regex, compiled once."""
        return compile_regex(self.regex, re.ASCII)


def is_login(coded: str) -> bool:
    """Return whether this is base64 of `user:password`."""
    try:
        plain = base64.b64decode(coded + "=" * (-len(coded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    user, colon, password = plain.partition(b":")
    return bool(colon and user and password) and all(c >= 32 for c in plain)  # noqa: PLR2004


def _is_given(value: str) -> bool:
    """Return whether a value in quotes is a secret: more than a sign or a template."""
    return len(value) > 2 and not is_reference(value) and value[0] not in "$%{:?"  # noqa: PLR2004


def _is_password(value: str) -> bool:
    """Return whether a value is a secret where hardly anything else stands: also a plain word."""
    is_word = value.isalpha() and value.isascii() and value.islower() and len(value) > 4  # noqa: PLR2004
    return is_likely_secret(value) or (is_word and not is_reference(value))


_DISTINCT_DIGITS_MIN = 4


def _is_card(value: str) -> bool:
    """Return whether these digits are a card's, by Luhn's sum; not a published number for tests, of few digits."""
    digits = [int(c) for c in value if c.isdigit()]
    doubled = (sum(divmod(2 * n, 10)) for n in digits[-2::-2])
    is_valid = (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
    return is_valid and len(set(digits)) >= _DISTINCT_DIGITS_MIN


_CHECKS: dict[str, Callable[[str], bool]] = {
    "is_card": _is_card, "is_given": _is_given, "is_likely_secret": is_likely_secret, "is_login": is_login, "is_password": _is_password,
}  # fmt: skip


def _read_pattern(name: str, row: dict[str, Any]) -> Pattern:
    """Return the pattern of a row, with the parts in braces filled in."""
    if "{" in (regex := row["regex"]):
        for part, meant in _PARTS.items():
            regex = regex.replace(part, meant)
    marks = {k: row[k] for k in ("folded", "references", "begins", "run", "named") if k in row}
    gate, check = _unescape(row.get("gate", ())), _CHECKS.get(row.get("check", ""))
    return Pattern(name, regex, _unescape(row.get("needles", ())), gate=gate, check=check, **marks)


def _unescape(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not any("\\" in text for text in texts):
        return texts
    return tuple([text.replace(r"\x27", "'").replace(r"\n", "\n") for text in texts])


PATTERNS = tuple([_read_pattern(name, row) for name, row in read_tables("patterns.toml").items()])
"""Every secret known by its form, in the order in which they are tried."""


def replace_secrets(text: str, lowered: str, pattern: Pattern) -> str:
    """Replace what a pattern finds in a text; return the very text if it finds nothing. `lowered`: its `lower()`."""
    found = [
        (start, end, pattern.name)
        for span in _find_secrets(text, lowered, pattern)
        for start, end in [_widen_to_placeholder(text, *span)]
        if _is_secret(text[start:end], pattern)
    ]
    return replace_spans(text, found)


def _is_secret(value: str, pattern: Pattern) -> bool:
    if not compile_regex(PLACEHOLDER).sub("", value):
        return False
    if pattern.references and is_reference(value):
        return False
    return pattern.check is None or pattern.check(value)


def _widen_to_placeholder(text: str, start: int, end: int) -> tuple[int, int]:
    """Exclude part of a placeholder at the span's beginning, and include all of one at its end."""
    opened = text.rfind("[REDACTED:", max(0, start - _PLACEHOLDER_CHARACTERS_MAX), start + 9)
    if 0 <= opened < start and (before := compile_regex(PLACEHOLDER).match(text, opened)):
        start = max(start, before.end())
    last = text.rfind("[REDACTED:", start, end + 9)
    if start <= last < end and (within := compile_regex(PLACEHOLDER).match(text, last)):
        end = max(end, within.end())
    return start, max(start, end)


def _find_secrets(text: str, lowered: str, pattern: Pattern) -> Iterator[tuple[int, int]]:
    """Yield the spans that a pattern matches; one that begins with a needle is tried only there."""
    regex = pattern.compiled()
    done = 0
    if not pattern.begins:
        while found := regex.search(text, done):
            for span in _find_adjacent(text, regex, found):
                yield span
                done = span[1]
            done = max(done, found.end(), found.start() + 1)
        return
    where = lowered if pattern.folded else text
    needles = [needle for needle in pattern.needles if needle in where]
    for at in sorted({at for needle in needles for at in find_all(needle, where)}):
        if at >= done and (found := regex.match(text, at)):
            for span in _find_adjacent(text, regex, found):
                yield span
                done = span[1]
            done = max(done, found.end())


def _find_adjacent(
    text: str, regex: re.Pattern[str], first: re.Match[str]
) -> Iterator[tuple[int, int]]:
    """Yield the span of a secret, and of each that begins where the previous one ends.

    A pattern needs an edge before a secret; without this every pass would find one of a hundred in a row.
    """
    at, found = 0, first
    while True:
        start, end = found.span(found.lastindex or 0)
        yield at + start, at + end
        is_last = end < found.end() or not text[at + end : at + end + 1].isalnum()
        again = None if is_last else regex.match(text[at + end :])
        if again is None or not again.end(again.lastindex or 0):
            return
        at, found = at + end, again
