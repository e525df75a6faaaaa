import pytest

from memd.distill import rewriting
from memd.distill.parse import Written
from memd.distill.rewriting import DAY_MS, Ledger
from memd.store import books, switches, writings
from tests.distill.written import Desk
from tests.make import AT, make_draft, make_summary

IDLE_MS = 600_000


@pytest.fixture
def desk(db, clock):
    return Desk(db, clock)


async def look(desk, **failures):
    return await desk.db.read(
        lambda tx: rewriting.look(tx, desk.clock(), IDLE_MS, failures.get("failures", {}))
    )


async def next_id(desk, **failures):
    found = (await look(desk, **failures)).turn
    return found and found.id


async def test_the_newest_turn_comes_first_and_one_that_failed_later(desk):
    old, new = [
        (await desk.turn(name, f"{name}: why is login slow?")).id for name in ("a", "b")
    ]
    assert await next_id(desk) == new
    assert await next_id(desk, failures={new: 1}) == old
    assert (await look(desk)).waiting == 2


async def test_a_turn_of_long_ago_is_left_as_it_is(desk):
    turn = await desk.turn()
    desk.clock.now = turn.at + DAY_MS
    assert await next_id(desk) == turn.id
    desk.clock.advance(ms=1)
    assert await next_id(desk) is None


async def test_a_turn_is_written_up_when_it_is_over(desk):
    turn = await desk.turn(stop=False)
    assert await next_id(desk) is None
    desk.clock.advance(ms=IDLE_MS)
    assert await next_id(desk) == turn.id


@pytest.mark.parametrize("where", ["prompt", "answer"])
async def test_a_turn_with_anything_private_in_it_is_never_shown(desk, where):
    said = {where: "Why does <private>the merger</private> login answer 500 in auth.py today?"}
    turn = await desk.turn(**said)
    assert "merger" not in turn.title + turn.body
    assert await next_id(desk) is None


async def test_a_turn_of_a_place_that_is_switched_off_is_never_shown(desk):
    turn = await desk.turn()
    await desk.db.write(lambda tx: switches.put(tx, switches.SESSION, "s1", False, True, 1))
    assert await next_id(desk) is None
    await desk.db.write(lambda tx: switches.drop(tx, switches.SESSION, "s1"))
    assert await next_id(desk) == turn.id


async def test_a_turn_that_was_tried_is_tried_again_only_when_it_was_revised(desk):
    turn = await desk.turn()
    await desk.db.write(lambda tx: rewriting.leave(tx, turn, desk.clock()))
    assert await next_id(desk) is None
    await desk.turn(answer="Then config.py was wrong too, and login answers 401 at last.")
    assert await next_id(desk) is None  # the key is the same: nothing new was said
    await desk.happens(
        "t1", tool_name="Edit", tool_input={"file_path": "/home/dev/ledger/auth.py",
                                            "old_string": "a", "new_string": "b"},
    )  # fmt: skip
    assert await next_id(desk) == turn.id


async def test_the_ledger_forgets_turns_that_are_no_longer_open(desk):
    turn = await desk.turn()
    await desk.db.write(lambda tx: rewriting.leave(tx, turn, desk.clock()))
    other = await desk.turn("t2", "Why is the login slow?")
    kept = await desk.db.write(lambda tx: rewriting.leave(tx, other, desk.clock() + DAY_MS - 5))
    assert kept.tried == {other.id: 1}


async def test_what_is_written_stands_above_the_rules_own_words(desk):
    turn = await desk.turn()
    written = Written("Login answers 401", ("decode_token expects three parts.",))
    assert await desk.db.write(lambda tx: rewriting.put(tx, turn, written, "m", desk.clock()))
    now = await desk.get(turn.id)
    assert now.title == "Login answers 401"
    assert now.body == f"Learnt:\n- decode_token expects three parts.\n\n{turn.body}"
    assert now.quality >= turn.quality
    assert not await desk.db.write(lambda tx: rewriting.put(tx, turn, written, "m", 1))


def spend(db, limit, now):
    return db.write_now(lambda tx: rewriting.spend(tx, limit, now))


def test_a_day_has_so_many_replies_and_the_next_one_as_many_again(db):
    assert [bool(spend(db, 2, AT)) for _ in range(3)] == [True, True, False]
    assert db.write_now(lambda tx: rewriting.give_back(tx, AT)).calls == 1
    assert spend(db, 2, AT).calls == 2
    assert spend(db, 2, AT + DAY_MS).calls == 1
    assert spend(db, 0, AT + DAY_MS) is None


@pytest.mark.parametrize("note", ["", "[1]", '{"tried": 3}', '{"day": "x"}', "{"])
def test_a_ledger_that_cannot_be_read_is_a_new_one(db, note):
    db.write_now(lambda tx: books.write_note(tx, "writer", note))
    assert db.read_now(rewriting.ledger) == Ledger()


def test_a_write_up_stands_as_long_as_the_rules_say_the_same():
    rule = writings.BY_MODEL + "m"
    known = make_summary("Better", "Learnt:\n- x\n\nA body.", rule=rule)
    assert rewriting.stands(known, make_draft(body="A body."))
    assert not rewriting.stands(known, make_draft(body="body."))
    assert not rewriting.stands(known, make_draft(body="A body.", files=("a.py",)))
    assert not rewriting.stands(make_summary(body="A body."), make_draft(body="A body."))
