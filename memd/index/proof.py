"""Whether the copy of the index beside a vault says what the vault says: as a finding of `memd doctor`.

Its files must be what was written, all of its passages are compared with the vault's, and of a sample the words and the vectors, computed
anew. What was indexed since the copy was made is left out: a start reads that from the vault. Looking
changes nothing. Not here: whether the vault's own derived rows are right (sample.py, store/integrity.py).
"""

from collections.abc import Sequence

import numpy as np

from memd.embeddings.base import LocalEmbedder
from memd.index import copy, intact
from memd.index.chunking import wording
from memd.index.copied import SYMPTOMS
from memd.index.copy import Odd
from memd.index.intact import Damaged
from memd.index.memory_index import MemoryIndex
from memd.models import Finding
from memd.store import changes, fulltext, saved
from memd.store.database import Connection

_SAMPLE = 40
_NEAR = 0.02
"""By how much a value of a vector may differ that was cut to a byte."""
_NAME = "saved index"
_REMEDY = "`memd doctor --fix` or `memd reindex` makes it anew; a start does without it"


def examine(tx: Connection, vault: str, embedder: LocalEmbedder) -> Finding:
    """Look at the copy that holds, if there is one."""
    name = saved.name(tx)
    if name is None:
        return Finding(_NAME, "ok", "none is kept yet: a start reads the vault")
    try:
        words = _compare(tx, vault, name, embedder)
    except Damaged as odd:
        words = f"it is not what was written: {odd}"
    except Odd as odd:
        return Finding(_NAME, "warning", f"it cannot be used: {odd}", _REMEDY, fixable=True)
    except SYMPTOMS as error:
        words = f"it has not what is expected: {error!r}"
    if words:
        return Finding(_NAME, "problem", words, _REMEDY, fixable=True)
    since = saved.unsaved_count(tx)
    return Finding(_NAME, "ok", f"it says what the vault says; {since} memories are newer")


def _compare(tx: Connection, vault: str, name: str, embedder: LocalEmbedder) -> str:
    """Say what is wrong with it; empty if nothing is."""
    index = MemoryIndex()
    found = copy.read(vault, name)
    for _ in intact.read_through(found, found.checks):
        pass
    index.restore(found, saved.labels(tx))
    columns = index.columns
    newer = [*saved.unsaved(tx), *(number for _, number in changes.pending(tx, -1))]
    mine = columns.passage_id[columns.live & ~np.isin(columns.summary_id, newer)]
    owners = np.array(list(fulltext.all_owners(tx)), np.int64).reshape(-1, 2)
    theirs = owners[~np.isin(owners[:, 1], newer), 0]
    if not np.array_equal(np.sort(mine), theirs):
        return (
            f"it has {len(mine)} passages, the vault {len(theirs)}, and they are not the same"
        )
    some = mine[:: max(1, -(-len(mine) // _SAMPLE))].tolist()
    wrong = _strange(tx, index, embedder, some)
    told = ", ".join(map(str, wrong[:5]))
    return (
        f"{len(wrong)} of {len(some)} passages have other words or vectors: {told}"
        if wrong
        else ""
    )


def _strange(
    tx: Connection, index: MemoryIndex, embedder: LocalEmbedder, passage_ids: Sequence[int]
) -> list[int]:
    if not passage_ids:
        return []
    rows = index.columns.rows_with(passage_ids)
    texts = [
        wording(t, b, start, stop) for _, start, stop, t, b in fulltext.texts(tx, passage_ids)
    ]
    wanted, found = embedder.embed(texts), index.matrices[embedder.space.name].vectors(rows)
    is_near = (np.abs(wanted - found) < _NEAR).all(axis=1)
    stored = fulltext.terms_of(tx, passage_ids)
    return [
        number
        for number, row, near in zip(passage_ids, rows.tolist(), is_near.tolist(), strict=True)
        if not near
        or sorted(index.postings.matched(row, stored[number])) != sorted(stored[number])
    ]
