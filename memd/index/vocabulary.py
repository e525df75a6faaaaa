"""The words of the index and their numbers, and which words begin alike. Pure.

The store gives a number back when the last passage with its word went, so a number may come to mean
another word: what is learnt last holds. Not here: how often a word stands anywhere.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping

_FRESH_SHARE_MAX = 0.1
_PREFIX_LAST = "\U0010ffff"


class Vocabulary:
    """Term ↔ number. `frequency` tells in how many passages a number's term stands."""

    def __init__(self, frequency: Callable[[int], int]) -> None:
        self._frequency = frequency
        self._numbers: dict[str, int] = {}
        self._terms: list[str | None] = []
        self._sorted: list[str] = []
        self._fresh: list[str] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, term: str) -> int | None:
        """Return the number of a term, or None if no passage has it."""
        return self._numbers.get(term)

    def term(self, number: int) -> str | None:
        """Return the term of a number, or None."""
        return self._terms[number] if 0 <= number < len(self._terms) else None

    def learn(self, numbers: Mapping[str, int]) -> None:
        """Take over the numbers that these terms have now."""
        if not numbers:
            return
        self._terms.extend([None] * (max(numbers.values()) + 1 - len(self._terms)))
        for term, number in numbers.items():
            known = self._numbers.get(term)
            if known == number:
                continue
            if known is not None:
                self._terms[known] = None
            if (former := self._terms[number]) is not None:
                del self._numbers[former]
            self._numbers[term], self._terms[number] = number, term
            self._fresh.append(term)

    def keep(self, numbers: Iterable[int]) -> None:
        """Forget every term but those of these numbers."""
        kept = set(numbers)
        self._numbers = {
            term: number for term, number in self._numbers.items() if number in kept
        }
        self._terms = [
            term if number in kept else None for number, term in enumerate(self._terms)
        ]
        self._sorted, self._fresh = [], list(self._numbers)

    def expand(self, prefix: str, limit: int = 200) -> list[int]:
        """Return the numbers of the terms that begin with a prefix, the most frequent first.

        Terms that no passage has any more are left out.
        """
        if not prefix:
            return []
        self._sort()
        first = bisect_left(self._sorted, prefix)
        stop = bisect_left(self._sorted, prefix + _PREFIX_LAST, first)
        alike = {
            *self._sorted[first:stop],
            *(term for term in self._fresh if term.startswith(prefix)),
        }
        uses = {
            n: self._frequency(n)
            for term in alike
            if (n := self._numbers.get(term)) is not None
        }
        ranked = sorted(
            (n for n, count in uses.items() if count), key=lambda n: (-uses[n], self._terms[n])
        )
        return ranked[:limit]

    def _sort(self) -> None:
        """Fold what is fresh into the sorted list once it would cost more to look through."""
        if len(self._fresh) > _FRESH_SHARE_MAX * len(self._sorted):
            self._sorted = sorted(self._numbers)
            self._fresh = []
