"""memd doctor checks and fixes."""

import contextlib
import datetime as dt
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread

from memd import config, launcher
from memd.capture import project, spool
from memd.config import IndexConfig
from memd.daemon import backup, process
from memd.embeddings.hashing import HashingEmbedder
from memd.errors import AlreadyRunning, Broken, ConfigError, VaultCorrupt, VaultError, VaultFull
from memd.index import check
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.models import Finding
from memd.paths import Paths
from memd.store import database, integrity, migrate
from memd.store.backup import read_snapshot
from memd.store.database import Database, open_database

# MERGED from memd.daemon.checkup:
# MERGED What `memd doctor` finds and mends in a vault: in the daemon that serves it, or beside none.
# MERGED
# MERGED Looking is one snapshot. Mending takes away what refers to nothing, takes in what waits in the spool,
# MERGED and computes everything derived anew where something of it was wrong; no truth is touched. Not here:
# MERGED the files around the vault (premises.py), Claude Code and service managers (setup/checkup.py).


_INDEXER_WAIT_S = 2.0
"""How long a look waits for the indexer to have learnt what was just written."""
_REMOVABLE_FINDINGS = {"references", "provenance", "vectors"}
"""Findings that are mended by taking rows away; all others need the index computed anew."""


class SpoolDrain(Protocol):
    """Takes in what waits in the spool."""

    async def drain(self) -> int:
        """How many lines that was; SpoolBroken if a place of it cannot be read."""


class VaultDoctor:
    """Looks at one open vault. `ingestor` is None where no daemon takes events in."""

    def __init__(
        self,
        db: Database,
        indexer: Indexer,
        ingestor: SpoolDrain | None,
        tokens_max: int,
        clock: Callable[[], int],
    ) -> None:
        self._db = db
        self._indexer = indexer
        self._ingestor = ingestor
        self._tokens_max = tokens_max
        self._clock = clock

    async def examine(self) -> list[Finding]:
        """Say what is right and wrong with the vault."""
        with anyio.move_on_after(_INDEXER_WAIT_S):
            await self._indexer.settle()
        return await self._look()

    async def mend(self) -> list[str]:
        """Mend what can be mended without touching truth, and say what was done."""
        done = []
        if self._ingestor is not None and (lines := await self._ingestor.drain()):
            done.append(f"took in {lines} lines of the spool")
        wrong = await self._fixable()
        if wrong:
            gone = await self._db.write(integrity.remove_orphans)
            done += [f"took away {count} rows of {table}" for table, count in gone.items()]
            wrong |= await self._fixable()
        if wrong - _REMOVABLE_FINDINGS:
            await self._indexer.reindex()
            done.append("computed full text and vectors anew")
        return done

    async def _fixable(self) -> set[str]:
        return {one.name for one in await self._look() if one.fixable}

    async def _look(self) -> list[Finding]:
        look = partial(
            examine_vault, self._db.path, self._tokens_max, self._clock(), is_served=True
        )
        return await anyio.to_thread.run_sync(look)


def examine_vault(path: str, tokens_max: int, now: int, *, is_served: bool) -> list[Finding]:
    """Look at a vault: by its tables, and by a sample of it indexed anew. `now`: UTC milliseconds.

    Whatever keeps it from being read is a finding, too. It is read through a connection of its own: in
    one that was open before, FTS5 checks the rows of now by the structure that it had once read.
    """
    try:
        with read_snapshot(path) as tx:
            found = integrity.examine_vault(tx, now, is_served=is_served)
            if any(one.name == "passages" for one in found):
                found.append(check.check_sample(tx, tokens_max))
                found.append(check.check_snapshot(tx, path, HashingEmbedder()))
            return found
    except VaultCorrupt as error:
        return [Finding("database", "problem", error.message, integrity.RESTORE)]
    except Broken as error:
        return [Finding("database", "problem", error.message)]


def repair_unserved_vault(paths: Paths, settings: IndexConfig, now: int) -> list[str]:
    """Mend a vault that no daemon serves, as its only holder. Raises AlreadyRunning or a VaultError."""

    async def work() -> list[str]:
        indexer = Indexer(db, (HashingEmbedder(),), MemoryIndex(), settings)
        return await VaultDoctor(db, indexer, None, settings.passage_tokens, lambda: now).mend()

    with process.hold_lock(paths.lock, now, "repair"), open_database(paths.database, now) as db:
        return anyio.run(work)


# MERGED from memd.daemon.premises:
# MERGED The files around a vault: who may read them, whether they parse, what a daemon that died has left behind.
# MERGED
# MERGED Looking changes nothing but a lock that is tried for an instant. Mending closes what is open to others,
# MERGED takes away a dead daemon's socket and note while holding its lock, and puts what a hook had no time to
# MERGED name in line on the spool. Not here: what stands in the vault (checkup.py).


_SPOOL_LATE_MS = 60_000
"""The spool is drained within seconds while a daemon runs."""
_FREE_BYTES_PROBLEM, _FREE_BYTES_WARNING = 100 * 1024**2, 1024**3
"""Bytes free on the disk: below the first nothing may fit soon, below the second look after it."""
_OTHERS_MODE = 0o077
_PATHS_LISTED_MAX = 3
_UNFINISHED_PREFIX = ".own-"
"""How the spool calls a file that its hook is still writing."""


def examine_files(paths: Paths, home: str, now: int, *, is_served: bool) -> list[Finding]:
    """Look at the files of one vault; `is_served`: whether its daemon answers. `now`: UTC ms."""
    return [
        _check_permissions(paths),
        _check_lock(paths, is_served=is_served),
        *_check_spool(paths, now, is_served=is_served),
        _check_disk(paths),
        _check_config(paths),
        _check_projects_file(paths, home),
    ]


def repair_files(paths: Paths, now: int) -> list[str]:
    """Mend what can be; what was done, in words."""
    done = []
    for path in _list_exposed_paths(paths):
        with contextlib.suppress(OSError):
            Path(path).chmod(stat.S_IMODE(Path(path).stat().st_mode) & ~_OTHERS_MODE)
            done.append(f"closed {path} to others")
    if _describe_leftovers(paths):
        with contextlib.suppress(AlreadyRunning), process.hold_lock(paths.lock, now):
            Path(paths.socket).unlink(missing_ok=True)
            done.append("took away what a dead daemon left")
    for own in _list_unfinished_spool_files(paths, now):
        with contextlib.suppress(OSError):
            own.rename(own.with_name(f"{own.name.lstrip('.')}.jsonl"))
            done.append(f"put {own.name} in line on the spool")
    return done


def _list_directories(paths: Paths) -> list[str]:
    wanted = (
        paths.data_dir,
        paths.state_dir,
        paths.runtime_dir,
        *paths.spools,
        backup.backup_dir(paths),
        *_saved(paths),
    )
    return [path for path in dict.fromkeys(wanted) if Path(path).is_dir()]


def _saved(paths: Paths) -> list[str]:
    """Where the index's copies lie, and each of them."""
    folder = database.snapshot_directory(paths.database)
    return [folder, *(entry.path for entry in _list_entries(folder))]


def _list_entries(directory: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(directory) as found:
        return list(found)
    return []


def _list_exposed_paths(paths: Paths) -> list[str]:
    """Name the directories and files of memd's that another user may enter, read or write."""
    directories = _list_directories(paths)
    files = [
        entry.path
        for directory in directories
        for entry in _list_entries(directory)
        if not entry.is_symlink() and not entry.is_dir()
    ]
    return [path for path in (*directories, *files) if _read_mode(path) & _OTHERS_MODE]


def _read_mode(path: str) -> int:
    with contextlib.suppress(OSError):
        return Path(path).stat().st_mode
    return 0


def _check_permissions(paths: Paths) -> Finding:
    found = _list_exposed_paths(paths)
    if not found:
        return Finding("permissions", "ok", "directories 0700, files and socket 0600")
    told = ", ".join(
        f"{path} ({stat.S_IMODE(_read_mode(path)):04o})" for path in found[:_PATHS_LISTED_MAX]
    )
    more = (
        f" and {len(found) - _PATHS_LISTED_MAX} more" if len(found) > _PATHS_LISTED_MAX else ""
    )
    remedy = "`memd doctor --fix` closes them to others"
    return Finding(
        "permissions", "problem", f"open to others: {told}{more}", remedy, fixable=True
    )


def _check_lock(paths: Paths, *, is_served: bool) -> Finding:
    if is_served:
        return Finding("lock", "ok", "the daemon that answers holds it")
    holder = process.find_lock_holder(paths.lock)
    if holder is not None:
        words = f"a daemon (pid {holder.pid}) holds the vault and does not answer"
        return Finding(
            "lock", "problem", words, "wait if it has just started; else `memd restart`"
        )
    if launcher.is_held(f"{paths.lock}.start"):
        words = "a daemon is being started, or hangs at it"
        return Finding("lock", "warning", words, "look again in a moment, then at the log")
    if left := _describe_leftovers(paths):
        remedy = "the next daemon replaces it, `memd doctor --fix` takes it away"
        words = f"a daemon ended without leaving: {left}"
        return Finding("lock", "warning", words, remedy, fixable=True)
    return Finding("lock", "ok", "free, and nothing is left of a daemon")


def _describe_leftovers(paths: Paths) -> str:
    """Say what is left of a daemon that has gone; empty if nothing is, or if one has the vault."""
    if launcher.is_awaited(paths):
        return ""
    left = []
    if _is_socket_deserted(paths.socket):
        left.append(f"its socket {paths.socket}")
    if _read_size(paths.lock):
        left.append(f"its note in {paths.lock}")
    return " and ".join(left)


def _read_size(path: str) -> int:
    with contextlib.suppress(OSError):
        return Path(path).stat().st_size
    return 0


def _is_socket_deserted(path: str) -> bool:
    """Whether there is a socket at which nobody listens."""
    if not stat.S_ISSOCK(_read_mode(path)):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            door.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _list_unfinished_spool_files(paths: Paths, now: int) -> list[Path]:
    """List the files whose hooks died before they could name them."""
    return [
        Path(entry.path)
        for directory in paths.spools
        for entry in _list_entries(directory)
        if entry.name.startswith(_UNFINISHED_PREFIX)
        and now - _modified_ms(entry) > _SPOOL_LATE_MS
    ]


def _modified_ms(entry: os.DirEntry[str]) -> int:
    with contextlib.suppress(OSError):
        return entry.stat().st_mtime_ns // 1_000_000
    return 0


def _check_spool(paths: Paths, now: int, *, is_served: bool) -> Iterator[Finding]:
    waiting = [
        entry
        for directory in paths.spools
        for entry in _list_entries(directory)
        if not entry.name.startswith(".") and _read_size(entry.path)
    ]
    oldest = min(map(_modified_ms, waiting), default=now)
    words = f"{len(waiting)} files wait, the oldest for {max(0, now - oldest) / 60_000:.0f} min"
    if not waiting:
        yield Finding("spool", "ok", "empty")
    elif not is_served:
        yield Finding("spool", "warning", words, "`memd start`: the daemon takes them in")
    elif now - oldest > _SPOOL_LATE_MS:
        remedy = "`memd doctor --fix` takes them in; if they stay, see the log"
        yield Finding("spool", "problem", words, remedy, fixable=True)
    else:
        yield Finding("spool", "ok", words)
    if unnamed := _list_unfinished_spool_files(paths, now):
        words = f"{len(unnamed)} hooks died while they wrote: {unnamed[0]}"
        remedy = "`memd doctor --fix` puts what they wrote in line"
        yield Finding("spool", "warning", words, remedy, fixable=True)


def _check_disk(paths: Paths) -> Finding:
    place = Path(paths.data_dir)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    words = f"{free / 1024**3:.1f} GB free at {place}"
    # `memd vacuum` and a backup each write the vault anew.
    if free < _FREE_BYTES_PROBLEM:
        return Finding(
            "disk", "problem", words, "make room; memd keeps events in the spool if it can"
        )
    if free < max(_FREE_BYTES_WARNING, 2 * _read_size(paths.database)):
        return Finding(
            "disk", "warning", words, "make room, or shrink the vault with `memd vacuum`"
        )
    return Finding("disk", "ok", words)


def _check_config(paths: Paths) -> Finding:
    try:
        config.load_config(paths.config_file)
    except ConfigError as error:
        remedy = "mend the file, then `memd restart`; no daemon starts with it"
        return Finding("settings", "problem", error.message, remedy)
    is_there = Path(paths.config_file).exists()
    return Finding("settings", "ok", paths.config_file if is_there else "the defaults")


def _check_projects_file(paths: Paths, home: str) -> Finding:
    file = Path(paths.projects_file)
    try:
        lines = project.parse_overrides(file.read_text(encoding="utf-8"), home)
    except FileNotFoundError:
        return Finding("projects", "ok", "no directory was given to a project by hand")
    except (ValueError, OSError) as error:
        remedy = "mend the file; until then none of its lines count"
        return Finding("projects", "problem", f"{file}: {error}", remedy)
    return Finding("projects", "ok", f"{len(lines)} lines in {file}")


# MERGED from memd.daemon.damage:
# MERGED The vault, opened; where it is damaged or the disk is full, what a person can do about it.
# MERGED
# MERGED A file of no bytes where a daemon has served before is a vault that is gone, and no new one is begun in
# MERGED its place. Not here: finding damage (the store), or mending it (backup.py).


_STARTED_EVENT = b"daemon_started"
_LOG_BYTES = 1 << 20


@contextlib.contextmanager
def open_vault(paths: Paths, now: int) -> Iterator[Database]:
    """The vault, for a block; closed afterwards. Its caller holds the lock.

    Raises a VaultError; a VaultCorrupt says what is offered.
    """
    db = _open_or_advise(paths, now)
    try:
        yield db
    finally:
        db.close()


def refuse_emptied_vault(paths: Paths) -> None:
    """Raise VaultCorrupt if there was a vault here, and its file is empty."""
    file = Path(paths.database)
    if (
        file.exists()
        and not file.stat().st_size
        and (_has_daemon_served(paths) or _list_own_backups(paths))
    ):
        raise VaultCorrupt(f"{file} is empty, and was a vault. Nothing was changed.")


def find_damage(paths: Paths) -> Finding | None:
    """What keeps a vault that nobody serves from being opened; None if nothing does."""
    try:
        refuse_emptied_vault(paths)
        migrate.check_header(paths.database)
    except VaultCorrupt as error:
        return Finding("database", "problem", error.message, advise_recovery(paths))
    except VaultError as error:
        return Finding("database", "problem", error.message)
    return None


def advise_recovery(paths: Paths) -> str:
    """What brings back a damaged vault, as a sentence."""
    kept = "the damaged file is kept, and events wait in the spool meanwhile"
    found = _list_own_backups(paths)
    if not found:
        return (
            f"`memd restore --salvage` takes what can still be read, there is no backup; {kept}"
        )
    made = dt.datetime.fromtimestamp(found[0].at / 1000, tz=dt.UTC).strftime(
        "%Y-%m-%d %H:%M UTC"
    )
    return (
        f"`memd restore` brings back the backup of {made}, `memd restore --salvage` takes what can"
        f" still be read; {kept}"
    )


def _open_or_advise(paths: Paths, now: int) -> Database:
    try:
        refuse_emptied_vault(paths)
        try:
            return Database(paths.database, now)
        except VaultFull:
            if not spool.give_up_reserve(paths.spool_dir):
                raise
            return Database(paths.database, now)
    except VaultCorrupt as error:
        raise VaultCorrupt(f"{error.message} {advise_recovery(paths)}") from error


def _list_own_backups(paths: Paths) -> list[backup.Backup]:
    return [
        one
        for one in backup.list_backups(backup.backup_dir(paths), paths.vault)
        if not one.is_aside
    ]


def _has_daemon_served(paths: Paths) -> bool:
    """Whether the log knows of a daemon that had the vault open."""
    for log in (paths.log, f"{paths.log}.1"):
        with contextlib.suppress(OSError), Path(log).open("rb") as file:
            if _STARTED_EVENT in file.read(_LOG_BYTES):
                return True
    return False
