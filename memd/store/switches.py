"""Where a person wants less of memd than everywhere: per project and per session.

No row means on. A session's row says more than its project's, so one session can be kept out of a
project that is on, or let into one that is off. A project's key is looked up through `aliases`, so
what was said of a project holds for every directory that was merged into it.
"""

from dataclasses import dataclass

import apsw

from memd.store import projects
from memd.text import storable

PROJECT = "project"
SESSION = "session"
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


ON = Switch(True, True, "on everywhere")
"""What holds where nobody said anything."""


@dataclass(frozen=True, slots=True)
class Said:
    """One row: what a person said of one project or session."""

    scope: str
    target: str
    """The project's key, or the client's own id of the session."""
    name: str
    """What the project is called; the session's title, or its id."""
    captures: bool
    recalls: bool
    at: int


def words(captures: bool, recalls: bool) -> str:
    """What was said, such as `switched off` or `switched to capture only`."""
    return _WORDS[captures, recalls]


def effective(tx: apsw.Connection, project_key: str, session_key: str | None) -> Switch:
    """What holds for this session (the client's own id) of this project; unknown ones are on."""
    key = _canonical(tx, project_key)
    for scope, target in ((SESSION, session_key), (PROJECT, key)):
        if target is None:
            continue
        row = tx.execute(
            "SELECT captures, recalls FROM switches WHERE scope = ? AND target = ?",
            (scope, storable(target)),
        ).fetchone()
        if row is not None:
            captures, recalls = bool(row[0]), bool(row[1])
            where = "this session" if scope == SESSION else f"project {_project_name(tx, key)}"
            reason = f"{words(captures, recalls)} for {where}"
            return Switch(captures, recalls, reason, scope)
    return ON


def has_said(tx: apsw.Connection) -> bool:
    """Whether anything at all was said, of any place."""
    return bool(tx.execute("SELECT EXISTS (SELECT 1 FROM switches)").get)


def put(
    tx: apsw.Connection, scope: str, target: str, captures: bool, recalls: bool, now: int
) -> None:
    """Say what holds for a project's key or a session's id, instead of what was said before."""
    tx.execute(
        "INSERT OR REPLACE INTO switches (scope, target, captures, recalls, at)"
        " VALUES (?, ?, ?, ?, ?)",
        (scope, storable(_target(tx, scope, target)), int(captures), int(recalls), now),
    )


def drop(tx: apsw.Connection, scope: str, target: str) -> bool:
    """Let what holds elsewhere hold here again; whether anything had been said."""
    tx.execute(
        "DELETE FROM switches WHERE scope = ? AND target = ?",
        (scope, storable(_target(tx, scope, target))),
    )
    return tx.changes() > 0


def listed(tx: apsw.Connection) -> list[Said]:
    """Everything that was said, projects first, newest first."""
    rows = tx.execute(
        "SELECT scope, target, captures, recalls, at FROM switches ORDER BY scope, at DESC, target"
    )
    return [
        Said(
            scope,
            target,
            _session_name(tx, target) if scope == SESSION else _project_name(tx, target),
            bool(captures),
            bool(recalls),
            at,
        )
        for scope, target, captures, recalls, at in rows
    ]


def _target(tx: apsw.Connection, scope: str, target: str) -> str:
    return _canonical(tx, target) if scope == PROJECT else target


def _canonical(tx: apsw.Connection, key: str) -> str:
    """The key of the project that this one was merged into, or the key itself."""
    found = projects.by_key(tx, key)
    return key if found is None else found.key


def _project_name(tx: apsw.Connection, key: str) -> str:
    """Its name; of a project that nothing is known of yet, the last part of its key."""
    found = projects.by_key(tx, key)
    return key.rstrip("/").rpartition("/")[2] or key if found is None else found.name


def _session_name(tx: apsw.Connection, key: str) -> str:
    found = tx.execute("SELECT title FROM sessions WHERE key = ? LIMIT 1", (key,)).get
    return key if found is None else str(found)
