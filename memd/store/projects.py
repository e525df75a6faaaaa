"""Projects and sessions: where events and memories belong."""

from collections.abc import Iterable

import apsw

from memd.models import GLOBAL_PROJECT, Project, Session, SessionRef
from memd.text import digest, storable

_PROJECT = "id, key, name, reason"
_SESSION = "id, uid, client, key, project_id, directory, title, started_at, last_event_at"


def ensure_project(tx: apsw.Connection, key: str, name: str, reason: str, now: int) -> int:
    """The id of the project with this key; made if it is new."""
    key, name = storable(key), storable(name)
    found = tx.execute("SELECT id FROM projects WHERE key = ?", (key,)).get
    if found is not None:
        return int(found)
    return int(
        tx.execute(
            "INSERT INTO projects (key, name, reason, created_at) VALUES (?, ?, ?, ?) RETURNING id",
            (key, name, reason, now),
        ).get
    )


def ensure_global(tx: apsw.Connection, now: int) -> int:
    """The id of the project that every other one sees."""
    return ensure_project(
        tx, GLOBAL_PROJECT, GLOBAL_PROJECT, "memories that hold everywhere", now
    )


def project(tx: apsw.Connection, project_id: int) -> Project | None:
    """One project, or None."""
    row = tx.execute(f"SELECT {_PROJECT} FROM projects WHERE id = ?", (project_id,)).fetchone()
    return Project(*row) if row else None


def projects(tx: apsw.Connection) -> list[Project]:
    """Every project, oldest first."""
    return [Project(*row) for row in tx.execute(f"SELECT {_PROJECT} FROM projects ORDER BY id")]


def find_projects(tx: apsw.Connection, name: str) -> list[Project]:
    """The projects whose key or name is exactly this."""
    rows = tx.execute(
        f"SELECT {_PROJECT} FROM projects WHERE key = ?1 OR name = ?1 ORDER BY id", (name,)
    )
    return [Project(*row) for row in rows]


def ensure_session(tx: apsw.Connection, ref: SessionRef, project_id: int, at: int) -> int:
    """The id of this client's session; made if it is new. An existing one keeps its project."""
    ref = SessionRef(
        storable(ref.client), storable(ref.key), ref.directory and storable(ref.directory)
    )
    found = tx.execute(
        "SELECT id FROM sessions WHERE client = ? AND key = ?", (ref.client, ref.key)
    ).get
    if found is not None:
        return int(found)
    return int(
        tx.execute(
            "INSERT INTO sessions (uid, client, key, project_id, directory, started_at, last_event_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                digest(ref.client, ref.key),
                ref.client,
                ref.key,
                project_id,
                ref.directory,
                at,
                at,
            ),
        ).get
    )


def session_happened(tx: apsw.Connection, session_id: int, at: int, title: str | None) -> None:
    """Widen the session's span to `at`, and title it if it has no title yet."""
    tx.execute(
        "UPDATE sessions SET started_at = min(started_at, ?1), last_event_at = max(last_event_at, ?1),"
        " title = coalesce(title, ?2) WHERE id = ?3",
        (at, title and storable(title), session_id),
    )


def untitle(tx: apsw.Connection, session_id: int) -> None:
    """Take a session's title away, because the prompt that it came from was forgotten."""
    tx.execute("UPDATE sessions SET title = NULL WHERE id = ?", (session_id,))


def session(tx: apsw.Connection, session_id: int) -> Session | None:
    """One session, or None."""
    row = tx.execute(f"SELECT {_SESSION} FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return Session(*row) if row else None


def sessions(tx: apsw.Connection, session_ids: Iterable[int]) -> dict[int, Session]:
    """These sessions by id; unknown ids are left out."""
    marks = list(session_ids)
    rows = tx.execute(
        f"SELECT {_SESSION} FROM sessions WHERE id IN ({','.join('?' * len(marks))})", marks
    )
    return {row[0]: Session(*row) for row in rows}


def find_sessions(tx: apsw.Connection, key: str) -> list[Session]:
    """Sessions whose client key or uid begins with this, newest first; at most ten."""
    rows = tx.execute(
        f"SELECT {_SESSION} FROM sessions WHERE substr(key, 1, length(?1)) = ?1"
        " OR substr(uid, 1, length(?1)) = ?1 ORDER BY started_at DESC LIMIT 10",
        (key,),
    )
    return [Session(*row) for row in rows]
