import numpy as np
import pytest

from memd.recall.rerank import focus_factors, matches_focus
from memd.recall.types import apply_parts
from tests.factories import make_summary
from tests.indexed_vault import IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


@pytest.mark.parametrize(
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
        title="Billing at the café",
        body="The monthly\nreports run.",
        files=("src/auth/tokens.py",),
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
