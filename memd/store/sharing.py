"""Registers: of every record that devices share, who said it last and whether it still holds. No words.

A register has one version, the greatest that this vault has seen. Its id grows with every new version, so
that what has still to be sent is what has a greater id than what was sent last. Below, what a newer memd says of a row
and this one does not understand: it is kept and passed on. Last, the tables of teams: joined projects, the rows of
each log on the server, teammates' memories.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from apsw import Connection

from memd.models import Draft, Kind
from memd.store import Fields, erasure, ledger, summaries
from memd.store.filter import NOT_SUPERSEDED, marks
from memd.store.queries import (
    compact_json,
    count_rows,
    fetch_all,
    fetch_column,
    fetch_first,
    fetch_int,
    fetch_rows,
    has_rows,
    last_id,
)

RegisterName = tuple[str, str, str, str]
"""Kind, what it is of, the type of an edge or "", and the other end or ""."""
_COLUMNS = "kind, one, link, other, rank, wall, counter, device, live, shown, project, expires_at, coalesce(extra, ''), id"
"""In the order of the fields of Register."""


@dataclass(frozen=True, slots=True)
class Register:
    """The newest known version of one record. `wall` is UTC milliseconds."""

    kind: str
    one: str
    link: str
    other: str
    rank: int
    wall: int
    counter: int
    device: str
    live: int = 1
    """0: its content was retracted."""
    shown: str = ""
    """A hash of what the tables said of it when they were last compared; "" for nothing."""
    project: str = ""
    """A hash of the key of a memory's project."""
    expires_at: int | None = None
    extra: str = ""
    """JSON of the fields that this memd does not know; "" for none."""
    id: int = 0

    @property
    def name(self) -> RegisterName:
        """Return the name of the register."""
        return self.kind, self.one, self.link, self.other


def read_register(tx: Connection, name: RegisterName) -> Register | None:
    """One register, or None."""
    sql = f"SELECT {_COLUMNS} FROM sync_records WHERE (kind, one, link, other) = (?, ?, ?, ?)"
    return fetch_first(tx, Register, sql, name)


def read_registers(tx: Connection, kind: str) -> list[Register]:
    """Every register of one kind."""
    sql = f"SELECT {_COLUMNS} FROM sync_records WHERE kind = ?"
    return fetch_rows(tx, Register, sql, (kind,))


def write_register(tx: Connection, new: Register) -> None:
    """Replace a register by a new version, with a new id."""
    values = (
        *new.name, new.rank, new.wall, new.counter, new.device, new.live, new.shown, new.project,
        new.expires_at, new.extra or None,
    )  # fmt: skip
    tx.execute(
        "INSERT OR REPLACE INTO sync_records (kind, one, link, other, rank, wall, counter, device, live,"
        f" shown, project, expires_at, extra) VALUES ({marks(values)})",
        values,
    )


def note_shown(tx: Connection, name: RegisterName, shown: str) -> None:
    """Note what the tables say of it now; it is no new version."""
    sql = "UPDATE sync_records SET shown = ? WHERE (kind, one, link, other) = (?, ?, ?, ?)"
    tx.execute(sql, (shown, *name))


def drop_registers_of(tx: Connection, uid: str) -> None:
    """Drop every register but its erasure that refers to a memory."""
    for column in ("one", "other"):
        sql = f"DELETE FROM sync_records WHERE {column} >= ?1 || '+' AND {column} < ?1 || ',' AND kind <> 'forget'"
        tx.execute(sql, (uid,))


def latest_registers(
    tx: Connection, devices: Iterable[str], after: int, kinds: Iterable[str]
) -> list[Register]:
    """Return the latest registers of these devices with ids above this one, by id; and all that are forgotten."""
    speakers, wanted = tuple(devices), tuple(kinds)
    sql = (
        f"SELECT {_COLUMNS} FROM sync_records WHERE (device IN ({marks(speakers)}) OR kind = 'forget') AND id > ?"
        f" AND kind IN ({marks(wanted)}) ORDER BY id"
    )
    return fetch_rows(tx, Register, sql, (*speakers, after, *wanted))


def last_register_id(tx: Connection) -> int:
    """The id of the newest version of any register; 0 without any."""
    return last_id(tx, "sync_records")


# ── Places ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TargetState:
    """The position that our log has reached at a sync target."""

    place: str
    sent: int = 0
    """The id of the last register that stands in it."""
    erasures: int = 0
    """How many erasures it has followed."""
    synced_at: int = 0
    """UTC milliseconds; 0: never."""


def read_target(tx: Connection, place: str) -> TargetState:
    """Read the state of a sync target; that of a new one if it is not known."""
    return next((one for one in read_places(tx) if one.place == place), TargetState(place))


def read_places(tx: Connection) -> list[TargetState]:
    """Read every sync target of this vault."""
    return fetch_rows(
        tx, TargetState, "SELECT place, sent, erasures, synced_at FROM sync_places ORDER BY place"
    )


def write_target(tx: Connection, state: TargetState) -> None:
    """Replace the state of a sync target."""
    sql = "INSERT OR REPLACE INTO sync_places VALUES (?, ?, ?, ?)"
    tx.execute(sql, (state.place, state.sent, state.erasures, state.synced_at))


def read_cursors(tx: Connection, place: str) -> dict[str, tuple[str, int]]:
    """Device → (how far its log was read there, since when)."""
    sql = "SELECT device, position, at FROM sync_cursors WHERE place = ?"
    return {device: (position, at) for device, position, at in fetch_all(tx, sql, (place,))}


def drop_place(tx: Connection, place: str) -> None:
    """Forget that this vault was synced with a target."""
    tx.execute("DELETE FROM sync_cursors WHERE place = ?", (place,))
    tx.execute("DELETE FROM sync_places WHERE place = ?", (place,))


def note_device(tx: Connection, place: str, device: str, now: int) -> None:
    """Note that a device was seen at a place, directly or in what another device passed on."""
    tx.execute("INSERT OR IGNORE INTO sync_cursors VALUES (?, ?, '', ?)", (place, device, now))


def write_cursor(tx: Connection, place: str, device: str, position: str, now: int) -> None:
    """Note how far a device's log was read at a target."""
    tx.execute(
        "INSERT OR REPLACE INTO sync_cursors VALUES (?, ?, ?, ?)", (place, device, position, now)
    )


# ── Unknown fields ────────────────────────────────────────────────────────────────────────────────


def read_of_memory(tx: Connection, uid: str) -> dict[str, Any]:
    """The unknown fields of a memory."""
    sql = (
        "SELECT fields FROM unknown_fields WHERE (kind, one, link, other) = ('summary', ?, '', '')"
    )
    found: dict[str, Any] = json.loads(next(iter(fetch_column(tx, sql, (uid,))), "{}"))
    return found


def put_of_memory(
    tx: Connection, uid: str, fields: Mapping[str, Any], *, or_ignore: bool = False
) -> None:
    """Let these be the unknown fields of a memory; `or_ignore`: unless some are kept."""
    if not or_ignore:
        sql = "DELETE FROM unknown_fields WHERE (kind, one, link, other) = ('summary', ?, '', '')"
        tx.execute(sql, (uid,))
    if fields:
        sql = "INSERT OR IGNORE INTO unknown_fields (kind, one, link, other, fields) VALUES ('summary', ?, '', '', ?)"
        tx.execute(sql, (uid, compact_json(fields)))


# ── Teams ──────────────────────────────────────────────────────────────────────────────────────

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
