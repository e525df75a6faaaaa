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
