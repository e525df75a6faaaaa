import anyio
import anyio.lowlevel

from memd.serve.commons import Commons, Load


class Holder:
    def __init__(self):
        self.reason = None

    def let_go(self, reason):
        self.reason = reason


def test_who_has_held_some_for_longest_goes_when_it_is_too_much():
    load = Load(100, "too much")
    slow, quick, late = Holder(), Holder(), Holder()
    load.hold(slow, 10)
    load.hold(quick, 80)
    load.hold(slow, 15)
    load.hold(late, 20)
    assert (slow.reason, quick.reason, late.reason) == ("too much", None, None)
    assert load.total == 100


def test_who_is_done_starts_anew():
    load = Load(100, "too much")
    first, second = Holder(), Holder()
    load.hold(first, 60)
    load.hold(second, 40)
    load.hold(first, 0)
    assert load.total == 40
    load.hold(first, 30)
    load.hold(first, 61)
    assert (first.reason, second.reason) == (None, "too much")


def test_one_alone_may_have_more():
    load = Load(100, "too much")
    only, other = Holder(), Holder()
    load.hold(only, 101)
    assert (only.reason, load.total) == (None, 101)
    load.hold(other, 1)
    assert (only.reason, load.total) == ("too much", 1)
    load.hold(only, 0)
    assert load.total == 1


async def test_few_of_those_who_never_pause_go_on_in_a_round():
    commons, steps = Commons(), []

    async def go_on(number):
        while len(steps) < 600:
            await commons.pass_gate()
            steps.append(number)

    async def round_by_round():
        while len(steps) < 600:
            before = len(steps)
            await anyio.lowlevel.checkpoint()
            most.append(len(steps) - before)

    most = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(round_by_round)
        for number in range(50):
            tasks.start_soon(go_on, number)
    assert max(most) <= 4
    assert set(steps) == set(range(50))
