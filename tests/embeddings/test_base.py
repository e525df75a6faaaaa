from memd.config import EnginesConfig
from memd.embeddings.base import Embedder, LocalEmbedder, Provider, ServedModel
from memd.embeddings.hashing import HashingEmbedder
from memd.embeddings.http import ModelServer
from memd.embeddings.ollama import OllamaProvider
from memd.embeddings.openai import OpenAIProvider


class FarAway:
    """An embedder that is asked over a network."""

    space = HashingEmbedder().space

    async def documents(self, texts):
        return HashingEmbedder().embed(texts)

    async def query(self, text):
        return HashingEmbedder().embed([text])[0]


def test_the_hashing_embedder_can_be_called_in_a_thread():
    assert isinstance(HashingEmbedder(), LocalEmbedder)


def test_an_embedder_that_only_waits_is_not_taken_for_a_local_one():
    assert not isinstance(FarAway(), LocalEmbedder)


def test_any_class_with_the_verbs_is_an_embedder():
    embedder: Embedder = FarAway()
    assert embedder.space.provider == "hashing"


URL = "http://127.0.0.1:9"


def test_both_protocols_are_providers():
    server = ModelServer(URL, is_remote_allowed=False)
    providers: list[Provider] = [
        kind(server, EnginesConfig()) for kind in (OllamaProvider, OpenAIProvider)
    ]
    assert [type(provider).name for provider in providers] == ["ollama", "openai"]


def test_the_same_model_with_another_digest_is_not_the_same():
    assert ServedModel("ollama", "m", "a") != ServedModel("ollama", "m", "b")
