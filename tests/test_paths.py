import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from memd.paths import Paths, is_mine, private_dir

FILES = ("config_file", "database", "lock", "log", "socket", "spool_dir")


def test_memd_home_puts_every_file_under_one_directory(tmp_path):
    paths = Paths({"MEMD_HOME": str(tmp_path), "HOME": "/nowhere", "XDG_DATA_HOME": "/elsewhere"})
    for name in FILES:
        assert Path(getattr(paths, name)).is_relative_to(tmp_path), name


def test_a_relative_home_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Paths({"MEMD_HOME": "here"}).database == str(tmp_path / "here/vaults/default.db")


def test_the_daemon_the_hook_and_the_bridge_agree_whatever_the_environment():
    """Two calls with one environment must yield one socket: else captures go nowhere."""
    environ = {"HOME": "/home/dev", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/run/user/7"}
    assert Paths(environ).socket == Paths(dict(environ)).socket == "/run/user/7/memd/memd.sock"


@pytest.mark.skipif(sys.platform == "darwin", reason="XDG is Linux")
def test_without_memd_home_the_xdg_directories_are_used():
    environ = {
        "HOME": "/home/dev",
        "XDG_CONFIG_HOME": "/c",
        "XDG_DATA_HOME": "/d",
        "XDG_STATE_HOME": "/s",
        "XDG_RUNTIME_DIR": "/r",
    }
    paths = Paths(environ)
    assert paths.config_file == "/c/memd/config.toml"
    assert paths.database == "/d/memd/default.db"
    assert paths.log == "/s/memd/memd.log"
    assert paths.socket == "/r/memd/memd.sock"


@pytest.mark.skipif(sys.platform == "darwin", reason="XDG is Linux")
def test_without_xdg_the_usual_places_below_home_are_used():
    paths = Paths({"HOME": "/home/dev", "XDG_RUNTIME_DIR": "/r"})
    assert paths.config_file == "/home/dev/.config/memd/config.toml"
    assert paths.database == "/home/dev/.local/share/memd/default.db"
    assert paths.spool_dir == "/home/dev/.local/state/memd/spool"


def test_two_vaults_share_no_file_but_the_settings():
    environ = {"HOME": "/home/dev", "XDG_RUNTIME_DIR": "/r"}
    one, other = Paths(environ), Paths(environ, "work")
    for name in set(FILES) - {"config_file"}:
        assert getattr(one, name) != getattr(other, name), name
    assert one.config_file == other.config_file


def test_events_wait_beside_the_vault_or_the_socket_if_they_cannot_with_the_state(tmp_path):
    environ = {"MEMD_HOME": str(tmp_path)}
    assert Paths(environ).spool_fallbacks == (f"{tmp_path}/vaults/spool", f"{tmp_path}/run/spool")
    assert Paths(environ, "work").spool_fallbacks[1] == f"{tmp_path}/run/spool-work"


def test_without_a_home_no_directory_below_the_current_one_is_used(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ValueError, match="HOME"):
        Paths({})
    assert Paths({"MEMD_HOME": "/m"}).database == "/m/vaults/default.db"


def test_a_vault_is_named_by_the_caller_then_by_the_environment_then_by_default():
    assert Paths({"MEMD_VAULT": "work"}, "demo").vault == "demo"
    assert Paths({"MEMD_VAULT": "work"}).vault == "work"
    assert Paths({}).vault == "default"


@pytest.mark.parametrize("name", ["../escape", "a b", "a/b", "ü", ".", "a\0b"])
def test_a_vault_s_name_cannot_lead_out_of_its_directory(name):
    with pytest.raises(ValueError, match="letters, digits"):
        Paths({}, name)


def test_a_private_directory_is_for_its_user_alone(tmp_path):
    made = Path(private_dir(str(tmp_path / "a" / "b")))
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_directory_that_others_can_enter_is_closed_to_them(tmp_path):
    loose = tmp_path / "loose"
    loose.mkdir(mode=0o755)
    private_dir(str(loose))
    assert stat.S_IMODE(loose.stat().st_mode) == 0o700
    assert loose.stat().st_uid == os.getuid()


def test_a_persons_word_on_projects_lies_beside_the_configuration():
    assert Paths({"MEMD_HOME": "/m"}, "work").projects_file == "/m/projects.toml"
    assert Paths({"HOME": "/home/u"}).projects_file.endswith("/memd/projects.toml")


def test_where_memd_is_installed_is_the_same_for_every_vault(tmp_path):
    environ = {"MEMD_HOME": str(tmp_path)}
    assert Paths(environ).installed == str(tmp_path / "state" / "installed")
    assert Paths(environ, "work").installed == Paths(environ).installed


def test_a_private_directory_is_private_whatever_the_umask_and_so_is_what_was_made_above_it(
    tmp_path,
):
    before = os.umask(0)
    try:
        private_dir(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / made).stat().st_mode) for made in ("a", "a/b", "a/b/c")]
    assert modes == [0o700] * 3


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_not_used(tmp_path):
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(PermissionError, match="another user"):
        private_dir(str(tmp_path))


def test_a_file_in_the_place_of_a_directory_is_said_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        private_dir(str(tmp_path / "file"))
    with pytest.raises(NotADirectoryError):
        private_dir(str(tmp_path / "file" / "below"))


def test_a_connection_to_this_user_is_known_as_such():
    left, right = socket.socketpair()
    with left, right:
        assert is_mine(left)
