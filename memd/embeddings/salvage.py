"""Vectors for as many texts as a model can take: one bad text must not cost the others theirs.

A server refuses a whole batch for one text. So a batch that was refused is split until the culprits
stand alone; what is too long is halved until it fits. A text that cannot be taken at all has a row of
zeros, but only once a harmless text was taken: else it is the server that is broken, not the text.
Not here: deadlines, and how many texts at a time (learned.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memd.embeddings.fitting import CONTEXT_TOKENS, fitted, halved
from memd.embeddings.ports import Vectors
from memd.embeddings.provider import Provider, Refused
from memd.embeddings.vetted import vetted
from memd.errors import EngineFailed
from memd.models import Space
from memd.text import storable

HARMLESS = "The tests pass."


@dataclass(frozen=True, slots=True)
class Asking:
    """How one model is asked for vectors of one space."""

    provider: Provider
    space: Space
    cut: int = 0
    """Keep so many values of each vector; 0: all."""
    context: int = 0
    """Tokens that the model can take; 0: not known."""

    async def question(self, text: str) -> Vectors:
        """Return the vector of a question, (dimensions,), of length 1. Raises EngineFailed."""
        prefix = self.space.query_prefix
        asked = [self._fitted(text, prefix)]
        found = await self._ask(asked)
        while isinstance(found, Refused):
            shorter = halved(asked[0], prefix) if found.is_length else None
            if shorter is None:
                raise EngineFailed(f"the model cannot take this question: {found.reason}")
            asked = [shorter]
            found = await self._ask(asked)
        row: Vectors = found[0]
        return row

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dimensions), rows of length 1, or zeros for a text it cannot take at all.

        Raises EngineFailed if it takes no text.
        """
        asked = [self._fitted(text, self.space.document_prefix) for text in texts]
        found = await self._ask(asked)
        if not isinstance(found, Refused):
            return found
        if not found.is_length:
            await self._prove(found)
        return await self._apart(asked, found)

    async def _apart(self, texts: Sequence[str], refused: Refused) -> Vectors:
        """Return what can be had of texts that were refused together."""
        if len(texts) == 1:
            return await self._shortened(texts[0], refused)
        middle = len(texts) // 2
        parts = []
        for part in (texts[:middle], texts[middle:]):
            found = await self._ask(part)
            parts.append(
                await self._apart(part, found) if isinstance(found, Refused) else found
            )
        return np.concatenate(parts)

    async def _shortened(self, text: str, refused: Refused) -> Vectors:
        while refused.is_length:
            shorter = halved(text, self.space.document_prefix)
            if shorter is None:
                await self._prove(refused)
                break
            text = shorter
            found = await self._ask([text])
            if not isinstance(found, Refused):
                return found
            refused = found
        return np.zeros((1, self.space.dimensions), np.float32)

    async def _prove(self, refused: Refused) -> None:
        """Raise EngineFailed unless a text that harms nobody is taken."""
        if isinstance(await self._ask([self.space.document_prefix + HARMLESS]), Refused):
            raise EngineFailed(f"the model gives no usable vectors: {refused.reason}")

    async def _ask(self, texts: Sequence[str]) -> Vectors | Refused:
        raw = await self.provider.embed(texts)
        if isinstance(raw, Refused):
            return raw
        return vetted(raw, len(texts), cut=self.cut, dimensions=self.space.dimensions)

    def _fitted(self, text: str, prefix: str) -> str:
        context = min(self.context or CONTEXT_TOKENS, CONTEXT_TOKENS)
        return fitted(storable(text), prefix, context)
