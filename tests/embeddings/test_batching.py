import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.embeddings import ServedModel, TextsRefused
from memd.embeddings.batching import (
    CONTEXT_TOKENS,
    HARMLESS_TEXT,
    BatchEmbedder,
    estimate_tokens,
    halve_text,
    truncate_text,
    validate_vectors,
)
from memd.embeddings.providers import ModelServer, OllamaProvider, space_of
from memd.errors import EngineFailed
from tests.fakes.ollama import Model
from tests.tables import every_row

SPACE = space_of(ServedModel("ollama", "nomic-embed-text"), 768)
TEXTS = ["keeps sessions in redis", "uses tabs", "the car is red", "signs tokens", "ends"]


class Choosy:
    """A provider that refuses a batch in which a text has the word `poison`."""

    def __init__(self, *, refuses_all=False):
        self.refuses_all = refuses_all
        self.batches = []

    async def embed(self, texts, **_):
        self.batches.append(list(texts))
        if self.refuses_all or any("poison" in text for text in texts):
            return TextsRefused("unsupported value: NaN")
        return Model().vectors(texts).tolist()


@pytest.fixture
async def asking(server):
    asked = ModelServer(server.url, is_remote_allowed=False)
    yield BatchEmbedder(OllamaProvider(asked, server.engines()), SPACE)
    await asked.close()


async def test_what_is_fine_is_one_request_with_the_prefix_before_each_text(server, asking):
    rows = await asking.embed_documents(TEXTS)
    assert np.allclose(rows, Model().vectors(TEXTS), atol=1e-5)
    assert server.texts == [f"search_document: {text}" for text in TEXTS]
    await asking.embed_query("what")
    assert server.texts[-1] == "search_query: what"


async def test_a_text_that_is_too_long_is_halved_and_the_others_stay_whole(server, asking):
    server.models["nomic-embed-text:latest"].context_tokens = 30
    texts = [*TEXTS, "the automobile " + "of the queen " * 40]
    rows = await asking.embed_documents(texts)
    assert np.allclose(rows[:-1], Model().vectors(TEXTS), atol=1e-5)
    assert np.linalg.norm(rows[-1]) == pytest.approx(1, abs=1e-5)
    assert len(server.texts[-1]) <= 120


async def test_a_question_that_is_too_long_is_halved(server, asking):
    server.models["nomic-embed-text:latest"].context_tokens = 30
    row = await asking.embed_query("where is the car " * 40)
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)


async def test_a_server_to_which_every_length_is_too_long_is_broken(server, asking):
    server.fault = "too long"
    with pytest.raises(EngineFailed, match="no usable vectors"):
        await asking.embed_documents(["x" * 500])
    with pytest.raises(EngineFailed, match="cannot take this question"):
        await asking.embed_query("what")


async def test_a_poisonous_text_has_zeros_and_costs_the_others_nothing():
    choosy = Choosy()
    texts = [*TEXTS, "poison", *TEXTS]
    rows = await BatchEmbedder(choosy, SPACE).embed_documents(texts)
    assert not rows[5].any()
    assert np.allclose(np.delete(rows, 5, axis=0), Model().vectors(TEXTS * 2), atol=1e-5)
    assert choosy.batches[1] == ["search_document: " + HARMLESS_TEXT]
    assert len(choosy.batches) < 12


async def test_a_single_poisonous_text_has_zeros():
    assert not (await BatchEmbedder(Choosy(), SPACE).embed_documents(["poison"])).any()


async def test_a_server_that_refuses_a_harmless_text_is_broken_and_nothing_is_stored():
    choosy = Choosy(refuses_all=True)
    with pytest.raises(EngineFailed, match="unsupported value"):
        await BatchEmbedder(choosy, SPACE).embed_documents(TEXTS)
    assert len(choosy.batches) == 2


@pytest.mark.parametrize(
    "fault", ["wrong count", "wrong dimension", "nan", "zero", "null", "broken"]
)
async def test_replies_that_are_no_vectors_are_failures(server, asking, fault):
    server.fault = fault
    with pytest.raises(EngineFailed):
        await asking.embed_documents(TEXTS)


@every_row("unit", ["word ", "decode_token(x) ", "数据库", "9", "a", "\U0001f600 "])
def test_a_long_text_keeps_its_head_and_fits(unit):
    text = unit * 20_000
    cut = truncate_text(text, "search_document: ")
    assert cut.startswith("search_document: " + unit)
    assert text.startswith(cut.removeprefix("search_document: "))
    assert CONTEXT_TOKENS * 0.9 < estimate_tokens(cut) <= CONTEXT_TOKENS


def test_a_smaller_context_cuts_more():
    assert estimate_tokens(truncate_text("word " * 1_000, context=256)) <= 256


@given(st.text(max_size=300), st.integers(16, 100))
def test_what_is_cut_is_always_the_beginning_of_the_text(text, context):
    assert text.startswith(truncate_text(text, context=context))


def test_a_half_keeps_the_prefix_and_there_is_an_end_to_it():
    text, halves = "p: " + "x" * 100, []
    while text is not None:
        halves.append(text)
        text = halve_text(text, "p: ")
    assert [len(half) - 3 for half in halves] == [100, 50, 25, 12]
    assert all(half.startswith("p: ") for half in halves)


GOOD = [[3.0, 4.0], [0.0, -2.0]]


@every_row(
    ("raw", "reason"),
    [
        (None, "no vectors"),
        ([], "0 vectors came for 2 texts"),
        ([*GOOD, [1.0, 1.0]], "3 vectors came for 2 texts"),
        ([[1.0, 2.0], [1.0]], "different lengths"),
        ([[], []], "not a number, or nothing"),
        ([[1.0, 2.0], [None, 1.0]], "not a number"),
        ([[1.0, 2.0], ["1", "2"]], "not a number"),
        ([[1.0, 2.0], [[1.0], [2.0]]], "not a number"),
        ([[1.0, 2.0], [10**400, 1]], "not a number"),
        ([1.0, 2.0], "not a number"),
        ([[1.0, 2.0], [float("nan"), 1.0]], "not finite"),
        ([[1.0, 2.0], [1e300, 1.0]], "not finite"),
        ([[1.0, 2.0], [0.0, 0.0]], "all zeros"),
        ([[1.0, 2.0], [1e-30, 0.0]], "all zeros"),
    ],
)
def test_what_is_no_vector_is_refused_with_a_reason(raw, reason):
    refused = validate_vectors(raw, 2)
    assert isinstance(refused, TextsRefused)
    assert reason in refused.reason
    assert not refused.is_length


def test_cutting_keeps_the_first_values_and_makes_the_length_one_again():
    rows = validate_vectors([[3.0, 4.0, 12.0]], 1, cut=2, dimensions=2)
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
    assert validate_vectors(GOOD, 2, cut=9, dimensions=2).shape == (2, 2)


def test_a_vector_whose_beginning_is_nothing_is_refused_after_the_cut():
    assert "zeros" in validate_vectors([[0.0, 0.0, 1.0]], 1, cut=2).reason


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=1), inner, max_size=2)
    ),
    max_leaves=12,
)


@given(_JSON, st.integers(1, 3))
def test_whatever_json_comes_it_is_refused_or_finite_and_of_length_one(raw, count):
    found = validate_vectors(raw, count)
    if not isinstance(found, TextsRefused):
        assert found.shape[0] == count
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
