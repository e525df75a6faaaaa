"""The export schema, and a vault's records in it.

Records are everything that is truth and has a name of its own: rows are named by uid or key, because
ids mean something in one vault only. Derived data, the ledger, the marks of imported files and
consolidation runs are not exported.
"""

import json
import math
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memd.errors import BadRequest, RecordTooNew
from memd.models import Authority, EdgeType, EventKind, Kind, Stance, Tier
from memd.store import Fields, sharing
from memd.store.database import Connection
from memd.store.queries import count_rows
from memd.store.reviews import VERDICTS

TIME_MAX = 2**53
"""UTC milliseconds; also the largest number that every JSON reader reads exactly."""
NAME_CHARACTERS_MAX = 4_096
DEPTH_MAX = 100
"""Levels of nesting in a JSON value."""
_INT_MAX = 2**63 - 1


# ── Schema ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field: what it may hold."""

    description: str
    """In words, for an error message."""
    accepts: Callable[[Any], bool]
    is_prose: bool = False
    """Whether it may contain a secret."""
    grows: type | None = None
    """The type of its values, if a newer memd may have others."""

    def is_of_newer(self, value: Any) -> bool:
        """Return whether a value that is not accepted may be one that a newer memd has added."""
        return bool(value) and type(value) is self.grows


def _is_int(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_CHARACTERS_MAX


def _is_portable(value: Any, depth: int = DEPTH_MAX) -> bool:
    """Return whether a value can be written as JSON that any reader accepts."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_portable(one, depth - 1) for one in inner)
    if isinstance(value, int):
        return -_INT_MAX <= value <= _INT_MAX
    return not isinstance(value, float) or math.isfinite(value)


def one_of(*names: str) -> FieldType:
    """A field that holds one of these."""
    return FieldType(f"one of {', '.join(names)}", lambda value: value in names, grows=str)


TEXT = FieldType("a text", lambda value: isinstance(value, str), is_prose=True)
PLACE = FieldType(f"a text of 1 to {NAME_CHARACTERS_MAX} characters", _is_name, is_prose=True)
NAME = FieldType(PLACE.description, _is_name)
TEXTS = FieldType(
    "a list of texts",
    lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    is_prose=True,
)
OBJECT = FieldType(
    f"an object, at most {DEPTH_MAX} deep, of finite numbers",
    lambda value: isinstance(value, dict) and _is_portable(value),
    is_prose=True,
)
TIME = FieldType("a time in UTC milliseconds", lambda value: _is_int(value, TIME_MAX))
COUNT = FieldType("a whole number, not negative", lambda value: _is_int(value, TIME_MAX))
FLAG = FieldType("0 or 1", lambda value: _is_int(value, 1))
SPEAKER = FieldType(
    f"a number from 1 to {max(Authority).code}",
    lambda value: value != 0 and _is_int(value, max(Authority).code),
    grows=int,
)
REAL = FieldType(
    "a finite number",
    lambda value: type(value) in {int, float} and abs(value) < _INT_MAX and math.isfinite(value),
)


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """One kind of record."""

    fields: Mapping[str, FieldType]
    optional: frozenset[str] = frozenset()
    """Fields that may be null."""
    added: frozenset[str] = frozenset()
    """Fields that an export of a former format lacks."""


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
            "key": NAME, "session": NAME, "kind": one_of(*EventKind), "name": TEXT, "at": TIME,
            "source": NAME, "turn": TEXT, "tool": TEXT, "agent": TEXT, "payload": OBJECT,
            "distilled": FLAG,
        },
        frozenset({"turn", "tool", "agent"}),
    ),
    "summary": RecordSchema(
        {
            "uid": NAME, "project": PLACE, "session": NAME, "episode": TEXT, "kind": one_of(*Kind),
            "tier": one_of(*Tier), "source": TEXT, "title": TEXT, "body": TEXT, "topic_key": TEXT,
            "tags": TEXTS, "files": TEXTS, "at": TIME, "created_at": TIME, "updated_at": TIME,
            "expires_at": TIME, "pinned_at": TIME, "confidence": REAL, "quality": REAL,
            "revisions": COUNT, "duplicates": COUNT, "rule": TEXT, "consolidated": FLAG,
            "archived_at": TIME, "authority": SPEAKER, "pinned_by": SPEAKER,
        },
        frozenset(
            {"session", "episode", "topic_key", "expires_at", "pinned_at", "archived_at", "pinned_by"}
        ),
        frozenset({"authority", "pinned_by"}),
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
            "from_kind": NAME, "from": TEXT, "type": one_of(*EdgeType), "to_kind": NAME,
            "to": TEXT, "confidence": REAL, "rule": TEXT, "at": TIME, "detail": OBJECT,
        },
    ),
    "judgment": RecordSchema(
        {
            "newer": NAME, "older": NAME, "relation": one_of(*Stance), "reason": TEXT,
            "who": TEXT, "at": TIME, "undone_at": TIME,
        },
        frozenset({"undone_at"}),
    ),
    "review": RecordSchema(
        {"summary": NAME, "verdict": one_of(*VERDICTS), "at": TIME, "follows": NAME},
        frozenset({"follows"}),
    ),
    "use": RecordSchema({"summary": NAME, "count": COUNT, "last_at": TIME}),
    "together": RecordSchema({"one": NAME, "other": NAME, "count": COUNT}),
    "injection": RecordSchema(
        {"session": NAME, "summary": NAME, "moment": NAME, "at": TIME, "reason": TEXT}
    ),
    "switch": RecordSchema(
        {
            "scope": one_of("project", "session"), "target": PLACE, "captures": FLAG,
            "recalls": FLAG, "at": TIME,
        }
    ),
    "forgotten": RecordSchema({"key": NAME, "at": TIME}),
}  # fmt: skip
"""Kind of record → its schema, in the order of an export: no record refers to a later one."""

ADDED_KINDS = frozenset({"review"})
"""Kinds that a former format lacks: an export without any of them is in that format."""
ROW_NODES = frozenset({"summary", "event", "session"})
"""Kinds of graph nodes that are rows, so that an edge names them by uid or key."""


def split_record(kind: str, fields: Mapping[str, Any]) -> tuple[Fields, Fields]:
    """Split a record into (the fields that this memd knows, the others)."""
    known = EXPORT_SCHEMA[kind].fields
    return (
        {name: value for name, value in fields.items() if name in known},
        {name: value for name, value in fields.items() if name not in known},
    )


def check_record(kind: str, fields: Mapping[str, Any]) -> None:
    """Raise BadRequest unless these are the fields of such a record: all of them, and others that a newer memd has.

    What was added since a former format may be missing. RecordTooNew if only a newer memd understands it.
    """
    schema = EXPORT_SCHEMA.get(kind)
    if schema is None:
        raise RecordTooNew(kind[:40])
    if missing := [one for one in schema.fields if one not in {*fields, *schema.added}]:
        raise BadRequest(f"this {kind} lacks the field {missing[0]!r}")
    known, unknown = split_record(kind, fields)
    check_values(kind, known, schema.fields, schema.optional)
    if not OBJECT.accepts(unknown):
        raise BadRequest(f"a {kind} with fields that are nested too deep")


def check_values(
    kind: str, values: Fields, types: Mapping[str, FieldType], optional: Container[str]
) -> None:
    """Raise BadRequest for a value that is not of its type, RecordTooNew if only a newer memd understands it."""
    for name, value in values.items():
        if (value is None and name in optional) or types[name].accepts(value):
            continue
        if types[name].is_of_newer(value):
            raise RecordTooNew(f"{kind} with {name} {str(value)[:40]}")
        raise BadRequest(f"{name} of this {kind} must be {types[name].description}")


def redact_record(kind: str, fields: Mapping[str, Any], redact: Callable[[Any], Any]) -> Fields:
    """The fields, with `redact` applied to every JSON value that may contain a secret.

    The uid or key of a row stays as it is.
    """
    types = EXPORT_SCHEMA[kind].fields
    known, unknown = split_record(kind, fields)
    redacted = {
        name: redact(value)
        if types[name].is_prose and fields.get(f"{name}_kind") not in ROW_NODES
        else value
        for name, value in known.items()
    }
    return {**(redact(unknown) if unknown else {}), **redacted}


# ── Export ─────────────────────────────────────────────────────────────────────────────────────

_JSON_FIELDS = frozenset({"payload", "tags", "files", "detail"})
_RUN = "run"
"""In the detail of an edge: the id of a consolidation run, which means nothing in another vault."""


def _node_name(end: str) -> str:
    """SQL: one end of an edge, by uid or key if it is a row; NULL if that row is not exported."""
    row = f"n.id = CAST({end}_id AS INTEGER) AND CAST(n.id AS TEXT) = {end}_id"
    return (
        f"CASE {end}_kind"
        f" WHEN 'summary' THEN (SELECT n.uid FROM exported_summaries n WHERE {row})"
        f" WHEN 'session' THEN (SELECT n.uid FROM exported_sessions n WHERE {row})"
        " WHEN 'event' THEN (SELECT n.key FROM events n JOIN exported_sessions s"
        f" ON s.id = n.session_id WHERE {row})"
        f" ELSE {end}_id END"
    )


def _select_pairs(
    table: str, columns: str, order: str, newer: str = "newer", older: str = "older"
) -> str:
    """A query of a table that refers to two summaries."""
    return (
        f"n.uid, o.uid, {columns} FROM {table} x JOIN exported_summaries n ON n.id = x.{newer}_id"
        f" JOIN exported_summaries o ON o.id = x.{older}_id ORDER BY {order}"
    )


_QUERIES = {
    "project": "key, name, reason, created_at FROM projects WHERE id IN exported_projects ORDER BY id",
    "alias": "a.key, p.key, a.at FROM aliases a JOIN projects p ON p.id = a.project_id"
    " WHERE p.id IN exported_projects ORDER BY a.key",
    "session": "s.uid, s.client, s.key, p.key, s.directory, s.title, s.started_at, s.last_event_at"
    " FROM exported_sessions s JOIN projects p ON p.id = s.project_id ORDER BY s.id",
    "event": "e.key, s.uid, e.kind, e.name, e.at, e.source, e.turn, e.tool, e.agent, e.payload,"
    " e.distilled FROM events e CROSS JOIN exported_sessions s ON s.id = e.session_id ORDER BY e.id",
    "summary": "m.uid, p.key, (SELECT uid FROM exported_sessions s WHERE s.id = m.session_id), m.episode,"
    " m.kind, m.tier, m.source, m.title, m.body, m.topic_key, m.tags, m.files, m.at, m.created_at,"
    " m.updated_at, m.expires_at, m.pinned_at, m.confidence, m.quality, m.revisions, m.duplicates,"
    " m.rule, m.consolidated, m.archived_at, m.authority, m.pinned_by"
    " FROM exported_summaries m JOIN projects p ON p.id = m.project_id ORDER BY m.id",
    "supersession": _select_pairs(
        "supersessions", "x.rule, x.cosine, x.guard, x.at, x.undone_at", "x.id"
    ),
    "edge": f"* FROM (SELECT from_kind, {_node_name('from')} AS start, type, to_kind, {_node_name('to')} AS stop,"
    " confidence, rule, at, detail FROM edges"
    " WHERE (SELECT count(*) FROM exports_all) OR from_kind IN ('summary', 'event', 'session')"
    " OR to_kind IN ('summary', 'event', 'session') ORDER BY id)"
    " WHERE start IS NOT NULL AND stop IS NOT NULL",
    "judgment": _select_pairs(
        "judgments", "x.relation, x.reason, x.who, x.at, x.undone_at", "x.id"
    ),
    "review": "m.uid, v.verdict, v.at, (SELECT f.uid FROM exported_summaries f WHERE f.id = v.follows)"
    " FROM reviews v JOIN exported_summaries m ON m.id = v.summary_id ORDER BY v.summary_id",
    "use": "m.uid, u.count, u.last_at FROM uses u JOIN exported_summaries m ON m.id = u.summary_id"
    " WHERE u.count > 0 ORDER BY u.summary_id",
    "together": _select_pairs(
        "coactivations", "x.count", "x.low_id, x.high_id", "low", "high"
    ),
    "injection": "s.uid, m.uid, i.moment, i.at, i.reason FROM injections i"
    " JOIN exported_sessions s ON s.id = i.session_id JOIN exported_summaries m ON m.id = i.summary_id"
    " ORDER BY i.id",
    "switch": "scope, target, captures, recalls, at FROM switches"
    " WHERE (SELECT count(*) FROM exports_all)"
    " OR scope = 'project' AND target IN (SELECT key FROM projects WHERE id IN exported_projects)"
    " OR scope = 'session' AND target IN (SELECT key FROM exported_sessions)"
    " ORDER BY scope, target",
    "forgotten": "key, at FROM forgotten WHERE (SELECT count(*) FROM exports_all) ORDER BY key",
}  # fmt: skip
"""Kind of record → the query of its rows without SELECT, with columns in the order of its fields."""


class VaultRecords:
    """The records of one snapshot, always in the same order; with a project's id, only that project's."""

    def __init__(self, connection: Connection, project_id: int | None = None) -> None:
        self._connection = connection
        connection.execute(
            "CREATE TEMP TABLE exported_projects (id INTEGER PRIMARY KEY);"
            "CREATE TEMP TABLE exports_all (x);"
            "CREATE TEMP VIEW exported_sessions AS"
            " SELECT * FROM main.sessions WHERE project_id IN (SELECT id FROM exported_projects);"
            "CREATE TEMP VIEW exported_summaries AS"
            # A teammate's memory is theirs: it comes from the server again, not from an export.
            " SELECT * FROM main.summaries WHERE author = ''"
            " AND project_id IN (SELECT id FROM exported_projects)"
        )
        if project_id is None:
            connection.execute("INSERT INTO exported_projects SELECT id FROM main.projects")
            connection.execute("INSERT INTO exports_all VALUES (1)")
        else:
            connection.execute("INSERT INTO exported_projects VALUES (?)", (project_id,))

    def counts(self) -> dict[str, int]:
        """Kind of record → how many there are."""
        return {
            kind: count_rows(self._connection, f"(SELECT {query})")
            for kind, query in _QUERIES.items()
        }

    def records(self, *kinds: str) -> Iterator[tuple[str, Fields]]:
        """Every record, or those of some kinds, as (kind, fields), in the order of EXPORT_SCHEMA."""
        for kind, schema in EXPORT_SCHEMA.items():
            if kinds and kind not in kinds:
                continue
            for row in self._connection.execute(f"SELECT {_QUERIES[kind]}"):
                fields = dict(zip(schema.fields, row, strict=True))
                for name in _JSON_FIELDS & fields.keys():
                    fields[name] = json.loads(fields[name])
                if "detail" in fields:
                    fields["detail"].pop(_RUN, None)
                if kind == "summary":
                    fields = sharing.read_of_memory(self._connection, fields["uid"]) | fields
                yield kind, fields
