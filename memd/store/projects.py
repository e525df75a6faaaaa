"""Projects and sessions, where events and memories belong, and the switches that a user set for them.

A project that was merged into another lives on as an alias: its key means the other project from then
on, so every lookup by key goes through `project_by_key`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apsw import Connection

from memd.models import (
    BRANCH,
    CLOCK_SKEW_MAX_MS,
    GLOBAL_PROJECT,
    REMOTE,
    TITLE_EVENT,
    TITLE_KINDS,
    Project,
    Session,
    SessionRef,
)
from memd.store import ledger
from memd.store.filter import marks
from memd.store.queries import (
    count_rows,
    fetch_all,
    fetch_column,
    fetch_groups,
    fetch_ids,
    fetch_int,
    fetch_rows,
    has_rows,
    insert_returning_id,
    json_text,
    last_id,
)
from memd.text import digest, one_line, storable

_PROJECT_COLUMNS = "id, key, name, reason"
"""In the order of the fields of Project."""
_SESSION_COLUMNS = "id, uid, client, key, project_id, directory, title, started_at, last_event_at"
"""In the order of the fields of Session."""
_LAST_SESSION_NOTE = "sessions_last"
_TIME_MAX = 2**62
"""UTC milliseconds later than any event."""


@dataclass(frozen=True, slots=True)
class ProjectCounts:
    """Counts of a project's rows; a time is None where there is no event, or no memory."""

    sessions: int = 0
    memories: int = 0
    events: int = 0
    last_event_at: int | None = None
    last_memory_at: int | None = None


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Counts of the rows that a merge moved from one project to another."""

    sessions: int
    memories: int
    aliases: int


@dataclass(frozen=True, slots=True)
class MergeRecord:
    """A project as it was before it was merged into another: its row, and the ids of what it had."""

    key: str
    name: str
    reason: str
    created_at: int
    sessions: Sequence[int]
    summaries: Sequence[int]
    aliases: Sequence[str]


# ── Projects ───────────────────────────────────────────────────────────────────────────────────


def ensure_project(tx: Connection, key: str, name: str, reason: str, now: int) -> int:
    """The id of the project with this key, or of the one it was merged into; created if it is new."""
    key, name = storable(key), storable(name)
    if (found := project_by_key(tx, key)) is not None:
        return found.id
    row = {"key": key, "name": name, "reason": reason, "created_at": now}
    return insert_returning_id(tx, "projects", row)


def ensure_global(tx: Connection, now: int) -> int:
    """The id of the project that every other one sees."""
    reason = "memories that hold everywhere"
    return ensure_project(tx, GLOBAL_PROJECT, GLOBAL_PROJECT, reason, now)


def _select_projects(tx: Connection, rest: str, *values: object) -> list[Project]:
    return fetch_rows(tx, Project, f"SELECT {_PROJECT_COLUMNS} FROM projects {rest}", values)


def project(tx: Connection, project_id: int) -> Project | None:
    """One project, or None."""
    return next(iter(_select_projects(tx, "WHERE id = ?", project_id)), None)


def project_keys(tx: Connection, project_ids: Iterable[int]) -> dict[int, str]:
    """The keys of these projects by id: a directory, or another name; unknown ids are left out."""
    ids = list(project_ids)
    return {one.id: one.key for one in _select_projects(tx, f"WHERE id IN ({marks(ids)})", *ids)}


def project_by_key(tx: Connection, key: str) -> Project | None:
    """The project with this key, or the one that it was merged into; None if there is neither."""
    found = _select_projects(
        tx, "WHERE key = ?1 OR id = (SELECT project_id FROM aliases WHERE key = ?1)", storable(key)
    )
    return next(iter(found), None)


def projects(tx: Connection) -> list[Project]:
    """Every project, oldest first."""
    return _select_projects(tx, "ORDER BY id")


def find_projects(tx: Connection, name: str) -> list[Project]:
    """The projects whose key or name is exactly this, the one with this key first.

    Without any, those that a project of this name was merged into.
    """
    return _select_projects(
        tx,
        "WHERE key = ?1 OR name = ?1 OR id = (SELECT project_id FROM aliases WHERE key = ?1)"
        " ORDER BY key <> ?1, id",
        name,
    ) or _select_projects(
        tx,
        "WHERE id IN (SELECT project_id FROM aliases"
        " WHERE substr(key, -length(?1) - 1) = '/' || ?1) ORDER BY id",
        name,
    )


def project_aliases(tx: Connection) -> dict[int, list[str]]:
    """Project → the keys of the projects that were merged into it, oldest first."""
    return fetch_groups(tx, "SELECT project_id, key FROM aliases ORDER BY at, key")


def count_by_project(tx: Connection) -> dict[int, ProjectCounts]:
    """Count the rows of every project, by its id."""
    rows = tx.execute(
        "SELECT p.id, coalesce(n.sessions, 0), coalesce(m.memories, 0), coalesce(n.events, 0),"
        " n.last_event_at, m.last_memory_at FROM projects p"
        " LEFT JOIN (SELECT s.project_id, count(*) AS sessions, sum(e.events) AS events,"
        " max(s.last_event_at) AS last_event_at FROM sessions s LEFT JOIN"
        " (SELECT session_id, count(*) AS events FROM events GROUP BY session_id) e"
        " ON e.session_id = s.id GROUP BY s.project_id) n ON n.project_id = p.id"
        " LEFT JOIN (SELECT project_id, count(*) AS memories, max(at) AS last_memory_at"
        " FROM summaries GROUP BY project_id) m ON m.project_id = p.id ORDER BY p.id"
    )
    return {project_id: ProjectCounts(*counts) for project_id, *counts in rows}


def shared_topics(tx: Connection, one_id: int, other_id: int) -> list[str]:
    """The topic keys on which both projects have memories of the same kind."""
    sql = (
        "SELECT DISTINCT a.topic_key FROM summaries a JOIN summaries b ON b.topic_key = a.topic_key"
        " AND b.kind = a.kind AND b.project_id = ?2 WHERE a.project_id = ?1"
        " AND a.topic_key IS NOT NULL ORDER BY 1"
    )
    return fetch_column(tx, sql, (one_id, other_id))


def rename_project(tx: Connection, project_id: int, name: str) -> None:
    """Give a project another name; its key stays."""
    tx.execute("UPDATE projects SET name = ? WHERE id = ?", (storable(name), project_id))


def merge_project(tx: Connection, source: Project, into: Project, now: int) -> MergedRows:
    """Move everything of one project to another, and let its keys mean that one from now on.

    Its memories are consolidated again, with those of the other project.
    """
    moved = []
    for table, also in (("sessions", ""), ("summaries", ", consolidated = 0"), ("aliases", "")):
        tx.execute(
            f"UPDATE {table} SET project_id = ?{also} WHERE project_id = ?", (into.id, source.id)
        )
        moved.append(tx.changes())
    ledger.move_forgotten(tx, source.id, into.id)
    tx.execute("DELETE FROM projects WHERE id = ?", (source.id,))
    tx.execute("INSERT INTO aliases VALUES (?, ?, ?)", (source.key, into.id, now))
    return MergedRows(*moved)


def read_merge(tx: Connection, source: Project) -> MergeRecord:
    """Read what undoing the merge of a project needs to know; to be called before the merge."""
    sessions, memories = (
        tuple(
            fetch_ids(tx, f"SELECT id FROM {table} WHERE project_id = ? ORDER BY id", (source.id,))
        )
        for table in ("sessions", "summaries")
    )
    made = fetch_int(tx, "SELECT created_at FROM projects WHERE id = ?", (source.id,)) or 0
    aliases = project_aliases(tx).get(source.id, ())
    return MergeRecord(source.key, source.name, source.reason, made, sessions, memories, aliases)


def restore_project(tx: Connection, record: MergeRecord, into_id: int, since: int) -> MergedRows:
    """Take a merge back: the project has again what it had, and the sessions begun in its directory `since`.

    What has left `into_id` meanwhile, or was forgotten, stays as it is.
    """
    tx.execute("DELETE FROM aliases WHERE key = ? AND project_id = ?", (record.key, into_id))
    row = {
        "key": record.key, "name": record.name, "reason": record.reason, "created_at": record.created_at,
    }  # fmt: skip
    number = insert_returning_id(tx, "projects", row)
    place = (number, into_id)
    tx.execute(
        "UPDATE sessions SET project_id = ?1 WHERE project_id = ?2 AND (id IN (SELECT value FROM json_each(?3))"
        " OR started_at >= ?4 AND (directory = ?5"
        " OR substr(directory, 1, length(?5) + 1) IN (?5 || '/', ?5 || char(92))))",
        (*place, json_text(record.sessions), since, record.key),
    )
    sessions = tx.changes()
    tx.execute(
        "UPDATE summaries SET project_id = ?1, consolidated = 0 WHERE project_id = ?2 AND (id IN"
        " (SELECT value FROM json_each(?3)) OR session_id IN (SELECT id FROM sessions WHERE project_id = ?1))",
        (*place, json_text(record.summaries)),
    )
    memories = tx.changes()
    tx.execute(
        "UPDATE aliases SET project_id = ?1 WHERE project_id = ?2 AND key IN (SELECT value FROM json_each(?3))",
        (*place, json_text(record.aliases)),
    )
    return MergedRows(sessions, memories, tx.changes())


_SEPARATED_NOTE = "separated:"
"""With the key of a project: it was made one of its own by the user, and is joined with no other by itself."""


def separate_project(tx: Connection, key: str) -> None:
    """Note that the user wants this project to be one of its own."""
    ledger.write_note(tx, _SEPARATED_NOTE + key, "")


def allow_joining(tx: Connection, key: str) -> None:
    """Drop that note: the user has joined the project with another one."""
    ledger.drop_note(tx, _SEPARATED_NOTE + key)


def separated_keys(tx: Connection) -> list[str]:
    """The keys of the projects that are to be ones of their own."""
    return ledger.note_names(tx, _SEPARATED_NOTE)


def recorded_git(tx: Connection, project_id: int) -> tuple[frozenset[str], frozenset[str]]:
    """The remotes and the branches that the prompts of a project's sessions name."""
    rows = tx.execute(
        f"SELECT DISTINCT e.payload ->> '$.{REMOTE}', e.payload ->> '$.{BRANCH}' FROM sessions s"
        " CROSS JOIN events e INDEXED BY events_marks ON e.session_id = s.id AND e.kind = 'prompt'"
        " AND e.kind IN ('prompt', 'session_start', 'compact_start') WHERE s.project_id = ?",
        (project_id,),
    ).fetchall()
    return frozenset(str(r) for r, _ in rows if r), frozenset(str(b) for _, b in rows if b)


def latest_places(tx: Connection, limit: int) -> list[tuple[str, str]]:
    """(client, directory) of the latest sessions, the latest first, once each."""
    sql = (
        "SELECT client, directory FROM sessions WHERE directory IS NOT NULL"
        " GROUP BY client, directory ORDER BY max(last_event_at) DESC LIMIT ?"
    )
    return fetch_all(tx, sql, (limit,))


def forget_project(tx: Connection, project_id: int) -> None:
    """Delete a project and its aliases, if nothing belongs to it any more."""
    if not any(
        has_rows(tx, f"{table} WHERE project_id = ?", (project_id,))
        for table in ("sessions", "summaries")
    ):
        tx.execute("DELETE FROM aliases WHERE project_id = ?", (project_id,))
        ledger.move_forgotten(tx, project_id, None)
        tx.execute(
            "DELETE FROM meta WHERE key = (SELECT 'renamed:' || key FROM projects WHERE id = ?)",
            (project_id,),
        )
        tx.execute("DELETE FROM projects WHERE id = ?", (project_id,))


# ── Sessions ───────────────────────────────────────────────────────────────────────────────────


def ensure_session(tx: Connection, ref: SessionRef, project_id: int, at: int) -> int:
    """The id of this client's session; created if it is new. An existing one keeps its project."""
    client, key = storable(ref.client), storable(ref.key)
    found = fetch_int(tx, "SELECT id FROM sessions WHERE client = ? AND key = ?", (client, key))
    if found is not None:
        return found
    uid, directory = digest(client, key), ref.directory and storable(ref.directory)
    ledger.remove_forgotten(tx, uid)
    return insert_returning_id(
        tx,
        "sessions",
        {
            "id": _last_session_id(tx) + 1, "uid": uid, "client": client, "key": key,
            "project_id": project_id, "directory": directory, "started_at": at, "last_event_at": at,
        },
    )  # fmt: skip


def _last_session_id(tx: Connection) -> int:
    """The highest id that a session has had. An id is not used again, because caches may hold it."""
    noted = ledger.read_note(tx, _LAST_SESSION_NOTE)
    return max(last_id(tx, "sessions"), int(noted or 0))


def session_and_project(tx: Connection, ref: SessionRef) -> tuple[int, str] | None:
    """(id, key of its project) of a client's session; None if it is new."""
    sql = "SELECT s.id, p.key FROM sessions s JOIN projects p ON p.id = s.project_id WHERE s.client = ? AND s.key = ?"
    return tx.execute(sql, (storable(ref.client), storable(ref.key))).fetchone()


def extend_session(
    tx: Connection, session_id: int, at: int, title: str | None, until: int | None = None
) -> None:
    """Widen the session's span to include `at` (to `until`), and title it if it has no title."""
    tx.execute(
        "UPDATE sessions SET started_at = min(started_at, ?1), last_event_at = max(last_event_at, ?4),"
        " title = coalesce(title, ?2) WHERE id = ?3",
        (at, title and storable(title), session_id, at if until is None else until),
    )


def apply_client_title(tx: Connection, session_id: int, longest: int) -> bool:
    """Title a session as its client does, with at most this many characters; return whether that changes its title.

    Of what the client calls it, the user's own words go before its model's, and these before a summary; then
    the latest.
    """
    rows = tx.execute(
        "SELECT payload ->> '$.title_kind', payload ->> '$.title' FROM events"
        " WHERE session_id = ? AND name = ? ORDER BY at DESC, id DESC",
        (session_id, TITLE_EVENT),
    ).fetchall()
    ranked = [(TITLE_KINDS.index(kind), title) for kind, title in rows if kind in TITLE_KINDS]
    if not ranked:
        return False
    title = one_line(str(max(ranked, key=lambda row: row[0])[1]), longest)
    tx.execute(
        "UPDATE sessions SET title = ?1 WHERE id = ?2 AND title IS NOT ?1",
        (storable(title), session_id),
    )
    return tx.changes() > 0


def clear_title(tx: Connection, session_id: int) -> None:
    """Remove a session's title, because the prompt that it came from was forgotten."""
    tx.execute("UPDATE sessions SET title = NULL WHERE id = ?", (session_id,))


def forget_session(tx: Connection, session_id: int) -> bool:
    """Erase a session's own text, and delete its row if nothing belongs to it; whether it was deleted."""
    tx.execute("DELETE FROM injections WHERE session_id = ?", (session_id,))
    tx.execute("DELETE FROM told WHERE session_id = ?", (session_id,))
    tx.execute("UPDATE sessions SET title = NULL, directory = NULL WHERE id = ?", (session_id,))
    ledger.write_note(tx, _LAST_SESSION_NOTE, str(_last_session_id(tx)))
    tx.execute(
        "DELETE FROM sessions WHERE id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM events WHERE session_id = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM summaries WHERE session_id = ?1)",
        (session_id,),
    )
    return tx.changes() > 0


def _select_sessions(tx: Connection, rest: str, *values: object) -> list[Session]:
    return fetch_rows(tx, Session, f"SELECT {_SESSION_COLUMNS} FROM sessions {rest}", values)


def session(tx: Connection, session_id: int) -> Session | None:
    """One session, or None."""
    return next(iter(_select_sessions(tx, "WHERE id = ?", session_id)), None)


def sessions(tx: Connection, session_ids: Iterable[int]) -> dict[int, Session]:
    """Return these sessions by id; unknown ids are left out."""
    ids = list(session_ids)
    return {one.id: one for one in _select_sessions(tx, f"WHERE id IN ({marks(ids)})", *ids)}


def find_sessions(tx: Connection, key: str) -> list[Session]:
    """Sessions whose client key or uid begins with this, newest first; at most ten."""
    sql = "WHERE substr(key, 1, length(?1)) = ?1 OR substr(uid, 1, length(?1)) = ?1 ORDER BY started_at DESC LIMIT 10"
    return _select_sessions(tx, sql, key)


def recent_sessions(tx: Connection, project_id: int, limit: int, now: int) -> list[Session]:
    """A project's latest sessions in which something was asked or learned, newest first.

    Those that a wrong clock dated ahead only if all are.
    """
    # A session that moved belongs to each project that it left memories in.
    condition = (
        "WHERE (project_id = ?1 OR id IN (SELECT session_id FROM summaries WHERE project_id = ?1))"
        " AND (EXISTS (SELECT 1 FROM summaries s WHERE s.session_id = sessions.id) OR EXISTS"
        " (SELECT 1 FROM events e WHERE e.session_id = sessions.id AND e.kind = 'prompt'))"
        " AND started_at < ?2 ORDER BY started_at DESC LIMIT ?3"
    )
    return _select_sessions(
        tx, condition, project_id, now + CLOCK_SKEW_MAX_MS, limit
    ) or _select_sessions(tx, condition, project_id, _TIME_MAX, limit)


def sessions_since(tx: Connection, project_id: int, since: int) -> list[Session]:
    """The sessions of a project in which something happened since then, the latest first."""
    condition = "WHERE project_id = ? AND last_event_at >= ? ORDER BY last_event_at DESC"
    return _select_sessions(tx, condition, project_id, since)


BEFORE_SESSIONS = (-1, 0)
"""A (start, id) before that of any session."""
_WITH_EVENTS_AFTER = (
    "(started_at, id) > (?, ?) AND EXISTS (SELECT 1 FROM events e WHERE e.session_id = sessions.id)"
)


def next_session(tx: Connection, after: tuple[int, int]) -> Session | None:
    """The first session with events after this (start in UTC milliseconds, id); None after the last."""
    rest = f"WHERE {_WITH_EVENTS_AFTER} ORDER BY started_at, id LIMIT 1"
    return next(iter(_select_sessions(tx, rest, *after)), None)


def count_sessions(tx: Connection, after: tuple[int, int]) -> int:
    """Count the sessions with events that come after this one."""
    return count_rows(tx, f"sessions WHERE {_WITH_EVENTS_AFTER}", after)


def session_of_client(tx: Connection, client: str, key: str) -> Session | None:
    """The session that a client calls this, or None."""
    found = _select_sessions(tx, "WHERE client = ? AND key = ?", storable(client), storable(key))
    return next(iter(found), None)


# ── Switches: where a user wants less of memd ──────────────────────────────────────────────────
# Without a row everything is on. A session's row overrides its project's. A project's switch holds
# for every directory that was merged into it, because its key is looked up through `aliases`.

PROJECT_SCOPE = "project"
SESSION_SCOPE = "session"
_SWITCH_WORDS = {
    (True, True): "switched on",
    (False, False): "switched off",
    (True, False): "switched to capture only",
    (False, True): "switched to recall only",
}


@dataclass(frozen=True, slots=True)
class EffectiveSwitch:
    """The state of the switches of one session or project, and the reason given."""

    captures: bool
    """Whether what the agent does there is captured."""
    recalls: bool
    """Whether memories are shown there unasked. Explicit questions are always answered."""
    reason: str
    """Such as `switched off for project ledger`; `on everywhere` without a switch."""
    scope: str = ""
    """Whose switch it is: `project` or `session`; empty without one."""

    @property
    def is_on(self) -> bool:
        """Return whether nothing is switched off."""
        return self.captures and self.recalls


SWITCHED_ON = EffectiveSwitch(True, True, "on everywhere")
"""What holds without a switch."""


@dataclass(frozen=True, slots=True)
class SwitchRow:
    """One stored switch."""

    scope: str
    target: str
    """The project's key, or the client's own id of the session."""
    name: str
    """The project's name; the session's title, or its id."""
    captures: bool
    recalls: bool
    at: int


def switch_words(captures: bool, recalls: bool) -> str:
    """A switch in words, such as `switched off` or `switched to capture only`."""
    return _SWITCH_WORDS[captures, recalls]


def effective_switch(tx: Connection, project_key: str, session_key: str | None) -> EffectiveSwitch:
    """Return the switch in force for this session (the client's own id) of this project; unknown ones are on."""
    key = _canonical_key(tx, project_key)
    for scope, target in ((SESSION_SCOPE, session_key), (PROJECT_SCOPE, key)):
        if target is None:
            continue
        sql = "SELECT captures, recalls FROM switches WHERE scope = ? AND target = ?"
        row = tx.execute(sql, (scope, storable(target))).fetchone()
        if row is not None:
            captures, recalls = bool(row[0]), bool(row[1])
            is_session = scope == SESSION_SCOPE
            where = "this session" if is_session else f"project {_project_name(tx, key)}"
            reason = f"{switch_words(captures, recalls)} for {where}"
            return EffectiveSwitch(captures, recalls, reason, scope)
    return SWITCHED_ON


def has_switches(tx: Connection) -> bool:
    """Return whether there is any switch."""
    return has_rows(tx, "switches")


def put_switch(
    tx: Connection, scope: str, target: str, captures: bool, recalls: bool, now: int
) -> None:
    """Set the switch of a project's key or a session's id, replacing the former one."""
    sql = "INSERT OR REPLACE INTO switches (scope, target, captures, recalls, at) VALUES (?, ?, ?, ?, ?)"
    tx.execute(sql, (scope, _stored_target(tx, scope, target), int(captures), int(recalls), now))


def drop_switch(tx: Connection, scope: str, target: str) -> bool:
    """Remove the switch of a project's key or a session's id; whether there was one."""
    sql = "DELETE FROM switches WHERE scope = ? AND target = ?"
    tx.execute(sql, (scope, _stored_target(tx, scope, target)))
    return tx.changes() > 0


def list_switches(tx: Connection) -> list[SwitchRow]:
    """Every switch, projects first, newest first."""
    sql = (
        "SELECT scope, target, captures, recalls, at FROM switches ORDER BY scope, at DESC, target"
    )
    names = {PROJECT_SCOPE: _project_name, SESSION_SCOPE: _session_name}
    return [
        SwitchRow(scope, target, names[scope](tx, target), bool(captures), bool(recalls), at)
        for scope, target, captures, recalls, at in fetch_all(tx, sql)
    ]


def _stored_target(tx: Connection, scope: str, target: str) -> str:
    return storable(_canonical_key(tx, target) if scope == PROJECT_SCOPE else target)


def _canonical_key(tx: Connection, key: str) -> str:
    """The key of the project that this one was merged into, or the key itself."""
    found = project_by_key(tx, key)
    return key if found is None else found.key


def _project_name(tx: Connection, key: str) -> str:
    """A project's name; of an unknown project, the last part of its key."""
    found = project_by_key(tx, key)
    return key.rstrip("/").rpartition("/")[2] or key if found is None else found.name


def _session_name(tx: Connection, key: str) -> str:
    found = tx.execute("SELECT title FROM sessions WHERE key = ? LIMIT 1", (key,)).get
    return key if found is None else str(found)
