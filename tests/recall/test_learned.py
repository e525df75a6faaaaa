"""The learned leg from the question to the answer: with the model there, away, late, changed."""

import anyio
import pytest

from memd.embeddings.remote import make_remote_embedder
from memd.errors import BadRequest
from memd.recall import RelevanceGate, apply_parts
from memd.recall.profiles import BUILT_IN
from tests.factories import Synonyms
from tests.fakes.ollama import Ollama
from tests.indexed_vault import NOW, IndexedVault

HASHING = "hashing/words-ngrams/2/768"
LEARNED = "made/synonyms/1/96/d1"


@pytest.fixture
def model():
    return Synonyms("database postgres", "deploy rollout ship", "colour teal paint")


@pytest.fixture
def library(db, model):
    library = IndexedVault(db, learned=model)
    for i in range(12):
        library.put(f"Note {i}", f"chapter{i} of handbook{i}, about garden{i} and river{i}")
    return library


def by_name(hit):
    return {part.name: part.value for part in hit.parts}


async def test_once_it_leads_the_learned_space_is_the_vector_retriever(library):
    wanted = library.put("Postgres it is", "for the ledger")
    await library.learn()
    answer = await library.ask("database for the ledger")
    (hit, *_) = answer.hits
    assert (answer.space, answer.degraded) == (LEARNED, {})
    assert (hit.summary.id, hit.channels, hit.vector_rank) == (wanted, ("lexical", "vector"), 1)
    assert by_name(hit)["learned"] > 0.4
    assert "vector" not in by_name(hit)
    assert library.recaller.space == LEARNED


async def test_a_word_in_common_by_chance_does_not_lead_over_what_is_meant(library):
    meant = library.put("Postgres it is", "for all accounts")
    by_chance = library.put("The garden fence", "is green, and so is the gate that was bought")
    await library.learn()
    answer = await library.ask("which database was bought in autumn")
    assert [hit.summary.id for hit in answer.hits[:2]] == [meant, by_chance]


async def test_words_that_cover_the_question_lead_over_what_only_means_the_like(library):
    library.put("Postgres", "for all accounts")
    covering = library.put("The database of ledgers", "was bought in autumn")
    await library.learn()
    answer = await library.ask("database of ledgers bought in autumn")
    assert answer.hits[0].summary.id == covering


@pytest.mark.parametrize(
    "typed",
    [
        "reconcilliation invioces",
        "reconciliaton invoicse evning",
        "recon ciliation in voices",
        "reconciliationof invoicesevery",
        "rekonziliation invoyces",
    ],
)
async def test_what_is_misspelt_is_ranked_as_without_a_model_which_cannot_read_it(library, typed):
    wanted = library.put("Reconciliation of invoices", "every evening")
    alone = [hit.summary.id for hit in (await library.ask(typed)).hits]
    await library.learn()
    found = (await library.ask(typed)).hits
    assert found[0].summary.id == wanted == alone[0]
    assert by_name(found[0]).get("learned", 0.0) < 0.2 * found[0].score


async def test_what_only_resembles_a_misspelt_word_by_its_letters_is_found_beside_a_model(library):
    wanted = library.put("Kubernetes", "for staging")
    await library.learn()
    answer = await library.ask("kubbernettties", show_all=True)
    assert answer.hits[0].summary.id == wanted


async def test_a_word_that_is_new_and_near_none_is_left_to_the_model(library):
    meant = library.put("Postgres it is", "for all accounts")
    library.put("The datagram", "is split in two")
    await library.learn()
    answer = await library.ask("database")
    assert answer.hits[0].summary.id == meant
    assert by_name(answer.hits[0])["learned"] > 0.2


async def test_words_decide_where_the_model_sees_in_every_memory_the_same_language(db):
    german = "Rechnung Zahlung Sitzung Schema Bild Protokoll Kennwort Auftrag Speicher Suche"
    library = IndexedVault(db, learned=Synonyms(german))
    words = german.split()
    for i in range(60):
        library.put(f"{words[i % 4]} {i}", f"{words[i % 3]} Seite{i} Kapitel{i}")
    library.put("Auftrag", "Speicher, Tapete, Wand")
    wanted = library.put("Bild", "wird kleiner, Rand")
    await library.learn()
    answer = await library.ask("Warum ist ein Bild im Protokoll der Zahlung?")
    assert answer.hits[0].summary.id == wanted


async def test_while_it_is_being_filled_both_spaces_are_asked(library):
    filled = library.put("Postgres", "ledger")
    missing = library.put("database", "ledger of old")
    await library.learn(filled)
    answer = await library.ask("database", explain=True)
    first, second = answer.hits
    assert answer.space == f"{HASHING} + {LEARNED}"
    assert {first.summary.id, second.summary.id} == {filled, missing}
    hits = {hit.summary.id: hit for hit in answer.hits}
    assert hits[filled].channels == ("learned",)
    assert hits[missing].channels == ("lexical", "vector")
    # one of fourteen has a vector
    assert 0 < by_name(hits[filled])["learned"] < 1.4 / 14
    assert by_name(hits[missing])["unlearned"] == by_name(hits[filled])["learned"]
    assert library.recaller.space == HASHING


async def test_a_model_that_is_away_is_named_and_the_hashing_space_answers(library, model):
    wanted = library.put("Postgres", "ledger")
    await library.learn()
    model.why_not = "ollama does not answer"
    answer = await library.ask("postgres")
    assert answer.degraded == {"vector": "ollama does not answer; the hashing space answered alone"}
    assert (answer.space, answer.hits[0].summary.id) == (HASHING, wanted)
    assert model.asked == []
    assert by_name(answer.hits[0])["vector"] == pytest.approx(0.8 * answer.hits[0].cosine)
    model.why_not = ""
    assert (await library.ask("postgres")).degraded == {}


async def test_a_model_that_fails_in_the_middle_is_named_too(library, model):
    await library.learn()
    model.fails = "synonyms did not answer within 0.3 s"
    answer = await library.ask("note")
    assert answer.degraded["vector"].startswith("synonyms did not answer within 0.3 s; ")
    assert len(answer.hits) == 5


async def test_a_model_without_any_vectors_does_no_harm(library, model):
    model.why_not = "ollama does not answer"
    answer = await library.ask("note")
    assert (answer.degraded, answer.space) == ({}, HASHING)


async def test_a_model_that_was_replaced_is_not_compared_with_the_old_vectors(library, model):
    await library.learn()
    model.digest = "d2"
    answer = await library.ask("note")
    assert "has changed" in answer.degraded["vector"]
    assert answer.space == HASHING
    await library.learn()
    assert (await library.ask("note")).space == "made/synonyms/1/96/d2"


async def test_a_space_that_goes_between_question_and_answer_is_not_missed(library, model):
    wanted = library.put("Postgres", "ledger")
    await library.learn()
    ask = model.query

    async def ask_and_lose(text):
        found = await ask(text)
        del library.index.matrices[LEARNED]
        return found

    model.query = ask_and_lose
    answer = await library.ask("postgres")
    assert (answer.space, answer.hits[0].summary.id) == (HASHING, wanted)


async def test_a_vector_of_the_wrong_length_is_refused_with_both_lengths(library, model):
    await library.learn()
    model.more = 2
    answer = await library.ask("note")
    assert "98 numbers instead of 96" in answer.degraded["vector"]
    assert len(answer.hits) == 5


async def test_a_ready_vector_is_one_of_the_leading_space(library, model):
    """Memoturn: recall takes `embedding`, an "f32 vector for the vector channel; bring-your-own by default"."""
    wanted = library.put("Postgres", "ledger")
    await library.learn()
    vector = tuple(float(x) for x in await model.query("database"))
    assert (await library.ask("", embedding=vector)).hits[0].summary.id == wanted
    with pytest.raises(BadRequest, match=f"768 numbers; the space {LEARNED} has 96"):
        await library.ask("", embedding=(1.0,) * 768)


@pytest.mark.parametrize("filled", ["all", "some"])
@pytest.mark.parametrize("profile", sorted(BUILT_IN))
async def test_every_score_is_what_its_parts_make(library, profile, filled):
    some = [library.put(f"Postgres {i}", "teal rollout", days_ago=i) for i in range(4)]
    library.put("database", "paint")
    await library.learn(*(some if filled == "some" else ()))
    answer = await library.ask("database rollout colour", profile=profile, explain=True)
    assert answer.hits
    for hit in (*answer.hits, *answer.trace):
        assert apply_parts(hit.parts) == hit.score


async def test_a_published_profile_ranks_by_the_leading_space_and_keeps_its_formula(library, model):
    wanted = library.put("Postgres", "ledger")
    await library.learn(wanted)
    asked = len(model.asked)
    assert (await library.ask("database", profile="siftcoder")).space == HASHING
    assert len(model.asked) == asked
    await library.learn()
    answer = await library.ask("database", profile="siftcoder")
    assert (answer.space, answer.hits[0].summary.id) == (LEARNED, wanted)
    assert answer.hits[0].score == pytest.approx(1 / 61)


async def test_a_search_by_words_alone_does_not_wait_for_a_model(library, model):
    await library.learn()
    assert (await library.ask("note", legs=frozenset({"lexical"}))).space is None
    assert (await library.ask("note", relevance_gate=RelevanceGate())).space == HASHING
    assert model.asked == []


async def test_a_filter_holds_for_the_learned_retriever_as_for_any_other(library):
    library.put("Postgres", "ledger", project="/b")
    wanted = library.put("Postgres here", "ledger", project="/a")
    await library.learn()
    project = library.db.read_now(
        lambda tx: tx.execute("SELECT id FROM projects WHERE key = '/a'").get
    )
    assert await library.ids("database", project_ids=(project,)) == [wanted]
    assert await library.ids("database", project_ids=()) == []


async def test_a_long_memory_stands_where_its_nearest_passage_stands(db, model):
    library = IndexedVault(db, learned=model)
    long = "\n\n".join(f"word{i} " * 300 for i in range(3))
    wanted = library.put("A long one", f"database {long}")
    other = library.put("Another", "database and more")
    await library.learn()
    rows = library.index.columns.rows_of(wanted)
    passage = int(library.index.columns.passage_id[rows[-1]])
    vectors = await model.documents(["postgres"])
    library.index.fill(LEARNED, [passage], vectors.astype("<f2"))
    hits = {hit.summary.id: hit for hit in (await library.ask("database")).hits}
    assert hits[wanted].cosine == pytest.approx(1.0, abs=0.01)
    assert hits[wanted].vector_rank == 1
    assert other in hits


async def test_what_no_question_is_about_is_learnt_behind_the_answers(library, model):
    wanted = library.put("Postgres", "ledger")
    await library.learn()
    library.recaller._unrelated = None
    model.fails = "busy"
    await library.recaller.embed_unrelated()
    model.fails = None
    async with anyio.create_task_group() as group:
        group.start_soon(library.recaller.run)
        with anyio.fail_after(60):
            while await library.ids("database") != [wanted]:  # noqa: ASYNC110  # it rings no bell
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()


async def test_a_model_that_hangs_costs_one_deadline(db):
    with Ollama() as server:
        learned = make_remote_embedder(server.engines(query_s=2), {}, lambda: NOW, lambda: 0.5)
        library = IndexedVault(db, learned=learned)
        wanted = library.put("Postgres", "ledger")
        await learned.check()
        await library.learn()
        assert (await library.ask("postgres")).degraded == {}
        server.delay_s = 600.0
        answer = await library.ask("postgres ledger")
    assert "did not answer within 2 s; the hashing space" in answer.degraded["vector"]
    assert answer.hits[0].summary.id == wanted
