import pytest

from memd.distill import writer as model_writer
from memd.distill.writer import DAY_MS, WriterBudget, WriterCost
from memd.store import ledger
from tests.factories import AT

CALL = WriterCost(calls=1, ms=1_500, characters_in=900, characters_out=80)
FAILURE = WriterCost(calls=1, failed=1, ms=500, characters_in=900)


def spend(db, limit, now):
    return db.write_now(lambda tx: model_writer.spend_call(tx, limit, now))


def add(db, cost, now, *, is_refunded=False):
    return db.write_now(lambda tx: model_writer.add_cost(tx, cost, now, is_refunded=is_refunded))


def read(db, now):
    return db.read_now(lambda tx: model_writer.read_budget(tx, now))


def test_a_day_has_so_many_calls_and_the_next_one_as_many_again(db):
    assert [bool(spend(db, 2, AT)) for _ in range(3)] == [True, True, False]
    assert add(db, FAILURE, AT, is_refunded=True).calls == 1
    assert spend(db, 2, AT).calls == 2
    assert spend(db, 2, AT + DAY_MS).calls == 1
    assert spend(db, 0, AT + DAY_MS) is None


def test_what_calls_cost_is_added_up_for_the_day_and_for_ever(db):
    add(db, CALL, AT)
    add(db, FAILURE, AT)
    both = WriterCost(calls=2, failed=1, ms=2_000, characters_in=1_800, characters_out=80)
    assert (read(db, AT).today, read(db, AT).ever) == (both, both)
    tomorrow = read(db, AT + DAY_MS)
    assert (tomorrow.today, tomorrow.ever) == (WriterCost(), both)


def test_a_budget_of_before_has_cost_nothing_that_is_known(db):
    old = f'{{"day":{AT // DAY_MS},"calls":7,"tried":{{"3":1}}}}'
    db.write_now(lambda tx: ledger.write_note(tx, "writer", old))
    assert read(db, AT) == WriterBudget(day=AT // DAY_MS, calls=7, tried={3: 1})


@pytest.mark.parametrize(
    "note", ["", "[1]", '{"tried": 3}', '{"day": "x"}', "{", '{"today": {"x": 1}}', '{"ever": 3}']
)
def test_a_budget_that_cannot_be_read_is_a_new_one(db, note):
    db.write_now(lambda tx: ledger.write_note(tx, "writer", note))
    assert read(db, 0) == WriterBudget()
