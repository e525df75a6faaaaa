import pytest

from tests.fakes.ollama import Ollama


@pytest.fixture
def server():
    """A stand-in for Ollama that has nomic-embed-text."""
    with Ollama() as running:
        yield running
