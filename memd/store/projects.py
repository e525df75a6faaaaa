"""projects, sessions, switches."""

from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from memd.models import CLOCK_SKEW_MAX_MS, GLOBAL_PROJECT, Project, Session, SessionRef
from memd.store import ledger
from memd.text import digest, storable

# MERGED from memd.store.projects:
# MERGED Projects and sessions: where events and memories belong.
# MERGED
# MERGED A project that was merged into another lives on as an alias: whatever still says its key means the
# MERGED other one, so every look-up by key goes through `by_key`. Not here: what a merge decides.


_PROJECT = "id, key, name, reason"
_FOR_EVER = 2**62
_SESSION = "id, uid, client, key, project_id, directory, title, started_at, last_event_at"


@dataclass(frozen=True, slots=True)
class ProjectCounts:
    """How much there is of a project; None where there is no event, or no memory."""

    sessions: int = 0
    memories: int = 0
    events: int = 0
    last_event_at: int | None = None
    last_memory_at: int | None = None


@dataclass(frozen=True, slots=True)
class MergedRows:
    """What went from one project to another."""

    sessions: int
    memories: int
    aliases: int


def ensure_project(tx: apsw.Connection, key: str, name: str, reason: str, now: int) -> int:
    """The id of the project with this key, or of the one it was merged into; made if it is new."""
    key, name = storable(key), storable(name)
    if (found := project_by_key(tx, key)) is not None:
        return found.id
    return int(
        tx.execute(
            "INSERT INTO projects (key, name, reason, created_at) VALUES (?, ?, ?, ?) RETURNING id",
            (key, name, reason, now),
        ).get
    )


def ensure_global(tx: apsw.Connection, now: int) -> int:
    """The id of the project that every other one sees."""
    why = "memories that hold everywhere"
    return ensure_project(tx, GLOBAL_PROJECT, GLOBAL_PROJECT, why, now)


def project(tx: apsw.Connection, project_id: int) -> Project | None:
    """One project, or None."""
    row = tx.execute(f"SELECT {_PROJECT} FROM projects WHERE id = ?", (project_id,)).fetchone()
    return Project(*row) if row else None


def project_by_key(tx: apsw.Connection, key: str) -> Project | None:
    """The project with this key, or the one that it was merged into; None if there is neither."""
    rows = tx.execute(
        f"SELECT {_PROJECT} FROM projects WHERE key = ?1"
        " OR id = (SELECT project_id FROM aliases WHERE key = ?1)",
        (storable(key),),
    )
    return next((Project(*row) for row in rows), None)


def projects(tx: apsw.Connection) -> list[Project]:
    """Every project, oldest first."""
    return [Project(*row) for row in tx.execute(f"SELECT {_PROJECT} FROM projects ORDER BY id")]


def find_projects(tx: apsw.Connection, name: str) -> list[Project]:
    """The projects whose key or name is exactly this, the one with this key first.

    Failing these, those that a project of this name was merged into.
    """
    rows = tx.execute(
        f"SELECT {_PROJECT} FROM projects WHERE key = ?1 OR name = ?1"
        " OR id = (SELECT project_id FROM aliases WHERE key = ?1) ORDER BY key <> ?1, id",
        (name,),
    )
    if found := [Project(*row) for row in rows]:
        return found
    rows = tx.execute(
        f"SELECT {_PROJECT} FROM projects WHERE id IN (SELECT project_id FROM aliases"
        " WHERE substr(key, -length(?1) - 1) = '/' || ?1) ORDER BY id",
        (name,),
    )
    return [Project(*row) for row in rows]


def project_aliases(tx: apsw.Connection) -> dict[int, list[str]]:
    """Project → the keys of what was merged into it, oldest first."""
    found: dict[int, list[str]] = {}
    for project_id, key in tx.execute("SELECT project_id, key FROM aliases ORDER BY at, key"):
        found.setdefault(project_id, []).append(key)
    return found


def count_by_project(tx: apsw.Connection) -> dict[int, ProjectCounts]:
    """How much there is of every project, by its id."""
    happened = {
        project_id: (sessions, last_at)
        for project_id, sessions, last_at in tx.execute(
            "SELECT project_id, count(*), max(last_event_at) FROM sessions GROUP BY project_id"
        )
    }
    kept = "SELECT project_id, {} FROM summaries GROUP BY project_id"
    memories = _counted(tx, kept.format("count(*)"))
    newest = _counted(tx, kept.format("max(at)"))
    events = _counted(
        tx,
        "SELECT s.project_id, sum(n) FROM sessions s JOIN (SELECT session_id, count(*) n"
        " FROM events GROUP BY session_id) e ON e.session_id = s.id GROUP BY s.project_id",
    )
    never = (0, None)
    return {
        one.id: ProjectCounts(
            happened.get(one.id, never)[0],
            memories.get(one.id, 0),
            events.get(one.id, 0),
            happened.get(one.id, never)[1],
            newest.get(one.id),
        )
        for one in projects(tx)
    }


def _counted(tx: apsw.Connection, sql: str) -> dict[int, int]:
    return {int(project_id): int(count) for project_id, count in tx.execute(sql)}


def shared_topics(tx: apsw.Connection, one_id: int, other_id: int) -> list[str]:
    """The topic keys that both projects have memories of one kind on."""
    rows = tx.execute(
        "SELECT DISTINCT a.topic_key FROM summaries a JOIN summaries b ON b.topic_key = a.topic_key"
        " AND b.kind = a.kind AND b.project_id = ?2 WHERE a.project_id = ?1"
        " AND a.topic_key IS NOT NULL ORDER BY 1",
        (one_id, other_id),
    )
    return [str(row[0]) for row in rows]


def rename_project(tx: apsw.Connection, project_id: int, name: str) -> None:
    """Call a project something else; its key stays."""
    tx.execute("UPDATE projects SET name = ? WHERE id = ?", (storable(name), project_id))


def merge_project(tx: apsw.Connection, source: Project, into: Project, now: int) -> MergedRows:
    """Give everything of one project to another, and let its keys mean that one from now on.

    Its memories wait to be compared with their new neighbours.
    """
    tx.execute("UPDATE sessions SET project_id = ? WHERE project_id = ?", (into.id, source.id))
    sessions = tx.changes()
    tx.execute(
        "UPDATE summaries SET project_id = ?, consolidated = 0 WHERE project_id = ?",
        (into.id, source.id),
    )
    memories = tx.changes()
    tx.execute("UPDATE aliases SET project_id = ? WHERE project_id = ?", (into.id, source.id))
    moved = MergedRows(sessions, memories, tx.changes())
    tx.execute("DELETE FROM projects WHERE id = ?", (source.id,))
    tx.execute("INSERT INTO aliases VALUES (?, ?, ?)", (source.key, into.id, now))
    return moved


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
    uid = digest(ref.client, ref.key)
    ledger.remove_forgotten(tx, uid)
    return int(
        tx.execute(
            "INSERT INTO sessions (id, uid, client, key, project_id, directory, started_at, last_event_at)"
            " SELECT 1 + max(coalesce((SELECT max(id) FROM sessions), 0), coalesce((SELECT"
            " CAST(value AS INTEGER) FROM meta WHERE key = 'sessions_last'), 0)),"
            " ?, ?, ?, ?, ?, ?, ? RETURNING id",
            (uid, ref.client, ref.key, project_id, ref.directory, at, at),
        ).get
    )


def session_and_project(tx: apsw.Connection, ref: SessionRef) -> tuple[int, str] | None:
    """(id, key of its project) of a client's session; None if it is new."""
    row = tx.execute(
        "SELECT s.id, p.key FROM sessions s JOIN projects p ON p.id = s.project_id"
        " WHERE s.client = ? AND s.key = ?",
        (storable(ref.client), storable(ref.key)),
    ).fetchone()
    return (int(row[0]), str(row[1])) if row else None


def extend_session(
    tx: apsw.Connection, session_id: int, at: int, title: str | None, until: int | None = None
) -> None:
    """Widen the session's span by `at`, or by what is from `at` `until`; title it if nothing does."""
    tx.execute(
        "UPDATE sessions SET started_at = min(started_at, ?1), last_event_at = max(last_event_at, ?4),"
        " title = coalesce(title, ?2) WHERE id = ?3",
        (at, title and storable(title), session_id, at if until is None else until),
    )


def clear_title(tx: apsw.Connection, session_id: int) -> None:
    """Take a session's title away, because the prompt that it came from was forgotten."""
    tx.execute("UPDATE sessions SET title = NULL WHERE id = ?", (session_id,))


def forget_session(tx: apsw.Connection, session_id: int) -> bool:
    """Take away what a session says of itself, and it if nothing belongs to it; whether it is gone."""
    tx.execute("DELETE FROM injections WHERE session_id = ?", (session_id,))
    tx.execute("UPDATE sessions SET title = NULL, directory = NULL WHERE id = ?", (session_id,))
    # Whoever still knows its number must not take the next new session for it.
    tx.execute(
        "INSERT OR REPLACE INTO meta SELECT 'sessions_last', max(id) FROM (SELECT id FROM sessions"
        " UNION SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'sessions_last')"
    )
    tx.execute(
        "DELETE FROM sessions WHERE id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM events WHERE session_id = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM summaries WHERE session_id = ?1)",
        (session_id,),
    )
    return tx.changes() > 0


def forget_project(tx: apsw.Connection, project_id: int) -> None:
    """Take a project and its other keys away, if nothing belongs to it any more."""
    is_held = tx.execute(
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE project_id = ?1)"
        " OR EXISTS (SELECT 1 FROM summaries WHERE project_id = ?1)",
        (project_id,),
    ).get
    if not is_held:
        tx.execute("DELETE FROM aliases WHERE project_id = ?", (project_id,))
        tx.execute("DELETE FROM projects WHERE id = ?", (project_id,))


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


def recent_sessions(
    tx: apsw.Connection, project_id: int, limit: int, now: int
) -> list[Session]:
    """The sessions of a project that began last, newest first; what a wrong clock dated ahead only if all are."""
    for until in (now + CLOCK_SKEW_MAX_MS, _FOR_EVER):
        rows = tx.execute(
            f"SELECT {_SESSION} FROM sessions WHERE project_id = ? AND started_at < ?"
            " ORDER BY started_at DESC LIMIT ?",
            (project_id, until, limit),
        )
        if found := [Session(*row) for row in rows]:
            return found
    return []


def session_of_client(tx: apsw.Connection, client: str, key: str) -> Session | None:
    """The session that a client calls this, or None."""
    row = tx.execute(
        f"SELECT {_SESSION} FROM sessions WHERE client = ? AND key = ?",
        (storable(client), storable(key)),
    ).fetchone()
    return Session(*row) if row else None


# MERGED from memd.store.switches:
# MERGED Where a person wants less of memd than everywhere: per project and per session.
# MERGED
# MERGED No row means on. A session's row says more than its project's, so one session can be kept out of a
# MERGED project that is on, or let into one that is off. A project's key is looked up through `aliases`, so
# MERGED what was said of a project holds for every directory that was merged into it.


PROJECT_SCOPE = "project"
SESSION_SCOPE = "session"
_WORDS = {
    (True, True): "switched on",
    (False, False): "switched off",
    (True, False): "switched to capture only",
    (False, True): "switched to recall only",
}


@dataclass(frozen=True, slots=True)
class Switch:
    """What holds in one place, and in words why."""

    captures: bool
    """Whether what the agent does there is kept."""
    recalls: bool
    """Whether memories are shown there unasked. Who asks is always answered."""
    reason: str
    """Such as `switched off for project ledger`; `on everywhere` if nobody said anything."""
    scope: str = ""
    """Whose row it is: `project` or `session`; empty if there is none."""

    @property
    def is_on(self) -> bool:
        """Whether nothing is switched off."""
        return self.captures and self.recalls


SWITCHED_ON = Switch(True, True, "on everywhere")
"""What holds where nobody said anything."""


@dataclass(frozen=True, slots=True)
class SwitchRow:
    """One row: what a person said of one project or session."""

    scope: str
    target: str
    """The project's key, or the client's own id of the session."""
    name: str
    """What the project is called; the session's title, or its id."""
    captures: bool
    recalls: bool
    at: int


def switch_words(captures: bool, recalls: bool) -> str:
    """What was said, such as `switched off` or `switched to capture only`."""
    return _WORDS[captures, recalls]


def effective_switch(tx: apsw.Connection, project_key: str, session_key: str | None) -> Switch:
    """What holds for this session (the client's own id) of this project; unknown ones are on."""
    key = _canonical(tx, project_key)
    for scope, target in ((SESSION_SCOPE, session_key), (PROJECT_SCOPE, key)):
        if target is None:
            continue
        row = tx.execute(
            "SELECT captures, recalls FROM switches WHERE scope = ? AND target = ?",
            (scope, storable(target)),
        ).fetchone()
        if row is not None:
            captures, recalls = bool(row[0]), bool(row[1])
            where = (
                "this session"
                if scope == SESSION_SCOPE
                else f"project {_project_name(tx, key)}"
            )
            reason = f"{switch_words(captures, recalls)} for {where}"
            return Switch(captures, recalls, reason, scope)
    return SWITCHED_ON


def has_switches(tx: apsw.Connection) -> bool:
    """Whether anything at all was said, of any place."""
    return bool(tx.execute("SELECT EXISTS (SELECT 1 FROM switches)").get)


def put_switch(
    tx: apsw.Connection, scope: str, target: str, captures: bool, recalls: bool, now: int
) -> None:
    """Say what holds for a project's key or a session's id, instead of what was said before."""
    tx.execute(
        "INSERT OR REPLACE INTO switches (scope, target, captures, recalls, at)"
        " VALUES (?, ?, ?, ?, ?)",
        (scope, storable(_target(tx, scope, target)), int(captures), int(recalls), now),
    )


def drop_switch(tx: apsw.Connection, scope: str, target: str) -> bool:
    """Let what holds elsewhere hold here again; whether anything had been said."""
    tx.execute(
        "DELETE FROM switches WHERE scope = ? AND target = ?",
        (scope, storable(_target(tx, scope, target))),
    )
    return tx.changes() > 0


def list_switches(tx: apsw.Connection) -> list[SwitchRow]:
    """Everything that was said, projects first, newest first."""
    rows = tx.execute(
        "SELECT scope, target, captures, recalls, at FROM switches ORDER BY scope, at DESC, target"
    )
    return [
        SwitchRow(
            scope,
            target,
            _session_name(tx, target) if scope == SESSION_SCOPE else _project_name(tx, target),
            bool(captures),
            bool(recalls),
            at,
        )
        for scope, target, captures, recalls, at in rows
    ]


def _target(tx: apsw.Connection, scope: str, target: str) -> str:
    return _canonical(tx, target) if scope == PROJECT_SCOPE else target


def _canonical(tx: apsw.Connection, key: str) -> str:
    """The key of the project that this one was merged into, or the key itself."""
    found = project_by_key(tx, key)
    return key if found is None else found.key


def _project_name(tx: apsw.Connection, key: str) -> str:
    """Its name; of a project that nothing is known of yet, the last part of its key."""
    found = project_by_key(tx, key)
    return key.rstrip("/").rpartition("/")[2] or key if found is None else found.name


def _session_name(tx: apsw.Connection, key: str) -> str:
    found = tx.execute("SELECT title FROM sessions WHERE key = ? LIMIT 1", (key,)).get
    return key if found is None else str(found)
