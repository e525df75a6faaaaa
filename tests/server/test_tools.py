import json

import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import BadRequest, VaultFull
from memd.models import SessionRef
from memd.server import tools
from memd.store import projects


async def test_every_tool_says_when_to_call_it_and_what_it_may_do(agent):
    async with agent() as client:
        listed = {
            tool["name"]: tool for tool in (await client.call("tools/list"))["result"]["tools"]
        }
    for name, tool in listed.items():
        assert tool["description"].startswith("Call this "), name
        assert tool["title"]
        assert tool["outputSchema"]["type"] == "object"
        assert tool["annotations"]["openWorldHint"] is False
    assert [name for name, tool in listed.items() if tool["annotations"]["destructiveHint"]] == [
        "mem_forget"
    ]
    reads = [name for name, tool in listed.items() if tool["annotations"]["readOnlyHint"]]
    assert reads == ["mem_search", "mem_timeline", "mem_why", "mem_get"]
    kept = [name for name, tool in listed.items() if tool["_meta"].get("anthropic/alwaysLoad")]
    assert kept == ["mem_search", "mem_timeline", "mem_why", "mem_remember"]


def count_characters():
    listed = [tool.describe().model_dump(by_alias=True) for tool in tools.TOOLS.values()]
    read = [{name: one[name] for name in ("name", "description", "inputSchema")} for one in listed]
    return len(json.dumps(read, ensure_ascii=False, separators=(",", ":")))


def test_the_definitions_are_at_most_two_thousand_tokens_of_four_characters():
    assert count_characters() <= 4 * 2_000


async def test_the_definitions_cost_what_a_model_reads_of_them(server, agent):
    async with agent() as client:
        await client.call("tools/list")
    told = (await server.app.outcomes.report(1))["weeks"][0]["costs"]["definitions"]["tokens"]
    read = await anyio.to_thread.run_sync(count_characters) + len(tools.INSTRUCTIONS)
    assert abs(told - read // 4) < 20


def test_the_instructions_say_when_to_search_and_what_to_note_and_are_short():
    assert "Search before you answer" in tools.INSTRUCTIONS
    assert "Note with mem_remember" in tools.INSTRUCTIONS
    assert len(tools.INSTRUCTIONS.encode()) < 1_500


async def test_structure_and_text_say_the_same(server, agent):
    server.remember("login")
    async with agent() as client:
        found = await client.tool("mem_search", {"query": "login"})
        assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
        assert not found.get("isError")


async def test_an_unknown_tool_is_answered_with_the_known_ones(agent):
    async with agent() as client:
        reply = await client.call("tools/call", {"name": "mem_dance", "arguments": {}})
        assert "mem_dance" in reply["error"]["message"]
        assert "mem_search, mem_timeline" in reply["error"]["message"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("mem_search", {}, "query: say what to look for"),
        ("mem_search", {"query": "  "}, "query: say what to look for"),
        ("mem_search", {"query": "x", "k": -1}, "k: -1 is less than the minimum of 1"),
        ("mem_search", {"query": "x", "since": "soon"}, "since: 'soon' is no time"),
        (
            "mem_search",
            {"query": "x", "project": "nowhere"},
            "project: there is no 'nowhere'; there is global",
        ),
        ("mem_search", {"query": "x", "session": "current"}, "session: this client did not say"),
        ("mem_search", {"query": "x", "session": "abc"}, "session: there is no 'abc'"),
        ("mem_timeline", {"id": 999}, "there is no memory #999"),
        ("mem_timeline", {"id": 1, "at": "today"}, "id: give either a memory or a time, not both"),
        ("mem_why", {"id": 999}, "there is no memory #999"),
        (
            "mem_why",
            {"id": "nonsense"},
            "id: a number, a file's name, or a node such as file:/a/b.py",
        ),
        ("mem_why", {}, "id: is needed"),
        ("mem_get", {"ids": []}, "ids: fewer than 1 items"),
        ("mem_get", {"ids": [999]}, "there is no memory #999"),
        ("mem_get", {"ids": [10**30]}, "ids.0: "),
        (
            "mem_remember",
            {"text": "x", "expires_in": "never"},
            "expires_in: 'never' is no duration",
        ),
        (
            "mem_remember",
            {"text": "x", "project": "nowhere"},
            "project: there is no 'nowhere'; leave it out",
        ),
        ("mem_pin", {"id": 999}, "there is no memory #999"),
    ],
)
async def test_a_bad_request_is_a_readable_failure_and_the_next_one_works(
    server, agent, name, arguments, message
):
    server.remember("login")
    async with agent() as client:
        reply = await client.tool(name, arguments)
        assert reply["isError"] is True
        assert reply["content"][0]["text"].startswith(message)
        assert "structuredContent" not in reply
        assert not (await client.tool("mem_search", {"query": "login"}, 2)).get("isError")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BadRequest("profile: there is no 'x'"), "profile: there is no 'x'"),
        (
            VaultFull(),
            "The disk is full: the vault cannot grow. Make room; memd goes on by itself then.",
        ),
        (RuntimeError("internal"), "memd could not do this; see the log"),
        (KeyError("internal"), "memd could not do this; see the log"),
        (TimeoutError("internal"), "memd could not do this; see the log"),
    ],
)
async def test_an_internal_failure_shows_no_details(server, agent, error, message):
    server.recaller.fails_with = error
    async with agent() as client:
        reply = await client.tool("mem_search", {"query": "x"})
        assert reply["isError"] is True
        assert reply["content"][0]["text"] == message


async def test_surrogates_and_nul_are_only_letters(server, agent):
    server.remember("login")
    async with agent() as client:
        params = r'{"name":"mem_search","arguments":{"query":"\ud800 \u0000 login \" OR NEAR("}}'
        await client.send(
            f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}\n'.encode()
        )
        assert (await client.answer())["result"]["structuredContent"]["hits"]


async def test_a_search_waits_for_the_event_it_was_asked_to_include(server, agent):
    async with agent() as client:
        found = await client.tool("mem_search", {"query": "x", "min_event": 7})
        assert server.worker.settled[0] == 7
        assert "waited" not in found["structuredContent"]


async def test_a_search_that_waited_in_vain_says_so(server, connect):
    server.worker.stuck = True
    async with server.open(min_event_s=0.05), connect() as client:
        await client.initialize()
        found = await client.tool("mem_search", {"query": "x", "min_event": 7})
        waited = found["structuredContent"]["waited"]
        assert waited == "timed out after 0.05 s; the newest events may be missing"


async def test_an_agent_sees_its_project_and_global(server, agent, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    (here / ".git").mkdir(parents=True)
    (here / "deep").mkdir()
    (there / ".git").mkdir(parents=True)
    ours = server.remember("login here", project=str(here))
    other = server.remember("login there", project=str(there))
    everywhere = server.remember("login everywhere")
    async with agent({"cwd": str(here / "deep")}) as client:

        async def ids(**more):
            found = await client.tool("mem_search", {"query": "login", **more})
            return {hit["id"] for hit in found["structuredContent"]["hits"]}

        assert await ids() == {ours, everywhere}
        assert await ids(project="all") == {ours, other, everywhere}
        assert await ids(project=str(there)) == {other, everywhere}
        reply = await client.tool("mem_get", {"ids": [other]})
        assert "belongs to" in reply["content"][0]["text"]
        assert not (await client.tool("mem_get", {"ids": [other], "project": "all"})).get("isError")


async def test_the_clients_own_idea_of_the_project_wins_over_its_directory(server, agent, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    ours = server.remember("login here", project=str(here))
    async with agent({"cwd": str(tmp_path), "project": str(here)}) as client:
        found = await client.tool("mem_search", {"query": "login"})
        assert [hit["id"] for hit in found["structuredContent"]["hits"]] == [ours]


async def test_an_unknown_project_is_noted_in_the_result(agent, tmp_path):
    async with agent({"cwd": str(tmp_path)}) as client:
        found = await client.tool("mem_search", {"query": "login"})
        assert found["structuredContent"]["hits"] == []
        assert "nothing is known of" in found["structuredContent"]["notes"][0]


async def test_a_remembered_memory_is_read_pinned_and_forgotten(server, connect, tmp_path):
    async with (
        server.open(),
        connect({"cwd": str(tmp_path), "session": "s1", "client": "claude-code"}) as client,
    ):
        await client.initialize()
        kept = await client.tool(
            "mem_remember", {"text": "tests run with pytest", "kind": "instruction"}
        )
        number = kept["structuredContent"]["id"]
        assert kept["structuredContent"]["outcome"] == "created"
        memory = server.curator.memories[0]
        assert memory.project_key == str(tmp_path)
        assert (memory.session.client, memory.session.key) == ("claude-code", "s1")
        assert server.worker.settled == [None]
        read = await client.tool("mem_get", {"ids": [number, 999]})
        assert read["structuredContent"]["memories"][0]["text"] == "tests run with pytest"
        assert read["structuredContent"]["unknown"] == [999]
        pinned = await client.tool("mem_pin", {"id": number})
        assert pinned["structuredContent"]["tier"] == "agent"  # an agent's pin
        await client.tool("mem_pin", {"id": number, "pinned": False})
        rehearsed = await client.tool("mem_forget", {"ids": [number]})
        assert rehearsed["structuredContent"]["dry_run"] is True
        assert rehearsed["structuredContent"]["would_forget"][0]["id"] == number
        token = rehearsed["structuredContent"]["token"]
        gone = await client.tool("mem_forget", {"ids": [number], "dry_run": False, "token": token})
        assert gone["structuredContent"]["forgot"][0]["id"] == number
        assert (await client.tool("mem_get", {"ids": [number]}))["isError"]


async def test_a_memory_keeps_its_structured_content_and_another_content_is_another_memory(
    agent, tmp_path
):
    """Memoturn: `"content": {"diet": "vegan"}` in a hit; the content is part of what a memory is."""
    async with agent({"cwd": str(tmp_path)}) as client:

        async def remember(content, **more):
            fields = {"text": "What this user eats.", "topic_key": "user.diet", **more}
            done = await client.tool("mem_remember", {**fields, "content": content})
            return done["structuredContent"]

        first = await remember({"since": 2026, "diet": "vegetarian"})
        again = await remember({"diet": "vegetarian", "since": 2026})
        assert (again["id"], again["outcome"]) == (first["id"], "duplicate")
        second = await remember({"diet": "vegan", "since": 2026})
        assert second["superseded"] == [first["id"]]
        read = await client.tool("mem_get", {"ids": [second["id"]]})
        (memory,) = read["structuredContent"]["memories"]
        assert memory["content"] == {"diet": "vegan", "since": 2026}
        found = await client.tool("mem_search", {"query": "user eats"})
        hits = {hit["id"]: hit for hit in found["structuredContent"]["hits"]}
        assert hits[second["id"]]["content"] == {"diet": "vegan", "since": 2026}
        bare = await client.tool("mem_remember", {"text": "Tests run with pytest."})
        read = await client.tool("mem_get", {"ids": [bare["structuredContent"]["id"]]})
        assert "content" not in read["structuredContent"]["memories"][0]


async def test_a_secret_in_structured_content_is_redacted_and_the_rest_stays(agent, tmp_path):
    async with agent({"cwd": str(tmp_path)}) as client:
        content = {"host": "db1", "key": "AKIAIOSFODNN7QRSTUVW"}
        done = await client.tool("mem_remember", {"text": "How to reach it.", "content": content})
        read = await client.tool("mem_get", {"ids": [done["structuredContent"]["id"]]})
        (memory,) = read["structuredContent"]["memories"]
        assert "AKIA" not in str(read)
        assert memory["content"]["host"] == "db1"


async def test_every_answer_has_a_txid_that_min_event_takes(agent, tmp_path):
    """Memoturn: "Every response carries txid … send Memoturn-Min-Txid for read-your-writes after an ingest"."""
    async with agent({"cwd": str(tmp_path)}) as client:
        done = await client.tool("mem_remember", {"text": "tests run with pytest"})
        number, txid = done["structuredContent"]["id"], done["structuredContent"]["txid"]
        asked = {"query": "pytest", "min_event": txid}
        found = (await client.tool("mem_search", asked))["structuredContent"]
        assert [hit["id"] for hit in found["hits"]] == [number]
        assert "waited" not in found
        for name, arguments in (
            ("mem_timeline", {}), ("mem_why", {"id": number}), ("mem_get", {"ids": [number]}),
            ("mem_pin", {"id": number}), ("mem_forget", {"ids": [number]}),
        ):  # fmt: skip
            answer = (await client.tool(name, arguments))["structuredContent"]
            assert answer["txid"] >= txid, name


async def test_a_timeline_is_around_a_memory_and_why_tells_of_it(server, agent):
    first, second, third = (
        server.remember(title, at=server.clock() - age)
        for title, age in (("a", 300), ("b", 200), ("c", 100))
    )
    async with agent() as client:
        shown = (await client.tool("mem_timeline", {"id": second}))["structuredContent"]
        assert [row["id"] for row in shown["rows"]] == [first, second, third]
        assert [row.get("pivot") for row in shown["rows"]] == [None, True, None]
        for node in (second, f"#{second}", f"summary:{second}"):
            why = (await client.tool("mem_why", {"id": node}))["structuredContent"]
            assert (why["node"], why["verdict"], why["title"]) == (f"#{second}", "current", "b")
            assert why["name"].startswith("m")
        assert any(edge["to"] == "file:/a.py" for edge in why["edges"])
        assert (await client.tool("mem_why", {"id": "file:/a.py"}))["structuredContent"]["edges"]


async def test_a_timeline_may_list_the_last_sessions(server, agent):
    old, new = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"

    def begin(tx):
        project = projects.ensure_project(tx, "/src/app", "app", "said so", 1)
        for at, key in enumerate((old, new), 1):
            projects.ensure_session(tx, SessionRef("claude-code", key), project, at)

    server.db.write_now(begin)
    async with agent() as client:
        for count, keys in ((5, [new, old]), (1, [new])):
            asked = {"sessions": count, "project": "all"}
            shown = (await client.tool("mem_timeline", asked))["structuredContent"]
            assert [(one["session"], one["memories"]) for one in shown["sessions"]] == [
                (key, 0) for key in keys
            ]
            assert shown["rows"] == []


_NAMES = st.sampled_from(
    ["query", "k", "id", "ids", "since", "session", "project", "text", "kinds", "depth", "x"]
)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(
    st.sampled_from(["mem_search", "mem_timeline", "mem_why", "mem_get", "mem_pin"]),
    st.dictionaries(_NAMES, _VALUES),
)
async def test_no_arguments_make_a_tool_break(agent, name, arguments):
    async with agent() as client:
        reply = await client.tool(name, arguments)
        if reply.get("isError"):
            assert "see the log" not in reply["content"][0]["text"]
