"""The legs of a search by themselves: words against FTS5's own ranking, vectors against a float32 scan.

    scripts/bench legs [--rows N] [--questions N] [--only words|vectors] [--json]

Both sides have the same made-up rows and the same questions of 3 to 12 words, which are as common as in
corpus.py, and take turns in one run. `exact`: the part of the questions for which the best fifty rows are
those of BM25 added up plainly in double precision. `recall`: which part of the vector leg's first fifty
are as near as the scan's. Exit code 1 if a bar is missed.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus
from memd.embeddings.hashing import HashingEmbedder
from memd.index.columns import Columns
from memd.index.memory_index import MemoryIndex
from memd.index.postings import POSTING
from memd.index.vectors import VectorMatrix
from memd.models import Kind, Tier
from memd.recall import filters, legs
from memd.recall.answer import Question
from memd.recall.profiles import Lexical
from memd.store.rows import IndexRow, StoredPassage

VOCABULARY = 20_064
COMMON = 3
NOUNS = 45
"""As in corpus.py: a word's weight is 1/(rank + 3), and every question has one of the commonest."""
WORDS = 56
TITLE_WORDS = 6
SESSION = 20
PROJECTS = 30
TOP = 50
POOL = 200
"""So many rows a search asks the vector leg for: fifty memories may have several each."""
EMBEDDED = 100_000
"""So many texts are embedded; more rows are made of two of them each, since embedding takes long."""
ROUNDING = 1e-4
LEXICAL = Lexical(k1=1.2, b=0.4, title_weight=2.0)
BLOCK = 10_000
SPEED = {"words": {10_000: 20.0, 100_000: 80.0}, "vectors": {100_000: 4.0, 1_000_000: 15.0}}
"""How many times as fast as the other side a leg must be with so many rows or more."""
RECALL = 0.99

Words = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Made-up rows: (n, words) of word numbers, the first few of each its title; and questions."""

    words: Words
    questions: Sequence[Words]


def made_up(rows: int, questions: int) -> Rows:
    """Draw rows and questions, the same ones for the same numbers."""
    random = np.random.default_rng(7)
    weights = np.cumsum(1 / (np.arange(VOCABULARY) + COMMON))
    weights /= weights[-1]
    words = np.empty((rows, TITLE_WORDS + WORDS), np.int64)
    for first in range(0, rows, BLOCK):
        some = words[first : first + BLOCK]
        some[:] = weights.searchsorted(random.random(some.shape))
    asked = []
    for length in random.integers(2, 12, questions).tolist():
        some = weights.searchsorted(random.random(length))
        asked.append(np.unique(np.append(some, random.integers(NOUNS))))
    return Rows(words, asked)


def shelf_of(rows: Rows) -> MemoryIndex:
    """A index with the words of these rows."""
    index = MemoryIndex()
    for first in range(0, len(rows.words), BLOCK):
        some = rows.words[first : first + BLOCK]
        blobs, lengths = postings(some)
        index.postings.append(blobs, lengths)
        index.columns.append(
            [
                StoredPassage(first + i + 1, first + i + 1, 0, n, b"")
                for i, n in enumerate(lengths)
            ]
        )
    describe(index.columns)
    index.version += 1
    return index


def postings(some: Words) -> tuple[list[bytes], list[int]]:
    """A blob of postings a row, and how many words each has."""
    count, width = some.shape
    keys = (np.arange(count)[:, np.newaxis] << 32 | some).ravel()
    is_title = np.tile(np.arange(width) < TITLE_WORDS, count)
    distinct, places = np.unique(keys, return_inverse=True)
    found = np.zeros(len(distinct), POSTING)
    found["term"] = distinct & 0xFFFFFFFF
    found["title"] = np.bincount(places, weights=is_title)
    found["body"] = np.bincount(places, weights=~is_title)
    ends = np.searchsorted(distinct >> 32, np.arange(count), "right").tolist()
    return [found[a:b].tobytes() for a, b in zip([0, *ends], ends, strict=False)], [
        width
    ] * count


def describe(columns: Columns) -> None:
    """Sessions of some twenty rows, projects, a year of times."""
    for first in range(0, columns.n, BLOCK):
        columns.update(
            IndexRow(
                summary_id=i + 1, project_id=i // SESSION % PROJECTS + 1, session_id=i // SESSION + 1,
                kind=Kind.FACT.value, tier=Tier.CAPTURED.value, source="bench", at=i * 30_000,
                expires_at=None, is_pinned=False, is_superseded=False, quality=0.5, confidence=0.5,
                revisions=1, duplicates=1, title_length=40, body_length=400, tags=(),
            )
            for i in range(first, min(first + BLOCK, columns.n))
        )  # fmt: skip


class Plain:
    """BM25 as the books have it, in double precision, one word after the other."""

    def __init__(self, rows: Rows) -> None:
        self._count, self._width = rows.words.shape
        flat = rows.words.ravel()
        self._places = np.argsort(flat, kind="stable")
        self._starts = np.searchsorted(flat[self._places], np.arange(VOCABULARY + 1))

    def scores(self, question: Words) -> NDArray[np.float64]:
        """Of every row. All are of one length, so that the norm is k1."""
        scores = np.zeros(self._count)
        for word in question.tolist():
            hits = self._places[self._starts[word] : self._starts[word + 1]]
            weight = np.where(hits % self._width < TITLE_WORDS, LEXICAL.title_weight, 1.0)
            tf = np.bincount(hits // self._width, weights=weight, minlength=self._count)
            having = int(np.count_nonzero(tf))
            idf = np.log(1 + (self._count - having + 0.5) / (having + 0.5))
            scores += idf * tf * (LEXICAL.k1 + 1) / (tf + LEXICAL.k1)
        return scores


def fts5_of(rows: Rows) -> apsw.Connection:
    """The same rows in FTS5, in memory and merged into one segment: as quick as it can be."""
    db = apsw.Connection(":memory:")
    db.execute(
        "CREATE VIRTUAL TABLE t USING fts5(title, body, content='', tokenize='unicode61')"
    )
    names = np.array([f"w{number}" for number in range(VOCABULARY)])
    with db:
        for first in range(0, len(rows.words), BLOCK):
            some = names[rows.words[first : first + BLOCK]].tolist()
            db.executemany(
                "INSERT INTO t (rowid, title, body) VALUES (?, ?, ?)",
                (
                    (first + i + 1, " ".join(row[:TITLE_WORDS]), " ".join(row[TITLE_WORDS:]))
                    for i, row in enumerate(some)
                ),
            )
    db.execute("INSERT INTO t (t) VALUES ('optimize')")
    return db


def quickest(work: Callable[[], object], runs: int) -> float:
    """Milliseconds of the quickest run."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def words(rows: Rows) -> dict[str, Any]:
    """The lexical leg against FTS5."""
    index, db, plain = shelf_of(rows), fts5_of(rows), Plain(rows)
    seen = filters.masks(index, Question(text="", now=0))
    sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?"

    def leg(terms: legs.Terms) -> legs.Rows:
        scores = legs.lexical_scores(index, terms, LEXICAL, seen.scope.among)
        return legs.best(index, scores, seen, TOP)

    ours, theirs, exact = [], [], []
    for question in rows.questions:
        terms = legs.Terms(dict.fromkeys(question.tolist(), 1.0))
        scores = plain.scores(question)
        found = scores[leg(terms)]
        best = np.sort(scores)[::-1][: len(found)]
        is_all = len(found) == min(TOP, np.count_nonzero(scores))
        exact.append(is_all and np.allclose(found, best, rtol=1e-5))
        asked = (" OR ".join(f'"w{number}"' for number in question.tolist()), TOP)
        ours.append(quickest(partial(leg, terms), 3))
        theirs.append(quickest(lambda asked=asked: db.execute(sql, asked).fetchall(), 2))
    return {**compared("fts5", ours, theirs), "exact": sum(exact) / len(exact)}


def compared(other: str, ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Medians, and how many times as long the other side's is."""
    mine, its = statistics.median(ours), statistics.median(theirs)
    return {
        "ours_ms": round(mine, 3),
        f"{other}_ms": round(its, 3),
        "ratio": round(its / mine, 1),
    }


def vectors(rows: Rows) -> dict[str, Any]:
    """The vector leg in the hashing space against a scan of the same rows in float32."""
    count, texts, embedder = len(rows.words), corpus.Corpus(), HashingEmbedder()
    told = [f"{m['title']}\n{m['text']}" for m in texts.memories(min(count, EMBEDDED), 0)]
    scanned = mixed(np.asarray(embedder.embed(told), np.float32), count)
    matrix = VectorMatrix(scanned.shape[1])
    for first in range(0, count, BLOCK):
        matrix.append(scanned[first : first + BLOCK].astype(np.float16))
    live = np.ones(count, np.bool_)
    ours, theirs, recalls = [], [], []
    for query in embedder.embed(texts.questions(len(rows.questions))):
        products = scanned @ query
        least = np.partition(products, count - TOP)[count - TOP] - ROUNDING
        found = matrix.top(query, POOL, live)[0][:TOP]
        recalls.append(np.count_nonzero(products[found] >= least) / TOP)
        ours.append(quickest(partial(matrix.top, query, POOL, live), 3))
        theirs.append(quickest(partial(scan, scanned, query), 3))
    recall = {"recall": round(statistics.mean(recalls), 4)}
    return {**compared("scan", ours, theirs), **recall}


def mixed(some: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """So many rows of length 1: these, and after them what two of them are together, in unequal parts."""
    random, rows = np.random.default_rng(9), np.empty((count, some.shape[1]), np.float32)
    rows[: len(some)] = some
    for first in range(len(some), count, BLOCK):
        one, other = random.integers(0, len(some), (2, min(BLOCK, count - first)))
        both = some[one] + np.float32(0.7) * some[other]
        length = np.linalg.norm(both, axis=1, keepdims=True)
        rows[first : first + BLOCK] = both / np.where(length > 0, length, 1)
    return rows


def scan(rows: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.intp]:
    """The best fifty by all products."""
    products = rows @ query
    return np.argpartition(products, len(products) - TOP)[len(products) - TOP :]


MEASURES: dict[str, Callable[[Rows], dict[str, Any]]] = {"words": words, "vectors": vectors}


def missed(name: str, count: int, found: dict[str, Any]) -> list[str]:
    """The bars that these figures do not reach."""
    bars = [bar for least, bar in SPEED[name].items() if count >= least]
    said = [f"{name}: {found['ratio']} times as fast, not {max(bars)}"] if bars else []
    said = said if bars and found["ratio"] < max(bars) else []
    if found.get("exact", 1.0) < 1:
        said.append(f"{name}: exact in {found['exact']:.0%} of the questions")
    if found.get("recall", 1.0) < RECALL:
        said.append(f"{name}: recall {found['recall']}, not {RECALL}")
    return said


def main() -> None:
    """Print the figures; exit with 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--only", choices=sorted(MEASURES))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = made_up(given.rows, given.questions)
    names = [given.only] if given.only else list(MEASURES)
    figures = {name: MEASURES[name](rows) for name in names}
    said = [line for name in names for line in missed(name, given.rows, figures[name])]
    if given.json:
        print(json.dumps({"rows": given.rows, **figures, "missed": said}))
    else:
        for name, found in figures.items():
            print(
                f"{given.rows:,} rows, {name}: "
                + "  ".join(f"{k} {v}" for k, v in found.items())
            )
        print("\n".join(said) or "all bars reached")
    raise SystemExit(bool(said))


if __name__ == "__main__":
    main()
