import itertools
import json
import os

import pytest

from memd.daemon import status
from memd.daemon.status import (
    DaemonFacts,
    EmbedderStatus,
    LedgerStatus,
    SpoolStatus,
    VaultCounter,
    WorkerError,
    collect_status,
)
from memd.daemon.supervisor import SupervisedWorker, supervise
from memd.errors import VaultCorrupt
from memd.paths import Paths
from memd.store import ledger

NOTHING_SPOOLED = SpoolStatus(bytes=0, files=0, oldest_at=None)


class Room:
    def __init__(self, name, /, **said):
        self.name = name
        self.said = said

    async def run(self):
        """Nothing to do."""

    def status(self):
        return self.said


class Stumbling:
    """A vault whose file was damaged under it."""

    damage = None

    def __init__(self, db):
        self.path, self.size = db.path, db.size

    async def read(self, _):
        raise VaultCorrupt("it is damaged")


def kept(name, state="running", last_error=None):
    return SupervisedWorker(Room(name), state=state, last_error=last_error)


def balanced(*, balanced=True):
    return LedgerStatus(
        received=1, stored=1, duplicate=0, filtered=0, refused=0, balanced=balanced, reasons={}
    )


@pytest.fixture
def about(tmp_path):
    return DaemonFacts(
        paths=Paths({"MEMD_HOME": str(tmp_path)}),
        started_at=1_000,
        embedder=EmbedderStatus(
            configured="auto", active="hashing", space="hashing/1", why="none other"
        ),
        born=100.0,
    )


async def test_a_new_vault_is_healthy_and_its_status_is_plain_json(db, about):
    async with supervise(str, seconds=lambda: 105.5) as house:
        # The wall's clock was set back meanwhile.
        shown = await collect_status(VaultCounter(db), house, about, now=500)
    assert json.loads(json.dumps(shown)) == shown
    assert (shown["health"], shown["reasons"], shown["running"]) == ("healthy", [], True)
    assert shown["uptime_s"] == 5.5
    assert shown["pid"] == os.getpid()
    assert shown["started_by"] == "hand"
    assert shown["vault"]["schema"] >= 1
    assert shown["vault"]["bytes"] > 0
    assert shown["books"]["balanced"]
    assert shown["versions"]["sqlite"].startswith("3.")


async def test_the_books_are_shown_with_the_reasons_for_what_was_not_stored(db, about):
    entries = {
        ("received", ""): 5, ("stored", ""): 2, ("duplicate", ""): 1,
        ("filtered", "ignored path"): 1, ("refused", "not an object"): 1,
    }  # fmt: skip
    await db.write(lambda tx: ledger.record_receipts(tx, "live", entries))
    async with supervise(str) as house:
        shown = (await collect_status(VaultCounter(db), house, about, now=1))["books"]
    assert shown["balanced"]
    assert shown["reasons"] == {
        "filtered": {"ignored path": 1},
        "refused": {"not an object": 1},
    }


async def test_books_that_do_not_balance_are_a_reason(db, about):
    await db.write(lambda tx: ledger.record_receipts(tx, "live", {("received", ""): 1}))
    async with supervise(str) as house:
        shown = await collect_status(VaultCounter(db), house, about, now=1)
    assert (shown["health"], shown["books"]["balanced"]) == ("degraded", False)
    assert "balance" in shown["reasons"][0]


async def test_what_a_room_says_of_itself_stands_beside_how_it_fares(db, about):
    async with supervise(str) as house:
        house.rooms.append(
            SupervisedWorker(Room("consolidator", last_run_at=7, name="an impostor"))
        )
        shown = await collect_status(VaultCounter(db), house, about, now=1)
    assert shown["rooms"] == [
        {
            "name": "consolidator",
            "state": "running",
            "restarts": 0,
            "last_error": None,
            "last_run_at": 7,
        }
    ]
    assert shown["consolidator"]["last_run_at"] == 7


async def test_a_slow_count_is_kept_for_a_moment_and_a_quick_one_is_not(db):
    times = iter([0.0, 0.001, 0.1, 0.2, 0.3, 3.0, 3.001])
    gauge = VaultCounter(db, seconds=lambda: next(times))
    quick = await gauge.counts()
    slow = await gauge.counts()
    assert slow is not quick
    assert await gauge.counts() is slow
    assert await gauge.counts() is not slow


async def test_a_vault_that_cannot_be_read_is_told_and_its_daemon_is_not_called_dead(db, about):
    gauge = VaultCounter(
        db, seconds=itertools.count(step=10).__next__
    )  # nothing is kept for long
    async with supervise(str) as house:
        await collect_status(gauge, house, about, now=1)
        gauge.db = Stumbling(db)
        shown = await collect_status(gauge, house, about, now=1)
        assert (shown["health"], shown["running"]) == ("degraded", True)
        assert shown["reasons"] == ["the vault cannot be read: it is damaged"]
        gauge.db = db
        assert (await collect_status(gauge, house, about, now=1))["health"] == "healthy"


async def test_a_vault_that_could_never_be_read_is_told_without_counts(db, about):
    async with supervise(str) as house:
        shown = await collect_status(VaultCounter(Stumbling(db)), house, about, now=1)
    assert shown["reasons"] == ["the vault cannot be read: it is damaged"]
    assert shown["events"]["count"] == 0


@pytest.mark.parametrize("state", ["backing off", "stopped"])
def test_a_room_that_does_not_run_is_a_reason(state):
    rooms = [kept("intake"), kept("indexer", state, "ValueError: no")]
    (reason,) = status.degraded_reasons(rooms, balanced(), NOTHING_SPOOLED, [], 0)
    assert reason == f"indexer is {state}: ValueError: no"


def test_a_room_that_runs_and_cannot_write_is_a_reason():
    """What agents say is refused or spooled meanwhile: no health check may call that healthy."""
    rooms = [
        SupervisedWorker(Room("intake", failing="VaultBusy")),
        SupervisedWorker(Room("indexer", failing=None)),
    ]
    (reason,) = status.degraded_reasons(rooms, balanced(), NOTHING_SPOOLED, [], 0)
    assert reason == "intake cannot write: VaultBusy"


def test_a_recent_crash_is_a_reason_and_an_old_one_is_history():
    errors = [WorkerError(room="intake", error="OSError: full", ago_s=ago) for ago in (3, 61)]
    (reason,) = status.degraded_reasons(
        [kept("intake")], balanced(), NOTHING_SPOOLED, errors, 0
    )
    assert reason == "intake crashed 3 s ago: OSError: full"


def test_a_room_that_cannot_write_says_why_in_words():
    rooms = [
        SupervisedWorker(
            Room("intake", failing="VaultFull", why_failing="the disk is full; make room")
        )
    ]
    (reason,) = status.degraded_reasons(rooms, balanced(), NOTHING_SPOOLED, [], 0)
    assert reason == "intake cannot write: the disk is full; make room"


def test_a_spool_that_nobody_empties_is_a_reason():
    spool = SpoolStatus(bytes=10, files=2, oldest_at=0)
    assert not status.degraded_reasons([], balanced(), spool, [], 59_000)
    (reason,) = status.degraded_reasons([], balanced(), spool, [], 61_000)
    assert "2 files" in reason


def test_the_spool_is_weighed_without_its_empty_files(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"12345")
    (tmp_path / "b.jsonl").write_bytes(b"")
    os.utime(tmp_path / "a.jsonl", (5, 5))
    assert status.measure_spool(str(tmp_path)) == SpoolStatus(bytes=5, files=1, oldest_at=5_000)
    assert status.measure_spool(str(tmp_path / "none")) == NOTHING_SPOOLED
    everywhere = status.measure_spools([str(tmp_path), str(tmp_path / "none"), str(tmp_path)])
    assert everywhere == SpoolStatus(bytes=10, files=2, oldest_at=5_000)


def test_what_is_wrong_with_a_persons_own_file_is_a_reason():
    rooms = [
        SupervisedWorker(Room("intake", trouble="projects.toml is not used: no")),
        kept("indexer"),
    ]
    found = status.degraded_reasons(rooms, balanced(), NOTHING_SPOOLED, [], 0)
    assert found == ["projects.toml is not used: no"]
