import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from memd.embeddings.hashing import HashingEmbedder
from memd.index import copy, proof
from memd.store import beside
from tests.index.test_indexer import put
from tests.index.test_keeper import copies, lose, rested, small, started

__all__ = ["small"]


async def examine(db):
    return await db.read(lambda tx: proof.examine(tx, db.path, HashingEmbedder()))


async def test_a_copy_that_says_what_the_vault_says_is_well(db):
    assert (await examine(db)).verdict == "ok"
    indexer, _ = await rested(db)
    put(db, "0", "other words")
    await indexer.settle()
    put(db, "waits")
    found = await examine(db)
    assert (found.verdict, "1 memories are newer" in found.words) == ("ok", True)


def change(db, name, dtype, work):
    file = Path(beside.directory(db.path), copies(db)[0], name)
    held = np.fromfile(file, dtype)
    work(held)
    held.tofile(file)


def seal(db, name):
    """Let the manifest say that this is what was written."""
    folder = Path(beside.directory(db.path), copies(db)[0])
    told = json.loads((folder / "manifest.json").read_text().partition("\n")[2])
    told["files"][name]["check"] = zlib.crc32((folder / name).read_bytes())
    text = json.dumps(told)
    (folder / "manifest.json").write_text(f"{copy._check(text)}\n{text}")


def zero(held):
    held[:] = 0


@pytest.mark.parametrize("words", ["not what was written", ""])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("columns.passage_id", np.int64),
        ("space0.vectors", np.float32),
        ("postings.terms", np.uint32),
    ],
)
async def test_a_copy_that_says_otherwise_is_found(db, name, dtype, words):
    await rested(db)
    change(db, name, dtype, zero)
    if not words:
        seal(db, name)
    found = await examine(db)
    assert ("not what was written" in found.words) is bool(words)
    assert (found.verdict, found.fixable) == ("problem", True)


async def test_a_copy_that_is_lost_is_told_and_mended_by_reindexing(db):
    await rested(db)
    lose(db, "manifest.json")
    found = await examine(db)
    assert (found.verdict, found.fixable) == ("warning", True)
    indexer, _ = started(db)
    await indexer.reindex()
    assert (await examine(db)).verdict == "ok"
