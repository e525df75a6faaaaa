"""The words of the index and their numbers, and which words begin alike. Pure.

A dictionary of a vault's words weighs a seventh of the whole index, 150 bytes a word. So they lie end
to end in one piece of UTF-8, in order, with their numbers beside them: 25 bytes a word, found by
bisection in 3 µs. What was learnt since is kept in a small dictionary and merged once it has grown.
The store gives a number back when the last passage with its word went, so a number may come to mean
another word: what is learnt last holds. Not here: how often a word stands anywhere.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

_FRESH_MIN = 256
_FRESH_SHARE_MAX = 0.1
_STEP = 64
_LINE = ord("\n")
_GONE = 2**32 - 1
"""The number of a word that is no longer known."""
_LAST = b"\xff"
"""Comes after anything in UTF-8."""

Numbers = NDArray[np.uint32]


class TermDictionary:
    """Term ↔ number. `frequency` tells in how many passages a number's term stands."""

    def __init__(self, frequency: Callable[[int], int]) -> None:
        self._frequency = frequency
        self._packed = PackedTerms(b"", np.zeros(0, np.uint32), np.zeros(0, np.uint32))
        self._fresh: dict[str, int] = {}
        self._fresh_terms: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._packed) + len(self._fresh)

    def number(self, term: str) -> int | None:
        """Return the number of a term, or None if no passage has it."""
        found = self._fresh.get(term)
        return self._packed.number(_bytes(term)) if found is None else found

    def term(self, number: int) -> str | None:
        """Return the term of a number, or None."""
        return self._fresh_terms.get(number) or self._packed.term(number)

    def counted_by(self, frequency: Callable[[int], int]) -> None:
        """From now on, ask here in how many passages a number's term stands."""
        self._frequency = frequency

    def load(self, words: bytes, numbers: bytes) -> None:
        """Start with these terms, in UTF-8 and in order of it, and their numbers; a line each."""
        text = np.frombuffer(words, np.uint8)
        ends = np.append(np.flatnonzero(text == _LINE), len(text)) if words else np.zeros(0)
        self._packed = PackedTerms(
            words.replace(b"\n", b""),
            (np.diff(ends, prepend=-1) - 1).astype(np.uint32),
            np.fromstring(numbers, np.uint32, sep="\n"),
        )

    def learn(self, numbers: Mapping[str, int]) -> None:
        """Take over the numbers that these terms have now."""
        for term, number in numbers.items():
            known = self.number(term)
            if known == number:
                continue
            if known is not None:
                self._forget(known)
            self._forget(number)
            self._fresh[term], self._fresh_terms[number] = number, term
        if len(self._fresh) > max(_FRESH_SHARE_MAX * len(self._packed), _FRESH_MIN):
            self._merge()

    def _forget(self, number: int) -> None:
        term = self._fresh_terms.pop(number, None)
        if term is None:
            self._packed.drop(number)
        else:
            del self._fresh[term]

    def _merge(self) -> None:
        if self._fresh:
            self._packed = self._packed.with_these(self._fresh)
            self._fresh, self._fresh_terms = {}, {}

    def keep(self, numbers: Iterable[int]) -> None:
        """Forget every term but those of these numbers."""
        self._merge()
        self._packed = self._packed.only(np.fromiter(numbers, np.uint32))

    def expand(self, prefix: str, limit: int = 200) -> list[int]:
        """Return the numbers of the terms that begin with a prefix, the most frequent first.

        Terms that no passage has any more are left out.
        """
        if not prefix:
            return []
        alike = self._packed.with_prefix(_bytes(prefix))
        alike += [n for term, n in self._fresh.items() if term.startswith(prefix)]
        uses = {n: count for n in alike if (count := self._frequency(n))}
        return sorted(uses, key=lambda n: (-uses[n], self.term(n) or ""))[:limit]


class PackedTerms:
    """Terms in order of their bytes, each once, with their numbers."""

    def __init__(self, text: bytes, lengths: Numbers, numbers: Numbers) -> None:
        self._text = text
        self._starts = array("I", bytes(4))
        self._starts.frombytes(np.cumsum(lengths, dtype=np.uint32).tobytes())
        self._numbers = array("I")
        self._numbers.frombytes(numbers.tobytes())
        self._count = len(numbers)
        self._places = np.full(int(numbers.max(initial=0)) + 1, -1, np.int32)
        self._places[numbers] = np.arange(len(numbers), dtype=np.int32)
        # A search begins in every 64th term, which a list finds without a line of Python.
        self._samples = [self._at(place) for place in range(0, len(numbers), _STEP)]

    def __len__(self) -> int:
        return self._count

    def _at(self, place: int) -> bytes:
        return self._text[self._starts[place] : self._starts[place + 1]]

    def _place(self, term: bytes) -> int:
        """Where a term stands, or where it would."""
        first = max(bisect_right(self._samples, term) - 1, 0) * _STEP
        stop = min(first + _STEP, len(self._numbers))
        return bisect_left(range(stop), term, first, stop, key=self._at)

    def number(self, term: bytes) -> int | None:
        """Return the number of a term, or None."""
        place = self._place(term)
        if place == len(self._numbers) or self._at(place) != term:
            return None
        number = self._numbers[place]
        return None if number == _GONE else number

    def term(self, number: int) -> str | None:
        """Return the term of a number, or None."""
        if not 0 <= number < len(self._places) or self._places[number] < 0:
            return None
        return self._at(int(self._places[number])).decode("utf-8", "surrogatepass")

    def with_prefix(self, prefix: bytes) -> list[int]:
        """Return the numbers of all terms that begin so."""
        found = self._numbers[self._place(prefix) : self._place(prefix + _LAST)]
        return [number for number in found if number != _GONE]

    def _lengths(self) -> Numbers:
        return np.diff(np.array(self._starts, np.uint32)).astype(np.uint32)

    def drop(self, number: int) -> None:
        """Forget the term of this number, if there is one."""
        if 0 <= number < len(self._places) and (place := int(self._places[number])) >= 0:
            self._numbers[place] = _GONE
            self._places[number] = -1
            self._count -= 1

    def only(self, wanted: Numbers) -> "PackedTerms":
        """Return the same without every other number."""
        numbers = np.array(self._numbers, np.uint32)
        lengths = self._lengths()
        return _cleaned(self._text, lengths, np.where(np.isin(numbers, wanted), numbers, _GONE))

    def with_these(self, fresh: Mapping[str, int]) -> "PackedTerms":
        """Return the same with these terms, none of which it has, in their places."""
        added = sorted((_bytes(term), number) for term, number in fresh.items())
        places = [self._place(term) for term, _ in added]
        cuts = [self._starts[place] for place in places]
        pieces = [self._text[: cuts[0]]]
        for (term, _), first, stop in zip(
            added, cuts, [*cuts[1:], len(self._text)], strict=True
        ):
            pieces += (term, self._text[first:stop])
        lengths = self._lengths()
        return _cleaned(
            b"".join(pieces),
            np.insert(lengths, places, [len(term) for term, _ in added]),
            np.insert(np.array(self._numbers, np.uint32), places, [n for _, n in added]),
        )


def _cleaned(text: bytes, lengths: Numbers, numbers: Numbers) -> PackedTerms:
    """Leave out the terms that are gone."""
    kept = numbers != _GONE
    if not kept.all():
        text = np.frombuffer(text, np.uint8)[np.repeat(kept, lengths)].tobytes()
    return PackedTerms(text, lengths[kept], numbers[kept])


def _bytes(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")
