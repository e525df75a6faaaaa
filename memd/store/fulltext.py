"""Passages: their full text in FTS5 and their postings as blobs. Derived, rebuildable."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import apsw
import numpy as np

from memd.store.packing import POSTING, pack, unpack
from memd.store.rows import IndexRow, NewPassage, StoredPassage

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


def put(
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
    packed = pack(postings, [len(passage.postings) for passage in passages])
    return packed, _wide(packed)


def _wide(packed: Sequence[bytes]) -> list[bytes]:
    """Postings of six bytes each, a blob a passage."""
    found, sizes = unpack(packed)
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


def remove(tx: apsw.Connection, summary_id: int) -> list[int]:
    """Drop a summary's passages, vectors and unused words; the ids of the passages that went."""
    gone: list[int] = []
    packed: list[bytes] = []
    for number, blob in tx.execute(
        "SELECT id, postings FROM passages WHERE summary_id = ?", (summary_id,)
    ):
        gone.append(int(number))
        packed.append(blob)
    uses = Counter(unpack(packed)[0]["term"].tolist())
    tx.execute("DELETE FROM passages WHERE summary_id = ?", (summary_id,))
    tx.executemany(
        "UPDATE terms SET passages = passages - ?2 WHERE id = ?1",
        [(term, n) for term, n in uses.items()],
    )
    tx.executemany(
        "DELETE FROM terms WHERE id = ? AND passages <= 0", [(term,) for term in uses]
    )
    return gone


def load(
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


def texts(
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


def match(tx: apsw.Connection, expression: str, limit: int) -> list[tuple[int, float]]:
    """(passage id, −bm25) for an FTS5 expression that `recall` has quoted; best first."""
    rows = tx.execute(
        "SELECT rowid, -bm25(passages_fts, 2.0, 1.0, 1.0) FROM passages_fts"
        " WHERE passages_fts MATCH ? ORDER BY rank LIMIT ?",
        (expression, limit),
    )
    return [(int(number), float(score)) for number, score in rows]


def spans(tx: apsw.Connection, passage_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Passage id → [start, stop) in its summary's body."""
    rows = tx.execute(
        f"SELECT id, start, stop FROM passages WHERE id IN ({_marks(passage_ids)})",
        tuple(passage_ids),
    )
    return {int(number): (int(start), int(stop)) for number, start, stop in rows}


def owners(tx: apsw.Connection, passage_ids: Sequence[int]) -> dict[int, int]:
    """Passage id → summary id."""
    rows = tx.execute(
        f"SELECT id, summary_id FROM passages WHERE id IN ({_marks(passage_ids)})",
        tuple(passage_ids),
    )
    return {int(number): int(summary_id) for number, summary_id in rows}


def count_uses(tx: apsw.Connection) -> Counter[int]:
    """In how many passages each term stands, counted in these; term's number → passages."""
    rows = tx.execute("SELECT postings FROM passages")
    uses: Counter[int] = Counter()
    while block := [blob for (blob,) in islice(rows, _BLOCK)]:
        terms, counts = np.unique(unpack(block)[0]["term"], return_counts=True)
        uses.update(dict(zip(terms.tolist(), counts.tolist(), strict=True)))
    return uses


def all_owners(tx: apsw.Connection) -> Iterator[tuple[int, int]]:
    """Every passage and its summary, in order of passage."""
    yield from tx.execute("SELECT id, summary_id FROM passages ORDER BY id")


def terms_of(tx: apsw.Connection, passage_ids: Sequence[int]) -> dict[int, list[int]]:
    """Passage id → the numbers of its terms."""
    rows = tx.execute(
        f"SELECT id, postings FROM passages WHERE id IN ({_marks(passage_ids)})",
        tuple(passage_ids),
    )
    return {int(number): unpack([blob])[0]["term"].tolist() for number, blob in rows}


def count(tx: apsw.Connection) -> int:
    """How many passages there are."""
    return int(tx.execute("SELECT count(*) FROM passages").get)


def purge(tx: apsw.Connection) -> None:
    """Merge FTS5's segments, so that nothing of a deleted passage stays in them."""
    tx.execute("INSERT INTO passages_fts (passages_fts) VALUES ('optimize')")
