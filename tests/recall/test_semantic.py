import math

import numpy as np
import pytest

from memd.recall import ranking
from memd.recall.profiles import LearnedSettings
from memd.recall.query import QueryVector
from memd.recall.ranking import weigh_words
from memd.recall.semantic import UNRELATED, LearnedMatch, cosine_floor, match_learned
from tests.factories import Synonyms
from tests.indexed_vault import IndexedVault

NONSENSE = ("zygomorphic quince", "blorp fnarg", "how long to boil an egg")


def make_match(mean=0.2, deviation=0.08):
    nothing = np.empty(0)
    aim, rows = QueryVector("s", nothing), nothing.astype(np.int64)
    return LearnedMatch(
        aim, True, rows, nothing, rows, mean, deviation, True, 0.5, LearnedSettings()
    )


@pytest.fixture
def library(db):
    model = Synonyms("database postgres", "deploy rollout ship", "colour teal paint")
    library = IndexedVault(db, learned=model)
    for i in range(12):
        library.put(f"Note {i}", f"chapter{i} of handbook{i}, about garden{i} and river{i}")
    return library


def test_a_cosine_is_worth_what_it_stands_above_the_mean_in_deviations_of_this_vault():
    cosines = np.array([0.6, 0.3, 0.2, 0.1, np.nan])
    # five deviations are worth 1, 1.25 of them 0.25 ** 1.5
    assert make_match().scale_above_mean(cosines).tolist() == pytest.approx(
        [1.0, 0.125, 0.0, 0.0, 0.0]
    )


def test_the_same_cosine_is_worth_less_where_all_memories_are_near_every_question():
    cosine = np.array([0.6])
    assert make_match(0.4, 0.08).scale_above_mean(cosine) < make_match(0.2, 0.08).scale_above_mean(
        cosine
    )
    assert make_match(0.2, 0.16).scale_above_mean(cosine) < make_match(0.2, 0.08).scale_above_mean(
        cosine
    )


def test_what_has_no_vector_yet_gets_what_good_ones_get_under_a_name_of_its_own():
    (_, _, learned), (name, _, unlearned) = make_match().steps(np.array([0.6, 0.3, np.nan]))
    assert learned.tolist() == pytest.approx([0.5, 0.0625, 0.0])
    assert name == "unlearned"
    assert unlearned.tolist() == pytest.approx([0.0, 0.0, 0.390625])


def test_where_none_has_a_vector_nothing_is_added():
    assert [s[2].tolist() for s in make_match().steps(np.array([np.nan]))] == [[0.0], [0.0]]


def test_the_floor_rises_with_the_number_of_memories_and_is_out_of_reach_while_unknown():
    unrelated = np.array([0.0, 0.2], np.float32)
    one, ten, many = (cosine_floor(unrelated, n, 1.5) for n in (1, 10, 1000))
    assert one == pytest.approx(0.25)
    assert ten == pytest.approx(0.25 + 0.1 * math.sqrt(2 * math.log(10)))
    assert many == pytest.approx(0.25 + 0.1 * math.sqrt(2 * math.log(1000)))
    assert cosine_floor(None, 1, 1.5) == math.inf


async def test_what_is_near_is_a_candidate_and_only_what_stands_out_is_meant(library):
    library.put("database", "rows and tables of a database")
    await library.learn()
    space, model = library.learned.current.name, library.learned
    vector, mask = await model.query("postgres"), library.index.columns.live
    best = float(library.index.matrices[space].cosines(vector).max())
    for deviation, is_near, is_meant in (
        (best, False, False),
        (best / 3, True, False),
        (best / 9, True, True),
    ):
        unrelated = np.array([-deviation, deviation], np.float32)
        query = QueryVector(space, vector, unrelated)
        found = match_learned(library.index, query, mask, LearnedSettings(), 50)
        assert (bool(len(found.rows)), bool(len(found.meant))) == (is_near, is_meant), deviation
        assert found.may_be_meant == is_near


@pytest.mark.parametrize(("deviations", "verdict"), [(2.3, "nothing"), (3.0, "weak")])
async def test_what_may_be_meant_is_shown_as_weak_and_not_hidden(library, deviations, verdict):
    wanted = library.put("Postgres", "teal")
    await library.learn()
    space, model = library.learned.current.name, library.learned
    vector = await model.query("which database")
    best = float(library.index.matrices[space].cosines(vector).max())
    both_ways = np.array([vector, -vector]) * best / deviations
    library.recaller._unrelated = (space, both_ways.astype(np.float32))
    answer = await library.ask("which database")
    assert answer.verdict == verdict
    assert [hit.summary.id for hit in answer.hits] == ([] if verdict == "nothing" else [wanted])


async def test_many_rare_words_are_worth_more_beside_meaning_than_one(library):
    library.put("Postgres", "for the accounts of all customers")
    library.put(
        "The garden", "was bought in autumn with a ladder, a barrow, a spade, a rake and a hose"
    )
    await library.learn()

    async def measure(text):
        worths = []

        def note(query, found):
            worths.append(weigh_words(query, found))
            return worths[-1]

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(ranking, "weigh_words", note)
            await library.ask(text)
        return worths[-1]

    one = await measure("which database was bought by whom for what reason in which country")
    many = await measure("ladder barrow spade rake hose bought in autumn")
    assert one[0] == pytest.approx(LearnedSettings().words, abs=0.02)
    assert many[0] > one[0]
    assert one[1] < many[1] == 1.0


def test_sentences_that_are_all_equally_far_do_not_make_a_floor_of_nothing():
    alike = np.array([0.4, 0.4], np.float32)
    assert cosine_floor(alike, 10, 0.0) == pytest.approx(0.4 + 0.03 * math.sqrt(2 * math.log(10)))


def test_no_two_of_the_unrelated_sentences_are_the_same():
    assert len(set(UNRELATED)) == len(UNRELATED)


async def test_a_memory_with_no_word_in_common_is_found_by_its_meaning(library):
    wanted = library.put("Postgres", "teal")
    assert await library.ids("which database") == []
    await library.learn()
    (hit,) = (await library.ask("which database")).hits
    assert hit.summary.id == wanted
    assert (hit.channels, hit.vector_rank, hit.lexical_rank) == (("vector",), 1, None)
    assert [part.name for part in hit.parts[:1]] == ["learned"]
    assert hit.cosine > 0.5


@pytest.mark.parametrize("nonsense", NONSENSE)
async def test_an_answer_stays_empty_when_nothing_fits(library, nonsense):
    await library.learn()
    assert await library.ids(nonsense) == []


async def test_one_memory_alone_can_be_found_by_its_meaning_and_nonsense_does_not_find_it(db):
    library = IndexedVault(db, learned=Synonyms("database postgres"))
    wanted = library.put("Postgres", "ledger")
    await library.learn()
    assert await library.ids("database") == [wanted]
    assert await library.ids("zygomorphic quince") == []


async def test_before_unrelated_sentences_are_known_meaning_orders_but_brings_nothing_in(library):
    library.put("Postgres", "teal")
    both = library.put("database", "postgres rollout")
    await library.learn()
    library.recaller._unrelated = None
    (hit,) = (await library.ask("database")).hits
    assert hit.summary.id == both
    assert "learned" in {part.name for part in hit.parts}
