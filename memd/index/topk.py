"""The rows with the highest scores, without sorting all of them. Pure.

The scores are laid out in columns of a few thousand; of each column only the highest is compared at
first, and those that cannot have one of the wanted scores are not looked at again. Not here: filters,
and what to do with ties.
"""

import numpy as np
from numpy.typing import NDArray

_COLUMNS_MIN = 2_048
_COLUMNS_ROOT = 8
"""So many columns for every √n: then the highest of all columns cost as much as what is left of them."""

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


def top_rows(scores: Scores, count: int) -> tuple[Rows, bool]:
    """Rows, ascending, that have at least the `count` highest scores above 0; whether these are all above 0.

    There may be more than `count`; whatever scores as much as one that is there is there, too.
    """
    columns = max(_COLUMNS_MIN, int(_COLUMNS_ROOT * len(scores) ** 0.5))
    height = len(scores) // columns
    if height < 2:  # noqa: PLR2004  # a column of one is nothing to choose from
        return np.flatnonzero(scores > 0), True
    width = len(scores) // height
    grid = scores[: height * width].reshape(height, width)
    tops = grid.max(axis=0)
    limit = _nth(tops, count) if count <= width else 0
    if limit <= 0:
        return np.flatnonzero(scores > 0), True
    kept = np.flatnonzero(tops >= limit)
    down, across = np.nonzero(grid[:, kept] >= limit)
    rest = height * width + np.flatnonzero(scores[height * width :] >= limit)
    return np.concatenate((down * width + kept[across], rest)), False


def _nth(scores: Scores, count: int) -> np.float32:
    """The lowest of the `count` highest. By sorting: selecting takes forever where many are equal."""
    limit: np.float32 = np.sort(scores)[len(scores) - count]
    return limit


def keep_highest(rows: Rows, scores: Scores, count: int) -> Rows:
    """Those of these rows, in their order, that have the `count` highest scores; ties with the last, too."""
    if len(rows) <= count:
        return rows
    own = scores[rows]
    kept: Rows = rows[own >= _nth(own, count)]
    return kept
