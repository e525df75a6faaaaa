"""Backups as files: their names and rotation, and how one is put back in the vault's place.

A file gets its name only once it is complete; what a killed backup left behind is removed by the next
one. A vault that is replaced is set aside, never overwritten.
"""

import contextlib
import datetime as dt
import errno
import glob
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memd.capture.redact import RULES_VERSION, redact, redact_value
from memd.consolidate import scrub
from memd.consolidate.scrub import make_redaction_rule
from memd.errors import BadRequest, MemdError, VaultError
from memd.paths import Paths, flush, private_dir
from memd.store import backup as store_backup
from memd.store import database
from memd.store import integrity as store_salvage
from memd.store.backup import Progress
from memd.store.import_rows import is_process_alive, list_stale_staging
from memd.time_expressions import parse_moment

_SUFFIX = ".memd"
_PARTIAL = ".partial"
_DAMAGED = ".damaged"
_ASIDE = "before-restore"
_WAL_SUFFIXES = ("-wal", "-shm")
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EMLINK})
"""What linking a file raises on a file system without hard links, such as FAT."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A file that holds a whole vault."""

    path: str
    at: int
    """UTC milliseconds, from its name."""
    size: int
    is_aside: bool
    """Whether a restore has set this vault aside: such a file is never pruned."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """Result of a backup."""

    backup: Backup
    rows: dict[str, int]
    pruned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Result of a restore."""

    aside: str | None
    """The path of the vault that was replaced; None if there was none."""
    erased: int
    """Memories of the backup that were forgotten since, and stay forgotten."""
    rows: dict[str, int]
    rewritten: int = 0
    """Rows of the backup in which a text was scrubbed since, and stays scrubbed."""


@dataclass(frozen=True, slots=True)
class SalvageResult:
    """Result of a salvage; `kept` and `lost` are table → rows."""

    aside: str | None
    kept: dict[str, int]
    lost: dict[str, int]


def backup_dir(paths: Paths) -> str:
    """Return the default directory of backups."""
    return str(Path(paths.data_dir, "backups"))


def list_leftovers(paths: Paths) -> list[str]:
    """List the files that killed backups, restores and imports of this vault have left."""
    folders = {backup_dir(paths), *(str(Path(file).parent) for file in _read_copies(paths))}
    stale = [path for folder in sorted(folders) for path in _list_stale(folder, paths.vault)]
    exports = [path for file in _read_copies(paths) for path in _list_stale_exports(file)]
    return [*stale, *exports, *list_stale_staging(paths.database)]


def remove_leftovers(paths: Paths) -> list[str]:
    """Remove what killed backups, restores and imports of this vault have left; what was removed."""
    found = list_leftovers(paths)
    for path in found:
        Path(path).unlink(missing_ok=True)
    return found


def record_copy(paths: Paths, file: str, now: int) -> None:
    """Note where a copy of the vault is written, so that `memd forget` can name it. Never raises OSError."""
    line = json.dumps({"path": str(Path(file).absolute()), "at": now}) + "\n"
    with contextlib.suppress(OSError):
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(_copies_file(paths), flags, 0o600)
        with os.fdopen(handle, "ab") as lines:
            lines.write(line.encode("utf-8", "surrogateescape"))


def list_copies(paths: Paths) -> dict[str, int]:
    """The exports, also those to a folder, and backups elsewhere that are still there: path → when they were begun."""
    return {file: at for file, at in _read_copies(paths).items() if Path(file).exists()}


def _read_copies(paths: Paths) -> dict[str, int]:
    found = {}
    with contextlib.suppress(OSError):
        for line in Path(_copies_file(paths)).read_text("utf-8", "surrogateescape").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                found[str(entry["path"])] = int(entry["at"])
    return found


def _list_stale_exports(file: str) -> list[str]:
    """List the beginnings of an export that was killed before the file got its name."""
    return _list_abandoned(Path(file).parent, Path(file).name, re.escape(_PARTIAL))


def _copies_file(paths: Paths) -> str:
    return f"{paths.database}.copies"


def list_backups(directory: str, vault: str) -> list[Backup]:
    """List the backups of a vault in a directory, newest first."""
    # A vault whose name begins with that of another one has its own backups only.
    pattern = re.compile(
        rf"{re.escape(vault)}-(?P<aside>{_ASIDE}-)?(?P<date>\d{{8}}T\d{{6}}Z)"
        rf"(-(?P<number>\d{{1,4}}))?{re.escape(_SUFFIX)}"
    )
    found = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(directory):
            match = pattern.fullmatch(entry.name)
            if match and entry.is_file():
                at = parse_moment(match["date"])
                one = Backup(entry.path, at, entry.stat().st_size, bool(match["aside"]))
                found.append((at, int(match["number"] or 1), one.path, one))
    return [one for *_, one in sorted(found, reverse=True)]


def find_newest_intact(paths: Paths, now: int) -> Backup | None:
    """Return the newest backup that is intact, or None. A vault that was set aside is no backup."""
    for one in _sort_newest_first(list_backups(backup_dir(paths), paths.vault), now):
        with contextlib.suppress(MemdError):
            store_backup.verify_vault(one.path)
            return one
    return None


def check_backup(paths: Paths, file: str) -> dict[str, int]:
    """Verify a file that is to be restored, without changing anything; return table → rows.

    Raises BadRequest if it does not exist or is the vault itself, else a VaultError.
    """
    if _is_vault(paths, file):
        raise BadRequest(f"{file} is the vault itself")
    return store_backup.verify_vault(file)


def require_damaged(paths: Paths, file: str | None) -> None:
    """Raise BadRequest if the file does not exist or is intact, so that there is nothing to salvage."""
    source = file or paths.database
    is_vault = _is_vault(paths, source)
    try:
        store_backup.verify_vault(source)
    except MemdError:
        return
    if is_vault:
        raise BadRequest("the vault is intact; there is nothing to salvage")
    raise BadRequest(
        f"{source} is intact; there is nothing to salvage, `memd restore FILE` takes all of it"
    )


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
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103  # an existing one keeps its mode
    if directory is not None:
        # Before it is written: a killed backup leaves a part of it.
        record_copy(paths, str(Path(folder, f"{paths.vault}-{_format_date(now)}{_SUFFIX}")), now)
    with _partial_file(folder, paths.vault) as partial:
        rows = store_backup.copy_vault(paths.database, partial, progress)
        path = _link_uniquely(partial, folder, f"{paths.vault}-{_format_date(now)}")
    if directory is not None:
        record_copy(paths, path, now)
    found = list_backups(folder, paths.vault)
    made = next(one for one in found if one.path == path)
    # The one just made is kept even if an older one carries a later date.
    kept_first = sorted(_sort_newest_first(found, now), key=lambda one: one != made)
    pruned = tuple(one.path for one in kept_first[keep:])
    for old in pruned:
        Path(old).unlink(missing_ok=True)
    return BackupResult(made, rows, pruned)


def restore(paths: Paths, file: str, now: int, progress: Progress) -> RestoreResult:
    """Put a backup in the vault's place. The caller holds the vault's lock.

    The file is copied and the copy verified before anything changes. The last step is one rename; if it
    fails, the old vault is put back. Raises BadRequest, OSError or a VaultError.
    """
    folder = private_dir(backup_dir(paths))
    with _partial_file(folder, paths.vault) as partial:
        rows = store_backup.copy_vault(file, partial, progress)
        forgotten = _read_forgotten(paths.database, _damaged_path(partial))
        erased = store_backup.upgrade_copy(partial, forgotten, now)
        rewritten = _scrub_again(partial, paths.database, now)
        aside = _replace_vault(paths, partial, now, fold_wal=_has_vault_header(paths.database))
    return RestoreResult(aside, erased, rows, rewritten)


def salvage(paths: Paths, file: str | None, now: int) -> SalvageResult:
    """Put what can be read of a damaged file, or of the vault itself, in the vault's place.

    The caller holds the vault's lock. The damaged file is only copied; a vault is set aside unchanged.
    Raises BadRequest, OSError or a VaultError; then nothing has changed.
    """
    folder = private_dir(backup_dir(paths))
    source = file or paths.database
    _require_file(source)
    with _partial_file(folder, paths.vault) as partial:
        damaged = _damaged_path(partial)
        _copy_with_wal(source, damaged)
        found = store_salvage.salvage(damaged, partial, now)
        if file is not None and not _is_vault(paths, file):
            forgotten = _read_forgotten(paths.database, damaged)
            store_backup.upgrade_copy(partial, forgotten, now)
            _scrub_again(partial, paths.database, now)
        store_backup.verify_vault(partial)
        aside = _replace_vault(paths, partial, now, fold_wal=False)
    return SalvageResult(aside, found.copied, found.lost)


def _require_file(path: str) -> None:
    if not Path(path).is_file():
        raise BadRequest(f"there is no file {path}")


def _is_vault(paths: Paths, file: str) -> bool:
    """Return whether a file is the vault itself; BadRequest if it does not exist."""
    _require_file(file)
    return Path(paths.database).exists() and Path(file).samefile(paths.database)


def _sort_newest_first(found: Sequence[Backup], now: int) -> list[Backup]:
    """Sort the backups; one with a date after `now` is older than it says: the clock was set back."""
    return sorted((one for one in found if not one.is_aside), key=lambda one: one.at > now)


@contextlib.contextmanager
def _partial_file(folder: str, vault: str) -> Iterator[str]:
    """Provide the path of a file in the making; remove what is left of it after the block."""
    for path in _list_stale(folder, vault):
        Path(path).unlink(missing_ok=True)
    partial = str(Path(folder, f"{vault}.{os.getpid()}{_PARTIAL}"))
    store_backup.remove_vault_file(partial)
    try:
        yield partial
    finally:
        store_backup.remove_vault_file(partial)
        store_backup.remove_vault_file(_damaged_path(partial))


def _list_stale(folder: str, vault: str) -> list[str]:
    """List the vaults in the making of processes that have ended."""
    ending = f"({re.escape(_PARTIAL)}|{re.escape(_DAMAGED)})(-journal|-wal|-shm)?"
    return sorted(_list_abandoned(folder, vault, ending))


def _list_abandoned(folder: str | Path, name: str, ending: str) -> list[str]:
    """List a folder's files with a name, the number of a process that has ended, and one of these endings."""
    pattern = re.compile(rf"{re.escape(name)}\.(\d+){ending}")
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            match = pattern.fullmatch(entry.name)
            if match and not is_process_alive(int(match[1])):
                found.append(entry.path)
    return found


def _damaged_path(partial: str) -> str:
    return partial.removesuffix(_PARTIAL) + _DAMAGED


def _copy_with_wal(vault: str, damaged: str) -> None:
    store_backup.remove_vault_file(damaged)
    for suffix in ("", "-wal"):
        if Path(vault + suffix).is_file():
            store_backup.copy_file(vault + suffix, damaged + suffix)


def _read_forgotten(vault: str, damaged: str) -> Sequence[tuple[str, int]]:
    """Return what the present vault has forgotten; of a damaged one, what can be read in a copy."""
    if not Path(vault).is_file():
        return ()
    with contextlib.suppress(MemdError):
        return store_backup.read_forgotten(vault)
    _copy_with_wal(vault, damaged)
    return store_salvage.salvage_forgotten(damaged)


def _scrub_again(copy: str, vault: str, now: int) -> int:
    """Scrub a copy as the present vault was scrubbed; how many rows. Of a damaged vault nothing is known."""
    if not _has_vault_header(vault):
        return 0
    try:
        changed = store_backup.read_changed(copy, vault)
        has_redacted = store_backup.has_scrubbed_secrets(vault)
    except MemdError:
        return 0
    rule = make_redaction_rule(redact, redact_value, RULES_VERSION) if has_redacted else None
    with database.open_database(copy, now) as opened:
        rewritten = scrub.scrub_copy(opened, changed, rule)
        if rule is not None:
            opened.write_now(lambda tx: store_backup.note_scrubbed_secrets(tx, RULES_VERSION))
    if rewritten:
        store_backup.purge_copy(copy, now)
    return rewritten


def _has_vault_header(vault: str) -> bool:
    try:
        database.check_header(vault)
    except MemdError:
        return False
    return True


def _replace_vault(paths: Paths, partial: str, now: int, *, fold_wal: bool) -> str | None:
    """Set the vault aside and put another in its place; return the path where it is now."""
    aside = _set_vault_aside(paths, now, fold_wal=fold_wal)
    try:
        Path(partial).replace(paths.database)
    except BaseException:
        if aside is not None:
            _rename_wal(aside, paths.database)
            if Path(paths.database).exists():
                Path(aside).unlink(missing_ok=True)
        raise
    database.remove_snapshots(paths.database)
    flush(paths.data_dir)
    return aside


def _set_vault_aside(paths: Paths, now: int, *, fold_wal: bool) -> str | None:
    """Link the present vault beside the backups; return that path, or None without a vault.

    The write-ahead log of a vault that cannot be folded goes aside with it.
    """
    if not Path(paths.database).exists():
        store_backup.remove_vault_file(paths.database)
        return None
    if fold_wal:
        with contextlib.suppress(VaultError):
            store_backup.fold_wal(paths.database)
    stem = f"{paths.vault}-{_ASIDE}-{_format_date(now)}"
    aside = _link_uniquely(paths.database, backup_dir(paths), stem)
    _rename_wal(paths.database, aside)
    return aside


def _rename_wal(vault: str, target: str) -> None:
    for suffix in _WAL_SUFFIXES:
        if Path(vault + suffix).exists():
            Path(vault + suffix).rename(target + suffix)


def _link_uniquely(path: str, folder: str, stem: str) -> str:
    """Give a file a second name, which no file has yet; return that path."""
    names = [found.name for found in Path(folder).glob(f"{glob.escape(stem)}*{_SUFFIX}")]
    # The number is above all others, because a later file must not sort before an earlier one.
    for number in range(1 + max(map(_parse_number, names), default=0), 10_000):
        target = Path(folder, f"{stem}{f'-{number}' if number > 1 else ''}{_SUFFIX}")
        if not target.exists() and _link_or_copy(path, target):
            flush(folder)
            return str(target)
    raise BadRequest(f"{folder} has too many files called {stem}")


def _parse_number(name: str) -> int:
    """Return the number at the end of a name; 1 if there is none."""
    last = name.removesuffix(_SUFFIX).rpartition("-")[2]
    return int(last) if last.isascii() and last.isdigit() else 1


def _link_or_copy(path: str, target: Path) -> bool:
    """Link a file; return False if the target exists."""
    try:
        # Unlike a rename, a link never replaces a file.
        target.hardlink_to(path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        store_backup.copy_file(path, str(target))
    return True


def _format_date(now: int) -> str:
    return dt.datetime.fromtimestamp(now / 1000, tz=dt.UTC).strftime("%Y%m%dT%H%M%SZ")
