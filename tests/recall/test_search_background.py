import pytest

from memd.recall.ranking import CandidateFacts
from memd.recall.search import read_facts
from memd.store import usage
from memd.store.types import SummaryUse
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def known(library, ids, profile, **more):
    """What is looked up for a question with this profile."""
    answer = await library.ask("kettle", profile=profile, **more)
    assert answer.hits
    question = library.asked("kettle", profile=profile, **more)
    asked = await library.recaller._parse_question(question)
    return library.db.read_now(lambda tx: read_facts(tx, ids, asked))


async def test_only_what_a_step_asks_for_is_looked_up(library):
    one = library.put("kettle", "`decode_token`")
    two = library.put("kettle teal")
    library.db.write_now(
        lambda tx: usage.record_uses(tx, {one: SummaryUse(3, NOW)}, {(one, two): 2})
    )
    assert await known(library, [one, two], "siftcoder") == CandidateFacts()
    assert await known(library, [one, two], "memd") == CandidateFacts()
    memu = await known(library, [one, two], "memu")
    assert memu == CandidateFacts(
        uses={one: SummaryUse(3, NOW)}, entities={one: frozenset({"decode_token"})}
    )
    clawmem = await known(library, [one, two], "clawmem")
    assert clawmem == CandidateFacts(uses={one: SummaryUse(3, NOW)}, together={(one, two): 2})
    assert await known(library, [], "memu") == CandidateFacts()


async def test_nothing_later_is_seen(library):
    one, two = library.put("kettle", days_ago=9), library.put("kettle teal", days_ago=9)
    library.db.write_now(
        lambda tx: usage.record_uses(
            tx, {one: SummaryUse(3, NOW), two: SummaryUse(1, NOW - 6 * DAY)}, {(one, two): 2}
        )
    )
    seen = await known(library, [one, two], "clawmem", as_of=NOW - 5 * DAY)
    assert seen == CandidateFacts(uses={two: SummaryUse(1, NOW - 6 * DAY)})


async def test_a_failure_is_told_and_nothing_else(library):
    one = library.put("kettle")
    await library.ask("kettle")
    library.db.write_now(lambda tx: tx.execute("DROP TABLE entities"))
    seen = await known(library, [one], "memu")
    assert "entities" in seen.failed
    assert not seen.uses
