import contextlib
import threading
import time
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
import pytest

from memd.config import IndexConfig
from memd.embeddings.hashing import HashingEmbedder
from memd.index import intact, keeper
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
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
    index = MemoryIndex()
    return Indexer(db, (embedder or HashingEmbedder(),), index, IndexConfig()), index


async def rested(db, count=3):
    """A vault of some memories, of which there is a copy."""
    indexer, index = started(db)
    for n in range(count):
        put(db, str(n), tags=(f"t{n % 2}",))
    await indexer.settle()
    await indexer._rest()
    assert indexer.status()["copy"] == {"mapped": True, "trouble": ""}
    return indexer, index


def lose(db, file):
    Path(beside.directory(db.path), copies(db)[0], file).unlink()


def texts(db):
    """All bytes of the copies."""
    files = Path(beside.directory(db.path)).rglob("*")
    return b"".join(file.read_bytes() for file in files if file.is_file())


def copies(db):
    folder = Path(beside.directory(db.path))
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


async def reads_as(db, index, *, mapped=True):
    """A start finds all that this index has, through the copy or without one."""
    indexer, again = started(db)
    await indexer.load()
    await indexer._complete()
    assert indexer.status()["copy"]["mapped"] is mapped
    assert contents(again) == contents(index)
    assert words_of(again) == words_of(index)
    return indexer, again


async def test_a_start_maps_the_copy_and_finds_everything(db):
    _, index = await rested(db)
    await reads_as(db, index)
    digests = index.columns.digest.copy()
    assert digests.all()
    _, again = await reads_as(db, index)
    assert (again.columns.digest[: len(digests)] == digests).all()


async def test_what_was_indexed_since_is_read_from_the_vault(db):
    indexer, index = await rested(db)
    put(db, "0", "another text of the first one", tags=("t9",))
    put(db, "new", "a memory that no copy knows")
    db.write_now(lambda tx: summaries.pin(tx, 2, 5))
    await indexer.settle()
    assert db.read_now(saved.unsaved) == [1, 2, 4]
    _, again = await reads_as(db, index)
    assert again.vocabulary.number("copi") is not None
    assert again.columns.pinned.sum() == 1


async def test_much_that_is_new_gets_its_vectors_behind_the_start(db, monkeypatch):
    monkeypatch.setattr(keeper, "EMBEDDED_MAX", 2)
    indexer, index = await rested(db)
    for n in range(5):
        put(db, f"new {n}")
    await indexer.settle()
    later, again = started(db)
    await db.read(later._keeper.load)
    assert again.coverage(HASHING) == pytest.approx(3 / 8)
    await reads_as(db, index)


async def test_a_copy_is_made_anew_when_enough_has_changed_and_the_former_goes(db):
    indexer, index = await rested(db)
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
    await reads_as(db, index)


async def test_a_shelf_lives_on_in_the_arrays_of_its_copy(db):
    indexer, index = await rested(db)
    held = index.columns.passage_id
    assert held.base is not None
    for n in range(3):
        put(db, f"new {n}")
    put(db, "0", "other words")
    await indexer.settle()
    assert indexer._keeper.status()["mapped"]
    await reads_as(db, index)
    db.write_now(saved.drop)
    await reads_as(db, index, mapped=False)


async def test_what_is_forgotten_is_in_no_copy_when_the_index_has_learnt_it(db):
    indexer, index = await rested(db)
    db.write_now(lambda tx: summaries.delete(tx, 2))
    await indexer.settle()
    assert copies(db) == []
    await reads_as(db, index, mapped=False)
    await indexer._rest()
    assert len(copies(db)) == 1
    await reads_as(db, index)


async def test_a_crash_before_the_index_has_learnt_of_it_leaves_no_copy_either(db):
    await rested(db)
    db.write_now(lambda tx: summaries.delete(tx, 2))
    indexer, index = started(db)
    await indexer.load()
    assert copies(db) == []
    assert index.columns.live_count == 2


@pytest.mark.parametrize("file", ["manifest.json", "columns.live", "postings.rows", "labels"])
async def test_a_copy_that_is_odd_is_done_without_and_replaced(db, file):
    _, index = await rested(db)
    if file == "labels":
        db.write_now(lambda tx: tx.execute("UPDATE labels SET kind = kind || 'x'").fetchall())
    else:
        lose(db, file)
    indexer, _ = started(db)
    await indexer.load()
    assert "was not used" in indexer.status()["copy"]["trouble"]
    await reads_as(db, index, mapped=False)
    db.write_now(saved.drop)
    await indexer._rest()
    await reads_as(db, index)


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
    indexer, index = started(db, Later())
    await indexer.load()
    assert "other vectors" in indexer.status()["copy"]["trouble"]
    assert index.coverage(Later().space.name) == 1


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
    indexer, index = started(db)
    put(db, "a")
    await indexer.settle()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memd.index.copy.write", fail)
    await indexer._rest()
    assert "No space left" in indexer.status()["copy"]["trouble"]
    assert index.coverage(HASHING) == 1
    put(db, "b")
    await indexer.settle()
    assert index.columns.live_count == 2


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
    indexer, index = await rested(db)
    rows = np.flatnonzero(index.columns.live)
    await indexer.reindex()
    assert copies(db) == []
    assert index.columns.live_count == len(rows)
    await indexer._rest()
    await reads_as(db, index)


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
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(indexer._rest)
            await anyio.to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()
    assert copies(db) == []
    assert db.read_now(saved.name) is None


def damage(db, kind):
    """Flip a bit in every 50th byte of each of these files."""
    files = list(Path(beside.directory(db.path), copies(db)[0]).glob(f"{kind}*"))
    for file in files:
        held = np.fromfile(file, np.uint8)
        held[17::50] ^= 0x24
        held.tofile(file)
    assert files


async def proven(index):
    """Whoever reads the copy through is done with it."""
    while not (index.loaded and index.is_proven):  # noqa: ASYNC110  # that is a thread's, and no event
        await anyio.sleep(0.002)


@contextlib.asynccontextmanager
async def running(indexer, index):
    """The room works, and knows what its copy is worth."""
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(indexer.run)
            await indexer.loaded.wait()
            await proven(index)
            yield
            tasks.cancel_scope.cancel()


KINDS = ["columns.", "columns.live", "postings.", "postings.rows", "space0.", "columns.digest"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_small", [True, False])
async def test_a_damaged_copy_is_dropped_without_a_restart_and_replaced_at_rest(
    db, monkeypatch, kind, is_small
):
    _, index = await rested(db, 40)
    # What is mapped is the file's own until it is written to.
    wanted, words = contents(index), words_of(index)
    damage(db, kind)
    if not is_small:
        monkeypatch.setattr(intact, "SMALL", -1)
    indexer, again = started(db)
    async with running(indexer, again):
        await indexer._complete()
        assert contents(again) == wanted
        assert words_of(again) == words
        assert copies(db) == []
        assert db.read_now(saved.name) is None
        assert "was not used" in indexer.status()["copy"]["trouble"]
    await indexer._rest()
    assert len(copies(db)) == 1
    assert indexer.status()["copy"] == {"mapped": True, "trouble": ""}
    assert indexer.status()["trouble"] is None
    await reads_as(db, again)


@pytest.mark.parametrize("is_small", [True, False])
async def test_what_was_wrong_is_told_until_there_is_another_copy(db, monkeypatch, is_small):
    await rested(db)
    damage(db, "columns.digest")
    if not is_small:
        monkeypatch.setattr(intact, "SMALL", -1)
    indexer, again = started(db)
    async with running(indexer, again):
        assert "columns.digest is damaged" in indexer.status()["trouble"]


async def test_a_copy_that_is_whole_is_kept_and_held(db):
    _, index = await rested(db)
    held = copies(db)
    indexer, again = started(db)
    await indexer.load()
    assert not again.is_proven
    async with running(indexer, again):
        assert indexer.status()["copy"] == {"mapped": True, "trouble": ""}
    assert copies(db) == held
    assert contents(again) == contents(index)


async def test_no_copy_is_made_of_what_is_not_proven(db):
    await rested(db)
    held = copies(db)
    indexer, _ = started(db)
    await indexer.load()
    for n in range(12):
        put(db, f"new {n}")
    await indexer.settle()
    await indexer._rest()
    assert copies(db) == held
    assert await indexer._keeper.prove()
    await indexer._rest()
    assert copies(db) != held


async def test_indexing_that_fails_over_a_damaged_copy_does_without_it(db):
    await rested(db)
    indexer, again = started(db)
    await indexer.load()
    again.postings._live = np.zeros(0, np.bool_)  # as damage may make rows lead nowhere
    put(db, "0", "other words")
    await indexer.settle()
    assert again.is_proven
    assert again.columns.live_count == 3
    assert "not what is expected" in indexer.status()["trouble"]
    assert copies(db) == []


async def test_what_fails_over_a_proven_shelf_is_an_error(db):
    indexer, index = await rested(db)
    assert not indexer._keeper.refuse("for no reason")
    assert not index.doubt("for no reason")

    async def fail():
        raise IndexError("ours")

    with pytest.raises(IndexError, match="ours"):
        await indexer._trying(fail)


async def test_a_copy_that_goes_while_it_is_read_through_is_no_damage(db, monkeypatch):
    await rested(db)
    monkeypatch.setattr(intact, "AT_ONCE", 1_024)
    indexer, again = started(db)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(indexer.run)
        await indexer.loaded.wait()
        db.write_now(lambda tx: summaries.delete(tx, 2))
        await indexer.settle()
        await proven(again)
        assert indexer.status()["trouble"] is None
        tasks.cancel_scope.cancel()
    assert copies(db) == []
    assert again.columns.live_count == 2
