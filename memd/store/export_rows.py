"""Vault to records."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memd.errors import BadRequest
from memd.models import EdgeType, EventKind, Kind, Stance, Tier
from memd.store.database import Connection

# MERGED from memd.store.freight:
# MERGED What of a vault moves house: each kind of record, its fields, and what may stand in them. Pure.
# MERGED
# MERGED Everything that is truth and has a name of its own: rows are named by uids and keys, never by numbers,
# MERGED which mean something in one vault alone. What stays behind: what is derived, the books, the marks of
# MERGED files that were read, and the rounds of consolidation. Not here: how a record is written on a line.


TIME_MAX = 2**53
"""UTC milliseconds, and the largest number that every JSON reader keeps exact."""
NAME_CHARACTERS = 4_096
DEPTH_MAX = 100
_INT_MAX = 2**63 - 1

Fields = dict[str, Any]
Fits = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a field may hold."""

    says: str
    """In words, for whoever wrote something else."""
    fits: Fits
    is_prose: bool = False
    """Whether a secret may stand in it."""


def _is_int(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_CHARACTERS


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_json(value: Any, depth: int = DEPTH_MAX) -> bool:
    """Whether it can be written again as JSON that any reader takes."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_json(one, depth - 1) for one in inner)
    if isinstance(value, int):
        return -_INT_MAX <= value <= _INT_MAX
    return not isinstance(value, float) or math.isfinite(value)


def _one_of(*names: str) -> FieldType:
    return FieldType(f"one of {', '.join(names)}", lambda value: value in names)


TEXT = FieldType("a text", lambda value: isinstance(value, str), is_prose=True)
PLACE = FieldType(f"a text of 1 to {NAME_CHARACTERS} characters", _is_name, is_prose=True)
NAME = FieldType(PLACE.says, _is_name)
TEXTS = FieldType("a list of texts", _is_texts, is_prose=True)
OBJECT = FieldType(
    f"an object, at most {DEPTH_MAX} deep, of finite numbers",
    lambda value: isinstance(value, dict) and _is_json(value),
    is_prose=True,
)
TIME = FieldType("a time in UTC milliseconds", lambda value: _is_int(value, TIME_MAX))
COUNT = FieldType("a whole number, not negative", lambda value: _is_int(value, TIME_MAX))
FLAG = FieldType("0 or 1", lambda value: _is_int(value, 1))
REAL = FieldType(
    "a finite number",
    lambda value: (
        type(value) in {int, float} and abs(value) < _INT_MAX and math.isfinite(value)
    ),
)


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """One kind of record."""

    fields: Mapping[str, FieldType]
    optional: frozenset[str] = frozenset()
    """What may be null."""


EXPORT_SCHEMA: Mapping[str, RecordSchema] = {
    "project": RecordSchema({"key": PLACE, "name": TEXT, "reason": TEXT, "created_at": TIME}),
    "alias": RecordSchema({"key": PLACE, "project": PLACE, "at": TIME}),
    "session": RecordSchema(
        {
            "uid": NAME, "client": NAME, "key": NAME, "project": PLACE, "directory": TEXT,
            "title": TEXT, "started_at": TIME, "last_event_at": TIME,
        },
        frozenset({"directory", "title"}),
    ),
    "event": RecordSchema(
        {
            "key": NAME, "session": NAME, "kind": _one_of(*EventKind), "name": TEXT, "at": TIME,
            "source": NAME, "turn": TEXT, "tool": TEXT, "agent": TEXT, "payload": OBJECT,
            "distilled": FLAG,
        },
        frozenset({"turn", "tool", "agent"}),
    ),
    "summary": RecordSchema(
        {
            "uid": NAME, "project": PLACE, "session": NAME, "episode": TEXT, "kind": _one_of(*Kind),
            "tier": _one_of(*Tier), "source": TEXT, "title": TEXT, "body": TEXT, "topic_key": TEXT,
            "tags": TEXTS, "files": TEXTS, "at": TIME, "created_at": TIME, "updated_at": TIME,
            "expires_at": TIME, "pinned_at": TIME, "confidence": REAL, "quality": REAL,
            "revisions": COUNT, "duplicates": COUNT, "rule": TEXT, "consolidated": FLAG,
            "archived_at": TIME,
        },
        frozenset(
            {"session", "episode", "topic_key", "expires_at", "pinned_at", "archived_at"}
        ),
    ),
    "supersession": RecordSchema(
        {
            "newer": NAME, "older": NAME, "rule": TEXT, "cosine": REAL, "guard": TEXT, "at": TIME,
            "undone_at": TIME,
        },
        frozenset({"cosine", "undone_at"}),
    ),
    "edge": RecordSchema(
        {
            "from_kind": NAME, "from": TEXT, "type": _one_of(*EdgeType), "to_kind": NAME,
            "to": TEXT, "confidence": REAL, "rule": TEXT, "at": TIME, "detail": OBJECT,
        },
    ),
    "judgment": RecordSchema(
        {
            "newer": NAME, "older": NAME, "relation": _one_of(*Stance), "reason": TEXT,
            "who": TEXT, "at": TIME, "undone_at": TIME,
        },
        frozenset({"undone_at"}),
    ),
    "use": RecordSchema({"summary": NAME, "count": COUNT, "last_at": TIME}),
    "together": RecordSchema({"one": NAME, "other": NAME, "count": COUNT}),
    "injection": RecordSchema(
        {"session": NAME, "summary": NAME, "moment": NAME, "at": TIME, "reason": TEXT}
    ),
    "switch": RecordSchema(
        {
            "scope": _one_of("project", "session"), "target": PLACE, "captures": FLAG,
            "recalls": FLAG, "at": TIME,
        }
    ),
    "forgotten": RecordSchema({"key": NAME, "at": TIME}),
}  # fmt: skip
"""Each kind of record in the order in which they travel: nothing speaks of what comes after it."""

NODES = frozenset({"summary", "event", "session"})
"""Kinds of nodes that are rows, so that an edge names them by uid or key."""


def check_record(kind: str, fields: Mapping[str, Any]) -> None:
    """Raise BadRequest unless these are the fields of such a record, all of them and no other."""
    kept = EXPORT_SCHEMA.get(kind)
    if kept is None:
        raise BadRequest(f"there are no records called {kind[:40]!r}")
    if strange := fields.keys() - kept.fields.keys():
        raise BadRequest(f"a {kind} has no field {min(strange)[:40]!r}")
    for name, shape in kept.fields.items():
        if name not in fields:
            raise BadRequest(f"this {kind} lacks the field {name!r}")
        value = fields[name]
        if not (value is None and name in kept.optional) and not shape.fits(value):
            raise BadRequest(f"{name} of this {kind} must be {shape.says}")


def redact_record(kind: str, fields: Mapping[str, Any], redact: Callable[[Any], Any]) -> Fields:
    """The fields with everything redacted in which a secret may stand.

    `redact` takes and returns a JSON value; what names a row by a uid stays as it is.
    """
    shapes = EXPORT_SCHEMA[kind].fields
    return {
        name: redact(value) if shapes[name].is_prose and not _names_row(fields, name) else value
        for name, value in fields.items()
    }


def _names_row(fields: Mapping[str, Any], name: str) -> bool:
    return name in {"from", "to"} and fields[f"{name}_kind"] in NODES


# MERGED from memd.store.departures:
# MERGED A vault's records on their way out: in a fixed order, one at a time, every row named for good.
# MERGED
# MERGED The same vault gives the same records. With a project, only what belongs to it, and nothing that
# MERGED speaks of what stays. Not here: what is in a record (freight.py), how a record comes in (arrivals.py).


_JSON = frozenset({"payload", "tags", "files", "detail"})
_RUN = "run"
"""In the detail of an edge: a round of consolidation, whose number means nothing elsewhere."""


def _node(end: str) -> str:
    """SQL: one end of an edge, by uid or key if it is a row; NULL if that is not there."""
    row = f"n.id = CAST({end}_id AS INTEGER) AND CAST(n.id AS TEXT) = {end}_id"
    return (
        f"CASE {end}_kind"
        f" WHEN 'summary' THEN (SELECT n.uid FROM going_summaries n WHERE {row})"
        f" WHEN 'session' THEN (SELECT n.uid FROM going_sessions n WHERE {row})"
        " WHEN 'event' THEN (SELECT n.key FROM events n JOIN going_sessions s"
        f" ON s.id = n.session_id WHERE {row})"
        f" ELSE {end}_id END"
    )


_PAIR = (
    "n.uid, o.uid, {columns} FROM {table} x JOIN going_summaries n ON n.id = x.{newer}"
    " JOIN going_summaries o ON o.id = x.{older}"
)
_QUERIES = {
    "project": "key, name, reason, created_at FROM projects WHERE id IN going ORDER BY id",
    "alias": "a.key, p.key, a.at FROM aliases a JOIN projects p ON p.id = a.project_id"
    " WHERE p.id IN going ORDER BY a.key",
    "session": "s.uid, s.client, s.key, p.key, s.directory, s.title, s.started_at, s.last_event_at"
    " FROM going_sessions s JOIN projects p ON p.id = s.project_id ORDER BY s.id",
    "event": "e.key, s.uid, e.kind, e.name, e.at, e.source, e.turn, e.tool, e.agent, e.payload,"
    " e.distilled FROM events e CROSS JOIN going_sessions s ON s.id = e.session_id ORDER BY e.id",
    "summary": "m.uid, p.key, (SELECT uid FROM going_sessions s WHERE s.id = m.session_id), m.episode,"
    " m.kind, m.tier, m.source, m.title, m.body, m.topic_key, m.tags, m.files, m.at, m.created_at,"
    " m.updated_at, m.expires_at, m.pinned_at, m.confidence, m.quality, m.revisions, m.duplicates,"
    " m.rule, m.consolidated, m.archived_at"
    " FROM going_summaries m JOIN projects p ON p.id = m.project_id ORDER BY m.id",
    "supersession": _PAIR.format(
        columns="x.rule, x.cosine, x.guard, x.at, x.undone_at", table="supersessions",
        newer="newer_id", older="older_id",
    )
    + " ORDER BY x.id",
    "edge": f"* FROM (SELECT from_kind, {_node('from')} AS start, type, to_kind, {_node('to')} AS stop,"
    " confidence, rule, at, detail FROM edges"
    " WHERE (SELECT count(*) FROM going_whole) OR from_kind IN ('summary', 'event', 'session')"
    " OR to_kind IN ('summary', 'event', 'session') ORDER BY id)"
    " WHERE start IS NOT NULL AND stop IS NOT NULL",
    "judgment": _PAIR.format(
        columns="x.relation, x.reason, x.who, x.at, x.undone_at", table="judgments",
        newer="newer_id", older="older_id",
    )
    + " ORDER BY x.id",
    "use": "m.uid, u.count, u.last_at FROM uses u JOIN going_summaries m ON m.id = u.summary_id"
    " ORDER BY u.summary_id",
    "together": _PAIR.format(
        columns="x.count", table="coactivations", newer="low_id", older="high_id"
    )
    + " ORDER BY x.low_id, x.high_id",
    "injection": "s.uid, m.uid, i.moment, i.at, i.reason FROM injections i"
    " JOIN going_sessions s ON s.id = i.session_id JOIN going_summaries m ON m.id = i.summary_id"
    " ORDER BY i.id",
    "switch": "scope, target, captures, recalls, at FROM switches"
    " WHERE (SELECT count(*) FROM going_whole)"
    " OR scope = 'project' AND target IN (SELECT key FROM projects WHERE id IN going)"
    " OR scope = 'session' AND target IN (SELECT key FROM going_sessions)"
    " ORDER BY scope, target",
    "forgotten": "key, at FROM forgotten WHERE (SELECT count(*) FROM going_whole) ORDER BY key",
}  # fmt: skip
"""Kind of record → its rows, the columns in the order of its fields, without the SELECT."""


class VaultRecords:
    """The records of one snapshot. With a project's id, only that project's."""

    def __init__(self, connection: Connection, project_id: int | None = None) -> None:
        self._connection = connection
        connection.execute(
            "CREATE TEMP TABLE going (id INTEGER PRIMARY KEY);"
            "CREATE TEMP TABLE going_whole (x);"
            "CREATE TEMP VIEW going_sessions AS"
            " SELECT * FROM main.sessions WHERE project_id IN (SELECT id FROM going);"
            "CREATE TEMP VIEW going_summaries AS"
            " SELECT * FROM main.summaries WHERE project_id IN (SELECT id FROM going)"
        )
        if project_id is None:
            connection.execute("INSERT INTO going SELECT id FROM main.projects")
            connection.execute("INSERT INTO going_whole VALUES (1)")
        else:
            connection.execute("INSERT INTO going VALUES (?)", (project_id,))

    def counts(self) -> dict[str, int]:
        """Kind of record → how many there are."""
        return {
            kind: int(self._connection.execute(f"SELECT count(*) FROM (SELECT {query})").get)
            for kind, query in _QUERIES.items()
        }

    def records(self) -> Iterator[tuple[str, Fields]]:
        """Every record as (kind, fields), in the order in which they travel."""
        for kind, kept in EXPORT_SCHEMA.items():
            for row in self._connection.execute(f"SELECT {_QUERIES[kind]}"):
                yield kind, _fields(dict(zip(kept.fields, row, strict=True)))


def _fields(fields: Fields) -> Fields:
    for name in _JSON & fields.keys():
        fields[name] = json.loads(fields[name])
    if "detail" in fields:
        fields["detail"].pop(_RUN, None)
    return fields
