"""The verdict in fifteen languages in one vault, beside a team's memories in English.

tests/data/questions has for each language twenty memories, a question about each in other words than it, and eight
questions about what no memory tells.
"""

import json
from pathlib import Path

import pytest

from memd.store.database import Database
from tests.indexed_vault import NOW, IndexedVault

DATA = Path(__file__).parent.parent / "data"
SETS = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((DATA / "questions").glob("*.json"))
}
ENGLISH = (DATA / "relevance" / "memories.jsonl").read_text("utf-8").splitlines()
HIDDEN_MAX, FOUND_WRONGLY_MAX = 1, 1
FOUND_MIN = 0.5
"""The share of the right memories on the page that are said to be found; reached are .7 to 1."""


class World:
    """The vault of all of them."""

    def __init__(self, db):
        self.library = IndexedVault(db)
        for row in map(json.loads, ENGLISH):
            if "on-call" not in f"{row['title']} {row['body']}".lower():
                self.library.put(row["title"], row["body"])
        self.ids = {
            memory: self.library.put(memory) for s in SETS.values() for memory, _ in s["answered"]
        }

    async def list_verdicts(self, language):
        """The verdict of each question whose memory is on the page of all hits."""
        answers = [
            (self.ids[memory], await self.library.ask(question, show_all=True))
            for memory, question in SETS[language]["answered"]
        ]
        return [a.verdict for wanted, a in answers if wanted in [h.summary.id for h in a.hits]]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    db = Database(str(tmp_path_factory.mktemp("languages") / "vault.db"), NOW)
    yield World(db)
    db.close()


def test_there_are_fifteen_languages():
    assert len(SETS) == 15
    assert {(len(s["answered"]), len(s["unanswered"])) for s in SETS.values()} == {(20, 8)}


@pytest.mark.parametrize("language", SETS)
async def test_the_verdict_hides_no_right_memory_and_finds_most(world, language):
    verdicts = await world.list_verdicts(language)
    assert verdicts.count("nothing") <= HIDDEN_MAX, verdicts
    assert verdicts.count("found") >= FOUND_MIN * len(verdicts), verdicts


@pytest.mark.parametrize("language", SETS)
async def test_what_no_memory_tells_is_not_found(world, language):
    asked = SETS[language]["unanswered"]
    found = [q for q in asked if (await world.library.ask(q)).verdict == "found"]
    assert len(found) <= FOUND_WRONGLY_MAX, found


@pytest.mark.parametrize("question", ["who is on call this week", "Who is on call?"])
async def test_a_word_of_a_phrase_that_no_memory_has_is_nothing(world, question):
    # There is a memory about calls to a server, and several about weeks.
    answer = await world.library.ask(question)
    assert (answer.verdict, answer.hits) == ("nothing", ())
