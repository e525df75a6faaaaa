import mmap
import os
import struct
import threading
import time
import zlib
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
import pytest

from memd.embeddings.hashing import HashingEmbedder
from memd.index import quantization, snapshot
from memd.index.indexer import Indexer
from memd.index.memory_index import IndexUpdate, MemoryIndex, VaultContents, VectorMatrix
from memd.index.snapshot import (
    SnapshotInterrupted,
    SnapshotUnusable,
    read_snapshot,
    sweep_snapshots,
    write_snapshot,
)
from memd.models import Space
from memd.store import database, fulltext, summaries
from tests.index.test_indexer import contents, put, words_of
from tests.index.test_memory_index import SPACE, facts, filled, half, stored
from tests.index.test_term_dictionary import lines

HASHING = HashingEmbedder().space.name


@pytest.fixture
def vault(tmp_path):
    return str(tmp_path / "v.db")


def write(vault, name="one", index=None):
    write_snapshot(vault, name, index or filled(), lambda: None)
    return Path(database.snapshot_directory(vault), name)


def test_a_written_snapshot_is_mapped_with_free_space_behind_its_rows(vault):
    index = filled()
    write(vault, index=index)
    found = read_snapshot(vault, "one")
    assert (found.rows, found.spaces) == (4, [(SPACE.name, 2)])
    for name, stored_array in index.stored_arrays().items():
        array, count = found.arrays[name], len(stored_array.rows)
        assert array[:count].tolist() == stored_array.rows.tolist()
        assert not array[count:].any()
        assert len(array) == count + (1_024 if stored_array.axis == 0 else 0)


def test_arrays_that_grow_by_columns_have_free_space_behind_each_line(vault, monkeypatch):
    monkeypatch.setitem(VectorMatrix.__init__.__kwdefaults__, "exact_max", 2)
    monkeypatch.setattr(quantization, "_COARSE_ROWS_MIN", 3)
    index = filled()
    write(vault, index=index)
    planes = read_snapshot(vault, "one").arrays["space0.planes"]
    wanted = index.stored_arrays()["space0.planes"].rows
    assert planes.shape == (len(wanted), 4 + 1_024)
    assert planes[:, :4].tolist() == wanted.tolist()
    assert not planes[:, 4:].any()


def test_the_file_is_private_and_its_free_space_takes_no_disk(vault, monkeypatch):
    monkeypatch.setattr(snapshot, "_ROOM_MIN", 100_000)
    path = write(vault)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_size > 8_000_000
    assert path.stat().st_blocks * 512 < 1_000_000


def flip(path, at):
    with path.open("r+b") as file:
        file.seek(at)
        (held,) = file.read(1)
        file.seek(at)
        file.write(bytes([held ^ 0x10]))


@pytest.mark.parametrize("share", [n / 40 for n in range(41)])
def test_one_bit_is_enough_wherever_it_is(vault, share):
    path = write(vault)
    flip(path, int(share * (path.stat().st_size - 1)))
    with pytest.raises(SnapshotUnusable):
        read_snapshot(vault, "one")


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100_000, -1])
def test_a_file_that_lost_its_end_is_unusable(vault, size):
    path = write(vault)
    os.truncate(path, size if size >= 0 else path.stat().st_size - 1)
    with pytest.raises(SnapshotUnusable):
        read_snapshot(vault, "one")


def seal(path, held):
    """Write this content with the checksum that belongs to it."""
    path.write_bytes(held + struct.pack("<I", zlib.crc32(held)))


@pytest.mark.parametrize(
    ("what", "other"),
    [
        (b'"format": 5', b'"format": 9'),
        (b'"rows"', b'"rowz"'),
        (b'"<i8"', b'"|O8"'),
        (b'"<i8"', b'",,8"'),
        (b"[1028]", b"[-128]"),
        (b"[1028]", b"[9e99]"),
        (b'{"format', b'["format'),
    ],
)
def test_a_whole_file_that_this_program_does_not_understand_is_unusable(vault, what, other):
    path = write(vault)
    held = path.read_bytes()[:-4]
    assert what in held
    seal(path, held.replace(what, other))
    with pytest.raises(SnapshotUnusable):
        read_snapshot(vault, "one")


def test_a_snapshot_under_another_name_of_another_kind_or_absent_is_unusable(vault):
    path = write(vault)
    path.rename(path.with_name("two"))
    path.mkdir()
    for name in ("one", "two", "three"):
        with pytest.raises(SnapshotUnusable):
            read_snapshot(vault, name)


def test_writing_that_fails_leaves_nothing(vault):
    for after in range(30):
        calls = iter([None] * after)

        def fail(calls=calls):
            for _ in calls:
                return
            raise SnapshotInterrupted

        with pytest.raises(SnapshotInterrupted):
            write_snapshot(vault, "one", filled(), fail)
        assert snapshot_files(vault) == []


def snapshot_files(vault):
    folder = Path(database.snapshot_directory(vault))
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


def test_all_but_one_are_swept_away_and_what_is_mapped_lives_on(vault):
    sweep_snapshots(vault, None)
    write(vault, "one")
    found = read_snapshot(vault, "one")
    former = Path(database.snapshot_directory(vault), "of-format-2")
    former.mkdir()
    (former / "manifest.json").touch()
    write(vault, "two")
    sweep_snapshots(vault, "two")
    assert snapshot_files(vault) == ["two"]
    assert found.arrays["columns.passage_id"][3] == 9
    sweep_snapshots(vault, None)
    assert snapshot_files(vault) == []


@pytest.mark.parametrize("exact_max", [4_096, 100])
def test_releasing_pages_changes_nothing(vault, monkeypatch, exact_max):
    monkeypatch.setitem(VectorMatrix.__init__.__kwdefaults__, "exact_max", exact_max)
    index, count = MemoryIndex(), 3_000
    known, vectors = [facts(n) for n in range(1, count + 1)], np.ones((count, 2), np.float16)
    passages = [stored(n, n, 0, (n % 50, 60)) for n in range(1, count + 1)]
    index.load(VaultContents(passages, lines([("a", 1)]), known, [SPACE]))
    index.fill(SPACE.name, range(1, count + 1), vectors)
    write(vault, index=index)
    found = read_snapshot(vault, "one")
    index.exchange(found)
    index.apply(
        IndexUpdate(
            removed=[1, 5, 2_999], added=[stored(9_000, 9_000)], vectors={SPACE: half((0, 1))}
        )
    )
    index.apply(IndexUpdate(facts=[facts(7, 99)]))

    def everything():
        return {name: one.rows.tolist() for name, one in index.stored_arrays().items()}

    before = everything()
    assert any(size > 2 * mmap.PAGESIZE for _, size in found.fixed)
    found.release_pages()
    assert everything() == before


@pytest.fixture
def small(monkeypatch):
    """A snapshot is worth it from the first row on, and again after ten changes."""
    monkeypatch.setattr(snapshot, "ROWS_MIN", 1)
    monkeypatch.setattr(snapshot, "_CHANGED_MIN", 10)


pytestmark = pytest.mark.usefixtures("small")


def started(db, embedder=None):
    index = MemoryIndex()
    return Indexer(db, (embedder or HashingEmbedder(),), index), index


async def rested(db, count=3):
    """A vault of some memories, of which there is a snapshot."""
    indexer, index = started(db)
    for n in range(count):
        put(db, str(n), tags=(f"t{n % 2}",))
    await indexer.settle()
    await indexer._save_and_trim()
    assert indexer.status()["copy"] == {"mapped": True, "trouble": ""}
    return indexer, index


def snapshots(db):
    return snapshot_files(db.path)


def snapshot_path(db):
    return Path(database.snapshot_directory(db.path), snapshots(db)[0])


def content(db):
    return b"".join(
        Path(database.snapshot_directory(db.path), name).read_bytes() for name in snapshots(db)
    )


async def reads_as(db, index, *, mapped=True):
    """A start finds all that this index has, through the snapshot or without one."""
    indexer, again = started(db)
    await indexer.load()
    await indexer._fill_spaces()
    assert indexer.status()["copy"]["mapped"] is mapped
    assert contents(again) == contents(index)
    assert words_of(again) == words_of(index)
    return indexer, again


async def test_a_start_maps_the_snapshot_and_finds_everything(db):
    _, index = await rested(db)
    await reads_as(db, index)
    digests = index.columns.digest.copy()
    assert digests.all()
    _, again = await reads_as(db, index)
    assert (again.columns.digest[: len(digests)] == digests).all()


async def test_what_was_indexed_since_is_read_from_the_vault(db):
    indexer, index = await rested(db)
    put(db, "0", "another text of the first one", tags=("t9",))
    put(db, "new", "a memory that no snapshot has")
    db.write_now(lambda tx: summaries.pin_summary(tx, 2, 5))
    await indexer.settle()
    assert db.read_now(fulltext.unsaved_ids) == [1, 2, 4]
    _, again = await reads_as(db, index)
    assert again.vocabulary.number("snapshot") is not None
    assert again.columns.pinned.sum() == 1


async def test_much_that_is_new_gets_its_vectors_behind_the_start(db, monkeypatch):
    monkeypatch.setattr(snapshot, "EMBEDDED_MAX", 2)
    indexer, index = await rested(db)
    for n in range(5):
        put(db, f"new {n}")
    await indexer.settle()
    later, again = started(db)
    await db.read(later._storage.load)
    assert again.coverage(HASHING) == pytest.approx(3 / 8)
    await reads_as(db, index)


async def test_a_snapshot_is_written_again_when_enough_has_changed_and_the_former_goes(db):
    indexer, index = await rested(db)
    (first,) = snapshots(db)
    for n in range(9):
        put(db, f"new {n}")
    await indexer.settle()
    await indexer._save_and_trim()
    assert snapshots(db) == [first]
    put(db, "the tenth")
    await indexer.settle()
    await indexer._save_and_trim()
    (second,) = snapshots(db)
    assert second == db.read_now(fulltext.snapshot_name) != first
    assert db.read_now(fulltext.unsaved_ids) == []
    await reads_as(db, index)


async def test_what_is_forgotten_is_in_no_snapshot_when_the_index_has_learnt_it(db):
    indexer, index = await rested(db)
    db.write_now(lambda tx: summaries.delete_summary(tx, 2))
    await indexer.settle()
    assert snapshots(db) == []
    await reads_as(db, index, mapped=False)
    await indexer._save_and_trim()
    assert len(snapshots(db)) == 1
    await reads_as(db, index)


async def test_a_crash_before_the_index_has_learnt_of_it_leaves_no_snapshot_either(db):
    await rested(db)
    db.write_now(lambda tx: summaries.delete_summary(tx, 2))
    indexer, index = started(db)
    await indexer.load()
    assert snapshots(db) == []
    assert index.columns.live_count == 2


async def test_a_snapshot_of_another_moment_is_done_without(db):
    """As when somebody has put an older file of the vault in its place."""
    await rested(db)
    db.write_now(lambda tx: tx.execute("DELETE FROM passages WHERE id = 3").fetchall())
    indexer, again = started(db)
    await indexer.load()
    assert "it has 3 passages, the vault 2" in indexer.status()["copy"]["trouble"]
    assert again.columns.live_count == 2


async def test_other_vectors_make_a_snapshot_useless(db):
    class Later(HashingEmbedder):
        @property
        def space(self):
            return Space("hashing", "words-ngrams", "9", 768)

    await rested(db)
    indexer, index = started(db, Later())
    await indexer.load()
    assert "other vectors" in indexer.status()["copy"]["trouble"]
    assert index.coverage(Later().space.name) == 1


async def test_a_caller_that_waits_for_the_index_comes_first_but_not_forever(db):
    indexer, _ = started(db)
    put(db, "a")
    await indexer.settle()
    for _ in range(snapshot._YIELDS_MAX):
        await indexer._storage.save(lambda: True)
        assert snapshots(db) == []
    await indexer._storage.save(lambda: True)
    assert len(snapshots(db)) == 1


async def test_a_disk_that_is_full_is_reported_and_the_index_goes_on(db, monkeypatch):
    indexer, index = started(db)
    put(db, "a")
    await indexer.settle()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memd.index.snapshot.write_snapshot", fail)
    await indexer._save_and_trim()
    assert "No space left" in indexer.status()["copy"]["trouble"]
    assert index.coverage(HASHING) == 1
    put(db, "b")
    await indexer.settle()
    assert index.columns.live_count == 2


async def test_a_snapshot_that_is_overtaken_while_it_is_written_does_not_hold(db, monkeypatch):
    indexer, _ = started(db)
    put(db, "a")
    await indexer.settle()
    write = snapshot.write_snapshot

    def overtaken(*given):
        write(*given)
        put(db, "b")

    monkeypatch.setattr("memd.index.snapshot.write_snapshot", overtaken)
    await indexer._save_and_trim()
    assert snapshots(db) == []
    assert db.read_now(fulltext.snapshot_name) is None


async def test_a_snapshot_has_no_text(db):
    indexer, _ = started(db)
    put(db, "a", "unmistakable zebracorn", tags=("zebratag",))
    await indexer.settle()
    await indexer._save_and_trim()
    held = content(db)
    assert held
    assert b"zebra" not in held
    assert b"unmistak" not in held


async def test_the_snapshot_of_a_format_before_this_is_replaced(db):
    _, index = await rested(db)
    path = snapshot_path(db)
    path.unlink()
    path.mkdir()
    (path / "manifest.json").touch()
    await reads_as(db, index, mapped=False)
    assert snapshots(db) == []


@pytest.mark.parametrize("damage", ["lost", "labels"])
async def test_a_snapshot_that_does_not_fit_is_done_without_and_replaced(db, damage):
    _, index = await rested(db)
    if damage == "labels":
        db.write_now(lambda tx: tx.execute("UPDATE labels SET kind = kind || 'x'").fetchall())
    else:
        snapshot_path(db).unlink()
    indexer, _ = started(db)
    await indexer.load()
    assert "was not used" in indexer.status()["copy"]["trouble"]
    assert indexer.status()["trouble"] is None
    assert db.read_now(fulltext.snapshot_name) is None
    await reads_as(db, index, mapped=False)
    await indexer._save_and_trim()
    await reads_as(db, index)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
async def test_a_damaged_snapshot_is_dropped_reported_and_replaced_at_rest(db, share):
    _, index = await rested(db, 40)
    path = snapshot_path(db)
    # What is mapped is the file's own until it is written to.
    wanted, words = contents(index), words_of(index)
    flip(path, int(share * (path.stat().st_size - 1)))
    indexer, again = started(db)
    await indexer.load()
    await indexer._fill_spaces()
    assert (contents(again), words_of(again)) == (wanted, words)
    assert snapshots(db) == []
    assert db.read_now(fulltext.snapshot_name) is None
    assert "checksum" in indexer.status()["trouble"]
    await indexer._save_and_trim()
    assert indexer.status()["copy"] == {"mapped": True, "trouble": ""}
    assert indexer.status()["trouble"] is None
    await reads_as(db, again)


async def test_a_daemon_that_stops_does_not_wait_for_a_snapshot(db, monkeypatch):
    indexer, _ = started(db)
    put(db, "a")
    await indexer.settle()
    begun = threading.Event()

    def slow(*given):
        begun.set()
        while True:
            given[-1]()
            time.sleep(0.001)

    monkeypatch.setattr("memd.index.snapshot.write_snapshot", slow)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(indexer._save_and_trim)
            await anyio.to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()
    assert snapshots(db) == []
    assert db.read_now(fulltext.snapshot_name) is None


async def test_a_snapshot_that_was_not_written_well_is_never_named(db, monkeypatch):
    indexer, _ = started(db)
    put(db, "a")
    await indexer.settle()
    write = snapshot.write_snapshot

    def badly(vault, name, *given):
        write(vault, name, *given)
        flip(Path(database.snapshot_directory(vault), name), 99)

    monkeypatch.setattr("memd.index.snapshot.write_snapshot", badly)
    await indexer._save_and_trim()
    assert "could not be saved" in indexer.status()["copy"]["trouble"]
    assert db.read_now(fulltext.snapshot_name) is None
