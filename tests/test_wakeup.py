import anyio

from memd.wakeup import AutoResetEvent


async def test_a_ring_before_the_sleep_is_not_lost():
    event = AutoResetEvent()
    event.set()
    with anyio.fail_after(60):
        assert await event.wait()


async def test_a_ring_wakes_the_sleeper():
    event = AutoResetEvent()
    woken = []

    async def sleep():
        woken.append(await event.wait())

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(sleep)
            await anyio.wait_all_tasks_blocked()
            event.set()
    assert woken == [True]


async def test_a_hundred_rings_wake_once():
    event = AutoResetEvent()
    for _ in range(100):
        event.set()
    assert await event.wait(0.01)
    assert not await event.wait(0.01)


async def test_a_wait_without_a_set_ends_after_its_timeout():
    assert not await AutoResetEvent().wait(0.01)


async def test_a_ring_just_after_a_timeout_wakes_the_next_sleep():
    event = AutoResetEvent()
    assert not await event.wait(0.001)
    event.set()
    assert await event.wait(0.001)


async def test_it_stays_set_until_the_waiting_task_wakes():
    event = AutoResetEvent()
    assert not event.is_set
    event.set()
    assert event.is_set
    await event.wait()
    assert not event.is_set
