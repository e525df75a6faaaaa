import subprocess
import sys
from pathlib import Path

import memd
from memd.installers import file_changes
from memd.installers.file_changes import Host


def test_the_note_names_an_interpreter_and_a_package_that_work(tmp_path):
    file_changes.write_location(str(tmp_path / "installed"))
    python, package = (tmp_path / "installed").read_text(encoding="utf-8").splitlines()
    said = subprocess.run(
        [python, "-I", "-S", str(Path(package) / "hook.py")],
        input=b"",
        check=False,
        capture_output=True,
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, b"", b"")
    assert Path(package) == Path(memd.__file__).parent
    assert (python, str(file_changes.PACKAGE)) == (file_changes.interpreter(), package)


def test_a_link_to_the_interpreter_is_not_followed(monkeypatch, tmp_path):
    """A virtual environment knows its packages by the path of the link."""
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(link))
    assert file_changes.interpreter() == str(link)


def test_an_older_note_is_replaced_and_a_true_one_left(tmp_path):
    note = tmp_path / "installed"
    note.write_text("/gone/python\n/gone/memd\n", encoding="utf-8")
    file_changes.write_location(str(note))
    assert "/gone" not in note.read_text(encoding="utf-8")
    before = note.stat()
    file_changes.write_location(str(note))
    assert note.stat().st_ino == before.st_ino
    assert list(tmp_path.iterdir()) == [note]


def test_where_no_note_can_be_left_nothing_happens(tmp_path):
    file_changes.write_location(str(tmp_path / "none" / "installed"))
    assert list(tmp_path.iterdir()) == []


def host_with(**environ):
    return Host({"HOME": "/h", **environ}, "/v/bin/python", Path("/v/memd"), "linux")


def test_an_ordinary_environment_need_not_be_carried():
    assert host_with().path_environment == {}
    assert (
        host_with(XDG_DATA_HOME="/h/.local/share", XDG_STATE_HOME="", PATH="/bin").path_environment
        == {}
    )


def test_what_decides_about_memd_s_files_is_carried():
    assert host_with(MEMD_HOME="/m", MEMD_VAULT="work", XDG_STATE_HOME="/s").path_environment == {
        "MEMD_HOME": "/m",
        "MEMD_VAULT": "work",
        "XDG_STATE_HOME": "/s",
    }


def test_the_home_is_that_of_the_environment():
    assert host_with().home == Path("/h")
