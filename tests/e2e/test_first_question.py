"""The first question after a start of the daemon: by the model's meaning too, or it says that it is not."""

import pytest

from tests.e2e.test_reembed import is_complete, remember
from tests.fakes.ollama import Ollama

OTHERS = 20


@pytest.fixture
def ollama():
    with Ollama() as server:
        yield server


@pytest.fixture
def daemon(daemon, ollama):
    settings = f'[engines]\nembedder = "ollama"\nurl = "{ollama.url}"\nquery_s = {{}}\n'
    daemon.configure = lambda query_s: (daemon.home / "config.toml").write_text(
        settings.format(query_s)
    )
    daemon.configure(10)
    daemon.start()
    with daemon.client() as client:
        memory = {"text": "The automobile has a teal roof.", "source": "test"}
        client.call("memd/remember", {"memories": [memory]})
    remember(daemon, OTHERS)
    daemon.wait_for(lambda: is_complete(daemon, OTHERS + 1))
    daemon.stop()
    return daemon


def ask(daemon):
    """The answer to a question that shares no word with its memory."""
    with daemon.client() as client:
        return client.call("memd/search", {"query": "car", "project": "all"})


def test_the_first_question_waits_for_a_model_that_is_slow_at_first(daemon, ollama):
    ollama.delay_s = 0.05

    def find_first():
        """The first answer; None where a busy machine was slower than any model."""
        daemon.stop()
        answer = ask(daemon.start())
        return None if answer.get("degraded") else answer

    answer = daemon.wait_for(find_first)
    assert "automobile" in answer["hits"][0]["title"]


@pytest.mark.parametrize("embedder", ["ollama", "auto"])
def test_a_first_question_to_a_server_that_refuses_says_so(daemon, ollama, embedder):
    config = daemon.home / "config.toml"
    config.write_text(config.read_text().replace('"ollama"', f'"{embedder}"'))
    ollama.kill()
    daemon.start()
    for _ in range(2):
        assert "hashing space answered alone" in ask(daemon)["degraded"]["vector"]
    ollama.start()
    daemon.wait_for(lambda: not ask(daemon).get("degraded"))
    assert "automobile" in ask(daemon)["hits"][0]["title"]
