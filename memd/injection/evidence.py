"""Evidence that a prompt and a statement are about the same thing: shared words too rare to be chance. Pure.

How rare a word is tell the titles, for they say what memories are about; in the bodies everything is mentioned. On
the sessions of people who were left out no gate by likeness tells when a prompt needs something; a few words that
hardly anything else is about do.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memd.models import Summary
from memd.text import list_stems

EVIDENCE = 2.5
"""The least weight of shared words, in words that stand in one title alone."""
EVIDENCE_SHORT, EVIDENCE_PART = 1.8, 0.35
"""A lesser weight is enough if the shared words make up this part of the statement."""
WORDS_MIN = 3
_TITLES_MIN = 50
"""In a young vault every word would be common."""
_BODY_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class PromptEvidence:
    """The words of a prompt that the titles have."""

    stems: frozenset[str]
    counts: Mapping[str, int]
    """Stem of the prompt → how many titles have it."""
    titles: int

    @classmethod
    def read(cls, prompt: str, titles: Iterable[str]) -> "PromptEvidence":
        """Count the words of a prompt in the titles of what may be seen."""
        stems = frozenset(list_stems(prompt))
        number, counts = 0, Counter[str]()
        for title in titles:
            counts.update(stems.intersection(list_stems(title)))
            number += 1
        return cls(stems, counts, max(number, _TITLES_MIN))

    def weigh(self, memory: Summary) -> float:
        """Return how strongly a statement and the prompt are about the same thing; 0 if there is too little evidence."""
        told = list_stems(_text_of(memory))
        shared = self.stems.intersection(told)
        if len(shared) < WORDS_MIN:
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
    return memory.body[:_BODY_CHARACTERS] if whole else memory.title
