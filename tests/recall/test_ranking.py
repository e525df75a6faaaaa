import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.models import Kind
from memd.recall import ScorePart
from memd.recall.ranking import (
    CandidateFacts,
    RankingContext,
    Retrieved,
    RetrieverRanking,
    fuse_rankings,
    split_words_as_typed,
)
from memd.recall.retrievers import look_up_query
from memd.store import SummaryUse, summaries, usage
from tests.indexed_vault import DAY, NOW, IndexedVault
from tests.tables import every_row


def make_ranking(*pairs):
    return RetrieverRanking(
        np.array([c for c, _ in pairs], dtype=np.int64),
        np.array([s for _, s in pairs], dtype=np.float64),
    )


def test_reciprocal_rank_fusion_as_published():
    # candidate 0: ranks (1, 4) -> 1/61 + 1/64 = 0.03202; candidate 1: ranks (12, 1) -> 1/72 + 1/61 = 0.03028
    lexical = make_ranking((0, 9), *((i, 8.0 - i / 10) for i in range(2, 12)), (1, 1))
    vector = make_ranking((1, 0.9), (12, 0.8), (13, 0.7), (0, 0.6))
    added = fuse_rankings(
        {"lexical": lexical, "vector": vector},
        {"lexical": 1, "vector": 1},
        fusion="rrf",
        rrf_k=60,
        count=14,
    )
    total = added["lexical"] + added["vector"]
    assert total[:2] == pytest.approx([0.03202, 0.03028], abs=1e-5)


def test_a_retriever_adds_nothing_to_a_candidate_that_it_did_not_return():
    added = fuse_rankings(
        {"lexical": make_ranking((1, 5.0))}, {"lexical": 1}, fusion="rrf", rrf_k=60, count=2
    )
    assert added["lexical"].tolist() == [0, 1 / 61]


def test_memus_fusion_squares_the_cosine_and_ranks_the_words():
    # by meaning 0.7·0.8² = 0.448 and 0.7·0.5² = 0.175, below nought: 0; by words 0.3/(1 + 0.2·i), i from 0
    added = fuse_rankings(
        {
            "vector": make_ranking((1, 0.8), (0, 0.5), (2, -0.1)),
            "lexical": make_ranking((0, 7.0), (1, 3.0), (2, 1.0)),
        },
        {"vector": 0.7, "lexical": 0.3},
        fusion="squared",
        rrf_k=60,
        count=4,
    )
    assert added["vector"] == pytest.approx([0.175, 0.448, 0, 0])
    assert added["lexical"] == pytest.approx([0.3, 0.25, 0.3 / 1.4, 0])


@every_row("fusion", ["rrf", "squared"])
def test_equal_scores_empty_rankings_and_zero_weights_give_finite_scores(fusion):
    legs = {
        "lexical": make_ranking((0, 2.0), (1, 2.0)),
        "vector": make_ranking(),
        "topic": make_ranking((0, 1.0)),
    }
    added = fuse_rankings(legs, {"lexical": 1, "topic": 0}, fusion=fusion, rrf_k=60, count=3)
    assert all(np.isfinite(values).all() for values in added.values())
    assert not added["topic"].any()


def test_ranks_count_from_one_and_a_missing_candidate_has_none():
    r = make_ranking((2, 5.0), (0, 4.0))
    assert r.ranks(3).tolist() == [2, 0, 1]
    assert np.isnan(r.values(3)[1])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.sampled_from(["rrf", "squared"]))
def test_fusion_never_puts_a_lower_score_of_a_retriever_above_a_higher_one(scores, fusion):
    scores = sorted(scores, reverse=True)
    added = fuse_rankings(
        {"l": make_ranking(*enumerate(scores))},
        {"l": 1},
        fusion=fusion,
        rrf_k=60,
        count=len(scores),
    )["l"]
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(added))


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_asking_for_the_latest_lets_recency_lead_and_says_so(library):
    library.put("kettle decision", "kettle kettle decision", days_ago=300)
    new = library.put("kettle", "we talked about the decision", days_ago=0.1)
    assert (await library.ids("kettle decision"))[0] != new
    answer = await library.ask("latest kettle decision")
    assert answer.hits[0].summary.id == new
    assert "recency leads" in answer.notes[0]


async def test_asking_for_the_latest_does_not_lift_what_has_little_of_the_question(library):
    old = library.put("kettle colour teal", "the kettle is teal", days_ago=20)
    library.put("kettle", "something else", days_ago=0)
    assert (await library.ids("what colour is the kettle currently, teal?"))[0] == old


async def test_the_published_profile_keeps_its_decay(db):
    library = IndexedVault(db)
    old = library.put("kettle colour teal", "kettle colour teal", days_ago=30)
    new = library.put("kettle", "something else", days_ago=0)
    assert await library.ids("kettle colour teal", profile="siftcoder") == [new, old]
    assert await library.ids("kettle colour teal", profile="memd") == [old, new]
    hit = (await library.ask("kettle colour teal", profile="siftcoder")).hits[1]
    # first on both legs, thirty days old: (1/61 + 1/61) * exp(-30/7)
    assert hit.score == pytest.approx((1 / 61 + 1 / 61) * 0.013768, rel=1e-3)
    assert hit.parts[-1] == ScorePart("recency", pytest.approx(0.013768, rel=1e-3), "*")


async def test_having_more_of_what_was_asked_counts_beyond_one_word_said_often(library):
    most = library.put("kettle colour", "teal it is, says the harbour master")
    library.put("kettle kettle kettle", "kettle kettle kettle kettle")
    assert (await library.ids("kettle colour harbour"))[0] == most


async def test_a_long_memory_does_not_win_by_its_length(library):
    short = library.put("kettle", "the kettle is teal")
    talk = " ".join(f"word{n} said of the harbour" for n in range(80))
    long = library.put("harbour talk", f"the kettle, the kettle, a teal boat; {talk}")
    assert await library.ids("which colour is the kettle, teal", k=2) == [short, long]


async def test_a_factor_with_a_weight_leaves_the_rest_of_the_score_alone(library):
    library.put("kettle", days_ago=365)
    (hit,) = (await library.ask("kettle")).hits
    # a year old: 1 - 0.4 + 0.4 * 1/(1 + 365/365) = 0.8
    assert hit.parts[-1] == ScorePart("recency", pytest.approx(0.8), "*")


async def test_a_word_is_as_rare_as_it_is_where_the_question_looks(library):
    for i in range(20):
        library.put(f"kettle {i}", project="/a")
    for i in range(200):
        library.put(f"harbour {i}", project="/b")
    wanted = library.put("the colour of it", "teal", project="/a")
    project = library.db.read_now(
        lambda tx: tx.execute("SELECT id FROM projects WHERE key = '/a'").get
    )
    answer = await library.ask("kettle colour", project_ids=(project,))
    assert answer.hits[0].summary.id == wanted


@pytest.fixture
def signal_library(db):
    return IndexedVault(
        db,
        {
            "mine": {
                "legs": {"lexical": 1.0},
                "steps": [
                    {"signal": signal, "op": "*"}
                    for signal in ("significance", "reinforcement", "entity", "coactivation")
                ],
            }
        },
    )


async def signal_parts(signal_library, text):
    answer = await signal_library.ask(text, profile="mine")
    return {hit.summary.id: {p.name: p.value for p in hit.parts} for hit in answer.hits}


def test_the_words_of_a_question_are_taken_as_typed_for_the_title():
    assert split_words_as_typed('What is "roadmap 1.4"?') == ("what", "is", "roadmap", "1.4")
    assert split_words_as_typed(" ?! ") == ()


async def test_significance_depends_on_the_kind_and_pinned_is_core(signal_library):
    decision = signal_library.put("kettle", kind=Kind.DECISION)
    change = signal_library.put("kettle", kind=Kind.CHANGE)
    pinned = signal_library.put("kettle", kind=Kind.CHANGE)
    signal_library.db.write_now(lambda tx: summaries.pin_summary(tx, pinned, 1))
    found = await signal_parts(signal_library, "kettle")
    # 8, 3 and 10 of 10
    assert {n: p["significance"] for n, p in found.items()} == {
        decision: pytest.approx(0.8), change: pytest.approx(0.3), pinned: pytest.approx(1.0),
    }  # fmt: skip


async def test_saying_it_again_and_recalling_it_reinforce_alike(signal_library):
    said, recalled = signal_library.put("kettle"), signal_library.put("kettle")
    for _ in range(6):
        signal_library.db.write_now(lambda tx: summaries.strengthen_summary(tx, said, 1))
    signal_library.db.write_now(
        lambda tx: usage.record_uses(tx, {recalled: SummaryUse(6, NOW)}, {})
    )
    await signal_library.indexer.load()  # what is said again changes no text, and waits for a load
    found = await signal_parts(signal_library, "kettle")
    # log2(1 + 7) = 3, both
    assert [found[n]["reinforcement"] for n in (said, recalled)] == pytest.approx([3.0, 3.0])


async def test_an_entity_must_be_named_whole(signal_library):
    one = signal_library.put("kettle of Anna", "Anna Lindqvist approved it")
    assert (await signal_parts(signal_library, "kettle anna"))[one]["entity"] == 1.0
    assert (await signal_parts(signal_library, "kettle anna lindqvist"))[one][
        "entity"
    ] == pytest.approx(1.3)


async def test_only_what_is_outside_the_best_quarter_is_lifted(signal_library):
    ids = [signal_library.put("kettle", days_ago=day) for day in range(8)]
    # the best two of eight, by the legs; the third was returned once with each, the fourth with the fifth
    pairs = {(ids[0], ids[2]): 1, (ids[1], ids[2]): 1, (ids[3], ids[4]): 9, (ids[0], ids[1]): 9}
    signal_library.db.write_now(lambda tx: usage.record_uses(tx, {}, pairs))
    answer = await signal_library.ask("kettle", profile="mine", k=8)
    found = {
        h.summary.id: p.value for h in answer.hits for p in h.parts if p.name == "coactivation"
    }
    # 1 + min(2/10, 0.15) for the third
    assert [found[n] for n in ids] == pytest.approx([1, 1, 1.15, 1, 1, 1, 1, 1])


@pytest.fixture
async def context_library(db):
    context_library = IndexedVault(db)
    context_library.put("kettle", days_ago=2)
    context_library.put("teal", days_ago=-2)
    await context_library.ask("kettle")
    return context_library


async def make_context(context_library, lexical, **facts):
    parsed = await context_library.recaller._parse_question(context_library.asked("kettle"))
    query = look_up_query(context_library.index, parsed, [])
    none, scores = np.empty(0, np.int64), np.array(lexical)
    found = Retrieved(np.arange(2), scores, none, none, np.empty(0))
    return RankingContext(query, np.arange(2), found, np.zeros(2), CandidateFacts(**facts))


async def test_relevance_is_a_share_of_the_best(context_library):
    assert (await make_context(context_library, [4.0, 1.0])).relevance.tolist() == [1.0, 0.25]
    assert (await make_context(context_library, [0.0, 0.0])).relevance.tolist() == [0.0, 0.0]


async def test_a_memory_that_was_never_used_has_been_unused_without_end(context_library):
    use = SummaryUse(3, NOW - 5 * DAY)
    context = await make_context(context_library, [1.0, 1.0], uses={1: use})
    assert context.ids == [1, 2]
    assert context.used.tolist() == [3.0, 0.0]
    assert context.unused_days.tolist() == [5.0, np.inf]


async def test_the_neighbours_of_a_match_are_evidence_but_no_hit_without_a_match_of_its_own(
    library,
):
    asked = library.put("What colour is the kettle?", session="s1", days_ago=0.03)
    answer = library.put("It is a teal kettle, she said", session="s1", days_ago=0.02)
    library.put("Fine, thanks", session="s1", days_ago=0.01)
    apart = library.put("It is a teal kettle, she said", session="s9", days_ago=0.01)
    ids = await library.ids("colour of the kettle", legs=frozenset({"lexical"}))
    assert ids == [asked, answer, apart]


async def test_a_session_that_is_about_the_question_lifts_its_memories(library):
    library.put("kettle", session="s1", days_ago=3)
    about = library.put("teal is what she chose", "kettle colours", session="s1", days_ago=2)
    apart = library.put("teal is what she chose", "kettle colours", session="s2", days_ago=1)
    answer = await library.ask("kettle", explain=True)
    parts = {t.summary_id: {p.name: p.value for p in t.parts} for t in answer.trace}
    assert sum(parts[about].get(name, 0.0) for name in ("previous", "session")) > 0
    assert not {"previous", "next", "session"} & parts[apart].keys()
    assert "previous" not in parts[apart]


async def test_neighbours_that_may_not_be_seen_are_no_evidence(library):
    library.put("kettle question", session="s1", days_ago=1)
    library.put("answer kettle", session="s1", days_ago=2)
    answer = await library.ask("kettle", as_of=NOW - int(1.5 * DAY), explain=True)
    assert [{p.name for p in t.parts} & {"previous", "next"} for t in answer.trace] == [set()]
