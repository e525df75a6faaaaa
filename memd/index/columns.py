"""What a search filters and weighs by: one numpy column per property, one row per passage. Pure.

Rows are only ever appended, in order of passage id; a passage that went is marked dead, and
`compact` closes the gaps once a quarter of the rows is dead. The public arrays are views of exactly
`n` rows and are replaced on every append, so take them anew for each search. The rows of a passage, a
summary or a session are found without walking all of them. Not here: words, vectors, locks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.index.places import Places
from memd.index.stories import Sides, Stories
from memd.models import Kind, Tier
from memd.store.rows import IndexRow, StoredPassage

NEVER = 2**62
"""The `expires_at` of what does not expire."""
KIND_CODES: Mapping[str, int] = {kind.value: code for code, kind in enumerate(Kind)}
TIER_CODES: Mapping[str, int] = {tier.value: code for code, tier in enumerate(Tier)}
_ROWS_FIRST = 64
_DEAD_SHARE_MAX = 0.25

Rows = NDArray[np.intp]

_TYPES = {
    "passage_id": np.int64, "summary_id": np.int64, "seq": np.int32, "project_id": np.int32,
    "session_id": np.int32, "kind": np.int8, "tier": np.int8, "source": np.int16, "at": np.int64,
    "expires_at": np.int64, "superseded": np.bool_, "pinned": np.bool_, "live": np.bool_,
    "length": np.int32, "quality": np.float32, "confidence": np.float32, "revisions": np.int32,
    "duplicates": np.int32, "title_length": np.int32, "body_length": np.int32, "tags": np.int32,
    "digest": np.uint64,
}  # fmt: skip


class Columns:
    """The columns, and the names that their codes stand for."""

    passage_id: NDArray[np.int64]
    summary_id: NDArray[np.int64]
    seq: NDArray[np.int32]
    project_id: NDArray[np.int32]
    session_id: NDArray[np.int32]
    """0: none."""
    kind: NDArray[np.int8]
    """Index in list(Kind)."""
    tier: NDArray[np.int8]
    """Index in list(Tier)."""
    source: NDArray[np.int16]
    """Index in `source_names`."""
    at: NDArray[np.int64]
    expires_at: NDArray[np.int64]
    """UTC milliseconds; NEVER for never."""
    superseded: NDArray[np.bool_]
    pinned: NDArray[np.bool_]
    live: NDArray[np.bool_]
    """False: the passage went; nothing else in its row means anything."""
    length: NDArray[np.int32]
    """Terms in the passage, title and body together."""
    quality: NDArray[np.float32]
    confidence: NDArray[np.float32]
    revisions: NDArray[np.int32]
    duplicates: NDArray[np.int32]
    title_length: NDArray[np.int32]
    body_length: NDArray[np.int32]
    """Characters of the whole summary's title and body."""
    tags: NDArray[np.int32]
    """Index in `tag_sets`."""
    digest: NDArray[np.uint64]
    """A hash of the text that was indexed; 0 if it is not known."""

    def __init__(self) -> None:
        self.n = 0
        self.first_expiry = NEVER
        """Nothing expires before that."""
        self.source_names: list[str] = []
        self.tag_sets: list[frozenset[str]] = [frozenset()]
        self._sources: dict[str, int] = {}
        self._tags: dict[frozenset[str], int] = {frozenset(): 0}
        self._space: dict[str, NDArray[Any]] = {
            name: np.zeros(_ROWS_FIRST, dtype) for name, dtype in _TYPES.items()
        }
        self._of_summary, self._of_session, self._stories = Places(), Places(), Stories()
        self._expose()

    def _expose(self) -> None:
        for name, column in self._space.items():
            setattr(self, name, column[: self.n])

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return what has to be saved, (n,) each; beside it there are the `labels`."""
        return {name: column[: self.n] for name, column in self._space.items()}

    def labels(self) -> dict[str, list[Any]]:
        """Return what the codes in `source` and `tags` stand for, in order, as JSON can have it."""
        return {
            "sources": list(self.source_names),
            "tags": [sorted(tags) for tags in self.tag_sets],
        }

    def restore(
        self, n: int, parts: Mapping[str, NDArray[Any]], labels: Mapping[str, Sequence[Any]]
    ) -> None:
        """Take over columns that were saved when there were n rows.

        They may be longer, with zeros after the n: then rows are appended into them.
        """
        self.__init__()  # type: ignore[misc]  # begin anew: nothing of before may be left
        self.n = n
        self._space = {name: np.asarray(parts[name]) for name in _TYPES}
        self.source_names = list(labels["sources"])
        self.tag_sets = [frozenset(tags) for tags in labels["tags"]]
        self._sources = {name: code for code, name in enumerate(self.source_names)}
        self._tags = {tags: code for code, tags in enumerate(self.tag_sets)}
        self._expose()
        self.first_expiry = int(self.expires_at.min(initial=NEVER))

    def append(self, passages: Sequence[StoredPassage]) -> Rows:
        """Add passages, whose ids are higher than all before; their rows. `update` fills in the rest."""
        first, self.n = self.n, self.n + len(passages)
        if self.n > len(self._space["live"]):
            self._grow(self.n + self.n // 4)
        self._expose()
        rows = np.arange(first, self.n)
        self.passage_id[rows] = [p.id for p in passages]
        self.summary_id[rows] = [p.summary_id for p in passages]
        self.seq[rows] = [p.seq for p in passages]
        self.length[rows] = [p.length for p in passages]
        self.expires_at[rows] = NEVER
        self.live[rows] = True
        return rows

    def _grow(self, capacity: int) -> None:
        for name, column in self._space.items():
            wider = np.zeros(capacity, column.dtype)
            wider[: len(column)] = column
            self._space[name] = wider

    def retire(self, rows: Rows) -> None:
        """Mark the rows of passages that went."""
        self.live[rows] = False
        self._join(rows, np.zeros(len(rows), np.int32))

    def update(self, facts: Iterable[IndexRow]) -> None:
        """Write down what is known of these summaries in every row of theirs."""
        known = {fact.summary_id: fact for fact in facts}
        rows = self.rows_of_any(list(known))
        if not len(rows):
            return
        found = [known[number] for number in self.summary_id[rows].tolist()]
        self.expires_at[rows] = [NEVER if f.expires_at is None else f.expires_at for f in found]
        self.first_expiry = min(self.first_expiry, int(self.expires_at[rows].min()))
        self.superseded[rows] = [f.is_superseded for f in found]
        self.pinned[rows] = [f.is_pinned for f in found]
        self.kind[rows] = [KIND_CODES[f.kind] for f in found]
        self.tier[rows] = [TIER_CODES[f.tier] for f in found]
        self.source[rows] = [self._intern_source(f.source) for f in found]
        self.tags[rows] = [self._intern_tags(frozenset(f.tags)) for f in found]
        self._join(rows, np.array([f.session_id for f in found], np.int32))
        for name in ("project_id", "at", "quality", "confidence", "revisions", "duplicates",
                     "title_length", "body_length"):  # fmt: skip
            self._space[name][rows] = [getattr(f, name) for f in found]

    def _join(self, rows: Rows, sessions: NDArray[np.int32]) -> None:
        """Let these rows belong to these sessions; what is known of either's story is no longer true."""
        before = self.session_id[rows]
        self._stories.forget(before)
        self._stories.forget(sessions)
        self._of_session.changed(rows[before != sessions])
        self.session_id[rows] = sessions

    def _intern_source(self, name: str) -> int:
        if name not in self._sources:
            self._sources[name] = len(self.source_names)
            self.source_names.append(name)
        return self._sources[name]

    def _intern_tags(self, tags: frozenset[str]) -> int:
        if tags not in self._tags:
            self._tags[tags] = len(self.tag_sets)
            self.tag_sets.append(tags)
        return self._tags[tags]

    def of_kinds(self, kinds: Iterable[Kind]) -> NDArray[np.bool_]:
        """Tell of each row, (n,), whether it is of one of these kinds."""
        return np.isin(self.kind, [KIND_CODES[kind.value] for kind in kinds])

    def from_source(self, name: str) -> NDArray[np.bool_]:
        """Tell of each row, (n,), whether it is from this source."""
        from_it: NDArray[np.bool_] = self.source == self._sources.get(name, -1)
        return from_it

    def with_tags(self, wanted: Iterable[str]) -> NDArray[np.bool_]:
        """Tell of each row, (n,), whether it has all of these tags."""
        want = frozenset(wanted)
        has = np.fromiter(
            (want <= tags for tags in self.tag_sets), np.bool_, len(self.tag_sets)
        )
        return has[self.tags]

    def rows_of(self, summary_id: int) -> Rows:
        """Return the live rows of a summary, in order of their passages."""
        return self.rows_of_any([summary_id])

    def rows_of_any(self, summary_ids: Sequence[int]) -> Rows:
        """Return the live rows of these summaries, ascending; unknown ids are left out."""
        rows = self._of_summary.rows(self.summary_id, summary_ids)
        return rows[self.live[rows]]

    def beside(self, rows: Rows) -> Sides:
        """Return for each of these rows the previous and the next of its session, (m,) each; -1: none.

        A session is ordered by event time, then summary, then place in the summary.
        """
        return self._stories.beside(rows, self.session_id, self._told)

    def _told(self, sessions: Sequence[int]) -> Rows:
        """The live rows of these sessions, session by session, in order."""
        rows = self._of_session.rows(self.session_id, sessions)
        rows = rows[self.live[rows]]
        keys = (self.seq, self.summary_id, self.at, self.session_id)
        return rows[np.lexsort([key[rows] for key in keys])]

    def rows_with(self, passage_ids: Sequence[int]) -> Rows:
        """Return the live rows of these passages, ascending; unknown ids are left out."""
        wanted = np.unique(np.asarray(passage_ids, np.int64))
        rows = self.passage_id.searchsorted(wanted)
        rows, wanted = rows[rows < self.n], wanted[rows < self.n]
        there: Rows = rows[(self.passage_id[rows] == wanted) & self.live[rows]]
        return there

    @property
    def live_count(self) -> int:
        """How many rows are not dead."""
        return int(np.count_nonzero(self.live))

    @property
    def is_sparse(self) -> bool:
        """Whether enough rows are dead for `compact` to be worth it."""
        return self.n - self.live_count > max(_ROWS_FIRST, _DEAD_SHARE_MAX * self.n)

    def compact(self) -> NDArray[np.int32]:
        """Close the gaps; return for each old row its new one, -1 if it was dead."""
        live = self.live.copy()
        mapping = np.where(live, np.cumsum(live, dtype=np.int32) - 1, np.int32(-1))
        self.n = int(live.sum())
        for name, column in self._space.items():
            self._space[name] = column[: len(live)][live]
        self._of_summary, self._of_session, self._stories = Places(), Places(), Stories()
        self._expose()
        self.first_expiry = int(self.expires_at.min(initial=NEVER))
        return mapping
