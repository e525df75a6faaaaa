import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memd.daemon import process
from memd.errors import AlreadyRunning, Broken
from memd.paths import Paths

HOLD = """
import signal, sys, time
from memd.daemon import process
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with process.hold_lock(sys.argv[1], 1):
    print("held", flush=True)
    time.sleep(600)
"""
_HOLD_UNTIL_EOF = """
import sys
from memd.daemon import process
with process.hold_lock(sys.argv[1], 1234):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def paths(tmp_path):
    return Paths({"MEMD_HOME": str(tmp_path)})


@pytest.fixture
def start_holder(paths):
    """Starts a process that holds the vault's lock; `stubborn` ignores SIGTERM."""
    started = []

    def hold(temper):
        child = subprocess.Popen(
            [sys.executable, "-c", HOLD, paths.lock, temper], stdout=subprocess.PIPE, text=True
        )
        started.append(child)
        assert child.stdout.readline() == "held\n"
        return child

    yield hold
    for child in started:
        child.kill()
        child.communicate()


def test_a_daemon_is_ended_by_sigterm(paths, start_holder):
    child = start_holder("polite")
    process.kill_daemon(paths.lock)
    assert child.wait(60) == -signal.SIGTERM
    assert process.find_lock_holder(paths.lock) is None


def test_a_daemon_that_ignores_sigterm_is_killed(paths, start_holder):
    child = start_holder("stubborn")
    process.kill_daemon(paths.lock, stop_s=0.3)
    assert child.wait(60) == -signal.SIGKILL


def test_killing_no_daemon_does_nothing(paths):
    process.kill_daemon(paths.lock)


def test_the_pid_in_the_note_of_a_free_lock_is_not_signalled(paths):
    """A killed daemon leaves its pid in the file; it may belong to another process by now."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as innocent:
        Path(paths.lock).parent.mkdir(parents=True)
        Path(paths.lock).write_text(f'{{"pid": {innocent.pid}, "started_at": 1}}', encoding="utf-8")
        process.kill_daemon(paths.lock)
        assert innocent.poll() is None
        innocent.kill()


def test_waiting_for_the_lock_times_out(paths, start_holder):
    start_holder("polite")
    assert not process.wait_until_unlocked(paths.lock, 0.1)


def exiting(code):
    return subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])


def test_a_daemon_that_ends_as_it_starts_is_reported_with_the_end_of_its_log(paths):
    log = Path(paths.log)
    log.parent.mkdir(parents=True)
    log.write_text("\n".join(f"line {n}" for n in range(100)), encoding="utf-8")
    with pytest.raises(Broken, match=r"exit 3(.|\n)*line 99") as caught:
        process.wait_until_ready(exiting(3), lambda: False, paths.log)
    assert "line 50" not in caught.value.message


def test_the_log_of_an_earlier_daemon_is_not_quoted(paths):
    log = Path(paths.log)
    log.parent.mkdir(parents=True)
    log.write_text("the trouble of yesterday\n", encoding="utf-8")
    before = process.log_size(paths.log)
    with log.open("a", encoding="utf-8") as file:
        file.write("the trouble of today\n")
    with pytest.raises(Broken, match="today") as caught:
        process.wait_until_ready(exiting(1), lambda: False, paths.log, since=before)
    assert "yesterday" not in caught.value.message
    assert process.read_log_tail(paths.log, since=10_000) == process.read_log_tail(
        paths.log
    )  # rotated


def test_a_daemon_that_never_answers_is_reported_after_the_timeout(paths):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        with pytest.raises(Broken, match=rf"pid {child.pid}.*does not answer"):
            process.wait_until_ready(child, lambda: False, paths.log, timeout_s=0.1)
        child.kill()


def test_a_daemon_that_answers_is_ready(paths):
    answers = iter([False, False, True])
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        process.wait_until_ready(child, lambda: next(answers), paths.log)
        child.kill()


def test_a_missing_log_is_empty(paths):
    assert process.log_size(paths.log) == 0
    assert process.read_log_tail(paths.log) == []


def test_the_start_failure_is_read_from_the_log_until_a_daemon_runs(paths):
    Path(paths.state_dir).mkdir()
    assert process.read_start_failure(paths.log) is None
    process.log_start_failure(paths.log, "the vault is\ndamaged")
    assert process.read_start_failure(paths.log) == "the vault is damaged"
    process.log_event(paths.log, "vault_replaced", 1_700_000_000_000)
    assert process.read_start_failure(paths.log) is None
    last = Path(paths.log).read_text(encoding="utf-8").splitlines()[-1]
    assert '"event": "vault_replaced"' in last
    assert "2023-11-14T22:13:20Z" in last


@pytest.fixture
def lock(tmp_path):
    return str(tmp_path / "vaults" / "v.lock")


@pytest.fixture
def other_holder(lock):
    """Another process that holds the lock until its stdin closes."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD_UNTIL_EOF, lock],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


def test_a_missing_lock_has_no_holder(lock):
    assert process.find_lock_holder(lock) is None
    assert not Path(lock).exists()


def test_the_lock_is_private_and_names_its_holder(lock):
    with process.hold_lock(lock, 77):
        assert stat.S_IMODE(Path(lock).stat().st_mode) == 0o600
        assert process.find_lock_holder(lock) == process.LockHolder(os.getpid(), 77)
    assert process.find_lock_holder(lock) is None


def test_a_second_process_is_refused_with_the_pid_of_the_first(lock, other_holder):
    with (
        pytest.raises(AlreadyRunning, match=rf"pid {other_holder.pid}\b"),
        process.hold_lock(lock, 1),
    ):
        pytest.fail("both hold it")
    assert process.find_lock_holder(lock) == process.LockHolder(other_holder.pid, 1234)


def test_a_killed_holder_frees_the_lock(lock, other_holder):
    other_holder.kill()
    other_holder.wait()
    with process.hold_lock(lock, 5):
        assert process.find_lock_holder(lock) == process.LockHolder(os.getpid(), 5)


def test_a_holder_without_a_readable_note_still_holds(lock):
    with process.hold_lock(lock, 1):
        Path(lock).write_text("garbage", encoding="utf-8")
        assert process.find_lock_holder(lock) == process.LockHolder(0, 0)
        with pytest.raises(AlreadyRunning, match="another process"), process.hold_lock(lock, 1):
            pytest.fail("both hold it")


def test_looking_at_the_lock_does_not_make_a_starting_daemon_give_up(lock):
    """`find_lock_holder` locks for an instant; `hold_lock` must outlast it."""
    for _ in range(50):
        with process.hold_lock(lock, 1):
            pass
        assert process.find_lock_holder(lock) is None


@pytest.mark.usefixtures("other_holder")
def test_a_refused_process_does_not_wait_for_the_holder_to_end(lock, monkeypatch):
    """It would take over when the first one is stopped."""
    monkeypatch.setattr(process, "LOCK_WAIT_S", 3_600)
    with pytest.raises(AlreadyRunning), process.hold_lock(lock, 1):
        pytest.fail("both hold it")


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "v.lock").symlink_to(precious)
    with (
        pytest.raises(OSError, match="symbolic links"),
        process.hold_lock(str(tmp_path / "v.lock"), 0),
    ):
        pass
    assert precious.read_text() == "precious"
