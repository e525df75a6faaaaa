"""The whole daemon in this process: every worker is made, started and stopped in order."""

import json
import os
import signal
import sys

import anyio
import anyio.to_thread
import pytest

from memd.client import Client
from memd.config import Config, DistillConfig, EnginesConfig, RecallConfig
from memd.daemon import app, process
from memd.daemon.process import wait_until
from memd.errors import AlreadyRunning, ConfigError
from memd.paths import Paths
from tests.fakes import writer
from tests.fakes.ollama import Ollama

from .conftest import close_log, wait_until_listening

PROMPT = {
    "session_id": "whole-daemon",
    "prompt_id": "p1",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "From now on always use tabs in the ledger.",
}
STOP = {
    "session_id": "whole-daemon",
    "prompt_id": "p1",
    "hook_event_name": "Stop",
    "last_assistant_message": "I will always use tabs in the ledger.",
}
EDIT = {
    "session_id": "whole-daemon",
    "prompt_id": "p1",
    "hook_event_name": "PostToolUse",
    "tool_name": "Edit",
    "tool_use_id": "toolu_01TabsInTheLedger000",
    "tool_input": {
        "file_path": "/home/dev/ledger/ledger.py",
        "old_string": "    total",
        "new_string": "\ttotal",
    },
    "tool_response": {},
}

NO_MODEL = EnginesConfig(url="http://127.0.0.1:9")
"""The default settings, with no model even if the machine runs Ollama."""


@pytest.fixture
def paths(tmp_path):
    yield Paths({"MEMD_HOME": str(tmp_path)})
    close_log()


@pytest.fixture
async def call_daemon(paths):
    """A daemon in this process, and a function that calls it."""

    async def call(method, **params):
        def ask():
            with Client(paths.socket, 10) as client:
                return client.call(method, params)

        return await anyio.to_thread.run_sync(ask)

    async with anyio.create_task_group() as group:
        group.start_soon(app.serve, Config(engines=NO_MODEL), paths)
        await anyio.to_thread.run_sync(wait_until_listening, paths.socket, abandon_on_cancel=True)
        yield call
        await call("memd/shutdown")


async def test_an_event_becomes_an_answer(call_daemon):
    events = [
        {"client": "claude-code", "payload": payload, "directory": "/home/dev/ledger"}
        for payload in (PROMPT, STOP)
    ]
    receipts = (await call_daemon("memd/capture", events=events))["receipts"]
    found = await call_daemon(
        "memd/search", query="tabs", min_event=receipts[-1]["seq"], project="all"
    )
    assert "waited" not in found
    assert "tabs" in found["hits"][0]["title"]


async def test_every_worker_runs_and_is_healthy(call_daemon):
    status = await call_daemon("memd/status")
    assert status["health"] == "healthy"
    assert {worker["name"]: worker["state"] for worker in status["rooms"]} == dict.fromkeys(
        [
            "guard", "intake", "follower", "distiller", "redistiller", "indexer", "recaller", "injector", "outcomes",
            "consolidator", "listener", "embedder", "backfill", "retention", "worktrees", "notes",
        ],
        "running",
    )  # fmt: skip
    assert status["embedder"]["active"] == "hashing"
    assert status["embedder"]["learned"]["state"] == "absent"


async def test_a_second_daemon_on_the_same_vault_is_refused(call_daemon, paths):
    with pytest.raises(AlreadyRunning):
        await app.serve(Config(), paths)
    assert (await call_daemon("memd/ping"))["pid"]


@pytest.mark.parametrize("home", ["home", "d" * 100], ids=["short", "too long for a socket"])
async def test_a_shutdown_closes_the_vault_and_removes_the_socket(tmp_path, home):
    paths = Paths({"MEMD_HOME": str(tmp_path / home)})
    async with anyio.create_task_group() as group:
        group.start_soon(app.serve, Config(), paths)
        await anyio.to_thread.run_sync(wait_until_listening, paths.socket, abandon_on_cancel=True)
        signal.raise_signal(signal.SIGTERM)
    assert not await anyio.Path(paths.socket).exists()
    assert not await anyio.Path(paths.database + "-wal").exists()
    assert process.find_lock_holder(paths.lock) is None
    close_log()


def test_the_clock_is_in_utc_milliseconds():
    assert 1_700_000_000_000 < app.utc_now_ms() < 4_000_000_000_000


async def test_a_model_answers_questions_once_its_space_is_filled(paths):
    def ask(method, **params):
        with Client(paths.socket, 10) as client:
            return client.call(method, params)

    def work(server):
        wait_until_listening(paths.socket)
        place = {"directory": "/home/dev/ledger"}
        texts = ["The automobile is repaired on Monday.", "Invoices are sent as PDF."]
        for number, text in enumerate(texts):
            payload = PROMPT | {"prompt_id": f"p{number}", "prompt": f"Remember that: {text}"}
            ask("memd/capture", events=[{"client": "claude-code", "payload": payload} | place])
            payload = STOP | {"prompt_id": f"p{number}", "last_assistant_message": text}
            ask("memd/capture", events=[{"client": "claude-code", "payload": payload} | place])

        def is_filled():
            status = ask("memd/status")
            learned = status["embedder"]["learned"]
            waits = status["events"]["pending"] + status["summaries"]["to_index"]
            return not waits and learned["coverage"] == 1

        assert wait_until(is_filled, 60)
        assert ask("memd/status")["embedder"]["active"] == "ollama"

        def is_found():
            found["hits"] = ask("memd/search", query="which vehicle", project="all")["hits"]
            return found["hits"]

        assert wait_until(is_found, 60)
        server.kill()
        found["answer"] = ask("memd/search", query="vehicles", project="all")
        found["status"] = ask("memd/status")
        ask("memd/shutdown")

    found = {}
    with Ollama() as server:
        async with anyio.create_task_group() as group:
            group.start_soon(app.serve, Config(engines=server.engines()), paths)
            await anyio.to_thread.run_sync(work, server)
    assert "automobile" in found["hits"][0]["title"]
    assert "hashing space answered alone" in found["answer"]["degraded"]["vector"]
    embedder = found["status"]["embedder"]
    assert (embedder["learned"]["state"], embedder["learned"]["coverage"]) == ("absent", 1.0)
    assert found["status"]["health"] == "degraded"
    assert "engines.embedder is ollama, but nothing answers" in found["status"]["reasons"][0]


async def test_no_worker_asks_for_vectors_if_the_settings_want_no_model(paths):
    def work():
        wait_until_listening(paths.socket)
        with Client(paths.socket, 10) as client:
            found.update(client.call("memd/status"))
            client.call("memd/shutdown")

    found = {}
    with Ollama() as server:
        config = Config(engines=server.engines(embedder="hashing"))
        async with anyio.create_task_group() as group:
            group.start_soon(app.serve, config, paths)
            await anyio.to_thread.run_sync(work)
        assert server.requests == []
    assert found["embedder"]["learned"] is None
    assert {"embedder", "backfill"}.isdisjoint(one["name"] for one in found["rooms"])


async def test_a_model_on_another_machine_ends_the_daemon_with_the_name_of_the_setting(paths):
    config = Config(engines=EnginesConfig(url="http://models.example:11434"))
    with pytest.RaisesGroup(
        pytest.RaisesExc(ConfigError, match=r"engines\.remote"), flatten_subgroups=True
    ):
        await app.serve(config, paths)


CHAT_MODEL = "qwen2.5:3b"
WRITTEN = '{"title": "Tabs in the ledger", "facts": ["Tabs are used in the ledger, always."]}'


async def serve_one_turn(paths, config, found, until):
    """Serve with these settings, capture a turn, and wait until a search finds what `until` accepts."""

    def ask(method, **params):
        with Client(paths.socket, 10) as client:
            return client.call(method, params)

    def work():
        wait_until_listening(paths.socket)
        events = [
            {"client": "claude-code", "payload": payload, "directory": "/home/dev/ledger"}
            for payload in (PROMPT, EDIT, STOP)
        ]
        seq = ask("memd/capture", events=events)["receipts"][-1]["seq"]
        search = {"query": "tabs ledger", "min_event": seq, "project": "all", "k": 10}

        def is_found():
            found["hits"] = ask("memd/search", **search)["hits"]
            return until(found["hits"])

        assert wait_until(is_found, 60)
        found["status"] = ask("memd/status")
        ask("memd/shutdown")

    async with anyio.create_task_group() as group:
        group.start_soon(app.serve, config, paths)
        await anyio.to_thread.run_sync(work)


def titles(hits):
    return [hit["title"] for hit in hits]


async def test_no_chat_model_is_asked_unless_the_settings_name_one(paths):
    found = {}
    with Ollama() as server:
        server.pull(CHAT_MODEL)
        engines = server.engines(embedder="hashing")
        await serve_one_turn(paths, Config(engines=engines), found, lambda hits: hits)
        assert server.requests == []
    assert "rewriter" not in [worker["name"] for worker in found["status"]["rooms"]]


async def test_a_chat_model_rewrites_the_summary_of_a_turn(paths):
    found = {}
    with Ollama() as server:
        server.pull(CHAT_MODEL)
        server.replies = [WRITTEN]
        config = Config(
            engines=server.engines(embedder="hashing"), distill=DistillConfig(writer="ollama")
        )
        await serve_one_turn(
            paths, config, found, lambda hits: "Tabs in the ledger" in titles(hits)
        )
    workers = {worker["name"]: worker for worker in found["status"]["rooms"]}
    assert (workers["rewriter"]["written"], workers["rewriter"]["left_today"]) == (1, 199)
    assert workers["rewriter"]["model"] == "ollama/qwen2.5:3b"


async def test_a_program_rewrites_the_summary_of_a_turn(paths, tmp_path):
    found, notes, dirs = {}, tmp_path / "notes.jsonl", paths.find_writer_dirs()
    command = (sys.executable, writer.__file__, str(notes), "good", WRITTEN)
    config = Config(
        engines=NO_MODEL, distill=DistillConfig(writer="command", writer_command=command)
    )
    await serve_one_turn(paths, config, found, lambda hits: "Tabs in the ledger" in titles(hits))
    workers = {worker["name"]: worker for worker in found["status"]["rooms"]}
    assert workers["rewriter"]["today"]["calls"] == 1
    (given,) = map(json.loads, notes.read_text(encoding="utf-8").splitlines())
    assert given["cwd"] in [f"{one}/default" for one in dirs]
    assert given["environ"]["MEMD_DISABLE"] == "1"


async def test_a_program_that_still_writes_is_ended_with_the_daemon(paths, tmp_path):
    notes = tmp_path / "notes.jsonl"
    command = (sys.executable, writer.__file__, str(notes), "slow")
    distill = DistillConfig(writer="command", writer_command=command, writer_s=600)
    config = Config(engines=NO_MODEL, distill=distill)
    await serve_one_turn(paths, config, {}, lambda _: notes.exists() and notes.stat().st_size)
    (given,) = map(json.loads, notes.read_text(encoding="utf-8").splitlines())
    with pytest.raises(ProcessLookupError):
        os.kill(given["pid"], 0)


async def test_a_profile_that_reranks_with_a_model_asks_the_configured_one(paths):
    found = {}
    with Ollama() as server:
        server.pull(CHAT_MODEL)
        server.replies = ["no scores"]
        config = Config(
            engines=server.engines(embedder="hashing"),
            recall=RecallConfig(profile="rated", rerank_model=CHAT_MODEL),
            profiles={"rated": {"base": "memd", "rerank": "model"}},
        )
        await serve_one_turn(paths, config, found, lambda hits: hits)
        assert server.calls("/api/chat")
