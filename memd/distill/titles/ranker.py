"""Small boosted trees, read with numpy alone, that say how well a sentence or a word would serve a title.

The weights are made by `scripts/train` from labelled turns; `weights.json` beside them says from which, and how good they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memd.distill.titles.features import Floats

WEIGHTS = Path(__file__).with_name("weights.npz")


@dataclass(frozen=True, slots=True)
class Trees:
    """Complete binary trees of one depth whose leaves are added up."""

    base: float
    features: NDArray[np.int16]
    """(trees, inner nodes): the column that a node looks at."""
    thresholds: Floats
    """(trees, inner nodes): a greater value goes right."""
    leaves: Floats
    """(trees, leaves)."""

    def predict(self, table: Floats) -> Floats:
        """One value per row."""
        count = len(self.features)
        depth = int(np.log2(self.leaves.shape[1]))
        trees = np.arange(count)
        node = np.zeros((len(table), count), np.int64)
        rows = np.arange(len(table))[:, None]
        for level in range(depth):
            inner = 2**level - 1 + node
            right = table[rows, self.features[trees, inner]] > self.thresholds[trees, inner]
            node = 2 * node + right
        added: Floats = (self.base + self.leaves[trees, node].sum(1)).astype(np.float32)
        return added

    def trace(self, row: Floats, names: Sequence[str]) -> dict[str, float]:
        """Return what each feature added to the value of one row: the change of the mean below each node that looked at it."""
        trees, node = np.arange(len(self.features)), np.zeros(len(self.features), np.int64)
        added = np.zeros(len(names))
        for level in range(int(np.log2(self.leaves.shape[1]))):
            inner = 2**level - 1 + node
            columns = self.features[trees, inner]
            below = 2 * node + (row[columns] > self.thresholds[trees, inner])
            splits = np.isfinite(self.thresholds[trees, inner])
            change = self._mean(level + 1)[trees, below] - self._mean(level)[trees, node]
            np.add.at(added, columns[splits], change[splits])
            node = below
        return dict(zip(names, added.tolist(), strict=True))

    def _mean(self, level: int) -> Floats:
        """The mean of the leaves below each node of a level."""
        mean: Floats = self.leaves.reshape(len(self.leaves), 2**level, -1).mean(2)
        return mean


@dataclass(frozen=True, slots=True)
class Ranker:
    """What judges the words and the sentences of a turn."""

    words: Trees
    sentences: Trees

    def rate_words(self, table: Floats) -> Floats:
        """How likely a good title has each word."""
        rated: Floats = (1 / (1 + np.exp(-self.words.predict(table)))).astype(np.float32)
        return rated


def read_ranker(path: Path) -> Ranker:
    """The ranker of a file of weights."""
    with np.load(path) as kept:
        words, sentences = (
            Trees(
                float(kept[f"{name}_base"]),
                kept[f"{name}_features"].astype(np.int16),
                kept[f"{name}_thresholds"].astype(np.float32),
                kept[f"{name}_leaves"].astype(np.float32),
            )
            for name in ("words", "sentences")
        )
    return Ranker(words, sentences)


@cache
def shipped_ranker() -> Ranker:
    """The ranker that memd comes with."""
    return read_ranker(WEIGHTS)
