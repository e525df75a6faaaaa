"""The in-memory index: columns, postings, vectors under one lock."""

import contextlib
import threading
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Columns, Rows
from memd.index.postings import ROW_PARTS, InvertedIndex
from memd.index.quantization import VectorRows
from memd.index.term_dictionary import TermDictionary
from memd.index.vectors import VECTOR_PARTS, VectorMatrix
from memd.models import Space
from memd.store.types import IndexRow, StoredPassage

# MERGED from memd.index.kept:
# MERGED What was worked out of the index and holds until it changes; and arrays to work in. Pure.
# MERGED
# MERGED A search asks the same of the index again and again: which rows a project has, how long its sessions
# MERGED are. Not here: any of these.


CACHED_VALUES_MAX = 16
_T = TypeVar("_T")


class SearchCache:
    """Values by key, of one version of the index; those asked for longest ago go first."""

    def __init__(self) -> None:
        self._version = -1
        self._values: dict[Hashable, object] = {}
        self._rooms: dict[str, NDArray[np.float32]] = {}

    def get_or_compute(self, version: int, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return what `make` made for this key at this version of the index."""
        if version != self._version:
            self._values.clear()
            self._version = version
        value = self._values.pop(key) if key in self._values else make()
        self._values[key] = value
        if len(self._values) > CACHED_VALUES_MAX:
            del self._values[next(iter(self._values))]
        return cast("_T", value)

    def scratch(self, name: str, size: int) -> NDArray[np.float32]:
        """Return an array of `size` with anything in it: it is the same one at every call.

        A fresh one of some megabytes costs more than what is written to it.
        """
        held = self._rooms.get(name)
        if held is None or len(held) < size:
            held = self._rooms[name] = np.empty(size + size // 4, np.float32)
        return held[:size]


# MERGED from memd.index.memory_index:
# MERGED Everything in memory that a search needs: columns, words, postings and vectors, row by row.
# MERGED
# MERGED One lock guards all of it: hold `lock` for as long as rows of one array are used with another. The
# MERGED indexer alone adds and takes rows, a batch at a time, each batch whole. The first of its spaces is
# MERGED always complete; beside it there may be the space of one learned model, whose vectors are filled in
# MERGED behind the rows, in any order. Derived from the vault and equal to what `load` would make of it, up to
# MERGED dead rows and the order of rows. Not here: reading or writing the vault.


TermLines = tuple[bytes, bytes]
"""The vocabulary as `TermDictionary.load` takes it."""
_STREAM_BLOCK = 512
_FILLED_AT_ONCE = 32
"""Vectors that are filled in under one lock: a search waits for less than a millisecond."""
_STAYS_ACTIVE = 0.8
"""A learned space that leads goes on to do so down to this part of what it takes to begin."""
_LAST = 2**60


class StoredArray(NamedTuple):
    """An array as a snapshot holds it."""

    rows: NDArray[Any]
    axis: int | None = 0
    """Along which rows are appended; None: none are."""
    is_fixed: bool = False
    """Whether nothing writes to the rows that are there."""


@dataclass(frozen=True, slots=True)
class SavedArrays:
    """The arrays of an index, which can be used and written to."""

    rows: int
    spaces: Sequence[tuple[str, int]]
    """Name and dimensions of each vector space."""
    arrays: Mapping[str, NDArray[Any]]
    """With room behind the rows."""


@dataclass(frozen=True, slots=True)
class VaultContents:
    """What the vault holds for an index, as streams: all of it at once would weigh as much again."""

    passages: Iterable[StoredPassage]
    """In order of id."""
    words: TermLines
    facts: Iterable[IndexRow]
    spaces: Sequence[Space]
    """Of the vectors, none of which is there yet; the first space is the one that will be complete."""


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """What one transaction of the indexer changed."""

    removed: Sequence[int] = ()
    """Ids of passages that went."""
    gone: Sequence[int] = ()
    """Ids of summaries that went; whoever erased one may have taken its passages already."""
    added: Sequence[StoredPassage] = ()
    """In order of id, all higher than any before."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The terms of the added passages."""
    vectors: Mapping[Space, NDArray[np.float16]] = field(default_factory=dict)
    """One row per added passage; a space that is left out has none of them."""
    facts: Sequence[IndexRow] = ()
    """What is now known of each summary that changed and is still there."""
    digests: Mapping[int, int] = field(default_factory=dict)
    """Summary id → hash of the text that was indexed."""


class MemoryIndex:
    """The memory of the index. `loaded` is False until the vault was read for the first time."""

    def __init__(self, active_from: float = 1.0) -> None:
        self.lock = threading.RLock()
        self.version = 0
        """Grows with every change of rows, for what is cached from here."""
        self.loaded = False
        self._opened = threading.Event()
        self.matrices: dict[str, VectorMatrix] = {}
        """By the name of the space; a row without a vector in a space is all zeros there."""
        self.learned_space: Space | None = None
        """The space whose vectors are filled in."""
        self.active = ""
        """The name of the space that leads: the learned one once its coverage has reached `active_from`,
        until it falls below .8 of that; else the complete one."""
        self._active_from = active_from
        self.cache = SearchCache()
        """What searches have worked out; used under the lock."""
        self._clear()

    def _clear(self) -> None:
        self.columns = Columns()
        self.postings = InvertedIndex()
        self.vocabulary = TermDictionary(self._frequency)

    def _frequency(self, number: int) -> int:
        return self.postings.df(number)

    @property
    def learned(self) -> str | None:
        """The name of the learned space, or None while there is none."""
        return self.learned_space.name if self.learned_space else None

    def load(self, contents: VaultContents) -> None:
        """Start anew from what the vault holds. Passages whose summary is gone are dead at once.

        Of the learned space nothing is there then.
        """
        fresh = MemoryIndex()
        fresh.vocabulary.load(*contents.words)
        for passages in _blocks(contents.passages):
            fresh._append(passages)
        known = array("q")
        for facts in _blocks(contents.facts):
            fresh.columns.update(facts)
            known.extend(fact.summary_id for fact in facts)
        for space in contents.spaces:
            fresh._begin(space)
        fresh._retire(np.flatnonzero(~np.isin(fresh.columns.summary_id, np.array(known))))
        self.become(fresh)

    def become(self, fresh: "MemoryIndex") -> None:
        """Hold what another index does, which must not be used any more. The learned space begins anew."""
        with self.lock:
            self.vocabulary = fresh.vocabulary
            self.vocabulary.counted_by(self._frequency)
            self._hold(fresh)
            if self.learned_space is not None:
                self._begin(self.learned_space)
            self.loaded = True
            self._choose()
        self._opened.set()

    def wait_until_loaded(self, seconds: float) -> bool:
        """Wait in this thread until it is loaded, but no longer than that; whether it is."""
        return self.loaded or (self._opened.wait(seconds) and self.loaded)

    @contextlib.contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Hold the lock, if it is loaded and nobody else does; whether that is so."""
        is_mine = self.loaded and self.lock.acquire(blocking=False)
        try:
            yield is_mine
        finally:
            if is_mine:
                self.lock.release()

    def _hold(self, fresh: "MemoryIndex") -> None:
        self.columns, self.postings, self.matrices = (
            fresh.columns,
            fresh.postings,
            fresh.matrices,
        )
        self.version += 1

    def local_spaces(self) -> list[tuple[str, int]]:
        """Name and dimensions of every space but the learned one."""
        return [(n, m.dimensions) for n, m in self.matrices.items() if n != self.learned]

    def stored_arrays(self) -> dict[str, StoredArray]:
        """Return what a snapshot is made of: all but the learned space and every text, by name."""
        found = {f"columns.{n}": StoredArray(rows) for n, rows in self.columns.parts().items()}
        for name, rows in self.postings.parts().items():
            is_per_row = name in ROW_PARTS
            found[f"postings.{name}"] = StoredArray(
                rows, 0 if is_per_row else None, is_fixed=not is_per_row
            )
        for number, (space, _) in enumerate(self.local_spaces()):
            for name, rows in self.matrices[space].parts().items():
                found[f"space{number}.{name}"] = StoredArray(
                    rows, 1 if name == "planes" else 0, is_fixed=name in VECTOR_PARTS
                )
        return found

    def restore(self, found: SavedArrays, labels: Mapping[str, Sequence[Any]]) -> None:
        """Take over the arrays of a snapshot, into an empty index; all but its words."""
        self.columns.restore(found.rows, _parts_of(found.arrays, "columns"), labels)
        self.postings.restore(found.rows, _parts_of(found.arrays, "postings"))
        for number, (name, dimensions) in enumerate(found.spaces):
            self.matrices[name] = VectorMatrix(dimensions)
            self.matrices[name].restore(found.rows, _parts_of(found.arrays, f"space{number}"))

    def exchange(self, found: SavedArrays) -> None:
        """Use the arrays of a snapshot that was just made of this index in place of its own."""
        fresh = MemoryIndex()
        fresh.restore(found, self.columns.labels())
        with self.lock:
            if self.learned is not None:
                fresh.matrices[self.learned] = self.matrices[self.learned]
            self._hold(fresh)

    def _append(self, passages: Sequence[StoredPassage]) -> None:
        self.columns.append(passages)
        self.postings.append([p.postings for p in passages], [p.length for p in passages])

    def apply(self, batch: IndexUpdate) -> None:
        """Follow the vault by one batch."""
        with self.lock:
            self._retire(self.columns.rows_with(batch.removed))
            self._retire(self.columns.rows_of_any(batch.gone))
            if batch.added:
                self.vocabulary.learn(batch.numbers)
                self._append(batch.added)
                self._add_vectors(batch.vectors, len(batch.added))
            self.columns.update(batch.facts)
            for summary_id, digest in batch.digests.items():
                self.columns.digest[self.columns.rows_of(summary_id)] = digest
            if self.columns.is_sparse:
                self._compact()
            self.version += 1
            self._choose()

    def adopt_learned_space(self, space: Space) -> None:
        """Let this be the learned space; if it was not, none of its vectors is there yet."""
        with self.lock:
            if self.learned_space == space:
                return
            self.matrices.pop(self.learned or "", None)
            self.learned_space = space
            self._begin(space)
            self._choose()

    def empty(self) -> None:
        """Begin the learned space anew, with none of its vectors there."""
        with self.lock:
            if self.learned_space is not None:
                self._begin(self.learned_space)
            self._choose()

    def _begin(self, space: Space) -> None:
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
            when = columns.at[rows] - np.where(columns.superseded[rows], _LAST, 0)
            ids = columns.passage_id[rows]
        if len(rows) > limit:
            newest = np.argpartition(-when, limit)[:limit]
            when, ids = when[newest], ids[newest]
        found: list[int] = ids[np.lexsort((-ids, -when))].tolist()
        return found

    def fill(self, name: str, passage_ids: Sequence[int], vectors: VectorRows) -> None:
        """Give passages their vectors in a space, (n, dimensions), a few at a time.

        A row of zeros says that the text has none; passages that went are left out.
        """
        order = np.argsort(np.asarray(passage_ids, np.int64))
        for first in range(0, len(order), _FILLED_AT_ONCE):
            some = order[first : first + _FILLED_AT_ONCE]
            with self.lock:
                self._put(name, np.asarray(passage_ids, np.int64)[some], vectors[some])
        with self.lock:
            self._choose()

    def _put(self, name: str, passage_ids: NDArray[np.int64], vectors: VectorRows) -> None:
        if name in self.matrices:
            rows = self.columns.rows_with(passage_ids.tolist())
            there = np.isin(passage_ids, self.columns.passage_id[rows])
            self.matrices[name].put(rows, vectors[there])

    def coverage(self, name: str) -> float:
        """Which part of the live rows was embedded in a space; 1 if there are no rows."""
        done, rows = self.counts(name)
        return done / rows if rows else float(name in self.matrices)

    def counts(self, name: str) -> tuple[int, int]:
        """How many live rows were embedded in a space, and how many there are."""
        with self.lock:
            matrix = self.matrices.get(name)
            done = 0 if matrix is None else int(np.count_nonzero(matrix.known))
            return done, self.columns.live_count

    def _choose(self) -> None:
        """Say which space leads."""
        complete = next((name for name in self.matrices if name != self.learned), "")
        if self.learned is None:
            self.active = complete
            return
        stays = _STAYS_ACTIVE if self.active == self.learned else 1.0
        leads = self.coverage(self.learned) >= self._active_from * stays
        self.active = self.learned if leads else complete

    def _retire(self, rows: Rows) -> None:
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

    def _compact(self) -> None:
        mapping = self.columns.compact()
        self.postings.compact(mapping)
        self.vocabulary.keep(self.postings.terms())
        for matrix in self.matrices.values():
            matrix.compact(mapping)


def _blocks(items: Iterable[_T]) -> Iterator[list[_T]]:
    stream = iter(items)
    while block := list(islice(stream, _STREAM_BLOCK)):
        yield block


def _parts_of(arrays: Mapping[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    """Those of these arrays that belong to one part of the index."""
    return {
        key.removeprefix(f"{name}."): found
        for key, found in arrays.items()
        if key.startswith(f"{name}.")
    }
