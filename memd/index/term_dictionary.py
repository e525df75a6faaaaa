"""Terms to ids; prefix lookup. Pure.

A dict of a vault's terms would take a seventh of the whole index, 150 bytes a term. So terms lie sorted in one UTF-8
string with their numbers beside them: 25 bytes a term, found by bisection in 3 µs. Newer terms are in a small dict,
merged once it has grown. The store reuses a number when the last passage with its term is deleted, so a number
may change its term: the latest holds.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_FRESH_MIN = 256
_FRESH_SHARE_MAX = 0.1
"""Terms in the dict, and share of all terms, above which they are merged into the string."""
_SAMPLE_STEP = 64
"""Every 64th term is in a list, where a search begins."""
_FOUND_MAX = 1_024
"""Terms whose numbers are cached."""
_NEWLINE = ord("\n")
_REMOVED = 2**32 - 1
"""The number of a removed term."""
_AFTER_UTF8 = b"\xff"
"""Sorts after any UTF-8 text."""

Numbers = NDArray[np.uint32]


class TermDictionary:
    """Term ↔ number."""

    def __init__(self) -> None:
        self._packed = PackedTerms(b"", np.zeros(0, np.uint32), np.zeros(0, np.uint32))
        self._fresh: dict[str, int] = {}
        self._fresh_terms: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._packed) + len(self._fresh)

    def number(self, term: str) -> int | None:
        """Return the number of a term, or None if no passage has it."""
        found = self._fresh.get(term)
        return self._packed.number(_to_bytes(term)) if found is None else found

    def term(self, number: int) -> str | None:
        """Return the term of a number, or None."""
        return self._fresh_terms.get(number) or self._packed.term(number)

    def load(self, words: bytes, numbers: bytes) -> None:
        """Load terms, sorted by their UTF-8, and their numbers; a line each."""
        text = np.frombuffer(words, np.uint8)
        ends = np.append(np.flatnonzero(text == _NEWLINE), len(text)) if words else np.zeros(0)
        self._packed = PackedTerms(
            words.replace(b"\n", b""),
            (np.diff(ends, prepend=-1) - 1).astype(np.uint32),
            np.fromstring(numbers, np.uint32, sep="\n"),
        )

    def learn(self, numbers: Mapping[str, int]) -> None:
        """Set the numbers of these terms."""
        for term, number in numbers.items():
            known = self.number(term)
            if known == number:
                continue
            if known is not None:
                self._remove(known)
            self._remove(number)
            self._fresh[term], self._fresh_terms[number] = number, term
        if len(self._fresh) > max(_FRESH_SHARE_MAX * len(self._packed), _FRESH_MIN):
            self._merge_fresh()

    def _remove(self, number: int) -> None:
        term = self._fresh_terms.pop(number, None)
        if term is None:
            self._packed.drop(number)
        else:
            del self._fresh[term]

    def _merge_fresh(self) -> None:
        if self._fresh:
            self._packed = self._packed.with_these(self._fresh)
            self._fresh, self._fresh_terms = {}, {}

    def keep(self, numbers: Iterable[int]) -> None:
        """Remove every term but those of these numbers."""
        self._merge_fresh()
        self._packed = self._packed.only(np.fromiter(numbers, np.uint32))

    def expand(self, prefix: str, frequency: Callable[[int], int], limit: int = 200) -> list[int]:
        """Return the numbers of the terms that begin with a prefix, the most frequent first; unused terms are skipped.

        `frequency` returns in how many passages a number's term occurs.
        """
        if not prefix:
            return []
        alike = self._packed.with_prefix(_to_bytes(prefix))
        alike += [n for term, n in self._fresh.items() if term.startswith(prefix)]
        uses = {n: count for n in alike if (count := frequency(n))}
        return sorted(uses, key=lambda n: (-uses[n], self.term(n) or ""))[:limit]

    def find_similar(self, word: str, edits: int) -> dict[int, int]:
        """Return the numbers of the terms with a word's first letter within this many edits of it, and how many each is away."""
        fresh = [
            term
            for term in self._fresh
            if term[0] == word[0] and abs(len(term) - len(word)) <= edits
        ]
        away = zip(fresh, measure_edits(word, fresh, edits).tolist(), strict=True)
        near = {self._fresh[term]: n for term, n in away if n <= edits}
        return self._packed.find_similar(word, edits) | near


class PackedTerms:
    """Terms sorted by their bytes, each once, with their numbers."""

    def __init__(self, text: bytes, lengths: Numbers, numbers: Numbers) -> None:
        self._text = text
        self._starts = array("I", bytes(4))
        self._starts.frombytes(np.cumsum(lengths, dtype=np.uint32).tobytes())
        self._numbers = array("I")
        self._numbers.frombytes(numbers.tobytes())
        self._count = len(numbers)
        self._places = np.full(int(numbers.max(initial=0)) + 1, -1, np.int32)
        self._places[numbers] = np.arange(len(numbers), dtype=np.int32)
        self._samples = [self._term_at(place) for place in range(0, len(numbers), _SAMPLE_STEP)]
        self._found: dict[bytes, int | None] = {}
        """Terms that were looked up: a question asks for each of its own several times."""
        self._compared: tuple[Signatures, Numbers] | None = None
        """The signature and the length in bytes of each term, once a misspelt word was looked for."""

    def __len__(self) -> int:
        return self._count

    def _term_at(self, place: int) -> bytes:
        return self._text[self._starts[place] : self._starts[place + 1]]

    def _find_place(self, term: bytes) -> int:
        """Return the place of a term, or where it would be."""
        first = max(bisect_right(self._samples, term) - 1, 0) * _SAMPLE_STEP
        stop = min(first + _SAMPLE_STEP, len(self._numbers))
        return bisect_left(range(stop), term, first, stop, key=self._term_at)

    def number(self, term: bytes) -> int | None:
        """Return the number of a term, or None."""
        if term in self._found:
            return self._found[term]
        place = self._find_place(term)
        is_there = place < len(self._numbers) and self._term_at(place) == term
        number = self._numbers[place] if is_there else _REMOVED
        if len(self._found) == _FOUND_MAX:
            self._found.clear()
        self._found[term] = None if number == _REMOVED else number
        return self._found[term]

    def term(self, number: int) -> str | None:
        """Return the term of a number, or None."""
        if not 0 <= number < len(self._places) or self._places[number] < 0:
            return None
        return self._term_at(int(self._places[number])).decode("utf-8", "surrogatepass")

    def with_prefix(self, prefix: bytes) -> list[int]:
        """Return the numbers of all terms with a prefix."""
        found = self._numbers[self._find_place(prefix) : self._find_place(prefix + _AFTER_UTF8)]
        return [number for number in found if number != _REMOVED]

    def find_similar(self, word: str, edits: int) -> dict[int, int]:
        """Return the numbers of the terms with a word's first letter within this many edits of it, and how many each is away."""
        if not self._text:
            return {}
        if self._compared is None:
            signatures = compute_signatures(self._text, self._starts)
            self._compared = signatures, self._term_lengths()
        places = find_candidates(_to_bytes(word), *self._compared, edits)
        heads = np.frombuffer(self._text, np.uint8)[np.frombuffer(self._starts, np.uint32)[places]]
        terms = {
            number: term
            for place in places[heads == _to_bytes(word)[0]].tolist()
            if (number := self._numbers[place]) != _REMOVED
            and (term := self._term_at(place).decode("utf-8", "replace"))[0] == word[0]
        }
        away = measure_edits(word, list(terms.values()), edits).tolist()
        return {number: n for number, n in zip(terms, away, strict=True) if n <= edits}

    def _term_lengths(self) -> Numbers:
        return np.diff(np.array(self._starts, np.uint32)).astype(np.uint32)

    def drop(self, number: int) -> None:
        """Remove the term of this number, if there is one."""
        if 0 <= number < len(self._places) and (place := int(self._places[number])) >= 0:
            self._found.clear()
            self._numbers[place] = _REMOVED
            self._places[number] = -1
            self._count -= 1

    def only(self, wanted: Numbers) -> "PackedTerms":
        """Return a copy with only these numbers."""
        numbers = np.array(self._numbers, np.uint32)
        lengths = self._term_lengths()
        return _drop_removed(
            self._text, lengths, np.where(np.isin(numbers, wanted), numbers, _REMOVED)
        )

    def with_these(self, fresh: Mapping[str, int]) -> "PackedTerms":
        """Return a copy with these new terms inserted."""
        added = sorted((_to_bytes(term), number) for term, number in fresh.items())
        places = [self._find_place(term) for term, _ in added]
        cuts = [self._starts[place] for place in places]
        pieces = [self._text[: cuts[0]]]
        for (term, _), first, stop in zip(added, cuts, [*cuts[1:], len(self._text)], strict=True):
            pieces += (term, self._text[first:stop])
        lengths = self._term_lengths()
        return _drop_removed(
            b"".join(pieces),
            np.insert(lengths, places, [len(term) for term, _ in added]),
            np.insert(np.array(self._numbers, np.uint32), places, [n for _, n in added]),
        )


def _drop_removed(text: bytes, lengths: Numbers, numbers: Numbers) -> PackedTerms:
    kept = numbers != _REMOVED
    if not kept.all():
        text = np.frombuffer(text, np.uint8)[np.repeat(kept, lengths)].tobytes()
    return PackedTerms(text, lengths[kept], numbers[kept])


def _to_bytes(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")


# ── Misspelt words ────────────────────────────────────────────────────────────────────────────────

COMPARED_MAX = 800
"""Terms whose distance is computed: those with the most similar signatures."""
_LEAD_BYTE = 0xC0
"""From here on a byte begins a longer UTF-8 character, and says nearly nothing of it."""
_BITS = np.where(
    np.arange(256) < _LEAD_BYTE, np.uint32(1) << (np.arange(256, dtype=np.uint32) & 31), 0
).astype(np.uint32)

Signatures = NDArray[np.uint32]
Bytes = NDArray[np.uint8]


def compute_signatures(text: bytes, starts: Sequence[int]) -> Signatures:
    """Return the signature of each term, (n,): term i is `text[starts[i]:starts[i + 1]]` and not empty."""
    if len(starts) < 2:  # noqa: PLR2004  # the last start is the end
        return np.zeros(0, np.uint32)
    bits = _BITS[np.frombuffer(text, np.uint8)]
    return np.bitwise_or.reduceat(bits, np.asarray(starts, np.int64)[:-1]).astype(np.uint32)


def find_candidates(
    word: bytes, signatures: Signatures, lengths: NDArray[np.uint32], edits: int
) -> NDArray[np.intp]:
    """Return the places of the terms in a word's alphabet that may be within this many edits of it."""
    width = len(word) / max(len(word.decode("utf-8", "replace")), 1)
    slack = int(np.ceil(edits * width))
    own = np.bitwise_or.reduce(_BITS[np.frombuffer(word, np.uint8)])
    near = (lengths >= len(word) - slack) & (lengths <= len(word) + slack)
    places = np.flatnonzero(near)
    changed = np.bitwise_count(signatures[places] ^ own)
    kept = changed <= 2 * slack
    places, changed = places[kept], changed[kept]
    if len(places) > COMPARED_MAX:
        places = places[np.argpartition(changed, COMPARED_MAX)[:COMPARED_MAX]]
    return np.asarray(places, np.intp)


def measure_edits(word: str, terms: Sequence[str], limit: int) -> NDArray[np.uint8]:
    """Return how many edits each term is from a word, (len(terms),); more than `limit` only says so."""
    if not terms:
        return np.zeros(0, np.uint8)
    letters = np.array(terms)
    codes = letters.view(np.uint32).reshape(len(terms), -1).T
    asked = [ord(letter) for letter in word]
    far = np.full(len(terms), limit + 1, np.uint8)
    before: dict[int, NDArray[np.uint8]] = {}
    last = {j: np.full(len(terms), j, np.uint8) for j in range(min(limit, len(codes)) + 1)}
    for i, letter in enumerate(asked, start=1):
        row = {0: np.full(len(terms), i, np.uint8)} if i <= limit else {}
        for j in range(max(i - limit, 1), min(i + limit, len(codes)) + 1):
            cost = (codes[j - 1] != letter).astype(np.uint8)
            best = last.get(j - 1, far) + cost
            np.minimum(best, last.get(j, far) + np.uint8(1), out=best)
            np.minimum(best, row.get(j - 1, far) + np.uint8(1), out=best)
            if i > 1 and j > 1 and (swapped := before.get(j - 2)) is not None:
                is_swap = (codes[j - 1] == asked[i - 2]) & (codes[j - 2] == letter)
                best = np.where(is_swap, np.minimum(best, swapped + np.uint8(1)), best)
            row[j] = best
        before, last = last, row
    lengths = np.char.str_len(letters)
    found = far.copy()
    for j, edits in last.items():
        found = np.where(lengths == j, np.minimum(edits, found), found)
    return found
