"""Checks of `memd doctor`: index a sample of memories again, and compare the saved index with the vault."""

from collections.abc import Sequence

import numpy as np

from memd.embeddings.base import LocalEmbedder
from memd.index.chunking import TOKENS_MAX, passage_text, split_into_passages
from memd.index.memory_index import MemoryIndex
from memd.index.snapshot import SnapshotDamaged, SnapshotUnusable, read_snapshot
from memd.models import Finding, Summary
from memd.store import fulltext, integrity, summaries
from memd.store.database import Connection

SAMPLE = 40
"""Memories, or passages: enough to see what concerns all, in a moment."""
_NEAR = 0.02
"""How much a value of a vector may differ that was quantized to a byte."""


def check_sample(tx: Connection, tokens_max: int = TOKENS_MAX, limit: int = SAMPLE) -> Finding:
    """Compute the passages of up to `limit` memories and report how many differ from the stored ones.

    This finds what no count finds: an index made by another memd or with another tokenizer.
    """
    chosen = summaries.summaries_by_ids(tx, integrity.sample_summaries(tx, limit))
    stale = [
        number
        for number, one in sorted(chosen.items())
        if not has_same_passages(tx, one, tokens_max)
    ]
    if not stale:
        return Finding(
            "sample", "ok", f"{len(chosen)} memories were indexed again with the same result"
        )
    examples = ", ".join(f"#{number}" for number in stale[:5])
    words = f"{len(stale)} of {len(chosen)} memories would be indexed differently now: {examples}"
    remedy = "run `memd doctor --fix` or `memd reindex`"
    return Finding("sample", "problem", words, remedy, fixable=True)


def has_same_passages(
    tx: Connection, summary: Summary | None, tokens_max: int = TOKENS_MAX
) -> bool:
    """Return whether a memory would be indexed as it is now; False if it is gone."""
    if summary is None:
        return False
    stored = [
        (one.start, one.stop, one.length, dict(one.terms))
        for one in integrity.indexed_passages(tx, summary.id)
    ]
    return stored == [
        (one.start, one.stop, one.length, {p.term: (p.in_title, p.in_body) for p in one.postings})
        for one in split_into_passages(summary, tokens_max=tokens_max)
    ]


def check_snapshot(tx: Connection, vault: str, embedder: LocalEmbedder) -> Finding:
    """Compare the saved index with the vault: all passages, and of a sample the words and vectors.

    Memories indexed since are left out; a start reads them from the vault.
    """
    name, remedy = fulltext.snapshot_name(tx), "run `memd doctor --fix` or `memd reindex`"
    if name is None:
        return Finding("saved index", "ok", "none is saved yet; a start reads the vault")
    try:
        words = _compare_snapshot(tx, vault, name, embedder)
    except SnapshotDamaged as error:
        words = f"it is damaged: {error}"
    except SnapshotUnusable as error:
        words = f"it cannot be used: {error}"
        return Finding("saved index", "warning", words, remedy, fixable=True)
    except (LookupError, ValueError, TypeError) as error:
        words = f"it cannot be read: {error!r}"
    if words:
        return Finding("saved index", "problem", words, remedy, fixable=True)
    words = f"it matches the vault; {fulltext.count_unsaved(tx)} memories are newer"
    return Finding("saved index", "ok", words)


def _compare_snapshot(tx: Connection, vault: str, name: str, embedder: LocalEmbedder) -> str:
    """Say what is wrong with the snapshot; empty if nothing is."""
    found, index = read_snapshot(vault, name), MemoryIndex()
    index.restore(found, fulltext.snapshot_labels(tx))
    columns = index.columns
    newer = [*fulltext.unsaved_ids(tx), *(number for _, number in fulltext.pending_changes(tx, -1))]
    mine = columns.passage_id[columns.live & ~np.isin(columns.summary_id, newer)]
    owners = np.array(list(fulltext.passage_owners(tx).items()), np.int64).reshape(-1, 2)
    theirs = owners[~np.isin(owners[:, 1], newer), 0]
    if not np.array_equal(np.sort(mine), theirs):
        return f"it has {len(mine)} passages, the vault {len(theirs)}, and they are not the same"
    some = mine[:: max(1, -(-len(mine) // SAMPLE))].tolist()
    if not (wrong := _differing_passages(tx, index, embedder, some)):
        return ""
    examples = ", ".join(map(str, wrong[:5]))
    return f"{len(wrong)} of {len(some)} passages differ in words or vectors: {examples}"


def _differing_passages(
    tx: Connection, index: MemoryIndex, embedder: LocalEmbedder, passage_ids: Sequence[int]
) -> list[int]:
    if not passage_ids:
        return []
    rows = index.columns.rows_with(passage_ids)
    texts = [
        passage_text(t, b, start, stop)
        for _, start, stop, t, b in fulltext.passage_texts(tx, passage_ids)
    ]
    wanted, found = embedder.embed(texts), index.matrices[embedder.space.name].vectors(rows)
    is_near = (np.abs(wanted - found) < _NEAR).all(axis=1)
    stored = fulltext.terms_of(tx, passage_ids)
    return [
        number
        for number, row, near in zip(passage_ids, rows.tolist(), is_near.tolist(), strict=True)
        if not near
        or sorted(index.postings.terms_in(row, stored[number])) != sorted(stored[number])
    ]
