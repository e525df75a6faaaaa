"""A vault as it stands at one moment, for as long as the block lasts, whoever writes meanwhile.

In the write-ahead log a reader's snapshot holds up no writer. Another process may do this while a
daemon serves. Not here: what is read from it (departures.py, copies.py).
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw

from memd.errors import BadRequest, VaultError
from memd.store import migrate
from memd.store.database import BUSY_TIMEOUT_MS, Connection, translated


@contextlib.contextmanager
def snapshot(path: str) -> Iterator[Connection]:
    """A connection in a read transaction. BadRequest if there is no vault; else a VaultError."""
    if not Path(path).is_file() or not Path(path).stat().st_size:
        raise BadRequest(f"there is no vault at {path} yet")
    migrate.inspect(path)
    with translated():
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.pragma("temp_store", 2)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            yield connection
        finally:
            connection.close()


def check_current(connection: Connection) -> None:
    """Raise VaultError unless the vault has the schema of this memd."""
    version = int(connection.pragma("user_version"))
    if version != len(migrate.migrations()):
        raise VaultError(
            f"the vault has schema {version}, this memd {len(migrate.migrations())};"
            " `memd restart` brings it up to date"
        )
