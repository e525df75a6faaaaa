import contextlib
import json
import os
import resource
import socket
import stat
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import ConfigError
from memd.server import jsonrpc
from memd.server import listener as server_listener
from memd.server.listener import (
    DESCRIPTORS_RESERVED,
    Listener,
    SocketFile,
    peer_credentials,
    raise_descriptor_limit,
)
from memd.server.service import MemoryService


def _modes(path):
    return tuple(stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent))


def _is_heard(path):
    with socket.socket(socket.AF_UNIX) as caller:
        return caller.connect_ex(path) == 0


async def test_only_this_user_can_reach_the_socket(server, connect):
    async with server.open():
        assert _modes(Path(server.path)) == (0o600, 0o700)
        async with connect() as client:
            assert (await client.call("memd/ping"))["result"]["pid"] == os.getpid()


async def test_a_dead_daemons_socket_is_replaced(server, connect):
    Path(server.path).parent.mkdir(mode=0o700)
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(server.path)
    dead.close()
    async with server.open(), connect() as client:
        assert "result" in await client.call("memd/ping")


async def test_a_service_managers_socket_is_not_taken_from_it(server):
    Path(server.path).parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as managers:
        managers.bind(server.path)
        managers.listen(0)
        for _ in range(2):  # the second finds the queue full
            with pytest.raises(ConfigError, match="a service manager listens"):
                await Listener(MemoryService(server.app), server.path, clock=server.clock).run()
    assert await anyio.Path(server.path).is_socket()


async def test_a_passed_socket_is_served_again_and_again_and_stays_its_owners(server, connect):
    Path(server.path).parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as passed:
        passed.bind(server.path)
        passed.listen()
        passed.setblocking(False)
        listener = Listener(
            MemoryService(server.app), server.path, clock=server.clock, passed=passed
        )
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.run)
                async with connect() as client:
                    assert "result" in await client.call("memd/ping")
                tasks.cancel_scope.cancel()
        assert await anyio.Path(server.path).is_socket()
        async with connect():
            passed.accept()[0].close()


async def test_a_file_in_the_way_is_left_alone(server):
    path = Path(server.path)
    path.parent.mkdir(mode=0o700)
    await anyio.Path(path).write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="in the way"):
        await Listener(MemoryService(server.app), server.path, clock=server.clock).run()
    assert await anyio.Path(path).read_text(encoding="utf-8") == "mine"


async def test_a_path_that_is_too_long_names_what_to_set(server, tmp_path):
    long = str(tmp_path / ("x" * 120) / "memd.sock")
    with pytest.raises(ConfigError, match="MEMD_HOME or XDG_RUNTIME_DIR"):
        await Listener(MemoryService(server.app), long, clock=server.clock).run()


async def test_shutdown_removes_the_socket_file_unless_it_is_another_s(server):
    async with server.open():
        assert await anyio.Path(server.path).exists()
    assert not await anyio.Path(server.path).exists()
    async with server.open():
        await anyio.Path(server.path).unlink()
        other = socket.socket(socket.AF_UNIX)
        other.bind(server.path)
    assert await anyio.Path(server.path).exists()
    other.close()


async def test_a_socket_file_that_is_removed_is_bound_again_and_open_connections_go_on(
    server, connect, eventually, monkeypatch
):
    monkeypatch.setattr(server_listener, "WATCH_S", 0.02)
    async with server.open(), connect() as inside:
        for _ in range(2):
            await anyio.Path(server.path).unlink()
            await eventually(lambda: _is_heard(server.path))
            async with connect() as client:
                assert "result" in await client.call("memd/ping")
            assert "result" in await inside.call("memd/ping")
    assert not server.shutdowns
    assert not await anyio.Path(server.path).exists()


async def test_a_daemon_without_its_socket_file_stops_if_its_vault_is_deleted_too(
    server, eventually, monkeypatch
):
    monkeypatch.setattr(server_listener, "WATCH_S", 0.02)
    async with server.open():
        await anyio.Path(server.db.path).unlink()
        await anyio.Path(server.path).unlink()
        await eventually(lambda: server.shutdowns)
    assert server.shutdowns == [True]


async def test_a_listener_can_run_again(server, connect):
    for _ in range(2):
        async with server.open(), connect() as client:
            assert "result" in await client.call("memd/ping")


async def test_another_user_is_refused(server, connect, monkeypatch):
    monkeypatch.setattr(server_listener, "peer_credentials", lambda _: (os.getuid() + 1, 1))
    async with server.open(), connect() as client:
        assert "another user" in (await client.answer())["error"]["message"]
        assert await client.answer() is None


async def test_one_connection_too_many_gets_an_error_line(server, connect):
    async with server.open(connections=1), connect() as first:
        assert "result" in await first.call("memd/ping")
        async with connect() as second:
            assert "1 connections already" in (await second.answer())["error"]["message"]
            assert await second.answer() is None
        assert "result" in await first.call("memd/ping")


async def test_a_low_limit_of_open_files_admits_fewer_connections(server, connect, monkeypatch):
    monkeypatch.setattr(server_listener, "raise_descriptor_limit", lambda _: 1)
    async with server.open(connections=10), connect() as first:
        assert "result" in await first.call("memd/ping")
        async with connect() as second:
            assert "ulimit -n" in (await second.answer())["error"]["message"]


async def test_two_hundred_connections_are_served_at_once(server, connect, eventually):
    answered = []

    async def ask(number):
        async with connect() as client:
            answered.append((await client.call("memd/ping", number=number))["id"])
            await everybody.wait()

    everybody = anyio.Event()
    async with server.open(), anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(ask, number)
        await eventually(lambda: len(answered) >= 200)
        assert server.listener.status()["connections"] == 200
        everybody.set()
    assert sorted(answered) == list(range(200))


async def test_a_line_far_too_long_is_never_held(server, raw_socket):
    async with server.open(line_bytes=10_000):
        sock = raw_socket()
        sock.setblocking(False)
        sent = 0
        with anyio.fail_after(60):
            while sent < 50_000_000:
                try:
                    sent += sock.send(b"x" * 65_536)
                except BlockingIOError:
                    await anyio.lowlevel.checkpoint()
                except (BrokenPipeError, ConnectionResetError):
                    break
        # It hung up after a second of listening, or took it all in and dropped it.
        assert server.listener.status()["failures"] == 0


async def test_a_client_that_does_not_read_is_let_go_and_the_others_are_not(
    server, connect, raw_socket, eventually
):
    server.remember("login " + "x" * 200, "y" * 8_000)
    async with server.open(send_s=0.2), connect() as good:
        bad = raw_socket()
        bad.setblocking(False)
        call = {"jsonrpc": "2.0", "id": 1, "method": "memd/get", "params": {"ids": [1]}}
        data = (json.dumps(call) + "\n").encode() * 200
        await eventually(lambda: server.listener.status()["connections"] >= 2)
        with anyio.fail_after(60):
            while server.listener.status()["connections"] > 1:
                try:
                    bad.send(data)
                except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                    await anyio.sleep(0.005)
                assert "result" in await good.call("memd/ping")
        assert server.listener.status()["failures"] == 0


async def test_shutdown_lets_open_requests_be_answered(server, connect, eventually):
    server.recaller.gate = anyio.Event()
    server.remember("slow login")
    async with server.open() as opened, connect() as client, connect() as idle:
        assert "result" in await idle.call("memd/ping")
        await client.send(
            {"jsonrpc": "2.0", "id": 1, "method": "memd/search", "params": {"query": "slow"}}
        )
        await eventually(lambda: opened.recaller.asked)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_close_then_open_the_gate, opened)
            answer = await client.answer()
            assert len(answer["result"]["hits"]) == 1
            assert await client.answer() is None
            assert await idle.answer() is None


async def test_shutdown_lets_events_be_stored_and_acknowledged(server, connect, eventually):
    may_write = threading.Event()
    payload = {"session_id": "s", "hook_event_name": "Stop"}
    async with (
        server.open() as opened,
        connect() as first,
        connect() as second,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.db.write, lambda _: may_write.wait())
        control = opened.listener._handlers.control
        for calls, client in ((1, first), (2, second)):  # the second waits for the first
            params = {"client": "claude-code", "payload": payload, "at": 10_000 * calls}
            call = {"jsonrpc": "2.0", "id": 1, "method": "memd/capture", "params": params}
            await client.send(call)
            await eventually(lambda calls=calls: control.calls == calls)
        for connection in tuple(opened.listener._open):
            connection.finish()
        await anyio.wait_all_tasks_blocked()
        may_write.set()
        for client in (first, second):
            assert (await client.answer())["result"]["outcome"] == "stored"
            assert await client.answer() is None


async def _close_then_open_the_gate(server):
    for connection in tuple(server.listener._open):
        connection.finish()
    await anyio.sleep(0.05)
    server.recaller.gate.set()


async def test_shutdown_ends_although_an_answer_never_comes(server, connect, eventually):
    server.recaller.gate = anyio.Event()
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(server.open(drain_s=0.1))
        client = await stack.enter_async_context(connect())
        await client.send(
            {"jsonrpc": "2.0", "id": 1, "method": "memd/search", "params": {"query": "slow"}}
        )
        await eventually(lambda: server.recaller.asked)
        # Leaving the stack closes the listener, though the gate never opens.


async def test_a_client_that_disconnects_in_mid_line_harms_no_other(
    server, connect, raw_socket, eventually
):
    async with server.open(), connect() as good:
        for _ in range(50):
            sock = raw_socket()
            sock.send(b'{"jsonrpc":"2.0","id":1,"method":"memd/status"}\n{"jsonrp')
            sock.close()
        assert "result" in await good.call("memd/ping")
        await eventually(lambda: server.listener.status()["connections"] <= 1)
        assert server.listener.status()["failures"] == 0


@given(st.lists(st.binary(max_size=200), max_size=6))
async def test_no_bytes_on_the_wire_stop_the_next_request(server, lines):
    async with server.open(drain_s=0.1), await anyio.connect_unix(server.path) as stream:
        for line in lines:
            await stream.send(line.replace(b"\n", b"") + b"\n")
        await stream.send(b'{"jsonrpc":"2.0","id":"after","method":"memd/ping"}\n')
        seen = b""
        with anyio.fail_after(60):
            while b'"id":"after"' not in seen:
                seen += await stream.receive()


async def test_a_failure_in_one_connection_does_not_reach_the_others(server, connect, monkeypatch):
    parse_line = jsonrpc.parse_line

    def faulty(line):
        if b"boom" in line:
            raise ZeroDivisionError
        return parse_line(line)

    monkeypatch.setattr(jsonrpc, "parse_line", faulty)
    async with server.open(), connect() as good, connect() as bad:
        await bad.send(b"boom\n")
        assert await bad.answer() is None
        assert "result" in await good.call("memd/ping")


async def test_a_moment_without_descriptors_is_survived(server):
    async with server.open():
        sock = socket.socket(socket.AF_UNIX)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        with sock:
            sock.settimeout(60)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
            try:
                sock.connect(server.path)
                await anyio.sleep(0.05)
                assert server.listener.status()["accepted"] == 0
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
            await anyio.to_thread.run_sync(
                sock.sendall, b'{"jsonrpc":"2.0","id":1,"method":"memd/ping"}\n'
            )
            assert b"result" in await anyio.to_thread.run_sync(sock.recv, 1_000)


def test_the_kernel_names_the_user_and_process_of_a_peer():
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert peer_credentials(here) == (os.getuid(), os.getpid())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "memd.sock"


def test_a_bound_socket_file_is_ours_until_it_is_removed(path):
    file = SocketFile(str(path))
    assert not file.is_ours()
    with file.bind():
        assert file.is_ours()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        file.remove()
    assert not path.exists()
    assert not file.is_ours()


def test_a_socket_that_replaced_ours_is_not_removed(path):
    file = SocketFile(str(path))
    with file.bind(), socket.socket(socket.AF_UNIX) as other:
        path.unlink()
        other.bind(str(path))
        assert not file.is_ours()
        file.remove()
        assert path.is_socket()


def test_a_socket_file_can_be_bound_again_after_its_directory_was_removed(path):
    file = SocketFile(str(path))
    with file.bind():
        path.unlink()
        path.parent.rmdir()
        assert not file.is_ours()
        with file.bind():
            assert file.is_ours()


@pytest.fixture
def limits(monkeypatch):
    """The limits of a process that may be changed without changing ours."""
    held = {"now": (256, 4_096)}
    monkeypatch.setattr(server_listener.resource, "getrlimit", lambda _: held["now"])

    def change(_, wanted):
        if wanted[0] > held.get("most", wanted[0]):
            raise ValueError
        held["now"] = wanted

    monkeypatch.setattr(server_listener.resource, "setrlimit", change)
    return held


def test_the_limit_is_raised_for_all_connections_and_the_reserve(limits):
    assert raise_descriptor_limit(1_024) == 1_024
    assert limits["now"] == (1_024 + DESCRIPTORS_RESERVED, 4_096)


def test_a_low_hard_limit_allows_fewer_connections(limits):
    limits["now"] = (256, 1_000)
    assert raise_descriptor_limit(1_024) == 1_000 - DESCRIPTORS_RESERVED


def test_a_refused_raise_leaves_the_old_limit(limits):
    limits["most"] = 512
    assert raise_descriptor_limit(1_024) == 256 - DESCRIPTORS_RESERVED


@pytest.mark.parametrize("soft", [10_000, resource.RLIM_INFINITY])
def test_a_limit_that_is_high_enough_is_left_alone(limits, soft):
    limits["now"] = (soft, soft)
    assert raise_descriptor_limit(1_024) == 1_024
    assert limits["now"] == (soft, soft)
