"""Top-k selection without a full sort. Pure.

Scores are laid out in a few thousand columns. The highest score of each column shows which columns can hold a
wanted score, and only those are searched.
"""

import numpy as np

from memd.index.columns import Rows
from memd.index.quantization import Floats

_COLUMNS_MIN = 2_048
_COLUMNS_ROOT = 8
"""Columns per √n: then finding the column maxima costs as much as searching the columns that remain."""


def top_rows(scores: Floats, count: int) -> tuple[Rows, bool]:
    """Return rows, ascending, with at least the `count` highest scores above 0, and whether these are all above 0.

    There may be more than `count`, with every row that ties with one of them.
    """
    columns = max(_COLUMNS_MIN, int(_COLUMNS_ROOT * len(scores) ** 0.5))
    height = len(scores) // columns
    if height < 2:  # noqa: PLR2004  # a column of one is nothing to choose from
        return np.flatnonzero(scores > 0), True
    width = len(scores) // height
    grid = scores[: height * width].reshape(height, width)
    tops = grid.max(axis=0)
    limit = _nth_highest(tops, count) if count <= width else 0
    if limit <= 0:
        return np.flatnonzero(scores > 0), True
    kept = np.flatnonzero(tops >= limit)
    down, across = np.nonzero(grid[:, kept] >= limit)
    rest = height * width + np.flatnonzero(scores[height * width :] >= limit)
    return np.concatenate((down * width + kept[across], rest)), False


def _nth_highest(scores: Floats, count: int) -> np.float32:
    """Return the lowest of the `count` highest. Sorts, because partition is slow with many equal scores."""
    limit: np.float32 = np.sort(scores)[len(scores) - count]
    return limit


def keep_highest(rows: Rows, scores: Floats, count: int) -> Rows:
    """Return those of the rows, in their order, with the `count` highest scores, and ties with the last."""
    if len(rows) <= count:
        return rows
    own = scores[rows]
    kept: Rows = rows[own >= _nth_highest(own, count)]
    return kept
