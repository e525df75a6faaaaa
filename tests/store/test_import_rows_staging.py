import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.errors import BadRequest
from memd.store import import_rows
from memd.store.backup import read_snapshot
from memd.store.import_rows import commit_staging, remove_stale_staging, staged_path, staging_vault


@pytest.fixture
def vault(tmp_path):
    return str(tmp_path / "default.db")


@pytest.fixture
def dead():
    """The id of a process that is no more."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_a_staging_vault_can_be_read_by_others_and_is_removed_afterwards(vault, tmp_path):
    with staging_vault(vault, 1) as (tx, name):
        tx.execute("INSERT INTO forgotten VALUES ('a', 1)")
        commit_staging(tx)
        path = staged_path(vault, name)
        assert Path(path).stat().st_mode & 0o777 == 0o600
        with read_snapshot(path) as other:
            assert other.execute("SELECT key FROM forgotten").get == "a"
    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_of_what_failed(vault, tmp_path):
    with pytest.raises(BadRequest), staging_vault(vault, 1):
        raise BadRequest
    assert list(tmp_path.iterdir()) == []


def test_staging_vaults_of_killed_processes_are_removed_and_of_running_ones_stay(
    vault, tmp_path, dead
):
    names = {dead: False, os.getppid(): True}
    for pid in names:
        (tmp_path / f"default.db.{pid}.staging").touch()
    other = tmp_path / f"other.db.{dead}.staging"
    other.touch()
    remove_stale_staging(vault)
    assert {pid: (tmp_path / f"default.db.{pid}.staging").exists() for pid in names} == names
    assert other.exists()


@pytest.mark.parametrize(
    "name",
    [
        "../x.1.staging",
        "default.db",
        "default.db.staging",
        "default.db.x.staging",
        "other.db.1.staging",
        "",
    ],
)
def test_only_what_is_staged_for_this_vault_is_taken(vault, name):
    with pytest.raises(BadRequest, match="staged"):
        staged_path(vault, name)


def test_a_process_that_cannot_be_is_not_alive(dead):
    assert import_rows.is_process_alive(os.getpid())
    assert not import_rows.is_process_alive(dead)
    assert not import_rows.is_process_alive(10**30)
