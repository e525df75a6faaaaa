"""Generate a vault of any size in minutes, as memd itself would have written it.

Zipfian words, realistic identifiers, eight memories to a session, spread over a year. What memd derives word by
word (stems, parts of identifiers, names, hashed features) is computed once per word here, so that a million
memories take minutes instead of hours; a test has `memd doctor` check the result. The snapshot of the memory
index is written, too.
"""

import functools
import random
import time
from collections.abc import Sequence

import anyio
import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import Corpus
from memd.embeddings import hashing
from memd.embeddings.hashing import HashingEmbedder
from memd.index import snapshot
from memd.index.memory_index import MemoryIndex
from memd.index.passages import entities_of_text
from memd.models import Kind, SessionRef, Space
from memd.store import projects, vectors
from memd.store import summaries as store_summaries
from memd.store.database import Connection, Database
from memd.store.fulltext import POSTING, note_tokenizer_version, pack_postings
from memd.text import TERMS_VERSION, digest, split_identifier, stems, unique, words

LEARNED = Space("ollama", "played", "1", 768, "0")
_BATCH = 5_000
_WORDS, _TITLE_WORDS, _NAMES = 52, 5, 4
_KINDS = tuple(Kind)[:8]
_PROJECTS = 5
_DAY_MS = 86_400_000
_NUMBERS = 1_000

Ints = NDArray[np.int64]


class Lexicon:
    """Every token that texts are made of, and what the index derives from each."""

    def __init__(self, seed: int, vocabulary: int) -> None:
        made = Corpus(seed, vocabulary)
        self.tokens = [*made.words]
        self._common = len(self.tokens)
        chosen = random.Random(seed)
        while len(self.tokens) < 2 * self._common:
            self.tokens.append(made.identifier())
        self.tokens += [f"{chosen.choice(self.tokens[:64])}.py" for _ in range(64)]
        self.first_number = len(self.tokens)
        self.tokens += [str(number) for number in range(_NUMBERS)]
        self.numbers: dict[str, int] = {}
        found = [[self._term_number(term) for term in stems(token)] for token in self.tokens]
        self.flat = np.array([number for one in found for number in one], np.int64)
        self.sizes = np.array([len(one) for one in found], np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.parts = [_identifier_parts(token) for token in self.tokens]
        self.names = [entities_of_text(token) for token in self.tokens]
        weights = 1 / (np.arange(self._common) + 3)
        self._cumulative = np.cumsum(weights) / weights.sum()

    def _term_number(self, term: str) -> int:
        return self.numbers.setdefault(term, len(self.numbers) + 1)

    def draw(self, rng: np.random.Generator, count: int, each: int, named: int) -> Ints:
        """Draw tokens: `each` common ones and `named` names a text, (count, each + named)."""
        common = self._cumulative.searchsorted(rng.random((count, each)))
        names = rng.integers(self._common, self.first_number, (count, named))
        return rng.permuted(np.concatenate((common, names), axis=1), axis=1)

    def terms(self, tokens: Ints) -> tuple[Ints, Ints]:
        """Every occurrence of a term: (text, term)."""
        flat = tokens.ravel()
        sizes = self.sizes[flat]
        owner = np.repeat(np.repeat(np.arange(len(tokens)), tokens.shape[1]), sizes)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return owner, self.flat[np.repeat(self.starts[flat], sizes) + within]


def _identifier_parts(token: str) -> list[str]:
    return [p for w in words(token) if len(parts := split_identifier(w)) > 1 for p in parts]


class VaultWriter:
    """Writes memories and everything that is derived from them, in batches."""

    def __init__(self, tx: Connection, total: int, seed: int, now: int) -> None:
        self.tx, self.total, self.now = tx, total, now
        self.rng = np.random.default_rng(seed)
        self.lexicon = Lexicon(seed, min(2 * total + 100, 20_000 + total // 10, 100_000))
        self.uses = np.zeros(len(self.lexicon.numbers) + 1, np.int64)
        self.projects = [
            projects.ensure_project(tx, f"/home/dev/p{n}", f"p{n}", "a git repository", now)
            for n in range(_PROJECTS)
        ]
        self.space = vectors.ensure_space(tx, LEARNED)
        self.session = 0

    def write(self, first: int, count: int) -> None:
        """Write the memories from number `first` on."""
        lexicon, rng = self.lexicon, self.rng
        ids = range(first + 1, first + count + 1)
        title_tokens = lexicon.draw(rng, count, _TITLE_WORDS, 1)
        body_tokens = np.concatenate(
            (
                lexicon.draw(rng, count, _WORDS, _NAMES),
                lexicon.first_number + rng.integers(0, _NUMBERS, (count, 1)),
            ),
            axis=1,
        )
        titles, bodies = (self._join_tokens(tokens) for tokens in (title_tokens, body_tokens))
        self._write_summaries(ids, titles, bodies)
        self._write_passages(ids, title_tokens, body_tokens, bodies)
        self._write_fulltext(ids, title_tokens, body_tokens, titles, bodies)
        blobs = rng.integers(0, 256, (count, 772), np.uint8)
        vectors.put_vectors(self.tx, self.space, zip(ids, map(bytes, blobs), strict=True))

    def _join_tokens(self, tokens: Ints) -> list[str]:
        named = self.lexicon.tokens
        return [" ".join([named[at] for at in row]) for row in tokens.tolist()]

    def _write_summaries(self, ids: range, titles: Sequence[str], bodies: Sequence[str]) -> None:
        kinds = [_KINDS[at] for at in self.rng.integers(0, len(_KINDS), len(ids)).tolist()]
        rows, cued = [], []
        for number, kind, title, body in zip(ids, kinds, titles, bodies, strict=True):
            at = self.now - (self.total - number) * 365 * _DAY_MS // self.total
            if number % 8 == 1:
                self._begin_session(number, at)
            project = self.projects[number // 8 % _PROJECTS]
            rows.append(
                (number, f"{number:032x}", project, self.session, kind.value, title, body, at)
            )
            cued += [(cue, number) for cue in sorted(store_summaries.lookup_keys(kind, title, ""))]
        self.tx.executemany(
            "INSERT INTO summaries (id, uid, project_id, session_id, kind, tier, source, title, body, at,"
            " created_at, updated_at, rule, consolidated)"
            " VALUES (?1, ?2, ?3, ?4, ?5, 'captured', 'bench', ?6, ?7, ?8, ?8, ?8, 'turn', 1)",
            rows,
        )
        self.tx.execute("DELETE FROM changes")
        self.tx.executemany("INSERT INTO cues (cue, summary_id) VALUES (?, ?)", cued)
        forms = [(n, int(digest(title)[:15], 16)) for n, title in zip(ids, titles, strict=True)]
        self.tx.executemany("INSERT INTO forms (summary_id, form) VALUES (?, ?)", forms)

    def _begin_session(self, number: int, at: int) -> None:
        project = self.projects[number // 8 % _PROJECTS]
        ref = SessionRef("bench", f"session-{number // 8}")
        self.session = projects.ensure_session(self.tx, ref, project, at)

    def _write_passages(self, ids: range, titles: Ints, bodies: Ints, texts: Sequence[str]) -> None:
        stride = len(self.uses)
        keys, title, body = _count_keys(
            *(owner * stride + term for owner, term in map(self.lexicon.terms, (titles, bodies)))
        )
        postings = np.zeros(len(keys), POSTING)
        postings["term"], postings["title"], postings["body"] = keys % stride, title, body
        self.uses += np.bincount(keys % stride, minlength=stride)
        sizes = np.bincount(keys // stride, minlength=len(ids))
        lengths = np.bincount(keys // stride, title + body, len(ids)).astype(int).tolist()
        blobs = pack_postings(postings, sizes.tolist())
        self.tx.executemany(
            "INSERT INTO passages (id, summary_id, seq, start, stop, length, postings)"
            " VALUES (?1, ?1, 0, 0, ?2, ?3, ?4)",
            [
                (number, len(text), length, blob)
                for number, text, length, blob in zip(ids, texts, lengths, blobs, strict=True)
            ],
        )

    def _write_fulltext(
        self, ids: range, titles: Ints, bodies: Ints, headings: Sequence[str], texts: Sequence[str]
    ) -> None:
        parts, names = self.lexicon.parts, self.lexicon.names
        tokens = np.concatenate((titles, bodies), axis=1).tolist()
        self.tx.executemany(
            "INSERT INTO passages_fts (rowid, title, body, identifiers) VALUES (?, ?, ?, ?)",
            [
                (number, title, text, " ".join(unique([p for at in row for p in parts[at]])))
                for number, title, text, row in zip(ids, headings, texts, tokens, strict=True)
            ],
        )
        self.tx.executemany(
            "INSERT OR IGNORE INTO entities (summary_id, name, kind) VALUES (?, ?, ?)",
            [
                (number, name, kind)
                for number, row in zip(ids, tokens, strict=True)
                for at in row
                for name, kind in names[at]
            ],
        )

    def finish(self) -> None:
        """Write the vocabulary."""
        uses = self.uses.tolist()
        rows = [(n, term, uses[n]) for term, n in self.lexicon.numbers.items() if uses[n]]
        self.tx.executemany("INSERT INTO terms (id, term, passages) VALUES (?, ?, ?)", sorted(rows))
        self.tx.execute(
            "INSERT OR IGNORE INTO meta VALUES (?, '1')", (store_summaries.KEYS_BUILT_NOTE,)
        )


def _count_keys(titles: Ints, bodies: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct keys, ascending, and how often each is in a title and in a body."""
    keys, counts = zip(
        *(np.unique(one, return_counts=True) for one in (titles, bodies)), strict=True
    )
    every = np.sort(np.concatenate(keys))
    every = every[np.diff(every, prepend=-1) > 0]
    title, body = np.zeros(len(every), np.int64), np.zeros(len(every), np.int64)
    title[every.searchsorted(keys[0])] = np.minimum(counts[0], 255)
    body[every.searchsorted(keys[1])] = np.minimum(counts[1], 255)
    return every, title, body


def fill(path: str, summaries: int, seed: int = 7) -> None:
    """Generate a vault with this many memories at `path`, which must not exist.

    It has random vectors in one model's space of 768 dimensions, and a snapshot of the index beside it if it is
    big enough for one.
    """
    now = time.time_ns() // 1_000_000
    db = Database(path, now)
    try:
        writer = db._writer  # noqa: SLF001  # durability does not matter for a generated vault
        writer.pragma("synchronous", 0)
        writer.pragma("cache_size", -262_144)
        filler = db.write_now(lambda tx: VaultWriter(tx, summaries, seed, now))
        for first in range(0, summaries, _BATCH):
            count = min(_BATCH, summaries - first)
            db.write_now(lambda _, first=first, count=count: filler.write(first, count))
        db.write_now(lambda _: filler.finish())
        # As a daemon would have: comparing a million memories took its time from what was measured.
        db.write_now(lambda tx: note_tokenizer_version(tx, TERMS_VERSION))
        anyio.run(_save, db)
    finally:
        db.close()


async def _save(db: Database) -> None:
    """Write the snapshot as an idle daemon does, with the features of every word cached."""
    hash_word, most = hashing._hash_word, snapshot.EMBEDDED_MAX  # noqa: SLF001  # put back below
    hashing._hash_word = functools.cache(hash_word.__wrapped__)  # noqa: SLF001
    snapshot.EMBEDDED_MAX = 2**60
    try:
        saver = snapshot.IndexStorage(db, MemoryIndex(), (HashingEmbedder(),))
        await db.read(saver.load)
        await saver.save(lambda: False)
    finally:
        hashing._hash_word, snapshot.EMBEDDED_MAX = hash_word, most  # noqa: SLF001
