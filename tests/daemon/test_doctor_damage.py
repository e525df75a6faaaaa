import sqlite3
from pathlib import Path

import pytest

from memd.capture import spool
from memd.daemon import backup, doctor
from memd.errors import VaultCorrupt, VaultError, VaultFull
from memd.paths import Paths, private_dir

AT = 1_700_000_000_000


@pytest.fixture
def paths(tmp_path):
    made = Paths({"MEMD_HOME": str(tmp_path)})
    private_dir(made.data_dir)
    private_dir(made.state_dir)
    return made


def make(paths):
    with doctor.open_vault(paths, AT):
        pass


def test_a_vault_is_made_opened_and_closed(paths):
    make(paths)
    make(paths)
    assert doctor.find_damage(paths) is None
    assert not Path(paths.database + "-wal").exists()


def test_an_empty_file_is_a_new_vault_only_where_no_daemon_has_served(paths):
    Path(paths.database).touch()
    make(paths)
    Path(paths.database).write_bytes(b"")
    Path(paths.log).write_text('{"event": "daemon_started"}\n', encoding="utf-8")
    with pytest.raises(
        VaultCorrupt, match=r"is empty, and was a vault.*`memd restore --salvage`"
    ):
        make(paths)
    assert Path(paths.database).read_bytes() == b""
    assert doctor.find_damage(paths).verdict == "problem"


def test_who_has_a_backup_is_offered_it_by_its_date(paths):
    make(paths)
    backup.create_backup(paths, None, 5, AT, lambda *_: None)
    Path(paths.database).write_bytes(b"Dear diary.\n" * 99)
    with pytest.raises(
        VaultCorrupt, match=r"`memd restore` brings back the backup of 2023-11-14 22:13"
    ):
        make(paths)
    assert "spool" in doctor.advise_recovery(paths)
    Path(paths.database).write_bytes(b"")
    with pytest.raises(VaultCorrupt, match="is empty"):
        doctor.refuse_emptied_vault(paths)


def test_a_foreign_file_is_refused_without_an_offer(paths):
    with sqlite3.connect(paths.database) as connection:
        connection.execute("CREATE TABLE treasure (a)")
    connection.close()
    assert "restore" not in doctor.find_damage(paths).words
    with pytest.raises(VaultError, match="another program"):
        make(paths)


def test_a_disk_that_is_full_at_the_start_gets_the_reserve(paths, monkeypatch):
    tries = []

    def crowded(path, now):
        tries.append(path)
        if Path(f"{paths.spool_dir}.reserve").exists():
            raise VaultFull
        return opened(path, now)

    opened = doctor.Database
    monkeypatch.setattr(doctor, "Database", crowded)
    assert spool.keep_reserve(paths.spool_dir)
    make(paths)
    assert len(tries) == 2
    assert not Path(f"{paths.spool_dir}.reserve").exists()
