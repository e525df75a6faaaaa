"""Terms within a few edits of a word, in a long list of terms. Pure.

A signature has a bit for each kind of byte in a term. One edit changes at most two bits of a letter, so comparing
signatures leaves some hundreds of 200,000 terms, whose distances are computed together. An edit inserts, removes or
replaces a letter, or swaps two neighbours (optimal string alignment).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
