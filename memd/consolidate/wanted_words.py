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
from collections.abc import Iterable, Sequence
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
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}々〆〇]"
"""Scripts in which a word has no visible end."""
_KATAKANA = r"[\p{Katakana}ー]"
_LETTER = r"\p{L}\p{M}\p{N}"
"""What belongs to words, for a set: letters, digits, and marks on them."""
_IDENTIFIER_BORDER = r"(?-i:(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]))"
"""`get|User`, `HTTP|Server`, `Server|2`."""
_SEPARATOR = r"[^\p{L}\p{M}\p{N}\x00]+"
"""What may stand between two words of a phrase; a NUL stands between two texts."""
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
        """Finds every place where it stands as a word."""
        return _compile_pattern(self)

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
        folded = text.casefold()
        within: list[tuple[int, int]] = []
        # Folding can only lengthen a text, so equal lengths mean that each character has kept its place.
        if self.names and len(folded) == len(text):
            named = (re.finditer(re.escape(name), folded) for name in self.names)
            within = [match.span() for found in named for match in found]
        return any(
            not any(a <= match.start() and match.end() <= b for a, b in within)
            for match in term.pattern.finditer(text, overlapped=True)
        )


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
def _compile_pattern(term: WantedTerm) -> "regex.Pattern[str]":
    import regex  # noqa: PLC0415  # two megabytes, for what most daemons are never asked

    whole = "".join(term.parts)
    is_literal = regex.search(rf"[^{_LETTER}_']", whole) is not None
    is_part = len(term.parts) == 1 and len(split_identifier(whole)) == 1
    border = _make_border(len(whole), is_part=is_part)
    joined = rf"(?<![{_LETTER}][-.])" if is_literal else ""
    before = after = ""
    if regex.match(rf"[{_LETTER}]", whole[0]):
        # `cache=1` is not in `no-cache=1`, but `open` is in `half-open`; `5` is not in `1.5`.
        short = rf"(?<![{_LETTER}]')" if len(whole) < _LETTERS_AFTER_APOSTROPHE_MIN else ""
        before = rf"(?:\A|{border})" + joined + short + (r"(?<!\d\.)" if whole[0].isdigit() else "")
    else:
        # `-5` is not in `10-5`, `.env` not in `prod.env`, `==` not in `===`; a path is in a longer one.
        before = f"(?<!{regex.escape(whole[0])})"
        before += "" if whole[0] in "/\\" else f"(?<![{_LETTER}])"
    if term.is_prefix:
        after = ""
    elif regex.match(rf"[{_LETTER}]", whole[-1]):
        # Of what an apostrophe follows, only a genitive is a word of its own; `C` is not in `C++`.
        after = rf"{border}(?!'(?!s(?![{_LETTER}]))[{_LETTER}])(?![+#](?![{_LETTER}]))"
        # `--force` is not in `--force-with-lease`, `1.5` not in `1.5.2`.
        after += rf"(?![-.][{_LETTER}])" if is_literal else ""
        after += r"(?!\.\d)" if whole[-1].isdigit() else ""
    else:
        after = f"(?!{regex.escape(whole[-1])})"
    escaped = _SEPARATOR.join(regex.escape(part) for part in term.parts)
    flags = regex.IGNORECASE | regex.FULLCASE | regex.VERSION1
    return regex.compile(before + escaped + after, flags)


def _make_border(length: int, *, is_part: bool) -> str:
    """Make the pattern of a place at which a word of so many characters may begin or end; `is_part`: within identifiers, too."""
    ends = [f"(?<![{_LETTER}])", f"(?![{_LETTER}])"]
    ends += [f"(?<={one})(?!{one})|(?<!{one})(?={one})" for one in (_UNSPACED, _KATAKANA)]
    if length > 1:
        # One character alone says too little, within a run of them.
        ends += [f"(?<={_UNSPACED})(?={_UNSPACED})", *([_IDENTIFIER_BORDER] if is_part else [])]
    return rf"(?:{'|'.join(ends)})(?!\p{{M}})" + ("" if is_part else "(?<!_)(?!_)")


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
