"""The words of a question, and how much of each a reader would recognise in a text, in any language. Pure."""

import itertools
import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from memd.caches import cached
from memd.languages import (
    HANGUL,
    LATIN_LANGUAGES,
    detect_question_languages,
    find_content_places,
    has_unspaced,
    is_function_word,
    may_be_english,
    split_scripts,
)
from memd.text import WORD, fold, is_stop_word, terms, without_elision, words

_QUESTIONS_CACHED = 32
"""Questions of which the words are kept: one search reads its own twice."""
_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s)[\s\"'`(¿¡]*$")
_HANGUL_RUN = re.compile(f"[{HANGUL}]")
_PREPOSITIONS = frozenset({"at", "by", "in", "off", "on", "out", "under"})
_STEM_LETTERS_MIN, _STEM_SHARE_MIN = 4, 0.6
"""Two forms of a word begin with the same letters, at least this many, and so much of the longer one."""
_PART_LETTERS_MIN, _PARTS_SHARE_MIN = 4, 0.5
"""A part of a compound has at least this many letters, and the parts in a text are at least so much of it."""
_HANGUL_STEM, _HANGUL_ENDING = 2, 2
"""Syllables that a stem has at least, and that an ending often has."""
_ONE_SYLLABLE = 0.5
"""What a noun of one syllable, or the beginning of a verb, counts."""
_PIECE_WORDS_MAX = 1.25
"""What a long piece of a run counts at most, in words."""
_SIGNS = str.maketrans(dict.fromkeys("–—“”•…→", "/"))
"""Signs that are no part of a word."""
_WORD_LETTERS = (("\u3400", "\u9fff", 2), ("\u30a0", "\u30ff", 3), ("\u0e00", "\u17ff", 4))
"""First and last letter of a script without spaces, and about how many letters a word of it has."""


# ── The words of a question ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A content word as it was typed, or a run of several where none are told by spaces."""

    text: str
    terms: tuple[str, ...]
    is_name: bool
    """Whether it is written like a name: `Kubernetes` within a sentence, `S3`, `CODEOWNERS`, `retry_max`."""
    size: float = 1.0
    """How many words it may be."""
    phrase: str = ""
    """`on call`, if the question says nothing else: neither `calls` nor `a call` is what it asks for."""

    @property
    def is_unspaced(self) -> bool:
        """Return whether it has no spaces between words: Han, katakana, Thai, but not Hangul."""
        return has_unspaced(self.text) and not _HANGUL_RUN.match(self.text)

    def is_in(self, known: Container[str]) -> bool:
        """Return whether the word is there as a whole, or with all its parts."""
        return self.terms[0] in known or (
            len(self.terms) > 1 and all(term in known for term in self.terms[1:])
        )

    def share_of_terms(self, known: Container[str]) -> float:
        """1 for a word that is there, half the share of its parts for an identifier of which some are."""
        if self.is_in(known):
            return 1.0
        return 0.5 * sum(term in known for term in self.terms) / len(self.terms)


@cached(_QUESTIONS_CACHED)
def read_words(text: str) -> Sequence[QuestionWord]:
    """The content words of a question, once each; all its words if it has no others."""
    matches = list(WORD.finditer(text))
    tokens = [match[0].lower() for match in matches]
    languages = detect_question_languages(tokens)
    if not languages and not may_be_english(tokens):
        languages = LATIN_LANGUAGES
    content = [
        match
        for match in matches
        if not is_stop_word(match[0]) and not is_function_word(match[0].lower(), languages)
    ]
    found: dict[str, QuestionWord] = {}
    for match in content or matches:
        is_name = _is_name(match[0], text[: match.start()])
        for word in _split_token(without_elision(match[0]), is_name=is_name):
            found.setdefault(fold(word.text), word)
    if len(found) == 1 and (phrase := _find_bare_phrase(text, content)):
        return tuple(replace(word, phrase=phrase) for word in found.values())
    return tuple(found.values())


def _find_bare_phrase(text: str, content: Sequence[re.Match[str]]) -> str:
    """The preposition before the only content word of a question, and that word; empty if there is none."""
    before = words(text[: content[0].start()]) if len(content) == 1 else []
    is_bare = bool(before) and before[-1].lower() in _PREPOSITIONS
    return f"{before[-1]} {content[0][0]}".lower() if is_bare and content[0][0].islower() else ""


def _split_token(token: str, *, is_name: bool) -> Iterator[QuestionWord]:
    """The words of one token: itself, or its runs of one script."""
    if not has_unspaced(token):
        if known := terms(token):
            yield QuestionWord(token, known, is_name)
        return
    for run in split_scripts(token):
        if not has_unspaced(run):
            yield from _split_token(run, is_name=not run.islower())
        elif _HANGUL_RUN.match(run):
            yield QuestionWord(run, terms(run), is_name=False)
        elif content := len(find_content_places(fold(run))):
            letters = _letters_of_word(run)
            size = max(content / letters, _ONE_SYLLABLE)
            yield QuestionWord(run, terms(run), is_name=False, size=size)


def _letters_of_word(run: str) -> int:
    """Estimate how many characters a word of this script has."""
    return next((count for first, last, count in _WORD_LETTERS if first <= run[0] <= last), 2)


def _is_name(token: str, before: str) -> bool:
    inner = token[1:]
    if token.isalpha() and token.islower():
        return False
    if any(c.isupper() for c in inner) or "_" in inner.strip("_"):
        return True
    return token[0].isalpha() and (
        (token[0].isupper() and not _SENTENCE_START.search(before))
        or any(c.isdigit() for c in inner)
    )


# ── In a text ────────────────────────────────────────────────────────────────────────────────────


class ShownText:
    """Text that a hit shows, to look for words in."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded = fold(text)

    @cached_property
    def _plain(self) -> tuple[str, str] | None:
        """The text with a space between its words, and the same folded letter by letter, where each stays one."""
        text = " ".join(self._text.split())
        folded = (text if text.isascii() else text.translate(_SIGNS)).lower()
        return (f"{text} ", folded) if folded.isascii() else None

    def _find_chunks(self, begin: str) -> Iterator[str]:
        """Yield the chunks between spaces that have some letters. To tell all words apart takes several times as long."""
        if self._plain is None:
            yield from (chunk for chunk in self._text.split() if begin in fold(chunk))
            return
        text, folded = self._plain
        place = folded.find(begin)
        while place >= 0:
            end = text.find(" ", place)
            yield text[text.rfind(" ", 0, place) + 1 : end]
            place = folded.find(begin, end)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(map(fold, words(self._text)))

    @cached_property
    def _jamo(self) -> tuple[str, ...]:
        hangul = filter(_HANGUL_RUN.match, self._words)
        return tuple(unicodedata.normalize("NFD", one) for one in hangul)

    @cached_property
    def _line(self) -> str:
        """All words, with a space around each."""
        found = words(self._folded)
        return f" {' '.join(found if self._folded.isascii() else map(fold, found))} "

    def share_of(self, word: QuestionWord) -> tuple[float, float]:
        """Return the share of a word that a reader would recognise in the text, 0 to 1, and how many words that is."""
        own = fold(word.text)
        if word.is_unspaced:
            return self._share_of_runs(own)
        if _HANGUL_RUN.match(own):
            share = self._share_of_hangul(own)
        else:
            share = max(self._share_of_form(own), self._share_of_parts(own))
        return share, share

    def has_word(self, word: QuestionWord) -> bool:
        """Return whether a word, or all its parts, stand in the text in any English form."""
        own = fold(word.text)
        if any(own in map(fold, words(chunk)) for chunk in self._find_chunks(own)):
            return True
        # Stemming is slow, and a word has what its stem has but for the last letter.
        begins = {term[: max(len(term) - 1, 2)] for term in word.terms}
        near = (
            token
            for begin in begins
            for chunk in self._find_chunks(begin)
            for token in words(chunk)
            if begin in fold(token)
        )
        return word.is_in({term for token in near for term in terms(token)})

    def has_phrase(self, phrase: str) -> bool:
        """Return whether the words of a phrase follow each other."""
        return f" {phrase} " in self._line

    def has_parts(self, own: str) -> bool:
        """Return whether a word stands there as two."""
        for cut in range(2, len(own) - 1):
            one, other = own[:cut], own[cut:]
            if one not in self._folded:
                return False
            if other in self._folded and self.has_phrase(f"{one} {other}"):
                return True
        return False

    def _share_of_form(self, own: str) -> float:
        best = 0.0
        for other in self._words:
            same = _count_same(own, other)
            if same >= _STEM_LETTERS_MIN:
                best = max(best, same / max(len(own), len(other)))
        return best if best >= _STEM_SHARE_MIN else 0.0

    def _share_of_parts(self, own: str) -> float:
        """Return the share of a compound that the text has as parts: each begins the compound or a word of the text."""
        at, covered = 0, 0
        while at + _PART_LETTERS_MIN <= len(own):
            same = max((_count_same(own[at:], other) for other in self._words), default=0)
            if at == 0:
                same = max(same, self._count_beginning(own, _PART_LETTERS_MIN + 1))
            covered += same if same >= _PART_LETTERS_MIN else 0
            at += same if same >= _PART_LETTERS_MIN else 1
        share = covered / len(own)
        is_short = len(own) < 2 * _PART_LETTERS_MIN
        return share if share >= (1.0 if is_short else _PARTS_SHARE_MIN) else 0.0

    def _count_beginning(self, own: str, least: int) -> int:
        """Count the letters from a word's beginning that stand anywhere in the text; 0 if fewer than `least`."""
        return next((n for n in range(len(own), least - 1, -1) if own[:n] in self._folded), 0)

    def _share_of_hangul(self, own: str) -> float:
        """Return the share of an eojeol's stem in the text: it is the beginning; particles and endings follow."""
        if same := self._count_beginning(own, _HANGUL_STEM):
            return min(1.0, same / max(_HANGUL_STEM, len(own) - _HANGUL_ENDING))
        jamo = unicodedata.normalize("NFD", own)
        alike = max((_count_same(jamo, other) for other in self._jamo), default=0)
        if alike >= 2 * _HANGUL_STEM:
            return 1.0 if 2 * alike >= len(jamo) else _ONE_SYLLABLE
        nouns = (one for one in (own, *self._words) if len(one) <= _HANGUL_STEM)
        return _ONE_SYLLABLE if sum(one[0] == own[0] for one in nouns) > 1 else 0.0

    def _share_of_runs(self, own: str) -> tuple[float, float]:
        """The share of a run's characters that stand in the text in pieces of at least a word's length, and the words.

        A long piece counts little more than one word: it may be a loanword.
        """
        content = set(find_content_places(own))
        letters = _letters_of_word(own)
        covered, words_found, at = 0, 0.0, 0
        while at < len(own):
            stop = at
            while stop < len(own) and own[at : stop + 1] in self._folded:
                stop += 1
            if stop - at < min(letters, len(own)):
                at += 1
                continue
            found = len(content.intersection(range(at, stop)))
            covered += found
            words_found += min(found / letters, _PIECE_WORDS_MAX)
            at = stop
        return (covered / len(content) if content else 0.0), words_found


def _count_same(one: str, other: str) -> int:
    """Count the letters that two words have in common from their beginning."""
    return sum(
        1
        for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    )
