"""A vault's records on their way out: in a fixed order, one at a time, every row named for good.

The same vault gives the same records. With a project, only what belongs to it, and nothing that
speaks of what stays. Not here: what is in a record (freight.py), how a record comes in (arrivals.py).
"""

import json
from collections.abc import Iterator

from memd.store.database import Connection
from memd.store.freight import FREIGHT, Fields

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


class Departures:
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
        for kind, kept in FREIGHT.items():
            for row in self._connection.execute(f"SELECT {_QUERIES[kind]}"):
                yield kind, _fields(dict(zip(kept.fields, row, strict=True)))


def _fields(fields: Fields) -> Fields:
    for name in _JSON & fields.keys():
        fields[name] = json.loads(fields[name])
    if "detail" in fields:
        fields["detail"].pop(_RUN, None)
    return fields
