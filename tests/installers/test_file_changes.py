import os
import stat
from pathlib import Path

import pytest

from memd.errors import Broken
from memd.installers import file_changes
from memd.installers.file_changes import FileChange, InstallPlan

NOW = 1_795_276_740_000
"""2026-11-21 15:59:00 UTC."""
BACKUP = "settings.json.memd-20261121-155900.bak"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b"old\n")
    return path


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_change_leaves_the_old_file_beside_the_new_one(path):
    backup = file_changes.apply_change(FileChange(path, b"old\n", b"new\n"), NOW)
    assert backup == path.with_name(BACKUP)
    assert (path.read_bytes(), backup.read_bytes()) == (b"new\n", b"old\n")
    assert names(path.parent) == ["settings.json", BACKUP]


def test_two_changes_in_one_second_leave_two_old_files(path):
    file_changes.apply_change(FileChange(path, b"old\n", b"new\n"), NOW)
    second = file_changes.apply_change(FileChange(path, b"new\n", b"newer\n"), NOW)
    assert second.read_bytes() == b"new\n"
    assert path.with_name(BACKUP).read_bytes() == b"old\n"


def test_a_new_file_is_private_has_no_old_one_and_gets_its_directories(tmp_path):
    path = tmp_path / "a" / "b" / "new"
    assert file_changes.apply_change(FileChange(path, None, b"x"), NOW) is None
    assert names(path.parent) == ["new"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_would_not_change_is_not_touched(path):
    before = path.stat()
    assert file_changes.apply_change(FileChange(path, b"old\n", b"old\n"), NOW) is None
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert names(path.parent) == ["settings.json"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_mode_stays_and_so_does_that_of_the_old_file(path, mode):
    path.chmod(mode)
    backup = file_changes.apply_change(FileChange(path, b"old\n", b"new\n"), NOW)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, backup)] == [mode, mode]


def test_a_link_stays_a_link_and_its_repository_gets_no_copies(tmp_path):
    dotfiles, home = tmp_path / "dotfiles", tmp_path / "home"
    dotfiles.mkdir()
    home.mkdir()
    (dotfiles / "claude.json").write_bytes(b"old\n")
    link = home / "settings.json"
    link.symlink_to("../dotfiles/claude.json")
    file_changes.apply_change(FileChange(link, b"old\n", b"new\n"), NOW)
    assert link.is_symlink()
    assert (dotfiles / "claude.json").read_bytes() == b"new\n"
    assert names(dotfiles) == ["claude.json"]
    assert names(home) == ["settings.json", BACKUP]


def test_a_file_that_somebody_has_changed_meanwhile_is_left_alone(path):
    with pytest.raises(Broken, match="another program has just changed"):
        file_changes.apply_change(FileChange(path, b"older\n", b"new\n"), NOW)
    with pytest.raises(Broken, match="has just changed"):
        file_changes.apply_change(FileChange(path, None, b"new\n"), NOW)
    assert names(path.parent) == ["settings.json"]
    assert path.read_bytes() == b"old\n"


def test_a_read_only_file_is_left_alone(path):
    path.chmod(0o444)
    with pytest.raises(Broken, match=r"settings\.json is read-only; nothing was changed"):
        file_changes.apply_change(FileChange(path, b"old\n", b"new\n"), NOW)
    assert names(path.parent) == ["settings.json"]


def test_a_directory_that_is_no_directory_is_told(path):
    with pytest.raises(Broken, match="cannot read"):
        file_changes.apply_change(FileChange(path / "below", None, b"x"), NOW)


def test_a_directory_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "here").symlink_to("here")
    with pytest.raises(Broken, match="cannot "):
        file_changes.apply_change(FileChange(tmp_path / "here" / "new", None, b"x"), NOW)


def test_a_file_can_go_and_leaves_a_copy(path):
    backup = file_changes.apply_change(FileChange(path, b"old\n", None), NOW)
    assert names(path.parent) == [BACKUP]
    assert backup.read_bytes() == b"old\n"


def test_what_is_not_there_reads_as_nothing_and_what_cannot_be_read_is_told(tmp_path):
    assert file_changes.read_file(tmp_path / "none") is None
    with pytest.raises(Broken, match="cannot read"):
        file_changes.read_file(tmp_path)


def test_the_diff_shows_what_goes_and_what_comes(path):
    drawn = file_changes.format_diff(FileChange(path, b"a\nb\n", b"a\nc")).splitlines()
    assert drawn[:2] == [f"--- {path}", f"+++ {path}"]
    assert drawn[3:] == [" a", "-b", "+c", "\\ No newline at end of file"]


def test_a_file_that_is_made_or_goes_is_shown_as_such(path):
    assert file_changes.format_diff(FileChange(path, None, b"a\n")).startswith("--- /dev/null\n")
    assert "+++ /dev/null\n" in file_changes.format_diff(FileChange(path, b"a\n", None))
    assert file_changes.format_diff(FileChange(path, b"a\n", b"a\n")) == ""


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "settings.json")
    with pytest.raises(Broken, match="not a regular file"):
        file_changes.read_file(tmp_path / "settings.json")


def test_a_plan_with_neither_commands_nor_changes_is_empty():
    same, other = FileChange(Path("/a"), b"x", b"x"), FileChange(Path("/a"), b"x", b"y")
    assert InstallPlan((same,), notes=("so it is",)).is_empty
    assert not InstallPlan((same, other)).is_empty
    assert not InstallPlan(before=(("true",),)).is_empty
    assert not InstallPlan(after=(("true",),)).is_empty
