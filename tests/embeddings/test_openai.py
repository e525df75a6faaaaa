import pytest

from memd.embeddings import ModelNotServed, ServedModel, TextsRefused
from memd.embeddings.providers import ModelServer, OpenAIProvider, Reply
from memd.errors import EngineFailed


@pytest.fixture
async def asked(server):
    config = server.engines(embedder="openai")
    asked = ModelServer(config.url, is_remote_allowed=False)
    yield OpenAIProvider(asked, config)
    await asked.close()


def saying(monkeypatch, asked, value, status=200):
    async def ask(*_):
        return Reply(status, value)

    monkeypatch.setattr(asked._server, "ask", ask)


async def test_a_model_that_is_there_has_no_digest_if_nothing_is_told_of_it(asked):
    assert await asked.describe_model() == ServedModel("openai", "nomic-embed-text")


async def test_what_does_not_change_by_itself_stands_for_a_digest(asked, monkeypatch):
    def entry(created, size):
        meta = {"n_embd": 768, "n_ctx_train": 2048, "size": size}
        return {"data": [{"id": "nomic-embed-text", "created": created, "meta": meta}]}

    saying(monkeypatch, asked, entry(1, 500))
    first = await asked.describe_model()
    assert (first.dimensions, first.context) == (768, 2_048)
    saying(monkeypatch, asked, entry(2, 500))
    assert await asked.describe_model() == first
    saying(monkeypatch, asked, entry(2, 600))
    assert (await asked.describe_model()).digest != first.digest


async def test_a_model_that_is_not_there_is_told_with_those_that_are(server, asked):
    server.models.clear()
    server.pull("other")
    assert await asked.describe_model() == ModelNotServed(
        "no model",
        f"{server.url} has other, not nomic-embed-text: load it there, or set engines.model",
    )


async def test_the_order_of_the_texts_is_restored_by_the_numbers(server, asked):
    straight = await asked.embed(["one", "two", "three"])
    server.fault = "reversed"
    assert await asked.embed(["one", "two", "three"]) == straight


@pytest.mark.parametrize(
    "data",
    [
        [{"index": 0}, {"index": 0}],
        [{"index": 1}, {"index": 2}],
        [{"index": "0"}, {"index": "1"}],
        [{"index": [0]}, {"index": {}}],
        [7],
    ],
)
async def test_vectors_without_a_clear_order_are_refused(asked, monkeypatch, data):
    saying(monkeypatch, asked, {"data": data})
    assert isinstance(await asked.embed(["one", "two"]), TextsRefused)


@pytest.mark.parametrize("value", [None, [], {}, {"data": 3}])
async def test_whoever_speaks_another_protocol_is_not_taken_for_a_server(asked, monkeypatch, value):
    saying(monkeypatch, asked, value)
    with pytest.raises(EngineFailed, match="OpenAI's protocol"):
        await asked.describe_model()
