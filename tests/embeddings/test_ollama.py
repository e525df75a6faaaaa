import pytest

from memd.embeddings import ModelNotServed, ServedModel, TextsRefused
from memd.embeddings.providers import ModelServer, OllamaProvider, Reply, prefixes_of
from memd.errors import EngineAbsent, EngineFailed
from tests.fakes.ollama import Model
from tests.tables import every_row, read_tables

TABLES = read_tables("embeddings/ollama")


@pytest.fixture
async def open_servers():
    opened = []
    yield opened
    for one in opened:
        await one.close()


@pytest.fixture
def ollama(server, open_servers):
    def make(**settings):
        config = server.engines(**settings)
        open_servers.append(ModelServer(config.url, is_remote_allowed=config.remote))
        return OllamaProvider(open_servers[-1], config)

    return make


async def test_a_model_is_told_with_what_makes_it_this_one(ollama):
    digest = Model().digest
    expected = ServedModel("ollama", "nomic-embed-text", digest, context=2_048, dimensions=768)
    assert await ollama().describe_model() == expected


async def test_a_name_without_a_tag_is_the_latest_and_one_with_a_tag_is_that(server, ollama):
    server.pull("hf.co/someone/nomic-embed-text", seed=3)
    server.pull("nomic-embed-text:v1.5", seed=4)
    for model, seed in [
        ("nomic-embed-text", 1),
        ("hf.co/someone/nomic-embed-text", 3),
        ("nomic-embed-text:v1.5", 4),
    ]:
        found = await ollama(model=model).describe_model()
        assert found.digest == Model(seed=seed).digest


async def test_a_model_that_was_not_pulled_is_told_with_what_to_do(server, ollama):
    server.models.clear()
    found = await ollama().describe_model()
    assert found == ModelNotServed(
        "no model", "Ollama does not have nomic-embed-text: `ollama pull nomic-embed-text`"
    )


async def test_a_model_on_another_machine_is_asked_only_if_the_settings_allow_it(server, ollama):
    server.models["nomic-embed-text:latest"].remote_host = "https://models.example:443"
    found = await ollama().describe_model()
    assert (found.state, "engines.remote = true" in found.why) == ("remote refused", True)
    assert isinstance(await ollama(remote=True).describe_model(), ServedModel)


async def test_no_ollama_is_told_with_what_to_do(server, ollama):
    server.kill()
    with pytest.raises(EngineAbsent, match="start Ollama, and `ollama pull nomic-embed-text` once"):
        await ollama().describe_model()


async def test_texts_are_sent_together_with_the_settings(server, ollama):
    raw = await ollama(dimensions=256).embed(["one", "two"])
    assert [len(vector) for vector in raw] == [256, 256]
    assert server.calls("/api/embed") == [
        {"model": "nomic-embed-text", "input": ["one", "two"], "truncate": True,
         "keep_alive": "30m", "dimensions": 256}
    ]  # fmt: skip


@every_row(
    ("status", "said", "is_length"), TABLES["what_is_about_the_texts_is_told_apart_by_length"]
)
def test_what_is_about_the_texts_is_told_apart_by_length(status, said, is_length):
    assert Reply(status, {"error": said}).refusal() == TextsRefused(said, is_length=is_length)


@every_row("status", [302, 401, 403, 404, 429, 503])
def test_what_is_not_about_the_texts_is_a_failure(status):
    with pytest.raises(EngineFailed):
        Reply(status, None).refusal()


@pytest.mark.parametrize("value", [[], {"models": 7}, {"models": [1]}, {"models": None}])
async def test_whoever_is_not_ollama_is_not_taken_for_it(ollama, monkeypatch, value):
    async def ask(*_):
        return Reply(200, value)

    asked = ollama()
    monkeypatch.setattr(asked._server, "ask", ask)
    if isinstance(value, list):
        with pytest.raises(EngineFailed, match="not Ollama"):
            await asked.describe_model()
    else:
        assert (await asked.describe_model()).state == "no model"


@every_row(("model", "query", "document"), TABLES["a_model_is_asked_as_it_was_trained"])
def test_a_model_is_asked_as_it_was_trained(model, query, document):
    assert prefixes_of(model) == (query, document)


@every_row("model", ["mxbai-embed-large", "snowflake-arctic-embed:137m", "bge-base-en-v1.5"])
def test_some_want_an_instruction_before_a_question_and_nothing_before_a_text(model):
    query, document = prefixes_of(model)
    assert query.startswith("Represent this sentence")
    assert document == ""
