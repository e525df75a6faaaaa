import math

import anyio
import numpy as np
import pytest

from memd.embeddings.providers import OllamaChat
from memd.errors import EngineFailed
from memd.recall import apply_parts
from memd.recall.precedence import focus_factors, matches_focus, rerank_by_terms
from memd.recall.profiles import RerankSettings
from tests.factories import make_summary
from tests.fakes.ollama import Ollama
from tests.indexed_vault import IndexedVault
from tests.tables import every_row

OWN = {
    "terms": {"base": "siftcoder", "rerank": "terms"},
    "near": {"base": "memd", "rerank": "terms"},
    "model": {"base": "memd", "rerank": "model"},
}


@pytest.fixture
def library(db):
    return IndexedVault(db, OWN)


class Rater:
    """Gives the scores it was told to, or fails."""

    def __init__(self, scores=None, failure=None):
        self.scores, self.failure, self.asked = scores, failure, []

    async def rerank(self, query, texts):
        self.asked.append((query, texts))
        if self.failure:
            raise self.failure
        if self.scores is None:
            await anyio.sleep_forever()
        return self.scores


def test_the_formula_by_hand():
    found = rerank_by_terms(
        "red kettle",
        {"red": 2.0, "kettl": 0.5},
        ["A red kettle", "the kettle kettle x"],
        RerankSettings(),
    )
    values = {name: column.tolist() for name, _, column in found}
    assert values["rerank"] == [0.5, 0.5]
    # 1/3 · 2 + 1/3 · 0.5 = 0.8333; 2/4 · 0.5 = 0.25
    assert values["terms"] == pytest.approx([0.8333, 0.25], abs=1e-4)
    assert values["matched"] == pytest.approx([0.2, 0.1])
    assert values["phrase"] == [0.4, 0.0]
    assert values["brevity"] == pytest.approx([-0.01 * math.log(4), -0.01 * math.log(5)])


def test_a_question_below_four_characters_is_no_phrase_and_no_text_has_no_words():
    found = {
        name: column
        for name, _, column in rerank_by_terms("abc", {}, ["abc", ""], RerankSettings())
    }
    assert found["phrase"].tolist() == [0.0, 0.0]
    assert found["terms"].tolist() == [0.0, 0.0]
    assert rerank_by_terms("x", {}, [], RerankSettings())[0][2].tolist() == []


@pytest.mark.parametrize("profile", ["terms", "near"])
async def test_the_second_look_is_part_of_the_score(library, profile):
    library.put("Tea", "put the red one on the table next to the kettle, please", days_ago=1)
    wanted = library.put("Tea", "The red kettle is broken", days_ago=2)
    answer = await library.ask("red kettle", profile=profile, explain=True)
    assert answer.hits[0].summary.id == wanted
    assert {"rerank", "terms", "matched", "phrase", "brevity"} <= {
        p.name for p in answer.hits[0].parts
    }
    for one in answer.trace:
        assert one.score == pytest.approx(apply_parts(one.parts))


async def test_a_model_has_the_last_word_over_the_hits_it_was_shown(library):
    ids = [library.put(f"kettle {n}", "kettle", days_ago=n) for n in range(4)]
    plain = await library.ids("kettle", k=4)
    assert plain == ids
    rater = library.recaller._reranker = Rater([0.1, 0.9, 0.5, 0.7])
    answer = await library.ask("kettle", profile="model", k=2, explain=True)
    assert [h.summary.id for h in answer.hits] == [ids[1], ids[3]]
    assert [h.score for h in answer.hits] == [0.9, 0.7]
    assert [t.verdict for t in answer.trace] == ["hit", "hit", "rank 3", "rank 4"]
    assert all(t.score == pytest.approx(apply_parts(t.parts)) for t in answer.trace)
    assert rater.asked[0][1][0] == "kettle 0\nkettle"
    assert await library.ids("kettle", profile="model", k=2, offset=2) == [ids[2], ids[0]]


@pytest.mark.parametrize(
    ("rater", "why"),
    [
        (None, "no model"),
        (Rater(failure=EngineFailed("the model is away")), "away"),
        (Rater(), "longer than 0.01 s"),
        (Rater([1.0]), "cannot be read"),
        (Rater([math.nan, 1.0, 1.0]), "cannot be read"),
    ],
    ids=["none", "fails", "late", "too few", "no number"],
)
async def test_without_the_model_the_order_stays_and_the_answer_says_so(db, rater, why):
    library = IndexedVault(db, OWN, rerank_s=0.01)
    ids = [library.put(f"kettle {n}", "kettle", days_ago=n) for n in range(3)]
    library.recaller._reranker = rater
    answer = await library.ask("kettle", profile="model", k=2, explain=True)
    assert [h.summary.id for h in answer.hits] == ids[:2]
    assert why in answer.degraded["rerank"]
    assert [t.verdict for t in answer.trace] == ["hit", "hit", "rank 3"]


async def test_a_served_model_rates_the_hits_and_its_failure_is_reported(library):
    ids = [library.put(f"kettle {n}", "kettle", days_ago=n) for n in range(3)]
    with Ollama() as server:
        server.pull("rater")
        library.recaller._reranker = OllamaChat(server.engines(), "rater", 60)
        server.replies = ['{"scores": [1, 3, 2]}', '{"scores": [1]}']
        answer = await library.ask("kettle", profile="model")
        assert [h.summary.id for h in answer.hits] == [ids[1], ids[2], ids[0]]
        assert not answer.degraded
        answer = await library.ask("kettle", profile="model")
        assert [h.summary.id for h in answer.hits] == ids
        assert "one finite score for each of 3 texts" in answer.degraded["rerank"]
        server.models.clear()
        answer = await library.ask("kettle", profile="model")
        assert "ollama pull rater" in answer.degraded["rerank"]


async def test_a_profile_without_a_second_look_has_no_part_of_it(library):
    library.put("kettle")
    (hit,) = (await library.ask("kettle", profile="siftcoder")).hits
    assert not {"rerank", "terms"} & {part.name for part in hit.parts}
    assert np.isfinite(hit.score)


@every_row(
    ("pattern", "does"),
    [
        ("src/auth/*", True), ("auth/*.py", True), ("*.py", True), ("/src/auth/tokens.py", True),
        ("src/**", True), ("src/auth/", True), ("tokens.?y", True), ("SRC/Auth/*", True),
        ("auth/*.ts", False), ("th/*.py", False), ("lib/*", False),
        ("billing", True), ("report", True), ("monthly report", True), ("tokens.py", True),
        ("Café", True), ("ling", False), ("monthly billing", False), (" ", False), ("[", False),
    ],
)  # fmt: skip
def test_words_and_globs_fit_titles_bodies_and_files(pattern, does):
    summary = make_summary(
        title="Billing at the café", body="The monthly\nreports run.", files=("src/auth/tokens.py",)
    )
    assert matches_focus(summary, ["nothing-of-it", pattern]) is does


def test_what_fits_counts_more_also_where_scores_are_below_zero():
    assert focus_factors([True, False, True], np.array([1.0, 1.0, -7.0])).tolist() == [
        1.4,
        1.0,
        1 / 1.4,
    ]


async def test_what_is_in_focus_is_weighed_up_and_the_score_says_so(library):
    one = library.put("kettle timeouts", "the pump", files=("src/pump.py",), days_ago=1)
    two = library.put("kettle timeouts", "the heater", files=("src/heater.py",), days_ago=2)
    assert (await library.ids("kettle timeouts"))[0] == one
    answer = await library.ask("kettle timeouts", focus=("src/heater.py",), explain=True)
    first, second = answer.hits
    assert first.summary.id == two
    assert [(p.name, p.op, p.value) for p in first.parts][-1] == ("focus", "*", 1.4)
    assert first.score == pytest.approx(apply_parts(first.parts))
    plain = await library.ask("kettle timeouts")
    assert second.score == pytest.approx(plain.hits[0].score)
    assert answer.trace[0].parts == first.parts


@pytest.mark.parametrize("profile", ["memd", "siftcoder", "covalence", "clawmem", "memu"])
async def test_where_nothing_fits_everything_stays_as_it_is(library, profile):
    for number in range(4):
        library.put(f"kettle {number}", days_ago=number)
    plain = await library.ask("kettle", profile=profile)
    focused = await library.ask("kettle", profile=profile, focus=("zebra", "zoo/**"))
    assert [h.score for h in plain.hits] == [h.score for h in focused.hits]
