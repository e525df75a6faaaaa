import os
import signal
import subprocess
import sys

import anyio
import pytest

from memd.daemon.supervisor import Shutdown

DAEMON = """
import sys, time
import anyio
from memd.daemon.supervisor import Shutdown

async def main():
    leave = Shutdown(float(sys.argv[1]))
    async with anyio.create_task_group() as group:
        group.start_soon(leave.heed_signals)
        await anyio.wait_all_tasks_blocked()
        print("ready", flush=True)
        await leave.wait()
        print("asked", flush=True)
        if sys.argv[2] == "hangs":
            time.sleep(600)
        if sys.argv[2] == "busy":
            await anyio.sleep(600)
        leave.done()
        group.cancel_scope.cancel()

anyio.run(main)
"""


@pytest.fixture
def daemon():
    started = []

    def start(stop_s, temper):
        child = subprocess.Popen(
            [sys.executable, "-c", DAEMON, str(stop_s), temper],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(child)
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_and_work_that_ends_in_time_ends_well(daemon, number):
    child = daemon(30, "polite")
    child.send_signal(number)
    assert child.wait(60) == 0


@pytest.mark.parametrize("temper", ["busy", "hangs"])
def test_the_deadline_holds_even_if_the_event_loop_hangs(daemon, temper):
    child = daemon(0.3, temper)
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0


def test_a_second_signal_ends_it_at_once(daemon):
    child = daemon(60, "busy")
    child.send_signal(signal.SIGTERM)
    assert child.stdout.readline() == "asked\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 128 + signal.SIGTERM


async def test_a_caller_may_ask_twice_and_it_is_asked_once():
    leave = Shutdown(60)
    leave.ask()
    deadline = leave._deadline
    leave.ask()
    assert leave._deadline is deadline
    with anyio.fail_after(60):
        await leave.wait()
    leave.done()
    assert leave.is_asked


async def test_what_was_never_asked_has_no_deadline_to_call_off():
    Shutdown(60).done()
    assert os.getpid()
