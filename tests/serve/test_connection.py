import json

import anyio


async def test_a_malformed_line_costs_an_error_and_nothing_else(house, connect):
    async with house.open(), connect() as line:
        for bad, code in (
            (b"{oops\n", -32700),
            (b"[]\n", -32600),
            (b"17\n", -32600),
            (b"\x00\xff\n", -32700),
        ):
            await line.send(bad)
            told = await line.answer()
            assert (told["error"]["code"], told["id"]) == (code, None)
        await line.send(b"\n\r\n   \n")
        await line.send(
            b"\xef\xbb\xbf"
            + json.dumps({"jsonrpc": "2.0", "id": 5, "method": "memd/ping"}).encode()
        )
        await line.send(b"\r\n")
        assert (await line.answer())["id"] == 5


async def test_an_oversized_line_gets_an_error_and_the_end(house, connect):
    async with house.open(line_bytes=10_000), connect() as line:
        await line.send(b"x" * 300_000)
        assert "10000 bytes" in (await line.answer())["error"]["message"]
        await line.half_close()
        assert await line.answer() is None
        async with connect() as other:
            assert "result" in await other.call("memd/ping")


async def test_the_vocabulary_is_chosen_once(house, connect):
    async with house.open():
        async with connect() as line:
            await line.initialize()
            told = await line.call("memd/status", number=2)
            assert told["error"]["code"] == -32601
            assert "MCP" in told["error"]["message"]
        async with connect() as line:
            await line.call("memd/ping")
            told = await line.call("tools/list", number=2)
            assert told["error"]["code"] == -32601
            assert "memd/search" in told["error"]["message"]


async def test_who_floods_one_connection_waits_in_line_and_gets_every_answer(house, connect):
    async with house.open(), connect() as line:
        lines = [
            {"jsonrpc": "2.0", "id": n, "method": "memd/ping", "params": {}}
            for n in range(1_000)
        ]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                line.send, b"".join(json.dumps(one).encode() + b"\n" for one in lines)
            )
            numbers = {(await line.answer())["id"] for _ in range(1_000)}
    assert numbers == set(range(1_000))


async def test_answers_in_flight_arrive_after_half_close(house, connect, eventually):
    house.recaller.gate = anyio.Event()
    house.remember("slow login")
    async with house.open(), connect() as line:
        for number in range(5):
            await line.send(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "memd/search",
                    "params": {"query": "slow"},
                }
            )
        await line.half_close()
        await eventually(lambda: len(house.recaller.asked) >= 5)
        house.recaller.gate.set()
        assert sorted([(await line.answer())["id"] for _ in range(5)]) == [0, 1, 2, 3, 4]
        assert await line.answer() is None


async def test_a_last_line_without_an_end_is_still_answered(house, connect):
    async with house.open(), connect() as line:
        await line.send(b'{"jsonrpc":"2.0","id":1,"method":"memd/ping"}')
        await line.half_close()
        assert (await line.answer())["id"] == 1


async def test_an_answer_that_never_comes_does_not_hold_the_connection_for_ever(house, connect):
    house.recaller.gate = anyio.Event()
    async with house.open(drain_s=0.05), connect() as line:
        await line.send(
            {"jsonrpc": "2.0", "id": 1, "method": "memd/search", "params": {"query": "slow"}}
        )
        await line.half_close()
        assert await line.answer() is None


async def test_who_calls_is_said_on_the_first_line_only(house, connect, tmp_path):
    async with house.open(), connect({"cwd": str(tmp_path)}) as line:
        await line.send({"memd": 1, "cwd": "/elsewhere"})
        assert "first line" in (await line.answer())["error"]["message"]
        await line.call("memd/search", {"query": "x", "project": "current"})
        assert house.recaller.asked[0].project_ids == ()


async def test_a_preface_of_another_version_is_told(house, connect):
    async with house.open(), connect() as line:
        await line.send({"memd": 2})
        assert "version 1" in (await line.answer())["error"]["message"]
        assert "result" in await line.call("memd/ping")


async def test_an_answer_of_the_clients_own_is_no_harm(house, connect):
    async with house.open(), connect() as line:
        await line.send({"jsonrpc": "2.0", "id": 3, "result": {}})
        assert "result" in await line.call("memd/ping")


async def test_a_big_line_is_read_as_well(house, connect):
    async with house.open(), connect() as line:
        told = await line.call("memd/search", {"query": "x" * 400_000})
        assert told["error"]["message"].startswith(
            "query: string should have at most 4000 characters"
        )


async def test_who_floods_one_connection_does_not_hold_up_another(house, connect):
    house.remember("login")
    async with house.open(), connect() as greedy, connect() as quiet:
        assert "result" in await quiet.call("memd/ping")
        # This test is one process, and so one client: it plays another one.
        for client, one in enumerate(house.listener._open):
            one._in_flight._client = client
        question = {"jsonrpc": "2.0", "method": "memd/search", "params": {"query": "login"}}
        for number in range(60):
            await greedy.send({**question, "id": number})
        for _ in range(3):
            assert (await quiet.call("memd/search", {"query": "login"}))["result"]["hits"]
        assert len(house.recaller.asked) < 40
        numbers = {(await greedy.answer())["id"] for _ in range(60)}
    assert numbers == set(range(60))


async def test_calls_that_take_long_hold_up_the_next_for_a_moment_only(
    house, connect, eventually
):
    house.recaller.gate = anyio.Event()
    async with house.open(), connect() as line:
        question = {"jsonrpc": "2.0", "method": "memd/search", "params": {"query": "slow"}}
        for number in range(3):
            await line.send({**question, "id": number})
        await eventually(lambda: len(house.recaller.asked) >= 3)
        house.recaller.gate.set()
        assert {(await line.answer())["id"] for _ in range(3)} == {0, 1, 2}


async def test_who_does_not_read_is_asked_nothing_more_to_answer(house, connect, eventually):
    house.remember("login " + "x" * 200, "y" * 60_000)
    call = {"jsonrpc": "2.0", "id": 1, "method": "memd/get", "params": {"ids": [1]}}
    async with house.open(), connect() as line:
        for _ in range(200):
            await line.send(call)
        control = house.listener._speaks.control
        await eventually(lambda: next(iter(house.listener._open))._wire.is_stuck)
        await anyio.wait_all_tasks_blocked()
        assert control.calls < 20
        for _ in range(200):
            assert "result" in await line.answer()


async def test_too_much_of_unfinished_lines_ends_the_one_that_began_first(
    house, connect, eventually
):
    async with house.open() as opened, connect() as slow, connect() as quick:
        opened.listener._commons.incoming._limit = 300_000
        await slow.send(b"x" * 200_000)
        await eventually(lambda: opened.listener._commons.incoming.total == 200_000)
        await quick.send(b"y" * 200_000)
        told = await slow.answer()
        assert "too many long lines" in told["error"]["message"]
        assert told["error"]["code"] == -32000
        assert await slow.answer() is None
        await quick.send(b"\n")
        assert (await quick.answer())["error"]["code"] == -32700
        assert opened.listener._commons.incoming.total == 0


async def test_too_much_of_unread_answers_ends_the_one_who_waits_longest(
    house, connect, eventually
):
    house.remember("login", "y" * 800_000)
    call = {"jsonrpc": "2.0", "id": 1, "method": "memd/get", "params": {"ids": [1]}}
    async with house.open() as opened, connect() as first, connect() as second:
        outgoing = opened.listener._commons.outgoing
        outgoing._limit = 900_000  # beside what the kernel holds
        await first.send(call)
        await eventually(lambda: outgoing.total > 400_000)
        await second.send(call)
        await eventually(lambda: opened.listener.status()["connections"] == 1)
        assert "result" in await second.answer()
        assert await first.answer() is None
        assert outgoing.total == 0


async def test_nothing_but_line_ends_leaves_the_others_their_turn(house, connect):
    async with house.open(), connect() as line, connect() as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(line.send, b"\n" * 300_000)
            for _ in range(20):
                with anyio.fail_after(60):
                    assert "result" in await other.call("memd/ping")
        assert "result" in await line.call("memd/ping")
