"""The log: one JSON object a line, events in the past tense with bound keys, never a secret.

The keys are `room`, `vault`, `session`, `count`, `reason`, `error`, `took_ms`, `pid`. Texts from
outside do not belong into the log at all; what slips into `error` or `reason` is redacted by the
function that `configure` is given. A line that cannot be written is let go: nobody waits for the log,
least of all on a full disk. Not here: what is worth logging (the doers know).
"""

import contextlib
import logging
import logging.handlers
import os
from collections.abc import Callable, Iterator, MutableMapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import structlog

Logger = structlog.stdlib.BoundLogger


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


class _MessageFormatter(logging.Formatter):
    """The message and nothing else: a traceback is in it already, redacted."""

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage()


class _LogFile(logging.handlers.RotatingFileHandler):
    """A file of this user's alone that may refuse a line; never a pipe, nor what a link leads to."""

    _is_torn = False

    def _open(self) -> TextIOWrapper:
        raw = open(self.baseFilename, "ab", opener=_opened)  # noqa: SIM115  # the handler closes it
        stream = TextIOWrapper(raw, encoding="utf-8")
        if self._is_torn:
            stream.write("\n")  # half a line stands before it
            self._is_torn = False
        return stream

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  # logging's own
        """Let the line go, and begin anew with the next one.

        Not told on stderr, as logging does: that may be a pipe which nobody empties, and who waits
        there is the whole daemon.
        """
        if self.stream is not None:
            with contextlib.suppress(OSError, ValueError):
                self.stream.close()
            self.stream = None  # it is opened again
            self._is_torn = True


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
        handler = _LogFile(path, maxBytes=max_bytes, backupCount=1, encoding="utf-8")
        os.chmod(path, 0o600)
    handler.setFormatter(_MessageFormatter())
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


def lines(path: str) -> Iterator[str]:
    """Every line of a log and of the older one beside it."""
    for file in _halves(path):
        yield from file.read_text(encoding="utf-8", errors="replace").splitlines()


def rewrite(path: str, change: Callable[[str], str | None]) -> int:
    """Change the lines of a log in place, the older one's too; None takes a line out. How many changed.

    Nothing is logged meanwhile, so no line is lost; the file stays the one that is written to.
    """
    handlers = logging.getLogger("memd").handlers
    for handler in handlers:
        handler.acquire()
    try:
        return sum(_rewrite(file, change) for file in _halves(path))
    finally:
        for handler in handlers:
            handler.release()


def _halves(path: str) -> list[Path]:
    return [file for file in (Path(path), Path(f"{path}.1")) if file.is_file()]


def _rewrite(file: Path, change: Callable[[str], str | None]) -> int:
    before = file.read_text(encoding="utf-8", errors="replace").splitlines()
    after = [change(line) for line in before]
    count = sum(old != new for old, new in zip(before, after, strict=True))
    if count:
        kept = "".join(f"{line}\n" for line in after if line is not None).encode()
        with file.open("r+b") as opened:
            opened.write(kept)
            opened.truncate()
            os.fsync(opened.fileno())
    return count
