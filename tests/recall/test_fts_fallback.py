import pytest

from memd.recall.types import Question
from memd.store import erasure, links
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_until_the_shelf_is_loaded_full_text_answers_and_says_so(library):
    wanted = library.put("Sessions live in Redis")
    await library.indexer.load()
    await library.indexer.settle()
    library.index.loaded = False
    answer = await library.recaller.search(Question("redis sessions", NOW))
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert "loading" in answer.degraded["index"]


async def test_the_filters_hold_there_too(library):
    library.put("kettle", days_ago=3, tags=("x",))
    kept = library.put("kettle", days_ago=1, tags=("x", "y"))
    library.put("kettle", tags=("y",), expires_at=NOW - 1)
    await library.indexer.load()
    await library.indexer.settle()
    library.index.loaded = False
    for asked in ({"tags": ("y",)}, {"since": NOW - 2 * DAY}):
        answer = await library.recaller.search(Question("kettle", NOW, **asked))
        assert [hit.summary.id for hit in answer.hits] == [kept]
    answer = await library.recaller.search(Question("kettle", NOW, until=NOW - 2 * DAY, k=1))
    assert len(answer.hits) == 1


async def ask_while_loading(library, **asked):
    await library.indexer.load()
    await library.indexer.settle()
    answers = []
    for loaded in (True, False):
        library.index.loaded = loaded
        answer = await library.recaller.search(Question("kettle", NOW, **asked))
        answers.append({hit.summary.id for hit in answer.hits})
    return answers


async def test_archived_memories_are_hidden_there_too(library):
    shown, archived = library.put("kettle red"), library.put("kettle blue")
    library.db.write_now(lambda tx: erasure.archive_summaries(tx, [archived], NOW))
    assert await ask_while_loading(library) == [{shown}, {shown}]
    assert await ask_while_loading(library, include_superseded=True) == [{shown, archived}] * 2


async def test_a_past_time_shows_there_too_what_was_superseded_only_later(library):
    oldest, older, newer = (library.put(f"kettle {n}", days_ago=n) for n in (3, 2, 1))

    def supersede(tx):
        for newer_id, older_id in ((older, oldest), (newer, older)):
            links.supersede(
                tx,
                newer_id=newer_id,
                older_id=older_id,
                rule="test",
                cosine=None,
                guard="",
                at=NOW,
            )

    library.db.write_now(supersede)
    then = NOW - DAY * 3 // 2
    assert await ask_while_loading(library, as_of=then) == [{older}, {older}]
