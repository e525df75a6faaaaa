"""Import foreign memories in batches: idempotent, resumable, and one bad file stops no other.

A file whose memories were all taken gets a checkpoint and is not read again until it changes. Each memory
is sent with its place in the file, so the daemon knows which are new, unchanged, or forgotten on purpose.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.errors import BadRequest, MemdError, Unreachable
from memd.transfer.record import ForeignMemory, ReadIssues
from memd.transfer.sources import ImportFile, ImportSource, Stamp

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
    broken: list[str] = field(default_factory=list)
    """Place and reason of what could not be read or stored."""


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
    total = sum(file.stamp[0] for file in source.files)
    before = 0
    for file in source.files:
        key = options.checkpoint_prefix + file.path
        if checkpoints.get(key) == file.stamp:
            report.unchanged.append(file.path)
        else:
            run = _FileImport(file, options, sink, report)
            if run.import_file(progress, before, total) and not options.is_dry_run:
                checkpoints[key] = file.stamp
        before += file.stamp[0]
        progress(file.path, before, total)
    for path in _find_missing_files(source, options, checkpoints):
        report.missing.append(path)
        if not options.is_dry_run:
            report.withdrawn += sink.withdraw(path, []) if source.withdraws_missing else 0
            checkpoints[options.checkpoint_prefix + path] = _MISSING
    return report


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
        except Unreachable:
            raise
        except OSError as error:
            self.report.failed[path] = error.strerror or str(error)
        except MemdError as error:
            self.report.failed[path] = error.message
        else:
            self.report.done += [] if self.issues.unread else [path]
            return not self.issues.broken
        finally:
            self.report.skipped.update(self.issues.skipped)
            self.report.broken += [f"{path}: {where}" for where in self.issues.broken]
        return False

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
