from memd.config import EnginesConfig
from memd.embeddings.ollama import Ollama
from memd.embeddings.openai import OpenAI
from memd.embeddings.provider import Provider, Served
from memd.embeddings.server import ModelServer

URL = "http://127.0.0.1:9"


def test_both_protocols_are_providers():
    server = ModelServer(URL, is_remote_allowed=False)
    providers: list[Provider] = [kind(server, EnginesConfig()) for kind in (Ollama, OpenAI)]
    assert [type(provider).name for provider in providers] == ["ollama", "openai"]


def test_the_same_model_with_another_digest_is_not_the_same():
    assert Served("ollama", "m", "a") != Served("ollama", "m", "b")
