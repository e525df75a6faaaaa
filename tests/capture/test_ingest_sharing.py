from itertools import count

import anyio
import anyio.lowlevel
import pytest

from memd.capture.claude_code import Refused
from memd.capture.ingest import BATCH, Sharing
from memd.capture.write import Prepared, Receipt
from memd.errors import VaultBusy


def items(*reasons):
    return [Refused(reason) for reason in reasons]


def prepare(found):
    if any(item.reason == "poison" for item in found):
        raise ValueError("poison")
    return [Prepared("live", item) for item in found]


class Store:
    """Stores when it is let, and says in which commit and at which place."""

    def __init__(self):
        self.commits = []
        self.free = anyio.Event()
        self.begun = anyio.Event()
        self.error = None
        self._numbers = count(1)

    async def __call__(self, make, captures):
        everything = make()
        self.commits.append(([one.verdict.reason for one in everything], captures))
        self.begun.set()
        await self.free.wait()
        if self.error:
            raise self.error
        return [
            Receipt("stored", next(self._numbers), one.verdict.reason) for one in everything
        ]


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def sharing(store):
    return Sharing(prepare, store)


class Client:
    """A call whose client may go away."""

    def __init__(self, sharing, name):
        self._sharing, self._name = sharing, name
        self._scope = anyio.CancelScope()
        self.told = []

    async def __call__(self):
        with self._scope:
            self.told = [r.reason for r in await self._sharing.admit(items(self._name))]

    def go(self):
        self._scope.cancel()


async def settled():
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def test_who_comes_alone_is_stored_at_once(sharing, store):
    store.free.set()
    receipts = await sharing.admit(items("a", "b"))
    assert [receipt.reason for receipt in receipts] == ["a", "b"]
    assert store.commits == [(["a", "b"], 1)]
    assert sharing.pending == 0


async def test_what_comes_during_a_commit_shares_the_next_in_order(sharing, store):
    told = {}

    async def admit(name):
        told[name] = [r.reason for r in await sharing.admit(items(name))]

    async with anyio.create_task_group() as group:
        group.start_soon(admit, "first")
        await store.begun.wait()
        for name in "abc":
            group.start_soon(admit, name)
        await settled()
        assert sharing.pending == 3
        store.free.set()
    assert store.commits == [(["first"], 1), (["a", "b", "c"], 3)]
    assert told == {name: [name] for name in ("first", *"abc")}


async def test_a_commit_takes_no_more_than_a_batch(sharing, store):
    async with anyio.create_task_group() as group:
        group.start_soon(sharing.admit, items("first"))
        await store.begun.wait()
        for _ in range(3):
            group.start_soon(sharing.admit, items(*["x"] * (BATCH // 2)))
        await settled()
        store.free.set()
    assert [len(reasons) for reasons, _ in store.commits] == [1, BATCH, BATCH // 2]


async def test_what_cannot_be_prepared_fails_alone(sharing, store):
    failed = []

    async def admit_poison():
        try:
            await sharing.admit(items("poison"))
        except ValueError as error:
            failed.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(sharing.admit, items("first"))
        await store.begun.wait()
        group.start_soon(admit_poison)
        group.start_soon(sharing.admit, items("a"))
        await settled()
        store.free.set()
    assert failed == ["poison"]
    assert store.commits == [(["first"], 1), (["a"], 2)]
    with pytest.raises(ValueError, match="poison"):
        await sharing.admit(items("poison"))
    assert store.commits[2] == ([], 1)


async def test_an_error_of_the_store_is_told_to_all_and_the_next_is_tried_anew(sharing, store):
    store.error = VaultBusy("busy")
    store.free.set()
    with pytest.raises(VaultBusy, match="busy"):
        await sharing.admit(items("a"))
    store.error = None
    (receipt,) = await sharing.admit(items("b"))
    assert receipt.outcome == "stored"


async def test_a_leader_that_goes_away_finishes_the_commit_and_another_leads_on(sharing, store):
    leader, other = Client(sharing, "leader"), Client(sharing, "a")
    async with anyio.create_task_group() as group:
        group.start_soon(leader)
        await store.begun.wait()
        group.start_soon(other)
        await settled()
        leader.go()
        await settled()
        store.free.set()
    assert store.commits == [(["leader"], 1), (["a"], 1)]
    assert other.told == ["a"]


async def test_one_that_waits_and_goes_away_is_not_stored(sharing, store):
    gone = Client(sharing, "gone")
    async with anyio.create_task_group() as group:
        group.start_soon(sharing.admit, items("first"))
        await store.begun.wait()
        group.start_soon(gone)
        await settled()
        group.start_soon(sharing.admit, items("stays"))
        await settled()
        gone.go()
        await settled()
        store.free.set()
    assert store.commits == [(["first"], 1), (["stays"], 1)]


async def test_one_that_goes_away_just_when_it_is_to_lead_appoints_the_next(sharing, store):
    gone = Client(sharing, "gone")
    async with anyio.create_task_group() as group:
        group.start_soon(sharing.admit, items("first"))
        await store.begun.wait()
        group.start_soon(gone)
        await settled()
        group.start_soon(sharing.admit, items("stays"))
        await settled()
        sharing._queue[0].call()  # as the first does when it ends
        gone.go()
        store.free.set()
    assert [reasons for reasons, _ in store.commits if "stays" in reasons]
    assert sharing.pending == 0
