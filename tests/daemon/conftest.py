"""A log to read, no log that is left open, and a wait for a daemon."""

import json
import logging
import socket

import pytest

from memd import log
from memd.daemon.process import wait_until


def close_log():
    """Close the log and take it away: a handler that was closed opens its file again to write."""
    logger = logging.getLogger("memd")
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def wait_until_listening(path, timeout_s=60):
    """Wait for a daemon's socket; the file exists an instant before anything listens there."""

    def is_listening():
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(path) == 0

    assert wait_until(is_listening, timeout_s)


@pytest.fixture
def journal(tmp_path):
    """What was logged, as dicts; the word `hunter2` is redacted."""
    path = tmp_path / "journal.log"
    log.configure(
        str(path),
        level="info",
        max_bytes=1_000_000,
        redact=lambda text: text.replace("hunter2", "[redacted]"),
    )
    yield lambda: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    close_log()
    log.configure(None, level="info", max_bytes=1, redact=str)
