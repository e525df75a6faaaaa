"""The plan for launchd, against a launchctl that says what the test has it say."""

import os
import plistlib

import pytest

from memd.errors import BadRequest
from memd.installers import service
from memd.installers.file_changes import Host, apply_change
from memd.paths import Paths

NOW = 1_800_000_000_000
GUI = f"gui/{os.getuid()}"


@pytest.fixture
def knows(tmp_path):
    """A launchctl; say what it knows of."""
    tools = tmp_path / "bin"
    tools.mkdir()
    program = tools / "launchctl"

    def known(*services):
        cases = "|".join(services) or "-"
        program.write_text(f'#!/bin/sh\ncase "$2" in {cases}) exit 0;; esac\nexit 113\n')
        program.chmod(0o755)

    known(GUI)
    return known


@pytest.fixture
def host(tmp_path, knows):  # noqa: ARG001  # the program must be there
    environ = {"HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    return Host(environ, "/opt/memd/bin/python", tmp_path, "darwin")


def agent(host, name="local.memd"):
    return host.home / "Library" / "LaunchAgents" / f"{name}.plist"


def carried_out(plan):
    return [copy for change in plan.changes if (copy := apply_change(change, NOW))]


def test_the_agent_is_written_and_started_once_the_old_daemon_is_gone(host):
    plan = service.install_launchd(host)
    carried_out(plan)
    read = plistlib.loads(agent(host).read_bytes())
    assert read["ProgramArguments"] == ["/opt/memd/bin/python", "-P", "-m", "memd", "serve"]
    assert read["EnvironmentVariables"] == {}
    logs = Paths(dict(host.environ)).state_dir
    assert read["StandardErrorPath"] == f"{logs}/local.memd.log"
    assert plan.before == (("mkdir", "-p", logs),)
    assert plan.after == (
        ("/opt/memd/bin/python", "-P", "-m", "memd", "stop"),
        ("launchctl", "bootstrap", GUI, str(agent(host))),
    )


def test_a_second_time_nothing_is_left_to_do(host, knows):
    carried_out(service.install_launchd(host))
    knows(GUI, f"{GUI}/local.memd")
    assert service.install_launchd(host).is_empty


def test_an_agent_that_runs_and_is_replaced_is_forgotten_first(host, knows):
    carried_out(service.install_launchd(host))
    knows(GUI, f"{GUI}/local.memd")
    moved = Host(host.environ, "/new/python", host.package, "darwin")
    assert ("launchctl", "bootout", f"{GUI}/local.memd") in service.install_launchd(moved).before


def test_uninstalling_takes_away_exactly_what_was_installed(host, knows):
    work = Host({**host.environ, "MEMD_VAULT": "work"}, host.python, host.package, "darwin")
    carried_out(service.install_launchd(host))
    carried_out(service.install_launchd(work))
    knows(GUI, f"{GUI}/local.memd")
    plan = service.uninstall_launchd(host)
    carried_out(plan)
    assert plan.before == (("launchctl", "bootout", f"{GUI}/local.memd"),)
    assert not agent(host).exists()
    read = plistlib.loads(agent(host, "local.memd.work").read_bytes())
    assert read["EnvironmentVariables"] == {"MEMD_VAULT": "work"}
    assert service.uninstall_launchd(host).is_empty


def test_where_launchd_does_not_answer_the_commands_are_told(host, knows):
    knows()
    plan = service.install_launchd(host)
    assert (plan.before, plan.after) == ((), ())
    assert f"  launchctl bootstrap {GUI} {agent(host)}" in plan.notes


def test_on_linux_systemd_is_named(tmp_path):
    with pytest.raises(BadRequest, match="memd install systemd"):
        service.install_launchd(Host({"HOME": str(tmp_path)}, "/py", tmp_path, "linux"))
