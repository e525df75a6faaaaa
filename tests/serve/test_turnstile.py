import anyio
import anyio.lowlevel
import pytest

from memd.serve.turnstile import Turnstile

ALICE, BOB = 1, 2


@pytest.fixture
def order():
    return []


@pytest.fixture
def wait(order):
    async def waiting(turnstile, name):
        await turnstile.turn()
        order.append(name)

    return waiting


async def test_nobody_waits_while_nothing_heavy_is_at_work(order, wait):
    turnstile = Turnstile()
    await wait(turnstile, "a")
    turnstile.begin(ALICE)
    turnstile.end(ALICE)
    await wait(turnstile, "b")
    assert order == ["a", "b"]


async def test_who_waits_goes_one_by_one_first_come_first_served(order, wait):
    turnstile = Turnstile(patience_s=10)

    async def work(name):
        await wait(turnstile, name)
        turnstile.begin(BOB)
        at_work.append(name)
        assert len(at_work) == 1
        await anyio.lowlevel.checkpoint()
        at_work.remove(name)
        turnstile.end(BOB)

    at_work = []
    turnstile.begin(ALICE)
    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(work, name)
        await anyio.wait_all_tasks_blocked()
        assert order == []
        turnstile.end(ALICE)
    assert order == ["a", "b", "c"]


async def test_the_first_in_line_does_not_wait_for_ever_nor_do_the_others_with_it(order, wait):
    turnstile = Turnstile(patience_s=0.02)
    turnstile.begin(ALICE)
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(wait, turnstile, name)
    assert order == ["a", "b", "c"]
    assert anyio.current_time() - began >= 3 * 0.02


async def test_who_gives_up_makes_room_for_the_next(order, wait):
    turnstile = Turnstile(patience_s=10)
    turnstile.begin(ALICE)
    async with anyio.create_task_group() as tasks:
        with anyio.move_on_after(0.01):
            await turnstile.turn()
        tasks.start_soon(wait, turnstile, "next")
        await anyio.wait_all_tasks_blocked()
        turnstile.end(ALICE)
    assert order == ["next"]


def test_it_knows_who_has_something_at_work():
    turnstile = Turnstile()
    turnstile.begin(ALICE)
    turnstile.begin(ALICE)
    turnstile.end(ALICE)
    assert turnstile.is_at_work(ALICE)
    assert not turnstile.is_at_work(BOB)
    turnstile.end(ALICE)
    assert not turnstile.is_at_work(ALICE)
