import json
import signal
import subprocess
import sys

import anyio
import pytest

from memd.daemon.supervisor import Shutdown, supervise
from memd.embeddings import RestartBackoff
from memd.errors import ConfigError


def hide(text):
    return text.replace("hunter2", "[redacted]")


pytestmark = pytest.mark.usefixtures("journal")


class ScriptedWorker:
    """Follows a script, one step per run: raise an exception, return for None, else stay."""

    def __init__(self, name, *script):
        self.name = name
        self.script = list(script)
        self.runs = 0
        self.stays = anyio.Event()

    async def run(self):
        self.runs += 1
        step = self.script.pop(0) if self.script else "stay"
        if isinstance(step, BaseException):
            raise step
        if step == "stay":
            self.stays.set()
            await anyio.sleep_forever()

    def status(self):
        return {}


@pytest.fixture
def quick(monkeypatch):
    """Waits that a test can afford: a thousandth of the real ones."""
    real = RestartBackoff.after_crash

    def hurry(backoff, ran_s, jitter):
        after = real(backoff, ran_s, jitter)
        return RestartBackoff(after.crashes, after.wait_s / 1000)

    monkeypatch.setattr(RestartBackoff, "after_crash", hurry)


@pytest.mark.usefixtures("quick")
async def test_a_crashed_worker_is_restarted_and_the_others_go_on():
    crashing = ScriptedWorker("indexer", ValueError("one"), ValueError("two"))
    steady = ScriptedWorker("intake")
    async with supervise(hide) as supervisor:
        supervisor.start(crashing)
        supervisor.start(steady)
        with anyio.fail_after(60):
            await crashing.stays.wait()
        crashed, neighbour = supervisor.workers
        assert (crashed.state, crashed.restarts, crashed.last_error) == (
            "running",
            2,
            "ValueError: two",
        )
        assert (neighbour.state, neighbour.restarts, steady.runs) == ("running", 0, 1)
        assert crashed.last_error_at_s is not None


@pytest.mark.usefixtures("quick")
async def test_a_crash_is_logged_with_its_traceback_and_without_secrets(journal):
    worker = ScriptedWorker("distiller", RuntimeError("password is hunter2"))
    async with supervise(hide) as supervisor:
        supervisor.start(worker)
        with anyio.fail_after(60):
            await worker.stays.wait()
        assert supervisor.workers[0].last_error == "RuntimeError: password is [redacted]"
    (entry,) = [line for line in journal() if line["event"] == "worker_crashed"]
    assert entry["room"] == "distiller"
    assert "Traceback" in entry["exception"]
    assert "hunter2" not in json.dumps(entry)


@pytest.mark.usefixtures("quick")
async def test_a_group_of_errors_is_described_by_its_first_cause():
    inner = ExceptionGroup("inner", [OSError(28, "No space left on device")])
    worker = ScriptedWorker("intake", ExceptionGroup("outer", [inner]))
    async with supervise(hide) as supervisor:
        supervisor.start(worker)
        with anyio.fail_after(60):
            await worker.stays.wait()
        assert supervisor.workers[0].last_error == "OSError: [Errno 28] No space left on device"


async def test_a_worker_that_waits_for_its_restart_is_backing_off():
    worker = ScriptedWorker("listener", ValueError("no"))
    async with supervise(hide, jitter=lambda: 0.5) as supervisor:
        supervisor.start(worker)
        await anyio.wait_all_tasks_blocked()
        supervised = supervisor.workers[0]
        assert (supervised.state, supervised.restarts, supervised.backoff.wait_s) == (
            "backing off",
            0,
            1.0,
        )


async def test_a_worker_that_returns_is_not_started_again():
    worker = ScriptedWorker("done", None)
    async with supervise(hide) as supervisor:
        supervisor.start(worker)
        await anyio.wait_all_tasks_blocked()
        assert (supervisor.workers[0].state, worker.runs) == ("stopped", 1)


async def test_one_worker_can_be_stopped_while_the_others_go_on():
    listener, intake = ScriptedWorker("listener"), ScriptedWorker("intake")
    async with supervise(hide) as supervisor:
        supervisor.start(listener)
        supervisor.start(intake)
        await anyio.wait_all_tasks_blocked()
        await supervisor.stop(listener)
        await supervisor.stop(listener)  # it has stopped already
        assert [one.state for one in supervisor.workers] == ["stopped", "running"]


async def test_leaving_the_block_stops_every_worker():
    workers = [
        ScriptedWorker("a"),
        ScriptedWorker("b", ValueError("backing off when the supervisor ends")),
    ]
    with anyio.fail_after(60):
        async with supervise(hide, jitter=lambda: 0.5) as supervisor:
            for worker in workers:
                supervisor.start(worker)
            await anyio.wait_all_tasks_blocked()
    assert [one.state for one in supervisor.workers] == ["stopped", "stopped"]


@pytest.mark.usefixtures("quick")
async def test_a_minute_of_health_resets_the_backoff():
    clock = iter([0, 1, 2, 3, 4, 100, 101])  # started and crashed, three times; the third lasted
    worker = ScriptedWorker("indexer", ValueError("1"), ValueError("2"), ValueError("3"))
    async with supervise(hide, seconds=lambda: next(clock)) as supervisor:
        supervisor.start(worker)
        with anyio.fail_after(60):
            await worker.stays.wait()
        assert (supervisor.workers[0].backoff.crashes, supervisor.workers[0].restarts) == (1, 3)


async def test_a_wrong_setting_ends_the_daemon_instead_of_a_restart():
    with pytest.RaisesGroup(ConfigError):
        async with supervise(hide) as supervisor:
            supervisor.start(
                ScriptedWorker("listener", ConfigError("the socket's path is too long"))
            )
            await anyio.sleep_forever()


DAEMON = """
import sys, time
import anyio
from memd.daemon.supervisor import Shutdown

async def main():
    shutdown = Shutdown(float(sys.argv[1]))
    async with anyio.create_task_group() as group:
        group.start_soon(shutdown.watch_signals)
        await anyio.wait_all_tasks_blocked()
        print("ready", flush=True)
        await shutdown.wait()
        print("requested", flush=True)
        if sys.argv[2] == "hangs":
            time.sleep(600)
        if sys.argv[2] == "busy":
            await anyio.sleep(600)
        shutdown.complete()
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
def test_a_signal_requests_a_shutdown_that_ends_with_status_0(daemon, number):
    child = daemon(30, "polite")
    child.send_signal(number)
    assert child.wait(60) == 0


@pytest.mark.parametrize("temper", ["busy", "hangs"])
def test_the_deadline_ends_a_daemon_even_if_its_event_loop_hangs(daemon, temper):
    child = daemon(0.3, temper)
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0


def test_a_second_signal_ends_the_process_at_once(daemon):
    child = daemon(60, "busy")
    child.send_signal(signal.SIGTERM)
    assert child.stdout.readline() == "requested\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 128 + signal.SIGTERM


async def test_a_second_request_does_not_move_the_deadline():
    shutdown = Shutdown(60)
    shutdown.request()
    deadline = shutdown._deadline
    shutdown.request()
    assert shutdown._deadline is deadline
    with anyio.fail_after(60):
        await shutdown.wait()
    shutdown.complete()
    assert shutdown.is_requested
