"""The stored vaults of earlier versions: laid where a daemon looks, made larger, looked at as a crash left them.

Not here: daemons.
"""

import contextlib
import functools
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from memd.paths import Paths, private_dir
from memd.store import database
from memd.store.database import Database

VAULTS = Path(__file__).parents[2] / "data" / "vaults"
NEWEST = len(database.migrations())
Grown = tuple[int, int]
"""Turns, memories."""


def lay(paths: Paths, version: int, grown: Grown = (0, 0)) -> None:
    """Put the stored vault of a version where the daemon looks, with this many more turns and memories."""
    private_dir(paths.data_dir)
    for suffix in ("", "-wal", "-shm"):
        Path(paths.database + suffix).unlink(missing_ok=True)
    Path(paths.database).write_bytes(stored(version, grown))


@functools.cache
def stored(version: int, grown: Grown) -> bytes:
    """The stored vault of a version, made larger."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stored.db")
        shutil.copy(VAULTS / f"version-{version}.vault", path)
        connection = apsw.Connection(str(path))
        with connection:
            _grow(connection, *grown)
        connection.close()
        return path.read_bytes()


def _grow(connection: apsw.Connection, turns: int, memories: int) -> None:
    # They were made without an index of what memories name; no daemon has left one without.
    connection.execute("INSERT OR REPLACE INTO changes (summary_id) SELECT id FROM summaries")
    ((session, project),) = connection.execute("SELECT id, project_id FROM sessions").fetchall()
    said = "Grown {0} asks where worker {0} waits, at some length. " * 8
    connection.executemany(
        "INSERT INTO events (key, session_id, kind, name, at, source, turn, payload, distilled)"
        " VALUES (?, ?, 'prompt', 'UserPromptSubmit', 1, 'live', ?, ?, 1)",
        [
            (f"grown-{n}", session, f"g{n}", json.dumps({"prompt": said.format(n)}))
            for n in range(turns)
        ],
    )
    connection.executemany(
        "INSERT INTO summaries (uid, project_id, session_id, kind, tier, source, title, body, at, created_at,"
        " updated_at, rule) VALUES (?, ?, ?, 'note', 'captured', 'user', ?, ?, 1, 1, 1, 'turn')",
        [
            (f"grown-{n}", project, session, f"Grown memory {n}", said.format(n))
            for n in range(memories)
        ],
    )
    connection.execute(
        "UPDATE receipts SET count = count + ? WHERE outcome IN ('received', 'stored')", (turns,)
    )


@contextlib.contextmanager
def copied(vault: str) -> Iterator[apsw.Connection]:
    """A copy of a vault and its log, as a crash left them; the files themselves are not opened."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "copy.db"))
        for suffix in ("", "-wal"):
            if Path(vault + suffix).exists():
                shutil.copy(vault + suffix, path + suffix)
        connection = apsw.Connection(path)
        try:
            yield connection
        finally:
            connection.close()


def version_of(vault: str) -> int:
    """Which version a vault is of, what stands in its log included."""
    with copied(vault) as connection:
        return int(connection.pragma("user_version"))


def missing(vault: str, grown: Grown) -> list[str]:
    """What an upgrade that was cut short has lost or damaged."""
    with copied(vault) as connection:
        verdict = connection.execute("PRAGMA integrity_check").get
        wrong = [] if verdict == "ok" else [f"a vault killed at its upgrade is damaged: {verdict}"]
        turns = connection.execute("SELECT count(*) FROM events WHERE key LIKE 'grown-%'").get
        memories = connection.execute("SELECT count(*) FROM summaries WHERE uid LIKE 'grown-%'").get
        if (turns, memories) != grown:
            wrong.append(
                f"an upgrade that was killed left {turns} turns, {memories} memories of {grown}"
            )
    return wrong


def upgrade_s(version: int, grown: Grown) -> float:
    """How long such an upgrade takes here without a kill."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stored.db")
        path.write_bytes(stored(version, grown))
        began = time.perf_counter()
        Database(str(path), 1).close()
        return time.perf_counter() - began
