"""Logs in a folder that other devices can reach: one subfolder a device, in which only that device writes.

A chunk gets its name when it is complete and on the disk, so a killed writer leaves at most a file that
nobody reads, and that the next sync removes. Nothing here is locked, and no file lists the others.

A log is written anew, in a new epoch, after an erasure, when `recipients` change, when a chunk of it is missing or
changed, and when another device's log has gone or is back, because the others then speak for that device or need not.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memd.errors import BadRequest
from memd.paths import flush
from memd.sharing import chunks
from memd.sharing.chunks import PLAIN, ChunkName, Sealing
from memd.sharing.records import LogBatch, LogLost, PlaceUnreachable, Record, RefusedChunk
from memd.text import digest

LOGS = "memd-sync"
"""The folder of all logs, below the place."""
_DEVICE = re.compile(r"[0-9a-f]{16}", re.ASCII)
_PARTIAL = ".partial"
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FolderTransport:
    """The logs below `place`, which must exist, for one device. Conforms to Transport."""

    place: str
    device: str
    label: str
    sealing: Sealing = PLAIN

    @property
    def form(self) -> str:
        """Return whom chunks are encrypted for."""
        return self.sealing.form

    def list_logs(self) -> set[str]:
        """The devices that have a chunk here."""
        return {device for device in self._list_devices() if self._list_chunks(device)}

    def read(
        self, positions: Mapping[str, str], *, only_erasures: bool = False
    ) -> Iterator[LogBatch | RefusedChunk]:
        """Yield what follows these positions in every log."""
        for device in self._list_devices():
            last = chunks.parse_name(positions.get(device, ""))
            yield from self._read_log(device, last, only_erasures=only_erasures)

    def describe_own(self, position: str) -> str:
        """A hash of the names and bytes of every chunk in the own folder."""
        there = self._list_chunks(self.device)
        if not _are_whole(there, chunks.parse_name(position)):
            return ""
        with contextlib.suppress(BadRequest):
            found = (
                f"{name} {chunks.hash_bytes(self._read_file(self.device, name))}" for name in there
            )
            return digest("log", *found)
        return ""

    def append(self, records: Sequence[Record], position: str, now: int) -> str:  # noqa: ARG002  # a transport's
        """Append to the own log; the position of its new end."""
        self._check_own_folder()
        last = chunks.parse_name(position)
        there = [
            name for name in self._list_chunks(self.device) if last and name.epoch == last.epoch
        ]
        if last is not None and not _are_whole([name for name in there if name <= last], last):
            raise LogLost
        epoch = last.epoch if last else 1
        last = self._write(records, last, epoch)
        self._remove_others(epoch)
        return str(last or "")

    def rewrite(self, records: Sequence[Record], position: str, now: int) -> str:  # noqa: ARG002  # a transport's
        """Begin the own log again with these records, and remove what was written before."""
        self._check_own_folder()
        last = chunks.parse_name(position)
        there = [last, *self._list_chunks(self.device)]
        epoch = 1 + max((name.epoch for name in there if name), default=0)
        end = self._write(records, None, epoch)
        self._remove_others(epoch)
        return str(end or "")

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────

    def _list_devices(self) -> list[str]:
        logs = Path(self.place, LOGS)
        if not Path(self.place).is_dir():
            raise PlaceUnreachable(f"{self.place} is not there; is it mounted?")
        _refuse_link(logs)
        with contextlib.suppress(FileNotFoundError):
            return sorted(
                entry.name
                for entry in os.scandir(logs)
                if _DEVICE.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            )
        return []

    def _list_chunks(self, device: str) -> list[ChunkName]:
        with contextlib.suppress(FileNotFoundError):
            names = (chunks.parse_name(one.name) for one in os.scandir(self._folder(device)))
            return sorted(name for name in names if name)
        return []

    def _read_log(
        self, device: str, last: ChunkName | None, *, only_erasures: bool
    ) -> Iterator[LogBatch | RefusedChunk]:
        there = self._list_chunks(device)
        epoch = max((name.epoch for name in there if name.number == 1), default=0)
        if last is not None and last.epoch >= epoch:
            epoch = last.epoch
        elif last is not None and last.epoch < epoch:
            last = None
        for name in there:
            if name.epoch != epoch or name.number <= (last.number if last else 0):
                continue
            try:
                yield self._read_chunk(device, name, last, only_erasures=only_erasures)
            except BadRequest as error:
                yield RefusedChunk(device, str(name), error.message)
                return
            last = name

    def _read_chunk(
        self, device: str, name: ChunkName, last: ChunkName | None, *, only_erasures: bool
    ) -> LogBatch:
        if name.number > (expected := last.number + 1 if last else 1):
            raise BadRequest(f"the chunk before it, number {expected}, is not there yet")
        content = self._read_file(device, name)
        chunk = chunks.read_chunk(content, name, device, self.sealing, only_erasures=only_erasures)
        if chunk.previous != str(last or ""):
            raise BadRequest("it does not follow the chunk before it; was a vault copied?")
        return LogBatch(
            device, chunk.label, str(name), chunk.records, chunk.newer, is_first=last is None
        )

    def _read_file(self, device: str, name: ChunkName) -> bytes:
        try:
            handle = os.open(Path(self._folder(device), str(name)), _READ_FLAGS)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOENT}:
                raise BadRequest("it is a link, or has gone") from None
            # Other devices' logs are read all the same, and this one again at the next sync.
            raise BadRequest(f"it cannot be read ({error.strerror})") from None
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise BadRequest("it is not a file")
            content = file.read(chunks.FILE_BYTES_MAX + 1)
        if len(content) > chunks.FILE_BYTES_MAX:
            raise BadRequest("it is far too large")
        return content

    # ── Writing ──────────────────────────────────────────────────────────────────────────────────

    def _write(
        self, records: Sequence[Record], last: ChunkName | None, epoch: int
    ) -> ChunkName | None:
        folder = self._folder(self.device)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # An empty log has a chunk, too: readers know by it that the epoch has changed.
        for group in chunks.split_records(records) if records else ([],):
            last, content = chunks.write_chunk(
                group, self.device, self.label, last, epoch, self.sealing
            )
            _write_file(folder, str(last), content)
        return last

    def _check_own_folder(self) -> None:
        folder = self._folder(self.device)
        for one in (folder.parent, folder):
            _refuse_link(one)

    def _remove_others(self, epoch: int) -> None:
        """Remove the chunks of other epochs, and what killed writers left."""
        folder = self._folder(self.device)
        with contextlib.suppress(FileNotFoundError):
            for entry in list(os.scandir(folder)):
                name = chunks.parse_name(entry.name)
                if (name and name.epoch != epoch) or entry.name.endswith(_PARTIAL):
                    Path(entry.path).unlink(missing_ok=True)
            _flush_directory(folder)

    def _folder(self, device: str) -> Path:
        return Path(self.place, LOGS, device)


def _refuse_link(folder: Path) -> None:
    """Raise PlaceUnreachable for a link: who can write to the target could choose where memd writes and removes."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise PlaceUnreachable(f"{folder} is not a folder of its own; remove it, then sync again")


def _are_whole(there: Sequence[ChunkName], last: ChunkName | None) -> bool:
    """Return whether these chunks, in order, are all of a log that ends with this one and nothing else."""
    if last is None:
        return not there
    numbers = [name.number for name in there if name.epoch == last.epoch]
    return (
        bool(there)
        and there[-1] == last
        and len(numbers) == len(there)
        and numbers == [*range(1, last.number + 1)]
    )


def _write_file(folder: Path, name: str, content: bytes) -> None:
    """Write a file that gets its name once it is on the disk."""
    partial = folder / (name + _PARTIAL)
    handle = os.open(partial, _WRITE_FLAGS, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)
    partial.rename(folder / name)
    _flush_directory(folder)


def _flush_directory(folder: Path) -> None:
    try:
        flush(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot
            raise
