import anyio

from memd.serve.inflight import LIGHT_MAX, InFlight
from memd.serve.turnstile import Turnstile


def flight(limit=5, turnstile=None, client=1):
    return InFlight(limit, turnstile or Turnstile(patience_s=10), client)


async def enter(one, *, is_light=False):
    await one.turn(is_light=is_light)
    one.enter(is_light=is_light)


async def test_who_finds_no_room_waits_until_there_is():
    one = flight(2, Turnstile(patience_s=0.001))
    order = []

    async def come(name):
        await enter(one)
        order.append(name)

    async with anyio.create_task_group() as tasks:
        await come("a")
        await come("b")
        tasks.start_soon(come, "c")
        await anyio.wait_all_tasks_blocked()
        assert order == ["a", "b"]
        one.leave()
    assert order == ["a", "b", "c"]
    assert one.count == 2


async def test_a_second_call_waits_for_what_is_at_work_and_a_first_one_does_not():
    turnstile = Turnstile(patience_s=10)
    greedy, quiet = flight(5, turnstile, client=1), flight(5, turnstile, client=2)
    order = []

    async def come_again():
        await enter(greedy)
        order.append("again")

    await enter(greedy)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(come_again)
        await anyio.wait_all_tasks_blocked()
        await enter(quiet)
        greedy.leave()
        await anyio.wait_all_tasks_blocked()
        assert order == []
        quiet.leave()
    assert order == ["again"]


async def test_another_connection_of_the_same_client_is_no_way_around():
    turnstile = Turnstile(patience_s=10)
    one, other = flight(5, turnstile), flight(5, turnstile)
    await enter(one)
    with anyio.move_on_after(0.01) as waited:
        await enter(other)
    assert waited.cancelled_caught
    await enter(other, is_light=True)
    assert other.count == 1


async def test_light_calls_are_at_work_together_up_to_a_limit():
    one = flight(128)
    for _ in range(LIGHT_MAX):
        await enter(one, is_light=True)
    with anyio.move_on_after(0.01) as waited:
        await enter(one, is_light=True)
    assert waited.cancelled_caught
    assert one.count == LIGHT_MAX


async def test_what_a_lost_connection_had_at_work_holds_nobody_up():
    turnstile = Turnstile(patience_s=10)
    lost, other = flight(5, turnstile), flight(5, turnstile, client=2)
    await enter(lost)
    await enter(other)
    lost.abandon()
    other.leave()
    with anyio.fail_after(60):
        await turnstile.turn()
    assert lost.count == 0


async def test_empty_is_when_every_one_has_ended():
    one = flight(5, Turnstile(patience_s=0.001))
    await one.empty()
    for _ in range(3):
        await enter(one)
    seen = []

    async def wait():
        await one.empty()
        seen.append(one.count)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        for _ in range(3):
            await anyio.wait_all_tasks_blocked()
            assert seen == []
            one.leave()
    assert seen == [0]
