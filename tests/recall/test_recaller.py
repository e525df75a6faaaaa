import pytest

from memd.errors import BadRequest, ConfigError
from tests.library import Library


@pytest.fixture
def library(db):
    return Library(db)


async def test_the_memory_with_the_words_comes_first_and_names_its_legs(library):
    library.put("Sessions live in Redis", "Three machines share them.")
    wanted = library.put(
        "Login answers 401 for garbage tokens", "decode_token raised ValueError."
    )
    (hit, *_) = (await library.ask("garbage token login")).hits
    assert hit.summary.id == wanted
    assert hit.lexical_rank == 1
    assert hit.channels == ("lexical", "vector")
    assert 0 < hit.cosine <= 1


async def test_nothing_that_fits_is_an_empty_answer(library):
    library.put("Sessions live in Redis")
    answer = await library.ask("zygomorphic quince")
    assert answer.hits == ()


async def test_an_empty_vault_answers_with_nothing(library):
    assert (await library.ask("anything")).hits == ()


@pytest.mark.parametrize("nothing", ["", "  ", "?!", "\x00"])
async def test_a_question_without_a_word_is_refused_with_advice(library, nothing):
    with pytest.raises(BadRequest, match="topic_key"):
        await library.ask(nothing)


async def test_a_leg_can_be_asked_alone(library):
    library.put("Sessions live in Redis")
    lexical = await library.ask("redis sessions", legs=frozenset({"lexical"}))
    vector = await library.ask("redis sessions", legs=frozenset({"vector"}))
    assert lexical.hits[0].channels == ("lexical",)
    assert vector.hits[0].channels == ("vector",)
    with pytest.raises(BadRequest, match="legs"):
        await library.ask("redis", legs=frozenset({"telepathy"}))


async def test_a_ready_embedding_is_taken_if_it_is_one_of_the_space(library):
    wanted = library.put("Sessions live in Redis")
    vector = await library.recaller._embedder.query("Sessions live in Redis")
    assert await library.ids("", embedding=tuple(float(x) for x in vector)) == [wanted]
    with pytest.raises(BadRequest, match="768"):
        await library.ask("", embedding=(1.0, 2.0))


async def test_a_profile_of_ones_own_is_used_and_a_bad_one_refused_at_the_start(db):
    library = Library(db, {"mine": {"base": "siftcoder", "steps": []}})
    library.put("kettle")
    assert (await library.ask("kettle", profile="mine")).hits[0].score == pytest.approx(2 / 61)
    with pytest.raises(BadRequest, match="nosuch"):
        await library.ask("kettle", profile="nosuch")
    with pytest.raises(ConfigError, match="circle"):
        Library(db, {"mine": {"base": "mine"}})
    with pytest.raises(BadRequest, match="nosuch"):
        Library(db, profile="nosuch")
