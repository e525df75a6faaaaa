import anyio

from memd.serve.inflight import InFlight


async def test_who_finds_no_room_waits_until_there_is():
    flight = InFlight(2)
    order = []

    async def enter(name):
        await flight.enter()
        order.append(name)

    async with anyio.create_task_group() as tasks:
        for name in ("a", "b", "c"):
            tasks.start_soon(enter, name)
        await anyio.wait_all_tasks_blocked()
        assert order == ["a", "b"]
        flight.leave()
    assert order == ["a", "b", "c"]
    assert flight.count == 2


async def test_empty_is_when_every_one_has_ended():
    flight = InFlight(5)
    await flight.empty()
    for _ in range(3):
        await flight.enter()
    seen = []

    async def wait():
        await flight.empty()
        seen.append(flight.count)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        for _ in range(3):
            await anyio.wait_all_tasks_blocked()
            assert seen == []
            flight.leave()
    assert seen == [0]
