"""The in-memory index: columns, terms, postings and vectors, row by row, under one lock.

Hold `lock` while rows of one array are used with another. Only the indexer adds and removes rows, a whole batch at
a time. The first vector space is always complete; a second one may belong to a learned model, whose vectors are
filled in later, in any order. The index is derived from the vault and equals what `load` would read, up to dead
rows and the order of rows.
"""

import contextlib
import threading
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import FIXED_COLUMNS, Columns, Rows, widen
from memd.index.postings import ROW_PARTS, InvertedIndex
from memd.index.quantization import BinaryCodes, Floats, VectorRows
from memd.index.term_dictionary import TermDictionary
from memd.models import Space
from memd.store import IndexRow, StoredPassage
from memd.store.filter import Mask

_T = TypeVar("_T")
TermLines = tuple[bytes, bytes]
"""The terms and their numbers as `TermDictionary.load` reads them."""

CACHED_VALUES_MAX = 16
_KEPT_ROWS_MAX = 200_000
"""Rows up to which values that were computed for searches are kept at rest: they take 25 bytes a row."""
_STREAM_BLOCK = 512
_FILLED_ROWS = 32
"""Vectors that are written under one lock: a search waits for less than a millisecond."""
ACTIVE_FROM = 0.95
"""Share of the passages that need a vector before searches prefer the model's space; until then both spaces are
searched. Less than all, because new memories wait for their vectors while the model is busy."""
_STAYS_ACTIVE_SHARE = 0.8
"""Share of `active_from` down to which an active learned space stays active."""
_SUPERSEDED_LAST = 2**60


class StoredArray(NamedTuple):
    """An array of a snapshot."""

    rows: NDArray[Any]
    axis: int | None = 0
    """The axis along which rows are appended; None: none are."""
    is_fixed: bool = False
    """Whether existing rows are never written to."""


@dataclass(frozen=True, slots=True)
class SavedArrays:
    """The writable arrays of a snapshot."""

    rows: int
    spaces: Sequence[tuple[str, int]]
    """Name and dimensions of each vector space."""
    arrays: Mapping[str, NDArray[Any]]
    """With free space behind the rows."""


@dataclass(frozen=True, slots=True)
class VaultContents:
    """The vault's contents for an index, as streams: all at once would take as much memory again."""

    passages: Iterable[StoredPassage]
    """In order of id."""
    words: TermLines
    facts: Iterable[IndexRow]
    spaces: Sequence[Space]
    """The local vector spaces, still empty; the first one will be complete."""


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """The changes of one transaction of the indexer."""

    removed: Sequence[int] = ()
    """Ids of deleted passages."""
    gone: Sequence[int] = ()
    """Ids of deleted summaries; their passages may already be deleted."""
    added: Sequence[StoredPassage] = ()
    """In order of id, all higher than any before."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The terms of the added passages."""
    vectors: Mapping[Space, NDArray[np.float16]] = field(default_factory=dict)
    """One row per added passage; a missing space has none of them."""
    facts: Sequence[IndexRow] = ()
    """The facts about each changed summary that still exists."""
    digests: Mapping[int, int] = field(default_factory=dict)
    """Summary id → hash of the text that was indexed."""


class MemoryIndex:
    """The index in memory. `loaded` is False until the vault was read for the first time."""

    def __init__(self, active_from: float = 1.0) -> None:
        self.lock = threading.RLock()
        self.version = 0
        """Grows with every change of rows; caches compare it."""
        self.loaded = False
        self._has_loaded = threading.Event()
        self.matrices: dict[str, VectorMatrix] = {}
        """By the name of the space; a row without a vector is all zeros."""
        self.learned_space: Space | None = None
        """The space whose vectors are filled in later."""
        self.active = ""
        """The name of the space that searches use first: the learned one once its coverage reaches `active_from`,
        until it falls below .8 of that; else the complete one."""
        self._active_from = active_from
        self.cache = SearchCache()
        """Used under the lock."""
        self._make_empty()

    def _make_empty(self) -> None:
        self.columns = Columns()
        self.postings = InvertedIndex()
        self.vocabulary = TermDictionary()

    @property
    def learned(self) -> str | None:
        """The name of the learned space, or None while there is none."""
        return self.learned_space.name if self.learned_space else None

    def load(self, contents: VaultContents) -> None:
        """Read everything from the vault. Passages without a summary are dead; the learned space is empty."""
        fresh = MemoryIndex()
        fresh.vocabulary.load(*contents.words)
        for passages in _split_stream(contents.passages):
            fresh._append_passages(passages)
        known = array("q")
        for facts in _split_stream(contents.facts):
            fresh.columns.update(facts)
            known.extend(fact.summary_id for fact in facts)
        for space in contents.spaces:
            fresh._add_space(space)
        fresh._retire_rows(np.flatnonzero(~np.isin(fresh.columns.summary_id, np.array(known))))
        self.become(fresh)

    def become(self, fresh: "MemoryIndex") -> None:
        """Take over the contents of another index, which must not be used again; the learned space becomes empty."""
        with self.lock:
            self.vocabulary = fresh.vocabulary
            self._take_contents(fresh)
            if self.learned_space is not None:
                self._add_space(self.learned_space)
            self.loaded = True
            self._choose_active()
        self._has_loaded.set()

    def wait_until_loaded(self, seconds: float) -> bool:
        """Block this thread until the index is loaded or `seconds` are over; return whether it is loaded."""
        return self.loaded or (self._has_loaded.wait(seconds) and self.loaded)

    @contextlib.contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Hold the lock if the index is loaded and the lock is free; yield whether it is held."""
        is_mine = self.loaded and self.lock.acquire(blocking=False)
        try:
            yield is_mine
        finally:
            if is_mine:
                self.lock.release()

    def _take_contents(self, fresh: "MemoryIndex") -> None:
        self.columns, self.postings = fresh.columns, fresh.postings
        self.matrices = fresh.matrices
        self.version += 1

    def unlearned_spaces(self) -> list[tuple[str, int]]:
        """Return name and dimensions of every space but the learned one."""
        return [(n, m.dimensions) for n, m in self.matrices.items() if n != self.learned]

    def stored_arrays(self) -> dict[str, StoredArray]:
        """Return the arrays of a snapshot by name: all but the learned space. Terms are not included."""
        found = {
            f"columns.{name}": StoredArray(rows, is_fixed=name in FIXED_COLUMNS)
            for name, rows in self.columns.parts().items()
        }
        for name, rows in self.postings.parts().items():
            found[f"postings.{name}"] = StoredArray(
                rows, 0 if name in ROW_PARTS else None, is_fixed=name != "live"
            )
        for number, (space, _) in enumerate(self.unlearned_spaces()):
            for name, rows in self.matrices[space].parts().items():
                found[f"space{number}.{name}"] = StoredArray(
                    rows, 1 if name == "planes" else 0, is_fixed=name in VECTOR_PARTS
                )
        return found

    def restore(self, found: SavedArrays, labels: Mapping[str, Sequence[Any]]) -> None:
        """Use the arrays of a snapshot in an empty index; the terms are loaded separately."""
        self.columns.restore(found.rows, _select_arrays(found.arrays, "columns"), labels)
        self.postings.restore(found.rows, _select_arrays(found.arrays, "postings"))
        for number, (name, dimensions) in enumerate(found.spaces):
            self.matrices[name] = VectorMatrix(dimensions)
            self.matrices[name].restore(found.rows, _select_arrays(found.arrays, f"space{number}"))

    def exchange(self, found: SavedArrays) -> None:
        """Replace this index's arrays by those of the snapshot just written of it."""
        fresh = MemoryIndex()
        fresh.restore(found, self.columns.labels())
        with self.lock:
            if self.learned is not None:
                fresh.matrices[self.learned] = self.matrices[self.learned]
            self._take_contents(fresh)

    def release_memory(self) -> None:
        """Drop what searches keep to be quick and can make again.

        That takes the first one 20 ms more with a million rows; a smaller index keeps what is the same for all
        searches.
        """
        with self.lock:
            is_small = self.columns.n <= _KEPT_ROWS_MAX
            self.postings.release_memory()
            self.cache.release_memory(keep_values=is_small)
            if not is_small:
                self.columns.release_memory()

    def _append_passages(self, passages: Sequence[StoredPassage]) -> None:
        self.columns.append(passages)
        self.postings.append([p.postings for p in passages], [p.length for p in passages])

    def apply(self, batch: IndexUpdate) -> None:
        """Apply one transaction's changes."""
        with self.lock:
            self._retire_rows(self.columns.rows_with(batch.removed))
            self._retire_rows(self.columns.rows_of_any(batch.gone))
            if batch.added:
                self.vocabulary.learn(batch.numbers)
                self._append_passages(batch.added)
                self._add_vectors(batch.vectors, len(batch.added))
            self.columns.update(batch.facts)
            for summary_id, digest in batch.digests.items():
                self.columns.digest[self.columns.rows_of(summary_id)] = digest
            if self.columns.is_sparse:
                self._compact_rows()
            self.version += 1
            self._choose_active()

    def adopt_learned_space(self, space: Space) -> None:
        """Set the learned space; a new one is empty."""
        with self.lock:
            if self.learned_space == space:
                return
            self.matrices.pop(self.learned or "", None)
            self.learned_space = space
            self._add_space(space)
            self._choose_active()

    def drop_learned_space(self) -> None:
        """Have no learned space."""
        with self.lock:
            self.matrices.pop(self.learned or "", None)
            self.learned_space = None
            self._choose_active()

    def empty_learned_space(self) -> None:
        """Empty the learned space."""
        with self.lock:
            if self.learned_space is not None:
                self._add_space(self.learned_space)
            self._choose_active()

    def _add_space(self, space: Space) -> None:
        blank = VectorMatrix(space.dimensions, rows=self.columns.n)
        blank.extend(self.columns.n)
        self.matrices[space.name] = blank

    def missing_vectors(self, name: str, limit: int) -> list[int]:
        """Return up to `limit` passages without a vector in a space: the newest, but superseded ones last."""
        with self.lock:
            if name not in self.matrices:
                return []
            columns = self.columns
            rows = np.flatnonzero(columns.live & ~self.matrices[name].known)
            when = columns.at[rows] - np.where(columns.retired[rows], _SUPERSEDED_LAST, 0)
            ids = columns.passage_id[rows]
        if len(rows) > limit:
            newest = np.argpartition(-when, limit)[:limit]
            when, ids = when[newest], ids[newest]
        found: list[int] = ids[np.lexsort((-ids, -when))].tolist()
        return found

    def fill(self, name: str, passage_ids: Sequence[int], vectors: VectorRows) -> None:
        """Write the vectors of passages into a space, (n, dimensions), a few at a time.

        A row of zeros means that the text has none; deleted passages are skipped.
        """
        order = np.argsort(np.asarray(passage_ids, np.int64))
        for first in range(0, len(order), _FILLED_ROWS):
            some = order[first : first + _FILLED_ROWS]
            with self.lock:
                self._put_vectors(name, np.asarray(passage_ids, np.int64)[some], vectors[some])
        with self.lock:
            self._choose_active()

    def _put_vectors(self, name: str, passage_ids: NDArray[np.int64], vectors: VectorRows) -> None:
        if name in self.matrices:
            rows = self.columns.rows_with(passage_ids.tolist())
            there = np.isin(passage_ids, self.columns.passage_id[rows])
            self.matrices[name].put(rows, vectors[there])

    def coverage(self, name: str) -> float:
        """Return the share of live rows embedded in a space; 1 if there are no rows."""
        done, rows = self.counts(name)
        return done / rows if rows else float(name in self.matrices)

    def counts(self, name: str) -> tuple[int, int]:
        """Return the number of live rows embedded in a space, and of all live rows."""
        with self.lock:
            matrix = self.matrices.get(name)
            done = 0 if matrix is None else int(np.count_nonzero(matrix.known))
            return done, self.columns.live_count

    def _choose_active(self) -> None:
        complete = next((name for name in self.matrices if name != self.learned), "")
        if self.learned is None:
            self.active = complete
            return
        stays = _STAYS_ACTIVE_SHARE if self.active == self.learned else 1.0
        leads = self.coverage(self.learned) >= self._active_from * stays
        self.active = self.learned if leads else complete

    def _retire_rows(self, rows: Rows) -> None:
        self.columns.retire(rows)
        self.postings.retire(rows)
        for matrix in self.matrices.values():
            matrix.retire(rows)

    def _add_vectors(self, vectors: Mapping[Space, NDArray[np.float16]], count: int) -> None:
        given = {space.name: rows for space, rows in vectors.items()}
        for name, matrix in self.matrices.items():
            if name in given:
                matrix.append(given[name])
            else:
                matrix.extend(count)

    def _compact_rows(self) -> None:
        mapping = self.columns.compact()
        self.postings.compact(mapping)
        self.vocabulary.keep(self.postings.terms())
        for matrix in self.matrices.values():
            matrix.compact(mapping)


class SearchCache:
    """Caches values computed from one version of the index, and arrays to work in. Least recently used go first."""

    def __init__(self) -> None:
        self._version = -1
        self._values: dict[Hashable, object] = {}
        self._scratch: dict[str, NDArray[np.float32]] = {}

    def get_or_compute(self, version: int, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the cached value of a key, made by `make` once per version of the index."""
        if version != self._version:
            self._values.clear()
            self._version = version
        value = self._values.pop(key) if key in self._values else make()
        self._values[key] = value
        if len(self._values) > CACHED_VALUES_MAX:
            del self._values[next(iter(self._values))]
        return cast("_T", value)

    def scratch(self, name: str, size: int) -> NDArray[np.float32]:
        """Return an uninitialised array of `size`, the same at every call: fresh pages cost more than writing them."""
        held = self._scratch.get(name)
        if held is None or len(held) < size:
            held = self._scratch[name] = np.empty(size + size // 4, np.float32)
        return held[:size]

    def release_memory(self, *, keep_values: bool) -> None:
        """Drop the arrays to work in, and what was computed unless it is to be kept."""
        self._scratch.clear()
        if not keep_values:
            self._values.clear()


def _split_stream(items: Iterable[_T]) -> Iterator[list[_T]]:
    stream = iter(items)
    while block := list(islice(stream, _STREAM_BLOCK)):
        yield block


def _select_arrays(arrays: Mapping[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of one part of the index, without its prefix."""
    return {
        key.removeprefix(f"{name}."): found
        for key, found in arrays.items()
        if key.startswith(f"{name}.")
    }


EXACT_ROWS_MAX = 4_096
_CAPACITY_MIN = 64
_ENCODED_ROWS = 128
"""Rows that are encoded at a time."""
VECTOR_PARTS = frozenset({"vectors", "values", "scales", "codes", "planes"})
"""Arrays of a snapshot whose rows never change once they have vectors."""


class VectorMatrix:
    """Vectors of length 1; a row without a vector is all zeros and is never found.

    A row is `known` once its text was embedded, also if that gave no vector.
    """

    def __init__(self, dimensions: int, *, rows: int = 0, exact_max: int = EXACT_ROWS_MAX) -> None:
        """Make room for `rows` rows and an eighth more."""
        capacity = max(_CAPACITY_MIN, rows + rows // 8)
        self.dimensions = dimensions
        self.n = 0
        self._exact_max = exact_max
        self._rows = (BinaryCodes if rows > exact_max else ExactVectors)(dimensions, capacity)
        self._filled = np.zeros(capacity, np.bool_)
        self._known = np.zeros(capacity, np.bool_)

    @property
    def known(self) -> Mask:
        """A mask, (n,), of the rows that were embedded."""
        return self._known[: self.n]

    def append(self, vectors: VectorRows) -> None:
        """Add (m, dimensions) rows that were embedded; a row of zeros has no vector."""
        first = self.n
        self.extend(len(vectors))
        self.put(np.arange(first, self.n), vectors)

    def extend(self, count: int) -> None:
        """Add rows that were not embedded yet."""
        first, self.n = self.n, self.n + count
        if self.n > len(self._filled):
            capacity = self.n + self.n // 4
            self._rows.grow(capacity)
            self._filled = widen(self._filled, capacity)
            self._known = widen(self._known, capacity)
        if self.n > self._exact_max and isinstance(self._rows, ExactVectors):
            self._encode_rows(first)

    def put(self, rows: Rows, vectors: VectorRows) -> None:
        """Give these rows their vectors, (len(rows), dimensions); a row of zeros has none."""
        self._rows.put(rows, vectors)
        self._filled[rows] = vectors.any(axis=1)
        self._known[rows] = True

    def _encode_rows(self, count: int) -> None:
        coded = BinaryCodes(self.dimensions, len(self._filled))
        for first in range(0, count, _ENCODED_ROWS):
            rows = np.arange(first, min(first + _ENCODED_ROWS, count))
            coded.put(rows, self._rows.vectors(rows))
        self._rows = coded

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot: of n rows, but `planes` is (planes, n)."""
        return {
            **self._rows.parts(self.n),
            "filled": self._filled[: self.n],
            "known": self._known[: self.n],
        }

    def restore(self, n: int, parts: Mapping[str, NDArray[Any]]) -> None:
        """Use the arrays of a snapshot of n rows. They may be longer, with zeros behind: new rows go there."""
        self.n = n
        self._rows = (ExactVectors if "vectors" in parts else BinaryCodes)(self.dimensions, 0)
        # Plain views: slicing a memmap is slow.
        plain = {name: np.asarray(part) for name, part in parts.items()}
        self._rows.restore(plain)
        self._filled, self._known = plain["filled"], plain["known"]

    def retire(self, rows: Rows) -> None:
        """Hide these rows from searches."""
        self._filled[rows] = False
        self._known[rows] = False

    def compact(self, mapping: NDArray[np.int32]) -> None:
        """Drop the rows whose new number is -1."""
        kept = np.flatnonzero(mapping >= 0)
        self._rows.keep(kept)
        self._filled, self._known = self._filled[kept], self._known[kept]
        self.n = len(kept)

    def vectors(self, rows: Rows) -> Floats:
        """Return the vectors of these rows, (len(rows), dimensions)."""
        return self._rows.vectors(rows)

    def likeness(self, rows: Rows) -> Floats:
        """Return the cosine of each of these rows, a few, with each of them."""
        return self._rows.likeness(rows)

    def cosines(self, query: Floats, rows: Rows | None = None) -> Floats:
        """Return the cosine of every row, or of these, with a vector of length 1; 0 without a vector."""
        wanted = np.arange(self.n) if rows is None else rows
        found = self._rows.products(query, wanted)
        return np.where(self._filled[wanted], found, np.float32(0))

    def top(
        self, query: Floats, count: int, mask: Mask | None = None, floor: float = -1.0
    ) -> tuple[Rows, Floats]:
        """Find the `count` nearest rows that have a vector, and their cosines; `mask`, (n,), says which are visible.

        Nearest first, of equal ones the lower row. Rows with a lower cosine than `floor` may be left out.
        """
        seen = self._filled[: self.n] if mask is None else self._filled[: self.n] & mask
        rows = self._rows.nearest(query, count, seen, floor)
        return _sort_nearest(rows, self._rows.products(query, rows), count)


def _sort_nearest(rows: Rows, cosines: Floats, count: int) -> tuple[Rows, Floats]:
    if len(rows) > count:
        weakest = np.partition(cosines, len(rows) - count)[len(rows) - count]
        kept = np.flatnonzero(cosines >= weakest)
        rows, cosines = rows[kept], cosines[kept]
    order = np.lexsort((rows, -cosines))[:count]
    return rows[order], cosines[order]


class ExactVectors:
    """Vectors as they are, in float32."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._vectors = np.zeros((capacity, dimensions), np.float32)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        self._vectors = widen(self._vectors, capacity)

    def parts(self, n: int) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot of the first n rows."""
        return {"vectors": self._vectors[:n]}

    def restore(self, parts: Mapping[str, NDArray[Any]]) -> None:
        """Use the arrays of a snapshot."""
        self._vectors = parts["vectors"]

    def put(self, rows: Rows, vectors: VectorRows) -> None:
        """Write these rows."""
        self._vectors[rows] = vectors

    def keep(self, kept: Rows) -> None:
        """Keep only these rows."""
        self._vectors = self._vectors[kept]

    def vectors(self, rows: Rows) -> Floats:
        """Return these rows."""
        return self._vectors[rows]

    def likeness(self, rows: Rows) -> Floats:
        """Return the product of each of these rows with each of them."""
        return self._vectors[rows] @ self._vectors[rows].T

    def nearest(self, _query: Floats, _count: int, seen: Mask, _floor: float = -1.0) -> Rows:
        """Return all visible rows: each is scored."""
        return np.flatnonzero(seen)

    def products(self, query: Floats, rows: Rows) -> Floats:
        """Return the product of each of these rows with the query."""
        if not len(rows):
            return np.zeros(0, np.float32)
        if len(rows) < len(self._vectors) // 4:
            return np.asarray(self._vectors[rows] @ query, np.float32)
        return np.asarray((self._vectors[: int(rows.max()) + 1] @ query)[rows], np.float32)
