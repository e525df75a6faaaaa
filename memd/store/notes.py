"""What agents noted, and when they were asked to: the table `asks`."""

from apsw import Connection

from memd.store.queries import count_rows, fetch_int


def record_ask(tx: Connection, session_id: int, through: int, characters: int, now: int) -> None:
    """Note that the agent of a session was asked about its exchanges up to the event `through`."""
    tx.execute(
        "INSERT INTO asks (session_id, through, characters, at) VALUES (?, ?, ?, ?)",
        (session_id, through, characters, now),
    )


def last_noted(tx: Connection, session_id: int) -> int:
    """The last event of a session that its agent was asked about, or that came before its last note; 0 if none."""
    asked = fetch_int(tx, "SELECT max(through) FROM asks WHERE session_id = ?", (session_id,))
    noted = fetch_int(
        tx,
        "SELECT max(e.id) FROM events e WHERE e.session_id = ?1 AND e.kind = 'prompt' AND e.at <="
        " (SELECT max(created_at) FROM summaries WHERE session_id = ?1 AND source = 'agent')",
        (session_id,),
    )
    return max(asked or 0, noted or 0)


def count_prompts(tx: Connection, session_id: int, since: int, except_id: int | None) -> int:
    """Prompts of a session after the event `since`."""
    return count_rows(
        tx,
        "events WHERE session_id = ? AND kind = 'prompt' AND agent IS NULL AND id > ? AND id <> ?",
        (session_id, since, except_id or 0),
    )


def tools_after(tx: Connection, session_id: int, since: int) -> list[tuple[str, int]]:
    """(tool, time) of each result of a session after the event `since`, in order of time."""
    rows = tx.execute(
        "SELECT coalesce(tool, ''), at FROM events WHERE session_id = ? AND id > ? AND agent IS NULL"
        " AND kind IN ('tool_result', 'tool_failure') ORDER BY at, id",
        (session_id, since),
    )
    return [(str(tool), int(at)) for tool, at in rows]


def count_vain_asks(tx: Connection, project_id: int, client: str, latest: int) -> int:
    """How many of the latest asks of a project and client its agents noted nothing after, within the same session."""
    return count_rows(
        tx,
        "(SELECT a.at, a.session_id, coalesce((SELECT min(b.at) FROM asks b WHERE b.session_id = a.session_id"
        " AND b.at > a.at), a.at + 86400000) AS until FROM asks a JOIN sessions s ON s.id = a.session_id"
        " WHERE s.project_id = ? AND s.client = ? ORDER BY a.at DESC LIMIT ?) x WHERE NOT EXISTS (SELECT 1"
        " FROM summaries m WHERE m.session_id = x.session_id AND m.source = 'agent' AND m.created_at >= x.at"
        " AND m.created_at < x.until)",
        (project_id, client, latest),
    )
