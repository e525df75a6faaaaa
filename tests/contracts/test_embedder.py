"""What every embedder must do, whichever model is behind it."""

import numpy as np
import pytest

from memd.engines.hashing import HashingEmbedder

EMBEDDERS = [HashingEmbedder]

TEXTS = [
    "Sessions are kept in Redis, not in SQLite",
    "def decode_token(raw): return jwt.decode(raw)",
    "Die Prüfung schlägt fehl: naïve Größe",
    "数据库迁移失败",
]
WITHOUT_FEATURES = ["", "   \n", "!?… --- \x00"]


@pytest.fixture(params=EMBEDDERS, ids=lambda kind: kind.__name__)
def embedder(request):
    return request.param()


async def test_a_row_comes_back_for_each_text_in_order(embedder):
    together = await embedder.documents(TEXTS)
    assert together.shape == (len(TEXTS), embedder.space.dimensions)
    assert together.dtype == np.float32
    for text, row in zip(TEXTS, together, strict=True):
        alone = await embedder.documents([text])
        assert np.allclose(alone[0], row, atol=1e-5)


async def test_no_texts_are_no_rows(embedder):
    assert (await embedder.documents([])).shape == (0, embedder.space.dimensions)


async def test_every_vector_has_length_one(embedder):
    documents = await embedder.documents(TEXTS)
    query = await embedder.query(TEXTS[0])
    assert query.shape == (embedder.space.dimensions,)
    assert query.dtype == np.float32
    assert np.allclose(np.linalg.norm([*documents, query], axis=1), 1, atol=1e-5)


async def test_a_text_without_any_feature_is_all_zeros_and_never_nan(embedder):
    assert not (await embedder.documents(WITHOUT_FEATURES)).any()
    assert not (await embedder.query("")).any()


async def test_a_question_is_nearest_to_the_text_that_answers_it(embedder):
    documents = await embedder.documents(TEXTS)
    assert np.argmax(documents @ await embedder.query("where do we keep sessions")) == 0
    assert np.argmax(documents @ await embedder.query("decodeToken jwt")) == 1


async def test_lone_surrogates_and_very_long_texts_are_embedded_like_any_other(embedder):
    found = await embedder.documents(["broken \ud800 text", "word " * 20_000, "x" * 100_000])
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


async def test_the_space_says_what_the_vectors_can_be_compared_with(embedder):
    assert embedder.space == type(embedder)().space
    assert embedder.space.name.startswith(embedder.space.provider)
