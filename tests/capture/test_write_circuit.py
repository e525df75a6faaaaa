import anyio
import anyio.to_thread
import pytest

from memd.capture import spool
from memd.capture.ingest import WriteCircuit
from memd.errors import VaultFull
from memd.store import ledger
from memd.store.database import open_database


@pytest.fixture
def db(tmp_path):
    with open_database(str(tmp_path / "v.db"), 1) as db:
        yield db


@pytest.fixture
def circuit(db, tmp_path):
    return WriteCircuit(db, str(tmp_path / "spool"))


async def reserved(folder):
    """Bytes set aside."""
    return (await anyio.Path(folder, "spool.reserve").stat()).st_size


async def test_without_an_outage_nothing_is_written_and_the_reserve_is_made(db, circuit, tmp_path):
    assert await circuit.is_writable()
    assert await db.read(lambda tx: ledger.read_note(tx, "touched")) is None
    assert circuit.status() == {"failing": None, "why_failing": None}
    assert await reserved(tmp_path) == spool.RESERVE_BYTES


async def test_a_failure_is_reported_with_its_reason_until_a_write_succeeds(db, circuit):
    circuit.record_failure(VaultFull())
    assert circuit.status()["failing"] == "VaultFull"
    assert "Make room" in circuit.status()["why_failing"]
    db._writer.pragma("query_only", 1)
    assert not await circuit.is_writable()
    assert circuit.status()["failing"] == "VaultError"
    db._writer.pragma("query_only", 0)
    assert await circuit.is_writable()
    assert circuit.status()["failing"] is None


async def test_a_reserve_that_was_given_up_is_made_again_after_the_outage(circuit, tmp_path):
    assert await circuit.is_writable()
    assert await anyio.to_thread.run_sync(spool.give_up_reserve, str(tmp_path / "spool"))
    circuit.record_failure(VaultFull())
    circuit.record_success()
    assert await circuit.is_writable()
    assert await reserved(tmp_path) == spool.RESERVE_BYTES
