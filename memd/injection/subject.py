"""Measure how far a memory is about what a prompt is about. Pure.

Much is mentioned in a long body; what a memory is about stands in its title and at the beginning of its body.
A word says the more of what a prompt is about the rarer it is among the memories that may be seen, and a name
(a file, symbol or identifier) that many of them have says nothing.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from memd.models import Summary
from memd.recall.types import TermRarity
from memd.text import fold, list_stems, terms, words

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
"""A title with this share of a prompt, and this many of its words, needs nothing else."""
WORDS_MIN, TITLE_WORDS_MIN = 2, 3
TURN_WEIGHT, TURN_SHARE = 2.0, 0.8
"""What a turn did is seldom wanted: its title must share words as rare as this many that no other memory has, or nearly
all of the prompt."""

ContentWord = frozenset[str]
"""The index terms of one content word, with those of its parts if it is an identifier."""


@dataclass(frozen=True)
class PromptSubject:
    """The subject of a prompt, measured once for all memories that are compared with it."""

    asked: Sequence[ContentWord]
    """Its content words."""
    names: Sequence[str]
    """The files, symbols and identifiers in it."""
    rarity: TermRarity

    @cached_property
    def total(self) -> float:
        """The rarity of its words."""
        return _sum_rarest(self.asked, self.rarity)

    @cached_property
    def rare_names(self) -> Sequence[str]:
        """Return the names in the prompt that few memories have."""
        return [name for name in self.names if _is_rare(name, self.rarity)]

    def share_of(self, found: Collection[ContentWord]) -> float:
        """The share of its rarity that these of its words have, 0 to 1."""
        return min(_sum_rarest(found, self.rarity) / self.total, 1.0) if self.total else 0.0


@dataclass(frozen=True)
class SubjectMatch:
    """The words that a prompt shares with a memory's title, and with its head: title and beginning of the body.

    Each is measured when it is asked for: most memories are out of the question before.
    """

    prompt: PromptSubject
    memory: Summary

    @cached_property
    def in_title(self) -> Sequence[ContentWord]:
        """The prompt's content words in the title."""
        return find_shared_words(self.prompt.asked, self.memory.title)

    @cached_property
    def in_head(self) -> Sequence[ContentWord]:
        """The prompt's content words in the title or at the beginning of the body."""
        head = f"{self.memory.title}\n{self.memory.body[:HEAD_CHARACTERS]}"
        return find_shared_words(self.prompt.asked, head)

    @cached_property
    def title_share(self) -> float:
        """The share of the prompt's rarity that the title has."""
        return self.prompt.share_of(self.in_title)

    @cached_property
    def head_share(self) -> float:
        """The share of the prompt's rarity that the head has."""
        return self.prompt.share_of(self.in_head)

    @cached_property
    def is_named(self) -> bool:
        """Return whether the title has a rare name of the prompt, and enough of them if the prompt has many."""
        named = find_names(self.prompt.rare_names, self.memory.title)
        if not named or len(named) * NAMES_PER_MATCH < len(self.prompt.names):
            return False
        # A file is named where anything is done in it: one more word must say what.
        others = [word for word in self.in_title if not any(word <= _terms_of(n) for n in named)]
        if not others and all(map(_is_file, named)):
            return False
        least = WORDS_MIN if len(self.prompt.asked) > WORDS_COUNTED_MAX else 1
        return len(self.in_title) >= least

    @property
    def is_same_work(self) -> bool:
        """Return whether the prompt is about the work of the memory's turn."""
        rarity = self.prompt.rarity
        weight = math.fsum(map(rarity.of, self.in_title)) / rarity.unknown
        return self.is_same and (weight >= TURN_WEIGHT or self.title_share >= TURN_SHARE)

    @property
    def is_same(self) -> bool:
        """Return whether the memory is about what the prompt is about."""
        if self.is_named:
            return True
        count, counted = len(self.in_title), min(len(self.prompt.asked), WORDS_COUNTED_MAX)
        if count >= max(WORDS_MIN, TITLE_PART * counted) and self.title_share >= TITLE_SHARE_ALONE:
            return True
        is_worded = count >= TITLE_WORDS_MIN and self.title_share >= TITLE_SHARE
        return is_worded and self.head_share >= HEAD_SHARE


def find_shared_words(asked: Collection[ContentWord], text: str) -> list[ContentWord]:
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


# ── Evidence ─────────────────────────────────────────────────────────────────────────────────────
#
# Shared words too rare to be chance. How rare a word is tell the titles, for they say what memories are about; in the
# bodies everything is mentioned. On the sessions of people who were left out no gate by likeness tells when a prompt
# needs something; a few words that hardly anything else is about do.

EVIDENCE = 2.5
"""The least weight of shared words, in words that stand in one title alone."""
EVIDENCE_SHORT, EVIDENCE_PART = 1.8, 0.35
"""A lesser weight is enough if the shared words make up this part of the statement."""
EVIDENCE_WORDS_MIN = 3
_TITLES_MIN = 50
"""In a young vault every word would be common."""
_EVIDENCE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class CountedTitles:
    """The words of titles: stem → how many have it."""

    counts: Mapping[str, int]
    number: int

    @classmethod
    def count(cls, titles: Collection[str]) -> "CountedTitles":
        """Count the words of these titles."""
        return cls(
            Counter(chain.from_iterable(set(list_stems(one)) for one in titles)), len(titles)
        )


@dataclass(frozen=True, slots=True)
class PromptEvidence:
    """The words of a prompt that the titles have."""

    stems: frozenset[str]
    counts: Mapping[str, int]
    """Stem → how many titles have it."""
    titles: int

    @classmethod
    def read(cls, prompt: str, counted: "CountedTitles") -> "PromptEvidence":
        """Read the words of a prompt, which are looked up in the titles of what may be seen."""
        return cls(frozenset(list_stems(prompt)), counted.counts, max(counted.number, _TITLES_MIN))

    def weigh(self, memory: Summary) -> float:
        """Return how strongly a statement and the prompt are about the same thing; 0 if there is too little evidence."""
        told = list_stems(_text_of(memory))
        shared = self.stems.intersection(told)
        if len(shared) < EVIDENCE_WORDS_MIN:
            return 0.0
        weight, whole = (math.fsum(map(self._weigh_stem, each)) for each in (shared, told))
        is_enough = weight >= EVIDENCE or (
            weight >= EVIDENCE_SHORT and weight >= EVIDENCE_PART * whole
        )
        return weight if is_enough else 0.0

    def _weigh_stem(self, stem: str) -> float:
        """Weigh a stem by inverse document frequency: 1 if it is in one title alone."""
        return self._rarity(max(self.counts.get(stem, 1), 1)) / self._rarity(1)

    def _rarity(self, count: int) -> float:
        return math.log(1 + (self.titles - count + 0.5) / (count + 0.5))


def _text_of(memory: Summary) -> str:
    """Return a statement's text, also where its title was cut."""
    cut = memory.title.removesuffix("…")
    whole = cut != memory.title and memory.body.startswith(cut)
    return memory.body[:_EVIDENCE_CHARACTERS] if whole else memory.title
