import pytest

from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_the_neighbours_of_a_match_are_evidence(library):
    library.put("Unrelated trip to the harbour", session="s9")
    library.put("What colour is the kettle?", session="s1", days_ago=0.02)
    answer = library.put("It is teal, she said", session="s1", days_ago=0.01)
    ids = await library.ids("colour of the kettle", legs=frozenset({"lexical"}))
    assert ids[1] == answer


async def test_a_session_that_is_about_the_question_lifts_its_memories(library):
    library.put("kettle", session="s1", days_ago=3)
    about = library.put("teal is what she chose", "kettle colours", session="s1", days_ago=2)
    apart = library.put("teal is what she chose", "kettle colours", session="s2", days_ago=1)
    answer = await library.ask("kettle", explain=True)
    parts = {t.summary_id: {p.name: p.value for p in t.parts} for t in answer.trace}
    assert parts[about]["session"] > parts[apart]["session"]
    assert "previous" not in parts[apart]


async def test_neighbours_that_may_not_be_seen_are_no_evidence(library):
    library.put("kettle question", session="s1", days_ago=1)
    library.put("answer kettle", session="s1", days_ago=2)
    answer = await library.ask("kettle", as_of=NOW - int(1.5 * DAY), explain=True)
    assert [{p.name for p in t.parts} & {"previous", "next"} for t in answer.trace] == [set()]


async def test_what_was_said_outside_any_session_is_a_session_of_its_own(library):
    alone = library.put("kettle colour", "the kettle is teal")
    library.put("kettle", "harbour talk", session="s1")
    answer = await library.ask("kettle colour", explain=True)
    parts = {t.summary_id: {p.name: p.value for p in t.parts} for t in answer.trace}
    assert answer.hits[0].summary.id == alone
    # the best match speaks for itself as much as the best session would
    assert parts[alone]["session"] == pytest.approx(0.5)
