"""What an agent may write over MCP, and what only the user's hand may."""

import dataclasses

import pytest

from memd.config import AgentsConfig
from memd.models import Authority
from memd.store import projects, summaries


def text_of(reply):
    return reply["content"][0]["text"]


@pytest.fixture
def places(server, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for one in (here, there):
        (one / ".git").mkdir(parents=True)
        server.db.write_now(
            lambda tx, one=one: projects.ensure_project(tx, str(one), one.name, "", 1)
        )
    return here, there


async def test_what_an_agent_notes_for_everywhere_is_kept_in_its_own_project(server, agent, places):
    here, _ = places
    note = {"text": "Answers are short", "quote": "Keep answers short", "project": "global"}
    async with agent({"cwd": str(here)}) as client:
        told = (await client.tool("mem_remember", note))["structuredContent"]
        assert told["project"] == "here"
        assert "`memd remember --project global" in told["only_here"]
        told = (await client.tool("mem_remember", {"text": "a finding"}))["structuredContent"]
        assert "only_here" not in told
        assert [one.project_key for one in server.curator.memories] == [str(here)] * 2


@pytest.mark.parametrize("project", ["PATH", "there"])
async def test_an_agent_remembers_for_its_own_project_only(server, agent, places, project):
    here, there = places
    server.remember("something", project=str(there))
    asked = str(there) if project == "PATH" else project
    async with agent({"cwd": str(here)}) as client:
        reply = await client.tool("mem_remember", {"text": "obey me", "project": asked})
        assert reply["isError"]
        assert "an agent remembers for its own project" in text_of(reply)
        assert "`memd remember" in text_of(reply)
        found = await client.tool("mem_search", {"query": "obey", "project": "all"})
        assert found["structuredContent"]["hits"] == []


@pytest.mark.parametrize("project", ["current", "PATH", "here"])
async def test_an_agent_may_name_its_own_project(server, agent, places, project):
    here, _ = places
    server.remember("something", project=str(here))
    asked = str(here) if project == "PATH" else project
    async with agent({"cwd": str(here)}) as client:
        reply = await client.tool("mem_remember", {"text": "a finding", "project": asked})
        assert not reply.get("isError")
        assert server.curator.memories[0].project_key == str(here)


async def test_an_agent_without_a_directory_remembers_in_scratch_not_everywhere(server, agent):
    async with agent() as client:
        await client.tool("mem_remember", {"text": "a finding"})
        assert server.curator.memories[0].project_key == "scratch"


@pytest.mark.parametrize("owner", ["global", "there"])
async def test_an_agent_pins_and_judges_memories_of_its_own_project_only(
    server, agent, places, owner
):
    here, there = places
    project = "global" if owner == "global" else str(there)
    one, other = (server.remember(text, project=project) for text in ("tabs", "spaces"))
    mine = server.remember("mine", project=str(here))
    writes = [
        ("mem_pin", {"id": one}, "memd pin"),
        ("mem_pin", {"id": one, "pinned": False}, "memd pin"),
        ("mem_judge", {"id": one, "other": other, "relation": "supersedes"}, "memd judge"),
        ("mem_judge", {"id": mine, "other": other, "relation": "duplicate"}, "memd judge"),
        ("mem_judge", {"id": one, "other": other, "undo": True}, "memd judge"),
    ]
    async with agent({"cwd": str(here)}) as client:
        for tool, arguments, command in writes:
            reply = await client.tool(
                tool,
                {"reason": "so", **arguments, "project": "all"}
                if tool == "mem_judge"
                else {**arguments, "project": "all"},
            )
            assert reply["isError"], tool
            assert "of its own project (here) only" in text_of(reply)
            assert command in text_of(reply)


async def test_the_config_lets_agents_write_elsewhere(server, agent, places):
    here, there = places
    server.app = dataclasses.replace(server.app, agents=AgentsConfig(other_projects=True))
    number = server.remember("tabs", project=str(there))
    async with agent({"cwd": str(here)}) as client:
        reply = await client.tool("mem_remember", {"text": "tabs", "project": "global"})
        assert not reply.get("isError")
        assert server.curator.memories[0].project_key is None
        assert "only_here" not in reply["structuredContent"]
        assert not (await client.tool("mem_pin", {"id": number, "project": "all"})).get("isError")


@pytest.mark.parametrize(
    ("authority", "speaker"),
    [
        (Authority.USER_HAND, "user"),
        (Authority.USER_PROMPT, "user"),
        (Authority.AGENT_CALL, "agent"),
        (Authority.AGENT_TEXT, "agent"),
        (Authority.TOOL_OUTPUT, "tool"),
    ],
)
async def test_what_is_recalled_names_its_speaker(server, agent, places, authority, speaker):
    here, _ = places
    number = server.remember("login", project=str(here))
    server.db.write_now(
        lambda tx: tx.execute("UPDATE summaries SET authority = ?", (authority.code,))
    )
    async with agent({"cwd": str(here)}) as client:
        found = await client.tool("mem_search", {"query": "login"})
        read = await client.tool("mem_get", {"ids": [number]})
        line = await client.tool("mem_timeline", {"id": number})
        why = await client.tool("mem_why", {"id": number})
        assert found["structuredContent"]["hits"][0]["speaker"] == speaker
        assert read["structuredContent"]["memories"][0]["speaker"] == speaker
        assert line["structuredContent"]["rows"][0]["speaker"] == speaker
        assert why["structuredContent"]["speaker"] == speaker


async def test_the_config_lets_agents_change_what_the_user_said(server, agent, places):
    here, _ = places
    server.app = dataclasses.replace(server.app, agents=AgentsConfig(user_memories=True))
    one, other = (server.remember(text, project=str(here)) for text in ("tabs", "spaces"))
    server.db.write_now(lambda tx: tx.execute("UPDATE summaries SET authority = 5"))
    ruling = {"id": one, "other": other, "relation": "supersedes", "reason": "so the user said"}
    async with agent({"cwd": str(here)}) as client:
        judged = await client.tool("mem_judge", ruling)
        assert judged["structuredContent"]["hidden"] == [other]
        undone = await client.tool("mem_judge", {"id": one, "other": other, "undo": True})
        assert undone["structuredContent"]["outcome"] == "undone"


async def test_an_agent_neither_hides_nor_unpins_what_the_user_said(server, agent, places):
    here, _ = places
    one, other = (server.remember(text, project=str(here)) for text in ("tabs", "spaces"))
    server.db.write_now(
        lambda tx: tx.execute("UPDATE summaries SET authority = 5 WHERE id = ?", (other,))
    )
    server.db.write_now(lambda tx: summaries.pin_summary(tx, one, 1))
    ruling = {"id": one, "other": other, "relation": "supersedes", "reason": "obey me"}
    async with agent({"cwd": str(here)}) as client:
        judged = await client.tool("mem_judge", ruling)
        assert not judged.get("structuredContent", {}).get("hidden")
        unpinned = await client.tool("mem_pin", {"id": one, "pinned": False})
        assert unpinned["isError"]
        assert f"memd pin --off {one}" in text_of(unpinned)
        pinned = await client.tool("mem_pin", {"id": other})
        assert pinned["structuredContent"]["tier"] != "core"
