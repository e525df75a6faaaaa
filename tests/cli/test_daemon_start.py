import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from memd.daemon import process as daemon_process
from memd.paths import Paths


def paths(machine):
    return Paths(machine.environ)


def test_start_returns_once_it_answers_and_again_changes_nothing(machine):
    first = machine.run("start")
    assert first.status == 0, first.err
    pid = int(re.search(r"pid (\d+)", first.out)[1])
    assert machine.run("status", "--json").json["pid"] == pid
    again = machine.run("start")
    assert (again.status, again.out) == (0, f"already running, pid {pid}\n")


def test_two_at_once_start_one_daemon(machine):
    both = [machine.popen("start", stdout=-1, stderr=-1, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    pids = {re.search(r"pid (\d+)", out)[1] for out, _ in said}
    assert len(pids) == 1
    # Nobody waits to take over.
    assert machine.run("stop").status == 0
    time.sleep(1.5)
    assert daemon_process.find_lock_holder(paths(machine).lock) is None


def test_only_its_user_can_come_near_it(machine):
    assert machine.run("start").status == 0
    files = paths(machine)
    assert stat.S_IMODE(Path(files.socket).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(files.runtime_dir).stat().st_mode) == 0o700
    for file in (files.database, files.lock, files.log):
        assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600, file


def test_the_daemon_keeps_nothing_of_the_shell_that_started_it(machine):
    """A pipe that it kept open would leave `memd start | tee` waiting for ever."""
    with machine.popen("start", stdout=-1, stderr=-1) as process:
        out, _ = process.communicate(timeout=60)
    assert b"started" in out
    pid = daemon_process.find_lock_holder(paths(machine).lock).pid
    assert os.getsid(pid) == pid


def test_a_stale_socket_of_a_killed_daemon_is_replaced(machine):
    assert machine.run("start").status == 0
    os.kill(daemon_process.find_lock_holder(paths(machine).lock).pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while daemon_process.find_lock_holder(paths(machine).lock) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Path(paths(machine).socket).exists()
    assert machine.run("status").status == 2
    assert machine.run("start").status == 0
    assert machine.run("status").status == 0


def test_a_socket_that_somebody_else_left_is_replaced_too(machine):
    Path(paths(machine).runtime_dir).mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(paths(machine).socket)
    assert machine.run("start").status == 0


def test_a_wrong_setting_is_told_where_one_looks(machine):
    (machine.home / "config.toml").write_text("[recall]\nkk = 3\n", encoding="utf-8")
    ran = machine.run("start")
    assert ran.status == 1
    assert "recall.kk: there is no such key" in ran.err
    assert "Traceback" not in ran.err


def test_a_damaged_vault_is_refused_and_left_as_it_was(machine):
    vault = Path(paths(machine).database)
    vault.parent.mkdir()
    treasure = b"not a database, but somebody's treasure" * 10
    vault.write_bytes(treasure)
    ran = machine.run("start")
    assert ran.status == 1
    assert "Nothing was changed" in ran.err
    assert vault.read_bytes() == treasure


def test_a_home_that_is_too_deep_for_a_socket_is_named(machine, tmp_path):
    machine.environ["MEMD_HOME"] = str(tmp_path / ("d" * 90))
    ran = machine.run("start")
    assert ran.status == 1
    assert "socket's path" in ran.err


def test_two_vaults_are_two_daemons(machine):
    assert machine.run("start").status == 0
    assert machine.run("--vault", "work", "start").status == 0
    pids = {
        machine.run("--vault", v, "status", "--json").json["pid"] for v in ("default", "work")
    }
    assert len(pids) == 2
    assert machine.run("--vault", "work", "stop").status == 0
    assert machine.run("status").status == 0


@pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None, reason="there is no systemd here"
)
def test_where_a_service_manager_listens_it_starts_the_daemon(machine):
    Path(paths(machine).runtime_dir).mkdir(mode=0o700)
    told = [word for pair in machine.environ.items() for word in ("-E", "=".join(pair))]
    command = ["systemd-socket-activate", "-l", paths(machine).socket, *told]
    manager = subprocess.Popen([*command, *machine.command("serve")], stderr=subprocess.DEVNULL)
    with manager:
        try:
            assert daemon_process.wait_until(Path(paths(machine).socket).exists, 10)
            by_hand = machine.run("serve")
            assert (by_hand.status, by_hand.err.count("\n")) == (1, 1)
            started = machine.run("start")
            assert (
                started.out
                == f"started by its service manager, pid {manager.pid}, vault default\n"
            )
            assert "systemd, when somebody connected" in machine.run("status").out
            stopped = machine.run("stop")
            assert stopped.out.startswith(
                f"stopped, pid {manager.pid}; systemd starts it again"
            )
            assert manager.wait(60) == 0
        finally:
            manager.kill()
