"""Everything in memory that a search needs: columns, words, postings and vectors, row by row.

One lock guards all of it: hold `lock` for as long as rows of one array are used with another. The
indexer alone adds and takes rows, a batch at a time, each batch whole. The first of its spaces is
always complete; beside it there may be the space of one learned model, whose vectors are filled in
behind the rows, in any order. Derived from the vault and equal to what `load` would make of it, up to
dead rows and the order of rows. Not here: reading or writing the vault.
"""

import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Columns, Rows
from memd.index.matrix import Matrix
from memd.index.postings import Postings
from memd.index.vocabulary import Vocabulary
from memd.models import Space
from memd.store.rows import IndexRow, StoredPassage

Neighbours = tuple[NDArray[np.int32], NDArray[np.int32]]
_BLOCK = 1_024
_STREAM_BLOCK = 512
_FILLED_AT_ONCE = 32
"""Vectors that are filled in under one lock: a search waits for less than a millisecond."""
_STAYS_ACTIVE = 0.8
"""A learned space that leads goes on to do so down to this part of what it takes to begin."""
_LAST = 2**60
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Contents:
    """What the vault holds for a shelf, as streams: all of it at once would weigh as much again."""

    passages: Iterable[StoredPassage]
    """In order of id."""
    numbers: Iterable[tuple[str, int]]
    """Each term and its number, in order of the terms' UTF-8."""
    facts: Iterable[IndexRow]
    vectors: Mapping[Space, Iterable[tuple[int, bytes]]]
    """By space, (passage id, float16 blob) in order of id; the first space is the complete one."""
    learned: tuple[Space, Iterable[tuple[int, bytes]]] | None = None
    """The same of the learned space."""


@dataclass(frozen=True, slots=True)
class Batch:
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


class Shelf:
    """The memory of the index. `loaded` is False until the vault was read for the first time."""

    def __init__(self, active_from: float = 1.0) -> None:
        self.lock = threading.RLock()
        self.version = 0
        """Grows with every change of rows, for what is cached from here."""
        self.loaded = False
        self.matrices: dict[str, Matrix] = {}
        """By the name of the space; a row without a vector in a space is all zeros there."""
        self.learned_space: Space | None = None
        """The space whose vectors are filled in."""
        self.active = ""
        """The name of the space that leads: the learned one once its coverage has reached `active_from`,
        until it falls below .8 of that; else the complete one."""
        self._active_from = active_from
        self._neighbours: tuple[int, Neighbours] | None = None
        self._clear()

    def _clear(self) -> None:
        self.columns = Columns()
        self.postings = Postings()
        self.vocabulary = Vocabulary(self.postings.df)

    @property
    def learned(self) -> str | None:
        """The name of the learned space, or None while there is none."""
        return self.learned_space.name if self.learned_space else None

    def load(self, contents: Contents) -> None:
        """Start anew from what the vault holds. Passages whose summary is gone are dead at once."""
        fresh = Shelf()
        fresh.vocabulary.load(contents.numbers)
        for passages in _blocks(contents.passages):
            fresh._append(passages)
        known = array("q")
        for facts in _blocks(contents.facts):
            fresh.columns.update(facts)
            known.extend(fact.summary_id for fact in facts)
        for space, vectors in contents.vectors.items():
            fresh._load_vectors(space, vectors)
        if contents.learned is not None:
            fresh.learned_space = contents.learned[0]
            fresh._load_vectors(*contents.learned)
        fresh._retire(np.flatnonzero(~np.isin(fresh.columns.summary_id, np.array(known))))
        with self.lock:
            self.columns, self.postings, self.vocabulary = (
                fresh.columns,
                fresh.postings,
                fresh.vocabulary,
            )
            self.matrices = fresh.matrices
            if self.learned_space is not None:
                self._keep_learned(self.learned_space, fresh)
            self.loaded = True
            self.version += 1
            self._choose()

    def _load_vectors(self, space: Space, vectors: Iterable[tuple[int, bytes]]) -> None:
        self.matrices[space.name] = Matrix(space.dimensions, rows=self.columns.n)
        _load_rows(self.matrices[space.name], self.columns.passage_id, vectors)

    def _keep_learned(self, space: Space, fresh: "Shelf") -> None:
        """Begin the learned space anew if what was loaded was another, for it has changed meanwhile."""
        if fresh.learned_space != space:
            if fresh.learned is not None:
                del self.matrices[fresh.learned]
            self._begin(space)

    def _append(self, passages: Sequence[StoredPassage]) -> None:
        self.columns.append(passages)
        self.postings.append([p.postings for p in passages], [p.length for p in passages])

    def apply(self, batch: Batch) -> None:
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

    def adopt(self, space: Space) -> None:
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
        blank = Matrix(space.dimensions, rows=self.columns.n)
        blank.extend(self.columns.n)
        self.matrices[space.name] = blank

    def lacking(self, name: str, limit: int) -> list[int]:
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

    def fill(self, name: str, passage_ids: Sequence[int], vectors: NDArray[np.float16]) -> None:
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

    def _put(
        self, name: str, passage_ids: NDArray[np.int64], vectors: NDArray[np.float16]
    ) -> None:
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

    def neighbours(self) -> Neighbours:
        """Return for each row the previous and the next of the same session, (n,) each; -1: none.

        Ordered by event time, then summary, then place in the summary. Dead rows have none.
        """
        with self.lock:
            if self._neighbours is None or self._neighbours[0] != self.version:
                self._neighbours = (self.version, _neighbours(self.columns))
            return self._neighbours[1]


def _blocks(items: Iterable[_T]) -> Iterator[list[_T]]:
    stream = iter(items)
    while block := list(islice(stream, _STREAM_BLOCK)):
        yield block


def _neighbours(columns: Columns) -> Neighbours:
    previous = np.full(columns.n, -1, np.int32)
    following = np.full(columns.n, -1, np.int32)
    rows = np.flatnonzero(columns.live & (columns.session_id > 0))
    keys = (columns.seq, columns.summary_id, columns.at, columns.session_id)
    ordered = rows[np.lexsort([key[rows] for key in keys])]
    sessions = columns.session_id[ordered]
    together = sessions[:-1] == sessions[1:]
    before, after = ordered[:-1][together], ordered[1:][together]
    previous[after], following[before] = before, after
    return previous, following


def _load_rows(
    matrix: Matrix, passage_ids: NDArray[np.int64], vectors: Iterable[tuple[int, bytes]]
) -> None:
    """Give each row its vector, a block at a time: the blobs of all of them at once would be felt."""
    block = np.zeros((_BLOCK, matrix.dimensions), np.float16)
    known = np.zeros(_BLOCK, np.bool_)
    stream = iter(vectors)
    number, blob = next(stream, (None, b""))
    for first in range(0, len(passage_ids), _BLOCK):
        known[:] = False
        wanted = passage_ids[first : first + _BLOCK].tolist()
        for at, passage_id in enumerate(wanted):
            while number is not None and number < passage_id:
                number, blob = next(stream, (None, b""))
            if number == passage_id:
                block[at], known[at] = np.frombuffer(blob, "<f2"), True
        matrix.extend(len(wanted))
        there = np.flatnonzero(known)
        matrix.put(first + there, block[there])
