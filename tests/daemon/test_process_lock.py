import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memd.daemon import process as daemon_process
from memd.errors import AlreadyRunning

HOLD = """
import sys
from memd.daemon import process
with process.hold_lock(sys.argv[1], 1234):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "vaults" / "v.lock")


@pytest.fixture
def other(path):
    """Another process that holds the lock until its stdin closes."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_nobody_holds_a_lock_that_was_never_made(path):
    assert daemon_process.find_lock_holder(path) is None
    assert not Path(path).exists()


def test_the_lock_is_private_and_names_its_holder(path):
    with daemon_process.hold_lock(path, 77):
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
        assert daemon_process.find_lock_holder(path) == daemon_process.LockHolder(
            os.getpid(), 77
        )
    assert daemon_process.find_lock_holder(path) is None


def test_a_second_process_is_refused_and_told_the_pid(path, other):
    with (
        pytest.raises(AlreadyRunning, match=rf"pid {other.pid}\b"),
        daemon_process.hold_lock(path, 1),
    ):
        pytest.fail("both hold it")
    assert daemon_process.find_lock_holder(path) == daemon_process.LockHolder(other.pid, 1234)


def test_a_killed_holder_frees_the_lock(path, other):
    other.kill()
    other.wait()
    with daemon_process.hold_lock(path, 5):
        assert daemon_process.find_lock_holder(path) == daemon_process.LockHolder(
            os.getpid(), 5
        )


def test_a_holder_without_a_readable_note_still_holds(path):
    with daemon_process.hold_lock(path, 1):
        Path(path).write_text("garbage", encoding="utf-8")
        assert daemon_process.find_lock_holder(path) == daemon_process.LockHolder(0, 0)
        with (
            pytest.raises(AlreadyRunning, match="another process"),
            daemon_process.hold_lock(path, 1),
        ):
            pytest.fail("both hold it")


def test_a_glance_at_the_lock_does_not_make_a_starting_daemon_give_up(path):
    """`holder` locks for an instant; `held` must outlast it."""
    for _ in range(50):
        with daemon_process.hold_lock(path, 1):
            pass
        assert daemon_process.find_lock_holder(path) is None


@pytest.mark.usefixtures("other")
def test_who_is_refused_does_not_wait_for_the_holder_to_leave(path, monkeypatch):
    """It would take over the moment somebody stops the first one."""
    monkeypatch.setattr(daemon_process, "LOCK_WAIT_S", 3_600)
    with pytest.raises(AlreadyRunning), daemon_process.hold_lock(path, 1):
        pytest.fail("both hold it")


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "v.lock").symlink_to(precious)
    with (
        pytest.raises(OSError, match="symbolic links"),
        daemon_process.hold_lock(str(tmp_path / "v.lock"), 0),
    ):
        pass
    assert precious.read_text() == "precious"
