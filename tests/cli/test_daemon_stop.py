import signal
import subprocess
import sys
import time
from pathlib import Path

from memd.daemon import process as daemon_process
from memd.paths import Paths

DEAF = """
import signal, sys, time
from memd.daemon import process
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with process.hold_lock(sys.argv[1], 1):
    print("held", flush=True)
    time.sleep(600)
"""


def test_stop_returns_once_it_has_left_and_again_is_no_error(machine):
    machine.run("start")
    ran = machine.run("stop")
    assert ran.status == 0
    assert ran.out.startswith("stopped, pid ")
    assert daemon_process.find_lock_holder(Paths(machine.environ).lock) is None
    assert not Path(Paths(machine.environ).socket).exists()
    again = machine.run("stop")
    assert (again.status, again.out) == (0, "not running\n")


def test_sigterm_ends_it_well(machine):
    with machine.popen("serve", stdout=-1, stderr=-1) as process:
        deadline = time.monotonic() + 60
        while machine.run("status").status == 2:
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.communicate()
    assert not Path(Paths(machine.environ).database + "-wal").exists()


def test_a_daemon_that_does_not_listen_is_ended_by_a_signal(machine):
    path = Paths(machine.environ).lock
    with subprocess.Popen(
        [sys.executable, "-c", DEAF, path], stdout=-1, text=True, env=machine.environ
    ) as process:
        assert process.stdout.readline() == "held\n"
        ran = machine.run("stop")
        assert (ran.status, ran.out) == (0, f"stopped, pid {process.pid}\n")
        assert process.wait(60) == 0


def test_a_restore_that_is_under_way_is_not_ended(machine):
    paths = Paths(machine.environ)
    restoring = DEAF.replace("1):", "1, 'restore'):")
    command = [sys.executable, "-c", restoring, paths.lock]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            for words in (["stop"], ["restart"]):
                ran = machine.run(*words)
                assert ran.status
                assert f"a restore of this vault is under way (pid {process.pid})" in ran.err
            assert process.poll() is None
        finally:
            process.kill()
