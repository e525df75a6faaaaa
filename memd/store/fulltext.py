"""Passages, their FTS5 index and postings, the queue of changes, and the state of the index's snapshot.

All of it is derived from summaries and can be rebuilt.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from apsw import Connection
from numpy.typing import NDArray

from memd.store import IndexRow, NewPassage, StoredPassage
from memd.store.filter import NOT_SUPERSEDED, REJECTED, marks
from memd.store.ledger import read_note, write_note
from memd.store.queries import count_rows, fetch_all, fetch_column, fetch_ids, fetch_int, has_rows

# ── Packed postings ────────────────────────────────────────────────────────────────────────────
# Two bytes a posting instead of six. The term ids of a passage ascend, so each is stored as its
# distance from the one before. A token is that distance times four plus a code: the term occurs once
# in the body, once in the title, once in both, or otherwise. It is written seven bits to a byte, the
# lowest first, the last byte below 128. A term that occurs otherwise has its two counts, a byte each,
# at the end of the blob; the number of such terms is at the beginning, as u2.

POSTING = np.dtype([("term", "<u4"), ("title", "u1"), ("body", "u1")])
"""One posting, unpacked."""
_COUNT_MAX = 255
"""Occurrences of a term in one title or body that can be stored."""
_CODE_TITLE = np.array([0, 1, 1, 0], np.uint8)
_CODE_BODY = np.array([1, 0, 1, 0], np.uint8)
_CODE_OTHER = 3
_HEAD_BYTES = 2
_TOKEN_BITS = 7
"""Bits of a token in one byte."""
_TOKEN_BYTES_MAX = 5
_MORE = 1 << _TOKEN_BITS
"""Set in every byte of a token but the last."""
_TERMS_NOTE = "tokenizer_version"
_COMPARED_NOTE = "terms_compared"
_PASSAGES_PER_BLOCK = 512
"""Passages that are unpacked at a time."""

Postings = NDArray[np.void]
Integers = NDArray[np.int64]


def pack_postings(postings: Postings, sizes: Sequence[int]) -> list[bytes]:
    """One blob per passage. `postings` has dtype POSTING, passage by passage; `sizes` is how many each has.

    The order of postings within a passage is lost.
    """
    counts = np.asarray(sizes, np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    postings = postings[np.lexsort((postings["term"], owner))]
    terms = postings["term"].astype(np.int64)
    before = np.concatenate(([0], terms[:-1])) * np.concatenate(([False], owner[1:] == owner[:-1]))
    codes = _encode_counts(postings)
    written, ends = _encode_tokens(((terms - before) << 2) | codes)
    odd = np.flatnonzero(codes == _CODE_OTHER)
    tails = np.stack((postings["title"][odd], postings["body"][odd]), axis=1)
    stops = np.concatenate(([0], ends))[np.concatenate(([0], np.cumsum(counts)))].tolist()
    odds = np.searchsorted(owner[odd], np.arange(len(counts) + 1)).tolist()
    return [
        (odds[at + 1] - odds[at]).to_bytes(_HEAD_BYTES, "little")
        + written[stops[at] : stops[at + 1]].tobytes()
        + tails[odds[at] : odds[at + 1]].tobytes()
        for at in range(len(counts))
    ]


def _encode_counts(postings: Postings) -> Integers:
    title, body = postings["title"], postings["body"]
    both = 2 * title.astype(np.int64) + body
    return np.where(
        (title > 1) | (body > 1) | (both == 0), _CODE_OTHER, np.array([0, 0, 1, 2])[both % 4]
    )


def _encode_tokens(tokens: Integers) -> tuple[NDArray[np.uint8], Integers]:
    """The tokens as bytes, and the end of each."""
    lengths = np.ones(len(tokens), np.int64)
    for step in range(1, _TOKEN_BYTES_MAX):
        lengths += tokens >> (_TOKEN_BITS * step) > 0
    ends = np.cumsum(lengths)
    found = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for step in range(_TOKEN_BYTES_MAX):
        those = np.flatnonzero(lengths > step)
        low = (tokens[those] >> (_TOKEN_BITS * step)) & (_MORE - 1)
        found[(ends - lengths)[those] + step] = low | np.where(lengths[those] > step + 1, _MORE, 0)
    return found, ends


def unpack_postings(blobs: Sequence[bytes]) -> tuple[Postings, Integers]:
    """The postings of these passages, one passage after the other, and how many each has.

    Raises ValueError if they cannot be decoded.
    """
    odd = [int.from_bytes(blob[:_HEAD_BYTES], "little") for blob in blobs]
    tokens, tails = [], []
    for blob, count in zip(blobs, odd, strict=True):
        stop = len(blob) - 2 * count
        if stop < _HEAD_BYTES:
            raise ValueError("these are no postings")
        tokens.append(blob[_HEAD_BYTES:stop])
        tails.append(blob[stop:])
    written = np.frombuffer(b"".join(tokens), np.uint8)
    ends = np.flatnonzero(written < _MORE)
    borders = np.cumsum([len(part) for part in tokens], dtype=np.int64)
    stops = np.searchsorted(ends, borders)
    sizes = np.diff(stops, prepend=0)
    found = np.zeros(len(ends), POSTING)
    if len(ends):
        values = _decode_tokens(written, ends)
        sums = np.cumsum(values >> 2)
        firsts = stops - sizes
        before = np.where(firsts > 0, sums[firsts - 1], 0)
        codes = values & _CODE_OTHER
        found["term"] = sums - np.repeat(before, sizes)
        found["title"], found["body"] = _CODE_TITLE[codes], _CODE_BODY[codes]
        counts = np.frombuffer(b"".join(tails), np.uint8).reshape(-1, 2)
        other = np.flatnonzero(codes == _CODE_OTHER)
        found["title"][other], found["body"][other] = counts[:, 0], counts[:, 1]
    return found, sizes


def _decode_tokens(written: NDArray[np.uint8], ends: Integers) -> Integers:
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    values = (written[starts] & (_MORE - 1)).astype(np.int64)
    for step in range(1, int(lengths.max())):
        those = np.flatnonzero(lengths > step)
        low = (written[starts[those] + step] & (_MORE - 1)).astype(np.int64)
        values[those] |= low << (_TOKEN_BITS * step)
    return values


# ── Passages ───────────────────────────────────────────────────────────────────────────────────


def index_rows(tx: Connection, summary_ids: Sequence[int] | None = None) -> Iterator[IndexRow]:
    """Every summary as the index knows it, without its text; or these, unknown ids left out."""
    where, values = _restrict_to("s.id", summary_ids)
    rows: Iterator[tuple[Any, ...]] = tx.execute(
        # In the order of the fields of IndexRow.
        "SELECT s.id, s.project_id, coalesce(s.session_id, 0), s.kind, s.tier, s.source, s.at,"
        # What was rejected has expired before everything: no question, of whatever time, sees it.
        f" iif({REJECTED.format('s.id')}, 0, s.expires_at), s.pinned_at IS NOT NULL,"
        f" s.archived_at IS NOT NULL OR NOT ({NOT_SUPERSEDED}), s.quality, s.confidence, s.revisions,"
        f" s.duplicates, length(s.title), length(s.body), s.tags FROM summaries s{where} ORDER BY s.id",
        values,
    )
    for row in rows:
        facts = list(row)
        facts[8:10] = bool(row[8]), bool(row[9])
        facts[-1] = () if row[-1] == "[]" else tuple(json.loads(row[-1]))
        yield IndexRow(*facts)


def _restrict_to(column: str, ids: Sequence[int] | None) -> tuple[str, tuple[int, ...]]:
    """A WHERE clause for these ids, and its values; empty for None."""
    return ("", ()) if ids is None else (f" WHERE {column} IN ({marks(ids)})", tuple(ids))


def put_passages(
    tx: Connection, passages: Sequence[NewPassage], numbers: Mapping[str, int] | None = None
) -> list[StoredPassage]:
    """Store passages in both forms, and return them as `load_passages` would.

    `numbers`: what `number_terms` returned for them; None calls it.
    """
    if numbers is None:
        numbers = number_terms(tx, passages)
    postings = np.array(
        [
            (numbers[p.term], min(p.in_title, _COUNT_MAX), min(p.in_body, _COUNT_MAX))
            for passage in passages
            for p in passage.postings
        ],
        POSTING,
    )
    packed = pack_postings(postings, [len(passage.postings) for passage in passages])
    stored = []
    for new, blob, wide in zip(passages, packed, _split_postings(packed), strict=True):
        number = tx.execute(
            "INSERT INTO passages (summary_id, seq, start, stop, length, postings)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            (new.summary_id, new.seq, new.start, new.stop, new.length, blob),
        ).get
        tx.execute(
            "INSERT INTO passages_fts (rowid, title, body, identifiers) VALUES (?, ?, ?, ?)",
            (number, new.title, new.text, new.identifiers),
        )
        stored.append(StoredPassage(int(number), new.summary_id, new.seq, new.length, wide))
    return stored


def _split_postings(packed: Sequence[bytes]) -> list[bytes]:
    """Unpack postings into one blob per passage, six bytes a posting."""
    found, sizes = unpack_postings(packed)
    whole = found.tobytes()
    stops = (sizes.cumsum() * POSTING.itemsize).tolist()
    return [whole[a:b] for a, b in zip([0, *stops], stops, strict=False)]


def number_terms(tx: Connection, passages: Sequence[NewPassage]) -> dict[str, int]:
    """Count the terms of new passages in the vocabulary; term → its id."""
    uses = Counter(p.term for passage in passages for p in passage.postings)
    return {
        term: int(
            tx.execute(
                "INSERT INTO terms (term, passages) VALUES (?1, ?2)"
                " ON CONFLICT (term) DO UPDATE SET passages = passages + ?2 RETURNING id",
                (term, count),
            ).get
        )
        for term, count in uses.items()
    }


def remove_passages(tx: Connection, summary_id: int) -> list[int]:
    """Delete a summary's passages, their vectors and unused terms; the ids of those passages."""
    rows: list[tuple[Any, ...]] = tx.execute(
        "SELECT id, postings FROM passages WHERE summary_id = ?", (summary_id,)
    ).fetchall()
    uses = Counter(unpack_postings([blob for _, blob in rows])[0]["term"].tolist())
    tx.execute("DELETE FROM passages WHERE summary_id = ?", (summary_id,))
    tx.executemany("UPDATE terms SET passages = passages - ?2 WHERE id = ?1", list(uses.items()))
    tx.executemany("DELETE FROM terms WHERE id = ? AND passages <= 0", [(term,) for term in uses])
    return [int(number) for number, _ in rows]


def load_passages(
    tx: Connection, summary_ids: Sequence[int] | None = None
) -> Iterator[StoredPassage]:
    """Every passage, or those of these summaries, in order of id."""
    where, values = _restrict_to("summary_id", summary_ids)
    rows = tx.execute(
        f"SELECT id, summary_id, seq, length, postings FROM passages{where} ORDER BY id", values
    )
    while block := list(islice(rows, _PASSAGES_PER_BLOCK)):
        wide = _split_postings([row[-1] for row in block])
        for (number, owner, seq, length, _), postings in zip(block, wide, strict=True):
            yield StoredPassage(number, owner, seq, length, postings)


def passage_texts(
    tx: Connection, passage_ids: Sequence[int] | None = None
) -> Iterator[tuple[int, int, int, str, str]]:
    """(id, start, stop, title and body of its memory) of every passage, or of these, in order of id.

    A passage whose memory was deleted is left out.
    """
    where, values = _restrict_to("p.id", passage_ids)
    yield from tx.execute(
        "SELECT p.id, p.start, p.stop, s.title, s.body FROM passages p"
        f" CROSS JOIN summaries s ON s.id = p.summary_id{where} ORDER BY p.id",
        values,
    )


def terms_in_order(tx: Connection) -> tuple[bytes, bytes]:
    """Every term in UTF-8, sorted, one a line; and their ids in that order, one a line.

    Reading a million terms row by row would take a second.
    """
    words, numbers = tx.execute(
        "SELECT CAST(group_concat(term, char(10)) AS BLOB), CAST(group_concat(id, char(10)) AS BLOB)"
        " FROM (SELECT term, id FROM terms ORDER BY term)"
    ).get
    return words or b"", numbers or b""


def match_passages(tx: Connection, expression: str, limit: int) -> list[tuple[int, float]]:
    """(passage id, −bm25) for an FTS5 expression, which `recall` has quoted; best first."""
    sql = (
        "SELECT rowid, -bm25(passages_fts, 2.0, 1.0, 1.0) FROM passages_fts"
        " WHERE passages_fts MATCH ? ORDER BY rank LIMIT ?"
    )
    return fetch_all(tx, sql, (expression, limit))


def newest_matches(tx: Connection, expression: str, limit: int) -> list[int]:
    """The ids of the newest passages that match an FTS5 expression."""
    sql = "SELECT rowid FROM passages_fts WHERE passages_fts MATCH ? ORDER BY rowid DESC LIMIT ?"
    return fetch_column(tx, sql, (expression, limit))


def indexed_texts(tx: Connection, passage_ids: Sequence[int]) -> dict[int, str]:
    """Passage id → what it is found by: title, its part of the body, tags, file names and topic key, a line each."""
    where, values = _restrict_to("p.id", passage_ids)
    rows = tx.execute(
        "SELECT p.id, p.start, p.stop, s.title, s.body, s.tags, s.files, coalesce(s.topic_key, '')"
        f" FROM passages p CROSS JOIN summaries s ON s.id = p.summary_id{where}",
        values,
    )
    return {
        int(number): "\n".join((title, body[start:stop], *names))
        for number, start, stop, title, body, *names in rows
    }


def passage_spans(tx: Connection, passage_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Passage id → [start, stop) in its summary's body."""
    where, values = _restrict_to("id", passage_ids)
    rows = tx.execute(f"SELECT id, start, stop FROM passages{where}", values)
    return {int(number): (int(start), int(stop)) for number, start, stop in rows}


def passage_owners(tx: Connection, passage_ids: Sequence[int] | None = None) -> dict[int, int]:
    """Passage id → summary id, of every passage or of these, in order of passage."""
    where, values = _restrict_to("id", passage_ids)
    return dict(tx.execute(f"SELECT id, summary_id FROM passages{where} ORDER BY id", values))


def terms_of(tx: Connection, passage_ids: Sequence[int]) -> dict[int, list[int]]:
    """Passage id → the ids of its terms."""
    where, values = _restrict_to("id", passage_ids)
    rows = tx.execute(f"SELECT id, postings FROM passages{where}", values)
    return {int(number): unpack_postings([blob])[0]["term"].tolist() for number, blob in rows}


def count_term_uses(tx: Connection) -> Counter[int]:
    """Term id → in how many passages it occurs, counted in the passages themselves."""
    rows = tx.execute("SELECT postings FROM passages")
    uses: Counter[int] = Counter()
    while block := [blob for (blob,) in islice(rows, _PASSAGES_PER_BLOCK)]:
        terms, counts = np.unique(unpack_postings(block)[0]["term"], return_counts=True)
        uses.update(dict(zip(terms.tolist(), counts.tolist(), strict=True)))
    return uses


def count_passages(tx: Connection) -> int:
    """Count the passages."""
    return count_rows(tx, "passages")


def purge_passages(tx: Connection) -> None:
    """Merge FTS5's segments, so that they hold nothing of deleted passages."""
    tx.execute("INSERT INTO passages_fts (passages_fts) VALUES ('optimize')")


# ── Changes that the index does not know yet; triggers write them ──────────────────────────────


def pending_changes(tx: Connection, limit: int) -> list[tuple[int, int]]:
    """(seq, summary id) of the oldest changes."""
    return fetch_all(tx, "SELECT seq, summary_id FROM changes ORDER BY seq LIMIT ?", (limit,))


def remove_changes(tx: Connection, seqs: Iterable[int]) -> None:
    """Remove changes that are in the index. A summary that changed again has another seq and stays."""
    tx.executemany("DELETE FROM changes WHERE seq = ?", [(seq,) for seq in seqs])


def still_pending_changes(tx: Connection, seqs: Iterable[int]) -> set[int]:
    """Return the changes among these that are still queued and whose summary has not changed again."""
    return {seq for seq in seqs if has_rows(tx, "changes WHERE seq = ?", (seq,))}


def last_change(tx: Connection) -> int:
    """The seq of the newest pending change; 0 if there is none."""
    return fetch_int(tx, "SELECT max(seq) FROM changes") or 0


def count_changes(tx: Connection) -> int:
    """Count the pending changes."""
    return count_rows(tx, "changes")


def queue_changes(tx: Connection, summary_ids: Iterable[int]) -> None:
    """Queue these summaries."""
    rows = [(number,) for number in summary_ids]
    tx.executemany("INSERT OR REPLACE INTO changes (summary_id) VALUES (?)", rows)


def queue_reindex(tx: Connection) -> int:
    """Queue every summary, and every passage whose summary was deleted; how many changes are pending."""
    for source in ("SELECT id FROM summaries", "SELECT DISTINCT summary_id FROM passages"):
        tx.execute(f"INSERT OR REPLACE INTO changes (summary_id) {source}")
    return count_changes(tx)


def tokenizer_version(tx: Connection) -> int:
    """Return the version of the tokenizer with which texts were indexed; 1 before it was recorded."""
    return int(read_note(tx, _TERMS_NOTE) or 1)


def note_tokenizer_version(tx: Connection, version: int) -> None:
    """Note that everything is indexed, or queued, by the rules of this version."""
    write_note(tx, _TERMS_NOTE, str(version))


def last_compared(tx: Connection, version: int) -> int:
    """The last summary that was compared with what the rules of this version make of it; 0 before the first."""
    noted, _, last = (read_note(tx, _COMPARED_NOTE) or "").partition(" ")
    return int(last) if noted == str(version) else 0


def queue_outdated(tx: Connection, outdated: Iterable[int], last: int, version: int) -> None:
    """Queue the summaries of which other rules made their terms; all up to `last` are compared."""
    queue_changes(tx, outdated)
    write_note(tx, _COMPARED_NOTE, f"{version} {last}")


def indexed_summaries(tx: Connection, after: int, limit: int) -> list[int]:
    """The next summaries with a passage after an id, in order."""
    sql = (
        "SELECT DISTINCT summary_id FROM passages WHERE summary_id > ? ORDER BY summary_id LIMIT ?"
    )
    return fetch_ids(tx, sql, (after, limit))


# ── The index's snapshot ───────────────────────────────────────────────────────────────────────
# A valid snapshot differs from the index only by the summaries in `unsaved`, which are written in
# the transaction that indexes them. A trigger invalidates it when a summary is deleted. Its name is
# random, so that a restored or copied vault finds the very snapshot that it knows, or none.

Labels = Mapping[str, Sequence[Any]]
"""Kind → what its codes 0, 1, 2 … stand for, as JSON values."""


def snapshot_name(tx: Connection) -> str | None:
    """The name of the valid snapshot, or None."""
    found = tx.execute("SELECT name FROM saved").get
    return None if found is None else str(found)


def new_snapshot_name(tx: Connection) -> str:
    """A name that no snapshot has."""
    return str(tx.execute("SELECT lower(hex(randomblob(8)))").get)


def record_snapshot(tx: Connection, name: str, labels: Labels) -> bool:
    """Make this snapshot of everything indexed the valid one; False if changes are pending.

    A pending change may be of a memory that was just forgotten and is in the snapshot.
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


def invalidate_snapshot(tx: Connection) -> None:
    """Make no snapshot valid."""
    for table in ("saved", "unsaved", "labels"):
        tx.execute(f"DELETE FROM {table}")


def mark_unsaved(tx: Connection, summary_ids: Iterable[int]) -> None:
    """Note that these summaries are no longer as in the snapshot."""
    sql = "INSERT OR IGNORE INTO unsaved (summary_id) SELECT ? WHERE EXISTS (SELECT 1 FROM saved)"
    tx.executemany(sql, [(number,) for number in summary_ids])


def unsaved_ids(tx: Connection) -> list[int]:
    """The summaries that are not as in the snapshot, in order of id."""
    return fetch_ids(tx, "SELECT summary_id FROM unsaved ORDER BY summary_id")


def count_unsaved(tx: Connection) -> int:
    """Count the summaries that differ from the snapshot."""
    return count_rows(tx, "unsaved")


def snapshot_labels(tx: Connection) -> dict[str, list[Any]]:
    """Kind → what the codes of the valid snapshot stand for."""
    found: dict[str, list[Any]] = {"sources": [], "tags": []}
    for kind, value in tx.execute("SELECT kind, value FROM labels ORDER BY kind, code"):
        found[kind].append(json.loads(value))
    return found
