import numpy as np
import pytest

from memd.recall.ranking import CandidateFacts, RankingContext
from memd.recall.retrievers import look_up_query
from memd.store.types import SummaryUse
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
async def library(db):
    library = IndexedVault(db)
    library.put("kettle", days_ago=2)
    library.put("teal", days_ago=-2)
    await library.ask("kettle")
    return library


async def make_context(library, lexical, **facts):
    parsed = await library.recaller._parse_question(library.asked("kettle"))
    query = look_up_query(library.index, parsed, [])
    return RankingContext(
        query, np.arange(2), np.array(lexical), np.zeros(2), CandidateFacts(**facts)
    )


async def test_relevance_is_a_share_of_the_best(library):
    assert (await make_context(library, [4.0, 1.0])).relevance.tolist() == [1.0, 0.25]
    assert (await make_context(library, [0.0, 0.0])).relevance.tolist() == [0.0, 0.0]


async def test_ages_are_days_and_the_future_is_now(library):
    assert (await make_context(library, [1.0, 1.0])).ages.tolist() == [2.0, 0.0]


async def test_a_memory_that_was_never_used_has_been_unused_without_end(library):
    use = SummaryUse(3, NOW - 5 * DAY)
    context = await make_context(library, [1.0, 1.0], uses={1: use})
    assert context.ids == [1, 2]
    assert context.used.tolist() == [3.0, 0.0]
    assert context.unused_days.tolist() == [5.0, np.inf]
