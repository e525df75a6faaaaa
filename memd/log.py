"""structlog configuration, redaction, rotation: one JSON object a line, past-tense events with bound keys.

The keys are `room` (the worker), `vault`, `session`, `count`, `reason`, `error`, `took_ms`, `pid`. Captured texts do not
belong in the log; what slips into `error` or `reason` is redacted by the function passed to `configure`. A line that
cannot be written is dropped: nothing waits for the log, least of all on a full disk.
"""

import contextlib
import logging
import logging.handlers
import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

_console_library = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]  # structlog would load it to colour a terminal: four megabytes
import structlog  # noqa: E402

if _console_library is None:
    del sys.modules["rich"]
else:
    sys.modules["rich"] = _console_library

Logger = structlog.stdlib.BoundLogger


def _open_log(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


class _MessageFormatter(logging.Formatter):
    """Formats the message alone: it already has the traceback, redacted."""

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage()


class _LogFile(logging.handlers.RotatingFileHandler):
    """A private log file; never a pipe or a link. A line that cannot be written is dropped."""

    _has_partial_line = False

    def _open(self) -> TextIOWrapper:
        raw = open(self.baseFilename, "ab", opener=_open_log)  # noqa: SIM115  # the handler closes it
        stream = TextIOWrapper(raw, encoding="utf-8")
        if self._has_partial_line:
            stream.write("\n")
            self._has_partial_line = False
        return stream

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  # logging's own
        """Drop the line and reopen the file for the next one.

        Nothing is written to stderr, as logging would: it may be a pipe that no process reads, and the
        whole daemon would block.
        """
        if self.stream is not None:
            with contextlib.suppress(OSError, ValueError):
                self.stream.close()
            self.stream = None  # logging opens it again
            self._has_partial_line = True


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
    close()
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


def close() -> None:
    """Close the file that the log goes to; a line after that opens it again."""
    for handler in logging.getLogger("memd").handlers:
        handler.close()


def get(worker: str) -> Logger:
    """Return the logger of one worker."""
    logger: Logger = structlog.stdlib.get_logger("memd").bind(room=worker)
    return logger


def lines(path: str) -> Iterator[str]:
    """Yield every line of a log and of the rotated one beside it."""
    for file in _log_files(path):
        yield from file.read_text(encoding="utf-8", errors="replace").splitlines()


def rewrite(path: str, change: Callable[[str], str | None]) -> int:
    """Change the lines of a log and its rotated one in place, None deletes a line; return the number of changes.

    Logging is locked meanwhile, so no line is lost, and the files keep their inodes.
    """
    handlers = logging.getLogger("memd").handlers
    for handler in handlers:
        handler.acquire()
    try:
        return sum(_rewrite_file(file, change) for file in _log_files(path))
    finally:
        for handler in handlers:
            handler.release()


def _log_files(path: str) -> list[Path]:
    return [file for file in (Path(path), Path(f"{path}.1")) if file.is_file()]


def _rewrite_file(file: Path, change: Callable[[str], str | None]) -> int:
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
