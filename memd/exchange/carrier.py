"""Carries the transcripts of past sessions to the intake: streamed, resumable, the same rows twice.

A file is marked once it was read to its end and all of it acknowledged, so an import that is broken
off begins again with the file it was in, and the events that were already stored are duplicates. One
bad file never stops the rest. Not here: what a line means (transcripts.py), or who listens.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.errors import MemdError, Unreachable
from memd.exchange.transcripts import Payload, TranscriptReader

CLIENT = "claude-code"
BATCH = 200
BATCH_BYTES = 4 * 1024 * 1024
LINE_BYTES_MAX = 4 * 1024 * 1024
"""A longer line is an image or an accident."""
REQUEST_BYTES_MAX = 12 * 1024 * 1024
_SUFFIX = ".jsonl"

Send = Callable[[list[dict[str, Any]]], Sequence[Mapping[str, Any]]]
"""Hands over captures, in order, and returns a receipt for each."""
Marks = MutableMapping[str, tuple[int, int]]
"""path → (bytes, modification time in ns) of the files that were read to their end."""
Progress = Callable[[str, int, int], None]
"""Told the file in hand, the bytes read so far and the bytes of all files."""


@dataclass(slots=True)
class ImportReport:
    """What an import did, or with `is_dry_run` would do."""

    is_dry_run: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)
    """stored, duplicate, filtered, refused → how many."""
    events: Counter[str] = field(default_factory=Counter)
    """The client's name of the event → how many were found."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Why lines were left out → how many."""
    done: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Path → why it could not be read or handed over."""


def find_transcripts(paths: Iterable[str] | None, environ: Mapping[str, str]) -> list[str]:
    """The transcripts in these files and directories, or in Claude Code's own, oldest first."""
    if paths is None:
        config = environ.get("CLAUDE_CONFIG_DIR")
        base = Path(config) if config else Path(environ.get("HOME", "")) / ".claude"
        paths = [str(base / "projects")] if (base / "projects").is_dir() else []
    found = {str(file.absolute()) for path in paths for file in _below(Path(path))}
    return sorted(found, key=lambda path: (_stamp(path)[1], path))


def carry(
    files: Sequence[str], send: Send, marks: Marks, progress: Progress, *, dry_run: bool = False
) -> ImportReport:
    """Import these files. Raises Unreachable if nobody listens; every other trouble is in the report."""
    report = ImportReport(is_dry_run=dry_run)
    stamps = {path: _stamp(path) for path in files}
    total = sum(size for size, _ in stamps.values())
    before = 0
    seen: set[int] = set()
    for path in files:
        if marks.get(path) == stamps[path] and not dry_run:
            report.unchanged.append(path)
        else:
            _carry_one(_Load(path, send, report, seen), progress, (before, total))
            if path not in report.failed and not dry_run:
                marks[path] = stamps[path]
        before += stamps[path][0]
        progress(path, before, total)
    return report


@dataclass(slots=True)
class _Load:
    """One file on its way."""

    path: str
    send: Send
    report: ImportReport
    seen: set[int]
    batch: list[dict[str, Any]] = field(default_factory=list)
    batch_bytes: int = 0

    def add(self, found: Payload) -> None:
        """Take one payload along."""
        self.report.events[str(found.payload.get("hook_event_name"))] += 1
        if self.report.is_dry_run:
            return
        capture = {
            "client": CLIENT,
            "payload": found.payload,
            "at": found.at,
            "directory": found.directory,
            "source": "import",
        }
        size = len(json.dumps(capture))
        if size > REQUEST_BYTES_MAX:
            self.report.skipped["too large to hand over"] += 1
            return
        if self.batch and self.batch_bytes + size > BATCH_BYTES:
            self.hand_over()
        self.batch.append(capture)
        self.batch_bytes += size
        if len(self.batch) >= BATCH:
            self.hand_over()

    def hand_over(self) -> None:
        """Send what was taken along, and count the receipts."""
        if self.batch:
            batch, self.batch, self.batch_bytes = self.batch, [], 0
            self.report.outcomes.update(str(r.get("outcome")) for r in self.send(batch))


def _carry_one(load: _Load, progress: Progress, span: tuple[int, int]) -> None:
    reader = TranscriptReader(seen=load.seen)
    before, total = span
    try:
        for line, offset in _lines(load.path, reader.skipped):
            for found in reader.feed(line):
                load.add(found)
                progress(load.path, before + offset, total)
        for found in reader.finish():
            load.add(found)
        load.hand_over()
    except Unreachable:
        raise
    except (OSError, MemdError) as error:
        load.report.failed[load.path] = str(error)
    else:
        load.report.done.append(load.path)
    finally:
        load.report.skipped.update(reader.skipped)


def _lines(path: str, skipped: Counter[str]) -> Iterator[tuple[bytes, int]]:
    """The lines of a file and where each ends; what is too long is passed over, never held."""
    with Path(path).open("rb") as file:
        while line := file.readline(LINE_BYTES_MAX):
            if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
                skipped["line too long"] += 1
                while line and not line.endswith(b"\n"):
                    line = file.readline(LINE_BYTES_MAX)
                continue
            yield line, file.tell()


def _below(path: Path) -> Iterator[Path]:
    """A file itself; of a directory, every transcript in it, however deep, but no pipe and no device."""
    if not path.is_dir():
        yield path
        return
    for parent, _, names in os.walk(path):
        found = (Path(parent, name) for name in names if name.endswith(_SUFFIX))
        yield from (file for file in found if file.is_file())


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = Path(path).stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns
