import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.recall.prompt_gate import keep_relevant, keep_relevant_hits
from memd.recall.types import Answer, Hit, RelevanceGate
from tests.factories import make_summary
from tests.indexed_vault import IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


def hit(score, coverage=1.0, **more):
    summary = make_summary(id=more.pop("id", 1))
    return Hit(summary, "p", None, "", score, (), (), coverage=coverage, **more)


def scores(hits, *, floor=0.3, ratio=0.5, limit=10):
    return [one.score for one in keep_relevant_hits(hits, RelevanceGate(floor, ratio), limit)]


def test_what_is_within_a_ratio_of_the_best_is_kept():
    assert scores([hit(2.0), hit(1.0), hit(0.99)]) == [2.0, 1.0]
    assert scores([hit(2.0), hit(1.9), hit(1.8)], limit=2) == [2.0, 1.9]
    assert scores([hit(2.0), hit(1.0)], ratio=1.0) == [2.0]
    assert scores([hit(2.0), hit(0.0)], ratio=0.0) == [2.0, 0.0]


def test_nothing_is_kept_where_even_the_best_covers_too_little():
    assert scores([hit(9.0, 0.29), hit(8.0, 0.1)]) == []
    assert scores([hit(9.0, 0.3), hit(8.0, 0.1)]) == [9.0, 8.0]
    assert scores([hit(9.0, None)]) == []
    assert scores([hit(9.0, None)], floor=0.0) == [9.0]
    assert scores([]) == []


def test_a_strong_hit_that_is_far_behind_does_not_save_a_weak_best_one():
    assert scores([hit(9.0, 0.1), hit(1.0, 0.9)]) == []


def test_a_hit_by_topic_key_was_asked_for_by_name():
    assert scores([hit(1.0, 0.0, topic_rank=1)], floor=1.0) == [1.0]


def test_below_zero_the_distance_counts_alike():
    assert scores([hit(-1.0), hit(-1.5), hit(-1.51)]) == [-1.0, -1.5]


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(0, 1)), max_size=8),
    st.floats(0, 1), st.floats(0, 1), st.integers(0, 9),
)  # fmt: skip
def test_what_is_kept_is_a_beginning_of_what_was_found(found, floor, ratio, limit):
    hits = [hit(score, share) for score, share in sorted(found, reverse=True)]
    kept = keep_relevant_hits(hits, RelevanceGate(floor, ratio), limit)
    assert kept == hits[: len(kept)]
    assert len(kept) <= limit


def test_what_was_left_out_is_counted():
    answer = Answer(
        (hit(2.0, id=1), hit(0.1, id=2)), "memd", None, 0.0, suppressed={"expired": 1}
    )
    found = keep_relevant(answer, RelevanceGate(0.3, 0.5), 5)
    assert [one.summary.id for one in found.hits] == [1]
    assert found.suppressed == {"expired": 1, "weak": 1}
    assert keep_relevant(found, RelevanceGate(0.3, 0.5), 5) is found


async def test_a_question_that_the_vault_knows_is_answered_and_small_talk_is_not(library):
    wanted = library.put("Sessions live in Redis", "Three machines share them.")
    for number in range(9):
        library.put(f"kettle {number}", "thanks, that looks good to me")
    asked = {"relevance_gate": RelevanceGate(), "explain": True}
    assert [
        h.summary.id for h in (await library.ask("where do sessions live", **asked)).hits
    ] == [wanted]
    answer = await library.ask("thanks, please tidy up the zebra crossing tomorrow", **asked)
    assert answer.hits == ()
    assert answer.suppressed["weak"] > 0
    assert answer.trace[0].verdict == "weak: even the best covers too little"
    assert "hit" not in {one.verdict for one in answer.trace}


@pytest.mark.parametrize("profile", ["memd", "siftcoder", "covalence", "clawmem", "memu"])
async def test_coverage_does_not_depend_on_the_profile(library, profile):
    library.put("Sessions live in Redis")
    library.put("Redis")
    answer = await library.ask(
        "redis sessions", profile=profile, relevance_gate=RelevanceGate(0.0, 0.0)
    )
    shares = {hit.summary.id: hit.coverage for hit in answer.hits}
    assert shares[1] == pytest.approx(1.0)
    # as if of 50 memories 2 had redis, 1 had sessions: ln(1 + 48.5/2.5), ln(1 + 49.5/1.5)
    assert shares[2] == pytest.approx(3.0155 / (3.0155 + 3.5264), abs=1e-3)


async def test_a_long_text_is_measured_by_its_eight_rarest_words(library):
    library.put("alpha bravo charlie delta echo foxtrot golf hotel")
    words = " ".join(f"unheard{chr(97 + i)}" for i in range(30))
    asked = {"relevance_gate": RelevanceGate(0.0, 0.0)}
    (short,) = (await library.ask("alpha bravo charlie delta", **asked)).hits
    (long,) = (await library.ask(f"alpha bravo charlie delta {words}", **asked)).hits
    assert short.coverage == pytest.approx(1.0)
    # as if of 50: four words of idf ln(1 + 49.5/1.5) against eight of ln(1 + 50.5/0.5)
    assert long.coverage == pytest.approx(4 * 3.5264 / (8 * 4.6250), abs=1e-3)


async def test_a_young_vault_is_not_silenced_by_one_word_that_it_does_not_know(library):
    library.put("Chose SQLite over Redis", "One file is enough.")
    library.put("The linter runs first")
    library.put("Redis is down on Sundays")
    answer = await library.ask(
        "why did we choose sqlite over redis", relevance_gate=RelevanceGate(0.4, 0.5)
    )
    assert answer.hits[0].summary.title == "Chose SQLite over Redis"
