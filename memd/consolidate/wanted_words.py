"""Search for texts that contain all the words of `memd forget --query`. Pure.

Words are split as search splits them: at spaces and punctuation, identifiers (`decode_token`, `getUserById`) also
into their parts, runs of scripts without spaces anywhere. But nothing is stemmed, because a deletion must not
take `starting` for `start`. Upper and lower case are one; a word written without accents also finds itself
with them, not the other way round.

What is more than a word (`count=1`, `src/a.ts`, `--force`, `C++`, a secret) must stand there as it is written,
not within a longer word. `"a phrase"` is words that follow each other, `art*` any word with this beginning.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memd.patterns import compile_unicode_lazily
from memd.text import split_identifier, storable, unique

if TYPE_CHECKING:
    import regex

_PIECE = compile_unicode_lazily(r'"([^"]*)"|“([^”]*)”|(\S+)')
_TRAILING = ".,;:!?…。，、；：！？"
"""Punctuation that ends a clause and is no part of its last word."""
_QUOTES = "'`‘’"
_PREFIX = compile_unicode_lazily(r"[\w]+\*")
_LETTERS = compile_unicode_lazily(r"[\p{L}\p{M}\p{N}]+")
_INVISIBLE = dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFE0E, 0xFE0F, 0xFEFF), None) | {
    0x2019: "'"
}
"""What is left out before texts are compared; a curly apostrophe becomes a straight one."""
_HAS_INVISIBLE = compile_unicode_lazily(f"[{''.join(map(chr, _INVISIBLE))}]")
_UNSPACED = compile_unicode_lazily(
    r"[\p{Han}\p{Hiragana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}々〆〇]"
)
"""Scripts in which a word has no visible end."""
_KATAKANA = compile_unicode_lazily(r"[\p{Katakana}ー]")
_SEPARATOR = r"[^\p{L}\p{M}\p{N}\x00]+"
"""What may stand between two words of a phrase; a NUL stands between two texts."""
_JOINTS = "-."
"""What joins words to a longer name."""
_LETTERS_AFTER_APOSTROPHE_MIN = 3
"""`O'Brien` contains `Brien`, but `don't` contains neither `don` nor `t`."""


@dataclass(frozen=True, slots=True)
class WantedTerm:
    """One word, literal or phrase of the query."""

    parts: tuple[str, ...]
    """What stands there in this order, with nothing but punctuation between; one unless it is a phrase."""
    is_prefix: bool = False

    @property
    def pattern(self) -> "regex.Pattern[str]":
        """Finds every place where the letters stand, within longer words too."""
        return _compile_pattern(self.parts)

    @property
    def is_identifier_part(self) -> bool:
        """Return whether the parts of identifiers count as this word; not if the word has parts itself."""
        return len(self.parts) == 1 and len(split_identifier(self.parts[0])) == 1

    @property
    def has_accents(self) -> bool:
        """Return whether it is written with accents, and so must be found with them."""
        return any(_without_accents(part) != part for part in self.parts)


@dataclass(frozen=True, slots=True)
class WantedWords:
    """The terms of a query; a text contains the query if it contains all of them."""

    terms: tuple[WantedTerm, ...] = ()
    names: tuple[str, ...] = ()
    """Directories of projects: that a text lies below one of them does not make it say its words."""

    def with_names(self, names: Iterable[str]) -> "WantedWords":
        """The same words, which are not found within these names."""
        wide = {
            folded
            for name in names
            for folded in (fold_case(name), re.sub(r"[^a-z0-9]", "-", fold_case(name)))
        }
        needed = [
            name
            for name in sorted(wide)
            if any(fold_case(term.parts[0]) in _without_accents(name) for term in self.terms)
        ]
        return WantedWords(self.terms, tuple(needed))

    def may_be_in(self, text: str) -> bool:
        """Return whether a text, or the JSON of texts, can contain them; quick, and never wrongly False."""
        folded = _without_accents(fold_case(text))
        return all(key in folded for key in _quick_keys(self.terms))

    def are_in(self, texts: Sequence[str]) -> bool:
        """Return whether all of them stand in these texts of one row together."""
        joined = "\x00".join(texts)
        return self.may_be_in(joined) and self._contains(joined)

    def _contains(self, text: str) -> bool:
        with_accents = normalise(text)
        without = _without_accents(with_accents)
        return all(
            self._finds_term(term, with_accents if term.has_accents else without)
            for term in self.terms
        )

    def _finds_term(self, term: WantedTerm, text: str) -> bool:
        is_part = term.is_identifier_part
        return any(
            _begins_word(text, start, end, is_part)
            and (term.is_prefix or _ends_word(text, start, end, is_part))
            for start, end in self._find_places(term, text)
        )

    def _find_places(self, term: WantedTerm, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the letters of a term stand, except within names."""
        within: list[tuple[int, int]] = []
        folded = text.casefold()
        # Folding can only lengthen a text, so equal lengths mean that each character has kept its place.
        is_aligned = len(folded) == len(text)
        if self.names and is_aligned:
            within = [span for name in self.names for span in _spans_of(name, folded)]
        if is_aligned and len(term.parts) == 1:
            found = _spans_of(term.parts[0].casefold(), folded)
        else:
            found = (match.span() for match in term.pattern.finditer(text, overlapped=True))
        for start, end in found:
            if not any(a <= start and end <= b for a, b in within):
                yield start, end


def parse_wanted_words(query: str) -> WantedWords:
    """The terms of a query; none if it has no word."""
    terms = []
    for match in _PIECE.finditer(normalise(storable(query).replace("\0", " "))):
        phrase = match[1] if match[1] is not None else match[2]
        if phrase is not None:
            parts = tuple(part for piece in phrase.split() if (part := _trim(piece)))
            terms += [WantedTerm(parts)] if parts else []
        elif _PREFIX.fullmatch(match[3]):
            terms.append(WantedTerm((match[3][:-1],), is_prefix=True))
        else:
            terms.append(WantedTerm((_trim(match[3]) or match[3],)))
    return WantedWords(unique_terms(terms))


def unique_terms(terms: Iterable[WantedTerm]) -> tuple[WantedTerm, ...]:
    """The terms once each."""
    return tuple(dict.fromkeys(terms))


def normalise(text: str) -> str:
    """Compatibility forms and accents composed, invisible characters left out; case stays."""
    if text.isascii():
        return text
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return text.translate(_INVISIBLE) if _HAS_INVISIBLE.search(text) else text


def fold_case(text: str) -> str:
    """`normalise`, and upper and lower case alike."""
    return text.lower() if text.isascii() else normalise(text).casefold()


def _trim(piece: str) -> str:
    """A piece without the punctuation of its sentence: `art?` and `'art',` are a word."""
    bare = piece.rstrip(_TRAILING).strip(_QUOTES).rstrip(_TRAILING)
    return bare or piece


@functools.lru_cache(maxsize=64)
def _compile_pattern(parts: tuple[str, ...]) -> "regex.Pattern[str]":
    import regex  # noqa: PLC0415  # two megabytes, for what most daemons are never asked

    escaped = _SEPARATOR.join(regex.escape(part) for part in parts)
    return regex.compile(escaped, regex.IGNORECASE | regex.FULLCASE | regex.VERSION1)


@functools.lru_cache(maxsize=64)
def _quick_keys(terms: tuple[WantedTerm, ...]) -> tuple[str, ...]:
    """Runs of letters that every text with these terms contains."""
    runs = (
        _without_accents(fold_case(run))
        for term in terms
        for part in term.parts
        for run in _LETTERS.findall(part)
    )
    return unique(runs)


def _without_accents(text: str) -> str:
    """The text with é and Å as e and A, character by character; other scripts stay as they are."""
    if text.isascii():
        return text
    for character in set(text):
        base = _base_of(character)
        if base != character:
            text = text.replace(character, base)
    return text


@functools.lru_cache(maxsize=4_096)
def _base_of(character: str) -> str:
    """The Latin letter without its accents; any other character itself."""
    base = unicodedata.normalize("NFD", character)
    is_latin = len(base) > 1 and base[0].isascii() and base[0].isalpha()
    return base[0] if is_latin else character


def _spans_of(name: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(name)
    while start >= 0:
        yield start, start + len(name)
        start = text.find(name, start + 1)


# ── Where words begin and end ──────────────────────────────────────────────────────────────────


def _begins_word(text: str, start: int, end: int, is_part: bool) -> bool:
    if start == 0:
        return True
    before, first = text[start - 1], text[start]
    if not _is_letter(first):
        # `-5` is not in `10-5`, `.env` not in `prod.env`, `==` not in `===`; a path is in a longer one.
        is_path = first in "/\\"
        return before != first and (is_path or not _is_letter(before))
    if before == "'" and start > 1 and _is_letter(text[start - 2]):
        return end - start >= _LETTERS_AFTER_APOSTROPHE_MIN
    if before == "." and start > 1 and first.isdigit() and text[start - 2].isdigit():
        return False
    if before in _JOINTS and start > 1 and _is_letter(text[start - 2]):
        # `cache=1` is not in `no-cache=1`, but `open` is in `half-open`.
        return not _is_literal(text[start:end])
    return _is_border(text, start, end - start, is_part)


def _ends_word(text: str, start: int, end: int, is_part: bool) -> bool:
    if end == len(text):
        return True
    last, after = text[end - 1], text[end]
    if not _is_letter(last):
        return after != last
    following = text[end + 1 : end + 2]
    if after == "'" and _is_letter(following):
        # Of what an apostrophe follows, only a genitive is a word of its own.
        return following in "sS" and not _is_letter(text[end + 2 : end + 3])
    is_in_number = after == "." and last.isdigit() and following.isdigit()
    if is_in_number or (after in "+#" and not _is_letter(following)):
        return False  # `C` is not in `C++`, `1.5` not in `1.5.2`
    if after in _JOINTS and _is_letter(following):
        # `--force` is not in `--force-with-lease`, `.env` not in `.env.local`.
        return not _is_literal(text[start:end])
    return _is_border(text, end, end - start, is_part)


def _is_literal(text: str) -> bool:
    """Return whether a text is more than a word or a phrase of words."""
    return not all(_is_letter(one) or one in "_'" or one.isspace() for one in text)


def _is_letter(character: str) -> bool:
    """Return whether a character belongs to words: a letter, a digit, or a mark on one."""
    return character != "" and (character.isalnum() or unicodedata.category(character)[0] == "M")


def _is_border(text: str, at: int, length: int, is_part: bool) -> bool:
    """Return whether a word of `length` characters may begin or end between two characters of a text.

    `is_part`: whether it may be a part of an identifier.
    """
    left, right = text[at - 1], text[at]
    if unicodedata.category(right)[0] == "M":
        return False
    if "_" in {left, right}:
        return is_part
    if not (_is_letter(left) and _is_letter(right)):
        return True
    is_unspaced = bool(_UNSPACED.match(left)), bool(_UNSPACED.match(right))
    if any(is_unspaced):
        # One character alone says too little, within a run of them.
        return length > 1 or not all(is_unspaced)
    if bool(_KATAKANA.match(left)) != bool(_KATAKANA.match(right)):
        return True
    is_ascii = left.isascii() and right.isascii()
    return is_part and is_ascii and length > 1 and _is_identifier_border(text, at)


def _is_identifier_border(text: str, at: int) -> bool:
    """Return whether an identifier is split here: `get|User`, `HTTP|Server`, `Server|2`."""
    left, right = text[at - 1], text[at]
    if left.isdigit() != right.isdigit():
        return True
    if left.islower() and right.isupper():
        return True
    is_last_capital = left.isupper() and right.isupper() and text[at + 1 : at + 2].islower()
    return is_last_capital and text[at + 1 : at + 2].isascii()
