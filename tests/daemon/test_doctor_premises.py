"""Each thing is broken for real in a home of its own, found, and mended where it can be."""

import os
import socket
import time
from pathlib import Path

import pytest

from memd.capture import spool
from memd.daemon import doctor, process
from memd.paths import Paths, private_dir

NOW = time.time_ns() // 1_000_000
HOUR = 3_600_000


@pytest.fixture
def paths(tmp_path):
    paths = Paths({"MEMD_HOME": str(tmp_path)})
    for directory in (paths.data_dir, paths.state_dir, paths.runtime_dir):
        private_dir(directory)
    return paths


def wrong(paths, *, is_served=False, now=NOW):
    found = doctor.examine_files(paths, "/home/dev", now, is_served=is_served)
    return {one.name: one for one in found if one.verdict != "ok"}


def write(path, text="", mode=0o600):
    Path(path).write_text(text, encoding="utf-8")
    Path(path).chmod(mode)


def test_nothing_is_wrong_with_a_fresh_home_or_with_none(paths, tmp_path):
    assert wrong(paths) == {}
    assert wrong(Paths({"MEMD_HOME": str(tmp_path / "none")})) == {}
    assert not (tmp_path / "none").exists()


def test_what_is_open_to_others_is_found_and_closed(paths):
    write(paths.database, "x", 0o644)
    Path(paths.state_dir).chmod(0o755)
    found = wrong(paths)["permissions"]
    assert (found.verdict, found.fixable) == ("problem", True)
    assert f"{paths.database} (0644)" in found.words
    assert len(doctor.repair_files(paths, NOW)) == 2
    assert wrong(paths) == {}
    assert Path(paths.database).stat().st_mode & 0o777 == 0o600
    assert Path(paths.state_dir).stat().st_mode & 0o777 == 0o700


def test_only_the_first_of_many_are_named(paths):
    for number in range(5):
        write(f"{paths.log}.{number}", mode=0o640)
    assert "and 2 more" in wrong(paths)["permissions"].words


def test_what_a_dead_daemon_left_is_found_and_taken_away(paths):
    door = socket.socket(socket.AF_UNIX)
    door.bind(paths.socket)
    Path(paths.socket).chmod(0o600)
    door.close()
    write(paths.lock, '{"pid": 1, "started_at": 1}')
    found = wrong(paths)["lock"]
    assert paths.socket in found.words
    assert paths.lock in found.words
    assert doctor.repair_files(paths, NOW) == ["took away what a dead daemon left"]
    assert wrong(paths) == {}
    assert not Path(paths.socket).exists()


def test_a_socket_at_which_somebody_listens_is_left(paths):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(paths.socket)
        Path(paths.socket).chmod(0o600)
        door.listen()
        assert wrong(paths) == {}
        assert doctor.repair_files(paths, NOW) == []


def test_a_daemon_that_holds_the_vault_and_is_silent_is_a_problem(paths):
    with process.hold_lock(paths.lock, 1):
        found = wrong(paths)["lock"]
        assert found.verdict == "problem"
        assert f"pid {os.getpid()}" in found.words
        assert doctor.repair_files(paths, NOW) == []
        assert "lock" not in wrong(paths, is_served=True)


def test_a_daemon_that_is_being_started_is_a_warning(paths):
    with process.hold_lock(f"{paths.lock}.start", 1):
        assert wrong(paths)["lock"].verdict == "warning"


def test_what_waits_in_the_spool_is_told_by_whether_a_daemon_runs(paths):
    spool.append(paths.spool_dir, b"{}")
    assert wrong(paths)["spool"].remedy.startswith("`memd start`")
    assert wrong(paths, is_served=True) == {}
    now = time.time_ns() // 1_000_000
    assert "for 0 min" in wrong(paths, now=now - HOUR)["spool"].words, "the clock was set back"
    late = wrong(paths, is_served=True, now=now + HOUR)["spool"]
    assert (late.verdict, late.fixable) == ("problem", True)
    assert "60 min" in late.words


def test_what_a_hook_had_no_time_to_name_is_put_in_line(paths):
    private_dir(paths.spool_dir)
    write(f"{paths.spool_dir}/.own-1-2", '{"half')
    assert "spool" not in wrong(paths)
    assert "died" in wrong(paths, now=NOW + HOUR)["spool"].words
    assert len(doctor.repair_files(paths, NOW + HOUR)) == 1
    assert spool.drainable(paths.spool_dir) == [f"{paths.spool_dir}/own-1-2.jsonl"]


def test_settings_and_projects_that_do_not_parse_are_named(paths):
    write(paths.config_file, "[index]\nbatch = 'many'")
    write(paths.projects_file, "[projects]\nwork = 'shop'")
    found = wrong(paths)
    assert "index.batch" in found["settings"].words
    assert "must begin with /" in found["projects"].words
    write(paths.config_file, "[index]\nbatch = 7")
    write(paths.projects_file, "[projects]\n'~/work' = 'shop'")
    assert wrong(paths) == {}


@pytest.mark.parametrize(("free", "verdict"), [(1024, "problem"), (500 * 1024**2, "warning")])
def test_a_disk_that_fills_is_told(paths, monkeypatch, free, verdict):
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage)
    assert wrong(paths)["disk"].verdict == verdict
