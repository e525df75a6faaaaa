"""Supersessions, edges of the provenance graph, entities that summaries name, and consolidation runs."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apsw import Connection

from memd.models import SETTINGS_NODE, Edge, EdgeType, Summary, Supersession
from memd.store import SettingsEdge, judgments
from memd.store.filter import HIDES, REJECTED, marks
from memd.store.queries import (
    fetch_all,
    fetch_column,
    fetch_first,
    fetch_groups,
    fetch_ids,
    fetch_int,
    fetch_rows,
    has_rows,
    insert_returning_id,
    json_text,
)
from memd.text import storable

SUPERSESSION_COLUMNS = "id, newer_id, older_id, rule, cosine, guard, at, undone_at"
"""In the order of the fields of Supersession."""
_EDGE_COLUMNS = "id, from_kind, from_id, type, to_kind, to_id, confidence, rule, at, detail"
"""In the order of the fields of Edge."""
_AT_NODE = "(from_kind = ?1 AND from_id = ?2) OR (to_kind = ?1 AND to_id = ?2)"

Node = tuple[str, str]
"""Kind and id of a node, such as (`file`, path)."""


@dataclass(frozen=True, slots=True)
class NewEdge:
    """An edge to be written. Nodes are (kind, id as text)."""

    from_kind: str
    from_id: str
    type: EdgeType
    to_kind: str
    to_id: str
    rule: str
    at: int
    confidence: float = 1.0
    detail: Mapping[str, Any] = field(default_factory=dict)


def supersede(  # noqa: PLR0913  # one argument a column
    tx: Connection,
    *,
    newer_id: int,
    older_id: int,
    rule: str,
    cosine: float | None,
    guard: str,
    at: int,
) -> int | None:
    """Let newer hide older; the row's id, or None if older is hidden already or it would make a cycle."""
    below = fetch_ids(
        tx,
        "WITH RECURSIVE under (id) AS (SELECT ? UNION SELECT x.older_id FROM supersessions x"
        " JOIN under ON x.newer_id = under.id WHERE x.undone_at IS NULL) SELECT id FROM under",
        (older_id,),
    )
    if newer_id in below:
        return None
    # What was rejected hides nothing, and must not keep this from hiding it.
    tx.execute(
        "UPDATE supersessions SET undone_at = ? WHERE older_id = ? AND undone_at IS NULL AND newer_id <> ?"
        f" AND {REJECTED.format('newer_id')}",
        (at, older_id, newer_id),
    )
    return fetch_int(
        tx,
        "INSERT INTO supersessions (newer_id, older_id, rule, cosine, guard, at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING RETURNING id",
        (newer_id, older_id, rule, cosine, guard, at),
    )


def undo_supersession(tx: Connection, supersession_id: int, at: int) -> bool:
    """Show the older summary again. The row stays, marked as undone. False if it was undone already."""
    sql = "UPDATE supersessions SET undone_at = ? WHERE id = ? AND undone_at IS NULL"
    tx.execute(sql, (at, supersession_id))
    return tx.changes() > 0


def file_nodes_ending(tx: Connection, name: str, limit: int) -> list[str]:
    """The paths of files in the graph that end with a name: `auth.py`, `src/auth.py`."""
    ending = "/" + name.lstrip("/")
    sql = "SELECT DISTINCT to_id FROM edges WHERE to_kind = 'file' AND substr(to_id, -?2) = ?1 ORDER BY to_id LIMIT ?3"
    return fetch_column(tx, sql, (ending, len(ending), limit))


def supersession(tx: Connection, supersession_id: int) -> Supersession | None:
    """One supersession, or None."""
    sql = f"SELECT {SUPERSESSION_COLUMNS} FROM supersessions WHERE id = ?"
    return fetch_first(tx, Supersession, sql, (supersession_id,))


def supersessions_of(tx: Connection, summary_id: int) -> list[Supersession]:
    """Every supersession that this summary is part of, undone ones too, oldest first."""
    sql = f"SELECT {SUPERSESSION_COLUMNS} FROM supersessions WHERE newer_id = ?1 OR older_id = ?1 ORDER BY at, id"
    return fetch_rows(tx, Supersession, sql, (summary_id,))


def superseded_ids(tx: Connection, summary_ids: Sequence[int]) -> dict[int, list[int]]:
    """Return the older summaries that each of these hides now, the latest three of them."""
    sql = (
        "SELECT newer_id, older_id FROM supersessions WHERE undone_at IS NULL"
        f" AND newer_id IN ({marks(summary_ids)}) ORDER BY older_id DESC"
    )
    found = fetch_groups(tx, sql, summary_ids)
    return {newer: older[:3] for newer, older in found.items()}


def superseder_of(tx: Connection, summary_id: int) -> int | None:
    """The id of the summary that hides this one now."""
    sql = f"SELECT newer_id FROM supersessions x WHERE older_id = ? AND {HIDES}"
    return fetch_int(tx, sql, (summary_id,))


def final_superseder(tx: Connection, summary_id: int) -> int:
    """The end of the chain of supersessions above this summary; itself if nothing hides it."""
    while (above := superseder_of(tx, summary_id)) is not None:
        summary_id = above
    return summary_id


def with_final_superseders(tx: Connection, found: Mapping[int, Summary]) -> dict[int, Summary]:
    """Return these summaries with `superseded_by` set to the end of their chain instead of its next link."""
    return {
        number: one
        if one.superseded_by is None
        else replace(one, superseded_by=final_superseder(tx, one.superseded_by))
        for number, one in found.items()
    }


def add_edges(tx: Connection, edges: Iterable[NewEdge]) -> int:
    """Write edges, leaving those that are there already as they are; how many were new.

    A memory that another of the same or a greater standing contradicts from now on loses confidence.
    """
    new = list(edges)
    before = tx.total_changes()
    with judgments.updating_confidence(tx, _contradicting_summaries(new)):
        tx.executemany(
            "INSERT OR IGNORE INTO edges"
            " (from_kind, from_id, type, to_kind, to_id, confidence, rule, at, detail)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (e.from_kind, e.from_id, e.type.value, e.to_kind, e.to_id, e.confidence, e.rule,
                 e.at, json_text(e.detail))
                for e in new
            ],
        )  # fmt: skip
        written = tx.total_changes() - before
    return int(written)


def _contradicting_summaries(edges: Iterable[NewEdge]) -> set[int]:
    """Return both ends of each contradiction between summaries."""
    return {
        int(end)
        for e in edges
        if e.type is EdgeType.CONTRADICTS and e.from_kind == e.to_kind == "summary"
        for end in (e.from_id, e.to_id)
    }


def _to_edge(*row: Any) -> Edge:
    values = list(row)
    values[3], values[-1] = EdgeType(row[3]), json.loads(row[-1])
    return Edge(*values)


def edges_at(tx: Connection, kind: str, node_id: str, limit: int = 200) -> list[Edge]:
    """The edges that begin or end at a node, oldest first."""
    sql = f"SELECT {_EDGE_COLUMNS} FROM edges WHERE {_AT_NODE} ORDER BY id LIMIT ?3"
    return fetch_rows(tx, _to_edge, sql, (kind, node_id, limit))


def edges_below(tx: Connection, kind: str, stem: str) -> list[Edge]:
    """The edges that end at a node of this kind whose id begins with `stem`, oldest first."""
    sql = (
        f"SELECT {_EDGE_COLUMNS} FROM edges WHERE to_kind = ?1 AND to_id >= ?2"
        " AND to_id < ?2 || char(1114111) ORDER BY id"
    )
    return fetch_rows(tx, _to_edge, sql, (kind, stem))


def settings_beside(tx: Connection, summary_ids: Collection[int]) -> list[SettingsEdge]:
    """Return the settings that these memories, and others of their projects, wrote in the files that these wrote to."""
    rows = tx.execute(
        "WITH mine (file, project_id) AS (SELECT DISTINCT e.to_id, s.project_id FROM edges e"
        " JOIN summaries s ON s.id = CAST(e.from_id AS INTEGER) WHERE e.from_kind = 'summary'"
        # The + keeps SQLite from reading all edges to settings; a bound kind would have it plan each time.
        f" AND e.from_id IN ({marks(summary_ids)}) AND +e.to_kind = '{SETTINGS_NODE}')"
        " SELECT s.id, s.project_id, s.at, e.to_id, e.detail FROM mine m"
        f" JOIN edges e ON e.to_kind = '{SETTINGS_NODE}' AND e.to_id = m.file"
        " JOIN summaries s ON s.id = CAST(e.from_id AS INTEGER) AND s.project_id = m.project_id"
        " ORDER BY s.at, s.id",
        tuple(map(str, summary_ids)),
    )
    return [SettingsEdge(a, b, at, file, json.loads(detail)) for a, b, at, file, detail in rows]


def sources_of(tx: Connection, summary_id: int) -> list[tuple[int, str]]:
    """(event id, quote) of each event that a summary derives from, in order of the event."""
    sql = (
        "SELECT CAST(to_id AS INTEGER), coalesce(detail ->> '$.quote', '') FROM edges WHERE from_kind = 'summary'"
        " AND from_id = ? AND type = 'derives_from' AND to_kind = 'event' ORDER BY 1"
    )
    return fetch_all(tx, sql, (str(summary_id),))


def origin_paths(tx: Connection, summary_ids: Collection[int]) -> dict[int, list[str]]:
    """Summary id → the paths of the files that it was imported from."""
    sql = (
        "SELECT CAST(from_id AS INTEGER), substr(to_id, 1, instr(to_id || '#', '#') - 1) FROM edges"
        f" WHERE from_kind = 'summary' AND from_id IN ({marks(summary_ids)})"
        " AND type = 'derives_from' AND to_kind = 'origin'"
    )
    return fetch_groups(tx, sql, [str(one) for one in summary_ids])


def derived_from(tx: Connection, event_id: int) -> list[int]:
    """The summaries that derive from this event."""
    # The + keeps SQLite from scanning all edges of summaries: what they end at is rarer.
    sql = (
        "SELECT CAST(from_id AS INTEGER) FROM edges WHERE to_kind = 'event' AND to_id = ?"
        " AND type = 'derives_from' AND +from_kind = 'summary' ORDER BY 1"
    )
    return fetch_ids(tx, sql, (str(event_id),))


def files_of_session(tx: Connection, session_id: int, limit: int = 2_000) -> list[str]:
    """The files that the memories of a session mention, the latest `limit` of them."""
    # CROSS keeps SQLite from looking through the edges to all files of the vault.
    sql = (
        "SELECT e.to_id FROM summaries s CROSS JOIN edges e ON e.from_kind = 'summary'"
        " AND e.from_id = CAST(s.id AS TEXT) WHERE s.session_id = ? AND e.to_kind = 'file'"
        " GROUP BY e.to_id ORDER BY max(e.id) DESC LIMIT ?"
    )
    return fetch_column(tx, sql, (session_id, limit))


def has_edge_to(tx: Connection, kind: str, node_id: str, project_ids: Sequence[int]) -> bool:
    """Return whether a memory of one of these projects has an edge to this node."""
    sql = (
        "edges e JOIN summaries s ON s.id = CAST(e.from_id AS INTEGER)"
        " WHERE e.to_kind = ? AND e.to_id = ? AND +e.from_kind = 'summary'"
        f" AND s.project_id IN ({marks(project_ids)})"
    )
    return has_rows(tx, sql, (kind, node_id, *project_ids))


def drop_edges_from(tx: Connection, summary_id: int) -> None:
    """Drop the edges that begin at a summary, before a revision writes them again."""
    against = judgments.contradicting_ids(tx, [summary_id]).get(summary_id, set())
    sql = "DELETE FROM edges WHERE from_kind = 'summary' AND from_id = ?"
    with judgments.updating_confidence(tx, {summary_id, *against}):
        tx.execute(sql, (str(summary_id),))


def drop_edge(
    tx: Connection, start: Node, type_: EdgeType, end: Node, rule: str | None = None
) -> None:
    """Drop one edge, if it is there (and of this rule)."""
    summaries = _contradicting_summaries([NewEdge(*start, type_, *end, "", 0)])
    with judgments.updating_confidence(tx, summaries):
        tx.execute(
            "DELETE FROM edges WHERE from_kind = ?1 AND from_id = ?2 AND type = ?3"
            " AND to_kind = ?4 AND to_id = ?5 AND (?6 IS NULL OR rule = ?6)",
            (*start, type_.value, *end, rule),
        )


def drop_node(tx: Connection, kind: str, node_id: str) -> None:
    """Drop every edge that begins or ends at a deleted node."""
    tx.execute(f"DELETE FROM edges WHERE {_AT_NODE}", (kind, node_id))


def neighbours(tx: Connection, kind: str, node_id: str) -> set[Node]:
    """The nodes that are neither memories nor events at the other ends of a node's edges."""
    sql = (
        "SELECT to_kind, to_id FROM edges WHERE from_kind = ?1 AND from_id = ?2"
        " UNION SELECT from_kind, from_id FROM edges WHERE to_kind = ?1 AND to_id = ?2"
    )
    return {
        one for one in fetch_all(tx, sql, (kind, node_id)) if one[0] not in ("summary", "event")
    }


def drop_orphan_nodes(tx: Connection, nodes: Iterable[Node]) -> None:
    """Drop the edges of those of these nodes that no memory and no event is linked with any more."""
    for kind, node_id in nodes:
        is_linked = tx.execute(
            "SELECT EXISTS (SELECT 1 FROM edges WHERE from_kind = ?1 AND from_id = ?2"
            " AND to_kind IN ('summary', 'event')) OR EXISTS (SELECT 1 FROM edges"
            " WHERE to_kind = ?1 AND to_id = ?2 AND +from_kind IN ('summary', 'event'))",
            (kind, node_id),
        ).get
        if not is_linked:
            drop_node(tx, kind, node_id)


def put_entities(tx: Connection, summary_id: int, entities: Iterable[tuple[str, str]]) -> None:
    """Replace the (name, kind) of each entity that a summary names."""
    tx.execute("DELETE FROM entities WHERE summary_id = ?", (summary_id,))
    sql = "INSERT OR IGNORE INTO entities (summary_id, name, kind) VALUES (?, ?, ?)"
    tx.executemany(sql, [(summary_id, storable(name), kind) for name, kind in entities])


def entities_of(tx: Connection, summary_ids: Sequence[int]) -> dict[int, frozenset[str]]:
    """The entities that these summaries name, by id; a summary that names none is left out."""
    sql = f"SELECT summary_id, name FROM entities WHERE summary_id IN ({marks(summary_ids)})"
    found = fetch_groups(tx, sql, summary_ids)
    return {number: frozenset(names) for number, names in found.items()}


# ── Consolidation runs that changed something, so that they can be inspected and undone ──────────


_RUN_COLUMNS = "id, at, examined, pairs, superseded, contradicts, similar, undone_at"
"""In the order of the fields of Run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One consolidation run and how many rows it changed. Times are UTC milliseconds."""

    id: int
    at: int
    examined: int
    pairs: int
    superseded: int
    contradicts: int
    similar: int
    undone_at: int | None = None


def begin_run(tx: Connection, at: int) -> int:
    """Start a run; its id."""
    counts = dict.fromkeys(("examined", "pairs", "superseded", "contradicts", "similar"), 0)
    return insert_returning_id(tx, "runs", {"at": at, **counts})


def finish_run(tx: Connection, run: Run) -> None:
    """Store what a run changed; a run that changed nothing leaves no row."""
    if not (run.superseded or run.contradicts or run.similar):
        tx.execute("DELETE FROM runs WHERE id = ?", (run.id,))
        return
    sql = "UPDATE runs SET examined = ?, pairs = ?, superseded = ?, contradicts = ?, similar = ? WHERE id = ?"
    tx.execute(sql, (run.examined, run.pairs, run.superseded, run.contradicts, run.similar, run.id))


def mark_run_undone(tx: Connection, run_id: int, at: int) -> None:
    """Mark the whole run as undone."""
    tx.execute("UPDATE runs SET undone_at = ? WHERE id = ?", (at, run_id))


def get_run(tx: Connection, run_id: int) -> Run | None:
    """One run, or None."""
    return fetch_first(tx, Run, f"SELECT {_RUN_COLUMNS} FROM runs WHERE id = ?", (run_id,))


def latest_runs(tx: Connection, limit: int) -> list[Run]:
    """The latest runs, newest first."""
    return fetch_rows(
        tx, Run, f"SELECT {_RUN_COLUMNS} FROM runs ORDER BY id DESC LIMIT ?", (limit,)
    )


def run_supersessions(tx: Connection, run_id: int) -> list[Supersession]:
    """The supersessions that a run made and that still hold."""
    sql = f"SELECT {SUPERSESSION_COLUMNS} FROM supersessions WHERE run = ? AND undone_at IS NULL ORDER BY id"
    return fetch_rows(tx, Supersession, sql, (run_id,))


def run_contradictions(tx: Connection, run_id: int) -> list[tuple[int, int]]:
    """(newer, older) of each pair that a run found to contradict each other."""
    sql = (
        "SELECT CAST(from_id AS INTEGER), CAST(to_id AS INTEGER) FROM edges"
        " WHERE rule = 'near-duplicate' AND detail ->> '$.run' = ? AND type = 'contradicts' ORDER BY id"
    )
    return fetch_all(tx, sql, (run_id,))


def similar_pairs(tx: Connection, rule: str, limit: int) -> list[tuple[int, int]]:
    """(newer, older) of the latest pairs that a run found similar and left both."""
    sql = (
        "SELECT CAST(from_id AS INTEGER), CAST(to_id AS INTEGER) FROM edges WHERE type = 'similar_to'"
        " AND rule = ? AND from_kind = 'summary' AND to_kind = 'summary' ORDER BY id DESC LIMIT ?"
    )
    return fetch_all(tx, sql, (rule, limit))


def assign_to_run(tx: Connection, supersession_id: int, run_id: int) -> None:
    """Note which run made a supersession."""
    tx.execute("UPDATE supersessions SET run = ? WHERE id = ?", (run_id, supersession_id))
