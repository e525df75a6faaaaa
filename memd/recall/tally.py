"""What answers returned, counted until somebody writes it down. Pure.

Two memories of one page were used together; only its best five make pairs, since the tail of a long
page says little. Bounded: what is not written for long is counted no further.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memd.store.rows import Pair, Use

PAIRED = 5
ENTRIES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted since the last time."""

    uses: Mapping[int, Use]
    pairs: Mapping[Pair, int]


class Tally:
    """Counts of what was returned and not written down yet."""

    def __init__(self) -> None:
        self._uses: dict[int, Use] = {}
        self._pairs: dict[Pair, int] = {}
        self.pending = 0
        """How many hits were counted since the last `take`."""

    def add(self, summary_ids: Sequence[int], at: int) -> None:
        """Count the page of one answer, best first, given at `at` (UTC ms)."""
        if len(self._uses) + len(self._pairs) >= ENTRIES_MAX:
            return
        self.pending += len(summary_ids)
        for number in summary_ids:
            self._use(number, Use(1, at))
        for one, other in itertools.combinations(summary_ids[:PAIRED], 2):
            self._pair((min(one, other), max(one, other)), 1)

    def take(self) -> Counts:
        """Hand everything over and begin anew."""
        taken = Counts(self._uses, self._pairs)
        self._uses, self._pairs, self.pending = {}, {}, 0
        return taken

    def give_back(self, counts: Counts) -> None:
        """Count what was taken and could not be written."""
        self.pending += sum(use.count for use in counts.uses.values())
        for number, use in counts.uses.items():
            self._use(number, use)
        for pair, count in counts.pairs.items():
            self._pair(pair, count)

    def _use(self, number: int, use: Use) -> None:
        old = self._uses.get(number, Use(0, use.last_at))
        self._uses[number] = Use(old.count + use.count, max(old.last_at, use.last_at))

    def _pair(self, pair: Pair, count: int) -> None:
        self._pairs[pair] = self._pairs.get(pair, 0) + count
