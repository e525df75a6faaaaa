"""passages, terms, FTS5, change queue."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from memd.store.types import IndexRow, NewPassage, StoredPassage

# MERGED from memd.store.packing:
# MERGED Postings as the vault keeps them: two bytes each instead of six, unpacked a thousand passages at a time. Pure.
# MERGED
# MERGED The numbers of a passage's terms ascend, so each is told as the distance from the one before. A token is
# MERGED that distance times four plus a code: the word stands once in the body, once in the title, once in both,
# MERGED or otherwise; it is written seven bits to a byte, the lowest first, the last byte below 128. What stands
# MERGED otherwise has its two counts, a byte each, at the end; how many of those there are stands in front, u2.


POSTING = np.dtype([("term", "<u4"), ("title", "u1"), ("body", "u1")])
"""One posting, unpacked."""
_TITLE = np.array([0, 1, 1, 0], np.uint8)
_BODY = np.array([1, 0, 1, 0], np.uint8)
_OTHERWISE = 3
_HEAD = 2
_BITS = 7
_MORE = 1 << _BITS

Postings = NDArray[np.void]
Numbers = NDArray[np.int64]


def pack_postings(postings: Postings, sizes: Sequence[int]) -> list[bytes]:
    """One blob per passage; `postings`, of dtype POSTING, are those of one passage after the other.

    `sizes` says how many each has. The order of postings within a passage is lost.
    """
    counts = np.asarray(sizes, np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    postings = postings[np.lexsort((postings["term"], owner))]
    terms = postings["term"].astype(np.int64)
    before = np.concatenate(([0], terms[:-1])) * np.concatenate(
        ([False], owner[1:] == owner[:-1])
    )
    codes = _codes(postings)
    written, ends = _written(((terms - before) << 2) | codes)
    odd = np.flatnonzero(codes == _OTHERWISE)
    tails = np.stack((postings["title"][odd], postings["body"][odd]), axis=1)
    stops = np.concatenate(([0], ends))[np.concatenate(([0], np.cumsum(counts)))].tolist()
    odds = np.searchsorted(owner[odd], np.arange(len(counts) + 1)).tolist()
    return [
        (odds[at + 1] - odds[at]).to_bytes(_HEAD, "little")
        + written[stops[at] : stops[at + 1]].tobytes()
        + tails[odds[at] : odds[at + 1]].tobytes()
        for at in range(len(counts))
    ]


def _codes(postings: Postings) -> Numbers:
    title, body = postings["title"], postings["body"]
    both = 2 * title.astype(np.int64) + body
    return np.where(
        (title > 1) | (body > 1) | (both == 0), _OTHERWISE, np.array([0, 0, 1, 2])[both % 4]
    )


def _written(tokens: Numbers) -> tuple[NDArray[np.uint8], Numbers]:
    """The tokens as bytes, and where each ends."""
    lengths = np.ones(len(tokens), np.int64)
    for step in range(1, 5):
        lengths += tokens >> (_BITS * step) > 0
    ends = np.cumsum(lengths)
    found = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for step in range(5):
        those = np.flatnonzero(lengths > step)
        low = (tokens[those] >> (_BITS * step)) & (_MORE - 1)
        found[(ends - lengths)[those] + step] = low | np.where(
            lengths[those] > step + 1, _MORE, 0
        )
    return found, ends


def unpack_postings(blobs: Sequence[bytes]) -> tuple[Postings, Numbers]:
    """The postings of these passages, one after the other, and how many each has.

    Raises ValueError if they cannot be read.
    """
    odd = [int.from_bytes(blob[:_HEAD], "little") for blob in blobs]
    tokens, tails = [], []
    for blob, count in zip(blobs, odd, strict=True):
        stop = len(blob) - 2 * count
        if stop < _HEAD:
            raise ValueError("these are no postings")
        tokens.append(blob[_HEAD:stop])
        tails.append(blob[stop:])
    written = np.frombuffer(b"".join(tokens), np.uint8)
    ends = np.flatnonzero(written < _MORE)
    borders = np.cumsum([len(part) for part in tokens], dtype=np.int64)
    stops = np.searchsorted(ends, borders)
    sizes = np.diff(stops, prepend=0)
    found = np.zeros(len(ends), POSTING)
    if len(ends):
        values = _read(written, ends)
        sums = np.cumsum(values >> 2)
        firsts = stops - sizes
        before = np.where(firsts > 0, sums[firsts - 1], 0)
        codes = values & _OTHERWISE
        found["term"] = sums - np.repeat(before, sizes)
        found["title"], found["body"] = _TITLE[codes], _BODY[codes]
        counts = np.frombuffer(b"".join(tails), np.uint8).reshape(-1, 2)
        other = np.flatnonzero(codes == _OTHERWISE)
        found["title"][other], found["body"][other] = counts[:, 0], counts[:, 1]
    return found, sizes


def _read(written: NDArray[np.uint8], ends: Numbers) -> Numbers:
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    values = (written[starts] & (_MORE - 1)).astype(np.int64)
    for step in range(1, int(lengths.max())):
        those = np.flatnonzero(lengths > step)
        low = (written[starts[those] + step] & (_MORE - 1)).astype(np.int64)
        values[those] |= low << (_BITS * step)
    return values


# MERGED from memd.store.fulltext:
# MERGED Passages: their full text in FTS5 and their postings as blobs. Derived, rebuildable.


_BLOCK = 512
"""Passages that are unpacked at a time."""

_INDEX_ROW = (
    "s.id, s.project_id, coalesce(s.session_id, 0), s.kind, s.tier, s.source, s.at, s.expires_at,"
    " s.pinned_at IS NOT NULL,"
    " s.archived_at IS NOT NULL"
    " OR EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL),"
    " s.quality, s.confidence, s.revisions, s.duplicates, length(s.title), length(s.body), s.tags"
)


def index_rows(
    tx: apsw.Connection, summary_ids: Sequence[int] | None = None
) -> Iterator[IndexRow]:
    """Every summary as the index knows it, without its text; or these, unknown ids left out."""
    where = "" if summary_ids is None else f" WHERE s.id IN ({_marks(summary_ids)})"
    rows = tx.execute(
        f"SELECT {_INDEX_ROW} FROM summaries s{where} ORDER BY s.id", tuple(summary_ids or ())
    )
    for row in rows:
        yield _index_row(row)


def _index_row(row: tuple[Any, ...]) -> IndexRow:
    (
        *facts,
        pinned,
        superseded,
        quality,
        confidence,
        revisions,
        duplicates,
        title,
        body,
        tags,
    ) = row
    (number, project_id, session_id, kind, tier, source, at, expires_at) = facts
    return IndexRow(
        summary_id=number, project_id=project_id, session_id=session_id, kind=kind, tier=tier,
        source=source, at=at, expires_at=expires_at, is_pinned=bool(pinned),
        is_superseded=bool(superseded), quality=quality, confidence=confidence,
        revisions=revisions, duplicates=duplicates, title_length=title, body_length=body,
        tags=() if tags == "[]" else tuple(json.loads(tags)),
    )  # fmt: skip


def put_passages(
    tx: apsw.Connection,
    passages: Sequence[NewPassage],
    numbers: Mapping[str, int] | None = None,
) -> list[StoredPassage]:
    """Store passages in both forms and return them as `load` would; `numbers`: what `number` told."""
    if numbers is None:
        numbers = number_terms(tx, passages)
    packed, wide = _packed(passages, numbers)
    stored = []
    for passage, blob, postings in zip(passages, packed, wide, strict=True):
        number = tx.execute(
            "INSERT INTO passages (summary_id, seq, start, stop, length, postings)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            (
                passage.summary_id,
                passage.seq,
                passage.start,
                passage.stop,
                passage.length,
                blob,
            ),
        ).get
        tx.execute(
            "INSERT INTO passages_fts (rowid, title, body, identifiers) VALUES (?, ?, ?, ?)",
            (number, passage.title, passage.text, passage.identifiers),
        )
        stored.append(
            StoredPassage(
                int(number), passage.summary_id, passage.seq, passage.length, postings
            )
        )
    return stored


def _packed(
    passages: Sequence[NewPassage], numbers: Mapping[str, int]
) -> tuple[list[bytes], list[bytes]]:
    """The passages' postings as they are kept, and as they are loaded."""
    postings = np.array(
        [
            (numbers[p.term], min(p.in_title, 255), min(p.in_body, 255))
            for passage in passages
            for p in passage.postings
        ],
        POSTING,
    )
    packed = pack_postings(postings, [len(passage.postings) for passage in passages])
    return packed, _wide(packed)


def _wide(packed: Sequence[bytes]) -> list[bytes]:
    """Postings of six bytes each, a blob a passage."""
    found, sizes = unpack_postings(packed)
    whole = found.tobytes()
    stops = (sizes.cumsum() * POSTING.itemsize).tolist()
    return [whole[a:b] for a, b in zip([0, *stops], stops, strict=False)]


def number_terms(tx: apsw.Connection, passages: Sequence[NewPassage]) -> dict[str, int]:
    """Enter the words of new passages in the vocabulary; term → its number."""
    return _number(tx, Counter(p.term for passage in passages for p in passage.postings))


def _number(tx: apsw.Connection, uses: Mapping[str, int]) -> dict[str, int]:
    """Count these terms in the vocabulary and return their numbers."""
    numbers: dict[str, int] = {}
    for term, count in uses.items():
        numbers[term] = int(
            tx.execute(
                "INSERT INTO terms (term, passages) VALUES (?1, ?2)"
                " ON CONFLICT (term) DO UPDATE SET passages = passages + ?2 RETURNING id",
                (term, count),
            ).get
        )
    return numbers


def remove_passages(tx: apsw.Connection, summary_id: int) -> list[int]:
    """Drop a summary's passages, vectors and unused words; the ids of the passages that went."""
    gone: list[int] = []
    packed: list[bytes] = []
    for number, blob in tx.execute(
        "SELECT id, postings FROM passages WHERE summary_id = ?", (summary_id,)
    ):
        gone.append(int(number))
        packed.append(blob)
    uses = Counter(unpack_postings(packed)[0]["term"].tolist())
    tx.execute("DELETE FROM passages WHERE summary_id = ?", (summary_id,))
    tx.executemany(
        "UPDATE terms SET passages = passages - ?2 WHERE id = ?1",
        [(term, n) for term, n in uses.items()],
    )
    tx.executemany(
        "DELETE FROM terms WHERE id = ? AND passages <= 0", [(term,) for term in uses]
    )
    return gone


def load_passages(
    tx: apsw.Connection, summary_ids: Sequence[int] | None = None
) -> Iterator[StoredPassage]:
    """Every passage, or those of these summaries, in order of id."""
    where = "" if summary_ids is None else f" WHERE summary_id IN ({_marks(summary_ids)})"
    rows = tx.execute(
        f"SELECT id, summary_id, seq, length, postings FROM passages{where} ORDER BY id",
        tuple(summary_ids or ()),
    )
    while block := list(islice(rows, _BLOCK)):
        wide = _wide([row[-1] for row in block])
        for (number, owner, seq, length, _), postings in zip(block, wide, strict=True):
            yield StoredPassage(number, owner, seq, length, postings)


def passage_texts(
    tx: apsw.Connection, passage_ids: Sequence[int] | None = None
) -> Iterator[tuple[int, int, int, str, str]]:
    """Every passage with its text, or these, in order of id: id, start, stop, title and body of its memory.

    A passage whose memory has gone is left out.
    """
    where = "" if passage_ids is None else f" WHERE p.id IN ({_marks(passage_ids)})"
    yield from tx.execute(
        "SELECT p.id, p.start, p.stop, s.title, s.body FROM passages p"
        f" CROSS JOIN summaries s ON s.id = p.summary_id{where} ORDER BY p.id",
        tuple(passage_ids or ()),
    )


def _marks(numbers: Sequence[int]) -> str:
    return ",".join("?" * len(numbers))


def terms_in_order(tx: apsw.Connection) -> tuple[bytes, bytes]:
    """Every term in UTF-8, a line each, in order of it; and their numbers in that order, a line each.

    A million words one row at a time would take a second.
    """
    words, numbers = tx.execute(
        "SELECT CAST(group_concat(term, char(10)) AS BLOB), CAST(group_concat(id, char(10)) AS BLOB)"
        " FROM (SELECT term, id FROM terms ORDER BY term)"
    ).get
    return words or b"", numbers or b""


def match_passages(tx: apsw.Connection, expression: str, limit: int) -> list[tuple[int, float]]:
    """(passage id, −bm25) for an FTS5 expression that `recall` has quoted; best first."""
    rows = tx.execute(
        "SELECT rowid, -bm25(passages_fts, 2.0, 1.0, 1.0) FROM passages_fts"
        " WHERE passages_fts MATCH ? ORDER BY rank LIMIT ?",
        (expression, limit),
    )
    return [(int(number), float(score)) for number, score in rows]


def passage_spans(
    tx: apsw.Connection, passage_ids: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """Passage id → [start, stop) in its summary's body."""
    rows = tx.execute(
        f"SELECT id, start, stop FROM passages WHERE id IN ({_marks(passage_ids)})",
        tuple(passage_ids),
    )
    return {int(number): (int(start), int(stop)) for number, start, stop in rows}


def passage_owners(tx: apsw.Connection, passage_ids: Sequence[int]) -> dict[int, int]:
    """Passage id → summary id."""
    rows = tx.execute(
        f"SELECT id, summary_id FROM passages WHERE id IN ({_marks(passage_ids)})",
        tuple(passage_ids),
    )
    return {int(number): int(summary_id) for number, summary_id in rows}


def count_term_uses(tx: apsw.Connection) -> Counter[int]:
    """In how many passages each term stands, counted in these; term's number → passages."""
    rows = tx.execute("SELECT postings FROM passages")
    uses: Counter[int] = Counter()
    while block := [blob for (blob,) in islice(rows, _BLOCK)]:
        terms, counts = np.unique(unpack_postings(block)[0]["term"], return_counts=True)
        uses.update(dict(zip(terms.tolist(), counts.tolist(), strict=True)))
    return uses


def all_passage_owners(tx: apsw.Connection) -> Iterator[tuple[int, int]]:
    """Every passage and its summary, in order of passage."""
    yield from tx.execute("SELECT id, summary_id FROM passages ORDER BY id")


def terms_of(tx: apsw.Connection, passage_ids: Sequence[int]) -> dict[int, list[int]]:
    """Passage id → the numbers of its terms."""
    rows = tx.execute(
        f"SELECT id, postings FROM passages WHERE id IN ({_marks(passage_ids)})",
        tuple(passage_ids),
    )
    return {int(number): unpack_postings([blob])[0]["term"].tolist() for number, blob in rows}


def count_passages(tx: apsw.Connection) -> int:
    """How many passages there are."""
    return int(tx.execute("SELECT count(*) FROM passages").get)


def purge_passages(tx: apsw.Connection) -> None:
    """Merge FTS5's segments, so that nothing of a deleted passage stays in them."""
    tx.execute("INSERT INTO passages_fts (passages_fts) VALUES ('optimize')")


# MERGED from memd.store.changes:
# MERGED What the index has yet to learn. Triggers write it; the indexer reads it and takes it away.


def pending_changes(tx: apsw.Connection, limit: int) -> list[tuple[int, int]]:
    """(seq, summary id) of the changes to learn next, oldest first."""
    rows = tx.execute("SELECT seq, summary_id FROM changes ORDER BY seq LIMIT ?", (limit,))
    return [(int(seq), int(summary_id)) for seq, summary_id in rows]


def remove_changes(tx: apsw.Connection, seqs: Iterable[int]) -> None:
    """These changes are in the index. One that happened again since has another number and stays."""
    tx.executemany("DELETE FROM changes WHERE seq = ?", [(seq,) for seq in seqs])


def still_pending_changes(tx: apsw.Connection, seqs: Iterable[int]) -> set[int]:
    """Those of these changes that have neither been learnt nor happened again since."""
    return {
        seq for seq in seqs if tx.execute("SELECT 1 FROM changes WHERE seq = ?", (seq,)).get
    }


def last_change(tx: apsw.Connection) -> int:
    """The number of the newest change that is waiting; 0 if there is none."""
    return int(tx.execute("SELECT coalesce(max(seq), 0) FROM changes").get)


def count_changes(tx: apsw.Connection) -> int:
    """How many are waiting."""
    return int(tx.execute("SELECT count(*) FROM changes").get)


def queue_reindex(tx: apsw.Connection) -> int:
    """Ask for every summary to be indexed again, and for every derived row without one to go."""
    tx.execute("INSERT OR REPLACE INTO changes (summary_id) SELECT id FROM summaries")
    tx.execute(
        "INSERT OR REPLACE INTO changes (summary_id) SELECT DISTINCT summary_id FROM passages"
    )
    return count_changes(tx)


# MERGED from memd.store.saved:
# MERGED Which copy of the index beside the vault holds, what it does not know, and what its codes stand for.
# MERGED
# MERGED A copy that holds differs from the index only by the memories that are listed here: whoever indexes one
# MERGED lists it in the same transaction. When a memory is deleted a trigger lets no copy hold any more. The
# MERGED name of a copy is random: a vault that was restored, or copied, finds under it the very copy that it
# MERGED knows, or none; a number that counts up could be reached twice. Not here: the files (index/copy.py).


Labels = Mapping[str, Sequence[Any]]
"""By kind, what the codes 0, 1, 2 … stand for, as JSON can have it."""


def snapshot_name(tx: apsw.Connection) -> str | None:
    """The name of the copy that holds, or None."""
    found = tx.execute("SELECT name FROM saved").get
    return None if found is None else str(found)


def new_snapshot_name(tx: apsw.Connection) -> str:
    """A name that no copy has."""
    return str(tx.execute("SELECT lower(hex(randomblob(8)))").get)


def record_snapshot(tx: apsw.Connection, name: str, labels: Labels) -> bool:
    """Let this copy of all that was indexed hold from now on; False if there is more to index.

    What waits may be a memory that has just been forgotten, and that the copy has.
    """
    if count_changes(tx):
        return False
    invalidate_snapshot(tx)
    tx.execute("INSERT INTO saved (one, name) VALUES (1, ?)", (name,))
    tx.executemany(
        "INSERT INTO labels (kind, code, value) VALUES (?, ?, ?)",
        [
            (kind, code, json.dumps(value))
            for kind, values in labels.items()
            for code, value in enumerate(values)
        ],
    )
    return True


def invalidate_snapshot(tx: apsw.Connection) -> None:
    """From now on no copy holds."""
    for table in ("saved", "unsaved", "labels"):
        tx.execute(f"DELETE FROM {table}")


def mark_unsaved(tx: apsw.Connection, summary_ids: Iterable[int]) -> None:
    """These memories are no more as the copy has them."""
    tx.executemany(
        "INSERT OR IGNORE INTO unsaved (summary_id) SELECT ? WHERE EXISTS (SELECT 1 FROM saved)",
        [(number,) for number in summary_ids],
    )


def unsaved_ids(tx: apsw.Connection) -> list[int]:
    """The memories that the copy does not know as they are, ascending."""
    return [int(n) for (n,) in tx.execute("SELECT summary_id FROM unsaved ORDER BY summary_id")]


def count_unsaved(tx: apsw.Connection) -> int:
    """How many memories the copy does not know as they are."""
    return int(tx.execute("SELECT count(*) FROM unsaved").get)


def snapshot_labels(tx: apsw.Connection) -> dict[str, list[Any]]:
    """What the codes of the copy that holds stand for."""
    found: dict[str, list[Any]] = {"sources": [], "tags": []}
    for kind, value in tx.execute("SELECT kind, value FROM labels ORDER BY kind, code"):
        found[kind].append(json.loads(value))
    return found
