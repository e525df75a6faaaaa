"""Texts to checked vectors: truncate, ask, split a refused batch, validate every vector.

A server refuses a whole batch for one text. So a batch that was refused is split until the culprits
stand alone, and what is too long is halved until it fits. A text that cannot be embedded at all has a
row of zeros, but only after a harmless text was accepted: otherwise the server is broken, not the text.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memd.embeddings import Provider, TextsRefused, Vectors
from memd.errors import EngineFailed
from memd.models import Space
from memd.text import storable

HARMLESS_TEXT = "The tests pass."
CONTEXT_TOKENS = 2_048
"""What nomic-embed-text was trained for, and the most that its builds allow."""
_SPECIAL_TOKENS = 8
"""Added by a model around a text."""
_TOKEN_PIECE = re.compile(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]")
_LETTERS_PER_TOKEN, _DIGITS_PER_TOKEN = 4, 2
_HALVED_CHARACTERS_MIN = 16
REQUEST_S = 0.02
"""Aim for the seconds of a batch request: a server that works on one request at a time lets a query wait
for it. With 0.05, searches beside a re-embedding took 2.3 times as long at the 95th percentile
(`scripts/bench embeddings`)."""
_FIRST_SIZE = 4
_GROWTH_MAX = 2
_SMOOTHING = 0.5
"""Weight of the past in the moving average of seconds per text."""
_ROWS_AND_COLUMNS = 2
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_VECTOR_LENGTH_MIN = math.sqrt(float(np.finfo(np.float32).tiny))
"""The direction of a shorter vector is noise."""


@dataclass(frozen=True, slots=True)
class AdaptiveBatchSize:
    """The number of texts to send at once, from how long the last requests took."""

    text_s: float = 0.0
    """Moving average of the seconds per text; 0 if not known."""
    last_count: int = 0

    def size(self, limit: int) -> int:
        """Return how many texts to send next, from 1 to `limit`."""
        if not self.text_s:
            return min(_FIRST_SIZE, limit)
        wanted = int(REQUEST_S / self.text_s)
        return max(1, min(wanted, self.last_count * _GROWTH_MAX, limit))

    def record_request(self, count: int, seconds: float) -> "AdaptiveBatchSize":
        """Return the size after a request with this many texts."""
        now_s = max(seconds, 1e-6) / count
        past_s = self.text_s or now_s
        return AdaptiveBatchSize(_SMOOTHING * past_s + (1 - _SMOOTHING) * now_s, count)


@dataclass(frozen=True, slots=True)
class BatchEmbedder:
    """Embeds texts in one space with one provider."""

    provider: Provider
    space: Space
    cut: int = 0
    """Keep this many values of each vector; 0 keeps all."""
    context: int = 0
    """Tokens that the model accepts; 0 if not known."""

    async def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query, (dimensions,), of length 1. Raises EngineFailed."""
        asked = self._fit_context(text, self.space.query_prefix)
        while isinstance(found := await self._embed_batch([asked], is_query=True), TextsRefused):
            shorter = halve_text(asked, self.space.query_prefix) if found.is_length else None
            if shorter is None:
                raise EngineFailed(f"the model cannot take this question: {found.reason}")
            asked = shorter
        row: Vectors = found[0]
        return row

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dimensions), rows of length 1, or zeros for a text that cannot be embedded at all.

        Raises EngineFailed if no text is accepted.
        """
        asked = [self._fit_context(text, self.space.document_prefix) for text in texts]
        found = await self._embed_batch(asked)
        if not isinstance(found, TextsRefused):
            return found
        if not found.is_length:
            await self._require_working_server(found)
        return await self._embed_halves(asked, found)

    async def _embed_halves(self, texts: Sequence[str], refused: TextsRefused) -> Vectors:
        """Return the vectors of texts that were refused together."""
        if len(texts) == 1:
            return await self._embed_shortened(texts[0], refused)
        middle = len(texts) // 2
        parts = []
        for part in (texts[:middle], texts[middle:]):
            found = await self._embed_batch(part)
            if isinstance(found, TextsRefused):
                found = await self._embed_halves(part, found)
            parts.append(found)
        return np.concatenate(parts)

    async def _embed_shortened(self, text: str, refused: TextsRefused) -> Vectors:
        while refused.is_length:
            shorter = halve_text(text, self.space.document_prefix)
            if shorter is None:
                await self._require_working_server(refused)
                break
            text = shorter
            found = await self._embed_batch([text])
            if not isinstance(found, TextsRefused):
                return found
            refused = found
        return np.zeros((1, self.space.dimensions), np.float32)

    async def _require_working_server(self, refused: TextsRefused) -> None:
        """Raise EngineFailed unless a harmless text is accepted."""
        harmless = self.space.document_prefix + HARMLESS_TEXT
        if isinstance(await self._embed_batch([harmless]), TextsRefused):
            raise EngineFailed(f"the model gives no usable vectors: {refused.reason}")

    async def _embed_batch(
        self, texts: Sequence[str], *, is_query: bool = False
    ) -> Vectors | TextsRefused:
        raw = await self.provider.embed(texts, is_query=is_query)
        return validate_vectors(raw, len(texts), cut=self.cut, dimensions=self.space.dimensions)

    def _fit_context(self, text: str, prefix: str) -> str:
        context = min(self.context or CONTEXT_TOKENS, CONTEXT_TOKENS)
        return truncate_text(storable(text), prefix, context)


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text has, rather too many: every model has another tokenizer.

    A word counts a token per four letters, a number one per two digits, anything else one a character.

    >>> estimate_tokens("decode_token(7)")
    8
    """
    return sum(_count_tokens(piece) for piece in _TOKEN_PIECE.findall(text))


def truncate_text(text: str, prefix: str = "", context: int = CONTEXT_TOKENS) -> str:
    """Return the prefix and as much of the text as fits into this many tokens by our estimate."""
    limit = max(context - _SPECIAL_TOKENS - estimate_tokens(prefix), _SPECIAL_TOKENS)
    if len(text) <= limit:
        return prefix + text
    left = limit
    for match in _TOKEN_PIECE.finditer(text):
        piece = match.group()
        if _count_tokens(piece) > left:
            return prefix + text[: match.start() + left * _characters_per_token(piece)]
        left -= _count_tokens(piece)
    return prefix + text


def halve_text(text: str, prefix: str = "") -> str | None:
    """Return the first half of a text that the server calls too long; None if too little is left.

    `prefix` is what the text begins with and keeps.
    """
    rest = text.removeprefix(prefix)
    return prefix + rest[: len(rest) // 2] if len(rest) >= _HALVED_CHARACTERS_MIN else None


def _count_tokens(piece: str) -> int:
    return -(-len(piece) // _characters_per_token(piece))


def _characters_per_token(piece: str) -> int:
    if not piece.isascii() or not piece.isalnum():
        return 1
    return _DIGITS_PER_TOKEN if piece.isdigit() else _LETTERS_PER_TOKEN


def validate_vectors(
    raw: object, count: int, *, cut: int = 0, dimensions: int = 0
) -> Vectors | TextsRefused:
    """Return (count, dimensions) float32 in the order of the reply, each row of length 1; count >= 1.

    A vector that is not finite, not of its space's length or all zeros would spoil every later
    comparison. A refusal is returned as it is. `cut` keeps that many values of each vector, 0 all; `dimensions` is what must be left,
    0 for any.
    """
    rows = _parse_numbers(raw, count)
    if isinstance(rows, TextsRefused):
        return rows
    rows = rows[:, :cut] if cut else rows
    if dimensions and rows.shape[1] != dimensions:
        return TextsRefused(f"vectors of {rows.shape[1]} values came, not of {dimensions}")
    largest = np.abs(rows).max(axis=1, initial=0.0)
    # A number that float32 cannot hold is no embedding, either.
    if not np.isfinite(largest).all() or (largest > _FLOAT32_MAX).any():
        return TextsRefused("a vector is not finite")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if (lengths < _VECTOR_LENGTH_MIN).any():
        return TextsRefused("a vector is all zeros")
    found: Vectors = (rows / lengths).astype(np.float32)
    return found


def _parse_numbers(raw: object, count: int) -> NDArray[np.float64] | TextsRefused:
    if isinstance(raw, TextsRefused):
        return raw
    if not isinstance(raw, list):
        return TextsRefused("the reply has no vectors")
    if len(raw) != count:
        return TextsRefused(f"{len(raw)} vectors came for {count} texts")
    if len({len(row) if isinstance(row, list) else 0 for row in raw}) != 1:
        return TextsRefused("the vectors are of different lengths")
    try:
        found = np.asarray(raw)
    except ValueError:
        found = np.empty(0, object)
    if found.dtype.kind not in "iuf" or found.ndim != _ROWS_AND_COLUMNS or not found.shape[1]:
        return TextsRefused("the vectors hold something that is not a number, or nothing")
    return found.astype(np.float64)
