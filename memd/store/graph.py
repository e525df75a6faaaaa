"""Questions to the graph of edges: which files a session knows, and who tells of a node.

Edges are written and dropped in links.py.
"""

from collections.abc import Sequence

import apsw


def files_of_session(tx: apsw.Connection, session_id: int, limit: int = 2_000) -> list[str]:
    """The files that the memories of a session tell of, the latest `limit` of them."""
    rows = tx.execute(
        "SELECT e.to_id FROM summaries s JOIN edges e ON e.from_kind = 'summary'"
        " AND e.from_id = CAST(s.id AS TEXT) WHERE s.session_id = ? AND e.to_kind = 'file'"
        " GROUP BY e.to_id ORDER BY max(e.id) DESC LIMIT ?",
        (session_id, limit),
    )
    return [str(row[0]) for row in rows]


def told_of(tx: apsw.Connection, kind: str, node_id: str, project_ids: Sequence[int]) -> bool:
    """Whether a memory of one of these projects has an edge to this node."""
    return bool(
        tx.execute(
            "SELECT EXISTS (SELECT 1 FROM edges e JOIN summaries s ON s.id = CAST(e.from_id AS INTEGER)"
            " WHERE e.to_kind = ? AND e.to_id = ? AND +e.from_kind = 'summary'"
            f" AND s.project_id IN ({','.join('?' * len(project_ids))}))",
            (kind, node_id, *project_ids),
        ).get
    )
