import json
import logging
import os
import stat
from pathlib import Path

import pytest

from memd import log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memd.log"


@pytest.fixture
def journal(path):
    """Configure a log; called with what `configure` takes, it gives a reader of its lines."""

    def open_log(**changed):
        settings = {"level": "info", "max_bytes": 1_000_000, "redact": str} | changed
        log.configure(str(path), **settings)
        return lambda: [json.loads(x) for x in path.read_text(encoding="utf-8").splitlines()]

    yield open_log
    for handler in tuple(logging.getLogger("memd").handlers):
        logging.getLogger("memd").removeHandler(handler)
        handler.close()
    log.configure(None, level="info", max_bytes=1, redact=str)


def test_a_log_line_has_an_event_its_worker_and_keys(journal):
    lines = journal()
    log.get("intake").info("events_stored", count=3)
    (line,) = lines()
    assert (line["event"], line["room"], line["count"]) == ("events_stored", "intake", 3)
    assert line["level"] == "info"
    assert line["timestamp"].endswith("Z")


def test_a_secret_that_slips_into_a_value_or_a_traceback_is_redacted(journal, path):
    journal(redact=lambda text: text.replace("hunter2", "[redacted]"))
    try:
        int("hunter2")
    except ValueError as error:
        log.get("intake").error("room_crashed", error=str(error), exc_info=error)
    text = path.read_text(encoding="utf-8")
    assert "hunter2" not in text
    assert "[redacted]" in text
    assert "Traceback" in text


def test_the_log_is_private(journal, path):
    journal()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_below_the_level_is_not_written(journal):
    lines = journal(level="warning")
    log.get("intake").info("events_stored")
    log.get("intake").warning("line_refused")
    assert [line["event"] for line in lines()] == ["line_refused"]


def test_a_full_log_is_rotated_and_one_older_log_stays(journal, path, tmp_path):
    journal(max_bytes=2_000)
    for number in range(100):
        log.get("intake").info("events_stored", count=number)
    assert path.stat().st_size <= 2_000
    assert sorted(file.name for file in tmp_path.iterdir()) == ["memd.log", "memd.log.1"]


def test_nothing_reaches_another_program_s_log(journal, caplog):
    journal()
    with caplog.at_level("DEBUG"):
        log.get("intake").info("events_stored")
    assert not logging.getLogger("memd").propagate


def test_without_a_path_the_log_goes_to_stderr(capsys):
    log.configure(None, level="info", max_bytes=1, redact=str)
    log.get("daemon").info("daemon_started", pid=1)
    assert json.loads(capsys.readouterr().err)["pid"] == 1


def test_lines_are_changed_and_taken_out_in_place_and_the_log_goes_on(journal, path):
    read = journal()
    for reason in ("one", "two", "three"):
        log.get("daemon").info("happened", reason=reason)
    path.with_name("memd.log.1").write_text("two\n", encoding="utf-8")
    changed = log.rewrite(
        str(path), lambda line: None if "two" in line else line.replace("three", "3")
    )
    log.get("daemon").info("happened", reason="four")
    assert [line["reason"] for line in read()] == ["one", "3", "four"]
    assert (changed, path.with_name("memd.log.1").read_bytes()) == (3, b"")
    assert len(list(log.lines(str(path)))) == 3


def test_a_log_is_private_after_it_has_turned_over_and_never_follows_a_link(journal, path):
    before = os.umask(0)
    try:
        journal(max_bytes=200)
        for _ in range(9):
            log.get("test").info("line_written", count=1)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    other = path.with_name("other.log")
    other.symlink_to(path.with_name("target"))
    with pytest.raises(OSError, match="symbolic links"):
        log.configure(str(other), level="info", max_bytes=200, redact=str)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_line_that_cannot_be_written_is_let_go_and_nothing_is_said_on_stderr(
    journal, path, capfd
):
    lines = journal()
    log.get("intake").info("first")
    (handler,) = logging.getLogger("memd").handlers
    handler.stream.close()
    handler.stream = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115  # the log closes it
    log.get("intake").info("second")
    log.get("intake").info("third")
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    assert [json.loads(line)["event"] for line in kept] == ["first", "third"]
    assert capfd.readouterr() == ("", "")
    del lines
