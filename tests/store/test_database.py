import contextlib
import os
import random
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import apsw
import pytest

from memd.errors import VaultBusy, VaultCorrupt, VaultError, VaultFull, VaultGone
from memd.store import database
from memd.store.database import Database, connect, open_database
from memd.store.ledger import read_note, write_note


async def test_many_writers_take_turns_and_none_is_lost(db):
    def count(tx):
        write_note(tx, "n", str(int(read_note(tx, "n") or 0) + 1))

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(db.write, count)
    assert await db.read(lambda tx: read_note(tx, "n")) == "50"


def test_try_read_now_returns_none_when_every_reader_is_busy(db):
    assert db.try_read_now(lambda tx: tx.execute("SELECT 7").get) == 7
    readers = [db._readers.get_nowait() for _ in range(database.READERS)]
    assert db.try_read_now(lambda tx: tx.execute("SELECT 7").get) is None
    for reader in readers:
        db._readers.put(reader)


async def test_read_inline_uses_another_thread_only_if_every_reader_is_busy(db):
    async def thread():
        return await db.read_inline(lambda _: threading.get_ident())

    assert await thread() == threading.get_ident()
    readers = [db._readers.get_nowait() for _ in range(database.READERS)]
    found = []

    async def look():
        found.append(await thread())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        while not db._read_limit.borrowed_tokens:
            await anyio.lowlevel.checkpoint()
        for reader in readers:
            db._readers.put(reader)
    assert found != [threading.get_ident()]


def test_no_statement_is_planned_again_for_other_values(db):
    """SQLite does so at each execution unless it is told not to, which costs more than most statements."""

    def keeps_plans(tx):
        return tx.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1)

    assert db.write_now(keeps_plans)
    readers = [db._readers.get_nowait() for _ in range(database.READERS)]
    assert all(map(keeps_plans, readers))
    for reader in readers:
        db._readers.put(reader)


def test_a_reader_cannot_write(db):
    with pytest.raises(VaultError):
        db.read_now(lambda tx: write_note(tx, "a", "1"))


def test_a_vault_that_another_process_locks_is_busy_not_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)
    with open_database(str(tmp_path / "v.db"), 1) as db:
        other = apsw.Connection(db.path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(VaultBusy):
            db.write_now(lambda tx: write_note(tx, "a", "1"))
        other.execute("ROLLBACK")
        other.close()
        db.write_now(lambda tx: write_note(tx, "a", "1"))


def test_every_connection_commits_to_the_disk(db):
    settings = db.write_now(
        lambda tx: (tx.pragma("synchronous"), tx.pragma("journal_mode"), tx.pragma("foreign_keys"))
    )
    assert settings == (2, "wal", 1)


async def test_what_a_power_failure_may_take_is_committed_without_a_wait_for_the_disk(db):
    def note(tx):
        write_note(tx, "a", "1")
        return tx.pragma("synchronous")

    assert await db.write_unsynced(note) == 1
    with contextlib.closing(connect(db.path)) as other:
        assert read_note(other, "a") == "1"
    with pytest.raises(ZeroDivisionError):
        await db.write_unsynced(lambda _: 1 / 0)
    assert db.write_now(lambda tx: tx.pragma("synchronous")) == 2


async def test_a_rehearsal_answers_as_the_work_would_and_leaves_nothing(db):
    def note(tx):
        write_note(tx, "a", "1")
        return read_note(tx, "a")

    assert await db.rehearse(note) == "1"
    assert await db.read(lambda tx: read_note(tx, "a")) is None
    with pytest.raises(ZeroDivisionError):
        await db.rehearse(lambda _: 1 / 0)


def test_a_closed_vault_is_one_file(tmp_path):
    path = tmp_path / "v.db"
    db = Database(str(path), 1)
    db.write_now(lambda tx: write_note(tx, "a", "1"))
    assert db.size() > 0
    db.close()
    assert [p.name for p in tmp_path.iterdir()] == ["v.db"]


async def test_a_compact_file_has_given_back_what_was_deleted_while_readers_go_on(db):
    db.write_now(lambda tx: tx.execute("CREATE TABLE t (x)").fetchall())
    db.write_now(
        lambda tx: tx.execute("INSERT INTO t VALUES (zeroblob(2000000)), ('kept')").fetchall()
    )
    await db.truncate_wal()
    before = await anyio.to_thread.run_sync(db.size)
    db.write_now(lambda tx: tx.execute("DELETE FROM t WHERE x <> 'kept'").fetchall())
    await db.compact()
    assert await anyio.to_thread.run_sync(db.size) < before - 1_900_000
    assert db.read_now(lambda tx: tx.execute("SELECT x FROM t").get) == "kept"


async def test_a_vault_at_rest_gives_back_the_pages_that_it_holds(db):
    def held(tx):
        return tx.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]

    db.write_now(lambda tx: tx.execute("CREATE TABLE t (x)").fetchall())
    db.write_now(lambda tx: tx.execute("INSERT INTO t VALUES (zeroblob(300000))").fetchall())
    read_all = "SELECT length(hex(x)) FROM t"
    assert db.read_now(lambda tx: tx.execute(read_all).get) == 600_000
    before = db.write_now(held), db.read_now(held)
    assert min(before) > 100_000
    await db.release_caches()
    after = db.write_now(held), db.read_now(held)
    assert max(after) < 30_000
    assert db.read_now(lambda tx: tx.execute(read_all).get) == 600_000


@pytest.mark.parametrize("is_reading", [True, False])
def test_a_file_that_is_found_damaged_is_written_to_no_more(tmp_path, is_reading):
    db = Database(str(tmp_path / "v.db"), 1)
    db.write_now(lambda tx: tx.execute("INSERT INTO forgotten VALUES ('a', 1)"))
    db.close()
    db = Database(str(tmp_path / "v.db"), 1)
    held = bytearray((tmp_path / "v.db").read_bytes())
    held[8_192:] = b"\xa5" * len(held[8_192:])
    (tmp_path / "v.db").write_bytes(held)
    with pytest.raises(VaultCorrupt):
        db.read_now(
            lambda tx: tx.execute("SELECT max(at) FROM events").get
        ) if is_reading else db.write_now(
            lambda tx: tx.execute("INSERT INTO forgotten VALUES ('b', 1)")
        )
    assert "damaged" in db.damage
    with pytest.raises(VaultCorrupt):
        db.write_now(lambda tx: tx.execute("SELECT 1"))
    db.close()
    assert (tmp_path / "v.db").read_bytes() == held


def test_nothing_is_written_to_a_file_that_has_lost_its_name_until_it_is_back(db, tmp_path):
    vault, aside = Path(db.path), tmp_path / "aside"
    vault.rename(aside)
    with pytest.raises(VaultGone, match="`memd start`"):
        db.write_now(lambda tx: write_note(tx, "one", 1))
    vault.write_bytes(aside.read_bytes())
    with pytest.raises(VaultGone):
        db.write_now(lambda tx: write_note(tx, "one", 1))
    aside.replace(vault)
    db.write_now(lambda tx: write_note(tx, "one", 1))
    assert db.read_now(lambda tx: read_note(tx, "one")) is not None


def test_a_disk_that_was_full_is_full_until_there_is_room_for_more_than_one_write(
    tmp_path, monkeypatch
):
    db = Database(str(tmp_path / "v.db"), 1)
    pages = db._writer.pragma("page_count")
    db._writer.pragma("max_page_count", pages)
    with pytest.raises(VaultFull, match="Make room"):
        db.write_now(
            lambda tx: tx.execute("INSERT INTO forgotten VALUES (hex(zeroblob(99999)), 1)")
        )
    db._writer.pragma("max_page_count", 1_000_000)
    there = os.statvfs(tmp_path)
    scarce = os.statvfs_result((*there[:4], 1, *there[5:10]))
    monkeypatch.setattr(os, "statvfs", lambda _path: scarce)
    with pytest.raises(VaultFull):
        db.write_now(lambda tx: tx.execute("INSERT INTO forgotten VALUES ('a', 1)"))
    monkeypatch.undo()
    db.write_now(lambda tx: tx.execute("INSERT INTO forgotten VALUES ('a', 1)"))
    db.close()


def test_the_index_snapshot_counts_in_the_vault_s_size_and_is_removed_whole(tmp_path):
    vault = str(tmp_path / "v.db")
    db = Database(vault, 1)
    before = db.size()
    assert database.snapshot_bytes(vault) == 0
    folder = Path(database.snapshot_directory(vault), "one")
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(bytes(100_000))
    with (folder / "hole").open("wb") as file:
        file.truncate(10_000_000)
    assert 100_000 <= db.size() - before < 200_000
    database.remove_snapshots(vault)
    assert db.size() == before
    database.remove_snapshots(vault)
    db.close()


LOCKS = Path("/proc/locks")


def noise(path):
    with Path(path).open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(40_960))  # noqa: S311  # noise, not a secret


@pytest.mark.skipif(not LOCKS.exists(), reason="only Linux shows its locks")
def test_an_intact_vault_is_not_damaged_and_its_locks_stay(tmp_path):
    db = Database(str(tmp_path / "v.db"), 1)
    inode = f":{Path(db.path).stat().st_ino} "
    assert inode in LOCKS.read_text(encoding="ascii")
    assert not database.is_damaged(db.path)
    assert inode in LOCKS.read_text(encoding="ascii")
    db.close()


def test_a_vault_with_noise_in_its_pages_is_damaged(tmp_path):
    db = Database(str(tmp_path / "v.db"), 1)
    db.write_now(lambda tx: tx.execute("INSERT INTO forgotten VALUES ('a', 1)"))
    db.close()
    noise(db.path)
    assert database.is_damaged(db.path)
    (tmp_path / "text.db").write_text("no database " * 100)
    assert database.is_damaged(str(tmp_path / "text.db"))


def test_a_file_that_cannot_be_read_is_not_damaged_for_that(tmp_path):
    assert not database.is_damaged(str(tmp_path / "none.db"))
    (tmp_path / "directory").mkdir()
    assert not database.is_damaged(str(tmp_path / "directory"))
    connection = apsw.Connection(str(tmp_path / "locked.db"))
    connection.execute("CREATE TABLE a (b)")
    connection.execute("BEGIN EXCLUSIVE")
    assert not database.is_damaged(str(tmp_path / "locked.db"))
    connection.close()
