"""What was said, word for word: the verbatim passages of conversations and their full text. Derived.

A turn is an event that carries words: a prompt, an answer, a subagent's answer, the summary at a
compaction. Triggers keep the full text in step with the events, so a forgotten event has no turn.
"""

from dataclasses import dataclass

import apsw


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """One turn. `at` is UTC milliseconds."""

    event_id: int
    session_id: int
    session_title: str | None
    role: str
    """`user` or `assistant`."""
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """Which turns may be found; None means no bound. Both ends of a time are included."""

    project_ids: tuple[int, ...] | None = None
    session_id: int | None = None
    since: int | None = None
    until: int | None = None


def match_turns(
    tx: apsw.Connection, expression: str, where: TurnFilter, limit: int
) -> list[SpokenTurn]:
    """The turns that fit an FTS5 expression that `recall` has quoted; best first, then the newer."""
    clauses, values = _bounds(where)
    # The best are found first, so that only theirs of many long texts are read out of the events.
    rows = tx.execute(
        "WITH best (id, score) AS MATERIALIZED (SELECT e.id, bm25(turns_fts) FROM turns_fts"
        " CROSS JOIN events e ON e.id = turns_fts.rowid JOIN sessions s ON s.id = e.session_id"
        f" WHERE turns_fts MATCH ? {clauses}"
        " ORDER BY bm25(turns_fts), e.at DESC, e.id DESC LIMIT ?)"
        " SELECT t.id, e.session_id, s.title, t.kind, e.at, t.text FROM best"
        " JOIN turns t ON t.id = best.id JOIN events e ON e.id = best.id"
        " JOIN sessions s ON s.id = e.session_id ORDER BY best.score, e.at DESC, e.id DESC",
        (expression, *values, limit),
    )
    return [
        SpokenTurn(
            int(event_id), int(session_id), title, "user" if kind == "prompt" else "assistant",
            int(at), text,
        )
        for event_id, session_id, title, kind, at, text in rows
    ]  # fmt: skip


def _bounds(where: TurnFilter) -> tuple[str, tuple[int, ...]]:
    clauses = ""
    values: list[int] = []
    if where.project_ids is not None:
        clauses += f" AND s.project_id IN ({','.join('?' * len(where.project_ids))})"
        values += where.project_ids
    for column, bound in (
        ("e.session_id =", where.session_id),
        ("e.at >=", where.since),
        ("e.at <=", where.until),
    ):
        if bound is not None:
            clauses += f" AND {column} ?"
            values.append(bound)
    return clauses, tuple(values)


def rebuild_turns(tx: apsw.Connection) -> None:
    """Make the full text anew from the events."""
    tx.execute("INSERT INTO turns_fts (turns_fts) VALUES ('delete-all')")
    tx.execute("INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns ORDER BY id")


def purge_turns(tx: apsw.Connection) -> None:
    """Merge FTS5's segments, so that nothing of a deleted turn stays in them."""
    tx.execute("INSERT INTO turns_fts (turns_fts) VALUES ('optimize')")
