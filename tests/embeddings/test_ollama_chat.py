import json

import anyio
import pytest

from memd.config import EnginesConfig
from memd.embeddings import providers
from memd.embeddings.providers import OllamaChat
from memd.errors import ConfigError, EngineFailed
from tests.fakes.ollama import Ollama

SCHEMA = {"type": "object"}
MODEL = "qwen2.5:3b"


@pytest.fixture
def server():
    with Ollama() as running:
        running.pull(MODEL)
        yield running


def chat(server, deadline_s=5.0, **settings):
    return OllamaChat(server.engines(**settings), MODEL, deadline_s)


def scores(*values):
    return json.dumps({"scores": values})


async def test_a_reply_comes_as_it_was_said(server):
    server.replies = ["Sure! {}"]
    assert await chat(server).complete("be brief", "a text", SCHEMA) == "Sure! {}"
    (body,) = server.calls("/api/chat")
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert [m["content"] for m in body["messages"]] == ["be brief", "a text"]
    assert (body["model"], body["stream"], body["format"]) == (MODEL, False, SCHEMA)
    assert (body["options"]["temperature"], body["keep_alive"]) == (0, "30m")
    assert body["options"]["num_ctx"] > body["options"]["num_predict"] > 0


async def test_scores_come_in_the_order_of_the_texts(server):
    server.replies = [scores(1, 9.5, 0)]
    found = await chat(server).rerank("a question", ["a", "b" * 5_000, "c"])
    assert found == [1.0, 9.5, 0.0]
    (body,) = server.calls("/api/chat")
    shown = json.loads(body["messages"][1]["content"])
    assert shown["question"] == "a question"
    assert [len(text) for text in shown["texts"]] == [1, 600, 1]
    assert body["format"]["properties"]["scores"]["minItems"] == 3


async def test_nothing_to_rate_is_not_asked(server):
    assert await chat(server).rerank("a question", []) == []
    assert server.requests == []


@pytest.mark.parametrize(
    "reply",
    [
        scores(1), scores(1, 2, 3), scores(1, "2"), scores(1, None), scores(1, True), "[1, 2]", "no",
        '{"scores": [1, NaN]}', '{"scores": [1, Infinity]}', '{"scores": [1, 1e999]}', '{"scores": 3}',
        "{}", "[" * 100_000,
    ],
)  # fmt: skip
async def test_scores_that_are_none_are_refused(server, reply):
    server.replies = [reply]
    with pytest.raises(EngineFailed, match="score"):
        await chat(server).rerank("a question", ["a", "b"])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("broken", "runner process has terminated"),
        ("busy", "server busy"),
        ("not json", "not JSON"),
        ("redirect", "not JSON"),
        ("disconnect", "broke off"),
        ("endless", "MiB"),
    ],
)
async def test_what_the_server_does_wrong_is_told(server, monkeypatch, fault, said):
    monkeypatch.setattr(providers, "REPLY_BYTES", 2_000_000)
    server.fault = fault
    with pytest.raises(EngineFailed, match=said):
        await chat(server, deadline_s=60).complete("", "a text", SCHEMA)


async def test_a_refusal_of_the_model_itself_is_told_in_its_words(server, monkeypatch):
    monkeypatch.setattr(
        "tests.fakes.ollama._Handler._chat", lambda it, _: it._say({"error": "no memory"}, 500)
    )
    with pytest.raises(EngineFailed, match=r"ollama/qwen2\.5:3b did not answer: no memory"):
        await chat(server).complete("", "a text", SCHEMA)


async def test_a_model_that_was_not_pulled_says_how_to(server):
    server.models.clear()
    with pytest.raises(EngineFailed, match=r"ollama pull qwen2\.5:3b"):
        await chat(server).complete("", "a text", SCHEMA)
    assert server.calls("/api/chat") == []


async def test_a_model_that_runs_in_a_cloud_is_not_asked(server):
    server.pull(MODEL, remote_host="https://ollama.example:443")
    with pytest.raises(EngineFailed, match=r"engines\.remote"):
        await chat(server).complete("", "a text", SCHEMA)
    assert server.calls("/api/chat") == []


async def test_a_hanging_server_costs_no_more_than_the_deadline(server):
    server.fault = "hang"
    with anyio.fail_after(60), pytest.raises(EngineFailed, match=r"longer than 0\.05 s"):
        await chat(server, 0.05).complete("", "a text", SCHEMA)


@pytest.mark.parametrize("reply", ["{}", "[]", '{"message": {"content": 3}}'])
async def test_a_server_that_is_not_ollama_is_told(server, reply, monkeypatch):
    monkeypatch.setattr(
        "tests.fakes.ollama._Handler._chat", lambda it, _: it._say(json.loads(reply))
    )
    with pytest.raises(EngineFailed, match="not answer as Ollama does"):
        await chat(server).complete("", "a text", SCHEMA)


def test_another_machine_is_asked_only_if_a_person_said_so():
    config = EnginesConfig(url="http://models.example:11434")
    with pytest.raises(ConfigError, match=r"engines\.remote"):
        OllamaChat(config, MODEL, 1)
    assert OllamaChat(config.model_copy(update={"remote": True}), MODEL, 1)
