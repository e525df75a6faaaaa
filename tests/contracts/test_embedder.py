"""What every embedder must do, whichever model is behind it."""

import anyio.to_thread
import numpy as np
import pytest

from memd.embeddings import remote
from memd.embeddings.hashing import HashingEmbedder
from memd.embeddings.remote import make_remote_embedder
from tests import tiny_model
from tests.fakes.ollama import Ollama

TEXTS = [
    "Sessions are kept in Redis, not in SQLite",
    "def decode_token(raw): return jwt.decode(raw)",
    "Die Prüfung schlägt fehl: naïve Größe",
    "数据库迁移失败",
]
BLANK = ["", "   \n"]


@pytest.fixture(params=["hashing", "ollama", "openai", "local"])
async def embedder(request, clock, tmp_path, monkeypatch):
    if request.param == "hashing":
        yield HashingEmbedder()
        return
    if request.param == "local":
        await anyio.to_thread.run_sync(tiny_model.add, tmp_path / "models", tmp_path / "wheels")
    with Ollama() as server:
        config = server.engines(embedder=request.param)
        # No deadline: beside other load a model's process takes its time to start, and a server to answer.
        monkeypatch.setattr(remote, "_DESCRIBE_TIMEOUT_S", 60.0)
        config = config.model_copy(update={"query_s": 60.0})
        models = str(tmp_path / "models")
        learned = make_remote_embedder(config, {}, clock, lambda: 0.5, models)
        await learned.check()
        assert learned.is_ready, learned.why_not
        yield learned
        await learned._choice.close()


@pytest.fixture
def space(embedder):
    return embedder.space if isinstance(embedder, HashingEmbedder) else embedder.current


async def test_a_row_comes_back_for_each_text_in_order(embedder, space):
    together = await embedder.documents(TEXTS)
    assert together.shape == (len(TEXTS), space.dimensions)
    assert together.dtype == np.float32
    for text, row in zip(TEXTS, together, strict=True):
        alone = await embedder.documents([text])
        assert np.allclose(alone[0], row, atol=1e-5)


async def test_no_texts_are_no_rows(embedder, space):
    assert (await embedder.documents([])).shape == (0, space.dimensions)


async def test_more_texts_than_fit_into_a_request_come_back_in_order(embedder):
    texts = [f"{text} {number}" for number in range(30) for text in TEXTS]
    rows = await embedder.documents(texts)
    for at in (0, 31, 32, 33, len(texts) - 1):
        alone = await embedder.documents([texts[at]])
        assert np.allclose(alone[0], rows[at], atol=1e-5)


async def test_every_vector_has_length_one(embedder, space):
    documents = await embedder.documents(TEXTS)
    query = await embedder.query(TEXTS[0])
    assert query.shape == (space.dimensions,)
    assert query.dtype == np.float32
    assert np.allclose(np.linalg.norm([*documents, query], axis=1), 1, atol=1e-5)


async def test_the_same_text_has_the_same_vector_every_time(embedder):
    # Not to the last bit: in which order BLAS adds depends on where in memory a matrix lies.
    first, again = await embedder.documents(TEXTS), await embedder.documents(TEXTS)
    assert np.allclose(first, again, atol=1e-6)
    assert np.allclose(await embedder.query(TEXTS[0]), await embedder.query(TEXTS[0]), atol=1e-6)


async def test_a_blank_text_is_all_zeros_and_never_nan(embedder):
    assert not (await embedder.documents(BLANK)).any()
    assert not (await embedder.query("")).any()


async def test_a_blank_text_among_others_leaves_them_their_rows(embedder):
    rows = await embedder.documents([BLANK[0], TEXTS[0], BLANK[1], TEXTS[1]])
    assert np.allclose(rows[[1, 3]], await embedder.documents(TEXTS[:2]), atol=1e-5)
    assert not rows[[0, 2]].any()


async def test_a_text_without_a_word_is_one_direction_or_none(embedder):
    (row,) = await embedder.documents(["!?… --- \x00"])
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5) or not row.any()


async def test_a_question_is_nearest_to_the_text_that_answers_it(embedder, space):
    if space.provider == "local":
        pytest.skip("the weights of the tests are random and know nothing")
    documents = await embedder.documents(TEXTS)
    assert np.argmax(documents @ await embedder.query("where do we keep sessions")) == 0
    assert np.argmax(documents @ await embedder.query("decodeToken jwt")) == 1


async def test_lone_surrogates_and_very_long_texts_are_embedded_like_any_other(embedder):
    found = await embedder.documents(["broken \ud800 text", "word " * 20_000, "x" * 100_000])
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.linalg.norm(await embedder.query("word \udfff" * 9_000)) == pytest.approx(1, abs=1e-5)


async def test_the_space_says_what_the_vectors_can_be_compared_with(space):
    assert space.name.startswith(space.provider)
    expected = tiny_model.DIMENSIONS if space.provider == "local" else 768
    assert space.dimensions == expected
