import numpy as np
import pytest

from memd.embeddings.families import space_of
from memd.embeddings.ollama import Ollama
from memd.embeddings.provider import Refused, Served
from memd.embeddings.salvage import HARMLESS, Asking
from memd.embeddings.server import ModelServer
from memd.errors import EngineFailed
from tests.fakes.ollama import Model

SPACE = space_of(Served("ollama", "nomic-embed-text"), 768)
TEXTS = ["keeps sessions in redis", "uses tabs", "the car is red", "signs tokens", "ends"]


class Choosy:
    """A provider that refuses a batch in which a text has the word `poison`."""

    def __init__(self, *, refuses_all=False):
        self.refuses_all = refuses_all
        self.batches = []

    async def embed(self, texts):
        self.batches.append(list(texts))
        if self.refuses_all or any("poison" in text for text in texts):
            return Refused("unsupported value: NaN")
        return Model().vectors(texts).tolist()


@pytest.fixture
async def asking(server):
    asked = ModelServer(server.url, is_remote_allowed=False)
    yield Asking(Ollama(asked, server.engines()), SPACE)
    await asked.close()


async def test_what_is_fine_is_one_request_with_the_prefix_before_each_text(server, asking):
    rows = await asking.documents(TEXTS)
    assert np.allclose(rows, Model().vectors(TEXTS), atol=1e-5)
    assert server.texts == [f"search_document: {text}" for text in TEXTS]
    await asking.question("what")
    assert server.texts[-1] == "search_query: what"


async def test_a_text_that_is_too_long_is_halved_and_the_others_stay_whole(server, asking):
    server.models["nomic-embed-text:latest"].context_tokens = 30
    texts = [*TEXTS, "the automobile " + "of the queen " * 40]
    rows = await asking.documents(texts)
    assert np.allclose(rows[:-1], Model().vectors(TEXTS), atol=1e-5)
    assert np.linalg.norm(rows[-1]) == pytest.approx(1, abs=1e-5)
    assert len(server.texts[-1]) <= 120


async def test_a_question_that_is_too_long_is_halved(server, asking):
    server.models["nomic-embed-text:latest"].context_tokens = 30
    row = await asking.question("where is the car " * 40)
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)


async def test_a_server_to_which_every_length_is_too_long_is_broken(server, asking):
    server.fault = "too long"
    with pytest.raises(EngineFailed, match="no usable vectors"):
        await asking.documents(["x" * 500])
    with pytest.raises(EngineFailed, match="cannot take this question"):
        await asking.question("what")


async def test_a_poisonous_text_has_zeros_and_costs_the_others_nothing():
    choosy = Choosy()
    texts = [*TEXTS, "poison", *TEXTS]
    rows = await Asking(choosy, SPACE).documents(texts)
    assert not rows[5].any()
    assert np.allclose(np.delete(rows, 5, axis=0), Model().vectors(TEXTS * 2), atol=1e-5)
    assert choosy.batches[1] == ["search_document: " + HARMLESS]
    assert len(choosy.batches) < 12


async def test_a_single_poisonous_text_has_zeros():
    assert not (await Asking(Choosy(), SPACE).documents(["poison"])).any()


async def test_a_server_that_refuses_a_harmless_text_is_broken_and_nothing_is_stored():
    choosy = Choosy(refuses_all=True)
    with pytest.raises(EngineFailed, match="unsupported value"):
        await Asking(choosy, SPACE).documents(TEXTS)
    assert len(choosy.batches) == 2


@pytest.mark.parametrize(
    "fault", ["wrong count", "wrong dimension", "nan", "zero", "null", "broken"]
)
async def test_replies_that_are_no_vectors_are_failures(server, asking, fault):
    server.fault = fault
    with pytest.raises(EngineFailed):
        await asking.documents(TEXTS)


async def test_vectors_are_cut_to_the_space(server):
    asked = ModelServer(server.url, is_remote_allowed=False)
    space = space_of(Served("ollama", "nomic-embed-text"), 64)
    rows = await Asking(Ollama(asked, server.engines()), space, cut=64).documents(TEXTS)
    assert np.allclose(rows, Model().vectors(TEXTS, 64), atol=1e-5)
    await asked.close()
