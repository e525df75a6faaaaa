"""Import transcripts of past sessions as events: streamed, resumable, and one bad file stops no other.

A file that was read to its end and acknowledged gets a checkpoint. One that was interrupted or has grown
is read again; the events that are stored already are duplicates.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.errors import MemdError, Unreachable
from memd.paths import LINE_BYTES_MAX
from memd.transfer import claude_markup, session_files
from memd.transfer.importer import Checkpoints, ImportReport, Progress
from memd.transfer.readers.base import AHEAD_MS, ImportedPayload, SessionReader
from memd.transfer.session_sources import CLAUDE_CODE, SessionSource, SharedLines
from memd.transfer.sources import Stamp, read_stamp

BATCH_EVENTS_MAX = 200
BATCH_BYTES_MAX = 2 * 1024 * 1024
TRANSCRIPT_LINE_BYTES_MAX = 32 * 1024 * 1024
"""A prompt with a few screenshots has many megabytes; a longer line is left out."""
_SKIPPED_BYTES = 262_144
"""Bytes that are read at once of what is left out."""
REQUEST_BYTES_MAX = LINE_BYTES_MAX - 65_536
"""Bytes of an event's JSON that fit on a line of the socket, with the request around them."""
REQUEST_VALUES_MAX = 80_000
"""Values and surrogate escapes in one request; the daemon takes 100,000."""
_VALUE_MARKS = (",", "[", "{", "\\ud")
"""The number of these in a JSON text is an upper bound of its values."""
QUIET_MS = 600_000
"""A session whose last line was written within ten minutes may still be going on."""

SendEvents = Callable[[list[dict[str, Any]]], Sequence[Mapping[str, Any]]]
"""Sends events, in order, and returns a receipt for each."""
TruncatePayload = Callable[[Any], Any]
"""Redacts a payload and makes it small enough for a request."""


@dataclass(slots=True)
class TranscriptImportReport(ImportReport):
    """Counts of an import of transcripts so far, or with `is_dry_run` of what it would do.

    Its outcomes are stored, duplicate, filtered and refused.
    """

    reasons: Counter[str] = field(default_factory=Counter)
    """Why events were filtered or refused → count."""
    events: Counter[str] = field(default_factory=Counter)
    """The client's name of an event → number found."""
    moved: Counter[str] = field(default_factory=Counter)
    """Where sessions stood that an older memd had misplaced, and where they stand now → number of sessions."""
    growing: list[str] = field(default_factory=list)
    """Those of `done` whose session seems to be going on: the next import reads them again."""


def import_transcripts(  # noqa: PLR0913  # the last three are named wherever it is called
    files: Sequence[str], send: SendEvents | None, checkpoints: Checkpoints, progress: Progress, *,
    truncate: TruncatePayload, report: TranscriptImportReport, now: int,
    source: SessionSource = CLAUDE_CODE,
) -> None:  # fmt: skip
    """Import these files of one source and add to the report. `now` is UTC milliseconds.

    Raises Unreachable without a daemon; the report has every other problem. In a dry run `send` asks what
    would become of the events; None if there is no daemon to ask.
    """
    stamps = {path: find_stamp(path) for path in files}
    total = sum(size for size, _ in stamps.values())
    before = 0
    # A dry run stores nothing, so the daemon does not recognise a line's copy in another file.
    shared = SharedLines(seen=set() if report.is_dry_run else None)
    for path in files:
        stamp = stamps[path]
        if checkpoints.get(path) == stamp:
            report.unchanged.append(path)
        else:
            reader = source.make_reader(Path(path), shared)
            reader.queue.waits_for_time, reader.queue.latest = True, now + AHEAD_MS
            changed_at = stamp[1] // 1_000
            run = _TranscriptImport(
                path, source.client, changed_at, now, send, truncate, report, reader
            )
            is_complete = run.import_file(progress, before, total)
            if is_complete and not report.is_dry_run:
                checkpoints[path] = stamp
        before += stamp[0]
        progress(path, before, total)


def find_stamp(path: str) -> Stamp:
    """Return a file's stamp, with that of the write-ahead log of a database; zeros if it has none."""
    stamp: Stamp = (0, 0)
    names = [path, f"{path}-wal"] if path.endswith(session_files.DATABASE) else [path]
    for name in names:
        with contextlib.suppress(OSError):
            size, changed = read_stamp(Path(name))
            stamp = stamp[0] + size, max(stamp[1], changed)
    return stamp


def _tell_error(error: OSError | MemdError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


@dataclass(slots=True)
class _TranscriptImport:
    """The import of one file."""

    path: str
    client: str
    changed_at: int
    now: int
    send: SendEvents | None
    truncate: TruncatePayload
    report: TranscriptImportReport
    reader: SessionReader
    batch: list[dict[str, Any]] = field(default_factory=list)
    batch_bytes: int = 0
    batch_values: int = 0

    def import_file(self, progress: Progress, before: int, total: int) -> bool:
        """Import the file; return whether all of it was read and acknowledged, and its session is over."""
        reader, report = self.reader, self.report
        try:
            for line, offset in self._read_lines():
                for found in reader.feed(line):
                    self._add_to_batch(found)
                progress(self.path, before + offset, total)
            # A copy is younger than its last line; a file whose lines have no time has only its own.
            last_at = self.changed_at if reader.last_at is None else reader.last_at
            is_growing = 0 <= self.now - min(last_at, self.changed_at) < QUIET_MS
            for found in reader.finish(is_growing=is_growing):
                self._add_to_batch(found)
            self._send_batch()
        except Unreachable:
            raise
        except (OSError, MemdError) as error:
            report.failed[self.path] = _tell_error(error)
            # What was read before the damage counts. A batch that could not be sent is gone by now.
            with contextlib.suppress(MemdError):
                self._send_batch()
            return False
        finally:
            report.skipped.update(reader.skipped)
        report.done.append(self.path)
        report.growing += [self.path] if reader.is_open else []
        return not reader.is_open

    def _read_lines(self) -> Iterator[tuple[bytes, int]]:
        """Yield the lines of the file and where each ends; a line that is too long is left out."""
        with session_files.open_session_file(self.path) as file:
            while line := file.readline(TRANSCRIPT_LINE_BYTES_MAX):
                if len(line) < TRANSCRIPT_LINE_BYTES_MAX or line.endswith(b"\n"):
                    yield line, file.tell()
                    continue
                self.reader.skipped["line too long"] += 1
                while line and not line.endswith(b"\n"):
                    line = file.readline(_SKIPPED_BYTES)

    def _add_to_batch(self, found: ImportedPayload) -> None:
        self.report.events[str(found.payload.get("hook_event_name"))] += 1
        if self.send is None:
            return
        payload = claude_markup.limit_for_wire(found.payload)
        event = {
            "client": self.client,
            "payload": payload,
            # A line without a time is not younger than its file, nor is that younger than now.
            "at": min(self.changed_at, self.now) if found.at is None else found.at,
            "directory": found.directory,
            "source": "import",
        }
        size, values = _measure_event(event)
        if size > REQUEST_BYTES_MAX or values > REQUEST_VALUES_MAX:
            event["payload"] = self.truncate(payload)
            size, values = _measure_event(event)
        if size > REQUEST_BYTES_MAX or values > REQUEST_VALUES_MAX:
            self.reader.skipped["too large to hand over"] += 1
            return
        is_full = self.batch_bytes + size > BATCH_BYTES_MAX
        if is_full or self.batch_values + values > REQUEST_VALUES_MAX:
            self._send_batch()
        self.batch.append(event)
        self.batch_bytes += size
        self.batch_values += values
        if len(self.batch) >= BATCH_EVENTS_MAX:
            self._send_batch()

    def _send_batch(self) -> None:
        batch, self.batch = self.batch, []
        self.batch_bytes = self.batch_values = 0
        if not batch or self.send is None:
            return
        for receipt in self.send(batch):
            outcome = str(receipt.get("outcome"))
            self.report.outcomes[outcome] += 1
            if moved := receipt.get("moved"):
                self.report.moved[str(moved)] += 1
            if outcome in ("filtered", "refused"):
                self.report.reasons[str(receipt.get("reason"))] += 1


def _measure_event(event: Mapping[str, Any]) -> tuple[int, int]:
    """Return the bytes of an event's JSON, and an upper bound of its values."""
    text = json.dumps(event)
    return len(text), sum(map(text.count, _VALUE_MARKS))
