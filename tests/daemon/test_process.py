import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memd.daemon import process
from memd.errors import Broken
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


@pytest.fixture
def paths(tmp_path):
    return Paths({"MEMD_HOME": str(tmp_path)})


@pytest.fixture
def holder(paths):
    """A process that holds the vault's lock; called with how it takes SIGTERM."""
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


def test_a_polite_daemon_is_asked_to_end(paths, holder):
    child = holder("polite")
    process.kill_daemon(paths.lock)
    assert child.wait(60) == -signal.SIGTERM
    assert process.find_lock_holder(paths.lock) is None


def test_a_daemon_that_does_not_end_is_killed(paths, holder):
    child = holder("stubborn")
    process.kill_daemon(paths.lock, stop_s=0.3)
    assert child.wait(60) == -signal.SIGKILL


def test_ending_what_does_not_run_is_nothing(paths):
    process.kill_daemon(paths.lock)


def test_nobody_is_signalled_on_the_word_of_a_note_whose_lock_is_free(paths):
    """A daemon that was killed leaves its number in the file; it may be anybody's by now."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as innocent:
        Path(paths.lock).parent.mkdir(parents=True)
        Path(paths.lock).write_text(
            f'{{"pid": {innocent.pid}, "started_at": 1}}', encoding="utf-8"
        )
        process.kill_daemon(paths.lock)
        assert innocent.poll() is None
        innocent.kill()


def test_waiting_for_the_lock_gives_up(paths, holder):
    holder("polite")
    assert not process.wait_until_unlocked(paths.lock, 0.1)


def dies(code, said=""):
    return subprocess.Popen(
        [sys.executable, "-c", f"print({said!r}); raise SystemExit({code})"]
    )


def test_a_daemon_that_dies_as_it_starts_is_told_with_the_end_of_its_log(paths):
    log = Path(paths.log)
    log.parent.mkdir(parents=True)
    log.write_text("\n".join(f"line {n}" for n in range(100)), encoding="utf-8")
    with pytest.raises(Broken, match=r"exit 3(.|\n)*line 99") as caught:
        process.wait_until_ready(dies(3), lambda: False, paths.log)
    assert "line 50" not in caught.value.message


def test_of_the_log_only_what_this_daemon_said_is_told(paths):
    log = Path(paths.log)
    log.parent.mkdir(parents=True)
    log.write_text("the trouble of yesterday\n", encoding="utf-8")
    before = process.log_size(paths.log)
    with log.open("a", encoding="utf-8") as file:
        file.write("the trouble of today\n")
    with pytest.raises(Broken, match="today") as caught:
        process.wait_until_ready(dies(1), lambda: False, paths.log, since=before)
    assert "yesterday" not in caught.value.message
    assert process.read_log_tail(paths.log, since=10_000) == process.read_log_tail(
        paths.log
    )  # turned over


def test_a_log_that_is_not_there_is_empty(paths):
    assert process.log_size(paths.log) == 0


def test_a_daemon_that_never_answers_is_told_after_the_deadline(paths):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        with pytest.raises(Broken, match=rf"pid {child.pid}.*does not answer"):
            process.wait_until_ready(child, lambda: False, paths.log, timeout_s=0.1)
        child.kill()


def test_a_daemon_that_answers_is_ready(paths):
    answers = iter([False, False, True])
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        process.wait_until_ready(child, lambda: next(answers), paths.log)
        child.kill()


def test_a_log_that_is_not_there_has_no_last_lines(paths):
    assert process.read_log_tail(paths.log) == []


def test_why_no_daemon_could_start_is_the_last_word_until_one_runs(paths):
    Path(paths.state_dir).mkdir()
    assert process.read_start_failure(paths.log) is None
    process.log_start_failure(paths.log, "the vault is\ndamaged")
    assert process.read_start_failure(paths.log) == "the vault is damaged"
    process.log_event(paths.log, "vault_replaced", 1_700_000_000_000)
    assert process.read_start_failure(paths.log) is None
    last = Path(paths.log).read_text(encoding="utf-8").splitlines()[-1]
    assert '"event": "vault_replaced"' in last
    assert "2023-11-14T22:13:20Z" in last
