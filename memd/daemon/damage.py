"""The vault, opened; where it is damaged or the disk is full, what a person can do about it.

A file of no bytes where a daemon has served before is a vault that is gone, and no new one is begun in
its place. Not here: finding damage (the store), or mending it (backup.py).
"""

import contextlib
import datetime as dt
from collections.abc import Iterator
from pathlib import Path

from memd.capture import spool
from memd.daemon import backup
from memd.errors import VaultCorrupt, VaultError, VaultFull
from memd.models import Finding
from memd.paths import Paths
from memd.store import migrate
from memd.store.database import Database

_SERVED = b"daemon_started"
_LOG_BYTES = 1 << 20


@contextlib.contextmanager
def opened(paths: Paths, now: int) -> Iterator[Database]:
    """The vault, for a block; closed afterwards. Its caller holds the lock.

    Raises a VaultError; a VaultCorrupt says what is offered.
    """
    db = _open(paths, now)
    try:
        yield db
    finally:
        db.close()


def check(paths: Paths) -> None:
    """Raise VaultCorrupt if there was a vault here, and its file is empty."""
    file = Path(paths.database)
    if file.exists() and not file.stat().st_size and (_has_served(paths) or _backups(paths)):
        raise VaultCorrupt(f"{file} is empty, and was a vault. Nothing was changed.")


def examine(paths: Paths) -> Finding | None:
    """What keeps a vault that nobody serves from being opened; None if nothing does."""
    try:
        check(paths)
        migrate.inspect(paths.database)
    except VaultCorrupt as error:
        return Finding("database", "problem", error.message, offer(paths))
    except VaultError as error:
        return Finding("database", "problem", error.message)
    return None


def offer(paths: Paths) -> str:
    """What brings back a damaged vault, as a sentence."""
    kept = "the damaged file is kept, and events wait in the spool meanwhile"
    found = _backups(paths)
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


def _open(paths: Paths, now: int) -> Database:
    try:
        check(paths)
        try:
            return Database(paths.database, now)
        except VaultFull:
            if not spool.give_up_reserve(paths.spool_dir):
                raise
            return Database(paths.database, now)
    except VaultCorrupt as error:
        raise VaultCorrupt(f"{error.message} {offer(paths)}") from error


def _backups(paths: Paths) -> list[backup.Backup]:
    return [one for one in backup.listed(backup.place(paths), paths.vault) if not one.is_aside]


def _has_served(paths: Paths) -> bool:
    """Whether the log knows of a daemon that had the vault open."""
    for log in (paths.log, f"{paths.log}.1"):
        with contextlib.suppress(OSError), Path(log).open("rb") as file:
            if _SERVED in file.read(_LOG_BYTES):
                return True
    return False
