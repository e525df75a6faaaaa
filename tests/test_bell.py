import anyio

from memd.bell import Bell


async def test_a_ring_before_the_sleep_is_not_lost():
    bell = Bell()
    bell.ring()
    with anyio.fail_after(60):
        assert await bell.wait()


async def test_a_ring_wakes_the_sleeper():
    bell = Bell()
    woken = []

    async def sleep():
        woken.append(await bell.wait())

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(sleep)
            await anyio.wait_all_tasks_blocked()
            bell.ring()
    assert woken == [True]


async def test_a_hundred_rings_wake_once():
    bell = Bell()
    for _ in range(100):
        bell.ring()
    assert await bell.wait(0.01)
    assert not await bell.wait(0.01)


async def test_an_unrung_bell_lets_the_sleeper_go_when_it_is_due():
    assert not await Bell().wait(0.01)


async def test_a_ring_just_after_a_timeout_wakes_the_next_sleep():
    bell = Bell()
    assert not await bell.wait(0.001)
    bell.ring()
    assert await bell.wait(0.001)


async def test_it_tells_that_somebody_rang_until_the_sleeper_wakes():
    bell = Bell()
    assert not bell.is_rung
    bell.ring()
    assert bell.is_rung
    await bell.wait()
    assert not bell.is_rung
