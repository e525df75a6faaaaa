"""The plan for systemd, against a systemctl that says what the test has it say."""

import os
import sys

import pytest

from memd.errors import BadRequest
from memd.installers import service
from memd.installers.file_changes import Host, apply_change

NOW = 1_800_000_000_000


@pytest.fixture
def manager(tmp_path):
    """A systemctl in a directory of its own; gives the words after which it says no."""
    tools = tmp_path / "bin"
    tools.mkdir()
    program = tools / "systemctl"

    def says_no_to(*words):
        cases = "|".join(words) or "-"
        program.write_text(f'#!/bin/sh\ncase "$2" in {cases}) exit 1;; esac\n')
        program.chmod(0o755)

    says_no_to("is-active")
    return says_no_to


@pytest.fixture
def host(tmp_path, manager):  # noqa: ARG001  # the program must be there
    environ = {"HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    return Host(environ, sys.executable, tmp_path, "linux")


def elsewhere(host, **environ):
    return Host({**host.environ, **environ}, host.python, host.package, host.platform)


def carried_out(plan):
    """Make the changes; the copies that were left."""
    return [copy for change in plan.changes if (copy := apply_change(change, NOW))]


def units(host):
    directory = host.home / ".config" / "systemd" / "user"
    return {path.name: path.read_text() for path in directory.glob("*")}


def test_both_units_are_written_and_systemd_listens_once_the_old_daemon_is_gone(host):
    plan = service.install_systemd(host)
    carried_out(plan)
    written = units(host)
    assert set(written) == {"memd.socket", "memd.service"}
    assert f"\nExecStart={sys.executable} -P -m memd serve\n" in written["memd.service"]
    assert "\nListenStream=%t/memd/memd.sock\n" in written["memd.socket"]
    assert "Environment=" not in written["memd.service"]
    assert plan.after == (
        (sys.executable, "-P", "-m", "memd", "stop"),
        ("systemctl", "--user", "daemon-reload"),
        ("systemctl", "--user", "enable", "memd.socket"),
        ("systemctl", "--user", "restart", "memd.socket"),
    )


def test_a_second_time_nothing_is_left_to_do(host, manager):
    carried_out(service.install_systemd(host))
    assert not service.install_systemd(host).is_empty  # systemd does not listen yet
    manager()
    again = service.install_systemd(host)
    assert again.is_empty
    assert again.notes == ()


def test_an_edited_unit_leaves_a_dated_copy_and_memds_own_does_not(host):
    carried_out(service.install_systemd(host))
    unit = host.home / ".config/systemd/user/memd.service"
    unit.write_text(unit.read_text().replace("MemoryMax=2G", "MemoryMax=9G"))
    plan = service.install_systemd(host)
    assert "was edited" in plan.notes[0]
    (copy,) = carried_out(plan)
    assert copy.name.startswith("memd.service.memd-2027")
    assert "MemoryMax=9G" in copy.read_text()
    moved = Host(host.environ, "/opt/python", host.package, "linux")
    assert carried_out(service.install_systemd(moved)) == []


def test_uninstalling_takes_away_exactly_what_was_installed(host):
    carried_out(service.install_systemd(host))
    theirs = host.home / ".config/systemd/user/memd.service.d"
    theirs.mkdir()
    plan = service.uninstall_systemd(host)
    assert carried_out(plan) == []
    assert list(theirs.parent.iterdir()) == [theirs]
    assert plan.before == (
        ("systemctl", "--user", "disable", "--now", "memd.socket", "memd.service"),
    )
    assert service.uninstall_systemd(host).is_empty


def test_a_unit_that_memd_did_not_write_is_left_alone(host):
    mine = host.home / ".config/systemd/user/memd.service"
    mine.parent.mkdir(parents=True)
    mine.write_text("[Service]\nExecStart=/bin/true\n")
    plan = service.uninstall_systemd(host)
    assert plan.is_empty
    assert "left alone" in plan.notes[0]


def test_where_systemd_does_not_answer_the_commands_are_told(host, manager):
    manager("show-environment", "is-active")
    plan = service.install_systemd(host)
    assert (plan.before, plan.after) == ((), ())
    assert "  systemctl --user enable memd.socket" in plan.notes
    assert plan.changes[0].is_needed


def test_another_vault_has_units_of_its_own(host):
    carried_out(service.install_systemd(host))
    carried_out(service.install_systemd(elsewhere(host, MEMD_VAULT="work")))
    written = units(host)
    assert "\nListenStream=%t/memd/memd-work.sock\n" in written["memd-work.socket"]
    assert "\nEnvironment=MEMD_VAULT=work\n" in written["memd-work.service"]
    carried_out(service.uninstall_systemd(host))
    assert set(units(host)) == {"memd-work.socket", "memd-work.service"}


def test_a_home_of_ones_own_is_told_to_the_daemon_and_listened_in(host):
    plan = service.install_systemd(
        elsewhere(host, MEMD_HOME="/data/100%", XDG_CONFIG_HOME="/etc/me")
    )
    socket, daemon = plan.changes
    assert str(socket.path) == "/etc/me/systemd/user/memd.socket"
    assert b"\nListenStream=/data/100%%/run/memd.sock\n" in socket.after
    assert b"\nEnvironment=MEMD_HOME=/data/100%%\n" in daemon.after


def test_an_unusual_runtime_directory_is_told_and_the_usual_one_is_not(host):
    usual = service.install_systemd(elsewhere(host, XDG_RUNTIME_DIR=f"/run/user/{os.getuid()}"))
    assert b"%t/memd/memd.sock" in usual.changes[0].after
    other = service.install_systemd(elsewhere(host, XDG_RUNTIME_DIR="/var/mine"))
    assert b"ListenStream=/var/mine/memd/memd.sock" in other.changes[0].after
    assert b"Environment=XDG_RUNTIME_DIR=/var/mine" in other.changes[1].after


def test_on_macos_launchd_is_named(tmp_path):
    with pytest.raises(BadRequest, match="memd install launchd"):
        service.install_systemd(Host({"HOME": str(tmp_path)}, "/py", tmp_path, "darwin"))
