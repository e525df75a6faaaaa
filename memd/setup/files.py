"""Changes to files that are not memd's own: shown first, then made in one step, with a way back.

A change is a value that says what was read and what shall stand there. Made, it leaves a dated copy
of the old file beside it and replaces the whole file at once, through a link if there is one (people
keep their settings in a repository and link to them). It is refused when the file is no longer what
was read, or is read-only. Not here: what is written.
"""

import contextlib
import difflib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memd.errors import Broken

_PRIVATE = 0o600
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file as it was read, and as it shall be. None: no such file."""

    path: Path
    before: bytes | None
    after: bytes | None
    is_memds: bool = False
    """Whether all of `before` is what memd wrote; then no copy of it is left."""

    @property
    def is_needed(self) -> bool:
        """Whether anything would be different."""
        return self.before != self.after


def read(path: Path) -> bytes | None:
    """Return what stands in a file, None if there is none. Raises Broken if it cannot be read."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # To read from a pipe may never end.
            raise Broken(f"{path} is no ordinary file; nothing was changed")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Broken(
            f"{path} cannot be read ({error.strerror}); nothing was changed"
        ) from error


def diff(change: FileChange) -> str:
    """Draw a change as a unified diff; empty if nothing changes."""
    before, after = (_lines(content) for content in (change.before, change.after))
    drawn = difflib.unified_diff(
        before,
        after,
        "/dev/null" if change.before is None else str(change.path),
        "/dev/null" if change.after is None else str(change.path),
    )
    return "".join(line if line.endswith("\n") else f"{line}{_NO_NEWLINE}" for line in drawn)


def check(change: FileChange) -> None:
    """See that a change can be made. Raises Broken if the file is not what was read, or read-only."""
    if not change.is_needed:
        return
    if read(change.path) != change.before:
        raise Broken(f"{change.path} has just been changed by somebody else; run this again")
    if change.before is not None and not change.path.stat().st_mode & stat.S_IWUSR:
        raise Broken(f"{change.path} is read-only; nothing was changed. Make it writable first")


def apply(change: FileChange, now: int) -> Path | None:
    """Make a change, once; return the copy of the old file if one was left.

    `now` is UTC milliseconds. Raises Broken, with nothing changed: the file is no longer what was
    read, is read-only, or its directory cannot be written.
    """
    if not change.is_needed:
        return None
    check(change)
    try:
        backup = None
        if change.before is not None and not change.is_memds:
            backup = _back_up(change.path, change.before, now)
        if change.after is None:
            change.path.unlink()  # a link goes, what it points to stays
        else:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(change.path.resolve(), change.after)
    except OSError as error:
        raise Broken(f"{change.path} cannot be written ({error.strerror or error})") from error
    return backup


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)


def _back_up(path: Path, content: bytes, now: int) -> Path:
    """Leave the old file beside the path as it was named, not in what a link points into."""
    at = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    mode = stat.S_IMODE(path.stat().st_mode)
    for name in _names(f"{path.name}.memd-{at}"):
        with contextlib.suppress(FileExistsError):
            copy = path.with_name(name)
            with os.fdopen(
                os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb"
            ) as file:
                file.write(content)
            return copy
    raise AssertionError


def _names(stem: str) -> Iterator[str]:
    yield f"{stem}.bak"
    number = 2
    while True:
        yield f"{stem}-{number}.bak"
        number += 1


def _replace(path: Path, content: bytes) -> None:
    """Put the content there whole or not at all. The mode stays; a new file is private."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _PRIVATE
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(number, mode)
            os.fsync(number)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink()
        raise
