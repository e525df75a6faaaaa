"""A vault of its own beside the real one, in which a file is put together before anything of it counts.

It is thrown away afterwards, so it is written without a journal and without what keeps a vault's index
in step. Its name says which process makes it: what a killed one left behind is found by that. Not here:
the records (arrivals.py), or bringing them into the real vault (exchange/moving.py).
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw

from memd.errors import BadRequest
from memd.store import migrate
from memd.store.database import Connection, translated

_SUFFIX = ".staging"


@contextlib.contextmanager
def staging(vault: str, now: int) -> Iterator[tuple[Connection, str]]:
    """An empty vault beside this one, as (connection, name of its file); gone when the block ends.

    The block commits with `commit` before anybody else reads it.
    """
    path = f"{vault}.{os.getpid()}{_SUFFIX}"
    sweep(vault)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        with translated():
            connection = apsw.Connection(path)
            try:
                _prepare(connection, now)
                yield connection, Path(path).name
            finally:
                connection.close()
    finally:
        Path(path).unlink(missing_ok=True)


def _prepare(connection: Connection, now: int) -> None:
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", 0)
    connection.pragma("temp_store", 2)
    connection.pragma("foreign_keys", 1)
    migrate.migrate(connection, now)
    triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("BEGIN")


def commit(connection: Connection) -> None:
    """Let others read what was put in."""
    with translated():
        connection.execute("COMMIT")


def staged(vault: str, name: str) -> str:
    """The path of a staged vault beside this one. BadRequest if that is not what it is called."""
    path = Path(vault).parent / name
    if path.name != name or path.suffix != _SUFFIX or not _maker(vault, path):
        raise BadRequest("staged: not the name of a file that memd has staged for this vault")
    return str(path)


def sweep(vault: str) -> None:
    """Throw away what processes that are no more have left behind."""
    for path in Path(vault).parent.glob(f"{Path(vault).name}.*{_SUFFIX}*"):
        maker = _maker(vault, path)
        if maker and (maker == os.getpid() or not is_alive(maker)):
            path.unlink(missing_ok=True)


def _maker(vault: str, path: Path) -> int:
    """Whose it is; 0 if it is none."""
    stem = path.name.removeprefix(f"{Path(vault).name}.").partition(_SUFFIX)
    is_ours = path.name.startswith(f"{Path(vault).name}.") and bool(stem[1])
    return int(stem[0]) if is_ours and stem[0].isascii() and stem[0].isdigit() else 0


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's, and alive
    return True
