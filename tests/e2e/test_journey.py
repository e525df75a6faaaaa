"""From a real Claude Code session to an answer over MCP, in both eras, with nothing played."""

import json
import pathlib

import anyio
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.e2e.real_daemon import DATA, LEDGER, RealDaemon

SECRETS = ("wJalrXUtnFEMI", "AKIAIOSFODNN7EXAMPLE", "Nordwind")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """The three ledger sessions, replayed through the hook."""
    daemon = RealDaemon(tmp_path_factory.mktemp("m")).start()
    daemon.replay(LEDGER / "hooks.jsonl")
    daemon.settle()
    yield daemon
    daemon.stop()


class Asking:
    """The same questions whichever era the client speaks."""

    def __init__(self, session):
        self._session = session

    async def tool(self, name, **arguments):
        result = await self._session.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def first(self, query):
        return (await self.tool("mem_search", query=query, project="all"))["hits"][0]


async def ask_everything(asking):
    fix = await asking.first("why did login answer 500")
    assert fix["kind"] == "fix"
    (whole,) = (await asking.tool("mem_get", ids=[fix["id"]], project="all"))["memories"]
    assert "token.split" in json.dumps(whole)

    redis = await asking.first("where do we keep sessions")
    assert redis["kind"] == "decision"
    assert "Redis" in redis["title"]
    why = await asking.tool("mem_why", id=redis["id"], project="all")
    reply = json.dumps(why)
    assert "SQLite" in reply
    assert "changed-value" in reply

    rule = await asking.first("how should tests be run")
    assert rule["kind"] == "instruction"
    assert "python3 -m unittest -q" in rule["title"]

    mended = await asking.first("LIMITS NameError")
    assert mended["kind"] == "change", "what the work itself broke is told by its memory"
    (whole,) = (await asking.tool("mem_get", ids=[mended["id"]], project="all"))["memories"]
    assert "NameError" in json.dumps(whole)
    assert "+ LIMIT" in json.dumps(whole)

    for secret in SECRETS:
        assert (await asking.tool("mem_search", query=secret, project="all"))["hits"] == []


def stdio_proxy(daemon):
    return StdioServerParameters(
        command=daemon.command()[0], args=["-m", "memd", "mcp"], env=daemon.environ
    )


async def test_the_ledger_sessions_answer_in_the_handshake_era_and_after_an_import(ledger):
    async with (
        stdio_client(stdio_proxy(ledger)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        await ask_everything(Asking(session))
        await anyio.to_thread.run_sync(import_again, ledger)
        await ask_everything(Asking(session))
    assert ledger.files_with(*SECRETS) == []


def import_again(daemon):
    before = daemon.status()
    done = daemon.run("import", "claude-code", str(LEDGER / "projects"))
    assert done.returncode == 0, done.stderr
    daemon.settle()
    # On a busy machine the counts may be two seconds old.
    daemon.wait_for(lambda: daemon.status()["books"]["duplicate"] > before["books"]["duplicate"])
    after = daemon.status()
    assert after["events"]["count"] == before["events"]["count"]
    assert after["summaries"]["count"] == before["summaries"]["count"]


async def test_transcripts_alone_give_the_same_first_hits(daemon):
    daemon.start()
    done = daemon.run("import", "claude-code", str(LEDGER / "projects"))
    assert done.returncode == 0, done.stderr
    daemon.settle()
    async with Client(stdio_proxy(daemon), mode="auto") as client:
        await ask_everything(Asking(client))
    assert daemon.files_with(*SECRETS) == []


def test_a_session_that_fires_every_event_goes_through_without_a_warning(daemon):
    daemon.start()
    daemon.replay(DATA / "every-event" / "hook-samples.jsonl")
    daemon.settle()
    status = daemon.status()
    assert status["health"] == "healthy"
    assert status["books"]["balanced"]
    assert status["books"]["refused"] == 0
    log = pathlib.Path(daemon.paths.log).read_text(encoding="utf-8")
    assert {json.loads(line)["level"] for line in log.splitlines()} == {"info"}
