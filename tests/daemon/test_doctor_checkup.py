from pathlib import Path

import anyio
import pytest

from memd.capture import spool
from memd.capture.ingest import Ingestor
from memd.config import CaptureConfig, IndexConfig
from memd.daemon import doctor, process
from memd.daemon.doctor import VaultDoctor
from memd.errors import AlreadyRunning
from memd.paths import Paths
from memd.store.database import open_database
from tests.store.test_integrity import break_it, vault

__all__ = ["vault"]


@pytest.fixture
def looked_after(vault, clock, tmp_path):
    ingestor = Ingestor(vault.db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None)
    return VaultDoctor(vault.db, vault.indexer, ingestor, 400, clock)


async def wrong(one):
    return {found.name: found for found in await one.examine() if found.verdict != "ok"}


BROKEN = (
    "DELETE FROM passages WHERE summary_id = 1",
    "DELETE FROM passages_fts WHERE rowid = 2",
    "INSERT INTO passages_fts (rowid, title) VALUES (99, 'x')",
    "DELETE FROM turns_fts",
    "INSERT INTO vectors VALUES (1099511627777, x'00')",
    "INSERT INTO uses VALUES (99, 1, 1)",
)


async def test_a_broken_index_is_mended_and_then_nothing_is_wrong(vault, looked_after):
    assert await wrong(looked_after) == {}
    assert await looked_after.mend() == []
    break_it(vault, *BROKEN)
    found = await wrong(looked_after)
    assert {"passages", "full text", "turns", "vectors", "references"} <= found.keys()
    done = await looked_after.mend()
    assert "took away 1 rows of uses" in done
    assert "computed full text and vectors anew" in done
    assert await wrong(looked_after) == {}
    assert vault.index.columns.live_count == 3


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM passages_fts_data WHERE id > 10",
        "DELETE FROM turns_fts_data WHERE id > 10",
    ],
)
async def test_full_text_that_is_damaged_is_made_anew(vault, looked_after, statement):
    break_it(vault, statement)
    assert (await wrong(looked_after))["database"].fixable
    assert "computed full text and vectors anew" in await looked_after.mend()
    assert await wrong(looked_after) == {}


async def test_full_text_that_was_made_anew_is_not_taken_for_damaged(vault, looked_after):
    for _ in range(3):
        await vault.indexer.reindex()
        for _ in range(5):
            assert await wrong(looked_after) == {}


async def test_what_was_just_written_is_no_fault(vault, looked_after):
    vault.put("a fourth")
    assert await wrong(looked_after) == {}


async def test_what_waits_in_the_spool_is_taken_in(looked_after, tmp_path):
    spool.append(str(tmp_path / "spool"), b'{"v": 9}')
    with anyio.fail_after(60):
        assert await looked_after.mend() == ["took in 1 lines of the spool"]


@pytest.fixture
def paths(tmp_path):
    return Paths({"MEMD_HOME": str(tmp_path)})


@pytest.fixture
def unserved(paths, tmp_path):
    """A vault that nobody has open, with one memory that is not indexed, and something broken."""
    (tmp_path / "vaults").mkdir(mode=0o700)
    with open_database(paths.database, 1) as db:
        db.write_now(
            lambda tx: tx.execute(
                "INSERT INTO projects VALUES (1, '/a', 'a', '', 1);"
                "INSERT INTO summaries (uid, project_id, kind, tier, source, title, body, at, created_at,"
                " updated_at, rule) VALUES ('u', 1, 'note', 'captured', 'x', 'T', 'b', 1, 1, 1, 'turn');"
                "DELETE FROM changes"
            )
        )
    return paths


def look_at(paths):
    return doctor.examine_vault(paths.database, 400, 9, is_served=False)


def look(paths):
    return {one.name for one in look_at(paths) if one.verdict != "ok"}


def test_a_vault_that_nobody_serves_is_looked_at_and_mended_too(unserved):
    assert look(unserved) == {"passages", "sample"}
    assert doctor.repair_unserved_vault(unserved, IndexConfig(), 9) == [
        "computed full text and vectors anew"
    ]
    assert look(unserved) == set()
    assert process.find_lock_holder(unserved.lock) is None


def test_a_vault_that_somebody_has_is_not_mended_behind_its_back(unserved):
    with process.hold_lock(unserved.lock, 1), pytest.raises(AlreadyRunning):
        doctor.repair_unserved_vault(unserved, IndexConfig(), 9)


def test_a_damaged_file_is_a_finding_and_not_an_error(unserved):
    with Path(unserved.database).open("r+b") as file:
        file.write(b"no database")
    (found,) = look_at(unserved)
    assert (found.name, found.verdict) == ("database", "problem")
    assert "memd restore" in found.remedy
