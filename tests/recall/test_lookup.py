"""What a question's words are looked for as: signs as they stand, and words that nobody has as others."""

import pytest

from memd.recall import RelevanceGate
from tests.indexed_vault import IndexedVault
from tests.tables import read_tables

TABLES = read_tables("recall/lookup")


@pytest.fixture
def library(db):
    return IndexedVault(db)


@pytest.mark.parametrize(
    ("literal", "stands", "has_parts"), TABLES["a_literal_leads_where_it_stands"]
)
async def test_a_literal_leads_where_it_stands(library, literal, stands, has_parts):
    library.put("One", has_parts)
    wanted = library.put(
        "Two", f"{stands}. It took a while until somebody found that out, as usual"
    )
    library.put("Three", has_parts)
    assert (await library.ids(f"what about {literal}?"))[0] == wanted
    assert (await library.ids(f"`{literal}`"))[0] == wanted


async def test_a_literal_is_no_part_of_a_longer_one(library):
    other = library.put("Other", "count=10 is set")
    wanted = library.put("Wanted", "here count=1 is set")
    assert await library.ids("count=1") == [wanted, other]


async def test_a_literal_may_stand_in_the_title_or_be_a_file(library):
    title = library.put("Never --force a push", "it says so")
    library.put("Force", "the force, force")
    named = library.put("Loader", "reads twice", files=("src/.env.local",))
    library.put("Environment", "a local env")
    assert (await library.ids("--force"))[0] == title
    assert (await library.ids(".env.local"))[0] == named


@pytest.mark.parametrize(
    ("compound", "stands", "has_parts"),
    [
        ("go-git", "We read trees by go-git, as it needs no checkout", "Run go vet, then git status"),
        ("pre-commit", "The pre-commit hook formats", "commit the pre release, then commit"),
        ("prepare-commit-msg", "It is prepare-commit-msg that asks", "prepare a commit, then a commit msg"),
    ],
)  # fmt: skip
async def test_a_word_with_hyphens_leads_where_its_parts_stand_side_by_side(
    library, compound, stands, has_parts
):
    library.put("One", has_parts)
    wanted = library.put("Two", f"{stands}. It took a while until somebody found that out")
    library.put("Three", has_parts)
    assert (await library.ids(f"why do we have {compound}?"))[0] == wanted


async def test_a_word_with_hyphens_that_stands_nowhere_side_by_side_is_found_by_its_parts(library):
    wanted = library.put("Parts", "a commit before the release")
    assert await library.ids("commit-release") == [wanted]


async def test_words_with_hyphens_and_sentences_are_no_literals(library):
    library.put("State", "a well-known state of the art")
    answer = await library.ask("well-known (state), e.g. of the art: 10:30!")
    assert answer.hits
    assert not answer.notes


@pytest.mark.parametrize(("typed", "meant"), TABLES["a_misspelt_word_finds_its_word_and_says_so"])
async def test_a_misspelt_word_finds_its_word_and_says_so(library, typed, meant):
    wanted = library.put("Cluster", f"the {meant} of staging were renewed")
    library.put("Other", "nothing of the kind was ever renewed")
    answer = await library.ask(f"where is {typed}", legs=frozenset({"lexical"}))
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert f"no memory has '{typed}'; looked for '{meant}'" in answer.notes


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("recon ciliation", "reconciliation"),
        ("check pointing", "checkpointing"),
        ("heart beat", "heartbeat"),
        ("write ahead log ging", "logging"),
    ],
)
async def test_a_word_that_was_typed_as_two_finds_its_word(library, typed, meant):
    wanted = library.put("Ledger", f"the {meant} of last night took an hour")
    library.put("Other", "nothing of last night was of any use")
    answer = await library.ask(typed, legs=frozenset({"lexical"}))
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert any(f"looked for '{meant}'" in note for note in answer.notes)


@pytest.mark.parametrize("typed", ["bufferpool", "checkpointworker", "ledgerimport"])
async def test_two_words_that_were_typed_as_one_find_the_memory_that_has_both(library, typed):
    wanted = {
        "bufferpool": library.put("A", "the buffer is taken from a pool"),
        "checkpointworker": library.put("B", "a worker writes the checkpoint"),
        "ledgerimport": library.put("C", "the import of the ledger"),
    }
    library.put("D", "a pool of workers")
    library.put("E", "another import, and a buffer")
    assert (await library.ids(typed, legs=frozenset({"lexical"})))[0] == wanted[typed]


async def test_words_that_no_memory_has_together_are_not_made_of_one(library):
    library.put("A", "the buffer")
    library.put("B", "the pool")
    assert await library.ids("bufferpool", legs=frozenset({"lexical"})) == []


async def test_a_word_that_some_memory_has_is_not_corrected(library):
    wanted = library.put("One", "the cashe directory")
    library.put("Two", "the cache directory")
    answer = await library.ask("cashe", legs=frozenset({"lexical"}))
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert not answer.notes


async def test_a_short_word_or_one_too_far_away_is_not_corrected(library):
    library.put("One", "redis and sqlite")
    for typed in ("rids", "sqlte3x", "postgres"):
        assert await library.ids(typed, legs=frozenset({"lexical"})) == []


async def test_a_misspelt_word_is_corrected_to_what_may_be_seen(library, db):
    library.put("One", "certificate", project="/b")
    wanted = library.put("Two", "certified things", project="/a")
    project = db.read_now(lambda tx: tx.execute("SELECT id FROM projects WHERE key = '/a'").get)
    seen = {"project_ids": (project,), "legs": frozenset({"lexical"})}
    answer = await library.ask("certifcate", **seen)
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert "looked for 'certified'" in answer.notes[0]


async def test_a_corrected_word_counts_less_than_an_exact_one(library):
    exact = library.put("One", "renewed certificates")
    near = library.put("Two", "renewed migrations")
    ids = await library.ids("certificates migartions", legs=frozenset({"lexical"}))
    assert ids == [exact, near]


async def test_what_is_injected_rests_on_words_as_they_stand(library):
    library.put("One", "kubernetes")
    gate = RelevanceGate(floor=0.0, ratio=0.0)
    asked = {"legs": frozenset({"lexical"}), "relevance_gate": gate}
    assert not (await library.ask("kuberntes", **asked)).hits


async def test_a_word_of_another_language_is_found_in_another_form(library):
    wanted = library.put("Eins", "Die Verbindung wird nach der Anmeldung nicht geschlossen")
    library.put("Two", "the connection is closed after the login")
    only_words = {"legs": frozenset({"lexical"})}
    assert await library.ids("Verbindungen", **only_words) == [wanted]
    assert await library.ids("warum bleiben die Anmeldungen", **only_words) == [wanted]


async def test_while_the_index_loads_full_text_finds_scripts_without_spaces(db):
    library = IndexedVault(db)
    library.put("One", "我们使用Redis处理会话")
    await library.indexer.load()
    await library.indexer.settle()
    library.index.loaded = False
    library.recaller._index._has_loaded.clear()
    for asked in ("处理", "Redis", "使用 会话"):
        answer = await library.recaller.search(library.asked(asked))
        assert [hit.summary.title for hit in answer.hits] == ["One"]
        assert "index" in answer.degraded


@pytest.mark.parametrize(
    "question", ["comment sont installés les hooks", "comment installer les hooks"]
)
async def test_a_word_that_two_languages_share_is_found_though_their_stems_differ(
    library, question
):
    wanted = library.put("The setup", "everything is installed once")
    library.put("Other", "nothing of that kind is set up")
    answer = await library.ask(question, legs=frozenset({"lexical"}))
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert not answer.notes  # no slip


@pytest.mark.parametrize("word", ["latest", "greenest", "towers"])
async def test_a_word_is_no_slip_of_one_that_it_has_a_letter_more_than(library, word):
    library.put("Other", "the late greens tow")
    assert not (await library.ask(word, legs=frozenset({"lexical"}))).notes
