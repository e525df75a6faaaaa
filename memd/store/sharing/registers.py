"""Registers: of every record that devices share, who said it last and whether it still holds. No words.

A register has one version, the greatest that this vault has seen. Its id grows with every new version, so
that what has still to be sent is what has a greater id than what was sent last. Below, what a newer memd says of a row
and this one does not understand: it is kept and passed on.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apsw import Connection

from memd.store.filter import marks
from memd.store.queries import (
    compact_json,
    fetch_all,
    fetch_column,
    fetch_first,
    fetch_rows,
    last_id,
)
from memd.text import digest

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

UnknownName = tuple[str, str, str, str]
"""Kind of record, what it is of, what else names it, the other end."""
_NAMES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "project": ("key", "", ()), "alias": ("key", "", ()), "session": ("uid", "", ()),
    "event": ("key", "", ()), "summary": ("uid", "", ()), "supersession": ("newer", "older", ()),
    "edge": ("from", "to", ("from_kind", "type", "to_kind")), "judgment": ("newer", "older", ()),
    "use": ("summary", "", ()), "review": ("summary", "", ()), "together": ("one", "other", ()),
    "injection": ("summary", "session", ("moment", "at")), "switch": ("target", "", ("scope",)),
    "forgotten": ("key", "", ()),
}  # fmt: skip
"""Kind of record → the fields that name it: what it is of, the other end or "", the rest."""
_ROWS = frozenset({"uid", "newer", "older", "summary", "session", "one", "other"})
"""Fields that name a row by its uid, and so go with it."""


def find_name(kind: str, fields: Mapping[str, Any]) -> UnknownName:
    """The name of a record, in which no words are."""
    one, other, rest = _NAMES[kind]
    link = digest(*(str(fields[name]) for name in rest)) if rest else ""
    return kind, _name_end(kind, one, fields), link, _name_end(kind, other, fields)


def _name_end(kind: str, field: str, fields: Mapping[str, Any]) -> str:
    if not field:
        return ""
    is_row = (
        field in _ROWS
        or (kind, field) == ("event", "key")
        or fields.get(f"{field}_kind") in {"summary", "event", "session"}
    )
    return str(fields[field]) if is_row else digest(kind, str(fields[field]))


def read_all(tx: Connection) -> dict[UnknownName, dict[str, Any]]:
    """Everything that is kept: name of the record → its unknown fields."""
    sql = "SELECT kind, one, link, other, fields FROM unknown_fields"
    return {row[:4]: json.loads(row[4]) for row in fetch_all(tx, sql)}


def read_of_memory(tx: Connection, uid: str) -> dict[str, Any]:
    """The unknown fields of a memory."""
    sql = (
        "SELECT fields FROM unknown_fields WHERE (kind, one, link, other) = ('summary', ?, '', '')"
    )
    found: dict[str, Any] = json.loads(next(iter(fetch_column(tx, sql, (uid,))), "{}"))
    return found


def put_of_memory(tx: Connection, uid: str, fields: Mapping[str, Any]) -> None:
    """Let these be the unknown fields of a memory."""
    put(tx, ("summary", uid, "", ""), fields)


def put(
    tx: Connection, name: UnknownName, fields: Mapping[str, Any], *, or_ignore: bool = False
) -> None:
    """Keep the unknown fields of a record, or forget that it had any; `or_ignore`: unless some are kept."""
    if not or_ignore:
        sql = "DELETE FROM unknown_fields WHERE (kind, one, link, other) = (?, ?, ?, ?)"
        tx.execute(sql, name)
    if not fields:
        return
    sql = "INSERT OR IGNORE INTO unknown_fields (kind, one, link, other, fields) VALUES (?, ?, ?, ?, ?)"
    tx.execute(sql, (*name, compact_json(fields)))
