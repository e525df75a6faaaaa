"""The log: one JSON object a line, events in the past tense with bound keys, never a secret.

The keys are `room`, `vault`, `session`, `count`, `reason`, `error`, `took_ms`, `pid`. Texts from
outside do not belong into the log at all; what slips into `error` or `reason` is redacted by the
function that `configure` is given. Not here: what is worth logging (the doers know).
"""

import logging
import logging.handlers
import os
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

Logger = structlog.stdlib.BoundLogger


class _Line(logging.Formatter):
    """The message and nothing else: a traceback is in it already, redacted."""

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage()


def configure(
    path: str | None, *, level: str, max_bytes: int, redact: Callable[[str], str]
) -> None:
    """Send the log to a file that turns over at `max_bytes`, or to stderr if `path` is None."""

    def clean(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {k: redact(v) if isinstance(v, str) else v for k, v in event.items()}

    handler: logging.Handler
    if path is None:
        handler = logging.StreamHandler()
    else:
        handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=max_bytes, backupCount=1, encoding="utf-8"
        )
        os.chmod(path, 0o600)
    handler.setFormatter(_Line())
    root = logging.getLogger("memd")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            clean,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def get(room: str) -> Logger:
    """The log of one room."""
    logger: Logger = structlog.stdlib.get_logger("memd").bind(room=room)
    return logger
