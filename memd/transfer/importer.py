"""Hands over what other memories know, in batches: idempotent, resumable, one bad file stops no other.

A file is marked once all of it was handed over, and is not read again until it changes. Every entry
goes with the place where it stands, so the daemon knows what is new there, what is as before, and what
was forgotten on purpose; what a file that was read whole does not say any more is withdrawn. A file
that is gone is told; what was read from it stays, unless its owner removes what is wrong. Not here:
what is read (shelves.py).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.errors import BadRequest, MemdError, Unreachable
from memd.transfer.record import ForeignMemory, ReadIssues
from memd.transfer.sources import ImportFile, ImportSource

BATCH_MEMORIES_MAX = 100
BATCH_BYTES_MAX = 1024 * 1024
"""Bytes of JSON in a batch; a line on the wire may have 4 MiB."""
_STAYING_MAX = 90_000
"""Ids in one request; the wire takes 100,000 values."""
_RESERVED = frozenset({"all", "current"})
_GONE = (0, 0)

Remember = Callable[[list[dict[str, Any]]], Sequence[Mapping[str, Any]]]
"""Hands over memories, in order; says of each its id and what became of it. BadRequest: none was kept."""
Withdraw = Callable[[str, list[int]], int]
"""Of this file only these ids are left; how many memories are withdrawn."""
Checkpoints = MutableMapping[str, tuple[int, int]]
"""Key of a file → (bytes, modification time in µs) of what was handed over whole."""
Progress = Callable[[str, int, int], None]
"""Told the file in hand, the bytes read so far and the bytes of all files."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How entries are kept."""

    source: str
    """Who said so: `import:markdown`."""
    tier: str = "agent"
    project: str | None = None
    """The project that the user named; None: each entry's own."""
    is_dry_run: bool = False

    def key(self, path: str) -> str:
        """What the mark of a file is called."""
        return f"{self.prefix}{path}"

    @property
    def prefix(self) -> str:
        """What the marks of this import begin with."""
        where = f"@{self.project}" if self.project else ""
        return f"{self.source}{where}:"


@dataclass(slots=True)
class MemoryImportReport:
    """What an import did, or with `is_dry_run` would do."""

    is_dry_run: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)
    """created, duplicate, revised, revived, forgotten, superseded → how many."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Kinds of memories that were found → how many."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Why something was passed over on purpose → how many."""
    withdrawn: int = 0
    done: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """Files that were imported before and are no more."""
    broken: list[str] = field(default_factory=list)
    """Where something could not be read or kept, and why."""
    failed: dict[str, str] = field(default_factory=dict)
    """Path → why it could not be read."""


def import_source(
    shelf: ImportSource,
    waybill: ImportOptions,
    hands: tuple[Remember, Withdraw],
    marks: Checkpoints,
    progress: Progress,
) -> MemoryImportReport:
    """Import everything on a shelf. Raises Unreachable if nobody listens; all else is in the report."""
    report = MemoryImportReport(
        waybill.is_dry_run, skipped=Counter(shelf.left), failed=dict(shelf.failed)
    )
    total = sum(cargo.stamp[0] for cargo in shelf.cargoes)
    before = 0
    for cargo in shelf.cargoes:
        key = waybill.key(cargo.path)
        if marks.get(key) == cargo.stamp:
            report.unchanged.append(cargo.path)
        else:
            load = _FileImport(cargo, waybill, hands, report)
            load.carry(progress, before, total)
            if load.is_complete and not waybill.is_dry_run:
                marks[key] = cargo.stamp
        before += cargo.stamp[0]
        progress(cargo.path, before, total)
    for path in _gone(shelf, waybill, marks):
        report.gone.append(path)
        if not waybill.is_dry_run:
            report.withdrawn += hands[1](path, []) if shelf.is_kept_tidy else 0
            marks[waybill.key(path)] = _GONE
    return report


@dataclass(slots=True)
class _FileImport:
    """One file on its way."""

    cargo: ImportFile
    waybill: ImportOptions
    hands: tuple[Remember, Withdraw]
    report: MemoryImportReport
    trouble: ReadIssues = field(default_factory=ReadIssues)
    is_complete: bool = False
    """Whether all of it was read and handed over."""
    ids: set[int] = field(default_factory=set)
    batch: list[dict[str, Any]] = field(default_factory=list)
    batch_bytes: int = 0

    def carry(self, progress: Progress, before: int, total: int) -> None:
        """Read the file and hand over what it says."""
        path, size = self.cargo.path, self.cargo.stamp[0]
        try:
            for entry, share in self.cargo.read(self.trouble):
                self._add(entry)
                progress(path, before + int(size * share), total)
            self._hand_over()
            self._withdraw()
        except Unreachable:
            raise
        except OSError as error:
            self.report.failed[path] = error.strerror or str(error)
        except MemdError as error:
            self.report.failed[path] = error.message
        else:
            self.report.done += [] if self.trouble.unread else [path]
            self.is_complete = not self.trouble.broken
        finally:
            self.report.skipped.update(self.trouble.skipped)
            self.report.broken += [f"{path}: {where}" for where in self.trouble.broken]

    def _add(self, entry: ForeignMemory) -> None:
        self.report.kinds[entry.kind.value] += 1
        if self.waybill.is_dry_run:
            return
        memory = memory_request(entry, self.cargo, self.waybill)
        size = len(json.dumps(memory))
        if len(self.batch) >= BATCH_MEMORIES_MAX or self.batch_bytes + size > BATCH_BYTES_MAX:
            self._hand_over()
        self.batch.append(memory)
        self.batch_bytes += size

    def _hand_over(self) -> None:
        batch, self.batch, self.batch_bytes = self.batch, [], 0
        if not batch:
            return
        try:
            self._count(self.hands[0](batch))
        except BadRequest as error:
            if len(batch) == 1:
                self.trouble.broken.append(f"{batch[0]['title']}: {error.message}")
                return
            # All of a batch is kept or none: one by one, only what is refused is left out.
            for memory in batch:
                self.batch = [memory]
                self._hand_over()

    def _count(self, receipts: Iterable[Mapping[str, Any]]) -> None:
        for receipt in receipts:
            self.report.outcomes[str(receipt["outcome"])] += 1
            self.report.outcomes["superseded"] += len(receipt["superseded"])
            if receipt["id"]:
                self.ids.add(int(receipt["id"]))

    def _withdraw(self) -> None:
        """Take back what the file does not say any more, if all of it was read and kept."""
        is_read = not (self.trouble.broken or self.trouble.unread or self.waybill.is_dry_run)
        if self.cargo.is_whole and is_read and len(self.ids) <= _STAYING_MAX:
            self.report.withdrawn += self.hands[1](self.cargo.path, sorted(self.ids))


def memory_request(
    entry: ForeignMemory, cargo: ImportFile, waybill: ImportOptions
) -> dict[str, Any]:
    """An entry as the daemon takes it."""
    origin: dict[str, Any] = {"path": cargo.path, "part": entry.part}
    if entry.line is not None:
        origin["line"] = entry.line
    if waybill.project is not None:
        origin["moves"] = True
    memory = {
        "title": entry.title,
        "text": entry.text,
        "kind": entry.kind.value,
        "tags": list(entry.tags),
        "files": list(entry.files),
        "at": entry.at,
        "session": entry.session,
        "client": entry.client,
        "source": waybill.source,
        "tier": waybill.tier,
        "origin": origin,
        **_owner(entry, cargo, waybill),
    }
    return {name: value for name, value in memory.items() if value is not None}


def _owner(entry: ForeignMemory, cargo: ImportFile, waybill: ImportOptions) -> dict[str, str]:
    if waybill.project is not None:
        return {"project": waybill.project}
    directory = entry.directory or (None if entry.project else cargo.directory)
    if directory is not None:
        return {"project": "current", "directory": directory}
    name = entry.project or cargo.project or "global"
    return {"project": f"{name} (imported)" if name in _RESERVED else name}


def _gone(shelf: ImportSource, waybill: ImportOptions, marks: Checkpoints) -> list[str]:
    """The files below the folders that were looked through that are there no more; each is told once."""
    known = [
        key.removeprefix(waybill.prefix)
        for key, stamp in marks.items()
        if key.startswith(waybill.prefix) and stamp != _GONE
    ]
    return [
        path
        for path in known
        if any(Path(path).is_relative_to(top) for top in shelf.tops) and not _is_there(path)
    ]


def _is_there(path: str) -> bool:
    try:
        Path(path).lstat()
    except OSError:
        return False
    return True
