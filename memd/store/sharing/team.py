"""The team's tables: joined projects, the rows of each log on the server, teammates' memories.

Every function works in the caller's transaction.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

from apsw import Connection

from memd.models import Draft, Kind
from memd.store import erasure, ledger, summaries
from memd.store.filter import NOT_SUPERSEDED, marks
from memd.store.queries import count_rows, fetch_all, fetch_column, fetch_int, fetch_rows, has_rows
from memd.store.types import Fields

TEAM_SOURCE = "team"
"""The source and the rule of teammates' memories."""
PLACE = "team:"
"""With the name of a project: its place among those that this vault was synced with."""


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

    @property
    def place(self) -> str:
        """Return the name under which its cursors are kept."""
        return PLACE + self.name


@dataclass(frozen=True, slots=True)
class SaidRow:
    """The row of a log for one memory, without its words: its state and the version of its record.

    `state`: shared, withdrawn, forgotten, refused, or newer (than this memd understands).
    """

    log: str
    """Author and device."""
    name: str
    uid: str
    """Of the memory here."""
    seq: int
    mark: int
    state: str
    generation: int = 0
    rank: int = 0
    wall: int = 0
    counter: int = 0
    device: str = ""
    beside: str = ""
    """The uids of other values of its topic that its device lets stand."""

    @property
    def is_understood(self) -> bool:
        """Return whether the row has a version, so that this memd understands it."""
        return self.state in {"shared", "withdrawn", "forgotten"}

    @property
    def version(self) -> tuple[object, ...]:
        """Return a key by which two versions compare: first how often it was forgotten, then the record's rank and stamp."""
        is_forgotten = self.state == "forgotten"
        is_said = bool(self.wall) or is_forgotten
        rank = 0 if is_forgotten else self.rank
        return is_said, self.generation, is_forgotten, rank, self.wall, self.counter, self.device


@dataclass(frozen=True, slots=True)
class OwnMemory:
    """A memory of this vault's own, as a team may see it."""

    uid: str
    fields: Fields
    above: str
    """The uid of the vault's own that hides it, or ""."""


# ── Projects ───────────────────────────────────────────────────────────────────────────────────


def joined_projects(tx: Connection) -> list[JoinedProject]:
    """Every joined project, by name."""
    sql = "SELECT name, project, instructions, joined_at FROM team_projects ORDER BY name"
    return [JoinedProject(name, key, bool(flag), at) for name, key, flag, at in fetch_all(tx, sql)]


def put_joined_project(tx: Connection, joined: JoinedProject) -> None:
    """Join a project, or change what is shared of it."""
    sql = "INSERT OR REPLACE INTO team_projects VALUES (?, ?, ?, ?)"
    tx.execute(sql, (joined.name, joined.key, joined.has_instructions, joined.joined_at))


def drop_joined_project(tx: Connection, name: str) -> None:
    """Forget that a project was joined."""
    tx.execute("DELETE FROM team_projects WHERE name = ?", (name,))


# ── Logs ───────────────────────────────────────────────────────────────────────────────────────

_ROW = "log, name, uid, seq, mark, state, generation, rank, wall, counter, device, beside"
"""In the order of the fields of SaidRow."""


def list_logs(tx: Connection, place: str) -> list[str]:
    """Every log of a place of which rows are known."""
    sql = "SELECT DISTINCT log FROM team_said WHERE place = ? ORDER BY log"
    return fetch_column(tx, sql, (place,))


def read_rows_of(tx: Connection, uid: str) -> list[SaidRow]:
    """Return what each log says of a memory."""
    return fetch_rows(tx, SaidRow, f"SELECT {_ROW} FROM team_said WHERE uid = ?", (uid,))


def read_beside(tx: Connection) -> Iterator[tuple[str, str]]:
    """Read pairs of uids of teammates' memories of one topic that the device of one of them lets stand."""
    for uid, beside in tx.execute("SELECT uid, beside FROM team_said WHERE beside <> ''"):
        yield from ((str(uid), other) for other in str(beside).split())


def put_rows(tx: Connection, place: str, log: str, rows: Iterable[SaidRow]) -> None:
    """Write these rows of a log instead of those of their names."""
    sql = f"INSERT OR REPLACE INTO team_said (place, {_ROW}) VALUES (?, ?, {marks(range(11))})"
    tx.executemany(sql, [(place, log, *astuple(row)[1:]) for row in rows])


def begin_again(tx: Connection, place: str, log: str) -> None:
    """Take no row of a log for seen, because it is read from its beginning."""
    tx.execute("UPDATE team_said SET seq = 0 WHERE (place, log) = (?, ?)", (place, log))


def drop_unseen(tx: Connection, place: str, log: str) -> list[SaidRow]:
    """Delete and return the rows of a log that were not there when it was read again."""
    return _drop_rows(tx, "place = ? AND log = ? AND seq = 0", place, log)


def drop_log(tx: Connection, place: str, log: str) -> list[SaidRow]:
    """Delete and return the rows of a log, and forget how far it was read."""
    tx.execute("DELETE FROM sync_cursors WHERE (place, device) = (?, ?)", (place, log))
    return _drop_rows(tx, "place = ? AND log = ?", place, log)


def _drop_rows(tx: Connection, condition: str, *values: str) -> list[SaidRow]:
    return fetch_rows(
        tx, SaidRow, f"DELETE FROM team_said WHERE {condition} RETURNING {_ROW}", values
    )


def sum_marks(tx: Connection, place: str, log: str) -> int:
    """The sum of the marks of the rows of a log, which is greater than an integer of SQLite may be."""
    sql = "SELECT mark FROM team_said WHERE (place, log) = (?, ?)"
    return sum(fetch_column(tx, sql, (place, log)))


def count_newer_rows(tx: Connection) -> int:
    """Count the rows of all logs that only a newer memd understands."""
    return count_rows(tx, "team_said WHERE state = 'newer'")


# ── What I share ───────────────────────────────────────────────────────────────────────────────

_SHARED_FIELDS = (
    "kind", "title", "body", "topic_key", "tags", "files", "at", "expires_at", "confidence", "quality",
)  # fmt: skip
_SHARED_COLUMNS = ", ".join(
    f"round({name}, 2)" if name in {"confidence", "quality"} else name for name in _SHARED_FIELDS
)
_MAY_BE_SHARED = (
    " FROM summaries s WHERE s.project_id = ? AND s.kind IN ({kinds}) AND s.author = ''"
    " AND s.archived_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > ?)"
    " AND NOT EXISTS (SELECT 1 FROM json_each(s.tags) WHERE value = 'private')"
)
_IS_SHARED = f"{_MAY_BE_SHARED} AND {NOT_SUPERSEDED}"
_ABOVE = (
    "(SELECT n.uid FROM supersessions x JOIN summaries n ON n.id = x.newer_id"
    " WHERE x.older_id = s.id AND x.undone_at IS NULL AND n.author = '')"
)


def shared_memories(
    tx: Connection, project_id: int, kinds: Sequence[Kind], now: int
) -> Iterator[OwnMemory]:
    """Every memory of this vault's own in a project that a team may see, hidden ones too, oldest first.

    What a teammate's memory hides here is hidden here alone.
    """
    wanted = [kind.value for kind in kinds]
    for uid, above, *values in tx.execute(
        f"SELECT uid, coalesce({_ABOVE}, ''), {_SHARED_COLUMNS}{_MAY_BE_SHARED.format(kinds=marks(wanted))}"
        " ORDER BY s.id",
        (project_id, *wanted, now),
    ):
        fields = dict(zip(_SHARED_FIELDS, values, strict=True))
        fields |= {name: json.loads(fields[name]) for name in ("tags", "files")}
        yield OwnMemory(uid, fields, above)


def own_uids(tx: Connection) -> list[str]:
    """The uids of all that is this vault's own."""
    return fetch_column(tx, "SELECT uid FROM summaries WHERE author = ''")


def count_own(tx: Connection, project_id: int, now: int) -> dict[str, int]:
    """Kind → how many memories of a project a team could see if the kind were shared."""
    wanted = [kind.value for kind in Kind]
    sql = f"SELECT kind, count(*){_IS_SHARED.format(kinds=marks(wanted))} GROUP BY kind"
    return dict(tx.execute(sql, (project_id, *wanted, now)))


# ── What teammates share ───────────────────────────────────────────────────────────────────────


def put_team_memory(
    tx: Connection, uid: str, author: str, project_id: int, draft: Draft, now: int
) -> int:
    """Write a teammate's memory; its id, or 0 if it was forgotten here."""
    owner = summaries.SummaryOwner(project_id, None, TEAM_SOURCE)
    number, _ = summaries.put_summary(tx, uid, draft, owner, now)
    sql = "UPDATE summaries SET author = ?, topic_key = ?, expires_at = ?, at = ? WHERE id = ?"
    tx.execute(sql, (author, draft.topic_key, draft.expires_at, draft.at, number))
    return number


def delete_team_memory(tx: Connection, uid: str) -> bool:
    """Delete a teammate's memory that is shared no more; whether it was here."""
    number = fetch_int(tx, "SELECT id FROM summaries WHERE uid = ? AND author <> ''", (uid,))
    return erasure.delete_memory(tx, number)


def is_known_or_forgotten(tx: Connection, uid: str) -> bool:
    """Return whether a teammate's memory was imported here, or forgotten here."""
    return ledger.is_forgotten(tx, uid) or has_rows(tx, "summaries WHERE uid = ?", (uid,))


def count_team_memories(tx: Connection) -> dict[str, int]:
    """Author → how many of their memories are here."""
    sql = (
        "SELECT author, count(*) FROM summaries WHERE author <> '' GROUP BY author ORDER BY author"
    )
    return dict(tx.execute(sql))
