"""A log to read, and no log that is left open."""

import json
import logging

import pytest

from memd import log


def close_log():
    """Close the log and take it away: a handler that was closed opens its file again to write."""
    logger = logging.getLogger("memd")
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


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
