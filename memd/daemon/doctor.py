"""Check and repair what `memd doctor` looks at: the vault's tables, the files around it, its damage, and sharing."""

import contextlib
import datetime as dt
import os
import shutil
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from memd import config, launcher
from memd.capture import project, spool
from memd.capture.redact import RULES_VERSION
from memd.config import Config
from memd.daemon import backup, process
from memd.embeddings.hashing import HashingEmbedder
from memd.errors import (
    AlreadyRunning,
    BadRequest,
    Broken,
    ConfigError,
    VaultCorrupt,
    VaultError,
    VaultFull,
)
from memd.index import indexer as index_check
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.models import Finding
from memd.paths import Paths
from memd.sharing import places, team_server
from memd.sharing.chunks import read_sealing
from memd.sharing.records import PlaceUnreachable
from memd.sharing.team_server import ServerRefused, ServerUnreachable, describe_url
from memd.store import database, integrity
from memd.store.backup import may_predate_redaction_rules, read_snapshot
from memd.store.database import Connection, Database, open_database

_INDEXER_WAIT_S = 2.0
"""A check waits this long until the indexer has read what was just written."""
_REMOVABLE_FINDINGS = {"references", "provenance", "vectors"}
"""Findings that are repaired by removing rows; all others need the index to be rebuilt."""
_SPOOL_LATE_MS = 60_000
"""A running daemon drains the spool within seconds."""
_FREE_BYTES_PROBLEM = 100 * 1024**2
_FREE_BYTES_WARNING = 1024**3
_OTHERS_MODE = 0o077
"""The permission bits of other users."""
_UNFINISHED_PREFIX = ".own-"
"""The spool file of a hook that has not finished writing is named so."""
_STARTED_EVENT = b"daemon_started"
_LOG_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class VaultDoctor:
    """Checks and repairs one open vault."""

    db: Database
    indexer: Indexer
    drain_spool: Callable[[], Awaitable[int]] | None
    """Reads what waits in the spool and returns how many lines; None where no daemon takes events."""
    clock: Callable[[], int]

    async def examine(self) -> list[Finding]:
        """Check the vault."""
        with anyio.move_on_after(_INDEXER_WAIT_S):
            await self.indexer.settle()
        return await self._check_tables()

    async def mend(self) -> list[str]:
        """Repair what was derived, remove references to missing rows, and say what was done.

        No event, memory or other source of truth is changed.
        """
        done = []
        if self.drain_spool is not None and (lines := await self.drain_spool()):
            done.append(f"read {lines} lines of the spool")
        fixable = await self._find_fixable()
        if fixable:
            removed = await self.db.write(integrity.remove_orphans)
            done += [f"removed {count} rows of {table}" for table, count in removed.items()]
            fixable |= await self._find_fixable()
        if fixable - _REMOVABLE_FINDINGS:
            await self.indexer.reindex()
            done.append("rebuilt full text and vectors")
        return done

    async def _find_fixable(self) -> set[str]:
        return {one.name for one in await self._check_tables() if one.fixable}

    async def _check_tables(self) -> list[Finding]:
        check = partial(examine_vault, self.db.path, self.clock(), is_served=True)
        return await anyio.to_thread.run_sync(check)


def examine_vault(path: str, now: int, *, is_served: bool) -> list[Finding]:
    """Check the tables of a vault, and rebuild a sample of its index to compare. `now`: UTC ms.

    A vault that cannot be read is a finding. The connection is a new one: FTS5 would check the rows of an
    older one against the structure that it has cached.
    """
    try:
        with read_snapshot(path) as tx:
            found = integrity.examine_vault(tx, now, is_served=is_served)
            if any(one.name == "passages" for one in found):
                found.append(index_check.check_sample(tx))
                found.append(index_check.check_snapshot(tx, path, HashingEmbedder()))
                found += _check_rules(tx)
            return found
    except VaultCorrupt as error:
        return [Finding("database", "problem", error.message, integrity.RESTORE)]
    except Broken as error:
        return [Finding("database", "problem", error.message)]


def _check_rules(tx: Connection) -> list[Finding]:
    """Tell when what is stored may have a secret in it that redaction did not know when it was written."""
    if not may_predate_redaction_rules(tx, RULES_VERSION):
        return []
    words = "some of what is stored was written before redaction knew all of its present rules"
    return [Finding("secrets", "warning", words, "`memd scrub --secrets` applies them to the past")]


def repair_unserved_vault(paths: Paths, now: int) -> list[str]:
    """Repair a vault that no daemon serves. Raises AlreadyRunning or a VaultError."""

    async def repair() -> list[str]:
        indexer = Indexer(db, (HashingEmbedder(),), MemoryIndex())
        return await VaultDoctor(db, indexer, None, lambda: now).mend()

    with process.hold_lock(paths.lock, now, "repair"), open_database(paths.database, now) as db:
        return anyio.run(repair)


def examine_files(paths: Paths, home: str, now: int, *, is_served: bool) -> list[Finding]:
    """Check the files of one vault; `is_served`: whether its daemon answers. `now`: UTC ms.

    Changes nothing; it only tries the lock for an instant.
    """
    return [
        *(
            Finding(
                "environment", "warning", why, "set it to an absolute path of yours, or unset it"
            )
            for why in paths.ignored
        ),
        _check_permissions(paths),
        _check_lock(paths, is_served=is_served),
        *_check_spool(paths, now, is_served=is_served),
        _check_disk(paths),
        *_check_config(paths),
        _check_projects_file(paths, home),
        _check_unfinished_copies(paths),
    ]


def repair_files(paths: Paths, now: int) -> list[str]:
    """Repair the files of one vault and say what was done."""
    done = []
    for path, mode in _list_exposed_paths(paths):
        with contextlib.suppress(OSError):
            Path(path).chmod(mode & ~_OTHERS_MODE)
            done.append(f"closed {path} to others")
    if _describe_leftovers(paths):
        with contextlib.suppress(AlreadyRunning), process.hold_lock(paths.lock, now):
            Path(paths.socket).unlink(missing_ok=True)
            done.append("removed what a dead daemon left")
    done += [f"removed {path}, which was never finished" for path in backup.remove_leftovers(paths)]
    for file in _list_unfinished_spool_files(paths, now):
        with contextlib.suppress(OSError):
            file.rename(file.with_name(f"{file.name.lstrip('.')}.jsonl"))
            done.append(f"queued {file.name} in the spool")
    return done


def _check_permissions(paths: Paths) -> Finding:
    exposed = _list_exposed_paths(paths)
    if not exposed:
        return Finding("permissions", "ok", "directories 0700, files and socket 0600")
    words = integrity.shorten_list([f"{path} ({mode:04o})" for path, mode in exposed])
    remedy = "`memd doctor --fix` closes them to others"
    return Finding("permissions", "problem", f"open to others: {words}", remedy, fixable=True)


def _list_exposed_paths(paths: Paths) -> list[tuple[str, int]]:
    """List memd's directories and files that other users may enter, read or write, with their mode."""
    snapshots = database.snapshot_directory(paths.database)
    wanted = (
        paths.data_dir,
        paths.state_dir,
        paths.runtime_dir,
        paths.socket_dir,
        *paths.spools,
        backup.backup_dir(paths),
        snapshots,
        *(entry.path for entry in _list_entries(snapshots)),
    )
    directories = [path for path in dict.fromkeys(wanted) if Path(path).is_dir()]
    files = [
        entry.path
        for directory in directories
        for entry in _list_entries(directory)
        if not entry.is_symlink() and not entry.is_dir()
    ]
    modes = [(path, stat.S_IMODE(_stat_or_zeros(path).st_mode)) for path in (*directories, *files)]
    return [(path, mode) for path, mode in modes if mode & _OTHERS_MODE]


def _check_lock(paths: Paths, *, is_served: bool) -> Finding:
    if is_served:
        return Finding("lock", "ok", "the daemon that answers holds it")
    holder = process.find_lock_holder(paths.lock)
    if holder is not None:
        words = f"a daemon (pid {holder.pid}) holds the vault and does not answer"
        remedy = "wait if it has just started; else `memd restart`"
        return Finding("lock", "problem", words, remedy)
    if launcher.is_held(f"{paths.lock}.start"):
        words = "a daemon is being started, or its start hangs"
        return Finding("lock", "warning", words, "try again in a moment, then see the log")
    if leftovers := _describe_leftovers(paths):
        words = f"a daemon was killed and left {leftovers}"
        remedy = "the next daemon replaces it, `memd doctor --fix` removes it"
        return Finding("lock", "warning", words, remedy, fixable=True)
    return Finding("lock", "ok", "free, and no daemon left anything")


def _describe_leftovers(paths: Paths) -> str:
    """Name what a dead daemon left; empty if it left nothing, or if a daemon has the vault."""
    if launcher.is_awaited(paths):
        return ""
    leftovers = []
    if _is_socket_deserted(paths.socket):
        leftovers.append(f"its socket {paths.socket}")
    if _stat_or_zeros(paths.lock).st_size:
        leftovers.append(f"its note in {paths.lock}")
    return " and ".join(leftovers)


def _is_socket_deserted(path: str) -> bool:
    """Return whether there is a socket at which no process listens."""
    if not stat.S_ISSOCK(_stat_or_zeros(path).st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _check_spool(paths: Paths, now: int, *, is_served: bool) -> Iterator[Finding]:
    waiting = [
        entry
        for directory in paths.spools
        for entry in _list_entries(directory)
        if not entry.name.startswith(".") and _stat_or_zeros(entry.path).st_size
    ]
    oldest = min((_modified_ms(entry.path) for entry in waiting), default=now)
    words = f"{len(waiting)} files wait, the oldest for {max(0, now - oldest) / 60_000:.0f} min"
    if not waiting:
        yield Finding("spool", "ok", "empty")
    elif not is_served:
        yield Finding("spool", "warning", words, "`memd start`: the daemon reads them")
    elif now - oldest > _SPOOL_LATE_MS:
        remedy = "`memd doctor --fix` reads them; if they stay, see the log"
        yield Finding("spool", "problem", words, remedy, fixable=True)
    else:
        yield Finding("spool", "ok", words)
    if unfinished := _list_unfinished_spool_files(paths, now):
        words = f"{len(unfinished)} hooks died while they wrote: {unfinished[0]}"
        remedy = "`memd doctor --fix` queues what they wrote"
        yield Finding("spool", "warning", words, remedy, fixable=True)


def _list_unfinished_spool_files(paths: Paths, now: int) -> list[Path]:
    """List the files of hooks that died before they could name them."""
    return [
        Path(entry.path)
        for directory in paths.spools
        for entry in _list_entries(directory)
        if entry.name.startswith(_UNFINISHED_PREFIX)
        and now - _modified_ms(entry.path) > _SPOOL_LATE_MS
    ]


def _check_disk(paths: Paths) -> Finding:
    place = Path(paths.data_dir)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    words = f"{free / 1024**3:.1f} GB free at {place}"
    if free < _FREE_BYTES_PROBLEM:
        remedy = "make room; memd keeps events in the spool if it can"
        return Finding("disk", "problem", words, remedy)
    # `memd vacuum` and a backup each write a second copy of the vault.
    if free < max(_FREE_BYTES_WARNING, 2 * _stat_or_zeros(paths.database).st_size):
        remedy = "make room, or shrink the vault with `memd vacuum`"
        return Finding("disk", "warning", words, remedy)
    return Finding("disk", "ok", words)


def _check_config(paths: Paths) -> Iterator[Finding]:
    try:
        config.load_config(paths.config_file)
        retired = config.explain_retired(paths.config_file)
    except ConfigError as error:
        remedy = "correct the file, then `memd restart`; no daemon starts with it"
        yield Finding("settings", "problem", error.message, remedy)
        return
    has_file = Path(paths.config_file).exists()
    if not retired:
        yield Finding("settings", "ok", paths.config_file if has_file else "the defaults")
    for words in retired:
        yield Finding("settings", "warning", words, f"take the line out of {paths.config_file}")


def _check_projects_file(paths: Paths, home: str) -> Finding:
    file = Path(paths.projects_file)
    try:
        lines = project.parse_overrides(file.read_text(encoding="utf-8"), home)
    except FileNotFoundError:
        return Finding("projects", "ok", "no directory is assigned to a project by hand")
    except (ValueError, OSError) as error:
        remedy = "correct the file; none of its lines count until then"
        return Finding("projects", "problem", f"{file}: {error}", remedy)
    return Finding("projects", "ok", f"{len(lines)} lines in {file}")


def _check_unfinished_copies(paths: Paths) -> Finding:
    found = backup.list_leftovers(paths)
    if not found:
        return Finding("copies", "ok", "no backup, restore or import was killed half-way")
    remedy = "`memd doctor --fix` removes it; the next daemon, backup or restore does so, too"
    words = f"a killed backup, restore or import has left {integrity.shorten_list(found)}"
    return Finding("copies", "warning", words, remedy, fixable=True)


def _list_entries(directory: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(directory) as found:
        return list(found)
    return []


def _stat_or_zeros(path: str) -> os.stat_result:
    """Return the status of a file; all zeros if it does not exist."""
    with contextlib.suppress(OSError):
        return Path(path).stat()
    return os.stat_result([0] * 10)


def _modified_ms(path: str) -> int:
    return int(_stat_or_zeros(path).st_mtime * 1000)


@contextlib.contextmanager
def open_vault(paths: Paths, now: int) -> Iterator[Database]:
    """Open the vault for a block; the caller holds the lock.

    Raises a VaultError; the message of a VaultCorrupt says how to recover.
    """
    try:
        refuse_emptied_vault(paths)
        try:
            db = Database(paths.database, now)
        except VaultFull:
            if not spool.give_up_reserve(paths.spool_dir):
                raise
            db = Database(paths.database, now)
    except VaultCorrupt as error:
        raise VaultCorrupt(f"{error.message} {advise_recovery(paths)}") from error
    try:
        yield db
    finally:
        db.close()


def refuse_emptied_vault(paths: Paths) -> None:
    """Raise VaultCorrupt if the file is empty and a vault was here: no new one may take its place."""
    file = Path(paths.database)
    if not file.exists() or file.stat().st_size:
        return
    if _has_daemon_served(paths) or _list_own_backups(paths):
        raise VaultCorrupt(f"{file} is empty, and was a vault. Nothing was changed.")


def find_damage(paths: Paths) -> Finding | None:
    """Return what keeps a vault that no daemon serves from being opened, or None."""
    try:
        refuse_emptied_vault(paths)
        database.check_header(paths.database)
    except VaultCorrupt as error:
        return Finding("database", "problem", error.message, advise_recovery(paths))
    except VaultError as error:
        return Finding("database", "problem", error.message)
    return None


def advise_recovery(paths: Paths) -> str:
    """Say how to recover a damaged vault."""
    kept = "the damaged file is kept, and events wait in the spool meanwhile"
    backups = _list_own_backups(paths)
    if not backups:
        return f"`memd restore --salvage` takes what can still be read, there is no backup; {kept}"
    made = dt.datetime.fromtimestamp(backups[0].at / 1000, tz=dt.UTC)
    return (
        f"`memd restore` brings back the backup of {made:%Y-%m-%d %H:%M} UTC,"
        f" `memd restore --salvage` takes what can still be read; {kept}"
    )


def _list_own_backups(paths: Paths) -> list[backup.Backup]:
    found = backup.list_backups(backup.backup_dir(paths), paths.vault)
    return [one for one in found if not one.is_aside]


def _has_daemon_served(paths: Paths) -> bool:
    """Return whether the log knows of a daemon that had the vault open."""
    for log in (paths.log, f"{paths.log}.1"):
        with contextlib.suppress(OSError), Path(log).open("rb") as file:
            if _STARTED_EVENT in file.read(_LOG_BYTES):
                return True
    return False


# ── The place of `[sync]` and the server of `[team]`: read only, each within seconds ──────────────


def examine_sharing(config: Config, paths: Paths) -> list[Finding]:
    """Check what the settings name; nothing if they name nothing."""
    return [*_check_place(config, paths), *_check_encryption(config, paths), *_check_team(config)]


def _check_place(config: Config, paths: Paths) -> Iterator[Finding]:
    if not config.sync.place:
        return
    try:
        place = places.parse_target(config.sync.place, paths.mirrors_dir, asks=False)
        words = place.probe()
    except PlaceUnreachable as error:
        remedy = "what is to be sent waits; `memd sync` in a shell may ask for a password"
        yield Finding("place", "warning", error.message, remedy)
    except (BadRequest, OSError) as error:
        yield Finding("place", "problem", str(error), "correct [sync] in config.toml")
    else:
        yield Finding("place", "ok", f"{place.name}: {words}")


def _check_encryption(config: Config, paths: Paths) -> Iterator[Finding]:
    if not config.sync.recipients:
        return
    try:
        read_sealing(config.sync, paths.age_key)
    except ConfigError as error:
        remedy = "nothing is synced until then"
        yield Finding("encryption", "problem", error.message, remedy)
    else:
        count = len(config.sync.recipients)
        yield Finding("encryption", "ok", f"keys: {count}, this machine's among them")


def _check_team(config: Config) -> Iterator[Finding]:
    url = config.team.url
    if not url:
        return
    try:
        found = team_server.examine(url)
    except ServerUnreachable as error:
        yield Finding(
            "team", "warning", error.message, "what is to be shared waits; answers do not"
        )
        return
    except (ServerRefused, BadRequest) as error:
        yield Finding("team", "problem", error.message)
        return
    place = describe_url(url)
    if found.unguarded:
        names = ", ".join(found.unguarded)
        yield Finding(
            "team", "problem", f"{place}: row-level security is off for {names}",
            "until its owner enables it (`ALTER TABLE … ENABLE ROW LEVEL SECURITY`), all who connect see all",
        )  # fmt: skip
    elif found.is_above:
        yield Finding(
            "team", "warning", f"{place}: {found.user} stands above row-level security",
            "share as a user of your own who is neither the owner nor a superuser",
        )  # fmt: skip
    elif not found.roles:
        yield Finding(
            "team", "warning", f"{place}: {found.user} has no role in any project",
            f"ask a maintainer: `memd team grant {found.user} writer PROJECT`",
        )  # fmt: skip
    else:
        roles = ", ".join(f"{role} of {name}" for name, role in sorted(found.roles.items()))
        words = f"PostgreSQL {found.version}, schema {found.schema}, row-level security on"
        yield Finding("team", "ok", f"{place}: {found.user} is {roles}; {words}")
