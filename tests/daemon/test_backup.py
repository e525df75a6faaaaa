import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.daemon import backup
from memd.errors import BadRequest, VaultCorrupt
from memd.paths import Paths
from memd.store import database, fulltext
from memd.store.database import Database
from tests.export_records import AT, exported, fill, one_of_each, project, session, summary

DAY = 86_400_000


def silent(_done, _total):
    pass


@pytest.fixture
def paths(tmp_path):
    """The files of a vault with a record of every kind."""
    paths = Paths({"MEMD_HOME": str(tmp_path)})
    Path(paths.data_dir).mkdir(mode=0o700)
    fill(paths.database, one_of_each())
    return paths


def make(paths, *, to=None, keep=5, now=AT):
    return backup.create_backup(paths, to, keep, now, silent)


def names(directory):
    return sorted(path.name for path in Path(directory).iterdir())


def test_a_backup_is_dated_private_and_complete(paths):
    made = make(paths)
    assert made.backup.path == f"{paths.data_dir}/backups/default-20260921T141320Z.memd"
    assert (made.backup.at, made.backup.is_aside, made.pruned) == (AT, False, ())
    assert Path(made.backup.path).stat().st_mode & 0o777 == 0o600
    assert Path(backup.backup_dir(paths)).stat().st_mode & 0o777 == 0o700
    assert exported(made.backup.path) == exported(paths.database)
    assert made.rows["summaries"] == 3


def test_two_backups_in_one_second_have_two_names(paths):
    first, second = make(paths), make(paths)
    assert [one.path for one in backup.list_backups(backup.backup_dir(paths), "default")] == [
        second.backup.path, first.backup.path,
    ]  # fmt: skip
    assert second.backup.path.endswith("Z-2.memd")


def test_the_oldest_backups_are_pruned_and_other_files_stay(paths, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir(mode=0o755)
    strange = [
        "default-20200101T000000Z.memd.bak", "default-work-20200101T000000Z.memd", "notes.txt",
        "default-before-restore-20200101T000000Z.memd",
    ]  # fmt: skip
    for name in strange:
        (folder / name).touch()
    made = [make(paths, to=str(folder), keep=2, now=AT + n * DAY) for n in range(4)]
    assert [one.pruned for one in made] == [(), (), (made[0].backup.path,), (made[1].backup.path,)]
    assert names(folder) == sorted([*strange, *(Path(one.backup.path).name for one in made[2:])])
    assert Path(folder).stat().st_mode & 0o777 == 0o755


def test_partial_files_of_killed_backups_are_removed_and_those_of_running_ones_stay(paths):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    folder = Path(backup.backup_dir(paths))
    folder.mkdir()
    for name in (f"default.{ended.pid}.partial", f"default.{ended.pid}.partial-journal"):
        (folder / name).touch()
    (folder / f"default.{os.getppid()}.partial").touch()
    (folder / f"other.{ended.pid}.partial").touch()
    made = make(paths)
    assert names(folder) == sorted(
        [
            f"default.{os.getppid()}.partial",
            f"other.{ended.pid}.partial",
            Path(made.backup.path).name,
        ]
    )


def test_without_hard_links_the_file_is_copied(paths, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    made = make(paths)
    assert exported(made.backup.path) == exported(paths.database)
    assert names(backup.backup_dir(paths)) == [Path(made.backup.path).name]


def test_without_a_vault_there_is_nothing_to_back_up(tmp_path):
    paths = Paths({"MEMD_HOME": str(tmp_path)})
    with pytest.raises(BadRequest, match="no vault"):
        make(paths)
    assert backup.list_backups(backup.backup_dir(paths), "default") == []


def test_a_restored_vault_equals_the_backup_and_the_other_is_set_aside(paths):
    made = make(paths)
    then, now = exported(paths.database), None
    db = Database(paths.database, AT)
    db.write_now(lambda tx: tx.execute("UPDATE summaries SET title = 'changed'"))
    db.close()
    now = exported(paths.database)
    restored = backup.restore(paths, made.backup.path, AT + DAY, silent)
    assert (restored.erased, restored.rows) == (0, made.rows)
    assert exported(paths.database) == then
    assert exported(restored.aside) == now
    assert Path(paths.database).stat().st_mode & 0o777 == 0o600
    found = backup.list_backups(backup.backup_dir(paths), "default")
    assert [(one.path, one.is_aside) for one in found] == [
        (restored.aside, True), (made.backup.path, False),
    ]  # fmt: skip
    # A vault that was set aside can be restored.
    backup.restore(paths, restored.aside, AT + DAY, silent)
    assert exported(paths.database) == now


def test_a_memory_forgotten_since_the_backup_stays_forgotten(paths):
    made = make(paths)
    db = Database(paths.database, AT)
    db.write_now(lambda tx: tx.execute("DELETE FROM summaries WHERE uid = 'redis'"))
    db.write_now(lambda tx: tx.execute("INSERT INTO forgotten VALUES ('redis', ?)", (AT,)))
    db.close()
    assert backup.restore(paths, made.backup.path, AT, silent).erased == 1
    assert b'"uid":"redis"' not in exported(paths.database)
    assert b'"uid":"sqlite"' in exported(paths.database)


def test_the_write_ahead_log_of_a_killed_daemon_is_set_aside_with_its_vault(paths):
    made = make(paths)
    db = Database(paths.database, AT)
    db.write_now(lambda tx: tx.execute("UPDATE summaries SET title = 'only in the log'"))
    copy = {name: Path(paths.database + name).read_bytes() for name in ("", "-wal")}
    db.close()
    for name, content in copy.items():
        Path(paths.database + name).write_bytes(content)
    restored = backup.restore(paths, made.backup.path, AT, silent)
    assert b"only in the log" in exported(restored.aside)
    assert b"only in the log" not in exported(paths.database)


def test_a_damaged_or_missing_vault_can_be_replaced(paths):
    made = make(paths)
    then = exported(paths.database)
    Path(paths.database).write_bytes(b"garbage" * 1_000)
    restored = backup.restore(paths, made.backup.path, AT, silent)
    assert Path(restored.aside).read_bytes() == b"garbage" * 1_000
    assert exported(paths.database) == then
    Path(paths.database).unlink()
    Path(paths.database + "-wal").write_bytes(b"of no file")
    assert backup.restore(paths, made.backup.path, AT, silent).aside is None
    assert exported(paths.database) == then


@pytest.mark.parametrize("step", ["upgrade_copy", "fold_wal", "replace", "link"])
def test_a_failed_restore_leaves_the_old_vault_in_place(paths, monkeypatch, step):
    made = make(paths)
    db = Database(paths.database, AT)
    db.write_now(lambda tx: tx.execute("UPDATE summaries SET title = 'the old vault'"))
    db.close()
    before, beside = exported(paths.database), names(backup.backup_dir(paths))

    def fail(*_args, **_more):
        raise OSError(errno.EIO, "the disk is gone")

    target = {"replace": (Path, "replace"), "link": (Path, "hardlink_to")}
    monkeypatch.setattr(*target.get(step, (backup.store_backup, step)), fail)
    with pytest.raises(OSError, match="the disk is gone"):
        backup.restore(paths, made.backup.path, AT, silent)
    monkeypatch.undo()
    assert exported(paths.database) == before
    assert names(backup.backup_dir(paths)) == beside
    assert names(paths.data_dir) == ["backups", "default.db"]


def test_a_file_is_checked_before_a_restore(paths, tmp_path):
    with pytest.raises(BadRequest, match="no file"):
        backup.check_backup(paths, str(tmp_path / "none"))
    with pytest.raises(BadRequest, match="is the vault itself"):
        backup.check_backup(paths, paths.database)
    (tmp_path / "x").write_text("no vault" * 100)
    with pytest.raises(VaultCorrupt):
        backup.check_backup(paths, str(tmp_path / "x"))
    assert backup.check_backup(paths, make(paths).backup.path)["summaries"] == 3


def test_the_backups_of_one_vault_are_not_those_of_another(tmp_path):
    work = Paths({"MEMD_HOME": str(tmp_path)}, "work")
    Path(work.data_dir).mkdir()
    fill(work.database, [project(), session("s1"), summary("a")])
    made = make(work)
    assert Path(made.backup.path).name.startswith("work-2")
    assert backup.list_backups(backup.backup_dir(work), "default") == []
    assert [one.path for one in backup.list_backups(backup.backup_dir(work), "work")] == [
        made.backup.path
    ]


def test_a_restore_removes_the_index_snapshot_of_the_replaced_vault(paths):
    made = make(paths)
    db = Database(paths.database, AT)
    labels = {"sources": [], "tags": []}
    db.write_now(lambda tx: tx.execute("DELETE FROM changes").fetchall())
    assert db.write_now(lambda tx: fulltext.record_snapshot(tx, "one", labels))
    db.close()
    folder = Path(database.snapshot_directory(paths.database), "one")
    folder.mkdir(parents=True)
    backup.restore(paths, made.backup.path, AT + DAY, silent)
    assert not folder.parent.exists()
    db = Database(paths.database, AT)
    assert db.read_now(fulltext.snapshot_name) is None
    db.close()


def test_backups_with_future_dates_are_pruned_first(paths):
    folder = backup.backup_dir(paths)
    ahead = [make(paths, keep=2, now=AT + days * DAY).backup for days in (4_000, 4_001)]
    assert backup.find_newest_intact(paths, AT + 4_001 * DAY) == ahead[1]
    first, second, third = (make(paths, keep=2, now=AT + days * DAY) for days in (0, 1, 2))
    assert first.pruned == (ahead[0].path,)
    assert second.pruned == (ahead[1].path,)
    assert third.pruned == (first.backup.path,)
    assert backup.find_newest_intact(paths, AT + 2 * DAY) == third.backup
    assert len(names(folder)) == 2
