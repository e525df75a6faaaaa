import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.models import Kind
from memd.recall.types import ScorePart, apply_parts
from memd.store.database import open_database
from tests.indexed_vault import IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_asking_for_the_latest_lets_recency_lead_and_says_so(library):
    library.put("kettle decision", "kettle kettle decision", days_ago=300)
    new = library.put("kettle", "we talked about it", days_ago=0.1)
    answer = await library.ask("latest kettle decision")
    assert answer.hits[0].summary.id == new
    assert "recency leads" in answer.notes[0]


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


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    words=st.lists(
        st.sampled_from(["kettle", "tea", "harbour", "session", "redis", "limit", "login"]),
        min_size=1,
        max_size=5,
    ),
    profile=st.sampled_from(["memd", "siftcoder"]),
)
async def test_every_score_is_the_sum_of_its_parts(tmp_path_factory, words, profile):
    with open_database(str(tmp_path_factory.mktemp("v") / "v.db"), 1) as db:
        library = IndexedVault(db)
        for i, text in enumerate(
            ["tea kettle", "harbour session", "redis session limit", "login limit tea"]
        ):
            library.put(text, f"{text} again", days_ago=i * 3, session="s", kind=list(Kind)[i])
        answer = await library.ask(" ".join(words), profile=profile, explain=True)
        for hit in answer.hits:
            assert apply_parts(hit.parts) == hit.score
        scores = [t.score for t in answer.trace if t.verdict == "hit"]
        assert scores == sorted(scores, reverse=True) or profile == "memd"


async def test_having_more_of_what_was_asked_counts_beyond_the_words_themselves(library):
    most = library.put("kettle colour", "teal it is, says the harbour master")
    library.put("kettle kettle kettle", "kettle kettle kettle kettle")
    answer = await library.ask("kettle colour harbour", explain=True)
    parts = {t.summary_id: {p.name: p.value for p in t.parts} for t in answer.trace}
    assert answer.hits[0].summary.id == most
    # all three words stand there: weight 0.6 times the square of 1
    assert parts[most]["coverage"] == pytest.approx(0.6)


async def test_a_factor_with_a_weight_leaves_the_rest_of_the_score_alone(library):
    library.put("kettle", days_ago=365)
    (hit,) = (await library.ask("kettle")).hits
    # a year old: 1 - 0.45 + 0.45 * 1/(1 + 365/365) = 0.775
    assert hit.parts[-1] == ScorePart("recency", pytest.approx(0.775), "*")


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
