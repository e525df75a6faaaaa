"""One writer, several readers; errors translated."""

import contextlib
import errno
import os
import queue
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import apsw

from memd.errors import Broken, VaultBusy, VaultCorrupt, VaultError, VaultFull, VaultGone
from memd.store import migrate

# MERGED from memd.store.damage:
# MERGED Whether a vault is damaged, or only could not be read when somebody tried. Writes nothing.
# MERGED
# MERGED SQLite has one word for a page that makes no sense and for one that the disk refuses to give. The first
# MERGED needs a backup; the second may be over in a second, and nothing may be thrown away for it.


_BLOCK = 1 << 20
_kept_open: dict[str, int] = {}


def is_damaged(path: str) -> bool:
    """Whether the file can be read to its end, and SQLite finds it wrong even so."""
    try:
        handle = _handle(path)
        at = 0
        while block := os.pread(handle, _BLOCK, at):
            at += len(block)
    except OSError:
        return False
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            return bool(connection.execute("PRAGMA quick_check(1)").get != "ok")
        finally:
            connection.close()
    except (apsw.CorruptError, apsw.NotADBError):
        return True
    except apsw.Error:
        return False


def _handle(path: str) -> int:
    # Never closed: with it would go the locks that SQLite has on the same file in this process.
    if path not in _kept_open:
        _kept_open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return _kept_open[path]


# MERGED from memd.store.beside:
# MERGED The directory beside a vault in which the index keeps its copy: where it is, what it weighs, how it goes.
# MERGED
# MERGED Derived, and numbers only. Not here: what lies in it (index/copy.py).


_SUFFIX = ".shelf"
_BLOCK_beside = 512
"""What `stat` counts in: most of a copy's room is a hole that takes no disk."""


def snapshot_directory(vault: str) -> str:
    """Where the copies of a vault's index lie."""
    return vault + _SUFFIX


def snapshot_bytes(vault: str) -> int:
    """Bytes on the disk."""
    total = 0
    for folder, _, names in os.walk(snapshot_directory(vault)):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).stat().st_blocks * _BLOCK_beside
    return total


def remove_snapshots(vault: str) -> None:
    """Take all of it away. What cannot be is left: no start takes it for anything."""
    shutil.rmtree(snapshot_directory(vault), ignore_errors=True)


# MERGED from memd.store.database:
# MERGED One SQLite file: one writer that is handed a function, several readers. Knows no tables.
# MERGED
# MERGED `write` runs its function in one IMMEDIATE transaction in a thread; `read` runs its in a snapshot.
# MERGED Both translate SQLite's errors into memd's, and nothing else in the store does. The writer commits
# MERGED with `synchronous = FULL`: when `write` has returned, the power may fail.


T = TypeVar("T")
Connection = apsw.Connection

READERS = 4
BUSY_TIMEOUT_MS = 5_000
_WRITER_CACHE_KIB = 2_048
_READER_CACHE_KIB = 512
"""The system's own cache is behind each; four times eight megabytes would be felt, and gain nothing."""
_JOURNAL_MAX = 16 * 1024 * 1024

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_ROOM = 4 * 1024 * 1024
"""Bytes. A disk that was full is full until there are so many: what is left is for the spool."""
_OF_AN_INDEX = apsw.SQLITE_CORRUPT_VTAB
_READ_ONLY = (
    "The vault may not be written: the disk is mounted read-only, or the file is another user's."
    " Make it writable; memd goes on by itself then."
)
_SHUT = (
    "The vault may not be opened or written: the disk is full or mounted read-only, or the file is"
    " another user's."
)
_FAILING = (
    "The disk fails under the vault. See the system's log, and have a backup on another disk:"
    " `memd backup --to DIR`."
)

_TRANSLATIONS: tuple[tuple[type[apsw.Error], type[VaultError]], ...] = (
    (apsw.BusyError, VaultBusy),
    (apsw.LockedError, VaultBusy),
    (apsw.FullError, VaultFull),
    (apsw.CorruptError, VaultCorrupt),
    (apsw.NotADBError, VaultCorrupt),
)


@contextlib.contextmanager
def translate_errors(connection: Connection | None = None) -> Iterator[None]:
    """Turn an SQLite error into memd's word for it; `connection` knows what the system said."""
    try:
        yield
    except apsw.Error as error:
        code = connection.system_errno if connection is not None else 0
        for foreign, ours in _TRANSLATIONS:
            if isinstance(error, foreign):
                raise ours(f"{ours.__doc__} ({error})") from error
        raise _of_the_disk(error, code) from error


def _extended(error: BaseException | None) -> int:
    """SQLite's own number of an error; 0 where it has none."""
    return int(getattr(error, "extendedresult", 0))


def _of_the_disk(error: apsw.Error, code: int) -> VaultError:
    """What is wrong with the disk, as far as that is known."""
    if not isinstance(error, (apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError)):
        return VaultError(f"SQLite refused: {error}")
    if _extended(error) == apsw.SQLITE_IOERR_SHMSIZE or code in _FULL:
        return VaultFull(f"{VaultFull.__doc__} ({error})")
    if isinstance(error, apsw.IOError) and code not in _REFUSED:
        said = os.strerror(code) if code else str(error)
        return VaultError(f"{_FAILING} ({said})")
    return VaultError(f"{_READ_ONLY if code else _SHUT} ({error})")


def connect(path: str) -> Connection:
    """Open one connection, set up as every connection to a vault must be."""
    connection = apsw.Connection(path)
    # First of all: without it the very next statement may die of SQLITE_BUSY.
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", 2)
    connection.pragma("foreign_keys", 1)
    # What was forgotten is overwritten, not only let go of.
    connection.pragma("secure_delete", 1)
    connection.pragma("temp_store", 2)
    connection.pragma("cache_size", -_WRITER_CACHE_KIB)
    connection.pragma("journal_size_limit", _JOURNAL_MAX)
    return connection


class Database:
    """An open vault. Close it; `open_database` does that for you."""

    def __init__(self, path: str, now: int) -> None:
        """Open or create the vault at `path`; raise a VaultError without having touched it."""
        self.path = path
        self.damage: str | None = None
        """Why nothing is written any more; None while the vault is whole as far as is known."""
        self._was_full = False
        migrate.check_header(path)
        with translate_errors():
            self._writer = connect(path)
            migrate.migrate(self._writer, now)
            self._writer.release_memory()  # checking the file has filled its cache
            # A statement keeps its plan: to plan anew for every value cost more than most writes gain.
            self._writer.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            readers = [connect(path) for _ in range(READERS)]
        self._identity = _identity(path)
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
        """Run `work` in a transaction, off the event loop, after all writes asked for before it.

        `before` is run in the same thread before the transaction begins.
        """
        return await anyio.to_thread.run_sync(
            self.write_now, work, before, limiter=self._write_limit
        )

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one snapshot, off the event loop."""
        return await anyio.to_thread.run_sync(self.read_now, work, limiter=self._read_limit)

    async def read_inline(self, work: Callable[[Connection], T]) -> T:
        """`read`, for a few rows by their keys: on this thread if a reader is free, for to change it takes longer."""
        with contextlib.suppress(queue.Empty):
            return self._read_by(self._readers.get_nowait(), work)
        return await self.read(work)

    def write_now(
        self, work: Callable[[Connection], T], before: Callable[[], None] | None = None
    ) -> T:
        """`write`, in this thread. Only where nobody else writes: at start, and in `write`."""
        if before is not None:
            before()
        self._refuse()
        with self._watched(self._writer):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                result = work(self._writer)
                self._writer.execute("COMMIT")
            except BaseException:
                # A full disk rolls back by itself; then there is nothing left to roll back.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            return result

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """`read`, in this thread."""
        try:
            reader = self._readers.get(timeout=BUSY_TIMEOUT_MS / 1000)
        except queue.Empty:
            raise Broken("every reader of the vault is taken") from None
        return self._read_by(reader, work)

    def try_read_now(self, work: Callable[[Connection], T]) -> T | None:
        """`read`, in this thread, and None if every reader is taken. For what takes a few milliseconds."""
        with contextlib.suppress(queue.Empty):
            return self._read_by(self._readers.get_nowait(), work)
        return None

    def _read_by(self, reader: Connection, work: Callable[[Connection], T]) -> T:
        try:
            with self._watched(reader):
                reader.execute("BEGIN")
                try:
                    return work(reader)
                finally:
                    reader.execute("ROLLBACK")
        finally:
            self._readers.put(reader)

    @contextlib.contextmanager
    def _watched(self, connection: Connection) -> Iterator[None]:
        """Translate errors. Of a damaged file, what can be read is; writing would make it worse."""
        try:
            with translate_errors(connection):
                yield
        except VaultFull:
            self._was_full = True
            raise
        except VaultCorrupt as error:
            cause = error.__cause__
            if _extended(cause) == _OF_AN_INDEX:
                raise  # the indexer makes that anew
            if not is_damaged(self.path):
                raise VaultError(f"{_FAILING} ({error.message})") from error
            self.damage = error.message
            raise

    def _refuse(self) -> None:
        """Raise where writing would be in vain, or would make things worse."""
        if self.damage is not None:
            raise VaultCorrupt(self.damage)
        if (
            self.is_file_lost()
        ):  # what is written to a file without a name is gone with this process
            raise VaultGone
        if self._was_full:
            disk = os.statvfs(self.path)
            if disk.f_bavail * disk.f_frsize < _ROOM:
                raise VaultFull
            self._was_full = False

    async def truncate_wal(self) -> bool:
        """Fold the write-ahead log back and empty it, so that nothing deleted stands in it any more.

        A reader that is at work may keep that from happening; then this is False.
        """
        return await anyio.to_thread.run_sync(self._truncate_wal_now, limiter=self._write_limit)

    def _truncate_wal_now(self) -> bool:
        with contextlib.suppress(VaultBusy), translate_errors():
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            return True
        return False

    async def compact(self) -> None:
        """Write the file anew without its free pages. Writes wait for it, reads do not.

        The copy is made in memory: nothing that was forgotten shall lie in a temporary file.
        """
        await anyio.to_thread.run_sync(self._compact, limiter=self._write_limit)

    def _compact(self) -> None:
        with translate_errors():
            self._writer.execute("VACUUM")
            self._writer.release_memory()
        self._truncate_wal_now()

    def is_file_lost(self) -> bool:
        """Whether the file was deleted, moved or replaced since it was opened."""
        return _identity(self.path) != self._identity

    def size(self) -> int:
        """Bytes on disk, write-ahead log and the index's copy included."""
        total = snapshot_bytes(self.path)
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                total += Path(self.path + suffix).stat().st_size
        return total

    def close(self) -> None:
        """Fold the log back into the file and let go."""
        while not self._readers.empty():
            self._readers.get_nowait().close()
        if self.damage is not None:
            # Nothing more goes into the file, and its log stays beside it.
            self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._writer.close()
            return
        with contextlib.suppress(apsw.Error):
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._writer.close()


def _identity(path: str) -> tuple[int, int] | None:
    """Which file this is; None if there is none."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path)  # noqa: PTH116  # before every write
        return found.st_dev, found.st_ino
    return None


@contextlib.contextmanager
def open_database(path: str, now: int) -> Iterator[Database]:
    """Open a vault and close it again, whatever happens."""
    database = Database(path, now)
    try:
        yield database
    finally:
        database.close()


def sqlite_version() -> str:
    """Tell which SQLite this is."""
    return str(apsw.sqlite_lib_version())
