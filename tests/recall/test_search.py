import pytest

from memd.store import links
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_a_superseded_memory_is_hidden_counted_and_shown_on_demand(library, db):
    old = library.put("Sessions live in SQLite", days_ago=2)
    new = library.put("Sessions live in Redis", days_ago=1)
    db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=new, older_id=old, rule="r", cosine=None, guard="", at=1
        )
    )
    answer = await library.ask("where do sessions live")
    assert [hit.summary.id for hit in answer.hits] == [new]
    assert answer.suppressed == {"superseded": 1}
    assert set(await library.ids("sessions live", include_superseded=True)) == {old, new}


async def test_as_of_sees_what_was_not_superseded_yet(library, db):
    old = library.put("Sessions live in SQLite", days_ago=9)
    new = library.put("Sessions live in Redis", days_ago=1)
    db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=new, older_id=old, rule="r", cosine=None, guard="", at=1
        )
    )
    assert await library.ids("sessions live", as_of=NOW - 5 * DAY) == [old]
    answer = await library.ask("sessions live", as_of=NOW)
    assert [hit.summary.id for hit in answer.hits] == [new]
    assert answer.suppressed == {"superseded": 1}


async def test_what_has_expired_is_hidden_and_counted(library):
    library.put("Standup at ten", expires_at=NOW - 1)
    answer = await library.ask("standup")
    assert answer.hits == ()
    assert answer.suppressed == {"expired": 1}


async def test_one_turn_does_not_fill_the_answer(library):
    for i in range(3):
        library.put(f"kettle story {i}", "kettle kettle", session="s", episode="e")
    other = library.put("a kettle elsewhere")
    assert other in (await library.ids("kettle story"))[:2]


async def test_pages_follow_each_other_without_gap_or_overlap(library):
    for i in range(7):
        library.put(f"kettle {i}", f"number {i}")
    whole = await library.ids("kettle number", k=7)
    assert (
        await library.ids("kettle number", k=3)
        + await library.ids("kettle number", k=4, offset=3)
        == whole
    )
    assert await library.ids("kettle", k=3, offset=100) == []


async def test_a_hit_that_stands_below_a_weaker_one_says_why(library):
    first = library.put("kettle kettle", "kettle", session="one", episode="e1")
    moved = library.put("kettle kettle", "kettle, again", session="one", episode="e1")
    library.put("other", "a kettle among many other words", session="two", episode="e2")
    answer = await library.ask("kettle", explain=True)
    *_, last = [t for t in answer.trace if t.is_hit]
    assert last.summary_id in {first, moved}
    assert (
        last.verdict
        == f"hit; diversity: same turn as #{({first, moved} - {last.summary_id}).pop()}"
    )


async def test_an_explained_answer_shows_every_candidate_and_why_it_was_not_chosen(library):
    for i in range(8):
        library.put(f"kettle {i}", "kettle " * i)
    answer = await library.ask("kettle", explain=True, k=2)
    assert [t.verdict for t in answer.trace][:3] == ["hit", "hit", "rank 3"]
    assert len(answer.trace) == 8
    assert answer.trace[0].terms == ("kettl",)
    assert answer.trace[0].ranks["lexical"] == 1


async def test_vectors_that_are_still_being_worked_out_are_told_and_words_find_all_the_same(
    library,
):
    one = library.put("kettle one")
    library.put("kettle two")
    await library.ask("kettle")
    (space,) = library.index.matrices
    library.index.matrices[space].retire(library.index.columns.rows_of(one))
    answer = await library.recaller.search(library.asked("kettle one"))
    assert answer.degraded == {"vector": "1 of 2 passages have no vector yet"}
    assert answer.hits[0].summary.id == one


async def test_a_page_far_down_is_the_same_as_if_everything_had_been_looked_at(library):
    for number in range(60):
        library.put(
            f"kettle {number}",
            "kettle",
            days_ago=number,
            episode=f"e{number // 9}",
            session="s",
        )
    for offset in (0, 5, 20, 40):
        plain = await library.ids("kettle", k=5, offset=offset)
        told = await library.ids("kettle", k=5, offset=offset, explain=True)
        assert plain == told
