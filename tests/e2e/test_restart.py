"""Sessions that outlive their daemon: a real client of either era over `memd mcp`, and real daemons one after another."""

import contextlib
import os
import signal
import sqlite3
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from memd.daemon import process
from memd.errors import Broken

UPGRADE = """
import sys
import memd
memd.__version__ = "99.0"
from memd.server import tools
tools.__version__ = "99.0"
from memd.__main__ import main
sys.argv = ["memd", "serve"]
sys.exit(main())
"""
"""A daemon of a later version."""


class Machine:
    """A vault whose daemons come and go by the commands that users type, and sessions on it."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.proxies = []

    def run(self, *words):
        done = self.daemon.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    @property
    def pid(self):
        holder = process.find_lock_holder(self.daemon.paths.lock)
        return holder.pid if holder else None

    @property
    def is_stopped(self):
        return Path(self.daemon.paths.stopped).exists()

    def kill(self, number=signal.SIGKILL):
        if self.daemon.process is not None:
            self.daemon.stop(number)
            return
        os.kill(self.pid, number)
        if number == signal.SIGKILL:
            self.daemon.wait_for(lambda: self.pid is None)

    def upgrade(self):
        """Replace the daemon by one of another version, as an upgrade does."""
        self.run("stop")
        self.daemon.command = lambda *_: [sys.executable, "-c", UPGRADE]
        self.daemon.start()
        del self.daemon.command

    @contextlib.asynccontextmanager
    async def session(self, era, limits=None, **environ):
        """A client's session; calls `notify` with whatever the server says unasked. `limits`: other values of the proxy's."""
        program = f"import sys; from memd import stdio_proxy; vars(stdio_proxy).update({limits}); sys.exit(stdio_proxy.main([]))"
        server = StdioServerParameters(
            command=sys.executable, args=["-c", program] if limits else ["-m", "memd", "mcp"],
            env=self.daemon.environ | environ, cwd=str(self.daemon.home),
        )  # fmt: skip
        if era == "stateless":
            async with Client(server, mode="auto") as client:
                assert client.protocol_version == "2026-07-28"
                yield client
            return
        async with stdio_client(server) as (reads, writes), ClientSession(reads, writes) as client:
            await client.initialize()
            yield client

    def titles(self):
        """Of every memory, superseded ones too."""
        path = f"file:{self.daemon.paths.database}?mode=ro"
        with contextlib.closing(sqlite3.connect(path, uri=True)) as vault:
            return sorted(title for (title,) in vault.execute("SELECT title FROM summaries"))


@pytest.fixture
def machine(daemon):
    it = Machine(daemon)
    it.run("start")
    yield it
    daemon.run("stop")


async def search(client, words="where are sessions kept"):
    result = await client.call_tool("mem_search", {"query": words})
    assert not result.is_error, result.content
    return [hit["title"] for hit in result.structured_content["hits"]]


async def remember(client, text, **more):
    result = await client.call_tool("mem_remember", {"text": text, **more})
    assert not result.is_error, result.content
    return result.structured_content


async def remember_at_last(client, text):
    """Remember it however often a machine that is too busy for the shortened limits fails the call."""
    while True:
        with contextlib.suppress(MCPError):
            return await remember(client, text)


def in_a_thread(work, *arguments):
    return anyio.to_thread.run_sync(work, *arguments)


def restart(machine):
    machine.run("restart")


def stop_and_start(machine):
    machine.run("stop")
    machine.run("start")


def kill_and_start(machine):
    machine.kill()
    machine.run("start")


def restore(machine):
    machine.run("backup")
    machine.run("restore", "--yes")


def upgrade(machine):
    machine.upgrade()


@pytest.mark.parametrize(
    ("era", "misfortunes"),
    [
        ("handshake", (restart, stop_and_start, kill_and_start, restore, upgrade)),
        ("stateless", (kill_and_start,)),
    ],
    ids=["handshake", "stateless"],
)
async def test_the_tools_of_an_open_session_outlive_its_daemons(machine, era, misfortunes):
    async with machine.session(era) as client:
        await client.list_tools()
        await remember(client, "Sessions are kept in Redis because SQLite was too slow")
        for befall in misfortunes:
            before = machine.pid
            await in_a_thread(befall, machine)
            assert machine.pid not in (None, before)
            (title,) = await search(client)
            assert "Redis" in title
            await client.list_tools()
        await remember(client, "Uploads are kept on disk")
        assert any("Uploads" in title for title in await search(client, "where are uploads kept"))


@pytest.mark.parametrize(("era", "count"), [("stateless", 1), ("handshake", 30)])
async def test_calls_in_flight_when_the_daemon_is_killed_are_answered_and_done_once(
    machine, era, count
):
    async with machine.session(era) as client:
        await search(client)
        texts = [f"Service {number} listens on port {7000 + number}" for number in range(count)]
        errors, done = [], []

        async def tell(text):
            try:
                done.append(await remember(client, text))
            except MCPError as refused:
                errors.append(refused.error)

        async with anyio.create_task_group() as tasks:
            machine.kill(signal.SIGSTOP)
            for text in texts:
                tasks.start_soon(tell, text)
            await anyio.wait_all_tasks_blocked()
            # What the proxy has not sent by now waits for the next daemon.
            await in_a_thread(machine.kill)
            await in_a_thread(machine.run, "start")
        assert len(errors) + len(done) == count
        assert all(error.data == {"retryable": True, "done": "unknown"} for error in errors)
        assert all("call again" in error.message for error in errors)
        for text in texts:
            await remember(client, text)
        assert machine.titles() == sorted(texts)


async def test_a_hung_daemon_fails_calls_soon_and_goes_on_when_it_wakes_with_nothing_lost_or_done_twice(
    machine, monkeypatch
):
    monkeypatch.setattr("memd.client.SILENCE_S", 0.2)
    async with machine.session("handshake", limits={"SILENCE_S": 0.2, "QUEUE_S": 0.2}) as client:
        await remember_at_last(client, "Sessions are kept in Redis because SQLite was too slow")
        machine.kill(signal.SIGSTOP)
        for _ in range(2):
            with pytest.raises(MCPError) as refused:
                await remember(client, "Uploads are kept on disk")
            assert "memd does not answer" in refused.value.error.message
            assert "`memd status`" in refused.value.error.message
        with pytest.raises(Broken, match="memd does not answer"), machine.daemon.client() as asked:
            await in_a_thread(asked.call, "memd/search", {"query": "uploads"})
        machine.kill(signal.SIGCONT)
        await remember_at_last(client, "Uploads are kept on disk")
        assert len(machine.titles()) == 2


async def test_a_killed_daemon_is_started_by_the_next_call_where_sessions_may_start_one(machine):
    others = zombies()  # of whatever else runs on this machine
    limits = {"START_AFTER_S": 0.1}
    async with machine.session("stateless", limits, MEMD_START="1") as client:
        await remember(client, "Sessions are kept in Redis because SQLite was too slow")
        for _ in range(2):
            before = machine.pid
            machine.kill()
            assert len(await search(client)) == 1
            assert machine.pid not in (None, before)
        assert zombies() <= others


def zombies():
    """Processes that have ended and that no parent has reaped, other than this process's own."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, fields = entry.read_text().rpartition(") ")
            if fields.startswith("Z") and "memd" in name and fields.split()[1] != str(os.getpid()):
                found.add(name)
    return found


async def test_a_daemon_that_was_stopped_on_purpose_stays_so(machine):
    limits = {"START_AFTER_S": 0.1, "STOPPED_S": 0.2}
    async with machine.session("handshake", limits, MEMD_START="1") as client:
        await search(client)
        await in_a_thread(machine.run, "stop")
        for _ in range(2):
            with pytest.raises(MCPError) as refused:
                await search(client)
            assert (
                refused.value.error.message == "memd was stopped; run `memd start`, then call again"
            )
            assert refused.value.error.data == {"retryable": True, "done": "no"}
        assert machine.pid is None
        await in_a_thread(machine.run, "start")
        await search(client)
        # A crash after that is a crash again.
        machine.kill()
        await search(client)


async def test_the_caller_is_the_same_to_every_daemon(machine, tmp_path):
    project = tmp_path / "ledger"
    (project / ".git").mkdir(parents=True)
    environ = {"CLAUDE_PROJECT_DIR": str(project), "CLAUDE_CODE_SESSION_ID": "s-1"}
    async with machine.session("handshake", **environ) as client:
        await remember(client, "Sessions are kept in Redis because SQLite was too slow")
        await in_a_thread(machine.run, "restart")
        await remember(client, "Uploads are kept on disk because the bucket was too slow")
        assert len(await search(client, "too slow")) == 2
        assert len(machine.titles()) == 2
