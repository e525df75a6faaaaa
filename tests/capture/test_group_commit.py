from itertools import count

import anyio
import anyio.lowlevel
import pytest

from memd.capture.claude_code import Refused
from memd.capture.ingest import BATCH_EVENTS, GroupCommit
from memd.capture.write import PreparedItem, Receipt
from memd.errors import VaultBusy


def items(*reasons):
    return [Refused(reason) for reason in reasons]


def prepare(found):
    if any(item.reason == "poison" for item in found):
        raise ValueError("poison")
    return [PreparedItem("live", item) for item in found]


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
        return [Receipt("stored", next(self._numbers), one.verdict.reason) for one in everything]


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def group_commit(store):
    return GroupCommit(prepare, store)


class Client:
    """A call whose client may go away."""

    def __init__(self, group_commit, name):
        self._group_commit, self._name = group_commit, name
        self._scope = anyio.CancelScope()
        self.told = []

    async def __call__(self):
        with self._scope:
            self.told = [r.reason for r in await self._group_commit.enqueue(items(self._name))]

    def go(self):
        self._scope.cancel()


async def settled():
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def test_a_single_call_is_stored_at_once(group_commit, store):
    store.free.set()
    receipts = await group_commit.enqueue(items("a", "b"))
    assert [receipt.reason for receipt in receipts] == ["a", "b"]
    assert store.commits == [(["a", "b"], 1)]
    assert group_commit.pending == 0


async def test_what_comes_during_a_commit_shares_the_next_in_order(group_commit, store):
    told = {}

    async def admit(name):
        told[name] = [r.reason for r in await group_commit.enqueue(items(name))]

    async with anyio.create_task_group() as group:
        group.start_soon(admit, "first")
        await store.begun.wait()
        for name in "abc":
            group.start_soon(admit, name)
        await settled()
        assert group_commit.pending == 3
        store.free.set()
    assert store.commits == [(["first"], 1), (["a", "b", "c"], 3)]
    assert told == {name: [name] for name in ("first", *"abc")}


async def test_a_commit_takes_no_more_than_a_batch(group_commit, store):
    async with anyio.create_task_group() as group:
        group.start_soon(group_commit.enqueue, items("first"))
        await store.begun.wait()
        for _ in range(3):
            group.start_soon(group_commit.enqueue, items(*["x"] * (BATCH_EVENTS // 2)))
        await settled()
        store.free.set()
    assert [len(reasons) for reasons, _ in store.commits] == [1, BATCH_EVENTS, BATCH_EVENTS // 2]


async def test_what_cannot_be_prepared_fails_alone(group_commit, store):
    failed = []

    async def admit_poison():
        try:
            await group_commit.enqueue(items("poison"))
        except ValueError as error:
            failed.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(group_commit.enqueue, items("first"))
        await store.begun.wait()
        group.start_soon(admit_poison)
        group.start_soon(group_commit.enqueue, items("a"))
        await settled()
        store.free.set()
    assert failed == ["poison"]
    assert store.commits == [(["first"], 1), (["a"], 2)]
    with pytest.raises(ValueError, match="poison"):
        await group_commit.enqueue(items("poison"))
    assert store.commits[2] == ([], 1)


async def test_an_error_of_the_store_fails_all_calls_and_the_next_commit_is_tried(
    group_commit, store
):
    store.error = VaultBusy("busy")
    store.free.set()
    with pytest.raises(VaultBusy, match="busy"):
        await group_commit.enqueue(items("a"))
    store.error = None
    (receipt,) = await group_commit.enqueue(items("b"))
    assert receipt.outcome == "stored"


async def test_a_leader_that_goes_away_finishes_the_commit_and_another_leads_on(
    group_commit, store
):
    leader, other = Client(group_commit, "leader"), Client(group_commit, "a")
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


async def test_one_that_waits_and_goes_away_is_not_stored(group_commit, store):
    gone = Client(group_commit, "gone")
    async with anyio.create_task_group() as group:
        group.start_soon(group_commit.enqueue, items("first"))
        await store.begun.wait()
        group.start_soon(gone)
        await settled()
        group.start_soon(group_commit.enqueue, items("stays"))
        await settled()
        gone.go()
        await settled()
        store.free.set()
    assert store.commits == [(["first"], 1), (["stays"], 1)]


async def test_one_that_goes_away_just_when_it_is_to_lead_appoints_the_next(group_commit, store):
    gone = Client(group_commit, "gone")
    async with anyio.create_task_group() as group:
        group.start_soon(group_commit.enqueue, items("first"))
        await store.begun.wait()
        group.start_soon(gone)
        await settled()
        group.start_soon(group_commit.enqueue, items("stays"))
        await settled()
        group_commit._queue[0].wake()  # as the first does when it ends
        gone.go()
        store.free.set()
    assert [reasons for reasons, _ in store.commits if "stays" in reasons]
    assert group_commit.pending == 0
