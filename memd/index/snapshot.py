"""Save the memory index in one file, and map it copy-on-write at the next start; discard it on any doubt.

The file holds numbers only, no text. The vault stores the file's random name and lists what was indexed since
(store/fulltext.py), so an older or foreign file is never read, and deleting a memory removes the name and the file.
One CRC-32 covers the whole file and is checked before anything is used: that takes a second for a million memories,
during which FTS5 answers. If anything is wrong with the file, the vault's tables are read instead.
"""

import contextlib
import json
import mmap
import os
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedRandom, FileIO
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
from anyio import from_thread
from numpy.typing import NDArray

from memd import log
from memd.embeddings import Embedder, LocalEmbedder
from memd.errors import VaultError
from memd.index.backfill import texts_to_embed
from memd.index.memory_index import (
    IndexUpdate,
    MemoryIndex,
    SavedArrays,
    StoredArray,
    VaultContents,
)
from memd.paths import flush
from memd.store import database, fulltext
from memd.store.database import Connection, Database

FORMAT = 5
ROWS_MIN = 2_000
"""Rows below which no snapshot is written, since the tables are read quickly."""
EMBEDDED_MAX = 256
"""Rows without a vector that are embedded before the index is used; if more, the indexer embeds them later."""
_CHANGED_SHARE, _CHANGED_MIN, _CHANGED_MAX = 0.05, 200, 2_000
"""Share of the rows, with its bounds in rows, that must have changed for a new snapshot."""
_ROOM_SHARE, _ROOM_MIN = 0.25, 1_024
"""Free rows behind the saved ones, as a share and at least; a hole in the file, whose private pages take new rows."""
_CHUNK_BYTES = 8 * 1024**2
"""Bytes that are written and synced, or checked, in one step: commits and searches go in between."""
_REST = 0.5
"""Pause after a step, as a share of the time that the step took."""
_YIELDS_MAX = 3
"""How often writing is interrupted for callers that wait for the index, before it goes through."""
_RETRY_S = 600.0
"""Seconds after a snapshot could not be written before the next attempt."""
_READ_IDS = 256
"""Ids in one query."""
_ALIGNMENT = 64
_TAIL = struct.Struct("<II")
"""At the end of the file: length of the JSON before it, and the CRC-32 of all before the CRC."""
_READ_ERRORS = (
    LookupError, ValueError, ArithmeticError, TypeError, AttributeError, SyntaxError, struct.error,
)  # fmt: skip
"""Raised when a file fits neither this program nor the vault."""

Checkpoint = Callable[[], None]


class SnapshotUnusable(Exception):
    """The snapshot cannot be used; the message says why."""


class SnapshotDamaged(SnapshotUnusable):
    """The file changed after it was written."""


class SnapshotInterrupted(Exception):
    """A caller waits for the index, which writing the snapshot blocks."""


@dataclass(frozen=True, slots=True)
class Snapshot(SavedArrays):
    """A checked and mapped snapshot; writes to its arrays stay in this process."""

    mapped: mmap.mmap
    fixed: Sequence[tuple[int, int]]
    """(offset, bytes) of arrays that are never written to."""

    def release_pages(self) -> None:
        """Release resident pages that are never written to; the page cache still has them."""
        for offset, size in self.fixed if hasattr(mmap, "MADV_DONTNEED") else ():
            start, stop = -(-offset // mmap.PAGESIZE), (offset + size) // mmap.PAGESIZE
            if start < stop:
                length = (stop - start) * mmap.PAGESIZE
                self.mapped.madvise(mmap.MADV_DONTNEED, start * mmap.PAGESIZE, length)


def write_snapshot(vault: str, name: str, index: MemoryIndex, checkpoint: Checkpoint) -> None:
    """Write a snapshot; `checkpoint` is called between steps and may raise. Leaves nothing if it fails.

    Nothing may add or remove rows meanwhile.
    """
    folder = Path(database.snapshot_directory(vault))
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{name}.new"
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w+b") as file:
            _write_file(file, name, index, checkpoint)
        path.rename(folder / name)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    flush(folder)


def _write_file(
    file: BufferedRandom, name: str, index: MemoryIndex, checkpoint: Checkpoint
) -> None:
    placed: dict[str, Any] = {}
    fixed: list[tuple[int, int]] = []
    for key, stored in index.stored_arrays().items():
        offset = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
        rows, shape = stored.rows, _shape_with_room(stored)
        placed[key] = (rows.dtype.str, offset, shape)
        lines = rows if stored.axis == 1 else [rows]
        step = shape[1] * rows.itemsize if stored.axis == 1 else 0
        for number, line in enumerate(lines):
            file.seek(offset + number * step)
            _write_array(file, line, checkpoint)
            if stored.is_fixed:
                fixed.append((offset + number * step, line.nbytes))
        file.seek(offset + int(np.prod(shape)) * rows.itemsize)
    about = {"format": FORMAT, "name": name, "rows": index.columns.n, "spaces": index.unlearned_spaces(),
             "arrays": placed, "fixed": fixed}  # fmt: skip
    text = json.dumps(about).encode()
    file.write(text + _TAIL.pack(len(text), 0)[:4])
    file.flush()
    check = _checksum(file, file.tell(), checkpoint)
    file.seek(0, os.SEEK_END)
    file.write(_TAIL.pack(0, check)[4:])
    file.flush()
    os.fsync(file.fileno())


def _shape_with_room(stored: StoredArray) -> list[int]:
    shape = list(stored.rows.shape)
    if stored.axis is not None:
        shape[stored.axis] += max(_ROOM_MIN, int(_ROOM_SHARE * shape[stored.axis]))
    return shape


def _write_array(file: BufferedRandom, rows: NDArray[Any], checkpoint: Checkpoint) -> None:
    count = max(1, _CHUNK_BYTES // max(1, rows[:1].nbytes))
    for first in range(0, len(rows), count):
        checkpoint()
        started = time.perf_counter()
        chunk = np.ascontiguousarray(rows[first : first + count])
        file.write(chunk.data)
        if chunk.nbytes > _CHUNK_BYTES // 2:  # bounds what a commit's own sync has to wait for
            file.flush()
            os.fdatasync(file.fileno())
            time.sleep(_REST * (time.perf_counter() - started))


def _checksum(file: FileIO | BufferedRandom, size: int, checkpoint: Checkpoint) -> int:
    """Return the CRC-32 of the first `size` bytes, read through the page cache and not the map."""
    buffer = memoryview(bytearray(1024**2))
    check = 0
    file.seek(0)
    while size:
        got = file.readinto(buffer[: min(size, len(buffer))])
        if not got:
            raise SnapshotDamaged("it is truncated")
        check = zlib.crc32(buffer[:got], check)
        size -= got
        checkpoint()
    return check


def read_snapshot(vault: str, name: str) -> Snapshot:
    """Check and map a snapshot. Raises SnapshotUnusable if there is none, or it is not a whole one."""
    try:
        with Path(database.snapshot_directory(vault), name).open("rb", buffering=0) as file:
            return _read_file(file, name)
    except _READ_ERRORS as error:
        raise SnapshotUnusable(f"its content is not as expected: {error!r}") from error
    except OSError as error:
        raise SnapshotUnusable(f"it cannot be read: {error}") from error


def _read_file(file: FileIO, name: str) -> Snapshot:
    size = os.fstat(file.fileno()).st_size
    check = _checksum(file, size - 4, lambda: None) if size > _TAIL.size else 0
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    length, wanted = _TAIL.unpack(mapped[-_TAIL.size :])
    if check != wanted:
        raise SnapshotDamaged("its checksum does not match")
    about = json.loads(mapped[size - _TAIL.size - length : size - _TAIL.size])
    if (about["format"], about["name"]) != (FORMAT, name):
        raise SnapshotUnusable("it has another format or name")
    arrays = {
        key: np.frombuffer(mapped, dtype, int(np.prod(shape)), offset).reshape(shape)
        for key, (dtype, offset, shape) in about["arrays"].items()
    }
    spaces = [(str(space), int(dimensions)) for space, dimensions in about["spaces"]]
    fixed = [(int(offset), int(length)) for offset, length in about["fixed"]]
    return Snapshot(int(about["rows"]), spaces, arrays, mapped, fixed)


def sweep_snapshots(vault: str, keep: str | None) -> None:
    """Delete every snapshot but this one. A mapped one stays usable."""
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(database.snapshot_directory(vault)):
            if entry.name != keep:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry)  # as formats 1 and 2 were
                    else:
                        Path(entry).unlink()


class IndexStorage:
    """Loads the memory index from its snapshot or the vault's tables, and saves it. One caller at a time."""

    def __init__(self, db: Database, index: MemoryIndex, embedders: Sequence[Embedder]) -> None:
        self._db = db
        self._index = index
        self._embedders = embedders
        self._snapshot: Snapshot | None = None
        """The snapshot that the index has mapped."""
        self._yields = 0
        self._not_before = 0.0
        self.trouble = ""
        """Why the last snapshot could not be used or written; else empty."""
        self.damage = ""
        """What was wrong with a damaged snapshot, until another is written; else empty."""

    def status(self) -> dict[str, object]:
        """Return `mapped`, whether the index uses a snapshot's arrays, and `trouble` (or empty)."""
        return {"mapped": self._snapshot is not None, "trouble": self.trouble}

    def load(self, tx: Connection) -> None:
        """Fill the index from the snapshot and what was indexed since, or else from the tables."""
        name, fresh = fulltext.snapshot_name(tx), MemoryIndex()
        self._snapshot, self.trouble = None, ""
        if name is not None:
            try:
                self._snapshot = self._restore(tx, name, fresh)
            except SnapshotUnusable as error:
                name, fresh = None, MemoryIndex()
                self.trouble = f"the saved index was not used: {error}"
                if isinstance(error, SnapshotDamaged):
                    self.damage = f"the saved index was dropped: {error}"
                log.get("indexer").warning("index_snapshot_not_used", reason=str(error))
        if self._snapshot is None:
            spaces = [embedder.space for embedder in self._embedders]
            terms, rows = fulltext.terms_in_order(tx), fulltext.index_rows(tx)
            fresh.load(VaultContents(fulltext.load_passages(tx), terms, rows, spaces))
        self._embed_missing(tx, fresh)
        self._index.become(fresh)
        sweep_snapshots(self._db.path, name)
        tx.release_memory()

    def _restore(self, tx: Connection, name: str, fresh: MemoryIndex) -> Snapshot:
        snapshot = read_snapshot(self._db.path, name)
        if snapshot.spaces != [(e.space.name, e.space.dimensions) for e in self._embedders]:
            raise SnapshotUnusable("it was made for other vectors")
        try:
            fresh.restore(snapshot, fulltext.snapshot_labels(tx))
            fresh.vocabulary.load(*fulltext.terms_in_order(tx))
            if changed := fulltext.unsaved_ids(tx):
                fresh.apply(_changes_since(tx, fresh, changed))
        except _READ_ERRORS as error:
            raise SnapshotUnusable(f"its content is not as expected: {error!r}") from error
        rows, wanted = fresh.columns.live_count, fulltext.count_passages(tx)
        if rows != wanted:
            raise SnapshotUnusable(f"it has {rows} passages, the vault {wanted}")
        return snapshot

    def _embed_missing(self, tx: Connection, fresh: MemoryIndex) -> None:
        """Give the passages without a vector in a local space theirs, if they are few."""
        for embedder in self._embedders:
            name = embedder.space.name
            missing = fresh.missing_vectors(name, EMBEDDED_MAX + 1)
            if isinstance(embedder, LocalEmbedder) and len(missing) <= EMBEDDED_MAX:
                for some in _split_ids(missing):
                    texts = texts_to_embed(tx, some)
                    vectors = embedder.embed(list(texts.values()))
                    fresh.fill(name, list(texts), vectors.astype(np.float16))

    async def discard_unusable(self) -> None:
        """Remove the snapshot's name from the vault if it could not be used."""
        if self._snapshot is None and await self._db.read(fulltext.snapshot_name) is not None:
            # On a full disk this fails; then the next start finds the snapshot unusable again.
            with contextlib.suppress(VaultError):
                await self._db.write(fulltext.invalidate_snapshot)

    async def save(self, give_up: Callable[[], bool]) -> None:
        """Write a snapshot if it is due, and move the index into its arrays; stop if `give_up` says so."""
        started = anyio.current_time()
        if started < self._not_before or not await self._is_due():
            return
        try:
            await self._save(give_up if self._yields < _YIELDS_MAX else lambda: False)
        except SnapshotInterrupted:
            self._yields += 1
        except (OSError, SnapshotUnusable) as error:
            self.trouble = f"the index could not be saved: {error}"
            self._not_before = anyio.current_time() + _RETRY_S
            log.get("indexer").warning("index_not_saved", reason=str(error))
        else:
            took = round(1000 * (anyio.current_time() - started))
            log.get("indexer").info("index_saved", rows=self._index.columns.n, took_ms=took)

    async def _is_due(self) -> bool:
        rows = self._index.columns.live_count
        is_whole = all(self._index.coverage(e.space.name) == 1 for e in self._embedders)
        if not self._index.loaded or rows < ROWS_MIN or not is_whole:
            return False
        if self._snapshot is None or await self._db.read(fulltext.snapshot_name) is None:
            return True
        enough = min(max(_CHANGED_SHARE * rows, _CHANGED_MIN), _CHANGED_MAX)
        return await self._db.read(fulltext.count_unsaved) >= enough

    async def _save(self, give_up: Callable[[], bool]) -> None:
        def checkpoint() -> None:
            from_thread.check_cancelled()  # a daemon that stops does not wait for a snapshot
            if give_up():
                raise SnapshotInterrupted

        path, name = self._db.path, await self._db.read(fulltext.new_snapshot_name)
        await anyio.to_thread.run_sync(write_snapshot, path, name, self._index, checkpoint)
        # A caller may be cancelled, but not between the commit and the index.
        with anyio.CancelScope(shield=True):
            snapshot = await anyio.to_thread.run_sync(read_snapshot, path, name)
            labels = self._index.columns.labels()
            if not await self._db.write(
                partial(fulltext.record_snapshot, name=name, labels=labels)
            ):
                await self.sweep()
                raise SnapshotInterrupted
            await anyio.to_thread.run_sync(self._index.exchange, snapshot)
            self._snapshot = snapshot
            await self.sweep()
        self._yields, self.trouble, self.damage = 0, "", ""

    async def sweep(self) -> None:
        """Delete every snapshot that the vault does not name."""
        name = await self._db.read(fulltext.snapshot_name)
        await anyio.to_thread.run_sync(sweep_snapshots, self._db.path, name)

    def release_pages(self) -> None:
        """Release the resident pages of the snapshot."""
        if self._snapshot is not None:
            self._snapshot.release_pages()


def _split_ids(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(numbers), _READ_IDS):
        yield numbers[first : first + _READ_IDS]


def _changes_since(tx: Connection, fresh: MemoryIndex, summary_ids: Sequence[int]) -> IndexUpdate:
    """Return what was indexed after the snapshot was written, as one batch."""
    parts = list(_split_ids(summary_ids))
    stored = [p for part in parts for p in fulltext.load_passages(tx, part)]
    stored.sort(key=lambda passage: passage.id)
    columns = fresh.columns
    known = set(columns.passage_id[columns.rows_of_any(summary_ids)].tolist())
    added = [passage for passage in stored if passage.id not in known]
    if added and columns.n and added[0].id <= columns.passage_id[-1]:
        raise SnapshotUnusable("it lacks a passage that is older than it")
    return IndexUpdate(
        removed=sorted(known - {passage.id for passage in stored}),
        added=added,
        facts=[row for part in parts for row in fulltext.index_rows(tx, part)],
    )
