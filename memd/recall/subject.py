"""How far a memory is about what a prompt is about. Pure.

Much is mentioned in a long body; what a memory is about stands in its title and at the beginning of its body.
A word says the more of what a prompt is about the rarer it is among the memories that may be seen, and a name
(a file, symbol or identifier) that many of them have says nothing.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from memd.models import Summary
from memd.recall.types import TermRarity
from memd.text import fold, terms, words

WORDS_COUNTED_MAX = 8
"""Only the rarest words of a prompt count up to this number, or the mere length of a text would sink it."""
HEAD_CHARACTERS = 300
"""Of a memory's body so much says what it is about: the request, or the statement."""
RARE_SHARE = 0.5
"""The share of the greatest rarity from which a name is rare: of 500 memories 15 may have it, of 50 four."""
NAMES_PER_MATCH = 8
"""A paste that mentions many names is about one of them no more than about the others."""
TITLE_SHARE, HEAD_SHARE = 0.45, 0.6
"""So much of the prompt stands in the title and at the head of a memory that is about the same."""
TITLE_SHARE_ALONE, TITLE_PART = 0.6, 2 / 3
"""A title that has so much of a prompt, and so many of its words, needs nothing else."""
WORDS_MIN, TITLE_WORDS_MIN = 2, 3

ContentWord = frozenset[str]
"""The index terms of one content word, with those of its parts if it is an identifier."""


@dataclass(frozen=True, slots=True)
class SubjectMatch:
    """What a prompt and a memory's subject share. Shares are of the rarity of the prompt's words, 0 to 1."""

    words: int
    """Content words of the prompt, eight at most."""
    title_words: int
    title_share: float
    head_words: int
    """In the title or at the beginning of the body."""
    head_share: float
    is_named: bool
    """Whether the title has a rare name of the prompt, and enough of them if the prompt has many."""

    @property
    def is_same(self) -> bool:
        """Whether the memory is about what the prompt is about."""
        is_worded = self.title_words >= TITLE_WORDS_MIN and self.title_share >= TITLE_SHARE
        is_titled = (
            self.title_words >= max(WORDS_MIN, TITLE_PART * self.words)
            and self.title_share >= TITLE_SHARE_ALONE
        )
        return self.is_named or is_titled or (is_worded and self.head_share >= HEAD_SHARE)


def match_subject(
    asked: Sequence[ContentWord], names: Sequence[str], memory: Summary, rarity: TermRarity
) -> SubjectMatch:
    """Compare a prompt's content words and names with a memory's title and the beginning of its body."""
    head = f"{memory.title}\n{memory.body[:HEAD_CHARACTERS]}"
    in_title, in_head = find_words(asked, memory.title), find_words(asked, head)
    total = _sum_rarest(asked, rarity)
    rare = [name for name in names if _is_rare(name, rarity)]
    named = find_names(rare, memory.title)
    # A file is named where anything is done in it: one more word must say what.
    others = [word for word in in_title if not any(word <= _terms_of(name) for name in named)]
    is_about = bool(others) or not all(map(_is_file, named))
    least = WORDS_MIN if len(asked) > WORDS_COUNTED_MAX else 1
    return SubjectMatch(
        min(len(asked), WORDS_COUNTED_MAX),
        len(in_title),
        min(_sum_rarest(in_title, rarity) / total, 1.0) if total else 0.0,
        len(in_head),
        min(_sum_rarest(in_head, rarity) / total, 1.0) if total else 0.0,
        bool(named)
        and is_about
        and len(named) * NAMES_PER_MATCH >= len(names)
        and len(in_title) >= least,
    )


def find_words(asked: Collection[ContentWord], text: str) -> list[ContentWord]:
    """The content words that a text has."""
    # Stemming is slow, and a stem begins as its word does, or as a part of it.
    begins = {term[:2] for word in asked for term in word}
    found = {
        term
        for token in dict.fromkeys(words(text))
        if token[:2].lower() in begins or not (token.isascii() and token[1:].islower())
        for term in terms(token)
    }
    return [word for word in asked if word <= found]


def find_names(names: Iterable[str], text: str) -> tuple[str, ...]:
    """The names that a text has as they stand, not as a part of a longer one."""
    folded = fold(text)
    return tuple(
        name
        for name in names
        if name in folded and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded)
    )


def _terms_of(text: str) -> frozenset[str]:
    return frozenset(term for word in words(text) for term in terms(word))


def _is_file(name: str) -> bool:
    return "/" in name or "." in name


def _is_rare(name: str, rarity: TermRarity) -> bool:
    return max((rarity.of(terms(word)) for word in words(name)), default=0.0) >= (
        RARE_SHARE * rarity.unknown
    )


def _sum_rarest(found: Collection[ContentWord], rarity: TermRarity) -> float:
    return math.fsum(sorted(map(rarity.of, found), reverse=True)[:WORDS_COUNTED_MAX])
