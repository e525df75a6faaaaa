import json
import re
import sys

import anyio
import mcp.types as t
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage

from memd.server import tools as mcp_tools
from memd.server.tools import DirectCalls

TOOLS = [
    "mem_search", "mem_timeline", "mem_why", "mem_get", "mem_remember", "mem_forget", "mem_pin",
    "mem_judge",
]  # fmt: skip


def bridge(server, tmp_path):
    """How a client would start `memd mcp` for this server."""
    home = tmp_path / "home"
    socket = home / "run" / "memd.sock"
    socket.parent.mkdir(parents=True)
    socket.symlink_to(server.path)
    environ = {"MEMD_HOME": str(home), "MEMD_START": "0", "PYTHONPATH": ":".join(sys.path)}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "memd.stdio_proxy"], env=environ, cwd=str(tmp_path)
    )


class SocketTransport:
    """The SDK's transport, straight over the socket."""

    def __init__(self, path):
        self._path = path

    async def __aenter__(self):
        self._stream = await anyio.connect_unix(self._path)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        to_client, reads = anyio.create_memory_object_stream[SessionMessage](0)
        writes, from_client = anyio.create_memory_object_stream[SessionMessage](0)
        self._tasks.start_soon(self._read, to_client)
        self._tasks.start_soon(self._write, from_client)
        self._streams = (to_client, reads, writes, from_client)
        return reads, writes

    async def __aexit__(self, *args):
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        for stream in self._streams:
            stream.close()
        await self._stream.aclose()

    async def _read(self, to_client):
        rest = b""
        async for chunk in self._stream:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                await to_client.send(SessionMessage(t.jsonrpc_message_adapter.validate_json(line)))

    async def _write(self, from_client):
        async for outgoing in from_client:
            text = outgoing.message.model_dump_json(by_alias=True, exclude_unset=True)
            await self._stream.send(text.encode() + b"\n")


def transport(server, tmp_path, way):
    return (
        stdio_client(bridge(server, tmp_path)) if way == "bridge" else SocketTransport(server.path)
    )


@pytest.mark.parametrize("way", ["bridge", "socket"])
async def test_a_client_of_the_handshake_era_finds_and_reads(server, tmp_path, way):
    number = server.remember("Login answered 500", "the migration had not run")
    async with (
        server.open(),
        transport(server, tmp_path, way) as (reads, writes),
        ClientSession(reads, writes) as session,
    ):
        hello = await session.initialize()
        assert hello.server_info.name == "memd"
        assert hello.protocol_version == "2025-11-25"
        assert hello.instructions.startswith("memd is this user's long-term memory")
        assert [tool.name for tool in (await session.list_tools()).tools] == TOOLS
        found = await session.call_tool("mem_search", {"query": "why did login answer 500"})
        assert not found.is_error
        assert found.structured_content["hits"][0]["id"] == number


@pytest.mark.parametrize("way", ["bridge", "socket"])
async def test_a_client_of_the_stateless_era_finds_and_reads(server, tmp_path, way):
    number = server.remember("Login answered 500", "the migration had not run")
    async with server.open(), Client(transport(server, tmp_path, way), mode="auto") as client:
        assert client.protocol_version == "2026-07-28"
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        found = await client.call_tool("mem_search", {"query": "why did login answer 500"})
        assert found.structured_content["hits"][0]["id"] == number
        reply = await client.call_tool("mem_search", {"query": "x", "k": 0})
        assert reply.is_error
        assert reply.content[0].text == "k: 0 is less than the minimum of 1"


def modern(method, params, number):
    """A request of the stateless era, as it stands on the wire."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}


CALLS = [
    ("mem_search", {"query": 'Größe of the 登录 "cache" \\ page'}),
    ("mem_search", {"query": "login", "k": 3, "explain": True}),
    ("mem_search", {"query": "nothing has this"}),
    ("mem_search", {"query": ""}),
    ("mem_search", {"query": "login", "k": 0}),
    ("mem_search", {"query": "login", "colour": "red"}),
    ("mem_timeline", {"days": 3}),
    ("mem_timeline", {"sessions": 2}),
    ("mem_why", {"id": 1}),
    ("mem_why", {"id": 999}),
    ("mem_get", {"ids": [1, 77]}),
]
"""What the reading tools are asked, good and bad."""
ODD_PARAMS = [
    {"name": "mem_search"},
    {"name": "mem_search", "arguments": None},
    {"name": "mem_search", "arguments": []},
    {"name": "mem_nothing", "arguments": {}},
    {"name": ["mem_search"], "arguments": {}},
    {"arguments": {"query": "login"}},
    {"name": "mem_search", "arguments": {"query": "login"}, "more": 1},
    {"name": "mem_search", "arguments": {"query": "login"}, "_meta": 1},
    {"name": "mem_search", "arguments": {"query": "login"}, "_meta": {"progressToken": 7, "x/y": "z"}},
    {"name": "mem_search", "arguments": {"query": "login"}, "_meta": {"progressToken": [7]}},
    {"name": "mem_pin", "arguments": {"id": 1, "pinned": False}},
]  # fmt: skip


@pytest.mark.parametrize("era", ["2024-11-05", "2025-06-18", "2025-11-25", "stateless"])
async def test_a_call_beside_the_sdk_is_answered_as_the_sdk_does_to_the_byte(
    server, connect, monkeypatch, era
):
    server.remember('Größe of the 登录 cache: "a\\b"', "first\nsecond \u2028 line")
    server.remember("login", "it\tfailed\x1b[0m")
    params = [{"name": name, "arguments": given} for name, given in CALLS] + ODD_PARAMS
    direct = []
    make_line = DirectCalls.make_line

    def count_line(*args, **kwargs):
        direct.append(args)
        return make_line(*args, **kwargs)

    monkeypatch.setattr(DirectCalls, "make_line", count_line)
    lines = []
    async with server.open():
        for tools in (mcp_tools.DIRECT_TOOLS, frozenset()):
            monkeypatch.setattr(mcp_tools, "DIRECT_TOOLS", tools)
            direct.clear()
            async with connect() as client:
                if era == "stateless":
                    await client.send(modern("server/discover", {}, "hello"))
                    await client.line()
                else:
                    await client.initialize(era)
                lines.append(await collect_lines(client, params, era))
            lines.append(len(direct))
    by_tools, direct_calls, by_sdk, none = lines
    assert by_tools == by_sdk
    assert none == 0
    assert direct_calls == (0 if era == "2024-11-05" else len(CALLS) + 2)


async def test_no_answer_of_a_tool_has_characters_that_are_not_seen_or_turn_what_is(
    server, connect
):
    server.remember("login \u202eevil \u200b\U000e0041 \x9b31m", "line\x1b[2J\x7f\n👨\u200d👩")
    params = [{"name": name, "arguments": given} for name, given in CALLS]
    async with server.open(), connect() as client:
        await client.initialize("2025-06-18")
        lines = [repr(json.loads(line)) for line in await collect_lines(client, params, "")]
    unseen = re.compile(r"\\u202e|\\u200b|\\x9b|\\x1b|\\x7f|\\U000e0041")
    assert [line for line in lines if unseen.search(line)] == []
    assert any(r"👨\u200d👩" in line for line in lines)


async def collect_lines(client, params, era):
    """The answers to calls with these parameters, as they stand on the wire."""
    lines = []
    for number, given in enumerate(params):
        call = {"jsonrpc": "2.0", "id": f"n{number}", "method": "tools/call", "params": given}
        if era == "stateless":
            meta = given.get("_meta", {})
            call = modern("tools/call", given, number)
            if isinstance(meta, dict):
                call["params"]["_meta"] |= meta
            else:
                call["params"]["_meta"] = meta
        await client.send(call)
        lines.append(await client.line())
    return lines


SLOW = {"name": "mem_search", "arguments": {"query": "slow"}}


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_tool_calls_in_flight_are_answered_after_half_close(server, connect, era, eventually):
    server.recaller.gate = anyio.Event()
    server.remember("slow login")
    async with server.open(), connect() as client:
        if era == "handshake":
            await client.initialize()
        for number in range(3):
            plain = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": SLOW}
            await client.send(plain if era == "handshake" else modern("tools/call", SLOW, number))
        await client.half_close()
        await eventually(lambda: len(server.recaller.asked) >= 3)
        server.recaller.gate.set()
        answers = [await client.answer() for _ in range(3)]
        assert sorted(one["id"] for one in answers) == [0, 1, 2]
        assert all(one["result"]["structuredContent"]["hits"] for one in answers)
        assert await client.answer() is None


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_cancelled_call_stops_and_is_not_answered(server, connect, era, eventually):
    server.recaller.gate = anyio.Event()
    async with server.open(), connect() as client:
        if era == "handshake":
            await client.initialize()
        plain = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": SLOW}
        await client.send(plain if era == "handshake" else modern("tools/call", SLOW, 1))
        await eventually(lambda: len(server.recaller.asked) >= 1)
        await client.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        )
        await eventually(lambda: server.recaller.cancelled)
        await client.half_close()
        # It ends at once: a cancelled call is not waited for.
        with anyio.fail_after(60):
            assert await client.answer() is None


async def test_a_client_that_hangs_up_stops_its_calls(server, connect, eventually):
    server.recaller.gate = anyio.Event()
    async with server.open():
        async with connect() as client:
            await client.initialize()
            await client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": SLOW})
            await eventually(lambda: len(server.recaller.asked) >= 1)
        await eventually(lambda: server.recaller.cancelled)


async def test_a_fast_call_does_not_wait_for_slow_ones(server, agent):
    server.recaller.gate = anyio.Event()
    async with agent() as client:
        for number in range(10):
            await client.send(
                {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": SLOW}
            )
        await client.send({"jsonrpc": "2.0", "id": "fast", "method": "tools/list"})
        assert (await client.answer())["id"] == "fast"
        server.recaller.gate.set()
        assert len([await client.answer() for _ in range(10)]) == 10


async def test_a_call_before_the_handshake_is_an_error_and_the_handshake_still_works(
    server, connect
):
    async with server.open(), connect() as client:
        reply = await client.call("tools/list")
        assert reply["error"]["code"] == -32602
        assert (await client.initialize())["result"]["protocolVersion"] == "2025-11-25"


async def test_an_unknown_protocol_version_is_answered_with_a_supported_one(server, connect):
    async with server.open(), connect() as client:
        assert (await client.initialize("1999-01-01"))["result"]["protocolVersion"] == "2025-11-25"


async def test_a_malformed_line_in_the_middle_of_a_session_gets_an_error(agent):
    async with agent() as client:
        await client.send(b"{nonsense\n")
        assert (await client.answer())["error"]["code"] == -32700
        assert "result" in await client.call("tools/list", number=2)


async def test_an_unknown_method_is_an_error(agent):
    async with agent() as client:
        assert (await client.call("prompts/list", number=2))["error"]["code"] == -32601


async def test_a_flood_of_calls_is_answered_whole(server, agent):
    server.remember("login")
    async with agent() as client:

        async def ask():
            for number in range(300):
                params = {"name": "mem_search", "arguments": {"query": "login"}}
                await client.send(
                    {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            assert {(await client.answer())["id"] for _ in range(300)} == set(range(300))
