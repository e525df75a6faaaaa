"""The five published recipes whole, on a tiny library, against numbers worked out by hand.

The library: two memories, and the question `kettle colour teal`. The first has every word and the
same words as the question, so it is first on both legs; the second has one of them and is second.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.belief.supersede import relate
from memd.models import EdgeType, Kind, Tier
from memd.recall import apply_parts
from memd.recall.profiles import BUILT_IN
from memd.store import SummaryUse, summaries, usage
from memd.store.database import open_database
from tests.indexed_vault import DAY, NOW, IndexedVault

QUESTION = "kettle colour teal"
BOTH = frozenset({"lexical", "vector"})
NAMES = sorted(BUILT_IN)


@pytest.fixture
def library(db):
    return IndexedVault(db)


def pin(library, number):
    library.db.write_now(lambda tx: summaries.pin_summary(tx, number, 1))


def used(library, number, count, *, days_ago=0.0, pairs=()):
    use = SummaryUse(count, NOW - int(days_ago * DAY))
    library.db.write_now(lambda tx: usage.record_uses(tx, {number: use}, dict(pairs)))


def contradict(library, newer, older):
    library.db.write_now(lambda tx: relate(tx, newer, EdgeType.CONTRADICTS, older, "judged", NOW))


async def hits(library, profile, text=QUESTION, **more):
    answer = await library.ask(text, profile=profile, **more)
    return {hit.summary.id: hit for hit in answer.hits}


def two(library, *, first=None, second=None):
    return (
        library.put(QUESTION, **(first or {})),
        library.put("kettle", "something else", **(second or {})),
    )


# ── siftcoder ────────────────────────────────────────────────────────────────────────────────────


async def test_siftcoder_multiplies_by_its_decay(library):
    one, other = two(library, first={"days_ago": 1}, second={"days_ago": 30})
    found = await hits(library, "siftcoder")
    # (1/61 + 1/61) · exp(-1/7) = 0.0327869 · 0.8668779 = 0.0284222
    assert found[one].score == pytest.approx(0.0284222, abs=1e-7)
    # (1/62 + 1/62) · exp(-30/7) = 0.0322581 · 0.0137641 = 0.000444003
    assert found[other].score == pytest.approx(0.000444003, abs=1e-8)


async def test_siftcoder_with_one_retriever_has_only_its_share(library):
    one, _ = two(library)
    found = await hits(library, "siftcoder", legs=frozenset({"lexical"}))
    assert found[one].score == pytest.approx(1 / 61)  # age 0: exp(0) = 1


async def test_siftcoder_takes_the_future_for_now(library):
    one, _ = two(library, first={"days_ago": -3})
    assert (await hits(library, "siftcoder"))[one].score == pytest.approx(2 / 61)


# ── covalence ────────────────────────────────────────────────────────────────────────────────────


async def test_covalence_adds_up_ranks_tier_title_and_a_little_recency(library):
    one, other = two(library, first={"days_ago": 365})
    pin(library, other)  # its tier becomes core
    found = await hits(library, "covalence")
    # 0.9·(1/61 + 1/61 + 0.2/63 + 0.01) + 0.0033·1/(1+1)
    #   = 0.9·(0.0327869 + 0.0031746 + 0.01) + 0.00165 = 0.0413653 + 0.00165 = 0.0430153
    assert found[one].score == pytest.approx(0.0430153, abs=1e-7)
    # 0.9·(1/62 + 1/62 + 0.2/61) + 0.0033 = 0.9·(0.0322581 + 0.0032787) + 0.0033 = 0.0352831
    assert found[other].score == pytest.approx(0.0352831, abs=1e-7)


async def test_covalence_orders_tiers_core_file_then_the_rest(library):
    ids = [library.put("kettle", tier=tier) for tier in (Tier.FILE, Tier.AGENT, Tier.CAPTURED)]
    core = library.put("kettle")
    pin(library, core)
    found = await hits(library, "covalence", "kettle")
    tiers = [
        next(p.value for p in found[number].parts if p.name == "tier") for number in (core, *ids)
    ]
    # 0.9 · 0.2/(60 + 1, 2, 3, 3)
    assert tiers == pytest.approx([0.18 / 61, 0.18 / 62, 0.18 / 63, 0.18 / 63])


async def test_covalence_gives_its_bonus_only_for_all_words_as_typed(library):
    one = library.put("v1.4-ROADMAP", "where we go")
    found = await hits(library, "covalence", "roadmap 1.4")
    assert ("title_all", pytest.approx(0.009)) in [(p.name, p.value) for p in found[one].parts]
    found = await hits(library, "covalence", "what is roadmap 1.4")  # "what" is not in the title
    assert "title_all" not in [p.name for p in found[one].parts]


async def test_covalence_lets_a_word_in_the_title_weigh_five(library):
    # BM25 with k1 1.2, b 0.75; the title's frequency is 5: 5·2.2/(5 + 1.2·norm) beats 2·2.2/(2 + …)
    titled = library.put("kettle", "alpha beta gamma")
    bodied = library.put("alpha", "kettle kettle gamma")
    found = await hits(library, "covalence", "kettle", legs=frozenset({"lexical"}))
    assert (found[titled].lexical_rank, found[bodied].lexical_rank) == (1, 2)


# ── clawmem ──────────────────────────────────────────────────────────────────────────────────────


async def test_clawmem_composes_search_recency_and_confidence(library):
    long = (f"{QUESTION}. " * 50)[:1000]
    one = library.put(
        QUESTION, long, days_ago=1000, kind=Kind.DECISION, quality=1.0, confidence=0.8
    )
    other = library.put("kettle", days_ago=60)
    found = await hits(library, "clawmem")
    # search 0.5 · 1 (first on both); a decision never fades: 0.25 · 1; confidence begins at 0.5 whoever
    # says it: 0.25 · 0.5 -> 0.875
    # quality 0.7 + 0.6 = 1.3; 1000 characters: 1/(1 + 0.5·log2(2)) = 2/3 -> 0.875 · 1.3 · 2/3 = 0.758333
    assert found[one].score == pytest.approx(0.758333, abs=1e-6)
    # search 0.5 · (2/62)/(2/61) = 0.491935; a note of 60 days: 0.25 · 0.5; 0.25 · 0.5 -> 0.741935
    # quality 0.7 + 0.3 = 1; short: 1
    assert found[other].score == pytest.approx(0.741935, abs=1e-6)
    assert found[other].recency == pytest.approx(0.125)


async def test_clawmem_lowers_the_confidence_of_an_old_decision_that_a_new_one_contradicts(library):
    # "Starts at 0.5 for new documents … a new decision contradicting an old one, the old decision's confidence is lowered"
    old, new = two(library)
    contradict(library, new, old)
    found = await hits(library, "clawmem")
    parts = {p.name: p.value for p in found[old].parts}
    # each that contradicts it halves its odds: 0.5 -> 1/3, times 0.25
    assert parts["confidence"] == pytest.approx(0.25 / 3, abs=1e-6)


async def test_clawmem_caps_what_is_pinned_and_nothing_else(library):
    one = library.put(QUESTION, quality=1.0, confidence=1.0)
    other = library.put("kettle", "something else")
    pin(library, other)
    found = await hits(library, "clawmem")
    # (0.5 + 0.25 + 0.125) · 1.3 = 1.1375, above the cap, since it is not pinned
    assert found[one].score == pytest.approx(1.1375)
    assert "cap_pinned" not in [part.name for part in found[one].parts]
    # 0.491935 + 0.25 + 0.125 = 0.866935; + 0.3 = 1.166935 -> 1
    assert found[other].score == 1.0


async def test_clawmem_lets_use_stretch_a_half_life(library):
    one, other = two(library, first={"days_ago": 60}, second={"days_ago": 60})
    used(library, one, 4)
    used(library, other, 4, days_ago=45)
    found = await hits(library, "clawmem")
    # just used: half-life 60·(1 + 0.3·ln 5) = 60·1.482831 = 88.9699; 2^(-60/88.9699) = 0.626600
    assert found[one].recency == pytest.approx(0.25 * 0.626600, abs=1e-6)
    # 45 days ago, freshness 1/2: 60·(1 + 0.3·ln 3) = 60·1.329584; 2^(-1/1.329584) = 0.593735
    assert found[other].recency == pytest.approx(0.25 * 0.593735, abs=1e-6)


async def test_clawmem_lifts_what_is_used_with_the_best(library):
    one, other = two(library)
    used(library, one, 1, pairs=[((one, other), 1)])
    plain = 0.491935 + 0.25 + 0.125
    # the best quarter of two is one; the other was returned with it once: 1 + 1/10
    assert (await hits(library, "clawmem"))[other].score == pytest.approx(plain * 1.1, abs=1e-6)
    used(library, one, 1, pairs=[((one, other), 9)])
    found = await hits(library, "clawmem")
    assert found[other].score == pytest.approx(plain * 1.15, abs=1e-6)  # 1 + min(10/10, 0.15)
    assert found[one].parts[-1].value == 1.0


async def test_clawmem_weighs_otherwise_when_asked_for_the_latest(library):
    one = library.put("kettle", days_ago=60)
    found = await hits(library, "clawmem", "latest kettle", legs=frozenset({"lexical"}))
    # one leg: 0.1 · (1/61)/(2/61) = 0.05; 0.7 · 0.5 = 0.35; 0.2 · 0.5 = 0.1
    assert found[one].score == pytest.approx(0.5)


async def test_clawmem_demotes_what_repeats_a_better_one(library):
    body = "the kettle in the kitchen is teal and was bought in May"
    one = library.put("kettle teal", body)
    again = library.put("kettle teal", body, days_ago=1)
    other = library.put("kettle", "another one, for the harbour master", days_ago=50)
    assert await library.ids("kettle teal", profile="clawmem") == [one, other, again]


# ── memoturn ─────────────────────────────────────────────────────────────────────────────────────


async def test_memoturn_counts_a_topic_twice(library):
    one, other = two(library)
    topic = library.put("Use oolong", topic_key="tea.kind")
    found = await hits(library, "memoturn", topic_key="tea.kind")
    assert found[one].score == pytest.approx(2 / 61)
    assert found[other].score == pytest.approx(2 / 62)
    assert found[topic].topic_rank == 1
    # 2/(60+1), and 1/(60+rank) if the vector leg brought it too
    rank = found[topic].vector_rank
    assert found[topic].score == pytest.approx(2 / 61 + (1 / (60 + rank) if rank else 0))


async def test_memoturn_breaks_ties_by_recency_and_names_its_channels(db):
    # The floor keeps what the hashes have in common by chance out of the vector channel.
    library = IndexedVault(db, {"mine": {"base": "memoturn", "cosine_floor": 0.2}})
    topic = library.put("zygomorphic", topic_key="tea.kind", days_ago=2)
    words = library.put("kettle", days_ago=1)
    found = await hits(library, "mine", "kettle", topic_key="tea.kind")
    # 2/61 by topic, and 1/61 + 1/61 by both other channels: the same number, so the newer is first
    assert found[topic].channels == ("topic",)
    assert found[words].channels == ("lexical", "vector")
    assert found[topic].score == found[words].score == 2 / 61
    assert list(found) == [words, topic]


async def test_memoturn_finds_tasks_by_words_alone(library):
    note = library.put("Descale the kettle", kind=Kind.NOTE, days_ago=1)
    task = library.put("Descale the kettle", kind=Kind.TASK)
    found = await hits(library, "memoturn", "descale kettle")
    assert found[note].channels == ("lexical", "vector")
    assert found[task].channels == ("lexical",)


async def test_memoturn_shows_eight_and_the_question_may_ask_for_fewer(library):
    for i in range(12):
        library.put(f"kettle {i}", f"number {i}")
    assert len(await library.ids("kettle", profile="memoturn")) == 8
    assert len(await library.ids("kettle", profile="memoturn", k=3)) == 3
    assert len(await library.ids("kettle", profile="memd")) == 5


# ── memu ─────────────────────────────────────────────────────────────────────────────────────────


async def test_memu_squares_the_cosine_and_adds_significance(library):
    one, other = two(
        library, first={"kind": Kind.DECISION, "days_ago": 30}, second={"kind": Kind.CHANGE}
    )
    found = await hits(library, "memu")
    # words 0.3; cosine 1: 0.7; a decision is important: 0.1 · 0.8 -> 1.08
    # 30 days: 1 - 0.1 + 0.1 · 0.5 = 0.95; said once: log2(2) = 1; no entity: 1 -> 1.026
    assert found[one].score == pytest.approx(1.026, abs=1e-3)
    # words 0.3/(1 + 0.2) = 0.25; 0.7 · cosine²; a change is routine: 0.03; today: 1
    cosine = found[other].cosine
    assert found[other].score == pytest.approx(0.25 + 0.7 * cosine**2 + 0.03)


async def test_memu_is_reinforced_by_repetition_and_by_recall(library):
    one, _ = two(library)
    plain = (await hits(library, "memu"))[one].score
    used(library, one, 2)
    # said once and recalled twice: log2(1 + 3) = 2
    assert (await hits(library, "memu"))[one].score == pytest.approx(2 * plain)


async def test_memu_lifts_what_names_an_entity_of_the_question(library):
    one = library.put("a fix", "`decode_token` raised")
    other = library.put("a fix", "decode the token")
    found = await hits(library, "memu", "decode_token raised")
    factors = {n: next(p.value for p in found[n].parts if p.name == "entity") for n in found}
    assert factors == {one: pytest.approx(1.3), other: pytest.approx(1.0)}


async def test_memu_falls_back_to_its_fused_order_when_the_second_stage_fails(library):
    one, other = two(library, second={"kind": Kind.DECISION})
    await library.ask(QUESTION)
    library.db.write_now(lambda tx: tx.execute("DROP TABLE uses"))
    answer = await library.ask(QUESTION, profile="memu")
    assert [hit.summary.id for hit in answer.hits] == [one, other]
    assert "uses" in answer.degraded["rerank"]
    assert {p.name for hit in answer.hits for p in hit.parts} == {
        "lexical", "vector", "significance",
    }  # fmt: skip


# ── all of them ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
async def test_every_profile_answers_with_any_retriever_missing_and_an_empty_title(library, name):
    number = library.put("", "kettle teal", days_ago=-1)
    for legs in ({"lexical"}, {"vector"}, BOTH):
        found = await hits(library, name, "kettle", legs=frozenset(legs))
        assert found[number].score > 0


@pytest.mark.parametrize("name", NAMES)
async def test_every_profile_answers_with_nothing_when_there_is_nothing(library, name):
    assert await hits(library, name, "kettle") == {}


@pytest.mark.parametrize("name", NAMES)
async def test_ties_go_to_the_newer_and_then_to_the_higher_id(library, name):
    first = library.put("kettle", days_ago=5, kind=Kind.DECISION)
    second = library.put("kettle", days_ago=5, kind=Kind.DECISION)
    ids = await library.ids("kettle", profile=name, legs=frozenset({"lexical"}))
    assert ids == [second, first]


@settings(max_examples=15)
@given(
    words=st.lists(
        st.sampled_from(["kettle", "latest", "harbour", "decode_token", "redis", "login.py"]),
        min_size=1,
        max_size=5,
    ),
    name=st.sampled_from(NAMES),
    pinned=st.booleans(),
    counted=st.integers(0, 50),
)
async def test_every_score_is_made_of_its_parts(tmp_path_factory, words, name, pinned, counted):
    with open_database(str(tmp_path_factory.mktemp("v") / "v.db"), 1) as db:
        library = IndexedVault(db)
        texts = ("tea kettle", "harbour `decode_token`", "redis in app/login.py", "login kettle")
        for i, text in enumerate(texts):
            library.put(text, f"{text} " * i * 40, days_ago=i * 9, session="s", kind=list(Kind)[i])
        if pinned:
            pin(library, 2)
        used(library, 1, counted, pairs=[((1, 2), counted), ((2, 3), 1)])
        answer = await library.ask(" ".join(words), profile=name, explain=True)
        for hit in answer.hits:
            assert apply_parts(hit.parts) == hit.score
        for traced in answer.trace:
            assert apply_parts(traced.parts) == traced.score
        if name == "siftcoder":
            scores = [traced.score for traced in answer.trace if traced.verdict == "hit"]
            assert scores == sorted(scores, reverse=True)
