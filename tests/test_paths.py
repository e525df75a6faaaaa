import os
import pwd
import socket
import stat
import sys
from pathlib import Path

import pytest

from memd.paths import Paths, is_inside, is_mine, private_dir
from tests.tables import every_row

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


def test_the_writer_has_a_directory_for_each_vault_and_all_are_known(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    paths = Paths({"MEMD_HOME": str(tmp_path / "link")}, "work")
    assert paths.writer_dir == str(tmp_path / "link" / "state" / "writer" / "work")
    dirs = Paths({"MEMD_HOME": str(tmp_path / "link")}).find_writer_dirs()
    assert is_inside(paths.writer_dir, dirs)
    assert is_inside(str(tmp_path / "real" / "state" / "writer" / "work" / "below"), dirs)
    assert not is_inside(str(tmp_path / "link" / "state" / "writers"), dirs)
    assert not is_inside("", dirs)


def test_events_wait_beside_the_vault_or_the_socket_if_they_cannot_with_the_state(tmp_path):
    environ = {"MEMD_HOME": str(tmp_path)}
    assert Paths(environ).spool_fallbacks == (f"{tmp_path}/vaults/spool", f"{tmp_path}/run/spool")
    assert Paths(environ, "work").spool_fallbacks[1] == f"{tmp_path}/run/spool-work"


def test_without_a_home_no_directory_below_the_current_one_is_used(monkeypatch):
    def find_nobody(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", find_nobody)
    for environ in ({}, {"HOME": ""}, {"HOME": "relative"}):
        with pytest.raises(ValueError, match="HOME"):
            Paths(environ)
    assert Paths({"MEMD_HOME": "/m"}).database == "/m/vaults/default.db"


def test_a_vault_is_named_by_the_caller_then_by_the_environment_then_by_default():
    assert Paths({"MEMD_VAULT": "work"}, "demo").vault == "demo"
    assert Paths({"MEMD_VAULT": "work"}).vault == "work"
    assert Paths({}).vault == "default"


@every_row("name", ["../escape", "a b", "a/b", "ü", ".", "a\0b"])
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


@pytest.mark.skipif(sys.platform == "darwin", reason="XDG is Linux")
@pytest.mark.parametrize("name", ["CONFIG", "DATA", "STATE", "RUNTIME"])
@pytest.mark.parametrize("value", ["here", "./here", "../here", "~/here"])
def test_a_relative_xdg_directory_is_ignored_and_named(name, value):
    variable = f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}"
    plain, given = Paths({"HOME": "/home/dev"}), Paths({"HOME": "/home/dev", variable: value})
    assert [getattr(given, file) for file in FILES] == [getattr(plain, file) for file in FILES]
    assert given.ignored == (f"{variable}={value} is ignored: it is no absolute path",)
    assert plain.ignored == ()


def test_an_empty_home_is_the_one_of_the_system_s_record(monkeypatch):
    monkeypatch.setenv("HOME", "")
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert Paths({"HOME": ""}).database == Paths({}).database == Paths({"HOME": home}).database


@pytest.mark.parametrize("runtime", [None, "/" + "r" * 90])
@pytest.mark.parametrize("variable", ["HOME", "MEMD_HOME"])
def test_a_socket_whose_path_would_be_too_long_is_found_in_a_short_place(variable, runtime):
    environ = {"HOME": "/home/dev", variable: "/home/" + "x" * 100}
    environ |= {"XDG_RUNTIME_DIR": runtime} if runtime else {}
    if (
        runtime is None
        and variable == "HOME"
        and not Paths(environ).runtime_dir.startswith("/home")
    ):
        pytest.skip("this user has a runtime directory")
    one, same = Paths(environ), Paths(dict(environ), "default")
    assert one.socket == same.socket
    assert len(os.fsencode(one.socket)) <= 100
    assert Paths(environ, "work").socket != one.socket
    assert Paths(environ | {variable: "/home/" + "y" * 100}).socket != one.socket or runtime
    # Only the socket: events must survive what clears temporary files.
    assert not any(place.startswith(one.socket_dir) for place in one.spools)


def test_a_path_that_no_database_can_have_is_refused():
    with pytest.raises(ValueError, match="UTF-8"):
        Paths({"HOME": "/home/\udcff"})
    with pytest.raises(ValueError, match="UTF-8"):
        Paths({"MEMD_HOME": "/home/\udcff"})


@pytest.mark.skipif(os.getuid() != 0, reason="only root may do what it must not")
@pytest.mark.parametrize("variable", ["HOME", "MEMD_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"])
@pytest.mark.parametrize("below", ["", "not/there/yet"])
def test_root_keeps_nothing_in_another_user_s_directory(tmp_path, variable, below):
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    theirs.mkdir()
    own.mkdir()
    os.chown(theirs, 4711, 4711)
    with pytest.raises(ValueError, match="uid 4711"):
        Paths({"HOME": str(own), variable: str(theirs / below)})
    assert Paths({"HOME": str(own)}).data_dir.startswith(str(own))
    # What `su` leaves in the environment is no reason to refuse.
    left = Paths({"HOME": str(own), "XDG_RUNTIME_DIR": str(theirs)})
    assert not left.socket.startswith(str(theirs))
    assert "another user" in left.ignored[0]


@pytest.mark.parametrize("umask", [0o777, 0o700, 0o077, 0])
def test_a_private_directory_can_be_used_by_its_user_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        private_dir(str(tmp_path / "a" / "b"))
    finally:
        os.umask(before)
    assert {stat.S_IMODE((tmp_path / made).stat().st_mode) for made in ("a", "a/b")} == {0o700}


def test_a_home_directory_that_is_not_there_is_not_made(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "ghost"))
    with pytest.raises(FileNotFoundError, match="home directory"):
        private_dir(str(tmp_path / "ghost" / ".local" / "state"))
    assert list(tmp_path.iterdir()) == []
