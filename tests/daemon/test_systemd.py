"""The daemon under service managers: real sockets, real processes, and a manager played by the test."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from memd.client import Client
from memd.daemon import process as daemon_process
from memd.daemon import systemd
from memd.daemon.process import wait_until
from memd.daemon.systemd import (
    NO_MANAGER,
    ManagerNotifier,
    ServiceManager,
    take_from_environment,
)
from memd.errors import ConfigError
from memd.installers import service
from memd.paths import Paths

PING = b'{"jsonrpc":"2.0","id":1,"method":"memd/status"}\n'
_PASS = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""
SERVE = [sys.executable, "-P", "-m", "memd", "serve"]


@pytest.fixture
def mailbox(tmp_path):
    """Where news arrives, as a manager has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        box.bind(str(tmp_path / "news"))
        box.settimeout(60)
        yield box


@pytest.fixture
def passing(monkeypatch):
    """Pass sockets to this very process; gives the variables that say so."""
    opened = []

    def passed(*files, names="memd"):
        # Numbers in a row, as a manager passes them.
        first = 1 + max(os.dup(2) for _ in files)
        for at, file in enumerate(files):
            os.dup2(file.fileno(), first + at)
            opened.append(first + at)
        monkeypatch.setattr(systemd, "FIRST_PASSED_FD", first)
        return {
            "LISTEN_PID": str(os.getpid()),
            "LISTEN_FDS": str(len(files)),
            "LISTEN_FDNAMES": names,
        }

    return passed


@pytest.fixture
def door(tmp_path):
    """A socket that listens, and its path."""
    path = str(tmp_path / "memd.sock")
    with listener(path) as listening:
        yield listening, path


def listener(path):
    """Listen there as systemd does: in the place of whoever did before."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    listening.bind(path)
    listening.listen()
    return listening


# ── What was passed ──────────────────────────────────────────────────────────────────────────────


def test_a_daemon_that_nobody_manages_was_started_by_hand():
    assert take_from_environment({"PATH": "/bin"}, os.getpid(), "/nowhere") == NO_MANAGER


def test_the_passed_socket_is_taken_and_no_child_will_take_it_again(passing, door):
    environ = {"PATH": "/bin", "NOTIFY_SOCKET": "/news", "WATCHDOG_USEC": "3000000"}
    environ |= passing(door[0])
    starter = take_from_environment(environ, os.getpid(), door[1])
    with starter.door as taken:
        assert taken.getsockname() == door[1]
        assert not taken.get_inheritable()
        assert not taken.getblocking()
    assert (starter.by, starter.address, starter.watchdog_s) == ("systemd socket", "/news", 3.0)
    assert environ == {"PATH": "/bin"}


def test_what_is_meant_for_another_process_is_not_taken():
    environ = {
        "LISTEN_PID": "1", "LISTEN_FDS": "1", "WATCHDOG_PID": "1", "WATCHDOG_USEC": "9",
        "SYSTEMD_EXEC_PID": "1", "NOTIFY_SOCKET": "/news",
    }  # fmt: skip
    assert take_from_environment(environ, os.getpid(), "/nowhere") == NO_MANAGER
    assert environ == {}


@pytest.mark.parametrize("count", ["", "many", "-1"])
def test_nonsense_for_a_number_of_sockets_is_none(count):
    environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count, "WATCHDOG_USEC": count}
    assert take_from_environment(environ, os.getpid(), "/nowhere") == NO_MANAGER


def test_a_socket_of_another_vault_is_refused_by_its_path(passing, door):
    with pytest.raises(ConfigError, match=r"memd listens at .*memd\.sock"):
        take_from_environment(passing(door[0]), os.getpid(), "/run/other.sock")


def test_what_cannot_be_the_door_is_refused_with_the_reason(passing, mailbox, tmp_path):
    with socket.socket(socket.AF_UNIX) as silent, (tmp_path / "file").open("wb") as file:
        silent.bind(str(tmp_path / "silent"))
        environ = passing(mailbox, silent, file, names="a:b")
        with pytest.raises(ConfigError) as refused:
            take_from_environment(environ, os.getpid(), str(tmp_path / "silent"))
    assert "a is no Unix stream socket" in str(refused.value)
    assert "b does not listen" in str(refused.value)
    assert "is socket operation on non-socket" in str(refused.value)


def test_systemd_without_a_socket_and_launchd_are_told_apart():
    assert take_from_environment({"NOTIFY_SOCKET": "/news"}, 7, "/s").by == "systemd"
    assert (
        take_from_environment({"XPC_SERVICE_NAME": service.LAUNCHD_LABEL + ".work"}, 7, "/s").by
        == "launchd"
    )
    assert (
        take_from_environment({"XPC_SERVICE_NAME": "application.terminal"}, 7, "/s").by
        == "hand"
    )


# ── News ─────────────────────────────────────────────────────────────────────────────────────────


def test_news_is_sent_in_one_letter(mailbox):
    ServiceManager(address=mailbox.getsockname()).tell("READY=1", "STATUS=answers")
    assert mailbox.recv(100) == b"READY=1\nSTATUS=answers"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract sockets")
def test_an_address_that_is_no_file_is_understood():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        box.bind(f"\0memd-test-{os.getpid()}")
        ServiceManager(address=f"@memd-test-{os.getpid()}").tell("READY=1")
        assert box.recv(100) == b"READY=1"


def test_news_that_nobody_takes_harms_nobody(tmp_path):
    ServiceManager(address=str(tmp_path / "nobody")).tell("READY=1")
    NO_MANAGER.tell("READY=1")


async def test_ready_is_said_once_it_listens_and_the_index_is_read(mailbox, eventually_told):
    listening, read = anyio.Event(), anyio.Event()
    herald = ManagerNotifier(ServiceManager(address=mailbox.getsockname()), listening, read)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(herald.run)
        listening.set()
        await anyio.wait_all_tasks_blocked()
        assert herald.status() == {"ready": False, "beats": 0}
        read.set()
        assert await eventually_told() == b"READY=1\nSTATUS=answers"
        tasks.cancel_scope.cancel()


async def test_an_index_that_takes_long_is_said_and_not_waited_for(
    mailbox, eventually_told, monkeypatch
):
    monkeypatch.setattr(systemd, "INDEX_WAIT_S", 0.01)
    listening = anyio.Event()
    listening.set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            ManagerNotifier(
                ServiceManager(address=mailbox.getsockname()), listening, anyio.Event()
            ).run
        )
        assert b"READY=1\nSTATUS=answers; the index is still" in await eventually_told()
        tasks.cancel_scope.cancel()


async def test_the_watchdog_is_fed_twice_a_period(mailbox, eventually_told):
    starter = ServiceManager(address=mailbox.getsockname(), watchdog_s=0.04)
    herald = ManagerNotifier(starter, anyio.Event(), anyio.Event())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(herald.run)
        began = anyio.current_time()
        assert [await eventually_told() for _ in range(4)] == [b"WATCHDOG=1"] * 4
        assert anyio.current_time() - began >= 3 * 0.02
        tasks.cancel_scope.cancel()


@pytest.fixture
def eventually_told(mailbox):
    async def told():
        with anyio.fail_after(60):
            await anyio.wait_readable(mailbox)
        return mailbox.recv(100)

    return told


# ── Real daemons ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def paths(tmp_path):
    paths = Paths({"MEMD_HOME": str(tmp_path)})
    Path(paths.runtime_dir).mkdir(mode=0o700)
    return paths


@pytest.fixture
def started():
    """Start processes that do not outlive the test."""
    running = []

    def start(command, **settings):
        running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, **settings))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def environ_of(tmp_path, **more):
    carried = ("PATH", "COVERAGE_PROCESS_START")
    kept = {name: os.environ[name] for name in carried if name in os.environ}
    return {**kept, "HOME": str(tmp_path), "MEMD_HOME": str(tmp_path), **more}


def ask(connection):
    """Ask for the status on a connection that is open already."""
    connection.settimeout(60)
    connection.sendall(PING)
    with connection.makefile("rb") as answers:
        return json.loads(answers.readline())["result"]


def connect(paths):
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(paths.socket)
    except OSError:
        connection.close()
        raise
    return connection


@pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None, reason="there is no systemd here"
)
def test_the_first_connection_starts_the_daemon_and_is_answered(
    tmp_path, paths, mailbox, started
):
    told = environ_of(tmp_path, NOTIFY_SOCKET=mailbox.getsockname(), WATCHDOG_USEC="400000")
    passed_on = [word for name, value in told.items() for word in ("-E", f"{name}={value}")]
    manager = started(
        ["systemd-socket-activate", "-l", paths.socket, "--fdname=memd", *passed_on, *SERVE],
        stderr=subprocess.DEVNULL,
    )
    assert wait_until(Path(paths.socket).exists, 10)
    assert daemon_process.find_lock_holder(paths.lock) is None
    with connect(paths) as first:
        status = ask(first)
    assert (status["health"], status["started_by"]) == ("healthy", "systemd socket")
    news = [mailbox.recv(100) for _ in range(4)]
    assert news.count(b"READY=1\nSTATUS=answers") == 1
    assert news.count(b"WATCHDOG=1") == 3
    manager.send_signal(signal.SIGTERM)
    while (letter := mailbox.recv(100)) == b"WATCHDOG=1":
        pass
    assert letter.startswith(b"STOPPING=1")
    assert manager.wait(60) == 0
    assert Path(paths.socket).exists()


def test_the_managers_daemon_takes_over_and_its_socket_outlives_every_daemon(
    tmp_path, paths, started
):
    environ = environ_of(tmp_path)
    by_hand = started(SERVE, env=environ)
    assert wait_until(Path(paths.socket).exists, 20)
    with connect(paths) as first:
        assert ask(first)["pid"] == by_hand.pid
    with listener(paths.socket) as door:

        def activate():
            number = door.fileno()
            command = [sys.executable, "-c", _PASS, str(number), *SERVE]
            return started(command, env=environ, pass_fds=[number])

        with connect(paths) as waiting:
            activated = activate()
            assert ask(waiting)["pid"] == activated.pid
        assert by_hand.wait(60) == 0
        activated.kill()
        activated.wait()
        with connect(paths) as waiting:
            activated = activate()
            assert ask(waiting)["pid"] == activated.pid
        with Client(paths.socket, 10) as client:
            client.call("memd/shutdown")
        assert activated.wait(60) == 0
        connect(paths).close()
