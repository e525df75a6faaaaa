"""What the user says in one session replaces what he said in another, from the prompt to what stands."""

import pytest

from memd.belief import rejections
from tests.distill.test_speech import Speaker
from tests.tables import read_tables

TABLES = read_tables("distill/reversed_orders")


@pytest.fixture
def desk(db, clock):
    return Speaker(db, clock)


@pytest.mark.parametrize(
    ("first", "then", "standing"), TABLES["the_newer_of_two_orders_on_one_thing_stands_alone"]
)
async def test_the_newer_of_two_orders_on_one_thing_stands_alone(desk, first, then, standing):
    await desk.says(first, name="t1")
    desk.clock.advance(s=3_600)
    found = await desk.says(then, name="t2")
    assert sorted(one.title for one in found) == standing


@pytest.mark.parametrize(
    ("rejected", "then", "is_learned"),
    TABLES["a_rule_that_was_rejected_is_not_learned_in_other_words_of_the_same_sense"],
)
async def test_a_rule_that_was_rejected_is_not_learned_in_other_words_of_the_same_sense(
    desk, rejected, then, is_learned
):
    (one,) = await desk.says(rejected, name="t1")
    await desk.db.write(lambda tx: rejections.reject(tx, one.id, desk.clock()))
    desk.clock.advance(s=3_600)
    found = await desk.says(then, name="t2")
    assert any(later.id != one.id and not later.rejected_at for later in found) is is_learned
