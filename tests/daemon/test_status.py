import itertools
import json
import os

import pytest

from memd.daemon.status import (
    EmbedderTracker,
    LedgerStatus,
    SpoolStatus,
    StatusReporter,
    WorkerError,
    degraded_reasons,
    measure_spools,
)
from memd.daemon.supervisor import SupervisedWorker, supervise
from memd.errors import VaultCorrupt
from memd.paths import Paths
from memd.store import ledger
from tests.tables import every_row

EMPTY_SPOOL = SpoolStatus(bytes=0, files=0, oldest_at=None)
HASHING = "hashing/words-ngrams/2/768"
SPACE = "ollama/nomic-embed-text/1/768/abc"
READY = {
    "provider": "ollama", "model": "nomic-embed-text", "space": SPACE, "state": "ready",
    "since": 5, "why_not": "", "asked": 3, "failed": 1, "timeouts": 1, "p50_ms": 12.5,
    "trouble": None,
}  # fmt: skip
ABSENT = READY | {"state": "absent", "why_not": "nothing answers: start Ollama", "space": None}


class IdleWorker:
    """A worker that does nothing and reports what the test says."""

    def __init__(self, name, /, **report):
        self.name = name
        self.report = report

    async def run(self):
        """Nothing to do."""

    def status(self):
        return self.report


class UnreadableVault:
    """A vault whose file was damaged while it was open."""

    damage = None

    def __init__(self, db):
        self.path, self.size = db.path, db.size

    async def read(self, _):
        raise VaultCorrupt("it is damaged")


def supervised(name, state="running", last_error=None, **report):
    return SupervisedWorker(IdleWorker(name, **report), state=state, last_error=last_error)


def reasons(workers, spool=EMPTY_SPOOL, crashes=(), now=0):
    return degraded_reasons(workers, LedgerStatus(), spool, crashes, now)


@pytest.fixture
def make_reporter(tmp_path, clock):
    def make(db, supervisor):
        paths = Paths({"MEMD_HOME": str(tmp_path)})
        tracker = EmbedderTracker("auto", HASHING, clock())
        return StatusReporter(db, supervisor, paths, clock, tracker)

    return make


@pytest.fixture
def report_once(make_reporter):
    async def report(db):
        async with supervise(str) as supervisor:
            return await make_reporter(db, supervisor).report()

    return report


async def test_a_new_vault_is_healthy_and_its_status_is_plain_json(db, make_reporter, clock):
    seconds = iter([100.0, 100.1, 100.2, 105.4, 105.5])
    async with supervise(str, seconds=lambda: next(seconds)) as supervisor:
        reporter = make_reporter(db, supervisor)
        clock.advance(s=-500)  # the wall clock was set back
        status = await reporter.report()
    assert json.loads(json.dumps(status)) == status
    assert (status["health"], status["reasons"], status["running"]) == ("healthy", [], True)
    assert status["uptime_s"] == 5.5
    assert status["pid"] == os.getpid()
    assert status["started_by"] == "hand"
    assert status["vault"]["schema"] >= 1
    assert status["vault"]["bytes"] > 0
    assert status["books"]["balanced"]
    assert status["versions"]["sqlite"].startswith("3.")


async def test_the_ledger_has_the_reasons_for_what_was_not_stored(db, report_once):
    entries = {
        ("received", ""): 5, ("stored", ""): 2, ("duplicate", ""): 1,
        ("filtered", "ignored path"): 1, ("refused", "not an object"): 1,
    }  # fmt: skip
    await db.write(lambda tx: ledger.record_receipts(tx, "live", entries))
    books = (await report_once(db))["books"]
    assert books["balanced"]
    assert books["reasons"] == {"filtered": {"ignored path": 1}, "refused": {"not an object": 1}}


async def test_a_ledger_that_does_not_balance_is_a_reason(db, report_once):
    await db.write(lambda tx: ledger.record_receipts(tx, "live", {("received", ""): 1}))
    status = await report_once(db)
    assert (status["health"], status["books"]["balanced"]) == ("degraded", False)
    assert "balance" in status["reasons"][0]


async def test_what_a_worker_reports_stands_beside_its_state(db, make_reporter):
    async with supervise(str) as supervisor:
        worker = IdleWorker("consolidator", last_run_at=7, name="an impostor")
        supervisor.workers.append(SupervisedWorker(worker))
        status = await make_reporter(db, supervisor).report()
    assert status["rooms"] == [
        {
            "name": "consolidator",
            "state": "running",
            "restarts": 0,
            "last_error": None,
            "last_run_at": 7,
        }
    ]
    assert status["consolidator"]["last_run_at"] == 7


@pytest.mark.parametrize(("read_s", "shown"), [(0.001, 1), (0.1, 0)])
async def test_only_counts_that_were_slow_to_read_are_cached(db, make_reporter, read_s, shown):
    seconds = itertools.count(step=read_s)
    async with supervise(str, seconds=lambda: next(seconds)) as supervisor:
        reporter = make_reporter(db, supervisor)
        await reporter.report()
        await db.write(lambda tx: ledger.record_receipts(tx, "live", {("received", ""): 1}))
        assert (await reporter.report())["books"]["received"] == shown


async def test_a_vault_that_becomes_unreadable_degrades_the_daemon(db, make_reporter):
    seconds = itertools.count(step=10)  # no count is cached for that long
    async with supervise(str, seconds=lambda: next(seconds)) as supervisor:
        reporter = make_reporter(db, supervisor)
        await reporter.report()
        reporter.db = UnreadableVault(db)
        status = await reporter.report()
        assert (status["health"], status["running"]) == ("degraded", True)
        assert status["reasons"] == ["the vault cannot be read: it is damaged"]
        reporter.db = db
        assert (await reporter.report())["health"] == "healthy"


async def test_a_vault_that_was_never_readable_has_no_counts(db, report_once):
    status = await report_once(UnreadableVault(db))
    assert status["reasons"] == ["the vault cannot be read: it is damaged"]
    assert status["events"]["count"] == 0


@every_row("state", ["backing off", "stopped"])
def test_a_worker_that_does_not_run_is_a_reason(state):
    workers = [supervised("intake"), supervised("indexer", state, "ValueError: no")]
    assert reasons(workers) == [f"indexer is {state}: ValueError: no"]


def test_a_worker_that_runs_and_fails_is_a_reason():
    """Events are refused or spooled meanwhile: no health check may call that healthy."""
    workers = [supervised("intake", failing="VaultBusy"), supervised("indexer", failing=None)]
    assert reasons(workers) == ["intake fails: VaultBusy"]


def test_a_worker_that_fails_says_why():
    why = "the disk is full; make room"
    workers = [supervised("intake", failing="VaultFull", why_failing=why)]
    assert reasons(workers) == [f"intake fails: {why}"]


def test_a_recent_crash_is_a_reason_and_an_old_one_is_not():
    crashes = [WorkerError(room="intake", error="OSError: full", ago_s=ago) for ago in (3, 61)]
    found = reasons([supervised("intake")], crashes=crashes)
    assert found == ["intake crashed 3 s ago: OSError: full"]


def test_a_spool_that_is_not_drained_is_a_reason():
    spool = SpoolStatus(bytes=10, files=2, oldest_at=0)
    assert not reasons([], spool, now=59_000)
    (reason,) = reasons([], spool, now=61_000)
    assert "2 files" in reason


def test_the_spool_is_measured_without_its_empty_files(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"12345")
    (tmp_path / "b.jsonl").write_bytes(b"")
    os.utime(tmp_path / "a.jsonl", (5, 5))
    assert measure_spools([str(tmp_path / "none")]) == EMPTY_SPOOL
    everywhere = measure_spools([str(tmp_path), str(tmp_path / "none"), str(tmp_path)])
    assert everywhere == SpoolStatus(bytes=10, files=2, oldest_at=5_000)


def test_a_broken_file_of_the_users_is_a_reason():
    trouble = "projects.toml is not used: no"
    assert reasons([supervised("intake", trouble=trouble), supervised("indexer")]) == [trouble]


def test_without_a_model_hashing_is_active_since_the_start():
    status = EmbedderTracker("hashing", HASHING, 1_000).describe("", {}, {}, 2_000)
    assert (status.active, status.space, status.since, status.learned) == (
        "hashing",
        HASHING,
        1_000,
        None,
    )
    assert status.why == "the settings want no model"


def test_hashing_is_active_while_the_model_is_absent():
    status = EmbedderTracker("auto", HASHING, 0).describe(
        HASHING, ABSENT, {"done": 0, "missing": 7}, 1
    )
    assert (status.active, status.why) == ("hashing", "nothing answers: start Ollama")
    assert (status.learned.state, status.learned.coverage, status.learned.missing) == (
        "absent",
        0.0,
        7,
    )


def test_hashing_is_active_while_the_space_of_the_model_is_filled():
    status = EmbedderTracker("auto", HASHING, 0).describe(
        HASHING, READY, {"done": 1_000, "missing": 3_000}, 1
    )
    assert status.active == "hashing"
    assert status.why == "nomic-embed-text answers, and 3,000 passages wait for their vectors"
    assert status.learned.coverage == 0.25


def test_the_provider_is_active_since_its_space_answers():
    tracker = EmbedderTracker("auto", HASHING, 0)
    tracker.describe(HASHING, READY, {"done": 1, "missing": 3}, 10)
    first = tracker.describe(SPACE, READY, {"done": 4, "missing": 0}, 20)
    later = tracker.describe(SPACE, READY, {"done": 4, "missing": 0}, 30)
    assert (first.active, first.space, first.why) == ("ollama", SPACE, "nomic-embed-text answers")
    assert (first.since, later.since) == (20, 20)
    assert later.learned.coverage == 1.0


def test_an_active_model_that_does_not_answer_is_reported_with_its_replacement():
    status = EmbedderTracker("auto", HASHING, 0).describe(
        SPACE, ABSENT, {"done": 4, "missing": 0}, 1
    )
    assert status.why == "nothing answers: start Ollama; hashing answers alone until then"
