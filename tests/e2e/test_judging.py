"""Memories that disagree, from the first word to the last verdict, through MCP and a real daemon."""

import pytest
from mcp import Client, StdioServerParameters

from memd.errors import BadRequest

OLD = "Sessions of the ledger expire after 30 minutes"
NEW = "Sessions of the ledger viewer expire after 60 minutes"


def stdio_proxy(daemon):
    return StdioServerParameters(
        command=daemon.command()[0], args=["-m", "memd", "mcp"], env=daemon.environ
    )


class Asking:
    """The tools of one client; every result is checked against its schema by the daemon."""

    def __init__(self, client):
        self._client = client

    async def __call__(self, name, **arguments):
        reply = await self._client.call_tool(name, arguments)
        assert not reply.is_error, reply.content[0].text
        return reply.structured_content

    async def refused(self, name, **arguments):
        reply = await self._client.call_tool(name, arguments)
        assert reply.is_error
        return reply.content[0].text

    async def marks(self, query):
        found = await self("mem_search", query=query)
        return {
            hit["id"]: hit.get("contradicted_by", hit.get("superseded_by")) for hit in found["hits"]
        }


async def test_a_memory_that_nothing_decides_about_is_judged_and_judged_again(daemon, tmp_path):
    daemon.start()
    async with Client(stdio_proxy(daemon), mode="auto") as client:
        ask = Asking(client)
        old = await ask("mem_remember", text=OLD, kind="fact")
        assert (old["outcome"], "judgment_required" in old) == ("created", False)
        new = await ask("mem_remember", text=NEW, kind="fact")
        assert new["judgment_required"] is True
        (candidate,) = new["candidates"]
        assert (candidate["id"], candidate["finding"]) == (
            old["id"],
            "number: 30 minutes → 60 minutes",
        )

        pair = {"id": new["id"], "other": old["id"]}
        both = {new["id"]: [old["id"]], old["id"]: [new["id"]]}
        done = await ask("mem_judge", **pair, relation="contradicts", reason="who is right?")
        assert (done["outcome"], "hidden" in done) == ("judged", False)
        assert await ask.marks("ledger sessions expire") == both
        whole = await ask("mem_get", ids=[old["id"]])
        assert whole["memories"][0]["contradicted_by"] == [new["id"]]
        why = await ask("mem_why", id=old["id"])
        assert why["verdict"] == f"contradicted by #{new['id']}"

        done = await ask("mem_judge", **pair, relation="supersedes", reason="raised in June")
        assert (done["hidden"], done["was"]) == ([old["id"]], "contradicts")
        assert await ask.marks("ledger sessions expire") == {new["id"]: None}
        why = await ask("mem_why", id=old["id"])
        assert why["verdict"] == f"superseded by #{new['id']} (judged)"
        assert [(one["reason"], one["who"]) for one in why["judgments"]] == [
            ("who is right?", "agent"),
            ("raised in June", "agent"),
        ]

        back = await ask("mem_remember", text=OLD, kind="fact")
        assert (back["outcome"], back["superseded"]) == ("revived", [new["id"]])
        done = await ask("mem_judge", **pair, undo=True)
        assert (done["outcome"], done["was"]) == ("undone", "said-again")
        assert set(await ask.marks("ledger sessions expire")) == {old["id"], new["id"]}

        assert "#999" in await ask.refused("mem_judge", id=999, other=old["id"], undo=True)
        assert "relation" in await ask.refused("mem_judge", **pair, reason="x")
        duplicate = {**pair, "relation": "duplicate", "reason": "x"}
        with daemon.client() as control:
            control.call("memd/pin", {"id": old["id"]})
        # What the user has pinned, no agent hides.
        assert "the word of the user by hand" in await ask.refused("mem_judge", **duplicate)
        with daemon.client() as control:
            control.call("memd/forget", {"ids": [old["id"]], "dry_run": False})
        assert f"no memory #{old['id']}" in await ask.refused("mem_judge", **duplicate)
        await judge_across_projects(ask, daemon, tmp_path)


async def judge_across_projects(ask, daemon, tmp_path):
    with daemon.client() as control:
        here, there = (
            control.call("memd/remember", {"text": OLD, "directory": str(place)})["id"]
            for place in (tmp_path / "here", tmp_path / "there")
        )
    pair = {"id": here, "other": there, "reason": "x"}
    unseen = await ask.refused("mem_judge", relation="unrelated", project="here", **pair)
    assert "belongs to there" in unseen
    # An agent's word ends at its own project; the user's does not.
    said = await ask.refused("mem_judge", relation="unrelated", project="all", **pair)
    assert "of its own project" in said
    with daemon.client() as control:
        with pytest.raises(BadRequest, match="different projects"):
            control.call("memd/judge", {**pair, "relation": "supersedes", "project": "all"})
        done = control.call("memd/judge", {**pair, "relation": "unrelated", "project": "all"})
    assert done["outcome"] == "judged"
