"""How rare words are among some rows: what is common in one project may be rare in the vault. Pure.

Not here: which rows these are.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


def idf(count: int, having: int) -> float:
    """How much it says that a word stands somewhere which `having` of `count` rows have."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


class Among:
    """The rows over which rarity is counted, by a mask of all; to be made anew when rows change.

    `frequency` counts the rows of a mask that have a term; of no mask, those of all that live. What was
    counted once is remembered.
    """

    def __init__(self, mask: Mask, frequency: Callable[[int, Mask | None], int]) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self._frequency = frequency
        self._df: dict[int, int] = {}

    @property
    def is_everything(self) -> bool:
        """Whether no row is left out."""
        return self.count == len(self.mask)

    def df(self, term: int) -> int:
        """Count those of these rows that have a term."""
        known = self._df.get(term)
        if known is None:
            known = self._frequency(term, None if self.is_everything else self.mask)
            self._df[term] = known
        return known

    def idf(self, term: int) -> float:
        """Tell how much a term says."""
        return idf(self.count, self.df(term))
