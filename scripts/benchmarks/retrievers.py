"""The retrievers of a search by themselves: words against FTS5's own ranking, vectors against a float32 scan.

Both sides have the same generated rows and the same questions of 3 to 12 words, as common as in the corpus,
and take turns in one run. `recall`: which part of the vectors' first fifty are as near as the scan's.
"""

import argparse
import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus, metrics
from memd.embeddings.hashing import HashingEmbedder
from memd.index.memory_index import MemoryIndex, VectorMatrix
from memd.index.postings import POSTING
from memd.models import Kind, Tier
from memd.recall import Question, retrievers
from memd.recall.profiles import LexicalSettings
from memd.store import IndexRow, StoredPassage

LIMITS = {
    "words, 10000 rows": {"ratio": ">= 20"},
    "words, 100000 rows": {"ratio": ">= 80"},
    "words, 1000000 rows": {"ratio": ">= 80"},
    "vectors, 100000 rows": {"ratio": ">= 4"},
    "vectors, 1000000 rows": {"ratio": ">= 15"},
    "vectors, *": {"recall": ">= 0.99"},
}
"""`ratio`: how many times as fast as the other side a retriever is."""
_VOCABULARY = 20_064
_COMMON = 3
_NOUNS = 45
"""As in the corpus: a word's weight is 1/(rank + 3), and every question has one of the commonest."""
_WORDS = 56
_TITLE_WORDS = 6
_ROWS_PER_SESSION = 20
_PROJECTS = 30
_TOP = 50
_POOL = 200
"""Rows that a search takes from the vectors: fifty memories may have several each."""
_ROUNDING = 1e-4
_LEXICAL = LexicalSettings(k1=1.2, b=0.4, title_weight=2.0)
_BLOCK = 10_000

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    metrics.add_counts(parser, rows=100_000, questions=60)
    parser.add_argument("--only", choices=("words", "vectors"), help="default: both")


def measure(options: argparse.Namespace) -> metrics.Figures:
    """A row per retriever."""
    rows = _generate_rows(options.rows, options.questions)
    measures = {"words": _measure_words, "vectors": _measure_vectors}
    return {
        f"{name}, {options.rows} rows": measure_one(rows)
        for name, measure_one in measures.items()
        if options.only in {None, name}
    }


@dataclass(frozen=True, slots=True)
class _Rows:
    """(n, words) of word numbers, the first few of each row its title; and questions."""

    words: Ints
    questions: Sequence[Ints]

    def blocks(self) -> Iterator[tuple[int, Ints]]:
        """The rows in blocks, each with the number of its first row."""
        for first in range(0, len(self.words), _BLOCK):
            yield first, self.words[first : first + _BLOCK]


def _generate_rows(count: int, questions: int) -> _Rows:
    """Draw rows and questions, the same ones for the same numbers."""
    random = np.random.default_rng(7)
    weights = np.cumsum(1 / (np.arange(_VOCABULARY) + _COMMON))
    weights /= weights[-1]
    rows = _Rows(np.empty((count, _TITLE_WORDS + _WORDS), np.int64), [])
    for _, block in rows.blocks():
        block[:] = weights.searchsorted(random.random(block.shape))
    asked = []
    for length in random.integers(2, 12, questions).tolist():
        drawn = weights.searchsorted(random.random(length))
        asked.append(np.unique(np.append(drawn, random.integers(_NOUNS))))
    return _Rows(rows.words, asked)


def _index_rows(rows: _Rows) -> MemoryIndex:
    """A memory index with the words of these rows."""
    index = MemoryIndex()
    for first, block in rows.blocks():
        index.postings.append(_pack_postings(block), [block.shape[1]] * len(block))
        numbers = range(first + 1, first + len(block) + 1)
        index.columns.append([StoredPassage(n, n, 0, block.shape[1], b"") for n in numbers])
        index.columns.update(
            IndexRow(
                summary_id=n, project_id=n // _ROWS_PER_SESSION % _PROJECTS + 1, session_id=n // _ROWS_PER_SESSION + 1,
                kind=Kind.FACT.value, tier=Tier.CAPTURED.value, source="bench", at=n * 30_000,
                expires_at=None, is_pinned=False, is_retired=False, quality=0.5, confidence=0.5,
                revisions=1, duplicates=1, title_length=40, body_length=400, tags=(),
            )
            for n in numbers
        )  # fmt: skip
    index.version += 1
    return index


def _pack_postings(block: Ints) -> list[bytes]:
    """A blob of postings per row."""
    count, width = block.shape
    keys = (np.arange(count)[:, np.newaxis] << 32 | block).ravel()
    is_title = np.tile(np.arange(width) < _TITLE_WORDS, count)
    distinct, places = np.unique(keys, return_inverse=True)
    postings = np.zeros(len(distinct), POSTING)
    postings["term"] = distinct & 0xFFFFFFFF
    postings["title"] = np.bincount(places, weights=is_title)
    postings["body"] = np.bincount(places, weights=~is_title)
    ends = np.searchsorted(distinct >> 32, np.arange(count), "right").tolist()
    return [postings[a:b].tobytes() for a, b in zip([0, *ends], ends, strict=False)]


def _fts5_of(rows: _Rows) -> apsw.Connection:
    """The same rows in FTS5, in memory and merged into one segment: as fast as it can be."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(title, body, content='', tokenize='unicode61')")
    names = np.array([f"w{number}" for number in range(_VOCABULARY)])
    with db:
        for first, block in rows.blocks():
            db.executemany(
                "INSERT INTO t (rowid, title, body) VALUES (?, ?, ?)",
                (
                    (first + i, " ".join(row[:_TITLE_WORDS]), " ".join(row[_TITLE_WORDS:]))
                    for i, row in enumerate(names[block].tolist(), 1)
                ),
            )
    db.execute("INSERT INTO t (t) VALUES ('optimize')")
    return db


def _shortest(work: Callable[[], object], runs: int) -> float:
    """Milliseconds of the shortest run."""
    return min(metrics.elapsed(work) for _ in range(runs)) * 1000


def _measure_words(rows: _Rows) -> dict[str, Any]:
    index, db = _index_rows(rows), _fts5_of(rows)
    seen = retrievers.find_visible_rows(index, Question(text="", now=0))
    sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?"

    def search(terms: retrievers.IndexedTerms) -> retrievers.Rows:
        scores = retrievers.score_words(index, terms, _LEXICAL, seen.context_rows.among)
        return retrievers.best_rows(index, scores, seen, _TOP)

    ours, theirs = [], []
    for question in rows.questions:
        terms = retrievers.IndexedTerms(dict.fromkeys(question.tolist(), 1.0))
        asked = (" OR ".join(f'"w{number}"' for number in question.tolist()), _TOP)
        ours.append(_shortest(partial(search, terms), 3))
        theirs.append(_shortest(lambda asked=asked: db.execute(sql, asked).fetchall(), 2))  # type: ignore[misc]
    return _compare("fts5", ours, theirs)


def _compare(other: str, ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    mine, its = statistics.median(ours), statistics.median(theirs)
    return {"memd ms": round(mine, 3), f"{other} ms": round(its, 3), "ratio": round(its / mine, 1)}


def _measure_vectors(rows: _Rows) -> dict[str, Any]:
    """The hashing space against a scan of the same rows in float32."""
    count, texts, embedder = len(rows.words), corpus.Corpus(), HashingEmbedder()
    memories = texts.memories(count, 0)
    scanned = np.empty((count, embedder.space.dimensions), np.float32)
    matrix = VectorMatrix(scanned.shape[1])
    for first, _ in rows.blocks():
        batch = [f"{one['title']}\n{one['text']}" for one in itertools.islice(memories, _BLOCK)]
        scanned[first : first + _BLOCK] = embedder.embed(batch)
        matrix.append(scanned[first : first + _BLOCK].astype(np.float16))
    live = np.ones(count, np.bool_)
    ours, theirs, recalls = [], [], []
    for query in embedder.embed(texts.questions(len(rows.questions))):
        products = scanned @ query
        least = np.partition(products, count - _TOP)[count - _TOP] - _ROUNDING
        found = matrix.top(query, _POOL, live)[0][:_TOP]
        recalls.append(np.count_nonzero(products[found] >= least) / _TOP)
        ours.append(_shortest(partial(matrix.top, query, _POOL, live), 3))
        theirs.append(_shortest(partial(_scan, scanned, query), 3))
    recall = round(statistics.mean(recalls), 4)
    return {**_compare("scan", ours, theirs), "recall": recall}


def _scan(rows: Floats, query: Floats) -> NDArray[np.intp]:
    products = rows @ query
    return np.argpartition(products, len(products) - _TOP)[len(products) - _TOP :]
