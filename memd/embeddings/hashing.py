"""Text to vectors without a model: signed hashing of words, identifiers and character n-grams. Pure.

Every feature is hashed to a dimension and a sign (Weinberger et al., 2009), so that collisions cancel on
average; a repeated word counts 1 + ln(times). Words are stemmed and identifiers split as in the lexical
index; character n-grams match misspelt and inflected words. The same text has the same vector in every
process and on every machine, for as long as the space's version stays.
"""

import functools
import hashlib
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from memd.embeddings import Vectors
from memd.languages import has_unspaced, split_scripts
from memd.models import Space
from memd.text import fold, is_stop_word, terms, words

DIMENSIONS = 768
_NGRAM_SIZES = (3, 4, 5)
_NGRAM_WEIGHT = 0.3
"""Of one n-gram; a word has 1. On trio's commit messages and on LoCoMo's turns, recall@5 of this space
alone is 46.7 and 36.9 without n-grams, 49.3 and 37.2 with 0.3, and falls slowly beyond."""
_STOP_WEIGHT = 0.1
_NGRAM_LETTERS_MAX = 32
"""A longer token, such as a hash, has the n-grams of its beginning only."""
_RUN_LETTERS_MAX = 256
_WORDS_CACHED = 8_192
"""About 300 bytes each; words with equally many features share their weights."""
_WORDS_KEPT_MAX = 1_024

Features = tuple[bytes, bytes]
"""A word's positions, int16, and their weights, float32; a position past DIMENSIONS counts negative.
Bytes, because two small arrays per word would take twice the memory and be slower to join."""


class HashingEmbedder:
    """The embedder that is always available. Conforms to LocalEmbedder."""

    @property
    def space(self) -> Space:
        """The space of these vectors; a change of any weight here is a new version."""
        return Space(provider="hashing", model="words-ngrams", version="2", dimensions=DIMENSIONS)

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n, 768) float32, rows of length 1 or all zeros. Never fails."""
        return self.embed(texts)

    async def query(self, text: str) -> Vectors:
        """Return (768,) float32, of length 1 or all zeros. Never fails."""
        return _hash_text(text)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return what `documents` does, in the caller's thread: 55 µs for 60 known words."""
        rows = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            rows[row] = _hash_text(text)
        return rows


def weigh_question(text: str, weigh: Callable[[str], float]) -> Vectors:
    """Embed as `query` does, each word counting `weigh(word)` times; stop words count as they always do.

    Documents cannot be weighed: how rare a word is changes with each memory, and their vectors are stored.
    """
    return _hash_text(text, lambda token: 1.0 if is_stop_word(token) else weigh(token))


def _hash_text(text: str, weigh: Callable[[str], float] | None = None) -> Vectors:
    counts = Counter(token.lower() if token[1:].islower() else token for token in words(text))
    if not counts:
        return np.zeros(DIMENSIONS, np.float32)
    known = [_hash_word(token) for token in counts]
    places = np.frombuffer(b"".join(where for where, _ in known), np.int16)
    weights = np.frombuffer(b"".join(weight for _, weight in known), np.float32)
    if weigh is not None or len(counts) < counts.total():
        often = [1.0 + math.log(times) for times in counts.values()]
        if weigh is not None:
            often = [times * weigh(token) for times, token in zip(often, counts, strict=True)]
        factors = np.array(often, np.float32)
        weights = weights * np.repeat(factors, [len(where) // 2 for where, _ in known])
    sums = np.bincount(places, weights, 2 * DIMENSIONS)
    signed = sums[:DIMENSIONS] - sums[DIMENSIONS:]
    norm = math.sqrt(float(signed @ signed))
    return (signed / norm if norm else signed).astype(np.float32)


@functools.lru_cache(maxsize=_WORDS_CACHED)
def _hash_word(token: str) -> Features:
    damp = _STOP_WEIGHT if is_stop_word(token) else 1.0
    stems = terms(token)
    grams = [] if damp < 1 else list(_split_token(token))
    names = [f"w:{stem}" for stem in stems] + [f"g:{gram}" for gram in grams]
    places = np.array([_hash_feature(name) for name in names], np.int16)
    return places.tobytes(), _feature_weights(damp, len(stems), len(grams))


def clear_word_cache() -> None:
    """Empty the cache after much text; the words of a few questions stay."""
    if _hash_word.cache_info().currsize > _WORDS_KEPT_MAX:
        _hash_word.cache_clear()


@functools.lru_cache(maxsize=256)
def _feature_weights(damp: float, stems: int, grams: int) -> bytes:
    return np.array([damp] * stems + [_NGRAM_WEIGHT] * grams, np.float32).tobytes()


def _split_token(token: str) -> Iterator[str]:
    """Yield the n-grams of a token; of text without spaces those of each run, of Hangul those of its letters."""
    folded = fold(token)
    if folded.isascii() or not has_unspaced(folded):
        yield from _split_ngrams(folded[:_NGRAM_LETTERS_MAX])
        return
    for run in split_scripts(folded):
        if has_unspaced(run):
            yield from _split_ngrams(unicodedata.normalize("NFD", run)[:_RUN_LETTERS_MAX])
        else:
            yield from _split_ngrams(run[:_NGRAM_LETTERS_MAX])


def _split_ngrams(word: str) -> Iterator[str]:
    """Yield the 3- to 5-grams of a word, borders marked; none of a single letter or of digits.

    >>> list(_split_ngrams("key"))
    ['<ke', 'key', 'ey>', '<key', 'key>', '<key>']
    """
    if len(word) > 1 and not word.isdigit():
        marked = f"<{word}>"
        for size in _NGRAM_SIZES:
            yield from (marked[i : i + size] for i in range(len(marked) - size + 1))


def _hash_feature(feature: str) -> int:
    hashed = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(hashed, "little") % (2 * DIMENSIONS)
