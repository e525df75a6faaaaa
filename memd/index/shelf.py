"""Everything in memory that a search needs: columns, words, postings and vectors, row by row.

One lock guards all of it: hold `lock` for as long as rows of one array are used with another. The
indexer alone changes it, a batch at a time, each batch whole. Derived from the vault and equal to
what `load` would make of it, up to dead rows and the order of rows. Not here: reading or writing the
vault.
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
    """By space, (passage id, float16 blob) in order of id."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction of the indexer changed."""

    removed: Sequence[int] = ()
    """Ids of passages that went."""
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

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 0
        """Grows with every change, for what is cached from here."""
        self.loaded = False
        self.matrices: dict[str, Matrix] = {}
        """By the name of the space; a row without a vector in a space is all zeros there."""
        self._neighbours: tuple[int, Neighbours] | None = None
        self._clear()

    def _clear(self) -> None:
        self.columns = Columns()
        self.postings = Postings()
        self.vocabulary = Vocabulary(self.postings.df)

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
            fresh.matrices[space.name] = Matrix(space.dimensions, rows=fresh.columns.n)
            _fill(fresh.matrices[space.name], fresh.columns.passage_id, vectors)
        fresh._retire(np.flatnonzero(~np.isin(fresh.columns.summary_id, np.array(known))))
        with self.lock:
            self.columns, self.postings, self.vocabulary = (
                fresh.columns,
                fresh.postings,
                fresh.vocabulary,
            )
            self.matrices = fresh.matrices
            self.loaded = True
            self.version += 1

    def _append(self, passages: Sequence[StoredPassage]) -> None:
        self.columns.append(passages)
        self.postings.append([p.postings for p in passages], [p.length for p in passages])

    def apply(self, batch: Batch) -> None:
        """Follow the vault by one batch."""
        with self.lock:
            self._retire(self.columns.rows_with(batch.removed))
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

    def _retire(self, rows: Rows) -> None:
        self.columns.retire(rows)
        self.postings.retire(rows)
        for matrix in self.matrices.values():
            matrix.retire(rows)

    def _add_vectors(self, vectors: Mapping[Space, NDArray[np.float16]], count: int) -> None:
        given = {space.name: rows for space, rows in vectors.items()}
        for name, matrix in self.matrices.items():
            found = given.get(name)
            matrix.append(
                np.zeros((count, matrix.dimensions), np.float32) if found is None else found
            )

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


def _fill(
    matrix: Matrix, passage_ids: NDArray[np.int64], vectors: Iterable[tuple[int, bytes]]
) -> None:
    """Give each row its vector, a block at a time: the blobs of all of them at once would be felt."""
    block = np.zeros((_BLOCK, matrix.dimensions), np.float16)
    stream = iter(vectors)
    number, blob = next(stream, (None, b""))
    for first in range(0, len(passage_ids), _BLOCK):
        block[:] = 0
        wanted = passage_ids[first : first + _BLOCK].tolist()
        for at, passage_id in enumerate(wanted):
            while number is not None and number < passage_id:
                number, blob = next(stream, (None, b""))
            if number == passage_id:
                block[at] = np.frombuffer(blob, "<f2")
        matrix.append(block[: len(wanted)])
