"""Backups as files: where they lie, what they are called, which of them go, and how one is put back.

They lie in a directory of their own beside the vault, or where a person says. A file has its name only
once it is whole; what a killed backup left behind has another, and the next one takes it away. A vault
that gives way to a backup is set aside, never overwritten. Not here: how a copy is made (store/copies.py).
"""

import contextlib
import datetime as dt
import errno
import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memd.errors import BadRequest, MemdError, VaultError
from memd.paths import Paths, private_dir
from memd.store import backup as store_backup
from memd.store import database, migrate
from memd.store import salvage as store_salvage
from memd.store.backup import Progress
from memd.store.import_rows import is_process_alive

_SUFFIX = ".memd"
_PARTIAL = ".partial"
_DAMAGED = ".damaged"
_ASIDE = "before-restore"
_WAL = "-wal"
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EMLINK})
"""Such as a stick for a camera."""
_DATE = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Backup:
    """A file that holds a whole vault."""

    path: str
    at: int
    """UTC milliseconds, from its name."""
    size: int
    is_aside: bool
    """Whether it is what a restore has set aside: such a file is never pruned."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """What a backup did."""

    backup: Backup
    rows: dict[str, int]
    pruned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What a restore did."""

    aside: str | None
    """Where the vault is now that was there before; None if there was none."""
    erased: int
    """Memories of the backup that were forgotten since, and do not come back."""
    rows: dict[str, int]


@dataclass(frozen=True, slots=True)
class SalvageResult:
    """What a salvage did; `kept` and `lost` are table → rows."""

    aside: str | None
    kept: dict[str, int]
    lost: dict[str, int]


def backup_dir(paths: Paths) -> str:
    """Where backups lie unless a person says otherwise."""
    return str(Path(paths.data_dir, "backups"))


def list_backups(directory: str, vault: str) -> list[Backup]:
    """The backups of a vault in a directory, newest first."""
    found = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(directory):
            match = _backup_name_pattern(vault).fullmatch(entry.name)
            if match and entry.is_file():
                moment = dt.datetime.strptime(match["date"], _DATE).replace(tzinfo=dt.UTC)
                at = int(moment.timestamp() * 1000)
                one = Backup(entry.path, at, entry.stat().st_size, bool(match["aside"]))
                found.append((at, int(match["number"] or 1), one.path, one))
    return [one for *_, one in sorted(found, reverse=True)]


def create_backup(
    paths: Paths, directory: str | None, keep: int, now: int, progress: Progress
) -> BackupResult:
    """Back the vault up while it is in use, then remove all but the `keep` newest backups there.

    Raises BadRequest without a vault, OSError where nothing can be written, or a VaultError.
    """
    if directory is None:
        folder = private_dir(backup_dir(paths))
    else:
        folder = str(Path(directory).absolute())
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103  # what is there keeps its mode
    _remove_stale_partials(folder, paths.vault)
    partial = _partial_path(folder, paths.vault)
    rows = store_backup.copy_vault(paths.database, partial, progress)
    try:
        path = _name_uniquely(partial, folder, f"{paths.vault}-{_format_date(now)}")
    except BaseException:
        store_backup.remove_vault_file(partial)
        raise
    made = next(one for one in list_backups(folder, paths.vault) if one.path == path)
    return BackupResult(made, rows, _prune_backups(folder, paths.vault, keep, made))


def _sort_newest_first(found: Sequence[Backup], now: int) -> list[Backup]:
    """Those that a backup made, newest first; what is dated later than now was made before the clock was set back."""
    return sorted((one for one in found if not one.is_aside), key=lambda one: one.at > now)


def _prune_backups(folder: str, vault: str, keep: int, made: Backup) -> tuple[str, ...]:
    """Remove all but the newest; never the one just made."""
    found = _sort_newest_first(list_backups(folder, vault), made.at)
    old = [one.path for one in sorted(found, key=lambda one: one != made)[keep:]]
    for path in old:
        Path(path).unlink(missing_ok=True)
    return tuple(old)


def restore(paths: Paths, file: str, now: int, progress: Progress) -> RestoreResult:
    """Put a backup in the vault's place. The caller holds the vault's lock, so nobody serves it.

    The file is copied and the copy proved before anything is touched; until the last step, which is
    one rename, the old vault is where it was, and it is put back if that step fails. Raises BadRequest,
    OSError or a VaultError.
    """
    folder = private_dir(backup_dir(paths))
    _remove_stale_partials(folder, paths.vault)
    partial = _partial_path(folder, paths.vault)
    rows = store_backup.copy_vault(file, partial, progress)
    try:
        gone = _read_forgotten(paths.database, _damaged_path(partial))
        erased = store_backup.upgrade_copy(partial, gone, now)
        aside = _replace_vault(
            paths, folder, partial, now, is_whole=_has_vault_header(paths.database)
        )
    except BaseException:
        store_backup.remove_vault_file(partial)
        raise
    _flush_directory(paths.data_dir)
    return RestoreResult(aside, erased, rows)


def salvage(paths: Paths, file: str | None, now: int) -> SalvageResult:
    """Put what can be read of a damaged file, or of the vault itself, in the vault's place.

    The caller holds the vault's lock. The damaged file is only copied; a vault is set aside as it is.
    Raises BadRequest, OSError or a VaultError; then nothing has changed.
    """
    folder = private_dir(backup_dir(paths))
    _remove_stale_partials(folder, paths.vault)
    partial = _partial_path(folder, paths.vault)
    damaged = _damaged_path(partial)
    source = file or paths.database
    if not Path(source).is_file():
        raise BadRequest(f"there is no file {source}")
    try:
        _copy_with_wal(source, damaged)
        found = store_salvage.salvage(damaged, partial, now)
        store_backup.verify_vault(partial)
        aside = _replace_vault(paths, folder, partial, now, is_whole=False)
    finally:
        store_backup.remove_vault_file(damaged)
        store_backup.remove_vault_file(partial)
    _flush_directory(paths.data_dir)
    return SalvageResult(aside, found.copied, found.lost)


def require_damaged(paths: Paths, file: str | None) -> None:
    """Refuse to salvage what is not there, or is whole: BadRequest, with what to do."""
    source = file or paths.database
    if not Path(source).is_file():
        raise BadRequest(f"there is no file {source}")
    try:
        store_backup.verify_vault(source)
    except MemdError:
        return
    is_vault = Path(paths.database).exists() and Path(source).samefile(paths.database)
    if is_vault:
        raise BadRequest("the vault is whole; there is nothing to salvage")
    raise BadRequest(
        f"{source} is whole; there is nothing to salvage, `memd restore FILE` takes all of it"
    )


def find_newest_intact(paths: Paths, now: int) -> Backup | None:
    """The last backup that is whole; None if there is none. What was set aside is none."""
    for one in _sort_newest_first(list_backups(backup_dir(paths), paths.vault), now):
        with contextlib.suppress(MemdError):
            store_backup.verify_vault(one.path)
            return one
    return None


def _replace_vault(
    paths: Paths, folder: str, partial: str, now: int, *, is_whole: bool
) -> str | None:
    """Set the vault aside and put another in its place; where it is now."""
    aside = _set_vault_aside(paths, folder, now, is_whole=is_whole)
    try:
        Path(partial).replace(paths.database)
    except BaseException:
        _undo_set_aside(paths, aside)
        raise
    database.remove_snapshots(paths.database)
    return aside


def check_backup(paths: Paths, file: str) -> dict[str, int]:
    """Check a file that may be restored, without changing anything; table → rows.

    Raises BadRequest if it is not there or the vault itself, else a VaultError.
    """
    if not Path(file).is_file():
        raise BadRequest(f"there is no file {file}")
    if Path(paths.database).exists() and Path(file).samefile(paths.database):
        raise BadRequest(f"{file} is the vault itself")
    return store_backup.verify_vault(file)


def _read_forgotten(vault: str, damaged: str) -> Sequence[tuple[str, int]]:
    """What the present vault has forgotten; of a damaged one, what can be read in a copy."""
    if not Path(vault).is_file():
        return ()
    with contextlib.suppress(MemdError):
        return store_backup.read_forgotten(vault)
    try:
        _copy_with_wal(vault, damaged)
        return store_salvage.salvage_forgotten(damaged)
    finally:
        store_backup.remove_vault_file(damaged)


def _damaged_path(partial: str) -> str:
    return partial.removesuffix(_PARTIAL) + _DAMAGED


def _copy_with_wal(vault: str, damaged: str) -> None:
    store_backup.remove_vault_file(damaged)
    for suffix in ("", _WAL):
        if Path(vault + suffix).is_file():
            store_backup.copy_file(vault + suffix, damaged + suffix)


def _has_vault_header(vault: str) -> bool:
    """Whether a file begins as a vault does; else it is set aside as it is."""
    try:
        migrate.check_header(vault)
    except MemdError:
        return False
    return True


def _set_vault_aside(paths: Paths, folder: str, now: int, *, is_whole: bool) -> str | None:
    """Give the present vault a second name beside the backups, and empty its log; that name."""
    if not Path(paths.database).exists():
        store_backup.remove_vault_file(paths.database)
        return None
    # A damaged vault cannot be folded; then its log goes aside with it.
    if is_whole:
        with contextlib.suppress(VaultError):
            store_backup.fold_wal(paths.database)
    aside = _name_uniquely(
        paths.database, folder, f"{paths.vault}-{_ASIDE}-{_format_date(now)}", is_second=True
    )
    for suffix in (_WAL, "-shm"):
        if Path(paths.database + suffix).exists():
            Path(paths.database + suffix).rename(aside + suffix)
    return aside


def _undo_set_aside(paths: Paths, aside: str | None) -> None:
    """The vault is still in its place: its log comes back, and its second name goes."""
    if aside is None:
        return
    for suffix in (_WAL, "-shm"):
        if Path(aside + suffix).exists():
            Path(aside + suffix).rename(paths.database + suffix)
    if Path(paths.database).exists():
        Path(aside).unlink(missing_ok=True)


def _name_uniquely(path: str, folder: str, stem: str, *, is_second: bool = False) -> str:
    """Give a file a name that no file has; the old one goes unless it is to be a second one."""
    taken = [path.name for path in Path(folder).glob(f"{glob.escape(stem)}*{_SUFFIX}")]
    # After the last one, for what is made later must not sort before it where that one was pruned.
    for n in range(1 + max(map(_parse_number, taken), default=0), 10_000):
        target = Path(folder, f"{stem}{f'-{n}' if n > 1 else ''}{_SUFFIX}")
        if target.exists() or not _link_or_copy(path, target):
            continue
        if not is_second:
            Path(path).unlink()
        _flush_directory(folder)
        return str(target)
    raise BadRequest(f"{folder} has too many files called {stem}")


def _parse_number(name: str) -> int:
    """Which of its second a file is, from its name."""
    last = name.removesuffix(_SUFFIX).rpartition("-")[2]
    return int(last) if last.isascii() and last.isdigit() else 1


def _link_or_copy(path: str, target: Path) -> bool:
    """Give a file a second name; False if there is such a file by now."""
    try:
        # Unlike a rename, a link never replaces what is there.
        target.hardlink_to(path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        store_backup.copy_file(path, str(target))
    return True


def _partial_path(folder: str, vault: str) -> str:
    path = str(Path(folder, f"{vault}.{os.getpid()}{_PARTIAL}"))
    store_backup.remove_vault_file(path)
    return path


def _remove_stale_partials(folder: str, vault: str) -> None:
    """Take away what backups that were killed have left behind."""
    pattern = re.compile(
        rf"{re.escape(vault)}\.(\d+)({re.escape(_PARTIAL)}|{re.escape(_DAMAGED)})(-journal|-wal|-shm)?"
    )
    for entry in os.scandir(folder):
        match = pattern.fullmatch(entry.name)
        if match and not is_process_alive(int(match[1])):
            Path(entry.path).unlink(missing_ok=True)


def _backup_name_pattern(vault: str) -> re.Pattern[str]:
    """The names of a vault's backups, and of no vault whose name begins the same."""
    return re.compile(
        rf"{re.escape(vault)}-(?P<aside>{_ASIDE}-)?(?P<date>\d{{8}}T\d{{6}}Z)"
        rf"(-(?P<number>\d{{1,4}}))?{re.escape(_SUFFIX)}"
    )


def _format_date(now: int) -> str:
    return dt.datetime.fromtimestamp(now / 1000, tz=dt.UTC).strftime(_DATE)


def _flush_directory(directory: str) -> None:
    """Have the names of a directory on the disk, too."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
