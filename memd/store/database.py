"""One SQLite file with one writer and several readers; SQLite's errors become memd's; numbered migrations.

`write` runs a function in one IMMEDIATE transaction in a thread; `read` runs one on a snapshot. The
writer commits with `synchronous = FULL`, so what `write` has returned survives a power failure. What may be lost in one,
such as that a memory was shown, is written with `write_unsynced`, which costs no wait for the disk.

Each migration, from whatever version a vault has to ours, runs in one transaction. A vault has `application_id`
"memd" and `user_version`, the number of its last migration. Both are in the first hundred bytes of the file, so a
foreign, damaged or newer file is refused after a plain read: opening it with SQLite might already change it.
"""

import contextlib
import errno
import functools
import os
import queue
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import apsw
import numpy as np

from memd.errors import (
    Broken,
    VaultBusy,
    VaultCorrupt,
    VaultError,
    VaultForeign,
    VaultFull,
    VaultGone,
    VaultNewer,
)
from memd.store.fulltext import POSTING, pack_postings
from memd.store.summaries import store_speakers

T = TypeVar("T")
Connection = apsw.Connection

READERS = 4
"""Connections that only read."""
BUSY_TIMEOUT_MS = 5_000
"""How long to wait for another process's lock before giving up."""
_READER_WAIT_MS = 500
"""How long emptying the write-ahead log waits for readers; writers wait with it."""
_WRITER_CACHE_KIB = 2_048
"""Pages that the writer caches. The system's file cache is behind it."""
_READER_CACHE_KIB = 512
"""Pages that each reader caches. The system's file cache is behind it, so more gains nothing."""
_JOURNAL_BYTES_MAX = 16 * 1024 * 1024
"""The write-ahead log is cut back to this after a checkpoint."""
_SYNCED_AT_CHECKPOINTS, _SYNCED_AT_COMMITS = 1, 2
"""Values of `synchronous`: NORMAL, where a power failure takes the last commits and nothing else, and FULL."""
_FREE_BYTES_MIN = 4 * 1024 * 1024
"""After a full disk, writing starts again with this much free space; the spool needs what is left."""
_READER_LOCKS = 123, 127
"""The first and the last byte of `-shm` that readers lock (WAL_READ_LOCK in SQLite)."""
_READ_BLOCK_BYTES = 1 << 20
"""How much of the file `is_damaged` reads at a time."""
_STAT_BLOCK_BYTES = 512
"""The unit of `st_blocks`."""
_SNAPSHOT_SUFFIX = ".shelf"
"""Of the directory beside a vault in which the index stores its snapshot."""

_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_READ_ONLY = (
    "The vault may not be written: the disk is mounted read-only, or the file is another user's."
    " Make it writable; memd goes on by itself then."
)
_REFUSED = (
    "The vault may not be opened or written: the disk is full or mounted read-only, or the file is"
    " another user's."
)
_FAILING = (
    "The disk fails under the vault. See the system's log, and have a backup on another disk:"
    " `memd backup --to DIR`."
)
_TRANSLATIONS: dict[type[apsw.Error], type[VaultError]] = {
    apsw.BusyError: VaultBusy,
    apsw.LockedError: VaultBusy,
    apsw.FullError: VaultFull,
    apsw.CorruptError: VaultCorrupt,
    apsw.NotADBError: VaultCorrupt,
}


class _Rehearsed(Exception):  # it ends a rehearsal, and is no error
    """Rolls its transaction back."""


class Database:
    """An open vault. Close it; `open_database` does that for you."""

    def __init__(self, path: str, now: int) -> None:
        """Open or create the vault at `path`; raise a VaultError without having touched it."""
        self.path = path
        self.damage: str | None = None
        """Why nothing is written any more; None while the vault is not known to be damaged."""
        self._was_full = False
        check_header(path)
        with translate_errors():
            self._writer = connect(path)
            migrate(self._writer, now)
            self._writer.release_memory()  # checking the file has filled its cache
            readers = [connect(path) for _ in range(READERS)]
            for one in (self._writer, *readers):
                # Statements keep their plan: planning again for every value costs more than most statements.
                one.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._identity = _identify_file(path)
        self._readers: queue.LifoQueue[Connection] = queue.LifoQueue()
        for reader in readers:
            reader.pragma("query_only", 1)
            reader.pragma("cache_size", -_READER_CACHE_KIB)
            self._readers.put(reader)
        self._write_limit = anyio.CapacityLimiter(1)
        self._read_limit = anyio.CapacityLimiter(READERS)

    async def write(
        self, work: Callable[[Connection], T], *, before: Callable[[], None] | None = None
    ) -> T:
        """Run `work` in a transaction, off the event loop, after all earlier writes.

        `before` runs in the same thread before the transaction begins.
        """
        run = partial(self.write_now, work, before)
        return await anyio.to_thread.run_sync(run, limiter=self._write_limit)

    async def write_unsynced(self, work: Callable[[Connection], T]) -> T:
        """`write` without waiting for the disk: for what a killed process must keep and a power failure may take."""
        run = partial(self._write_unsynced_now, work)
        return await anyio.to_thread.run_sync(run, limiter=self._write_limit)

    async def rehearse(self, work: Callable[[Connection], T]) -> T:
        """Return what `write` would return now, and write nothing."""
        results: list[T] = []

        def work_and_roll_back(tx: Connection) -> None:
            results.append(work(tx))
            raise _Rehearsed

        with contextlib.suppress(_Rehearsed):
            await self.write(work_and_roll_back)
        return results[0]

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one snapshot, off the event loop."""
        return await anyio.to_thread.run_sync(self.read_now, work, limiter=self._read_limit)

    async def read_inline(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which reads a few rows by key, in this thread if a reader is free.

        That is faster than a change of threads.
        """
        with contextlib.suppress(queue.Empty):
            return self._read_with(self._readers.get_nowait(), work)
        return await self.read(work)

    def write_now(
        self, work: Callable[[Connection], T], before: Callable[[], None] | None = None
    ) -> T:
        """`write`, in this thread. Only where nothing else writes: at start, and in `write`."""
        if before is not None:
            before()
        self._check_writable()
        with self._noting_failures(self._writer):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                result = work(self._writer)
                self._writer.execute("COMMIT")
            except BaseException:
                # SQLite rolls back by itself when the disk is full.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            return result

    def _write_unsynced_now(self, work: Callable[[Connection], T]) -> T:
        self._writer.pragma("synchronous", _SYNCED_AT_CHECKPOINTS)
        try:
            return self.write_now(work)
        finally:
            self._writer.pragma("synchronous", _SYNCED_AT_COMMITS)

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """`read`, in this thread."""
        try:
            reader = self._readers.get(timeout=BUSY_TIMEOUT_MS / 1000)
        except queue.Empty:
            raise Broken("every reader of the vault is taken") from None
        return self._read_with(reader, work)

    def try_read_now(self, work: Callable[[Connection], T]) -> T | None:
        """`read`, in this thread; None if every reader is taken. For work of a few milliseconds."""
        with contextlib.suppress(queue.Empty):
            return self._read_with(self._readers.get_nowait(), work)
        return None

    def _read_with(self, reader: Connection, work: Callable[[Connection], T]) -> T:
        try:
            reader.execute("BEGIN")
            try:
                return work(reader)
            finally:
                reader.execute("ROLLBACK")
        except Exception:
            with self._noting_failures(reader):
                raise
        finally:
            self._readers.put(reader)

    @contextlib.contextmanager
    def _noting_failures(self, connection: Connection) -> Iterator[None]:
        """Translate errors, and note damage: a damaged file is still read, but not written."""
        try:
            with translate_errors(connection):
                yield
        except VaultFull:
            self._was_full = True
            raise
        except VaultCorrupt as error:
            if _extended_code(error.__cause__) == apsw.SQLITE_CORRUPT_VTAB:
                raise  # a full-text index, which the indexer rebuilds
            if not is_damaged(self.path):
                raise VaultError(f"{_FAILING} ({error.message})") from error
            self.damage = error.message
            raise

    def _check_writable(self) -> None:
        """Raise if writing would fail, or would make damage worse."""
        if self.damage is not None:
            raise VaultCorrupt(self.damage)
        if self.is_file_lost():  # what is written to a deleted file is lost with this process
            raise VaultGone
        if self._was_full:
            disk = os.statvfs(self.path)
            if disk.f_bavail * disk.f_frsize < _FREE_BYTES_MIN:
                raise VaultFull
            self._was_full = False

    async def truncate_wal(self, *, waits: bool = True) -> bool:
        """Checkpoint the write-ahead log and empty it, so that nothing deleted is left in it.

        False if a reader that is at work prevents it. `waits`: give readers half a second to end.
        """
        work = partial(self._truncate_wal_now, _READER_WAIT_MS if waits else 0)
        return await anyio.to_thread.run_sync(work, limiter=self._write_limit)

    def _truncate_wal_now(self, wait_ms: int) -> bool:
        self._writer.set_busy_timeout(wait_ms)
        try:
            with contextlib.suppress(VaultBusy), translate_errors():
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                return True
        finally:
            self._writer.set_busy_timeout(BUSY_TIMEOUT_MS)
        return False

    async def compact(self) -> None:
        """Rewrite the file without its free pages. Writes wait for it, reads do not.

        The copy is made in memory, so that nothing forgotten gets into a temporary file.
        """
        await anyio.to_thread.run_sync(self._compact_now, limiter=self._write_limit)

    def _compact_now(self) -> None:
        with translate_errors():
            self._writer.execute("VACUUM")
            self._writer.release_memory()
        self._truncate_wal_now(_READER_WAIT_MS)

    async def release_caches(self) -> None:
        """Give back the memory that holds pages of the file; what is needed again is read again."""
        await anyio.to_thread.run_sync(self._release_caches_now, limiter=self._write_limit)

    def _release_caches_now(self) -> None:
        self._writer.release_memory()
        idle = []
        with contextlib.suppress(queue.Empty):
            while True:
                idle.append(self._readers.get_nowait())
        for reader in idle:
            reader.release_memory()
            self._readers.put(reader)

    def is_file_lost(self) -> bool:
        """Return whether the file was deleted, moved or replaced since it was opened."""
        return _identify_file(self.path) != self._identity

    def size(self) -> int:
        """Bytes on disk, including the write-ahead log and the index's snapshot."""
        total = snapshot_bytes(self.path)
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                total += Path(self.path + suffix).stat().st_size
        return total

    def close(self) -> None:
        """Checkpoint the write-ahead log and close every connection."""
        while not self._readers.empty():
            self._readers.get_nowait().close()
        if self.damage is not None:
            # Nothing more goes into the file, and its log stays beside it.
            self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        else:
            with contextlib.suppress(apsw.Error):
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._writer.close()


@contextlib.contextmanager
def open_database(path: str, now: int) -> Iterator[Database]:
    """Open a vault for the length of a block."""
    with contextlib.closing(Database(path, now)) as database:
        yield database


def connect(path: str) -> Connection:
    """Open one connection with the settings that every connection to a vault needs."""
    connection = apsw.Connection(path)
    # First of all, because without it the very next statement may fail with SQLITE_BUSY.
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", _SYNCED_AT_COMMITS)
    connection.pragma("foreign_keys", 1)
    # Overwrite deleted rows with zeros.
    connection.pragma("secure_delete", 1)
    connection.pragma("temp_store", 2)
    connection.pragma("cache_size", -_WRITER_CACHE_KIB)
    connection.pragma("journal_size_limit", _JOURNAL_BYTES_MAX)
    return connection


def _identify_file(path: str) -> tuple[int, int] | None:
    """Device and inode of the file; None if there is none."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path)  # noqa: PTH116  # before every write
        return found.st_dev, found.st_ino
    return None


def describe_readers(vault: str) -> str:
    """Name the other processes that have a vault open now, such as `python3 (pid 12)`; vague if unknown.

    Linux lists the locks that SQLite's readers hold on the file beside the vault.
    """
    found = []
    with contextlib.suppress(OSError, ValueError):
        inode = Path(vault + "-shm").stat().st_ino
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            owner, place, start, end = line.split()[-4:]
            is_ours = place.rpartition(":")[2] == str(inode)
            if is_ours and int(start) <= _READER_LOCKS[1] and int(end) >= _READER_LOCKS[0]:
                found.append(int(owner))
    others = sorted({pid for pid in found if pid > 0 and pid != os.getpid()})
    names = []
    for pid in others:
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
            names.append(f"{name} (pid {pid})")
    return ", ".join(names) or "another reader"


def sqlite_version() -> str:
    """The version of the SQLite library."""
    return str(apsw.sqlite_lib_version())


# ── Errors ─────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def translate_errors(connection: Connection | None = None) -> Iterator[None]:
    """Raise SQLite's errors as a VaultError; `connection` knows the system's error number."""
    try:
        yield
    except apsw.Error as error:
        if ours := _TRANSLATIONS.get(type(error)):
            raise ours(f"{ours.__doc__} ({error})") from error
        code = connection.system_errno if connection is not None else 0
        raise _disk_error(error, code) from error


def _disk_error(error: apsw.Error, code: int) -> VaultError:
    """Describe what is wrong with the disk, as far as SQLite's error and the errno tell it."""
    if not isinstance(error, (apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError)):
        return VaultError(f"SQLite refused: {error}")
    if _extended_code(error) == apsw.SQLITE_IOERR_SHMSIZE or code in _FULL_ERRNOS:
        return VaultFull(f"{VaultFull.__doc__} ({error})")
    if isinstance(error, apsw.IOError) and code not in _REFUSED_ERRNOS:
        return VaultError(f"{_FAILING} ({os.strerror(code) if code else error})")
    return VaultError(f"{_READ_ONLY if code else _REFUSED} ({error})")


def _extended_code(error: BaseException | None) -> int:
    """SQLite's extended result code of an error; 0 if it has none."""
    return int(getattr(error, "extendedresult", 0))


_damage_check_handles: dict[str, int] = {}
"""Open files by path. They are never closed, because that would drop SQLite's locks on the same file."""


def is_damaged(path: str) -> bool:
    """Return whether the file can be read to its end but SQLite still reports it as malformed. Writes nothing.

    SQLite reports a page that makes no sense and a page that the disk does not return alike. Only
    the first needs a backup; the second may pass.
    """
    try:
        if path not in _damage_check_handles:
            _damage_check_handles[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        at = 0
        while block := os.pread(_damage_check_handles[path], _READ_BLOCK_BYTES, at):
            at += len(block)
    except OSError:
        return False
    try:
        with contextlib.closing(
            apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        ) as connection:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            return bool(connection.execute("PRAGMA quick_check(1)").get != "ok")
    except (apsw.CorruptError, apsw.NotADBError):
        return True
    except apsw.Error:
        return False


# ── The directory of the index's snapshot, which is derived and holds numbers only ─────────────


def snapshot_directory(vault: str) -> str:
    """The directory of a vault's index snapshot."""
    return vault + _SNAPSHOT_SUFFIX


def snapshot_bytes(vault: str) -> int:
    """Bytes that a vault's index snapshot takes on the disk."""
    total = 0
    for folder, _, names in os.walk(snapshot_directory(vault)):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).stat().st_blocks * _STAT_BLOCK_BYTES
    return total


def remove_snapshots(vault: str) -> None:
    """Remove a vault's index snapshot. Files that cannot be removed are ignored by the next start."""
    shutil.rmtree(snapshot_directory(vault), ignore_errors=True)


# ── Migrations ─────────────────────────────────────────────────────────────────────────────────

APPLICATION_ID = int.from_bytes(b"memd", "big")
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_QUICK_CHECK_BYTES_MAX = 64 * 1024 * 1024
"""A larger file is checked by `memd doctor` instead of at every start."""
_BLOCK_PASSAGES = 1_000
"""Passages that are repacked at a time."""


def repack_postings(connection: apsw.Connection) -> None:
    """Rewrite the postings of every passage, from six bytes each to about two."""
    last = 0
    block: list[tuple[Any, ...]]
    while block := connection.execute(
        "SELECT id, postings FROM passages WHERE id > ? ORDER BY id LIMIT ?",
        (last, _BLOCK_PASSAGES),
    ).fetchall():
        last = block[-1][0]
        sizes = [len(blob) // POSTING.itemsize for _, blob in block]
        packed = pack_postings(np.frombuffer(b"".join(blob for _, blob in block), POSTING), sizes)
        connection.executemany(
            "UPDATE passages SET postings = ? WHERE id = ?",
            [(new, number) for (number, _), new in zip(block, packed, strict=True)],
        )


_PYTHON_STEPS: Mapping[int, Callable[[apsw.Connection], None]] = {
    5: repack_postings,
    6: store_speakers,
}
"""What a migration does after its SQL, in the same transaction."""


@functools.cache
def migrations() -> tuple[str, ...]:
    """Every migration's SQL in order; the first brings an empty file to version 1."""
    folder = resources.files(__package__) / "migrations"
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return tuple((folder / name).read_text(encoding="utf-8") for name in names)


def check_header(path: str) -> None:
    """Refuse a file that is not a vault we can open, without writing.

    Raises VaultForeign, VaultNewer or VaultCorrupt. A file that is missing or empty is fine.
    """
    try:
        with Path(path).open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return
    if not header:
        return
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise VaultCorrupt(
            f"{path} is not an SQLite database, or its beginning is damaged. Nothing was changed."
        )
    (version,) = struct.unpack_from(">I", header, 60)
    (application,) = struct.unpack_from(">I", header, 68)
    # A crash in the very first transaction leaves an id of 0, and the rest in the log.
    was_interrupted = application == 0 and Path(path + "-wal").exists()
    if application != APPLICATION_ID and not was_interrupted:
        raise VaultForeign(f"{path} is a database of another program. Nothing was changed.")
    if version > len(migrations()):
        raise VaultNewer(
            f"{path} has schema {version}; this memd knows {len(migrations())}. "
            "Nothing was changed; update memd."
        )


def migrate(connection: apsw.Connection, now: int) -> None:
    """Bring an open vault to our version; raise VaultNewer, VaultForeign or VaultCorrupt."""
    version = int(connection.pragma("user_version"))
    application = int(connection.pragma("application_id"))
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if application != APPLICATION_ID and (application or tables):
        raise VaultForeign
    if version > len(migrations()):
        raise VaultNewer
    _quick_check(connection)
    for number, sql in enumerate(migrations()[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(sql)
            if number in _PYTHON_STEPS:
                _PYTHON_STEPS[number](connection)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", number)
            _check_references(connection, number)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    if version < len(migrations()):
        # `check_header` reads the file, not the write-ahead log.
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('created_at', ?)", (str(now),))


def _check_references(connection: apsw.Connection, number: int) -> None:
    if list(connection.execute("PRAGMA foreign_key_check")):
        raise VaultCorrupt(f"migration {number} would break references; the vault is unchanged")


def _quick_check(connection: apsw.Connection) -> None:
    size = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
    if size > _QUICK_CHECK_BYTES_MAX:
        return
    verdict = connection.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        finding = " ".join(str(verdict).split())
        raise VaultCorrupt(f"SQLite found damage: {finding}. Nothing was changed.")
