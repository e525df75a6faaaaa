"""What a team shares: which projects were joined, what stands in each log on the server, teammates' memories.

Every function works in the caller's transaction.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apsw import Connection

from memd.models import Draft, Kind
from memd.store import fulltext, ledger, summaries
from memd.store.filter import NOT_SUPERSEDED, marks
from memd.store.queries import fetch_ids, fetch_int, has_rows

_UNDERSTOOD_NOTE = "team understood"
TEAM_SOURCE = "team"
"""The source and the rule of teammates' memories."""


@dataclass(frozen=True, slots=True)
class JoinedProject:
    """A project of this vault that is shared with a team."""

    name: str
    """On the server."""
    key: str
    """Of the project here."""
    has_instructions: bool
    """Whether memories of kind instruction are shared, too."""
    joined_at: int


@dataclass(frozen=True, slots=True)
class LogState:
    """How far a log was read or written, and the sum of the marks of its rows."""

    id: int
    project: str
    author: str
    device: str
    label: str
    seq: int
    mark: int


@dataclass(frozen=True, slots=True)
class RowState:
    """One row of a log. `state`: shared, withdrawn, forgotten, refused, or newer (than this memd understands)."""

    seq: int
    mark: int
    state: str


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """A memory as a team sees it. Times are UTC milliseconds."""

    kind: Kind
    title: str
    body: str
    topic_key: str | None
    tags: tuple[str, ...]
    files: tuple[str, ...]
    at: int
    expires_at: int | None
    confidence: float
    quality: float


# ── Projects ───────────────────────────────────────────────────────────────────────────────────


def joined_projects(tx: Connection) -> list[JoinedProject]:
    """Every joined project, by name."""
    rows = tx.execute(
        "SELECT name, project, instructions, joined_at FROM team_projects ORDER BY name"
    )
    return [JoinedProject(name, key, bool(flag), at) for name, key, flag, at in rows]


def put_joined_project(tx: Connection, joined: JoinedProject) -> None:
    """Join a project, or change what is shared of it."""
    tx.execute(
        "INSERT OR REPLACE INTO team_projects VALUES (?, ?, ?, ?)",
        (joined.name, joined.key, joined.has_instructions, joined.joined_at),
    )


def drop_joined_project(tx: Connection, name: str) -> None:
    """Forget that a project was joined, and what stood in its logs."""
    tx.execute("DELETE FROM team_projects WHERE name = ?", (name,))
    tx.execute("DELETE FROM team_logs WHERE project = ?", (name,))


# ── Logs ───────────────────────────────────────────────────────────────────────────────────────


def read_logs(tx: Connection, project: str | None = None) -> list[LogState]:
    """Every log that is known, of one project or of all."""
    rows = tx.execute(
        "SELECT id, project, author, device, label, seq, mark FROM team_logs"
        " WHERE ?1 IS NULL OR project = ?1 ORDER BY project, author, device",
        (project,),
    )
    return [_to_log(row) for row in rows]


def read_log(tx: Connection, project: str, author: str, device: str, label: str = "") -> LogState:
    """One log; it begins empty if it is not known."""
    tx.execute(
        "INSERT OR IGNORE INTO team_logs (project, author, device, label, seq, mark)"
        " VALUES (?, ?, ?, ?, 0, '0')",
        (project, author, device, label),
    )
    row = tx.execute(
        "SELECT id, project, author, device, label, seq, mark FROM team_logs"
        " WHERE (project, author, device) = (?, ?, ?)",
        (project, author, device),
    ).fetchone()
    assert row is not None
    return _to_log(row)


def _to_log(row: tuple[Any, ...]) -> LogState:
    values = [*row[:-1], int(row[-1])]
    return LogState(*values)


def move_log(tx: Connection, log_id: int, label: str, seq: int, mark: int) -> None:
    """Note how far a log was read or written."""
    tx.execute(
        "UPDATE team_logs SET label = ?, seq = ?, mark = ? WHERE id = ?",
        (label, seq, str(mark), log_id),
    )


def drop_log(tx: Connection, log_id: int) -> None:
    """Forget a log and its rows."""
    tx.execute("DELETE FROM team_logs WHERE id = ?", (log_id,))


def read_rows(
    tx: Connection, log_id: int, names: Sequence[str] | None = None
) -> dict[str, RowState]:
    """Name → row of a log; of all of them, or of these names."""
    condition = "" if names is None else f" AND name IN ({marks(names)})"
    rows = tx.execute(
        f"SELECT name, seq, mark, state FROM team_rows WHERE log_id = ?{condition}",
        (log_id, *(names or ())),
    )
    return {name: RowState(seq, mark, state) for name, seq, mark, state in rows}


def understood(tx: Connection) -> str:
    """What the memd understood that read all logs last; "" for one of former times."""
    return ledger.read_note(tx, _UNDERSTOOD_NOTE) or ""


def note_understood(tx: Connection, what: str) -> None:
    """Note what the memd understands that has read all logs."""
    if understood(tx) != what:
        ledger.write_note(tx, _UNDERSTOOD_NOTE, what)


def names_left(tx: Connection, log_id: int) -> list[str]:
    """The rows of a log of which no memory was made."""
    rows = tx.execute(
        "SELECT name FROM team_rows WHERE log_id = ? AND state IN ('refused', 'newer') ORDER BY seq",
        (log_id,),
    )
    return [str(name) for (name,) in rows]


def count_newer_rows(tx: Connection) -> int:
    """How many rows of all logs only a newer memd understands."""
    return fetch_int(tx, "SELECT count(*) FROM team_rows WHERE state = 'newer'") or 0


def put_rows(tx: Connection, log_id: int, rows: Mapping[str, RowState]) -> None:
    """Write these rows of a log instead of those of their names."""
    tx.executemany(
        "INSERT OR REPLACE INTO team_rows VALUES (?, ?, ?, ?, ?)",
        [(log_id, name, row.seq, row.mark, row.state) for name, row in rows.items()],
    )


def drop_rows(tx: Connection, log_id: int, names: Iterable[str]) -> None:
    """Delete these rows of a log."""
    tx.executemany(
        "DELETE FROM team_rows WHERE log_id = ? AND name = ?", [(log_id, name) for name in names]
    )


def is_in_other_log(tx: Connection, log: LogState, name: str) -> bool:
    """Whether another device of the same author shares a memory of this name, too."""
    return has_rows(
        tx,
        "team_rows r JOIN team_logs l ON l.id = r.log_id WHERE r.name = ? AND r.state = 'shared'"
        " AND l.project = ? AND l.author = ? AND l.id <> ?",
        (name, log.project, log.author, log.id),
    )


# ── What I share ───────────────────────────────────────────────────────────────────────────────

_SHARED_FIELDS = (
    "kind, title, body, topic_key, tags, files, at, expires_at, round(confidence, 2),"
    " round(quality, 2)"
)
_IS_SHARED = (
    " FROM summaries s WHERE s.project_id = ? AND s.kind IN ({kinds}) AND s.author = ''"
    f" AND s.archived_at IS NULL AND {NOT_SUPERSEDED} AND (s.expires_at IS NULL OR s.expires_at > ?)"
    " AND NOT EXISTS (SELECT 1 FROM json_each(s.tags) WHERE value = 'private')"
)


def shared_memories(
    tx: Connection, project_id: int, kinds: Sequence[Kind], now: int
) -> Iterator[tuple[str, SharedMemory]]:
    """(uid, memory) of everything of this vault's own in a project that a team may see, oldest first."""
    wanted = [kind.value for kind in kinds]
    for uid, kind, title, body, topic_key, tags, files, *rest in tx.execute(
        f"SELECT uid, {_SHARED_FIELDS}{_IS_SHARED.format(kinds=marks(wanted))} ORDER BY s.id",
        (project_id, *wanted, now),
    ):
        lists = tuple(json.loads(tags)), tuple(json.loads(files))
        yield uid, SharedMemory(Kind(kind), title, body, topic_key, *lists, *rest)


def count_own(tx: Connection, project_id: int, now: int) -> dict[str, int]:
    """Kind → how many memories of a project a team could see if the kind were shared."""
    wanted = [kind.value for kind in Kind]
    rows = tx.execute(
        f"SELECT kind, count(*){_IS_SHARED.format(kinds=marks(wanted))} GROUP BY kind",
        (project_id, *wanted, now),
    )
    return {str(kind): int(count) for kind, count in rows}


def last_change(tx: Connection) -> int:
    """A number that grows whenever any memory changes."""
    return fetch_int(tx, "SELECT seq FROM sqlite_sequence WHERE name = 'changes'") or 0


# ── What teammates share ───────────────────────────────────────────────────────────────────────


def put_team_memory(
    tx: Connection, uid: str, author: str, project_id: int, draft: Draft, now: int
) -> int:
    """Write a teammate's memory; its id, or 0 if it was forgotten here."""
    owner = summaries.SummaryOwner(project_id, None, TEAM_SOURCE)
    number, _ = summaries.put_summary(tx, uid, draft, owner, now)
    tx.execute(
        "UPDATE summaries SET author = ?, topic_key = ?, expires_at = ?, at = ? WHERE id = ?",
        (author, draft.topic_key, draft.expires_at, draft.at, number),
    )
    return number


def delete_team_memory(tx: Connection, uid: str) -> bool:
    """Delete a teammate's memory that is shared no more; whether it was here."""
    number = fetch_int(tx, "SELECT id FROM summaries WHERE uid = ? AND author <> ''", (uid,))
    if number is None:
        return False
    fulltext.remove_passages(tx, number)
    summaries.delete_summary(tx, number)
    return True


def note_forgotten(tx: Connection, uid: str, now: int) -> None:
    """Note that a teammate has forgotten a memory, so that it is erased here."""
    ledger.record_forgotten(tx, uid, now)


def forgotten_by_teammates(tx: Connection) -> list[int]:
    """The memories that their authors have forgotten and that are still to be erased here."""
    return fetch_ids(
        tx,
        "SELECT s.id FROM summaries s JOIN forgotten f ON f.key = s.uid WHERE s.author <> ''"
        " ORDER BY s.id",
    )


def count_team_memories(tx: Connection) -> dict[str, int]:
    """Author → how many of their memories are here."""
    rows = tx.execute(
        "SELECT author, count(*) FROM summaries WHERE author <> '' GROUP BY author ORDER BY author"
    )
    return {str(author): int(count) for author, count in rows}
