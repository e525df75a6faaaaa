"""An installation as a value: file changes and commands that can be shown before they are carried out."""

import contextlib
import difflib
import itertools
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memd.errors import Broken

_NEW_FILE_MODE = 0o600
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The content of one file before and after an installation. None: the file does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None
    is_generated: bool = False
    """Whether memd wrote all of `before`. Then no backup of it is made."""

    @property
    def is_needed(self) -> bool:
        """Whether the file would change."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """The commands to run, the files to change, and the notes to print."""

    changes: tuple[FileChange, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that run before the files change."""
    after: tuple[tuple[str, ...], ...] = ()
    """Commands that run after the files have changed."""
    notes: tuple[str, ...] = ()
    """What the user should know or do next, one line each."""
    is_unfinished: bool = False
    """Whether memd does not work until the user has done what the notes say."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to run and nothing to change."""
        return not (self.before or self.after or any(c.is_needed for c in self.changes))


def read_file(path: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist. Raises Broken if it cannot be read."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # Reading a pipe could block without end.
            raise Broken(f"{path} is not a regular file; nothing was changed")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Broken(f"cannot read {path} ({error.strerror}); nothing was changed") from error


def format_diff(change: FileChange) -> str:
    """Format a change as a unified diff; empty if nothing changes."""
    before, after = (
        (content or b"").decode("utf-8", "replace").splitlines(keepends=True)
        for content in (change.before, change.after)
    )
    lines = difflib.unified_diff(
        before,
        after,
        "/dev/null" if change.before is None else str(change.path),
        "/dev/null" if change.after is None else str(change.path),
    )
    return "".join(line if line.endswith("\n") else f"{line}{_NO_NEWLINE}" for line in lines)


def check_change(change: FileChange) -> None:
    """Raise Broken if the file has changed since it was read, or is read-only."""
    if not change.is_needed:
        return
    if read_file(change.path) != change.before:
        raise Broken(f"another program has just changed {change.path}; run this again")
    if change.before is not None and not change.path.stat().st_mode & stat.S_IWUSR:
        raise Broken(f"{change.path} is read-only; nothing was changed. Make it writable first")


def apply_change(change: FileChange, now: int) -> Path | None:
    """Change the file in one step; return the backup of the old content, if one was made.

    `now` is UTC milliseconds. Raises Broken, and changes nothing, if the file has changed since it
    was read, is read-only, or cannot be written.
    """
    if not change.is_needed:
        return None
    check_change(change)
    try:
        backup = None
        if change.before is not None and not change.is_generated:
            backup = _write_backup(change.path, change.before, now)
        if change.after is None:
            change.path.unlink()  # removes a link, not the file that it points to
        else:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            # A link stays: people link to settings that they keep in a repository.
            _replace_file(change.path.resolve(), change.after)
    except OSError as error:
        raise Broken(f"cannot write {change.path} ({error.strerror or error})") from error
    return backup


def _write_backup(path: Path, content: bytes, now: int) -> Path:
    """Write the old content beside `path`, also where `path` is a link to another directory."""
    at = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    mode = stat.S_IMODE(path.stat().st_mode)
    for number in itertools.count(1):
        suffix = f"-{number}" if number > 1 else ""
        backup = path.with_name(f"{path.name}.memd-{at}{suffix}.bak")
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            return backup
    raise AssertionError


def list_backups(path: Path) -> list[Path]:
    """Return the backups that installations have made of a file, the oldest first."""
    pattern = re.compile(rf"{re.escape(path.name)}\.memd-\d{{8}}-\d{{6}}(?:-\d+)?\.bak")
    try:
        return sorted(one for one in path.parent.iterdir() if pattern.fullmatch(one.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Broken(f"cannot list the backups of {path} ({error.strerror or error})") from error


def remove_backups(path: Path) -> list[Path]:
    """Remove the backups that installations have made of a file, and return them. Raises Broken if one stays."""
    found = list_backups(path)
    try:
        for one in found:
            one.unlink()
    except OSError as error:
        raise Broken(f"cannot remove a backup of {path} ({error.strerror or error})") from error
    return found


def _replace_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole. Its mode stays; only the user can read a new file."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _NEW_FILE_MODE
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink()
        raise
