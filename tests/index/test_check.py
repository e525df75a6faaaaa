import pytest

from memd.embeddings.hashing import HashingEmbedder
from memd.index import indexer
from memd.index.snapshot import read_snapshot
from memd.store import fulltext
from tests.index.test_indexer import put
from tests.index.test_snapshot import flip, rested, seal, small, snapshot_path, started
from tests.store.test_integrity import break_it, vault

__all__ = ["small", "vault"]


def compare(vault, tokens_max=400):
    return vault.db.read_now(lambda tx: indexer.check_sample(tx, tokens_max))


async def test_what_is_indexed_now_comes_out_the_same(vault):
    found = compare(vault)
    assert (found.verdict, found.words[:2]) == ("ok", "3 ")


async def test_an_index_of_other_settings_is_found(vault):
    found = compare(vault, tokens_max=2)
    assert (found.verdict, found.fixable) == ("problem", True)
    assert "3 of 3" in found.words


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE summaries SET body = 'other words'; DELETE FROM changes",
        "DELETE FROM terms WHERE term = 'ledger'",
    ],
)
async def test_an_index_that_is_not_of_the_truth_is_found(vault, statement):
    break_it(vault, statement)
    assert "3 of 3" in compare(vault).words


async def examine(db):
    return await db.read(lambda tx: indexer.check_snapshot(tx, db.path, HashingEmbedder()))


@pytest.mark.usefixtures("small")
async def test_a_snapshot_that_says_what_the_vault_says_is_well(db):
    assert (await examine(db)).verdict == "ok"
    indexer, _ = await rested(db)
    put(db, "0", "other words")
    await indexer.settle()
    put(db, "waits")
    found = await examine(db)
    assert (found.verdict, "1 memories are newer" in found.words) == ("ok", True)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["columns.passage_id", "space0.vectors", "postings.0.terms"])
async def test_a_snapshot_that_says_otherwise_is_found(db, name):
    await rested(db)
    path = snapshot_path(db)
    array = read_snapshot(db.path, db.read_now(fulltext.snapshot_name)).arrays[name]
    held = path.read_bytes()[:-4]
    at = held.index(array.tobytes())
    seal(path, held[:at] + bytes(array.nbytes) + held[at + array.nbytes :])
    found = await examine(db)
    assert "is damaged" not in found.words
    assert (found.verdict, found.fixable) == ("problem", True)


@pytest.mark.usefixtures("small")
async def test_a_damaged_snapshot_is_a_problem(db):
    await rested(db)
    flip(snapshot_path(db), 1_000)
    found = await examine(db)
    assert "is damaged" in found.words
    assert (found.verdict, found.fixable) == ("problem", True)


@pytest.mark.usefixtures("small")
async def test_a_lost_snapshot_is_reported_and_repaired_by_reindexing(db):
    await rested(db)
    snapshot_path(db).unlink()
    found = await examine(db)
    assert (found.verdict, found.fixable) == ("warning", True)
    indexer, _ = started(db)
    await indexer.reindex()
    assert (await examine(db)).verdict == "ok"
