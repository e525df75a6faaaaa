"""Whether an answer answers: found, weak or nothing, through the real search."""

from dataclasses import replace

import pytest

from memd.models import Kind
from memd.recall import Question
from memd.recall.question_words import read_words
from memd.recall.verdict import judge_answer
from tests.indexed_vault import IndexedVault
from tests.tables import every_row, read_tables

TABLES = read_tables("recall/verdict")


@pytest.fixture
def library(db):
    vault = IndexedVault(db)
    vault.put("Git hooks are installed by make hooks", "The hooks are copied and not linked.")
    vault.put("Sessions live in Redis", "A session is lost when Redis restarts, which is fine.")
    vault.put("The deploy waits for the migration", "Else the new code meets the old schema.")
    for i in range(60):
        vault.put(f"Release {i} of the command line", f"Build number {i} was published by hand.")
    return vault


async def test_a_question_whose_words_are_there_is_found_and_says_where(library):
    answer = await library.ask("where do sessions live")
    assert answer.verdict == "found"
    assert answer.reason == f"#{answer.hits[0].summary.id} has 'sessions', 'live'"


@pytest.mark.parametrize("question", ["which antenna do we use?", "which mixer should we use now?"])
async def test_what_a_question_asks_a_decision_about_is_not_found_in_the_verb_alone(
    library, question
):
    library.put("Use rye flour for the dark breads", kind=Kind.DECISION)
    library.put("We use parchment paper, not mats", kind=Kind.DECISION)
    assert (await library.ask(question)).verdict != "found"
    assert (await library.ask("which flour do we use?")).verdict == "found"


async def test_what_nobody_ever_mentioned_is_nothing_and_shows_no_hit(library):
    answer = await library.ask("Which Kubernetes ingress do the hooks need?")
    assert (answer.verdict, answer.hits) == ("nothing", ())
    assert "no memory has 'Kubernetes', 'ingress'" in answer.reason
    assert "Git hooks are installed by make hooks" in answer.reason
    assert answer.suppressed["unlikely"] > 0


async def test_nothing_shows_the_nearest_hits_when_asked_for_all(library):
    answer = await library.ask("Which Kubernetes ingress do the hooks need?", show_all=True)
    assert answer.verdict == "nothing"
    assert answer.hits[0].summary.title == "Git hooks are installed by make hooks"


async def test_half_of_a_question_is_weak_and_names_what_is_missing(library):
    answer = await library.ask("does the deploy encrypt the migration and archive backups offsite")
    assert answer.verdict == "weak"
    assert answer.hits
    assert "no memory has 'encrypt'" in answer.reason


async def test_a_question_in_another_language_is_never_nothing(library):
    answer = await library.ask("Wohin werden die Hooks kopiert und warum nicht verknüpft?")
    assert answer.verdict == "weak"
    assert answer.hits


async def test_a_misspelt_word_counts_as_the_word_that_it_meant(library):
    answer = await library.ask("where do sesions live in Redis")
    assert answer.verdict == "found"


@pytest.mark.parametrize(
    ("question", "looked_for"),
    [
        ("which database stores the gallery", "data"),
        ("translations of the gallery that it stores", "transparent"),
    ],
)
async def test_a_word_that_only_resembles_others_is_not_one_that_was_meant(
    db, question, looked_for
):
    library = IndexedVault(db)
    for i in range(40):
        library.put(
            f"Theme {i} of the gallery", f"It {'stores' if i < 8 else 'shows'} picture {i}."
        )
    library.put("The gallery stores themes", "They are based on data behind a transparent layer.")
    answer = await library.ask(question)
    assert any(looked_for in note for note in answer.notes)
    assert answer.verdict == "weak"


async def test_what_a_model_finds_near_counts_for_the_memory_that_it_is_and_for_no_other(library):
    porter = library.put("Heavy parcels go to the porter", days_ago=2)
    attic = library.put("The attic upstairs is dusty", days_ago=1)
    question = "who carries heavy parcels upstairs on weekends"
    answer = await library.ask(question)
    judged = {}
    for number in (porter, attic):
        evidence = replace(answer.evidence, meant=frozenset({number}))
        judged[number] = judge_answer(
            replace(answer, evidence=evidence), Question(question, now=answer.hits[0].summary.at)
        ).verdict
    assert judged == {porter: "found", attic: "weak"}


async def test_an_empty_vault_knows_nothing_and_says_so(db):
    answer = await IndexedVault(db).ask("where do sessions live")
    assert (answer.verdict, answer.hits) == ("nothing", ())
    assert answer.reason == "no memory has 'sessions', 'live'"


async def test_the_memory_of_a_topic_that_was_asked_for_is_found(library):
    wanted = library.put("Use make hooks", topic_key="hooks.install")
    answer = await library.ask("", topic_key="hooks.install")
    assert answer.verdict == "found"
    assert answer.hits[0].summary.id == wanted


@every_row(("text", "names"), TABLES["a_name_is_told_by_how_it_is_written"])
def test_a_name_is_told_by_how_it_is_written(text, names):
    assert [word.text for word in read_words(text) if word.is_name] == names


async def test_an_answer_from_another_time_than_was_asked_for_is_weak(library):
    answer = await library.ask("where did sessions live in January 2001?")
    assert answer.verdict == "weak"
    assert "nothing from" in answer.reason


async def test_the_reason_tells_the_words_of_the_hit_that_it_names(library):
    old = library.put("The gateway waits 30 seconds for the session", days_ago=9)
    now = library.put("Raised the gateway's wait from 30 seconds to 45 seconds", days_ago=1)
    answer = await library.ask("how long does the gateway wait for the session")
    assert {hit.summary.id for hit in answer.hits[:2]} == {old, now}
    first = answer.hits[0].summary
    assert answer.reason.startswith(
        f"#{first.id} has 'long'" if "long" in first.title else f"#{first.id} has 'gateway'"
    )
    assert ("session" in answer.reason) == ("session" in first.title)


async def test_a_word_that_only_asks_for_a_kind_of_memory_is_not_missed_in_one_of_that_kind(
    library,
):
    wanted = library.put("We keep sessions in SQLite rather than Redis", kind=Kind.DECISION)
    library.put("The team chose blue for buttons")
    answer = await library.ask("why did we choose redis")
    assert (answer.verdict, answer.hits[0].summary.id) == ("found", wanted)


async def test_one_word_of_several_is_weak_and_not_found(library):
    answer = await library.ask("does Redis compress snapshots")
    assert answer.verdict == "weak"


async def test_a_list_of_a_kind_that_there_is_not_is_weak_and_says_so(library):
    library.put("Open tasks are kept on the board")
    answer = await library.ask("open tasks")
    assert (answer.verdict, answer.reason) == ("weak", "no memory is a task; these have the words")


async def test_nothing_of_a_time_and_nothing_like_it_elsewhere_is_nothing(library):
    answer = await library.ask("what did the zeppelin blimp do in January 2001?")
    assert (answer.verdict, answer.hits) == ("nothing", ())
    assert answer.suppressed.get("unlikely", 0) >= 0


@pytest.mark.parametrize(
    ("memory", "question"), TABLES["another_form_a_compound_or_a_piece_of_a_run_is_evidence"]
)
async def test_another_form_a_compound_or_a_piece_of_a_run_is_evidence(library, memory, question):
    wanted = library.put(memory)
    answer = await library.ask(question)
    assert (answer.verdict, answer.hits[0].summary.id) == ("found", wanted), answer.reason


async def test_words_that_stand_apart_in_a_long_memory_are_no_answer(library):
    # Each sentence is as long as a snippet, so that only one of the words is shown.
    sentences = [
        f"{start} {'while nothing else of interest happened ' * 6}again."
        for start in ("The footer was deployed", "A coupon came late", "Its invoice is odd")
    ]
    library.put("The header follows the theme", " ".join(sentences))
    answer = await library.ask("which deployed coupon has the invoice of unpaid subscribers")
    assert answer.verdict == "weak"
