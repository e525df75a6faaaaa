"""The whole house in one process: every room made, rung and closed in order."""

import signal
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from memd.client import Client
from memd.config import Config
from memd.daemon import lock, wiring
from memd.daemon.process import wait_until
from memd.errors import AlreadyRunning, ConfigError
from memd.paths import Paths

from .conftest import close_log

PROMPT = {
    "session_id": "wiring",
    "prompt_id": "p1",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "From now on always use tabs in the ledger.",
}
STOP = {
    "session_id": "wiring",
    "prompt_id": "p1",
    "hook_event_name": "Stop",
    "last_assistant_message": "I will always use tabs in the ledger.",
}


@pytest.fixture
def paths(tmp_path):
    yield Paths({"MEMD_HOME": str(tmp_path)})
    close_log()


@pytest.fixture
async def house(paths):
    """A daemon in this very process; gives the means to call it."""

    async def call(method, **params):
        def ask():
            with Client(paths.socket, 10) as client:
                return client.call(method, params)

        return await anyio.to_thread.run_sync(ask)

    async with anyio.create_task_group() as group:
        group.start_soon(wiring.serve, Config(), paths)
        assert await anyio.to_thread.run_sync(wait_until, Path(paths.socket).exists, 20)
        yield call
        await call("memd/shutdown")


async def test_an_event_becomes_an_answer_on_its_way_through_every_room(house):
    events = [
        {"client": "claude-code", "payload": payload, "directory": "/home/dev/ledger"}
        for payload in (PROMPT, STOP)
    ]
    receipts = (await house("memd/capture", events=events))["receipts"]
    found = await house(
        "memd/search", query="tabs", min_event=receipts[-1]["seq"], project="all"
    )
    assert "waited" not in found
    assert "tabs" in found["hits"][0]["title"]


async def test_every_room_is_kept_and_healthy(house):
    status = await house("memd/status")
    assert status["health"] == "healthy"
    assert {room["name"]: room["state"] for room in status["rooms"]} == dict.fromkeys(
        ["intake", "distiller", "indexer", "recaller", "injector", "consolidator", "listener"],
        "running",
    )


async def test_a_second_house_on_the_same_vault_is_refused(house, paths):
    with pytest.raises(AlreadyRunning):
        await wiring.serve(Config(), paths)
    assert (await house("memd/ping"))["pid"]


async def test_leaving_closes_the_vault_and_takes_the_socket_away(paths):
    async with anyio.create_task_group() as group:
        group.start_soon(wiring.serve, Config(), paths)
        assert await anyio.to_thread.run_sync(wait_until, Path(paths.socket).exists, 20)
        signal.raise_signal(signal.SIGTERM)
    assert not await anyio.Path(paths.socket).exists()
    assert not await anyio.Path(paths.database + "-wal").exists()
    assert lock.holder(paths.lock) is None


async def test_a_socket_path_that_no_system_takes_ends_it_with_a_reason(tmp_path):
    deep = Paths({"MEMD_HOME": str(tmp_path / ("d" * 100))})
    with pytest.RaisesGroup(ConfigError, flatten_subgroups=True):
        await wiring.serve(Config(), deep)
    close_log()


def test_the_clock_is_in_utc_milliseconds():
    assert 1_700_000_000_000 < wiring.clock() < 4_000_000_000_000
