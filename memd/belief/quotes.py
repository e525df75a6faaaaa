"""Find in what somebody typed the words that another quotes of it, and what two texts have in common. Pure.

Who quotes mends: an apostrophe, an umlaut, a slip of the keyboard, and leaves out what stands between (“…”). What is
found are whole sentences in the record's own wording, so a mended word proves no more than what was typed.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from memd.belief import polarity
from memd.text import (
    WORD,
    content_stems,
    find_sentence_ends,
    fold,
    is_stop_word,
    split_sentences,
    without_elision,
    words,
)

BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_ELLIPSIS = re.compile(r"\s*[\[(]?(?:…|\.{3,})[\])]?\s*")
_APOSTROPHES = str.maketrans("", "", "'’")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_QU = re.compile(r"(?i)(?:\w*qu)['’](?=\w)")
_SLIP_LETTERS_MIN, _SLIP_WORDS_MIN = 4, 5
"""A shorter word, and one of fewer words of a quote, is read as it stands."""
_SHARED_STEMS_MIN = 2
_SHARED_PART_MIN = 1 / 3
_SOURCE_WORDS_MIN = 6
"""A run of this many words that also stands in a tool's output is that output's."""
_ALIKE_MIN, _ALIKE_STEMS_MIN = 0.75, 3
_ALIKE_LINES = 2


class QuotedPlace(NamedTuple):
    """Sentences that hold quoted words: as typed, what of them stands before the words, and what behind them."""

    sentence: str
    before: str
    behind: str
    following: str
    """The sentence behind them, if it only takes back or limits what they say."""


def strip_unseen(text: str) -> str:
    """Strip invisible characters: of no width, of direction, soft hyphens."""
    if text.isascii():
        return text
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


def words_of(text: str) -> list[str]:
    """Return the words of a text without case, accents and marks: quotes are compared so."""
    return [fold(word) for word in words(text)]


def find_quote(
    quote: str, parts: Sequence[str], *, allows_slips: bool = False
) -> QuotedPlace | None:
    """Find the whole sentences of one of the parts that hold the quoted words."""
    for part in map(strip_unseen, parts):
        spans = [span for m in WORD.finditer(part) for span in _split_elision(m)]
        tokens = [part[start:end] for start, end in spans]
        found = _find_words(quote, tokens, allows_slips=allows_slips)
        if found is None:
            continue
        start, end = spans[found.start][0], spans[found.stop - 1][1]
        first, last = _widen_to_sentences(part, start, end)
        head = _find_introduction(part, first)
        after = polarity.retracts(part[last : _widen_to_sentences(part, last, last + 1)[1]])
        return QuotedPlace(
            f"{head}{part[first:last].strip()}", f"{head}{part[first:start]}", part[end:last], after
        )
    return None


def _find_words(quote: str, tokens: Sequence[str], *, allows_slips: bool) -> range | None:
    """Find the words of a quote in a row; where it has an ellipsis, others may stand between."""
    pieces = [
        found
        for one in _ELLIPSIS.split(quote)
        if (found := [one[at:to] for m in WORD.finditer(one) for at, to in _split_elision(m)])
    ]
    keys = [_spell(token) for token in tokens]
    first = start = 0
    for number, piece in enumerate(pieces):
        wanted = [_spell(word) for word in piece]
        ends = range(start, len(keys) - len(wanted) + 1)
        slips = len(wanted) // _SLIP_WORDS_MIN if allows_slips else 0
        at = next((n for n in ends if _are_alike(wanted, keys[n : n + len(wanted)], slips)), None)
        if at is None:
            return None
        first = at if number == 0 else first
        start = at + len(wanted)
    return range(first, start) if pieces else None


def _split_elision(found: re.Match[str]) -> list[tuple[int, int]]:
    """Return the bounds of the words of a match: “qu'on” is two."""
    start, end = found.span()
    rest = _QU.sub("", without_elision(found[0]))
    return (
        [(start, end - len(rest)), (end - len(rest), end)] if rest != found[0] else [(start, end)]
    )


def _spell(word: str) -> str:
    """Return the spelling by which words are compared: “dont” is “don't”, “fuer” is “für”."""
    return fold(word.translate(_APOSTROPHES).translate(_UMLAUTS))


def _are_alike(wanted: Sequence[str], found: Sequence[str], slips: int) -> bool:
    differing = [(one, other) for one, other in zip(wanted, found, strict=True) if one != other]
    return len(differing) <= slips and all(_is_slip(*pair) for pair in differing)


def _is_slip(one: str, other: str) -> bool:
    """Return whether a word and the typed `other` differ by one letter, or by two that changed places."""
    short, long = sorted((one, other), key=len)
    if len(short) < _SLIP_LETTERS_MIN or not (one + other).isalpha() or len(long) > len(short) + 1:
        return False
    if is_stop_word(other) or any(map(polarity.is_negation, (one, other))):
        return False
    at = next((n for n in range(len(short)) if short[n] != long[n]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    turned = f"{short[at + 1 : at + 2]}{short[at : at + 1]}{short[at + 2 :]}"
    return short[at + 1 :] == long[at + 1 :] or turned == long[at:]


def _find_introduction(text: str, at: int) -> str:
    """Return the line with a colon that introduces what begins at `at`, maybe above other items of its list."""
    for line in reversed(text[:at].rstrip().split("\n")):
        if line.rstrip().endswith((":", "：")):
            return f"{split_sentences(line)[-1]}\n"
        if not (BULLET.match(line) and BULLET.match(text, text.rfind("\n", 0, at) + 1)):
            break
    return ""


def _widen_to_sentences(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the sentences that [start, end) lies in."""
    ends = [0, *find_sentence_ends(text)]
    first = max(one for one in ends if one <= start)
    indent = len(text[first:start]) - len(text[first:start].lstrip())
    return first + indent, min((one for one in ends if one >= end), default=len(text))


def shares_content(text: str, other: str) -> bool:
    """Return whether two texts are about the same: they share two content words, or a third of those of `other`."""
    wanted, found = content_of(other), content_of(text)
    shared = len(wanted & found)
    return shared >= _SHARED_STEMS_MIN or (shared > 0 and shared >= len(wanted) * _SHARED_PART_MIN)


def content_of(text: str) -> frozenset[str]:
    """Return the stems of a text's content words."""
    return frozenset(content_stems(text))


def count_shared(text: str, other: str) -> int:
    """Count the content words that two texts share."""
    return len(content_of(text) & content_of(other))


def has_words(text: str, wanted: Sequence[str]) -> bool:
    """Return whether these words stand in a row in a text."""
    return bool(wanted) and _join_words(wanted) in _join_words(words_of(text))


def has_run(tokens: Sequence[str], output: str) -> bool:
    """Return whether the least run of these words that counts stands in a tool's output."""
    there = _join_words(words_of(output))
    starts = range(len(tokens) - _SOURCE_WORDS_MIN + 1)
    return any(_join_words(tokens[at : at + _SOURCE_WORDS_MIN]) in there for at in starts)


def _join_words(tokens: Sequence[str]) -> str:
    return f" {' '.join(tokens)} "


def says_alike(text: str, output: str) -> bool:
    """Return whether a few sentences in a row of a tool's output have most of the content words of a text."""
    wanted = content_of(text)
    if len(wanted) < _ALIKE_STEMS_MIN:
        return False
    there = [content_of(one) & wanted for one in split_sentences(output)]
    return any(
        len(frozenset().union(*there[at : at + _ALIKE_LINES])) >= _ALIKE_MIN * len(wanted)
        for at in range(len(there))
        if there[at]
    )
