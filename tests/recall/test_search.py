import pytest

from memd.models import Kind
from memd.recall import Question
from memd.recall.hits import make_snippet
from memd.recall.query import parse_terms
from memd.recall.ranking import CandidateFacts
from memd.recall.search import read_facts
from memd.store import SummaryUse, erasure, links, usage
from tests.factories import supersede
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_a_superseded_memory_is_hidden_counted_and_shown_on_demand(library, db):
    old = library.put("Sessions live in SQLite", days_ago=2)
    new = library.put("Sessions live in Redis", days_ago=1)
    supersede(db, new, old)
    answer = await library.ask("where do sessions live")
    assert [hit.summary.id for hit in answer.hits] == [new]
    assert answer.suppressed == {"superseded": 1}
    assert set(await library.ids("sessions live", include_superseded=True)) == {old, new}


async def test_as_of_sees_what_was_not_superseded_yet(library, db):
    old = library.put("Sessions live in SQLite", days_ago=9)
    new = library.put("Sessions live in Redis", days_ago=1)
    supersede(db, new, old)
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
    assert other in await library.ids("kettle story", k=2)


async def test_pages_follow_each_other_without_gap_or_overlap(library):
    for i in range(7):
        library.put(f"kettle {i}", f"number {i}")
    whole = await library.ids("kettle number", k=7)
    assert (
        await library.ids("kettle number", k=3) + await library.ids("kettle number", k=4, offset=3)
        == whole
    )
    assert await library.ids("kettle", k=3, offset=100) == []


async def test_a_hit_that_repeats_a_turn_says_so_and_stands_where_its_score_puts_it(library):
    first = library.put("kettle kettle", "kettle", session="one", episode="e1")
    moved = library.put("kettle kettle", "kettle, again", session="one", episode="e1")
    library.put("other", "a kettle among many other words", session="two", episode="e2")
    answer = await library.ask("kettle", explain=True)
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    (repeated,) = [t for t in answer.trace if "diversity" in t.verdict]
    assert repeated.summary_id in {first, moved}
    assert (
        repeated.verdict
        == f"hit; diversity: same turn as #{({first, moved} - {repeated.summary_id}).pop()}"
    )


async def test_the_account_of_a_turn_hides_no_decision_of_the_same_turn(library):
    turn = {"session": "one", "episode": "e1"}
    account = library.put("kettle kettle", "kettle kettle", kind=Kind.CHANGE, **turn)
    decision = library.put("the kettle stays off", "", kind=Kind.DECISION, **turn)
    for number in range(5):
        library.put(
            f"number {number}", "a kettle among others", session=f"s{number}", episode=f"{number}"
        )
    assert set(await library.ids("kettle", k=2)) == {account, decision}


async def test_an_explained_answer_shows_every_candidate_and_why_it_was_not_chosen(library):
    for i in range(8):
        library.put(f"kettle {i}", "kettle " * i)
    answer = await library.ask("kettle", explain=True, k=2)
    assert [t.verdict for t in answer.trace][:3] == ["hit", "hit", "rank 3"]
    assert len(answer.trace) == 8
    assert answer.trace[0].terms == ("kettl",)
    assert answer.trace[0].ranks["lexical"] == 1


async def test_missing_vectors_are_reported_and_words_still_find_the_memory(library):
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
            f"kettle {number}", "kettle", days_ago=number, episode=f"e{number // 9}", session="s"
        )
    for offset in (0, 5, 20, 40):
        plain = await library.ids("kettle", k=5, offset=offset)
        told = await library.ids("kettle", k=5, offset=offset, explain=True)
        assert plain == told


async def read_known_facts(library, ids, profile, **more):
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
    assert await read_known_facts(library, [one, two], "siftcoder") == CandidateFacts()
    assert await read_known_facts(library, [one, two], "memd") == CandidateFacts()
    memu = await read_known_facts(library, [one, two], "memu")
    assert memu == CandidateFacts(
        uses={one: SummaryUse(3, NOW)}, entities={one: frozenset({"decode_token"})}
    )
    clawmem = await read_known_facts(library, [one, two], "clawmem")
    assert clawmem == CandidateFacts(
        uses={one: SummaryUse(3, NOW)}, together={(one, two): 2}, confidences={one: 0.5, two: 0.5}
    )
    assert await read_known_facts(library, [], "memu") == CandidateFacts()


async def test_nothing_later_is_seen(library):
    one, two = library.put("kettle", days_ago=9), library.put("kettle teal", days_ago=9)
    library.db.write_now(
        lambda tx: usage.record_uses(
            tx, {one: SummaryUse(3, NOW), two: SummaryUse(1, NOW - 6 * DAY)}, {(one, two): 2}
        )
    )
    seen = await read_known_facts(library, [one, two], "clawmem", as_of=NOW - 5 * DAY)
    assert seen == CandidateFacts(
        uses={two: SummaryUse(1, NOW - 6 * DAY)}, confidences={one: 0.5, two: 0.5}
    )


async def test_a_failure_to_read_facts_is_named_and_leaves_no_facts(library):
    one = library.put("kettle")
    await library.ask("kettle")
    library.db.write_now(lambda tx: tx.execute("DROP TABLE entities"))
    seen = await read_known_facts(library, [one], "memu")
    assert "entities" in seen.failed
    assert not seen.uses


async def test_until_the_index_is_loaded_full_text_answers_and_says_so(library):
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
                tx, newer_id=newer_id, older_id=older_id, rule="test", cosine=None, guard="", at=NOW
            )

    library.db.write_now(supersede)
    then = NOW - DAY * 3 // 2
    assert await ask_while_loading(library, as_of=then) == [{older}, {older}]


async def test_every_word_may_be_asked_for_wherever_in_the_memory_it_stands(library):
    whole = library.put(
        "The kettle whistles",
        "It is made of copper. " + "Filler words stand here. " * 200 + "Bought in Gdańsk.",
    )
    part = library.put("The kettle is blue", "It is made of steel.")
    named = library.put("retry_limit of the kettle", "copper")
    assert set(await library.ids("kettle copper gdańsk", show_all=True)) >= {whole, part}
    assert await library.ids("kettle copper gdańsk", all_words=True) == [whole]
    assert set(await library.ids("copper kettle", all_words=True)) == {whole, named}
    assert await library.ids("retry limit kettle", all_words=True) == [named]
    assert await library.ids('"made of steel" kettle', all_words=True) == [part]
    assert await library.ids("kettel copper", all_words=True) == []  # nothing is corrected


async def test_the_lowest_score_may_be_asked_for_and_what_is_below_is_counted(library):
    best = library.put("Tea kettle whistle", "kettle")
    library.put(
        "The harbour master has a kettle", "and a boat, and a dog, and a long list of other things"
    )
    answer = await library.ask("tea kettle whistle", profile="siftcoder")
    high, low = (hit.score for hit in answer.hits)
    limited = await library.ask(
        "tea kettle whistle", profile="siftcoder", min_score=(high + low) / 2
    )
    assert [hit.summary.id for hit in limited.hits] == [best]
    assert limited.suppressed == {"score below": 1}
    nothing = await library.ask("tea kettle whistle", profile="siftcoder", min_score=high * 2)
    assert nothing.hits == ()
    assert nothing.verdict == "nothing"


async def test_who_shows_few_of_many_hits_may_have_their_passages_and_make_the_snippets(library):
    text = "Sessions live in Redis. It is in the same rack. Nothing else is there."
    library.put("Where sessions live", text)
    (hit,) = (await library.ask("sessions redis", whole_passages=True)).hits
    assert hit.snippet == text
    (short,) = (await library.ask("sessions redis")).hits
    assert make_snippet(hit.summary.title, hit.snippet, parse_terms("sessions redis")) == (
        short.snippet
    )
