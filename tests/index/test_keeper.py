import threading
import time
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
import pytest

from memd.config import IndexConfig
from memd.engines.hashing import HashingEmbedder
from memd.index import keeper
from memd.index.indexer import Indexer
from memd.index.shelf import Shelf
from memd.models import Space
from memd.store import beside, saved, summaries
from tests.index.test_indexer import contents, put, words_of

HASHING = HashingEmbedder().space.name


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A copy is worth it from the first row on, and anew after ten changes."""
    monkeypatch.setattr(keeper, "ROWS_MIN", 1)
    monkeypatch.setattr(keeper, "_CHANGED_MIN", 10)


def started(db, embedder=None):
    shelf = Shelf()
    return Indexer(db, (embedder or HashingEmbedder(),), shelf, IndexConfig()), shelf


async def rested(db, count=3):
    """A vault of some memories, of which there is a copy."""
    indexer, shelf = started(db)
    for n in range(count):
        put(db, str(n), tags=(f"t{n % 2}",))
    await indexer.settle()
    await indexer._rest()
    assert indexer.status()["copy"] == {"mapped": True, "trouble": ""}
    return indexer, shelf


def lose(db, file):
    Path(beside.directory(db.path), copies(db)[0], file).unlink()


def texts(db):
    """All bytes of the copies."""
    files = Path(beside.directory(db.path)).rglob("*")
    return b"".join(file.read_bytes() for file in files if file.is_file())


def copies(db):
    folder = Path(beside.directory(db.path))
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


async def reads_as(db, shelf, *, mapped=True):
    """A start finds all that this shelf has, through the copy or without one."""
    indexer, again = started(db)
    await indexer.load()
    await indexer._complete()
    assert indexer.status()["copy"]["mapped"] is mapped
    assert contents(again) == contents(shelf)
    assert words_of(again) == words_of(shelf)
    return indexer, again


async def test_a_start_maps_the_copy_and_finds_everything(db):
    _, shelf = await rested(db)
    await reads_as(db, shelf)
    digests = shelf.columns.digest.copy()
    assert digests.all()
    _, again = await reads_as(db, shelf)
    assert (again.columns.digest[: len(digests)] == digests).all()


async def test_what_was_indexed_since_is_read_from_the_vault(db):
    indexer, shelf = await rested(db)
    put(db, "0", "another text of the first one", tags=("t9",))
    put(db, "new", "a memory that no copy knows")
    db.write_now(lambda tx: summaries.pin(tx, 2, 5))
    await indexer.settle()
    assert db.read_now(saved.unsaved) == [1, 2, 4]
    _, again = await reads_as(db, shelf)
    assert again.vocabulary.number("copi") is not None
    assert again.columns.pinned.sum() == 1


async def test_much_that_is_new_gets_its_vectors_behind_the_start(db, monkeypatch):
    monkeypatch.setattr(keeper, "EMBEDDED_MAX", 2)
    indexer, shelf = await rested(db)
    for n in range(5):
        put(db, f"new {n}")
    await indexer.settle()
    later, again = started(db)
    await db.read(later._keeper.load)
    assert again.coverage(HASHING) == pytest.approx(3 / 8)
    await reads_as(db, shelf)


async def test_a_copy_is_made_anew_when_enough_has_changed_and_the_former_goes(db):
    indexer, shelf = await rested(db)
    (first,) = copies(db)
    for n in range(9):
        put(db, f"new {n}")
    await indexer.settle()
    await indexer._rest()
    assert copies(db) == [first]
    put(db, "the tenth")
    await indexer.settle()
    await indexer._rest()
    (second,) = copies(db)
    assert second == db.read_now(saved.name) != first
    assert db.read_now(saved.unsaved) == []
    await reads_as(db, shelf)


async def test_a_shelf_lives_on_in_the_arrays_of_its_copy(db):
    indexer, shelf = await rested(db)
    held = shelf.columns.passage_id
    assert held.base is not None
    for n in range(3):
        put(db, f"new {n}")
    put(db, "0", "other words")
    await indexer.settle()
    assert indexer._keeper.status()["mapped"]
    indexer._keeper.give_back()
    await reads_as(db, shelf)
    db.write_now(saved.drop)
    await reads_as(db, shelf, mapped=False)


async def test_what_is_forgotten_is_in_no_copy_when_the_index_has_learnt_it(db):
    indexer, shelf = await rested(db)
    db.write_now(lambda tx: summaries.delete(tx, 2))
    await indexer.settle()
    assert copies(db) == []
    await reads_as(db, shelf, mapped=False)
    await indexer._rest()
    assert len(copies(db)) == 1
    await reads_as(db, shelf)


async def test_a_crash_before_the_index_has_learnt_of_it_leaves_no_copy_either(db):
    await rested(db)
    db.write_now(lambda tx: summaries.delete(tx, 2))
    indexer, shelf = started(db)
    await indexer.load()
    assert copies(db) == []
    assert shelf.columns.live_count == 2


@pytest.mark.parametrize("file", ["manifest.json", "columns.live", "postings.rows", "labels"])
async def test_a_copy_that_is_odd_is_done_without_and_replaced(db, file):
    _, shelf = await rested(db)
    if file == "labels":
        db.write_now(lambda tx: tx.execute("UPDATE labels SET kind = kind || 'x'").fetchall())
    else:
        lose(db, file)
    indexer, _ = started(db)
    await indexer.load()
    assert "was not used" in indexer.status()["copy"]["trouble"]
    await reads_as(db, shelf, mapped=False)
    db.write_now(saved.drop)
    await indexer._rest()
    await reads_as(db, shelf)


async def test_a_copy_of_another_moment_is_done_without(db):
    """As when somebody has put an older file of the vault in its place."""
    await rested(db)
    db.write_now(lambda tx: tx.execute("DELETE FROM passages WHERE id = 3").fetchall())
    indexer, again = started(db)
    await indexer.load()
    assert "makes 3 passages of 2" in indexer.status()["copy"]["trouble"]
    assert again.columns.live_count == 2


async def test_other_vectors_make_a_copy_useless(db):
    class Later(HashingEmbedder):
        @property
        def space(self):
            return Space("hashing", "words-ngrams", "9", 768)

    await rested(db)
    indexer, shelf = started(db, Later())
    await indexer.load()
    assert "other vectors" in indexer.status()["copy"]["trouble"]
    assert shelf.coverage(Later().space.name) == 1


async def test_who_waits_for_the_index_comes_first_but_not_for_ever(db):
    indexer, _ = started(db)
    put(db, "a")
    await indexer.settle()
    for _ in range(keeper._TRIES):
        await indexer._keeper.save(lambda: True)
        assert copies(db) == []
    await indexer._keeper.save(lambda: True)
    assert len(copies(db)) == 1


async def test_a_disk_that_is_full_is_told_and_the_index_goes_on(db, monkeypatch):
    indexer, shelf = started(db)
    put(db, "a")
    await indexer.settle()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memd.index.copy.write", fail)
    await indexer._rest()
    assert "No space left" in indexer.status()["copy"]["trouble"]
    assert shelf.coverage(HASHING) == 1
    put(db, "b")
    await indexer.settle()
    assert shelf.columns.live_count == 2


async def test_a_copy_that_is_overtaken_while_it_is_written_does_not_hold(db, monkeypatch):
    indexer, _ = started(db)
    put(db, "a")
    await indexer.settle()
    write = keeper.copy.write

    def overtaken(*given):
        write(*given)
        put(db, "b")

    monkeypatch.setattr("memd.index.copy.write", overtaken)
    await indexer._rest()
    assert copies(db) == []
    assert db.read_now(saved.name) is None


async def test_the_copy_has_no_text(db):
    indexer, _ = started(db)
    put(db, "a", "unmistakable zebracorn", tags=("zebratag",))
    await indexer.settle()
    await indexer._rest()
    held = texts(db)
    assert held
    assert b"zebra" not in held
    assert b"unmistak" not in held


async def test_reindexing_drops_the_copy_and_makes_another_at_rest(db):
    indexer, shelf = await rested(db)
    rows = np.flatnonzero(shelf.columns.live)
    await indexer.reindex()
    assert copies(db) == []
    assert shelf.columns.live_count == len(rows)
    await indexer._rest()
    await reads_as(db, shelf)


async def test_a_daemon_that_leaves_does_not_wait_for_a_copy(db, monkeypatch):
    indexer, _ = started(db)
    put(db, "a")
    await indexer.settle()
    write, begun = keeper.copy.write, threading.Event()

    def slow(vault, name, draft, give_up):
        begun.set()
        while not give_up():
            time.sleep(0.001)
        write(vault, name, draft, give_up)

    monkeypatch.setattr("memd.index.copy.write", slow)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(indexer._rest)
            await anyio.to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()
    assert copies(db) == []
    assert db.read_now(saved.name) is None
