"""Import foreign memories and transcripts in batches: idempotent, resumable, and one bad file stops no other.

A file whose memories were all taken gets a checkpoint and is not read again until it changes. Each memory
is sent with its place in the file, so the daemon knows which are new, unchanged, or forgotten on purpose.

A transcript that was read to its end and acknowledged gets a checkpoint, too. One that was interrupted or has grown
is read again; the events that are stored already are duplicates.
"""

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.errors import BadRequest, MemdError, Unreachable
from memd.paths import LINE_BYTES_MAX
from memd.transfer import ForeignMemory, ReadIssues, claude_markup, session_sources
from memd.transfer.readers import AHEAD_MS, ImportedPayload, SessionReader
from memd.transfer.session_sources import CLAUDE_CODE, SessionSource, SharedLines
from memd.transfer.sources import ImportFile, ImportSource, Stamp, read_stamp

BATCH_MEMORIES_MAX = 100
BATCH_BYTES_MAX = 1024 * 1024
"""Bytes of JSON in a batch; a line on the socket may have 4 MiB."""
_WITHDRAW_IDS_MAX = 90_000
"""Ids in one request, which may have 100,000 values."""
_RESERVED_PROJECTS = frozenset({"all", "current"})
_MEMORY_FIELDS = (
    "title", "text", "kind", "tags", "files", "at", "session", "client",
)  # fmt: skip
_MISSING: Stamp = (0, 0)
"""The checkpoint of a deleted file."""

Checkpoints = MutableMapping[str, Stamp]
"""Key of a file → its stamp when all of it was taken."""
Progress = Callable[[str, int, int], None]
"""Called with the path of the current file, the bytes read so far and the bytes of all files."""


@dataclass(frozen=True, slots=True)
class MemorySink:
    """Receiver of imported memories."""

    remember: Callable[[list[dict[str, Any]]], Sequence[Mapping[str, Any]]]
    """Store a batch and return a receipt for each, in order; BadRequest: none of them is stored."""
    withdraw: Callable[[str, list[int]], int]
    """Withdraw the memories of a file except these ids; return how many were withdrawn."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options for storing memories."""

    source: str
    """What their source is called: `import:markdown`."""
    tier: str = "agent"
    project: str | None = None
    """The project that the user named; None: each memory's own."""
    is_dry_run: bool = False

    @property
    def checkpoint_prefix(self) -> str:
        """The checkpoints of this import begin with it."""
        project = f"@{self.project}" if self.project else ""
        return f"{self.source}{project}:"


@dataclass(slots=True)
class ImportReport:
    """Counts of an import so far, or with `is_dry_run` of what it would do."""

    is_dry_run: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)
    """What became of a memory or event → count."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Reason → number of things that were left out on purpose."""
    done: list[str] = field(default_factory=list)
    """The paths of the files that were read."""
    unchanged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Path → why it could not be read or sent."""
    broken: list[str] = field(default_factory=list)
    """Place and reason of what could not be read or stored."""

    @property
    def is_whole(self) -> bool:
        """Return whether all of it could be read and stored."""
        return not (self.failed or self.broken)


@dataclass(slots=True)
class MemoryImportReport(ImportReport):
    """Counts of an import of memories, or of its dry run.

    Its outcomes are created, duplicate, revised, revived, forgotten and superseded.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of memory → number found."""
    withdrawn: int = 0
    missing: list[str] = field(default_factory=list)
    """Files that were imported before and do not exist any more."""


def import_source(
    source: ImportSource,
    options: ImportOptions,
    sink: MemorySink,
    checkpoints: Checkpoints,
    progress: Progress,
) -> MemoryImportReport:
    """Import all files of a source. Raises Unreachable without a daemon; the report has all else."""
    report = MemoryImportReport(
        options.is_dry_run, skipped=Counter(source.skipped), failed=dict(source.failed)
    )
    files = {file.path: file for file in source.files}
    stamps = {path: file.stamp for path, file in files.items()}
    prefix = options.checkpoint_prefix

    def import_file(path: str, before: int, total: int) -> bool:
        run = _FileImport(files[path], options, sink, report)
        return run.import_file(progress, before, total)

    _import_changed(stamps, import_file, report, checkpoints, progress, prefix)
    for path in _find_missing_files(source, options, checkpoints):
        report.missing.append(path)
        if not options.is_dry_run:
            report.withdrawn += sink.withdraw(path, []) if source.withdraws_missing else 0
            checkpoints[prefix + path] = _MISSING
    return report


def _import_changed(
    stamps: Mapping[str, Stamp], import_file: Callable[[str, int, int], bool],
    report: ImportReport, checkpoints: Checkpoints, progress: Progress, prefix: str = "",
) -> None:  # fmt: skip
    """Import each file that has changed since its checkpoint, which is set if all of the file was taken."""
    total = sum(size for size, _ in stamps.values())
    before = 0
    for path, stamp in stamps.items():
        if checkpoints.get(prefix + path) == stamp:
            report.unchanged.append(path)
        else:
            try:
                is_complete = import_file(path, before, total)
            except Unreachable:
                raise
            except (OSError, MemdError) as error:
                is_complete = False
                report.failed[path] = getattr(error, "strerror", None) or str(error)
            if is_complete and not report.is_dry_run:
                checkpoints[prefix + path] = stamp
        before += stamp[0]
        progress(path, before, total)


@dataclass(slots=True)
class _FileImport:
    """The import of one file."""

    file: ImportFile
    options: ImportOptions
    sink: MemorySink
    report: MemoryImportReport
    issues: ReadIssues = field(default_factory=ReadIssues)
    ids: set[int] = field(default_factory=set)
    batch: list[dict[str, Any]] = field(default_factory=list)
    batch_bytes: int = 0

    def import_file(self, progress: Progress, before: int, total: int) -> bool:
        """Import the file; return whether all of it was taken."""
        path, size = self.file.path, self.file.stamp[0]
        try:
            for memory, share in self.file.read(self.issues):
                self._add_to_batch(memory)
                progress(path, before + int(size * share), total)
            self._send_batch()
            self._withdraw_removed()
        finally:
            self.report.skipped.update(self.issues.skipped)
            self.report.broken += [f"{path}: {where}" for where in self.issues.broken]
        self.report.done += [] if self.issues.unread else [path]
        return not self.issues.broken

    def _add_to_batch(self, memory: ForeignMemory) -> None:
        self.report.kinds[memory.kind.value] += 1
        if self.options.is_dry_run:
            return
        request = memory_request(memory, self.file, self.options)
        size = len(json.dumps(request))
        if len(self.batch) >= BATCH_MEMORIES_MAX or self.batch_bytes + size > BATCH_BYTES_MAX:
            self._send_batch()
        self.batch.append(request)
        self.batch_bytes += size

    def _send_batch(self) -> None:
        batch, self.batch, self.batch_bytes = self.batch, [], 0
        if not batch:
            return
        try:
            self._count_receipts(self.sink.remember(batch))
        except BadRequest as error:
            if len(batch) == 1:
                self.issues.broken.append(f"{batch[0]['title']}: {error.message}")
                return
            # A batch is stored whole or not at all; one by one, only what is refused is left out.
            for request in batch:
                self.batch = [request]
                self._send_batch()

    def _count_receipts(self, receipts: Iterable[Mapping[str, Any]]) -> None:
        for receipt in receipts:
            self.report.outcomes[str(receipt["outcome"])] += 1
            self.report.outcomes["superseded"] += len(receipt["superseded"])
            if receipt["id"]:
                self.ids.add(int(receipt["id"]))

    def _withdraw_removed(self) -> None:
        """Withdraw the memories that the file does not have any more, if all of it was taken."""
        has_all = not (self.issues.broken or self.issues.unread or self.options.is_dry_run)
        if self.file.is_complete and has_all and len(self.ids) <= _WITHDRAW_IDS_MAX:
            self.report.withdrawn += self.sink.withdraw(self.file.path, sorted(self.ids))


def memory_request(
    memory: ForeignMemory, file: ImportFile, options: ImportOptions
) -> dict[str, Any]:
    """Return a memory as the daemon's `memd/remember` takes it."""
    values = {name: getattr(memory, name) for name in _MEMORY_FIELDS}
    origin = {"path": file.path, "part": memory.part, "line": memory.line}
    if options.project is not None:
        origin["moves"] = True
    if memory.has_front_matter:
        origin["has_front_matter"] = True
    values["origin"] = {name: value for name, value in origin.items() if value is not None}
    values |= {"source": options.source, "tier": options.tier}
    values |= _project_fields(memory, file, options)
    return {name: value for name, value in values.items() if value is not None}


def _project_fields(
    memory: ForeignMemory, file: ImportFile, options: ImportOptions
) -> dict[str, str]:
    if options.project is not None:
        return {"project": options.project}
    directory = memory.directory or (None if memory.project else file.directory)
    if directory is not None:
        return {"project": "current", "directory": directory}
    name = memory.project or file.project or "global"
    return {"project": f"{name} (imported)" if name in _RESERVED_PROJECTS else name}


def _find_missing_files(
    source: ImportSource, options: ImportOptions, checkpoints: Checkpoints
) -> list[str]:
    """List the files with a checkpoint in the folders that were searched that do not exist any more.

    A folder that is mirrored lacks also what it ignores by now, unless a part of it could not be read.
    """
    is_mirror = bool(source.mirrored and not source.failed)
    found = {file.path for file in source.files}
    paths = [
        Path(key.removeprefix(options.checkpoint_prefix))
        for key, stamp in checkpoints.items()
        if key.startswith(options.checkpoint_prefix) and stamp != _MISSING
    ]
    return [
        str(path)
        for path in paths
        if any(path.is_relative_to(folder) for folder in source.folders)
        and (str(path) not in found if is_mirror else not os.path.lexists(path))
    ]


# ── Transcripts of past sessions ──────────────────────────────────────────────────────────────────

BATCH_EVENTS_MAX = 200
EVENT_BYTES_MAX = 2 * 1024 * 1024
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
    # A dry run stores nothing, so the daemon does not recognise a line's copy in another file.
    shared = SharedLines(seen=set() if report.is_dry_run else None)

    def import_file(path: str, before: int, total: int) -> bool:
        reader = source.make_reader(Path(path), shared)
        reader.queue.waits_for_time, reader.queue.latest = True, now + AHEAD_MS
        changed_at = stamps[path][1] // 1_000
        run = _TranscriptImport(path, source.name, changed_at, now, send, truncate, report, reader)
        return run.import_file(progress, before, total)

    _import_changed(stamps, import_file, report, checkpoints, progress)


def find_stamp(path: str) -> Stamp:
    """Return a file's stamp, with that of the write-ahead log of a database; zeros if it has none."""
    stamp: Stamp = (0, 0)
    names = [path, f"{path}-wal"] if path.endswith(session_sources.DATABASE) else [path]
    for name in names:
        with contextlib.suppress(OSError):
            size, changed = read_stamp(Path(name))
            stamp = stamp[0] + size, max(stamp[1], changed)
    return stamp


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
        except (OSError, MemdError):
            # What was read before the damage counts. A batch that could not be sent is gone by now.
            with contextlib.suppress(MemdError):
                self._send_batch()
            raise
        finally:
            report.skipped.update(reader.skipped)
        report.done.append(self.path)
        report.growing += [self.path] if reader.is_open else []
        return not reader.is_open

    def _read_lines(self) -> Iterator[tuple[bytes, int]]:
        """Yield the lines of the file and where each ends; a line that is too long is left out."""
        with session_sources.open_session_file(self.path) as file:
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
        is_full = self.batch_bytes + size > EVENT_BYTES_MAX
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
            if outcome in ("filtered", "refused"):
                self.report.reasons[str(receipt.get("reason"))] += 1


def _measure_event(event: Mapping[str, Any]) -> tuple[int, int]:
    """Return the bytes of an event's JSON, and an upper bound of its values."""
    text = json.dumps(event)
    return len(text), sum(map(text.count, _VALUE_MARKS))
