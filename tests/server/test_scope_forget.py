"""What an agent may erase over MCP: what its own dry run has shown, once, soon, and nothing of the user's."""

import dataclasses

import pytest

from memd.config import AgentsConfig
from memd.models import Authority, EdgeType, EventKind, NewEvent, SessionRef
from memd.server.scope import TOKEN_MS
from memd.store import events, links, projects, summaries


def text_of(reply):
    return reply["content"][0]["text"]


def exists(server, number):
    return server.db.read_now(lambda tx: summaries.get_summary(tx, number)) is not None


def set_column(server, number, column, value):
    change = {
        "authority": "UPDATE summaries SET authority = ? WHERE id = ?",
        "pinned_by": "UPDATE summaries SET pinned_by = ? WHERE id = ?",
    }[column]
    server.db.write_now(lambda tx: tx.execute(change, (value.code, number)))


def put_event(server, project, kind, key, **payload):
    """An event of a session in this project; its number."""
    new = NewEvent(SessionRef("claude-code", "s"), key, kind, kind.value, 1, "live", payload)

    def work(tx):
        owner = projects.ensure_project(tx, project, project, "", 1)
        session = projects.ensure_session(tx, new.session, owner, 1)
        return events.append_event(tx, new, session)[0]

    return server.db.write_now(work)


def derive(server, summary_id, event_id):
    edge = links.NewEdge(
        "summary", str(summary_id), EdgeType.DERIVES_FROM, "event", str(event_id), "test", 1
    )
    server.db.write_now(lambda tx: links.add_edges(tx, [edge]))


@pytest.fixture
def here(tmp_path):
    (tmp_path / "here" / ".git").mkdir(parents=True)
    return str(tmp_path / "here")


@pytest.fixture
def preface(here):
    return {"cwd": here, "session": "s1", "client": "claude-code"}


async def dry_run(client, **arguments):
    return (await client.tool("mem_forget", arguments))["structuredContent"]


async def erase(client, **arguments):
    return await client.tool("mem_forget", {**arguments, "dry_run": False})


async def test_an_agent_erases_exactly_what_its_dry_run_has_shown(server, agent, here, preface):
    one, other = server.remember("tabs", project=here), server.remember("spaces", project=here)
    async with agent(preface) as client:
        shown = await dry_run(client, ids=[one])
        assert (shown["dry_run"], shown["would_forget"][0]["id"]) == (True, one)
        assert len(shown["token"]) >= 40
        reply = await erase(client, ids=[one], token=shown["token"])
        assert reply["structuredContent"]["forgot"][0]["id"] == one
        assert (exists(server, one), exists(server, other)) == (False, True)


@pytest.mark.parametrize("selection", ["ids", "query", "since"])
@pytest.mark.parametrize("token", [None, "", "x" * 43, "é" * 10, "0123456789abcdef"])
async def test_without_the_token_of_a_dry_run_nothing_is_erased(
    server, agent, preface, token, selection
):
    number = server.remember("tabs", project=preface["cwd"])
    arguments = {"ids": {"ids": [number]}, "query": {"query": "tabs"}, "since": {"since": "30d"}}
    async with agent(preface) as client:
        await dry_run(client, ids=[number])
        given = {} if token is None else {"token": token}
        reply = await erase(client, **arguments[selection], **given)
        assert reply["isError"]
        assert "nothing was erased" in text_of(reply) or "token" in text_of(reply)
        assert exists(server, number)


async def test_the_name_of_a_plan_is_no_token(server, agent, here, preface):
    number = server.remember("tabs", project=here)
    plan = await server.curator.forget([number], dry_run=True)
    async with agent(preface) as client:
        assert (await erase(client, ids=[number], token=plan.token))["isError"]
        assert exists(server, number)


async def test_a_token_holds_once(server, agent, here, preface):
    one = server.remember("tabs", project=here)
    async with agent(preface) as client:
        shown = await dry_run(client, ids=[one])
        await erase(client, ids=[one], token=shown["token"])
        again = server.remember("tabs again", project=here)
        assert (await erase(client, ids=[again], token=shown["token"]))["isError"]
        assert exists(server, again)


@pytest.mark.parametrize(
    ("passed_ms", "is_erased"), [(TOKEN_MS - 1, True), (TOKEN_MS, False), (-1, False)]
)
async def test_a_token_holds_ten_minutes(server, agent, preface, passed_ms, is_erased):
    number = server.remember("tabs", project=preface["cwd"])
    async with agent(preface) as client:
        shown = await dry_run(client, ids=[number])
        server.clock.advance(ms=passed_ms)
        reply = await erase(client, ids=[number], token=shown["token"])
        assert reply.get("isError", False) is not is_erased
        assert exists(server, number) is not is_erased


@pytest.mark.parametrize("change", [{}, {"session": "s2"}, {"client": "codex"}])
async def test_a_token_is_of_one_connection(server, connect, here, preface, change):
    number = server.remember("tabs", project=here)
    async with server.open(), connect(preface) as client, connect(preface | change) as other:
        await client.initialize()
        await other.initialize()
        token = (await dry_run(client, ids=[number]))["token"]
        assert (await erase(other, ids=[number], token=token))["isError"]
        assert exists(server, number)
        assert not (await erase(client, ids=[number], token=token)).get("isError", False)


async def test_no_token_outlives_the_daemon(server, agent, here, preface):
    number = server.remember("tabs", project=here)
    async with agent(preface) as client:
        token = (await dry_run(client, ids=[number]))["token"]
    async with agent(preface) as client:
        assert (await erase(client, ids=[number], token=token))["isError"]
    assert exists(server, number)


@pytest.mark.parametrize("how", ["other ids", "more rows", "fewer rows"])
async def test_if_the_selection_has_changed_it_is_shown_anew(server, agent, here, preface, how):
    one, other = server.remember("red tabs", project=here), server.remember("tabs", project=here)
    first = {"ids": [one]} if how == "other ids" else {"query": "tabs"}
    second = {"ids": [one, other]} if how == "other ids" else first
    async with agent(preface) as client:
        token = (await dry_run(client, **first))["token"]
        if how == "more rows":
            server.remember("blue tabs", project=here)
        if how == "fewer rows":
            await server.curator.forget([other], dry_run=False)
        reply = await erase(client, **second, token=token)
        assert reply["isError"]
        again = reply["structuredContent"]
        assert (again["dry_run"], again["refused"] != "") == (True, True)
        assert exists(server, one)
        assert (await erase(client, **second, token=token))["isError"], "it was used"
        done = await erase(client, **second, token=again["token"])
        assert not done.get("isError", False)
        assert not exists(server, one)


@pytest.mark.parametrize(
    "whose",
    [
        ("authority", Authority.USER_HAND),
        ("authority", Authority.USER_PROMPT),
        ("pinned_by", Authority.USER_HAND),
    ],
)
@pytest.mark.parametrize("by", ["ids", "query"])
async def test_what_the_user_said_or_pinned_only_the_user_erases(server, agent, preface, whose, by):
    here = preface["cwd"]
    number, mine = server.remember("tabs", project=here), server.remember("our tabs", project=here)
    set_column(server, number, *whose)
    selection = {"ids": [mine, number]} if by == "ids" else {"query": "tabs"}
    async with agent(preface) as client:
        reply = await client.tool("mem_forget", selection)
        assert reply["isError"]
        assert f"`memd forget {number}`" in text_of(reply)
        assert (await erase(client, **selection))["isError"]
        assert exists(server, number)
        assert exists(server, mine)


async def test_what_the_user_pins_after_the_dry_run_stays(server, agent, here, preface):
    number = server.remember("tabs", project=here)
    async with agent(preface) as client:
        token = (await dry_run(client, ids=[number]))["token"]
        set_column(server, number, "pinned_by", Authority.USER_HAND)
        assert (await erase(client, ids=[number], token=token))["isError"]
        assert exists(server, number)


async def test_an_agent_erases_what_agents_and_tools_said_and_agents_pinned(
    server, agent, here, preface
):
    ids = [server.remember(f"tabs {n}", project=here) for n in range(3)]
    for number, value in zip(
        ids, (Authority.AGENT_CALL, Authority.TOOL_OUTPUT, Authority.AGENT_TEXT), strict=True
    ):
        set_column(server, number, "authority", value)
    set_column(server, ids[0], "pinned_by", Authority.AGENT_CALL)
    async with agent(preface) as client:
        token = (await dry_run(client, ids=ids))["token"]
        assert not (await erase(client, ids=ids, token=token)).get("isError", False)
        assert not any(exists(server, number) for number in ids)


@pytest.mark.parametrize("selection", [
    {"query": "tabs", "project": "all"}, {"query": "tabs", "project": "global"},
    {"query": "tabs", "project": "there"}, {"project": "there"}, {"project": "all", "since": "30d"},
])  # fmt: skip
async def test_an_agent_erases_in_its_own_project_only(server, agent, here, preface, selection):
    number = server.remember("tabs", project="there")
    server.remember("mine", project=here)
    server.remember("shared", project="global")
    async with agent(preface) as client:
        reply = await client.tool("mem_forget", selection)
        assert reply["isError"]
        assert "`memd forget --project" in text_of(reply)
        assert exists(server, number)
        byid = await client.tool("mem_forget", {"ids": [number], "project": "all"})
        assert byid["isError"]
        assert f"`memd forget {number}`" in text_of(byid)


async def test_prompts_of_the_user_stay_and_are_counted(server, agent, here, preface):
    number = server.remember("tabs", project=here)
    prompt = put_event(server, here, EventKind.PROMPT, "p", prompt="use tabs")
    tool = put_event(server, here, EventKind.TOOL_RESULT, "t", tool_input={"command": "tabs"})
    derive(server, number, prompt)
    derive(server, number, tool)
    async with agent(preface) as client:
        for selection in ({"ids": [number]}, {"query": "tabs"}):
            shown = await dry_run(client, **selection)
            assert (shown["events"], shown["kept_prompts"]) == (1, 1)
        done = await erase(client, query="tabs", token=shown["token"])
        assert done["structuredContent"]["events"] == 1
    left = server.db.read_now(lambda tx: events.events_by_ids(tx, [prompt, tool]))
    assert list(left) == [prompt]


async def test_the_config_lets_agents_erase_what_the_user_said(server, agent, preface):
    server.app = dataclasses.replace(
        server.app, agents=AgentsConfig(user_memories=True, other_projects=True)
    )
    number = server.remember("tabs", project="there")
    set_column(server, number, "authority", Authority.USER_HAND)
    prompt = put_event(server, "there", EventKind.PROMPT, "p", prompt="use tabs")
    async with agent(preface) as client:
        arguments = {"query": "tabs", "project": "all"}
        shown = await dry_run(client, **arguments)
        assert (shown["events"], "kept_prompts" in shown) == (1, False)
        assert not (await erase(client, **arguments, token=shown["token"])).get("isError", False)
        assert not exists(server, number)
    assert server.db.read_now(lambda tx: events.events_by_ids(tx, [prompt])) == {}
