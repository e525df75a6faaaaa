"""Codes and keys that open something, told in a sentence: "the code for the gate is 4711B", "clé wifi : …". Pure.

Codes and keys are also those of tables, errors and parts. What they are is said by a word beside them (`opens` in words.toml),
and their values are drawn or those of a keypad; a plain word never is one.
"""

import re
from collections.abc import Iterator

from memd.capture.redact import names
from memd.capture.redact.names import judge
from memd.capture.redact.regexes import Reading, compile_regex
from memd.capture.redact.words import (
    CODE_NAME,
    LINE,
    Word,
    among,
    begin_of_line,
    find_foreign,
    find_words,
    group_by_letters,
    group_by_sign,
    list_last_parts,
    read_tokens_after,
)

_LASTS_BY_SIGN = group_by_sign(list_last_parts("code"))
_FOREIGN = group_by_letters(list_last_parts("code"))
OPENING_SIGNS = frozenset(_LASTS_BY_SIGN)
"""What is searched for in the words of a text, each with a line break behind it."""
_OPENED = frozenset(
    part
    for row in names.WORD_TABLES.values()
    for word in ("redacted", *row.get("opens", "").split())
    for part in word.split("-")
)
"""What they open, and what stands in the place of a secret before another."""
_AFTER = 6
"""Words after a code among which what it opens may stand."""
_LENGTH_MIN = 8
_PARTED_NAME = r"[A-Z]{1,4}-?\d+|[a-z]+\d*(?:[_.:][a-z0-9]+)+|[a-z]+\d*(?:-[a-z0-9]+){1,2}|[A-Z]+\d*(?:[_.:-][A-Z0-9]+)+"
"""What keys, parts and errors are called: `tenant-2024`, `E1042`, `ERR_2024`."""


def find_opening_words(reading: Reading) -> Iterator[tuple[int, int, Word]]:
    """Yield where a code or a key stands that opens something, and by which word it is called."""
    text, lowered = reading.text, reading.lowered
    words = [last for sign in OPENING_SIGNS & reading.signs for last in _LASTS_BY_SIGN[sign]]
    words += find_foreign(lowered, _FOREIGN) if reading.is_foreign else []
    for at, end, word in find_words(text, lowered, words, opening=True):
        near = f"{lowered[max(at - LINE // 2, 0) : at]} {lowered[end : end + LINE // 2]}"
        is_near = not _OPENED.isdisjoint(compile_regex(r"[^\W_]+").findall(near))
        if is_near and _is_opening(text, at, end, word):
            yield at, end, word


def _is_opening(text: str, start: int, end: int, word: Word) -> bool:
    """Return whether what a code or a key opens is named beside it, or a secret was told before it in the line.

    What stands between says of what they are: "error code for the door", "code d'erreur de la porte".
    """
    line = begin_of_line(text, start)
    before = text[line:start].lower().split()[-1:]
    if any(_names_opening(one, word) for one in before):
        return True
    if word.has_english and any(_is_noun(one, word) for one in before):
        return False
    of = has_noun = False
    tokens = [one.bare.lower() for one in read_tokens_after(text, end)[:_AFTER]]
    for n, low in enumerate(tokens):
        if among(word, "of", low):
            if has_noun:
                break
            of = True
        elif _names_opening(low, word):
            if of or not among(word, "of", " ".join(tokens[n + 1 : n + 2])):
                return True  # but not "le code porte sur …"
        elif not among(word, "small", low):
            has_noun = True
            if any(map(str.isdigit, low)):
                break
    return of and "[REDACTED:" in text[line:start]


def _is_noun(low: str, word: Word) -> bool:
    """Return whether a word before another may be a noun that goes with it: none of the small words of its language."""
    kinds = ("small", "of", "to", "being", "closing", "using", "enter")
    return low.isalpha() and not any(among(word, kind, low) for kind in kinds)


def _names_opening(low: str, word: Word) -> bool:
    """Return whether a word is what a code opens, or has it as a part: "l'alarme", the "tür" of "türcode"."""
    bare = low.rstrip("-")
    return bare in word.all.opens or any(
        part in word.all.opens for part in re.split(r"[-'’]", bare)
    )


def is_code(bare: str) -> bool:
    """Return whether a value can be a code or a key that opens something: digits or drawn, and no name in code."""
    kind = judge(bare)
    is_long = kind == names.STRONG or (kind == names.FAIR and len(bare) >= _LENGTH_MIN)
    return kind == names.NUMBER or (
        is_long and not compile_regex(rf"{CODE_NAME}|{_PARTED_NAME}").fullmatch(bare)
    )
