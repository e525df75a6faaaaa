import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memd import hook_event, stdio_proxy
from memd.config import RETIRED
from memd.daemon import process as daemon_process
from memd.paths import Paths
from tests.cli.conftest import Machine

# ── start ─────────────────────────────────────────────────────────────────────────────────────────


def paths(machine):
    return Paths(machine.environ)


def test_start_returns_when_the_daemon_answers_and_is_idempotent(machine):
    first = machine.run("start")
    assert first.status == 0, first.err
    pid = int(re.search(r"pid (\d+)", first.out)[1])
    assert machine.run("status", "--json").json["pid"] == pid
    again = machine.run("start")
    assert (again.status, again.out) == (0, f"already running, pid {pid}\n")


def test_two_starts_at_once_start_one_daemon(machine):
    both = [machine.popen("start", stdout=-1, stderr=-1, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    pids = {re.search(r"pid (\d+)", out)[1] for out, _ in said}
    assert len(pids) == 1
    # Nobody waits to take over.
    assert machine.run("stop").status == 0
    assert daemon_process.wait_until(lambda: not list(find_processes(machine)), 60)


def find_processes(machine):
    """Whatever runs for this home."""
    home = f"MEMD_HOME={machine.home}\0".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if home in environ.read_bytes():
                yield environ


@pytest.fixture(scope="module")
def begun_by_an_agent(tmp_path_factory):
    """A daemon that a real `memd start` of an agent's shell left behind."""
    machine = Machine(tmp_path_factory.mktemp("begun"))
    machine.environ["CLAUDE_CODE_MESSAGING_TOKEN"] = "a secret of one session"
    started = machine.run_anew("start")
    assert "started" in started.out, started.err
    yield machine
    machine.kill()


def test_only_its_user_can_reach_the_daemon(begun_by_an_agent):
    files = paths(begun_by_an_agent)
    assert stat.S_IMODE(Path(files.socket).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(files.runtime_dir).stat().st_mode) == 0o700
    for file in (files.database, files.lock, files.log):
        assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600, file


def test_the_daemon_is_detached_from_the_shell(begun_by_an_agent):
    """A pipe that it kept open would leave `memd start | tee`, and this fixture, waiting for ever."""
    pid = daemon_process.find_lock_holder(paths(begun_by_an_agent).lock).pid
    assert os.getsid(pid) == pid


def test_the_daemon_gets_none_of_an_agents_secrets(begun_by_an_agent):
    pid = daemon_process.find_lock_holder(paths(begun_by_an_agent).lock).pid
    assert b"CLAUDE_CODE_MESSAGING_TOKEN" not in Path(f"/proc/{pid}/environ").read_bytes()


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


def test_a_wrong_setting_is_named_by_start(machine):
    (machine.home / "config.toml").write_text("[recall]\nkk = 3\n", encoding="utf-8")
    ran = machine.run("start")
    assert ran.status == 1
    assert "recall.kk: there is no such key" in ran.err
    assert "Traceback" not in ran.err


def test_settings_that_are_none_any_more_start_and_are_explained_once(machine):
    text = (Path(__file__).parent.parent / "data" / "old-config.toml").read_text(encoding="utf-8")
    (machine.home / "config.toml").write_text(text, encoding="utf-8")
    assert machine.run("start").status == 0
    log = Path(paths(machine).log).read_text(encoding="utf-8")
    doctor = machine.run("doctor").out
    for name, became in RETIRED.items():
        explained = f"{name} is no setting any more: {became}"
        assert log.count(explained) == 1, name
        assert " ".join(explained.split()) in " ".join(doctor.split()), name


def test_a_home_too_deep_for_a_socket_has_it_in_a_short_place(machine, tmp_path):
    machine.environ["MEMD_HOME"] = str(tmp_path / ("d" * 90))
    ran = machine.run("start")
    assert ran.status == 0, ran.err
    assert len(os.fsencode(paths(machine).socket)) <= 100
    assert machine.run("stop").status == 0
    assert not Path(paths(machine).socket_dir).exists()


def test_two_vaults_are_two_daemons(machine):
    assert machine.run("start").status == 0
    assert machine.run("--vault", "work", "start").status == 0
    pids = {machine.run("--vault", v, "status", "--json").json["pid"] for v in ("default", "work")}
    assert len(pids) == 2
    assert machine.run("--vault", "work", "stop").status == 0
    assert machine.run("status").status == 0


@pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None, reason="there is no systemd here"
)
def test_a_listening_service_manager_starts_the_daemon(machine):
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
                started.out == f"started by its service manager, pid {manager.pid}, vault default\n"
            )
            assert "systemd, at the first connection" in machine.run("status", "--verbose").out
            stopped = machine.run("stop")
            assert stopped.out.startswith(f"stopped, pid {manager.pid}; systemd starts it again")
            assert manager.wait(60) == 0
        finally:
            manager.kill()


# ── stop ──────────────────────────────────────────────────────────────────────────────────────────


DEAF = """
import signal, sys, time
from memd.daemon import process
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with process.hold_lock(sys.argv[1], 1):
    print("held", flush=True)
    time.sleep(600)
"""


def test_stop_returns_when_the_daemon_has_ended_and_is_idempotent(machine):
    machine.run("start")
    ran = machine.run("stop")
    assert ran.status == 0
    assert ran.out.startswith("stopped, pid ")
    assert daemon_process.find_lock_holder(Paths(machine.environ).lock) is None
    assert not Path(Paths(machine.environ).socket).exists()
    again = machine.run("stop")
    assert (again.status, again.out) == (0, "not running\n")


def test_a_stop_on_purpose_is_noted_until_the_next_start(machine):
    note = Path(paths(machine).stopped)
    machine.run("start")
    assert not note.exists()
    machine.run("restart")
    assert not note.exists()
    machine.run("stop")
    assert note.exists()
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    machine.run("start")
    assert not note.exists()
    daemon_process.kill_daemon(paths(machine).lock)
    assert note.exists()


def test_a_daemon_that_does_not_listen_is_killed(machine):
    path = Paths(machine.environ).lock
    with subprocess.Popen(
        [sys.executable, "-c", DEAF, path], stdout=-1, text=True, env=machine.environ
    ) as process:
        assert process.stdout.readline() == "held\n"
        ran = machine.run("stop")
        assert (ran.status, ran.out) == (0, f"stopped, pid {process.pid}\n")
        assert process.wait(60) == 0


def test_a_restore_in_progress_is_not_killed(machine):
    paths = Paths(machine.environ)
    restoring = DEAF.replace("1):", "1, 'restore'):")
    command = [sys.executable, "-c", restoring, paths.lock]
    Path(paths.state_dir).mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            for words in (["stop"], ["restart"]):
                ran = machine.run(*words)
                assert ran.status
                assert f"a restore of this vault is in progress (pid {process.pid})" in ran.err
            assert process.poll() is None
            assert not Path(paths.stopped).exists()
        finally:
            process.kill()


# ── restart ───────────────────────────────────────────────────────────────────────────────────────


def test_a_restart_keeps_the_memories(machine):
    machine.run("start")
    machine.run("remember", "the build command is make all", "--project", "global")
    before = machine.run("status", "--json").json
    ran = machine.run_anew("restart")
    assert ran.status == 0, ran.err
    assert [line.split(",")[0] for line in ran.out.splitlines()] == ["stopped", "started"]
    after = machine.run("status", "--json").json
    assert after["pid"] != before["pid"]
    assert after["summaries"]["count"] == before["summaries"]["count"] == 1
    assert "make all" in machine.run("search", "build", "command", "--project", "all").out


def test_a_wrong_setting_prevents_a_restart(machine):
    machine.run("start")
    before = machine.run("status", "--json").json
    config = machine.home / "config.toml"
    for text in ("[recall]\nkk = 3\n", '[recall]\nprofile = "mine"\n'):
        config.write_text(text, encoding="utf-8")
        ran = machine.run("restart")
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.count("\n") == 1
        assert machine.run("status", "--json").json["pid"] == before["pid"]


def test_a_restart_of_nothing_is_a_start(machine):
    ran = machine.run("restart")
    assert ran.status == 0
    assert ran.out.startswith("not running\nstarted")


# ── serve ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_daemon_is_refused_with_the_pid_of_the_first(served):
    ran = served.run("serve", "--foreground")
    pid = served.run("status", "--json").json["pid"]
    assert ran.status == 1
    assert f"pid {pid}" in ran.err
    assert ran.err.count("\n") == 1


def test_serve_answers_until_it_is_interrupted(machine):
    with machine.popen("serve", stdout=-1, stderr=-1) as process:
        deadline = time.monotonic() + 60
        while machine.run("status").status == 2:
            assert time.monotonic() < deadline
            assert process.poll() is None
        process.send_signal(2)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"", b"")


# ── hook ──────────────────────────────────────────────────────────────────────────────────────────


ANSWER = {
    "session_id": "cli-hook",
    "prompt_id": "p1",
    "cwd": "/home/dev/ledger",
    "hook_event_name": "Stop",
    "last_assistant_message": "The hooks of the ledger write a line each.",
}


def test_a_hook_prints_nothing(served):
    before = served.run("status", "--json").json["events"]["count"]
    ran = served.run("hook", stdin=json.dumps(ANSWER))
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    # At once, or by the spool if this machine is busy.
    served.wait_for(lambda status: status["events"]["count"] == before + 1)


def test_without_a_daemon_the_payload_is_spooled(machine):
    ran = machine.run("hook", stdin=json.dumps(ANSWER))
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert machine.run("status", "--json").json["spool"]["files"] == 1
    assert machine.run("start").status == 0
    status = machine.wait_for(lambda status: status["events"]["count"] == 1)
    assert status["books"]["stored"] == 1
    machine.wait_for(lambda status: status["spool"]["files"] == 0)


def test_run_through_its_help_page_hook_gets_its_arguments(alone, monkeypatch):
    monkeypatch.setattr(
        hook_event, "main", lambda arguments: 0 if list(arguments) == ["stop"] else 9
    )
    assert alone("hook", "stop").status == 0


# ── mcp ───────────────────────────────────────────────────────────────────────────────────────────


def test_mcp_answers_a_handshake(served):
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    ran = served.run("mcp", stdin=json.dumps(hello) + "\n")
    assert json.loads(ran.out.splitlines()[0])["result"]["serverInfo"]["name"] == "memd"


def test_run_through_its_help_page_mcp_gets_its_arguments(alone, monkeypatch):
    taken = []
    monkeypatch.setattr(stdio_proxy, "main", lambda arguments: taken.append(list(arguments)) or 5)
    assert alone("mcp", "--anything").status == 5
    assert taken == [["--anything"]]
