"""Terms to ids; prefix lookup; misspelt words. Pure.

The store reuses a number when the last passage with its term is deleted, so a number may change its term: the latest
holds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Signatures = NDArray[np.uint32]
Lengths = NDArray[np.uint32]


class TermDictionary:
    """Term ↔ number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        """By number; empty where no term has it. A dict would take as much as all else."""
        self._compared: tuple[list[str], Signatures, Lengths] | None = None
        """The terms with the signature and the length in bytes of each, once a misspelt word was looked for."""

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, term: str) -> int | None:
        """Return the number of a term, or None if no passage has it."""
        return self._numbers.get(term)

    def term(self, number: int) -> str | None:
        """Return the term of a number, or None."""
        return self._terms[number] or None if 0 <= number < len(self._terms) else None

    def load(self, words: bytes, numbers: bytes) -> None:
        """Load terms in UTF-8 and their numbers, a line each, into an empty dictionary."""
        terms = words.decode("utf-8", "surrogatepass").split("\n") if words else []
        self._numbers = dict(zip(terms, map(int, numbers.split()), strict=True))
        self._terms = [""] * (max(self._numbers.values(), default=0) + 1)
        for term, number in self._numbers.items():
            self._terms[number] = term

    def learn(self, numbers: Mapping[str, int]) -> None:
        """Set the numbers of these terms."""
        self._terms += [""] * (max(numbers.values(), default=0) + 1 - len(self._terms))
        for term, number in numbers.items():
            if (known := self._numbers.get(term)) != number:
                if known is not None:
                    self._terms[known] = ""
                self._numbers.pop(self._terms[number], None)
                self._numbers[term], self._terms[number] = number, term
                self._compared = None

    def keep(self, numbers: Iterable[int]) -> None:
        """Remove every term but those of these numbers."""
        kept = set(numbers)
        self._terms = [term if n in kept else "" for n, term in enumerate(self._terms)]
        self._numbers = {term: n for term, n in self._numbers.items() if n in kept}
        self._compared = None

    def expand(self, prefix: str, frequency: Callable[[int], int], limit: int = 200) -> list[int]:
        """Return the numbers of the terms that begin with a prefix, the most frequent first; unused terms are skipped.

        `frequency` returns in how many passages a number's term occurs.
        """
        alike = [n for term, n in self._numbers.items() if prefix and term.startswith(prefix)]
        uses = {n: count for n in alike if (count := frequency(n))}
        return sorted(uses, key=lambda n: (-uses[n], self._terms[n]))[:limit]

    def find_similar(self, word: str, edits: int) -> dict[int, int]:
        """Return the numbers of the terms within this many edits of a word, and how many each is away."""
        if self._compared is None:
            terms = list(self._numbers)
            written = [_to_bytes(term) for term in terms]
            lengths = np.fromiter(map(len, written), np.uint32, len(written))
            starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
            self._compared = terms, compute_signatures(b"".join(written), starts), lengths
        terms, signatures, lengths = self._compared
        places = find_candidates(_to_bytes(word), signatures, lengths, edits).tolist()
        near = [terms[place] for place in places]
        away = measure_edits(word, near, edits).tolist()
        return {self._numbers[term]: n for term, n in zip(near, away, strict=True) if n <= edits}


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
