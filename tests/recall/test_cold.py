import pytest

from memd.recall.answer import Question
from tests.library import DAY, NOW, Library


@pytest.fixture
def library(db):
    return Library(db)


async def test_until_the_shelf_is_loaded_full_text_answers_and_says_so(library):
    wanted = library.put("Sessions live in Redis")
    await library.indexer.load()
    await library.indexer.settle()
    library.shelf.loaded = False
    answer = await library.recaller.search(Question("redis sessions", NOW))
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert "loading" in answer.degraded["index"]


async def test_the_filters_hold_there_too(library):
    library.put("kettle", days_ago=3, tags=("x",))
    kept = library.put("kettle", days_ago=1, tags=("x", "y"))
    library.put("kettle", tags=("y",), expires_at=NOW - 1)
    await library.indexer.load()
    await library.indexer.settle()
    library.shelf.loaded = False
    for asked in ({"tags": ("y",)}, {"since": NOW - 2 * DAY}):
        answer = await library.recaller.search(Question("kettle", NOW, **asked))
        assert [hit.summary.id for hit in answer.hits] == [kept]
    answer = await library.recaller.search(Question("kettle", NOW, until=NOW - 2 * DAY, k=1))
    assert len(answer.hits) == 1
