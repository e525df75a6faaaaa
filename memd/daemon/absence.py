"""What can be seen of memd while no daemon answers: who holds the vault, what waits, and why none can start."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memd.daemon import process
from memd.errors import ConfigError
from memd.paths import Paths

_FREE_BYTES_MIN = 65_536
"""Free bytes on the disk without which no daemon can start."""


def describe_absence(paths: Paths, reason: str) -> dict[str, Any]:
    """Return the fields of a status without a daemon; `reason` is why it could not be asked."""
    holder = process.find_lock_holder(paths.lock)
    if holder is not None:
        reason = (
            f"a daemon (pid {holder.pid}) holds the vault but does not answer; it may be starting"
        )
    elif obstacle := _find_config_error(paths) or _find_start_failure(paths):
        reason = obstacle
    spooled = _list_sizes(paths.spools)
    vault = sum(_file_size(Path(paths.database + suffix)) for suffix in ("", "-wal"))
    return {
        "running": False,
        "health": "not running",
        "reasons": [reason],
        "pid": holder.pid if holder else None,
        "socket": paths.socket,
        "log": paths.log,
        "vault": {"name": paths.vault, "path": paths.database, "bytes": vault},
        "spool": {"bytes": sum(spooled), "files": len(spooled)},
    }


def _find_config_error(paths: Paths) -> str | None:
    try:
        if not Path(paths.config_file).exists():
            return None
    except OSError as error:  # such as a name that is too long
        return f"no daemon can start: {error}"
    from memd import config  # noqa: PLC0415  # only if there is a file, because pydantic loads slowly

    try:
        config.load_config(paths.config_file)
    except ConfigError as error:
        return f"no daemon can start: {error.message}"
    return None


def _find_start_failure(paths: Paths) -> str | None:
    """Return why the last daemon did not start or the next one cannot."""
    last_error = process.read_start_failure(paths.log)
    if last_error is not None:
        return f"the last daemon could not start: {last_error}"
    with contextlib.suppress(OSError):
        disk = os.statvfs(Path(paths.data_dir))
        problem = f"no daemon can start: the disk of {paths.data_dir}"
        if disk.f_flag & os.ST_RDONLY:
            return f"{problem} is mounted read-only; make it writable"
        if disk.f_bavail * disk.f_frsize < _FREE_BYTES_MIN:
            return f"{problem} is full; free some space"
    return None


def _list_sizes(directories: Sequence[str]) -> list[int]:
    """List the sizes of all files that are not empty."""
    sizes: list[int] = []
    for directory in directories:
        with contextlib.suppress(OSError):
            sizes += [size for path in Path(directory).iterdir() if (size := _file_size(path))]
    return sizes


def _file_size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
