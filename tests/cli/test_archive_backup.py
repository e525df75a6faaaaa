import signal
from pathlib import Path

import apsw
import pytest

from memd.cli import archive
from tests.export_records import fill, one_of_each


@pytest.fixture
def vault(tmp_path):
    """A vault with a record of every kind, and no daemon."""
    (tmp_path / "vaults").mkdir()
    return Path(fill(tmp_path / "vaults" / "default.db", one_of_each()))


def test_a_backup_says_where_it_is_and_is_listed(vault, alone):
    ran = alone("backup")
    assert ran.status == 0, ran.err
    path = ran.out.partition(": ")[0]
    assert ran.out.endswith("3 memories, checked\n")
    assert Path(path).parent == vault.parent / "backups"
    listed = alone("backup", "--list")
    assert listed.out.endswith(f"  {path}\n")
    assert alone("backup", "--list", "--json").json["backups"][0]["path"] == path


@pytest.mark.usefixtures("vault")
def test_it_lies_where_a_person_says_and_only_so_many_are_kept(alone, tmp_path):
    folder = tmp_path / "disk"
    assert alone("backup", "--to", folder, "--list").out == f"no backups in {folder}\n"
    made = [alone("backup", "--to", folder, "--keep", "1", "--json").json for _ in range(2)]
    assert made[1]["pruned"] == [made[0]["path"]]
    assert [str(path) for path in folder.iterdir()] == [made[1]["path"]]
    ran = alone("backup", "--to", folder, "--keep", "1")
    assert f"removed {made[1]['path']}\n" in ran.out
    assert alone("backup", "--keep", "0").status == 1


def test_without_a_vault_it_says_so(alone):
    ran = alone("backup")
    assert (ran.status, ran.out) == (1, "")
    assert "there is no vault" in ran.err


def test_a_backup_that_is_killed_leaves_nothing_that_looks_like_one(machine, alone):
    """The next one takes away what it left."""
    folder = machine.home / "vaults"
    folder.mkdir()
    fill(folder / "default.db", one_of_each())
    connection = apsw.Connection(str(folder / "default.db"))
    connection.execute("INSERT INTO forgotten VALUES (hex(zeroblob(40000000)), 1)")
    connection.close()
    process = machine.popen("backup")
    while not any(path.stat().st_size for path in folder.glob("backups/*.partial")):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert alone("backup", "--list").out.startswith("no backups in ")
    assert list(folder.glob("backups/*.partial"))
    assert alone("backup").status == 0
    assert len(list(folder.glob("backups/*"))) == 1


def test_on_a_terminal_a_bar_is_drawn(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with archive.progress("copying") as draw:
        draw(3, 4)
    assert "copying" in capsys.readouterr().err
