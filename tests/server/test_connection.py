import itertools
import json
import os
import select
import socket
import subprocess
import sys

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from memd.server.connection import (
    LONG_LINE_REST,
    REQUESTS_MAX,
    FairScheduler,
    HeldBytes,
    SocketStream,
)


async def test_a_malformed_line_costs_an_error_and_nothing_else(server, connect):
    async with server.open(), connect() as client:
        for bad, code in (
            (b"{oops\n", -32700),
            (b"[]\n", -32600),
            (b"17\n", -32600),
            (b"\x00\xff\n", -32700),
        ):
            await client.send(bad)
            reply = await client.answer()
            assert (reply["error"]["code"], reply["id"]) == (code, None)
        await client.send(b"\n\r\n   \n")
        await client.send(
            b"\xef\xbb\xbf"
            + json.dumps({"jsonrpc": "2.0", "id": 5, "method": "memd/ping"}).encode()
        )
        await client.send(b"\r\n")
        assert (await client.answer())["id"] == 5


async def test_an_oversized_line_gets_an_error_and_the_end(server, connect):
    async with server.open(line_bytes=10_000), connect() as client:
        await client.send(b"x" * 300_000)
        assert "10000 bytes" in (await client.answer())["error"]["message"]
        await client.half_close()
        assert await client.answer() is None
        async with connect() as other:
            assert "result" in await other.call("memd/ping")


async def test_the_vocabulary_is_chosen_once(server, connect):
    async with server.open():
        async with connect() as client:
            await client.initialize()
            reply = await client.call("memd/status", number=2)
            assert reply["error"]["code"] == -32601
            assert "MCP" in reply["error"]["message"]
        async with connect() as client:
            await client.call("memd/ping")
            reply = await client.call("tools/list", number=2)
            assert reply["error"]["code"] == -32601
            assert "memd/search" in reply["error"]["message"]


async def test_a_client_that_floods_one_connection_gets_every_answer(server, connect):
    async with server.open(), connect() as client:
        lines = [
            {"jsonrpc": "2.0", "id": n, "method": "memd/ping", "params": {}} for n in range(1_000)
        ]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                client.send, b"".join(json.dumps(one).encode() + b"\n" for one in lines)
            )
            numbers = {(await client.answer())["id"] for _ in range(1_000)}
    assert numbers == set(range(1_000))


async def test_a_last_line_without_an_end_is_still_answered(server, connect):
    async with server.open(), connect() as client:
        await client.send(b'{"jsonrpc":"2.0","id":1,"method":"memd/ping"}')
        await client.half_close()
        assert (await client.answer())["id"] == 1


async def test_an_answer_that_never_comes_holds_the_connection_for_drain_s_only(server, connect):
    server.recaller.gate = anyio.Event()
    async with server.open(drain_s=0.05), connect() as client:
        await client.send(
            {"jsonrpc": "2.0", "id": 1, "method": "memd/search", "params": {"query": "slow"}}
        )
        await client.half_close()
        assert await client.answer() is None


async def test_a_preface_may_only_be_the_first_line(server, connect, tmp_path):
    async with server.open(), connect({"cwd": str(tmp_path)}) as client:
        await client.send({"memd": 1, "cwd": "/elsewhere"})
        assert "first line" in (await client.answer())["error"]["message"]
        await client.call("memd/search", {"query": "x", "project": "current"})
        assert server.recaller.asked[0].project_ids == ()


async def test_a_preface_of_another_version_is_an_error(server, connect):
    async with server.open(), connect() as client:
        await client.send({"memd": 2})
        assert "version 1" in (await client.answer())["error"]["message"]
        assert "result" in await client.call("memd/ping")


async def test_an_answer_of_the_clients_own_is_no_harm(server, connect):
    async with server.open(), connect() as client:
        await client.send({"jsonrpc": "2.0", "id": 3, "result": {}})
        assert "result" in await client.call("memd/ping")


async def test_a_big_line_is_read_as_well(server, connect):
    async with server.open(), connect() as client:
        reply = await client.call("memd/search", {"query": "x" * 400_000})
        assert reply["error"]["message"].startswith("query: longer than 4000 characters")


async def test_a_client_that_floods_one_connection_does_not_hold_up_another(server, connect):
    server.remember("login")
    async with server.open(), connect() as greedy, connect() as quiet:
        assert "result" in await quiet.call("memd/ping")
        # This test is one process, and so one client: it plays another one.
        for client, one in enumerate(server.listener._open):
            one._client = client
        question = {"jsonrpc": "2.0", "method": "memd/search", "params": {"query": "login"}}
        for number in range(60):
            await greedy.send({**question, "id": number})
        for _ in range(3):
            assert (await quiet.call("memd/search", {"query": "login"}))["result"]["hits"]
        assert len(server.recaller.asked) < 40
        numbers = {(await greedy.answer())["id"] for _ in range(60)}
    assert numbers == set(range(60))


async def test_calls_that_take_long_hold_up_the_next_for_a_moment_only(server, connect, eventually):
    server.recaller.gate = anyio.Event()
    async with server.open(), connect() as client:
        question = {"jsonrpc": "2.0", "method": "memd/search", "params": {"query": "slow"}}
        for number in range(3):
            await client.send({**question, "id": number})
        await eventually(lambda: len(server.recaller.asked) >= 3)
        server.recaller.gate.set()
        assert {(await client.answer())["id"] for _ in range(3)} == {0, 1, 2}


async def test_calls_of_a_client_that_does_not_read_are_not_answered_until_it_does(
    server, connect, eventually
):
    server.remember("login " + "x" * 200, "y" * 60_000)
    call = {"jsonrpc": "2.0", "id": 1, "method": "memd/get", "params": {"ids": [1]}}
    async with server.open(), connect() as client:
        for _ in range(200):
            await client.send(call)
        control = server.listener._handlers.control
        await eventually(lambda: next(iter(server.listener._open))._stream.is_blocked)
        await anyio.wait_all_tasks_blocked()
        assert control.calls < 20
        for _ in range(200):
            assert "result" in await client.answer()


async def test_too_many_unfinished_lines_end_the_connection_that_has_one_longest(
    server, connect, eventually
):
    async with server.open() as opened, connect() as slow, connect() as quick:
        opened.listener._scheduler.incoming._limit = 300_000
        await slow.send(b"x" * 200_000)
        await eventually(lambda: opened.listener._scheduler.incoming.total == 200_000)
        await quick.send(b"y" * 200_000)
        reply = await slow.answer()
        assert "too many long lines" in reply["error"]["message"]
        assert reply["error"]["code"] == -32000
        assert await slow.answer() is None
        await quick.send(b"\n")
        assert (await quick.answer())["error"]["code"] == -32700
        assert opened.listener._scheduler.incoming.total == 0


async def test_too_many_unread_answers_end_the_connection_that_has_them_longest(
    server, connect, eventually
):
    server.remember("login", "y" * 800_000)
    call = {"jsonrpc": "2.0", "id": 1, "method": "memd/get", "params": {"ids": [1]}}
    async with server.open() as opened, connect() as first, connect() as second:
        outgoing = opened.listener._scheduler.outgoing
        outgoing._limit = 900_000  # beside what the kernel holds
        await first.send(call)
        await eventually(lambda: outgoing.total > 400_000)
        await second.send(call)
        await eventually(lambda: opened.listener.status()["connections"] == 1)
        assert "result" in await second.answer()
        assert await first.answer() is None
        assert outgoing.total == 0


async def test_nothing_but_line_ends_leaves_the_others_their_turn(server, connect):
    async with server.open(), connect() as client, connect() as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.send, b"\n" * 300_000)
            for _ in range(20):
                with anyio.fail_after(60):
                    assert "result" in await other.call("memd/ping")
        assert "result" in await client.call("memd/ping")


ALICE, BOB = 1, 2


@pytest.fixture
def order():
    return []


@pytest.fixture
def wait(order):
    async def waiting(scheduler, name):
        await scheduler.wait_turn()
        order.append(name)

    return waiting


async def test_no_call_waits_while_no_heavy_call_runs(order, wait):
    scheduler = FairScheduler()
    await wait(scheduler, "a")
    scheduler.begin(ALICE)
    scheduler.end(ALICE)
    await wait(scheduler, "b")
    assert order == ["a", "b"]


async def test_waiting_calls_begin_one_by_one_first_come_first_served(order, wait):
    scheduler = FairScheduler(patience_s=10)

    async def work(name):
        await wait(scheduler, name)
        scheduler.begin(BOB)
        at_work.append(name)
        assert len(at_work) == 1
        await anyio.lowlevel.checkpoint()
        at_work.remove(name)
        scheduler.end(BOB)

    at_work = []
    scheduler.begin(ALICE)
    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(work, name)
        await anyio.wait_all_tasks_blocked()
        assert order == []
        scheduler.end(ALICE)
    assert order == ["a", "b", "c"]


async def test_the_first_in_the_queue_begins_after_patience_s_and_then_the_next(order, wait):
    scheduler = FairScheduler(patience_s=0.02)
    scheduler.begin(ALICE)
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(wait, scheduler, name)
    assert order == ["a", "b", "c"]
    assert anyio.current_time() - began >= 3 * 0.02


async def test_a_cancelled_wait_lets_the_next_call_begin(order, wait):
    scheduler = FairScheduler(patience_s=10)
    scheduler.begin(ALICE)
    async with anyio.create_task_group() as tasks:
        with anyio.move_on_after(0.01):
            await scheduler.wait_turn()
        tasks.start_soon(wait, scheduler, "next")
        await anyio.wait_all_tasks_blocked()
        scheduler.end(ALICE)
    assert order == ["next"]


def test_a_client_is_running_until_all_its_heavy_calls_have_ended():
    scheduler = FairScheduler()
    scheduler.begin(ALICE)
    scheduler.begin(ALICE)
    scheduler.end(ALICE)
    assert scheduler.is_running(ALICE)
    assert not scheduler.is_running(BOB)
    scheduler.end(ALICE)
    assert not scheduler.is_running(ALICE)


SLOW = {"jsonrpc": "2.0", "method": "memd/search", "params": {"query": "slow"}}


async def test_a_client_s_second_heavy_call_waits_on_any_connection_and_light_ones_do_not(
    server, connect, eventually
):
    server.recaller.gate = anyio.Event()
    async with server.open(), connect() as one, connect() as other:
        server.listener._scheduler._patience_s = 3_600
        await one.send({**SLOW, "id": 1})
        await eventually(lambda: server.recaller.asked)
        assert "result" in await other.call("memd/ping")
        await other.send({**SLOW, "id": 2})
        await one.send({**SLOW, "id": 3})
        await anyio.wait_all_tasks_blocked()
        assert len(server.recaller.asked) == 1
        server.recaller.gate.set()
        assert [(await one.answer())["id"] for _ in range(2)] == [1, 3]
        assert (await other.answer())["id"] == 2


async def test_only_some_requests_of_a_connection_run_at_a_time(server, connect, eventually):
    server.recaller.gate = anyio.Event()
    async with server.open(), connect() as client:
        server.listener._scheduler._patience_s = 0
        for number in range(3 * REQUESTS_MAX):
            await client.send({**SLOW, "id": number})
        await eventually(lambda: len(server.recaller.asked) == REQUESTS_MAX)
        await anyio.wait_all_tasks_blocked()
        assert len(server.recaller.asked) == REQUESTS_MAX
        server.recaller.gate.set()
        numbers = {(await client.answer())["id"] for _ in range(3 * REQUESTS_MAX)}
    assert numbers == set(range(3 * REQUESTS_MAX))


async def test_the_open_calls_of_a_client_that_hung_up_hold_up_no_other(
    server, connect, eventually
):
    server.recaller.gate = anyio.Event()
    async with server.open(), connect() as client:
        server.listener._scheduler._patience_s = 3_600
        async with connect() as lost:
            await lost.initialize()
            params = {"name": "mem_search", "arguments": {"query": "slow"}}
            await lost.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            await eventually(lambda: server.recaller.asked)
        await client.send({**SLOW, "id": 1, "params": {"query": "login"}})
        await client.send({**SLOW, "id": 2, "params": {"query": "login"}})
        assert {(await client.answer())["id"] for _ in range(2)} == {1, 2}


class Held:
    """A connection as far as its bytes are counted."""

    def __init__(self):
        self.reason = None

    def drop(self, reason):
        self.reason = reason


def test_above_the_limit_the_connection_that_has_held_longest_is_dropped():
    held = HeldBytes(100, "too much")
    slow, quick, late = Held(), Held(), Held()
    held.hold(slow.drop, 10)
    held.hold(quick.drop, 80)
    held.hold(slow.drop, 15)
    held.hold(late.drop, 20)
    assert (slow.reason, quick.reason, late.reason) == ("too much", None, None)
    assert held.total == 100


def test_a_connection_that_held_nothing_in_between_counts_from_then():
    held = HeldBytes(100, "too much")
    first, second = Held(), Held()
    held.hold(first.drop, 60)
    held.hold(second.drop, 40)
    held.hold(first.drop, 0)
    assert held.total == 40
    held.hold(first.drop, 30)
    held.hold(first.drop, 61)
    assert (first.reason, second.reason) == (None, "too much")


def test_a_single_connection_may_hold_more_than_the_limit():
    held = HeldBytes(100, "too much")
    only, other = Held(), Held()
    held.hold(only.drop, 101)
    assert (only.reason, held.total) == (None, 101)
    held.hold(other.drop, 1)
    assert (only.reason, held.total) == ("too much", 1)
    held.hold(only.drop, 0)
    assert held.total == 1


async def test_few_connections_that_never_pause_read_on_in_one_round():
    scheduler, steps = FairScheduler(), []

    async def go_on(number):
        while len(steps) < 600:
            await scheduler.wait_to_read()
            steps.append(number)

    async def round_by_round():
        while len(steps) < 600:
            before = len(steps)
            await anyio.lowlevel.checkpoint()
            most.append(len(steps) - before)

    most = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(round_by_round)
        for number in range(50):
            tasks.start_soon(go_on, number)
    assert max(most) <= 4
    assert set(steps) == set(range(50))


async def test_long_lines_are_parsed_one_by_one_with_rests_between_them(monkeypatch):
    scheduler, parsed = FairScheduler(), []

    def parse(line):
        parsed.append(anyio.current_time())
        while anyio.current_time() < parsed[-1] + 0.002:
            pass
        return line

    monkeypatch.setattr("memd.server.jsonrpc.parse_line", parse)
    async with anyio.create_task_group() as tasks:
        for line in (b"a", b"b", b"c"):
            tasks.start_soon(scheduler.parse_long_line, line)
    rests = [late - early for early, late in itertools.pairwise(parsed)]
    assert min(rests) >= LONG_LINE_REST * 0.002


@pytest.fixture
def ends():
    here, there = socket.socketpair(socket.AF_UNIX)
    yield SocketStream(here), there
    here.close()
    there.close()


def test_a_closed_client_differs_from_one_that_has_only_closed_its_sending_side(ends):
    stream, there = ends
    assert not stream.is_closed_by_client()
    there.shutdown(socket.SHUT_WR)
    select.select([stream._socket], [], [], 1)
    assert not stream.is_closed_by_client()
    there.close()
    assert stream.is_closed_by_client()


async def test_a_line_arrives_whole_at_a_slow_reader(ends):
    stream, there = ends
    data = os.urandom(2_000_000)

    async def read():
        seen = b""
        while len(seen) < len(data):
            await anyio.lowlevel.checkpoint()
            seen += await anyio.to_thread.run_sync(there.recv, 30_000)
        assert seen == data

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await stream.send(data)


async def test_nothing_follows_half_a_line(ends):
    stream, _ = ends
    with anyio.move_on_after(0.05):
        await stream.send(b"x" * 10_000_000)
    with pytest.raises(BrokenPipeError):
        await stream.send(b"more\n")


async def test_bytes_received_without_a_pause_are_counted(ends):
    stream, there = ends
    there.send(b"x" * 100_000)
    await stream.wait_readable()
    await stream.receive()
    await stream.receive()
    assert stream.unpaused_bytes == 100_000
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.receive)
        await anyio.wait_all_tasks_blocked()
        assert stream.unpaused_bytes == 0
        there.send(b"y")
    assert stream.unpaused_bytes == 1


async def test_a_reader_that_does_not_read_is_known_until_it_does(ends):
    stream, there = ends
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.send, b"x" * 1_000_000)
        await anyio.wait_all_tasks_blocked()
        assert stream.is_blocked
        seen = 0
        while seen < 1_000_000:
            seen += len(await anyio.to_thread.run_sync(there.recv, 65_536))
    assert not stream.is_blocked


async def test_a_last_line_is_sent_unless_half_a_line_was_sent_before_it(ends):
    stream, there = ends
    stream.send_last(b"bye\n")
    assert there.recv(100) == b"bye\n"
    with pytest.raises(BrokenPipeError):
        await stream.send(b"more\n")
    there.setblocking(False)
    stream.send_last(b"again\n")
    with pytest.raises(BlockingIOError):
        there.recv(100)


WITHOUT_MCP = """
import sys
import memd.daemon.app
print(sorted(name for name in sys.modules if name.partition(".")[0] in {"mcp", "mcp_types"}))
"""


def test_a_daemon_imports_the_sdk_only_once_a_client_speaks_mcp():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MCP], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
