import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.recall import apply_parts
from memd.store import projects
from memd.store.database import Database
from memd.text import stems
from tests.indexed_vault import NOW, IndexedVault

WORDS = ["kettle", "harbour", "teal", "ledger", "tram"]
MEMORY = st.tuples(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    st.lists(st.sampled_from(WORDS), max_size=9),
)


@pytest.fixture
def library(db):
    return IndexedVault(db)


def by_hand(memories, question, mu=60.0, title_weight=2.0, statement=100.0):
    """What each memory's words are worth, as the module's docstring says it."""
    counted = [(Counter(stems(title)), Counter(stems(body))) for title, body in memories]
    lengths = [title.total() + body.total() for title, body in counted]
    total = sum(lengths) * max(50 / len(memories), 1.0)
    asked = Counter(stems(question))
    having = {term: sum(1 for both in counted if term in both[0] | both[1]) for term in asked}
    chance = {term: (number + 0.5) / total for term, number in having.items() if number}
    unknown = len(asked) - len(chance)
    information = sum(asked[t] * math.log1p(1 / (mu * p)) for t, p in chance.items())
    information += unknown * math.log1p(total / (mu * 0.5))
    worths = []
    for (title, body), length in zip(counted, lengths, strict=True):
        cost = math.log1p((length / statement) ** 2)
        raw = sum(
            asked[t] * (math.log((title_weight * title[t] + body[t] + mu * p) / (mu * p)) - cost)
            for t, p in chance.items()
        )
        matches = any(t in title or t in body for t in chance)
        worths.append(0.2 * math.log1p(math.exp(raw / information / 0.2)) if matches else 0.0)
    return worths


@settings(max_examples=25)
@given(memories=st.lists(MEMORY, min_size=1, max_size=7), question=st.lists(st.sampled_from([*WORDS, "zebra"]), min_size=1, max_size=4))  # fmt: skip
async def test_words_are_worth_what_the_formula_says(tmp_path_factory, memories, question):
    database = Database(str(tmp_path_factory.mktemp("v") / "vault.db"), NOW)
    library = IndexedVault(database)
    texts = [(" ".join(title), " ".join(body)) for title, body in memories]
    ids = [library.put(*text) for text in texts]
    answer = await library.ask(" ".join(question), explain=True, k=20)
    database.close()
    found = {
        one.summary_id: {part.name: part.value for part in one.parts}.get("lexical", 0.0)
        for one in answer.trace
    }
    expected = dict(zip(ids, by_hand(texts, " ".join(question)), strict=True))
    assert found == {number: pytest.approx(expected[number], abs=1e-5) for number in found}
    assert found.keys() >= {number for number, worth in expected.items() if worth > 0}


async def test_the_parts_of_a_session_add_up_to_the_score(library):
    for turn, text in enumerate(
        ("which colour is the kettle", "a teal kettle", "the kettle boils", "fine")
    ):
        library.put(text, session="s", days_ago=1 - turn / 100)
    answer = await library.ask("colour of the kettle", explain=True)
    assert len(answer.hits) >= 3
    for one in answer.trace:
        assert apply_parts(one.parts) == pytest.approx(one.score)


async def test_a_word_beside_a_memory_counts_less_than_one_in_it(library):
    for number in range(60):
        library.put(f"note {number} on trams")
    library.put("harbour", session="s", days_ago=3)
    beside = library.put("teal kettle", session="s", days_ago=2)
    own = library.put("kettle harbour", session="t", days_ago=2)
    ids = await library.ids("kettle harbour", k=10, legs=frozenset({"lexical"}))
    assert ids.index(own) < ids.index(beside)


async def test_a_phrase_counts_like_one_more_word(library):
    library.put("the kettle is teal", days_ago=2)
    phrase = library.put("teal kettle of the harbour", days_ago=3)
    library.put("trams")
    assert (await library.ids('"teal kettle"'))[0] == phrase


async def test_of_short_memories_the_length_hardly_matters_and_a_long_one_comes_after_them(library):
    filler = "saucer napkin table chair window curtain door hinge lamp carpet "
    for number in range(60):
        library.put(f"note {number} on trams")
    ids = [library.put(f"teal kettle {filler * times}", days_ago=2) for times in (0, 3, 60)]
    answer = await library.ask("teal kettle", legs=frozenset({"lexical"}))
    scores = {hit.summary.id: hit.score for hit in answer.hits}
    short, middling, long = (scores[number] for number in ids)
    assert short - middling < (middling - long) / 4


async def test_where_all_memories_are_long_length_costs_less(library):
    def put(count, project):
        return library.put("teal kettle " + "saucer napkin table chair " * count, project=project)

    for number in range(60):
        library.put(f"note {number} " + "on trams and trains " * 100, project="/long")
        library.put(f"note {number} on trams", project="/short")
    scores = {}
    for project in ("/long", "/short"):
        wanted = put(60, project)
        ids = library.db.read_now(lambda tx, p=project: projects.find_projects(tx, p))
        answer = await library.ask(
            "teal kettle", project_ids=(ids[0].id,), legs=frozenset({"lexical"})
        )
        scores[project] = next(hit.score for hit in answer.hits if hit.summary.id == wanted)
    assert scores["/long"] > 1.5 * scores["/short"]
