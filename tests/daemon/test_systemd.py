"""The daemon under a service manager: real sockets, real processes, and a manager played by the test."""

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from memd.client import Client
from memd.daemon import supervisor
from memd.daemon.supervisor import (
    NO_MANAGER,
    ManagerNotifier,
    ServiceManager,
    take_from_environment,
)
from memd.errors import ConfigError
from memd.installers import service
from memd.paths import Paths
from tests.tables import every_row

from .conftest import wait_until_listening

PING = b'{"jsonrpc":"2.0","id":1,"method":"memd/status"}\n'
_PASS = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""
_FREE_NUMBERS = 700
SERVE = [sys.executable, "-P", "-m", "memd", "serve"]


@pytest.fixture
def manager_socket(tmp_path):
    """The socket where a service manager reads messages."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        box.bind(str(tmp_path / "notify"))
        box.settimeout(60)
        yield box


@pytest.fixture
def passing(monkeypatch):
    """Pass sockets to this very process; gives the variables that say so."""
    opened = []

    def passed(*files, names="memd"):
        # Numbers in a row, as a manager passes them, far above those that anything else in this process has open: to
        # take the place of a file of another test would close that file under a later one.
        first = fcntl.fcntl(2, fcntl.F_DUPFD, _FREE_NUMBERS)
        for at, file in enumerate(files):
            os.dup2(file.fileno(), first + at)
            opened.append(first + at)
        monkeypatch.setattr(supervisor, "FIRST_PASSED_FD", first)
        return {
            "LISTEN_PID": str(os.getpid()),
            "LISTEN_FDS": str(len(files)),
            "LISTEN_FDNAMES": names,
        }

    return passed


@pytest.fixture
def vault_socket(tmp_path):
    """A socket that listens, and its path."""
    path = str(tmp_path / "memd.sock")
    with listener(path) as listening:
        yield listening, path


def listener(path):
    """Listen there as systemd does: in the place of what listened before."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    listening.bind(path)
    listening.listen()
    return listening


# ── What the manager passed ──────────────────────────────────────────────────────────────────────────────


def test_without_variables_of_a_manager_the_daemon_was_started_by_hand():
    assert take_from_environment({"PATH": "/bin"}, os.getpid(), "/nowhere") == NO_MANAGER


def test_a_passed_socket_is_used_and_not_inherited_by_children(passing, vault_socket):
    environ = {"PATH": "/bin", "NOTIFY_SOCKET": "/notify", "WATCHDOG_USEC": "3000000"}
    environ |= passing(vault_socket[0])
    manager = take_from_environment(environ, os.getpid(), vault_socket[1])
    with manager.listening_socket as taken:
        assert taken.getsockname() == vault_socket[1]
        assert not taken.get_inheritable()
        assert not taken.getblocking()
    assert (manager.started_by, manager.notify_address) == ("systemd socket", "/notify")
    assert manager.watchdog_s == 3.0
    assert environ == {"PATH": "/bin"}


def test_variables_of_another_process_are_ignored_and_removed():
    environ = {
        "LISTEN_PID": "1", "LISTEN_FDS": "1", "WATCHDOG_PID": "1", "WATCHDOG_USEC": "9",
        "SYSTEMD_EXEC_PID": "1", "NOTIFY_SOCKET": "/notify",
    }  # fmt: skip
    assert take_from_environment(environ, os.getpid(), "/nowhere") == NO_MANAGER
    assert environ == {}


@every_row("count", ["", "many", "-1"])
def test_a_malformed_number_of_sockets_counts_as_none(count):
    environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count, "WATCHDOG_USEC": count}
    assert take_from_environment(environ, os.getpid(), "/nowhere") == NO_MANAGER


def test_a_socket_of_another_vault_is_refused_by_its_path(passing, vault_socket):
    with pytest.raises(ConfigError, match=r"memd listens at .*memd\.sock"):
        take_from_environment(passing(vault_socket[0]), os.getpid(), "/run/other.sock")


def test_a_descriptor_that_is_not_the_vaults_socket_is_refused_with_the_reason(
    passing, manager_socket, tmp_path
):
    with socket.socket(socket.AF_UNIX) as silent, (tmp_path / "file").open("wb") as file:
        silent.bind(str(tmp_path / "silent"))
        environ = passing(manager_socket, silent, file, names="a:b")
        with pytest.raises(ConfigError) as refused:
            take_from_environment(environ, os.getpid(), str(tmp_path / "silent"))
    assert "a is no Unix stream socket" in str(refused.value)
    assert "b does not listen" in str(refused.value)
    assert "is socket operation on non-socket" in str(refused.value)


def test_systemd_without_a_socket_and_launchd_are_told_apart():
    assert take_from_environment({"NOTIFY_SOCKET": "/notify"}, 7, "/s").started_by == "systemd"
    assert (
        take_from_environment(
            {"XPC_SERVICE_NAME": service.LAUNCHD_LABEL + ".work"}, 7, "/s"
        ).started_by
        == "launchd"
    )
    assert (
        take_from_environment({"XPC_SERVICE_NAME": "application.terminal"}, 7, "/s").started_by
        == "hand"
    )


# ── Messages to the manager ─────────────────────────────────────────────────────────────────────────────────────────


def test_assignments_are_sent_in_one_message(manager_socket):
    ServiceManager(notify_address=manager_socket.getsockname()).notify("READY=1", "STATUS=answers")
    assert manager_socket.recv(100) == b"READY=1\nSTATUS=answers"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract sockets")
def test_an_abstract_address_is_supported():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        box.bind(f"\0memd-test-{os.getpid()}")
        ServiceManager(notify_address=f"@memd-test-{os.getpid()}").notify("READY=1")
        assert box.recv(100) == b"READY=1"


def test_a_message_that_nothing_reads_is_dropped(tmp_path):
    ServiceManager(notify_address=str(tmp_path / "nothing")).notify("READY=1")
    NO_MANAGER.notify("READY=1")


async def test_ready_is_sent_once_the_daemon_listens_and_the_index_is_loaded(
    manager_socket, next_message
):
    listening, loaded = anyio.Event(), anyio.Event()
    notifier = ManagerNotifier(
        ServiceManager(notify_address=manager_socket.getsockname()), listening, loaded
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notifier.run)
        listening.set()
        await anyio.wait_all_tasks_blocked()
        assert notifier.status() == {"ready": False, "beats": 0}
        loaded.set()
        assert await next_message() == b"READY=1\nSTATUS=answers"
        tasks.cancel_scope.cancel()


async def test_ready_is_sent_while_a_slow_index_still_loads(
    manager_socket, next_message, monkeypatch
):
    monkeypatch.setattr(supervisor, "INDEX_WAIT_S", 0.01)
    listening = anyio.Event()
    listening.set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            ManagerNotifier(
                ServiceManager(notify_address=manager_socket.getsockname()),
                listening,
                anyio.Event(),
            ).run
        )
        assert b"READY=1\nSTATUS=answers; the index is still" in await next_message()
        tasks.cancel_scope.cancel()


async def test_watchdog_messages_are_sent_twice_a_period(manager_socket, next_message):
    manager = ServiceManager(notify_address=manager_socket.getsockname(), watchdog_s=0.04)
    notifier = ManagerNotifier(manager, anyio.Event(), anyio.Event())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notifier.run)
        assert [await next_message() for _ in range(4)] == [b"WATCHDOG=1"] * 4
        tasks.cancel_scope.cancel()


@pytest.fixture
def next_message(manager_socket):
    async def receive():
        with anyio.fail_after(60):
            await anyio.wait_readable(manager_socket)
        return manager_socket.recv(100)

    return receive


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
    inherited = {name: os.environ[name] for name in carried if name in os.environ}
    return {**inherited, "HOME": str(tmp_path), "MEMD_HOME": str(tmp_path), **more}


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


def test_the_managers_daemon_replaces_one_started_by_hand_and_the_socket_outlives_both(
    tmp_path, paths, started
):
    environ = environ_of(tmp_path)
    by_hand = started(SERVE, env=environ)
    wait_until_listening(paths.socket)
    with connect(paths) as first:
        assert ask(first)["pid"] == by_hand.pid
    with listener(paths.socket) as listening:

        def activate():
            number = listening.fileno()
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
