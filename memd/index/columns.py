"""Doc values: one numpy column per property, one row per passage. Pure.

Rows are only appended, in order of passage id. The row of a deleted passage is marked dead; `compact` removes dead
rows once a quarter is dead. The public arrays are views of exactly `n` rows and are replaced on every append, so
read them again for each search. The rows of a passage, summary or session are found without a scan.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.models import Kind, Tier
from memd.store import IndexRow, StoredPassage
from memd.store.filter import Mask

Rows = NDArray[np.intp]
Column = NDArray[Any]
NeighbourRows = tuple[NDArray[np.int32], NDArray[np.int32]]
"""The previous and the next row; -1: none."""

_T = TypeVar("_T", bound=np.generic)

NEVER = 2**62
"""The `expires_at` of a summary that does not expire."""
KIND_CODES: Mapping[str, int] = {kind.value: code for code, kind in enumerate(Kind)}
TIER_CODES: Mapping[str, int] = {tier.value: code for code, tier in enumerate(Tier)}
_CAPACITY_MIN = 64
_DEAD_SHARE_MAX = 0.25
_UNSORTED_MIN, _UNSORTED_SHARE = 4_096, 64
"""Rows, and one in this many rows, that may be scanned after the sorted ones."""
_STRAYS_MAX = 1_024
"""Sorted rows whose value may have changed before they are sorted again."""
_TYPES = {
    "passage_id": np.int64, "summary_id": np.int64, "seq": np.int32, "project_id": np.int32,
    "session_id": np.int32, "kind": np.int8, "tier": np.int8, "source": np.int16, "at": np.int64,
    "expires_at": np.int64, "retired": np.bool_, "pinned": np.bool_, "live": np.bool_,
    "length": np.int32, "quality": np.float32, "confidence": np.float32, "revisions": np.int32,
    "duplicates": np.int32, "title_length": np.int32, "body_length": np.int32, "tags": np.int32,
    "digest": np.uint64,
}  # fmt: skip


FIXED_COLUMNS = frozenset({"passage_id", "summary_id", "seq", "length"})
"""Columns whose values never change once a row is there."""


class Columns:
    """The columns, and the values of their codes."""

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
    """UTC milliseconds, or NEVER."""
    retired: Mask
    pinned: Mask
    live: Mask
    """False: the passage was deleted, and the rest of its row is meaningless."""
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
    """A hash of the indexed text; 0 if it is unknown."""

    def __init__(self) -> None:
        self.n = 0
        self.first_expiry = NEVER
        """The earliest `expires_at`."""
        self.source_names: list[str] = []
        self.tag_sets: list[frozenset[str]] = [frozenset()]
        self._sources: dict[str, int] = {}
        self._tags: dict[frozenset[str], int] = {frozenset(): 0}
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.zeros(_CAPACITY_MIN, dtype) for name, dtype in _TYPES.items()
        }
        self._forget_lookups()

    def _forget_lookups(self) -> None:
        self._rows_of_summary, self._rows_of_session = RowLookup(), RowLookup()
        self._neighbours = SessionNeighbours()
        self._make_views()

    def _make_views(self) -> None:
        for name, column in self._arrays.items():
            setattr(self, name, column[: self.n])

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot, (n,) each; the `labels` belong to them."""
        return {name: column[: self.n] for name, column in self._arrays.items()}

    def labels(self) -> dict[str, list[Any]]:
        """Return the values of the codes in `source` and `tags`, in order, for JSON."""
        return {
            "sources": list(self.source_names),
            "tags": [sorted(tags) for tags in self.tag_sets],
        }

    def restore(
        self, n: int, parts: Mapping[str, NDArray[Any]], labels: Mapping[str, Sequence[Any]]
    ) -> None:
        """Use the arrays of a snapshot of n rows. They may be longer, with zeros behind: new rows go there."""
        self.__init__()  # type: ignore[misc]  # forget the rows there were
        self.n = n
        self._arrays = {name: np.asarray(parts[name]) for name in _TYPES}
        self.source_names = list(labels["sources"])
        self.tag_sets = [frozenset(tags) for tags in labels["tags"]]
        self._sources = {name: code for code, name in enumerate(self.source_names)}
        self._tags = {tags: code for code, tags in enumerate(self.tag_sets)}
        self._make_views()
        self.first_expiry = int(self.expires_at.min(initial=NEVER))

    def append(self, passages: Sequence[StoredPassage]) -> Rows:
        """Append passages, whose ids are higher than all before; return their rows. `update` fills in the rest."""
        first, self.n = self.n, self.n + len(passages)
        if self.n > len(self._arrays["live"]):
            capacity = self.n + self.n // 4
            self._arrays = {name: widen(column, capacity) for name, column in self._arrays.items()}
        self._make_views()
        rows = np.arange(first, self.n)
        self.passage_id[rows] = [p.id for p in passages]
        self.summary_id[rows] = [p.summary_id for p in passages]
        self.seq[rows] = [p.seq for p in passages]
        self.length[rows] = [p.length for p in passages]
        self.expires_at[rows] = NEVER
        self.live[rows] = True
        return rows

    def retire(self, rows: Rows) -> None:
        """Mark rows as dead."""
        self.live[rows] = False
        self._set_sessions(rows, np.zeros(len(rows), np.int32))

    def update(self, facts: Iterable[IndexRow]) -> None:
        """Write the facts about summaries into all their rows."""
        known = {fact.summary_id: fact for fact in facts}
        rows = self.rows_of_any(list(known))
        if not len(rows):
            return
        found = [known[number] for number in self.summary_id[rows].tolist()]
        self.expires_at[rows] = [NEVER if f.expires_at is None else f.expires_at for f in found]
        self.first_expiry = min(self.first_expiry, int(self.expires_at[rows].min()))
        self.retired[rows] = [f.is_retired for f in found]
        self.pinned[rows] = [f.is_pinned for f in found]
        self.kind[rows] = [KIND_CODES[f.kind] for f in found]
        self.tier[rows] = [TIER_CODES[f.tier] for f in found]
        self.source[rows] = [self._intern_source(f.source) for f in found]
        self.tags[rows] = [self._intern_tags(frozenset(f.tags)) for f in found]
        self._set_sessions(rows, np.array([f.session_id for f in found], np.int32))
        for name in ("project_id", "at", "quality", "confidence", "revisions", "duplicates",
                     "title_length", "body_length"):  # fmt: skip
            self._arrays[name][rows] = [getattr(f, name) for f in found]

    def release_memory(self) -> None:
        """Forget the neighbours in sessions, which are computed again when they are asked for."""
        self._neighbours = SessionNeighbours()

    def _set_sessions(self, rows: Rows, sessions: NDArray[np.int32]) -> None:
        """Assign rows to sessions; the neighbours in the old and the new sessions are computed again."""
        before = self.session_id[rows]
        self._neighbours.forget(before)
        self._neighbours.forget(sessions)
        self._rows_of_session.changed(rows[before != sessions])
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

    def of_kinds(self, kinds: Iterable[Kind]) -> Mask:
        """Return a mask, (n,), of the rows of these kinds."""
        return np.isin(self.kind, [KIND_CODES[kind.value] for kind in kinds])

    def from_source(self, name: str) -> Mask:
        """Return a mask, (n,), of the rows from this source."""
        from_it: Mask = self.source == self._sources.get(name, -1)
        return from_it

    def with_tags(self, wanted: Iterable[str]) -> Mask:
        """Return a mask, (n,), of the rows with all of these tags."""
        want = frozenset(wanted)
        has = np.fromiter((want <= tags for tags in self.tag_sets), np.bool_, len(self.tag_sets))
        return has[self.tags]

    def rows_of(self, summary_id: int) -> Rows:
        """Return the live rows of a summary, in order of their passages."""
        return self.rows_of_any([summary_id])

    def rows_of_any(self, summary_ids: Sequence[int]) -> Rows:
        """Return the live rows of these summaries, ascending; unknown ids are left out."""
        rows = self._rows_of_summary.rows(self.summary_id, summary_ids)
        return rows[self.live[rows]]

    def rows_of_sessions(self, sessions: Sequence[int] | NDArray[np.int32]) -> Rows:
        """Return the live rows of these sessions, ascending."""
        rows = self._rows_of_session.rows(self.session_id, sessions)
        return rows[self.live[rows]]

    def neighbours(self, rows: Rows) -> NeighbourRows:
        """Return for each of these rows the previous and the next of its session, (m,) each.

        A session is ordered by event time, then summary, then place in the summary.
        """
        return self._neighbours.neighbours(rows, self.session_id, self._sort_sessions)

    def _sort_sessions(self, sessions: Sequence[int]) -> Rows:
        """Return the live rows of these sessions, session by session, in order."""
        rows = self.rows_of_sessions(sessions)
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
        """The number of rows that are not dead."""
        return int(np.count_nonzero(self.live))

    @property
    def is_sparse(self) -> bool:
        """Return whether enough rows are dead for `compact` to be worth it."""
        return self.n - self.live_count > max(_CAPACITY_MIN, _DEAD_SHARE_MAX * self.n)

    def compact(self) -> NDArray[np.int32]:
        """Remove dead rows; return for each old row its new one, -1 if it was dead."""
        live = self.live.copy()
        mapping = np.where(live, np.cumsum(live, dtype=np.int32) - 1, np.int32(-1))
        self.n = int(live.sum())
        for name, column in self._arrays.items():
            self._arrays[name] = column[: len(live)][live]
        self._forget_lookups()
        self.first_expiry = int(self.expires_at.min(initial=NEVER))
        return mapping


class RowLookup:
    """Finds rows by value in one integer column.

    A first part of the rows is sorted by value; the rest is scanned until it grows too long. A sorted row whose
    value changed is a stray and is scanned, too.
    """

    def __init__(self) -> None:
        self._keys: Column = np.zeros(0, np.int64)
        self._order: NDArray[np.int32] = np.zeros(0, np.int32)
        self._strays: set[int] = set()

    def changed(self, rows: Rows) -> None:
        """Note that the values of these rows changed."""
        self._strays.update(rows[rows < len(self._order)].tolist())

    def rows(self, column: Column, values: Sequence[int] | NDArray[Any]) -> Rows:
        """Return the rows of the column that have one of these values, ascending."""
        if len(column) - len(self._order) > max(_UNSORTED_MIN, len(column) // _UNSORTED_SHARE) or (
            len(self._strays) > _STRAYS_MAX
        ):
            self._sort_rows(column)
        wanted = _sort_distinct(values, column.dtype)
        if not len(wanted):
            return np.zeros(0, np.intp)
        return np.sort(
            np.concatenate([*self._find_sorted(wanted), self._find_unsorted(column, wanted)])
        )

    def _sort_rows(self, column: Column) -> None:
        order = np.argsort(column, kind="stable")
        self._keys, self._order = column[order], order.astype(np.int32)
        self._strays.clear()

    def _find_sorted(self, wanted: Column) -> list[Rows]:
        first = self._keys.searchsorted(wanted, "left").tolist()
        stop = self._keys.searchsorted(wanted, "right").tolist()
        found = [self._order[a:b] for a, b in zip(first, stop, strict=True) if a < b]
        if not self._strays or not found:
            return [rows.astype(np.intp) for rows in found]
        rows = np.concatenate(found)
        return [rows[~np.isin(rows, list(self._strays))].astype(np.intp)]

    def _find_unsorted(self, column: Column, wanted: Column) -> Rows:
        first = len(self._order)
        rows = first + np.flatnonzero(_is_in(column[first:], wanted))
        if not self._strays:
            return rows
        strays = np.fromiter(self._strays, np.intp, len(self._strays))
        return np.concatenate((strays[_is_in(column[strays], wanted)], rows))


def _sort_distinct(values: Sequence[int] | NDArray[Any], dtype: np.dtype[Any]) -> Column:
    if len(values) == 1:
        return np.asarray(values, dtype)
    return np.unique(np.asarray(values, dtype))


def _is_in(column: Column, wanted: Column) -> Mask:
    if len(wanted) == 1:
        return np.asarray(column == wanted[0])
    places = np.minimum(wanted.searchsorted(column), len(wanted) - 1)
    return np.asarray(wanted[places] == column)


class SessionNeighbours:
    """The previous and the next row of each row in its session.

    Computed per session when first asked for, until one of its rows changes: to sort all rows of a large index
    after each change would take half a second.
    """

    def __init__(self) -> None:
        self._previous = np.zeros(0, np.int32)
        self._next = np.zeros(0, np.int32)
        self._is_computed = np.ones(1, np.bool_)
        """Of each session; of 0, which is none, nothing is to be computed."""

    def forget(self, sessions: NDArray[np.int32]) -> None:
        """Note that rows of these sessions were added, removed or changed."""
        known = sessions[(sessions > 0) & (sessions < len(self._is_computed))]
        self._is_computed[known] = False

    def neighbours(
        self, rows: Rows, sessions: NDArray[np.int32], sort_sessions: Callable[[list[int]], Rows]
    ) -> NeighbourRows:
        """Return for each of `rows` the previous and the next of its session, (m,) each.

        `sessions` are those of all rows, 0: none. `sort_sessions` returns the live rows of some sessions, session
        by session, in order.
        """
        if len(self._previous) < len(sessions):
            capacity = len(sessions) + len(sessions) // 4
            self._previous, self._next = (
                widen(column, capacity) for column in (self._previous, self._next)
            )
        own = sessions[rows]
        if (last := int(own.max(initial=0))) >= len(self._is_computed):
            self._is_computed = widen(self._is_computed, last + last // 4 + 1)
        if not (is_known := self._is_computed[own]).all():
            unknown = np.unique(own[~is_known])
            self._compute(sort_sessions(unknown.tolist()), sessions)
            self._is_computed[unknown] = True
        has_none = own == 0
        return (
            np.where(has_none, np.int32(-1), self._previous[rows]),
            np.where(has_none, np.int32(-1), self._next[rows]),
        )

    def _compute(self, ordered: Rows, sessions: NDArray[np.int32]) -> None:
        own = sessions[ordered]
        together = own[:-1] == own[1:]
        before, after = ordered[:-1][together], ordered[1:][together]
        self._previous[ordered] = self._next[ordered] = -1
        self._previous[after], self._next[before] = before, after


def widen(array: NDArray[_T], capacity: int) -> NDArray[_T]:
    """Copy an array to a longer one. What follows is zero, and takes no memory before it is written."""
    wider = np.zeros((capacity, *array.shape[1:]), array.dtype)
    wider[: len(array)] = array
    return wider
