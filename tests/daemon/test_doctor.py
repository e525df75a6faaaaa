"""Each thing is broken for real in a directory of its own, found, and repaired where it can be."""

import os
import socket
import sqlite3
import time
from pathlib import Path

import anyio
import pytest

from memd.capture import spool
from memd.capture.ingest import Ingestor
from memd.capture.redact import RULES_VERSION
from memd.config import RETIRED, CaptureConfig
from memd.daemon import backup, process
from memd.daemon import doctor as daemon_doctor
from memd.daemon.doctor import VaultDoctor
from memd.errors import AlreadyRunning, VaultCorrupt, VaultError, VaultFull
from memd.paths import Paths, private_dir
from memd.store.backup import note_rules_of_empty, note_scrubbed_secrets
from memd.store.database import open_database
from tests.store.test_integrity import break_it, vault

__all__ = ["vault"]

NOW = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000
OLD_CONFIG = Path(__file__).parent.parent / "data" / "old-config.toml"
AT = 1_700_000_000_000


@pytest.fixture
def paths(tmp_path):
    paths = Paths({"MEMD_HOME": str(tmp_path)})
    for directory in (paths.data_dir, paths.state_dir, paths.runtime_dir):
        private_dir(directory)
    return paths


# ── The vault ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def vault_doctor(vault, clock, tmp_path):
    vault.db.write_now(lambda tx: note_scrubbed_secrets(tx, RULES_VERSION))
    ingestor = Ingestor(vault.db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None)
    return VaultDoctor(vault.db, vault.indexer, ingestor.drain, clock)


async def examine(doctor):
    return {found.name: found for found in await doctor.examine() if found.verdict != "ok"}


BROKEN = (
    "DELETE FROM passages WHERE summary_id = 1",
    "DELETE FROM passages_fts WHERE rowid = 2",
    "INSERT INTO passages_fts (rowid, title) VALUES (99, 'x')",
    "DELETE FROM turns_fts",
    "INSERT INTO vectors VALUES (1099511627777, x'00')",
    "INSERT INTO uses (summary_id, count, last_at) VALUES (99, 1, 1)",
)


async def test_a_broken_index_is_repaired(vault, vault_doctor):
    assert await examine(vault_doctor) == {}
    assert await vault_doctor.mend() == []
    break_it(vault, *BROKEN)
    found = await examine(vault_doctor)
    assert {"passages", "full text", "turns", "vectors", "references"} <= found.keys()
    done = await vault_doctor.mend()
    assert "removed 1 rows of uses" in done
    assert "rebuilt full text and vectors" in done
    assert await examine(vault_doctor) == {}
    assert vault.index.columns.live_count == 3


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM passages_fts_data WHERE id > 10", "DELETE FROM turns_fts_data WHERE id > 10"],
)
async def test_damaged_full_text_is_rebuilt(vault, vault_doctor, statement):
    break_it(vault, statement)
    assert (await examine(vault_doctor))["database"].fixable
    assert "rebuilt full text and vectors" in await vault_doctor.mend()
    assert await examine(vault_doctor) == {}


async def test_rebuilt_full_text_is_not_taken_for_damaged(vault, vault_doctor):
    for _ in range(3):
        await vault.indexer.reindex()
        for _ in range(5):
            assert await examine(vault_doctor) == {}


async def test_what_older_rules_of_redaction_wrote_is_worth_a_scrub(vault, vault_doctor):
    vault.db.write_now(lambda tx: note_scrubbed_secrets(tx, RULES_VERSION - 1))
    assert "memd scrub --secrets" in (await examine(vault_doctor))["secrets"].remedy
    vault.db.write_now(lambda tx: note_rules_of_empty(tx, RULES_VERSION))  # it is not empty
    assert "secrets" in await examine(vault_doctor)
    vault.db.write_now(lambda tx: note_scrubbed_secrets(tx, RULES_VERSION))
    assert await examine(vault_doctor) == {}


async def test_a_memory_that_was_just_written_is_no_fault(vault, vault_doctor):
    vault.put("a fourth")
    assert await examine(vault_doctor) == {}


async def test_the_spool_is_drained(vault_doctor, tmp_path):
    spool.append(str(tmp_path / "spool"), b'{"v": 9}')
    with anyio.fail_after(60):
        assert await vault_doctor.mend() == ["read 1 lines of the spool"]


@pytest.fixture
def unserved(paths):
    """A vault that is not open, with one memory that is not indexed."""
    with open_database(paths.database, 1) as db:
        db.write_now(
            lambda tx: tx.execute(
                "INSERT INTO projects VALUES (1, '/a', 'a', '', 1);"
                "INSERT INTO summaries (uid, project_id, kind, tier, source, title, body, at, created_at,"
                " updated_at, rule) VALUES ('u', 1, 'note', 'captured', 'x', 'T', 'b', 1, 1, 1, 'turn');"
                "DELETE FROM changes"
            )
        )
        db.write_now(lambda tx: note_scrubbed_secrets(tx, RULES_VERSION))
    return paths


def examine_unserved(paths):
    return daemon_doctor.examine_vault(paths.database, 9, is_served=False)


def vault_problems(paths):
    return {one.name for one in examine_unserved(paths) if one.verdict != "ok"}


def test_a_vault_that_no_daemon_serves_is_examined_and_repaired(unserved):
    assert vault_problems(unserved) == {"passages", "sample"}
    assert daemon_doctor.repair_unserved_vault(unserved, 9) == ["rebuilt full text and vectors"]
    assert vault_problems(unserved) == set()
    assert process.find_lock_holder(unserved.lock) is None


def test_a_vault_in_use_is_not_repaired_from_outside(unserved):
    with process.hold_lock(unserved.lock, 1), pytest.raises(AlreadyRunning):
        daemon_doctor.repair_unserved_vault(unserved, 9)


def test_a_damaged_file_is_a_finding_and_not_an_error(unserved):
    with Path(unserved.database).open("r+b") as file:
        file.write(b"no database")
    (found,) = examine_unserved(unserved)
    assert (found.name, found.verdict) == ("database", "problem")
    assert "memd restore" in found.remedy


# ── The files around it ──────────────────────────────────────────────────────────────────────────


def problems(paths, *, is_served=False, now=NOW):
    found = daemon_doctor.examine_files(paths, "/home/dev", now, is_served=is_served)
    return {one.name: one for one in found if one.verdict != "ok"}


def write(path, text="", mode=0o600):
    Path(path).write_text(text, encoding="utf-8")
    Path(path).chmod(mode)


def test_nothing_is_wrong_with_a_fresh_home_or_with_none(paths, tmp_path):
    assert problems(paths) == {}
    assert problems(Paths({"MEMD_HOME": str(tmp_path / "none")})) == {}
    assert not (tmp_path / "none").exists()


def test_files_open_to_others_are_found_and_closed(paths):
    write(paths.database, "x", 0o644)
    Path(paths.state_dir).chmod(0o755)
    found = problems(paths)["permissions"]
    assert (found.verdict, found.fixable) == ("problem", True)
    assert f"{paths.database} (0644)" in found.words
    assert len(daemon_doctor.repair_files(paths, NOW)) == 2
    assert problems(paths) == {}
    assert Path(paths.database).stat().st_mode & 0o777 == 0o600
    assert Path(paths.state_dir).stat().st_mode & 0o777 == 0o700


def test_only_the_first_of_many_exposed_files_are_named(paths):
    for number in range(5):
        write(f"{paths.log}.{number}", mode=0o640)
    assert "and 2 more" in problems(paths)["permissions"].words


def test_the_leftovers_of_a_dead_daemon_are_found_and_removed(paths):
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(paths.socket)
    Path(paths.socket).chmod(0o600)
    bound.close()
    write(paths.lock, '{"pid": 1, "started_at": 1}')
    found = problems(paths)["lock"]
    assert paths.socket in found.words
    assert paths.lock in found.words
    assert daemon_doctor.repair_files(paths, NOW) == ["removed what a dead daemon left"]
    assert problems(paths) == {}
    assert not Path(paths.socket).exists()


def test_a_socket_in_use_is_left_alone(paths):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(paths.socket)
        Path(paths.socket).chmod(0o600)
        bound.listen()
        assert problems(paths) == {}
        assert daemon_doctor.repair_files(paths, NOW) == []


def test_a_daemon_that_holds_the_vault_and_does_not_answer_is_a_problem(paths):
    with process.hold_lock(paths.lock, 1):
        found = problems(paths)["lock"]
        assert found.verdict == "problem"
        assert f"pid {os.getpid()}" in found.words
        assert daemon_doctor.repair_files(paths, NOW) == []
        assert "lock" not in problems(paths, is_served=True)


def test_a_daemon_that_is_being_started_is_a_warning(paths):
    with process.hold_lock(f"{paths.lock}.start", 1):
        assert problems(paths)["lock"].verdict == "warning"


def test_a_waiting_spool_is_judged_by_whether_a_daemon_runs(paths):
    spool.append(paths.spool_dir, b"{}")
    assert problems(paths)["spool"].remedy.startswith("`memd start`")
    assert problems(paths, is_served=True) == {}
    now = time.time_ns() // 1_000_000
    assert "for 0 min" in problems(paths, now=now - HOUR_MS)["spool"].words, (
        "the clock was set back"
    )
    late = problems(paths, is_served=True, now=now + HOUR_MS)["spool"]
    assert (late.verdict, late.fixable) == ("problem", True)
    assert "60 min" in late.words


def test_the_file_of_a_hook_that_died_is_queued(paths):
    private_dir(paths.spool_dir)
    write(f"{paths.spool_dir}/.own-1-2", '{"half')
    assert "spool" not in problems(paths)
    assert "died" in problems(paths, now=NOW + HOUR_MS)["spool"].words
    assert len(daemon_doctor.repair_files(paths, NOW + HOUR_MS)) == 1
    assert spool.drainable(paths.spool_dir) == [f"{paths.spool_dir}/own-1-2.jsonl"]


def test_settings_and_projects_that_do_not_parse_are_named(paths):
    write(paths.config_file, "[sync]\ninterval_s = 'many'")
    write(paths.projects_file, "[projects]\nwork = 'shop'")
    found = problems(paths)
    assert "sync.interval_s" in found["settings"].words
    assert "must begin with /" in found["projects"].words
    write(paths.config_file, "[sync]\ninterval_s = 7")
    write(paths.projects_file, "[projects]\n'~/work' = 'shop'")
    assert problems(paths) == {}


def test_settings_that_are_none_any_more_are_named_with_what_became_of_them(paths):
    write(paths.config_file, OLD_CONFIG.read_text(encoding="utf-8"))
    found = [
        one
        for one in daemon_doctor.examine_files(paths, "/home/dev", NOW, is_served=False)
        if one.name == "settings"
    ]
    assert {one.verdict for one in found} == {"warning"}
    assert [one.words for one in found] == [
        f"{name} is no setting any more: {became}" for name, became in RETIRED.items()
    ]
    assert paths.config_file in found[0].remedy


@pytest.mark.parametrize(("free", "verdict"), [(1024, "problem"), (500 * 1024**2, "warning")])
def test_a_filling_disk_is_reported(paths, monkeypatch, free, verdict):
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr(daemon_doctor.shutil, "disk_usage", lambda _: usage)
    assert problems(paths)["disk"].verdict == verdict


# ── Damage ───────────────────────────────────────────────────────────────────────────────────────


def open_and_close(paths):
    with daemon_doctor.open_vault(paths, AT):
        pass


def test_a_vault_is_created_opened_and_closed(paths):
    open_and_close(paths)
    open_and_close(paths)
    assert daemon_doctor.find_damage(paths) is None
    assert not Path(paths.database + "-wal").exists()


def test_an_empty_file_is_a_new_vault_only_where_no_daemon_has_served(paths):
    Path(paths.database).touch()
    open_and_close(paths)
    Path(paths.database).write_bytes(b"")
    Path(paths.log).write_text('{"event": "daemon_started"}\n', encoding="utf-8")
    with pytest.raises(VaultCorrupt, match=r"is empty, and was a vault.*`memd restore --salvage`"):
        open_and_close(paths)
    assert Path(paths.database).read_bytes() == b""
    assert daemon_doctor.find_damage(paths).verdict == "problem"


def test_the_advice_for_a_damaged_vault_names_its_backup(paths):
    open_and_close(paths)
    backup.create_backup(paths, None, 5, AT, lambda *_: None)
    Path(paths.database).write_bytes(b"Dear diary.\n" * 99)
    with pytest.raises(
        VaultCorrupt, match=r"`memd restore` brings back the backup of 2023-11-14 22:13"
    ):
        open_and_close(paths)
    assert "spool" in daemon_doctor.advise_recovery(paths)
    Path(paths.database).write_bytes(b"")
    with pytest.raises(VaultCorrupt, match="is empty"):
        daemon_doctor.refuse_emptied_vault(paths)


def test_a_foreign_file_is_refused_without_advice(paths):
    with sqlite3.connect(paths.database) as connection:
        connection.execute("CREATE TABLE treasure (a)")
    connection.close()
    assert "restore" not in daemon_doctor.find_damage(paths).words
    with pytest.raises(VaultError, match="another program"):
        open_and_close(paths)


def test_a_full_disk_at_the_start_is_given_the_reserve(paths, monkeypatch):
    attempts = []

    def open_on_full_disk(path, now):
        attempts.append(path)
        if Path(f"{paths.spool_dir}.reserve").exists():
            raise VaultFull
        return real_database(path, now)

    real_database = daemon_doctor.Database
    monkeypatch.setattr(daemon_doctor, "Database", open_on_full_disk)
    assert spool.keep_reserve(paths.spool_dir)
    open_and_close(paths)
    assert len(attempts) == 2
    assert not Path(f"{paths.spool_dir}.reserve").exists()
