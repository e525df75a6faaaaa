"""Full text of what users and agents said, word for word.

A turn is an event that carries words: a prompt, an answer, what the agent said before it, what the user said
when refusing a tool call, a subagent's answer, the summary at a compaction. Triggers keep the full text equal to the events, so a forgotten event has no turn.
"""

from dataclasses import dataclass

from apsw import Connection

from memd.models import AGENTS_IMPORT
from memd.store.filter import join_bounds, marks
from memd.store.queries import fetch_rows


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
    """Conditions on the turns that may be found; None means no bound. Both ends of a time are included."""

    project_ids: tuple[int, ...] | None = None
    session_id: int | None = None
    since: int | None = None
    until: int | None = None

    def condition(self) -> tuple[str, tuple[int, ...]]:
        """The condition on an event `e` of a session `s` in SQL, and its values."""
        condition, values = join_bounds(
            ("e.session_id =", self.session_id), ("e.at >=", self.since), ("e.at <=", self.until)
        )
        if self.project_ids is not None:
            condition += f" AND s.project_id IN ({marks(self.project_ids)})"
            values += self.project_ids
        return condition, values


_SPOKEN = (
    f"e.id, e.session_id, s.title, iif(t.kind IN ('prompt', 'tool_refused') AND e.source <> '{AGENTS_IMPORT}', 'user',"
    " 'assistant'), e.at, t.text"
)


def latest_turns(tx: Connection, where: TurnFilter, limit: int) -> list[SpokenTurn]:
    """The latest turns, the newest first."""
    condition, values = where.condition()
    sql = (
        f"SELECT {_SPOKEN} FROM events e JOIN turns t ON t.id = e.id JOIN sessions s ON s.id = e.session_id"
        f" WHERE {condition} ORDER BY e.at DESC, e.id DESC LIMIT ?"
    )
    return fetch_rows(tx, SpokenTurn, sql, (*values, limit))


def match_turns(tx: Connection, expression: str, where: TurnFilter, limit: int) -> list[SpokenTurn]:
    """The turns that match an FTS5 expression, which `recall` has quoted; best first, then newer ones."""
    condition, values = where.condition()
    # Rank first, so that only the texts of the best turns are read from the events.
    sql = (
        "WITH best (id, score) AS MATERIALIZED (SELECT e.id, bm25(turns_fts) FROM turns_fts"
        " CROSS JOIN events e ON e.id = turns_fts.rowid JOIN sessions s ON s.id = e.session_id"
        f" WHERE turns_fts MATCH ? AND {condition}"
        " ORDER BY bm25(turns_fts), e.at DESC, e.id DESC LIMIT ?)"
        f" SELECT {_SPOKEN} FROM best JOIN turns t ON t.id = best.id JOIN events e ON e.id = best.id"
        " JOIN sessions s ON s.id = e.session_id ORDER BY best.score, e.at DESC, e.id DESC"
    )
    return fetch_rows(tx, SpokenTurn, sql, (expression, *values, limit))


def rebuild_turns(tx: Connection) -> None:
    """Build the full text again from the events."""
    tx.execute("INSERT INTO turns_fts (turns_fts) VALUES ('delete-all')")
    tx.execute("INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns ORDER BY id")


def purge_turns(tx: Connection) -> None:
    """Merge FTS5's segments, so that they hold nothing of deleted turns."""
    tx.execute("INSERT INTO turns_fts (turns_fts) VALUES ('optimize')")
