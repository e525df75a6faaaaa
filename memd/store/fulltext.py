"""Passages: their full text in FTS5 and their postings as blobs. Derived, rebuildable."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apsw

from memd.store.rows import IndexRow, NewPassage, StoredPassage

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
    where = (
        "" if summary_ids is None else f" WHERE s.id IN ({','.join('?' * len(summary_ids))})"
    )
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


def put(tx: apsw.Connection, passages: Sequence[NewPassage]) -> list[StoredPassage]:
    """Store passages in both forms and return them as `load` would."""
    numbers = _number(tx, Counter(p.term for passage in passages for p in passage.postings))
    stored = []
    for passage in passages:
        blob = b"".join(
            numbers[p.term].to_bytes(4, "little")
            + bytes((min(p.in_title, 255), min(p.in_body, 255)))
            for p in passage.postings
        )
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
            StoredPassage(int(number), passage.summary_id, passage.seq, passage.length, blob)
        )
    return stored


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
    uses: Counter[int] = Counter()
    for number, blob in tx.execute(
        "SELECT id, postings FROM passages WHERE summary_id = ?", (summary_id,)
    ):
        gone.append(int(number))
        uses.update(int.from_bytes(blob[i : i + 4], "little") for i in range(0, len(blob), 6))
    tx.execute("DELETE FROM passages WHERE summary_id = ?", (summary_id,))
    tx.executemany(
        "UPDATE terms SET passages = passages - ?2 WHERE id = ?1",
        [(term, n) for term, n in uses.items()],
    )
    tx.executemany(
        "DELETE FROM terms WHERE id = ? AND passages <= 0", [(term,) for term in uses]
    )
    return gone


def load(tx: apsw.Connection) -> Iterator[StoredPassage]:
    """Every passage, in order of id."""
    for row in tx.execute(
        "SELECT id, summary_id, seq, length, postings FROM passages ORDER BY id"
    ):
        yield StoredPassage(*row)


def vocabulary(tx: apsw.Connection) -> dict[str, int]:
    """Every term and its number."""
    return {term: int(number) for number, term in tx.execute("SELECT id, term FROM terms")}


def terms_in_order(tx: apsw.Connection) -> Iterator[tuple[str, int]]:
    """Every term and its number, one after the other in order of the terms' UTF-8."""
    for term, number in tx.execute("SELECT term, id FROM terms ORDER BY term"):
        yield term, int(number)


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
        f"SELECT id, start, stop FROM passages WHERE id IN ({','.join('?' * len(passage_ids))})",
        tuple(passage_ids),
    )
    return {int(number): (int(start), int(stop)) for number, start, stop in rows}


def owners(tx: apsw.Connection, passage_ids: Sequence[int]) -> dict[int, int]:
    """Passage id → summary id."""
    rows = tx.execute(
        f"SELECT id, summary_id FROM passages WHERE id IN ({','.join('?' * len(passage_ids))})",
        tuple(passage_ids),
    )
    return {int(number): int(summary_id) for number, summary_id in rows}


def count(tx: apsw.Connection) -> int:
    """How many passages there are."""
    return int(tx.execute("SELECT count(*) FROM passages").get)


def purge(tx: apsw.Connection) -> None:
    """Merge FTS5's segments, so that nothing of a deleted passage stays in them."""
    tx.execute("INSERT INTO passages_fts (passages_fts) VALUES ('optimize')")
