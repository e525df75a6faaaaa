import numpy as np
import pytest

from memd.recall.filters import find_visible_rows
from memd.recall.profiles import resolve_profile
from memd.recall.query import Intent, parse_terms
from memd.recall.ranking_context import CandidateFacts, RankingContext, RankingQuestion
from memd.recall.retrievers import IndexedTerms
from memd.store.types import SummaryUse
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
async def library(db):
    library = IndexedVault(db)
    library.put("kettle", days_ago=2)
    library.put("teal", days_ago=-2)
    await library.ask("kettle")
    return library


def view(library, lexical, **background):
    question = library.asked("kettle")
    about = RankingQuestion(
        parse_terms("kettle"), Intent(), IndexedTerms({}), find_visible_rows(library.index, question), NOW,
        CandidateFacts(**background),
    )  # fmt: skip
    rows = np.arange(2)
    return RankingContext(
        library.index, rows, np.array(lexical), resolve_profile("memd", {}), about, np.zeros(2)
    )


async def test_relevance_is_a_part_of_the_best(library):
    assert view(library, [4.0, 1.0]).relevance.tolist() == [1.0, 0.25]
    assert view(library, [0.0, 0.0]).relevance.tolist() == [0.0, 0.0]


async def test_ages_are_days_and_the_future_is_now(library):
    assert view(library, [1.0, 1.0]).ages.tolist() == [2.0, 0.0]


async def test_what_was_never_used_was_not_used_for_ever(library):
    seen = view(library, [1.0, 1.0], uses={1: SummaryUse(3, NOW - 5 * DAY)})
    assert seen.ids == [1, 2]
    assert seen.used.tolist() == [3.0, 0.0]
    assert seen.unused_for.tolist() == [5.0, np.inf]
