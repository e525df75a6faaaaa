"""Doc values per passage, lookup by value, session neighbours."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.models import Kind, Tier
from memd.store.types import IndexRow, StoredPassage

# MERGED from memd.index.places:
# MERGED Which rows have a value in a column, found without walking all of them. Pure.
# MERGED
# MERGED The rows up to some point lie in order of their values; those after it are walked, until they are too
# MERGED many and are put in order, too. A value that changes in a row of the first kind makes that row a stray,
# MERGED which is looked at besides. Not here: the column itself.


_LOOSE_MIN = 4_096
_LOOSE_SHARE = 64
_STRAYS_MAX = 1_024

Rows = NDArray[np.intp]
Column = NDArray[Any]


class RowLookup:
    """Rows by value, for one column of whole numbers."""

    def __init__(self) -> None:
        self._keys: Column = np.zeros(0, np.int64)
        self._order: NDArray[np.int32] = np.zeros(0, np.int32)
        self._strays: set[int] = set()

    def changed(self, rows: Rows) -> None:
        """Take note that these rows have other values than before."""
        self._strays.update(rows[rows < len(self._order)].tolist())

    def rows(self, column: Column, values: Sequence[int] | NDArray[Any]) -> Rows:
        """Return the rows of the column that have one of these values, ascending."""
        if len(column) - len(self._order) > max(_LOOSE_MIN, len(column) // _LOOSE_SHARE) or (
            len(self._strays) > _STRAYS_MAX
        ):
            self._put_in_order(column)
        wanted = _distinct(values, column.dtype)
        if not len(wanted):
            return np.zeros(0, np.intp)
        return np.sort(np.concatenate([*self._in_order(wanted), self._loose(column, wanted)]))

    def _put_in_order(self, column: Column) -> None:
        order = np.argsort(column, kind="stable")
        self._keys, self._order = column[order], order.astype(np.int32)
        self._strays.clear()

    def _in_order(self, wanted: Column) -> list[Rows]:
        first = self._keys.searchsorted(wanted, "left").tolist()
        stop = self._keys.searchsorted(wanted, "right").tolist()
        found = [self._order[a:b] for a, b in zip(first, stop, strict=True) if a < b]
        if not self._strays or not found:
            return [rows.astype(np.intp) for rows in found]
        rows = np.concatenate(found)
        return [rows[~np.isin(rows, list(self._strays))].astype(np.intp)]

    def _loose(self, column: Column, wanted: Column) -> Rows:
        first = len(self._order)
        rows = first + np.flatnonzero(_is_in(column[first:], wanted))
        if not self._strays:
            return rows
        strays = np.fromiter(self._strays, np.intp, len(self._strays))
        return np.concatenate((strays[_is_in(column[strays], wanted)], rows))


def _distinct(values: Sequence[int] | NDArray[Any], dtype: np.dtype[Any]) -> Column:
    if len(values) == 1:
        return np.asarray(values, dtype)
    return np.unique(np.asarray(values, dtype))


def _is_in(column: Column, wanted: Column) -> NDArray[np.bool_]:
    if len(wanted) == 1:
        return np.asarray(column == wanted[0])
    places = np.minimum(wanted.searchsorted(column), len(wanted) - 1)
    return np.asarray(wanted[places] == column)


# MERGED from memd.index.stories:
# MERGED Which row comes before and after another in the story of its session. Pure.
# MERGED
# MERGED Worked out a session at a time, when one is asked for, and kept until one of its rows changes: ordering
# MERGED all rows of a big index anew after every change would cost half a second. Not here: which rows a session
# MERGED has.


Sides = tuple[NDArray[np.int32], NDArray[np.int32]]


class SessionNeighbours:
    """The previous and the next row of each row, -1 for none."""

    def __init__(self) -> None:
        self._previous = np.zeros(0, np.int32)
        self._next = np.zeros(0, np.int32)
        self._known: set[int] = set()

    def forget(self, sessions: NDArray[np.int32]) -> None:
        """Take note that rows of these sessions came, went or changed."""
        if self._known:
            self._known.difference_update(sessions.tolist())

    def neighbours(
        self,
        rows: Rows,
        sessions: NDArray[np.int32],
        told: Callable[[list[int]], Rows],
    ) -> Sides:
        """Return for each of `rows` the previous and the next of its session, (m,) each; -1: none.

        `sessions` are those of all rows, 0: none. `told` gives the live rows of some sessions, session
        by session, each in the order of its story.
        """
        if len(self._previous) < len(sessions):
            self._widen(len(sessions) + len(sessions) // 4)
        own = sessions[rows]
        unknown = set(own.tolist()) - self._known - {0}
        if unknown:
            self._learn(told(list(unknown)), sessions)
            self._known |= unknown
        has_none = own == 0
        return (
            np.where(has_none, np.int32(-1), self._previous[rows]),
            np.where(has_none, np.int32(-1), self._next[rows]),
        )

    def _widen(self, capacity: int) -> None:
        for name in ("_previous", "_next"):
            wider = np.zeros(capacity, np.int32)
            old = getattr(self, name)
            wider[: len(old)] = old
            setattr(self, name, wider)

    def _learn(self, ordered: Rows, sessions: NDArray[np.int32]) -> None:
        own = sessions[ordered]
        together = own[:-1] == own[1:]
        before, after = ordered[:-1][together], ordered[1:][together]
        self._previous[ordered] = self._next[ordered] = -1
        self._previous[after], self._next[before] = before, after


# MERGED from memd.index.columns:
# MERGED What a search filters and weighs by: one numpy column per property, one row per passage. Pure.
# MERGED
# MERGED Rows are only ever appended, in order of passage id; a passage that went is marked dead, and
# MERGED `compact` closes the gaps once a quarter of the rows is dead. The public arrays are views of exactly
# MERGED `n` rows and are replaced on every append, so take them anew for each search. The rows of a passage, a
# MERGED summary or a session are found without walking all of them. Not here: words, vectors, locks.


NEVER = 2**62
"""The `expires_at` of what does not expire."""
KIND_CODES: Mapping[str, int] = {kind.value: code for code, kind in enumerate(Kind)}
TIER_CODES: Mapping[str, int] = {tier.value: code for code, tier in enumerate(Tier)}
_ROWS_FIRST = 64
_DEAD_SHARE_MAX = 0.25


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
        self._rows_of_summary, self._rows_of_session, self._neighbours = (
            RowLookup(),
            RowLookup(),
            SessionNeighbours(),
        )
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
        rows = self._rows_of_summary.rows(self.summary_id, summary_ids)
        return rows[self.live[rows]]

    def neighbours(self, rows: Rows) -> Sides:
        """Return for each of these rows the previous and the next of its session, (m,) each; -1: none.

        A session is ordered by event time, then summary, then place in the summary.
        """
        return self._neighbours.neighbours(rows, self.session_id, self._told)

    def _told(self, sessions: Sequence[int]) -> Rows:
        """The live rows of these sessions, session by session, in order."""
        rows = self._rows_of_session.rows(self.session_id, sessions)
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
        self._rows_of_summary, self._rows_of_session, self._neighbours = (
            RowLookup(),
            RowLookup(),
            SessionNeighbours(),
        )
        self._expose()
        self.first_expiry = int(self.expires_at.min(initial=NEVER))
        return mapping
