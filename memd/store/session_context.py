"""Candidates for a session's context: visible memories by kind, pinned, open, or of one session.

Each query uses an index and a limit, so its cost does not grow with the vault.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from apsw import Connection

from memd.models import CLOCK_SKEW_MAX_MS, COMMITTED, Authority, Kind
from memd.store import ContextCandidate, judgments
from memd.store.filter import Filter, marks
from memd.store.projects import recent_sessions
from memd.store.queries import fetch_all, fetch_column, has_rows

SESSIONS_EXAMINED_MAX = 10
"""Recent sessions of a project among which those that left a memory are looked for."""
BODY_CHARACTERS_MAX = 2_000
"""Of a candidate's body only this much is read."""
PASSED_LATER = "passed-later"
"""The rule of an edge from a failure to the event of a later turn in which the same check passed."""
OF_ANOTHER = "of_another"
"""Names in the detail of such an edge that the turn in which the check passed had seen it fail with another error only."""
DISPUTED_LATER = "disputed-later"
"""The rule of an edge from a failure to the event of a later turn that says that it is not fixed."""
_IS_PASSED = (
    # These rules of the distiller mean that the check passed in its own turn; `same-tool` is an older one.
    "s.rule IN ('same-command', 'wider-command', 'same-tool', 'suppressed', 'other-way')"
)
_OWN_EDGE = "e.from_kind = 'summary' AND e.from_id = CAST(s.id AS TEXT)"
_IS_CLOSED_LATER = (
    f"EXISTS (SELECT 1 FROM edges e WHERE {_OWN_EDGE} AND e.rule = '{PASSED_LATER}' AND NOT EXISTS"
    " (SELECT 1 FROM edges d WHERE d.from_kind = e.from_kind AND d.from_id = e.from_id"
    f" AND d.rule = '{DISPUTED_LATER}' AND d.at >= e.at))"
)
_IS_DISPUTED = f"EXISTS (SELECT 1 FROM edges e WHERE {_OWN_EDGE} AND e.rule = '{DISPUTED_LATER}')"
_IS_OPEN = (
    f"(({_IS_DISPUTED}) OR NOT ({_IS_PASSED}) AND NOT EXISTS"
    f" (SELECT 1 FROM edges e WHERE {_OWN_EDGE} AND e.type = 'causes'))"
    f" AND NOT {_IS_CLOSED_LATER}"
)
_IS_LEFT = (
    "(s.episode IS NULL OR NOT EXISTS (SELECT 1 FROM summaries t WHERE t.session_id = s.session_id"
    " AND t.at > s.at AND t.episode IS NOT s.episode AND t.kind IN ('change', 'fix')))"
)
"""No later turn of its session changed something: what a session worked on after it was solved or given up."""
_OUTCOME_KINDS = (Kind.CHANGE, Kind.FIX)
"""Kinds of a turn that changed something."""
_OUTCOMES_READ_MAX = 60
_FILES_MAX = 20
_JUDGED_MAX = 50
"""Judgments of a project, the latest, by which one memory is told in the place of another."""
# Found in a mapping in a fraction of the time that the enumeration takes to find its member.
_KINDS = {kind.value: kind for kind in Kind}
COMMITS = re.compile(rf"^{COMMITTED}(.+)$", re.MULTILINE)
LEFT_OPEN = re.compile(r"^Open: (.+)$", re.MULTILINE)
"""What the body of a turn says is still to be done."""
_NEWEST_FIRST = " ORDER BY s.at DESC"
_HOLDS_FOR_FILE = "s.tags LIKE '%\"scope:file:%'"
_USED = "(s.revisions + s.duplicates - 2 + coalesce((SELECT count FROM uses u WHERE u.summary_id = s.id), 0))"


def standing_candidates(
    tx: Connection, project_ids: Sequence[int], kind: Kind, now: int, limit: int
) -> list[ContextCandidate]:
    """The newest of this kind of each project, `limit` of each.

    Where there are more, also as many of the user's own, of those that hold for a file, and of the most used.
    """
    wanted = Filter(kinds=(kind,), now=now)
    newest = _of_each_project(tx, project_ids, wanted, limit)
    if len(newest) < limit:
        return newest
    users = f"s.authority >= {Authority.USER_PROMPT.code}"
    most_used = f" ORDER BY {_USED} DESC"
    others = ((users, _NEWEST_FIRST), (_HOLDS_FOR_FILE, _NEWEST_FIRST), (f"{_USED} > 0", most_used))
    found = chain(*(_of_each_project(tx, project_ids, wanted, limit, *one) for one in others))
    return list({one.id: one for one in (*newest, *found)}.values())


def noted_candidates(
    tx: Connection, project_ids: Sequence[int], kinds: Sequence[Kind], now: int, limit: int
) -> list[ContextCandidate]:
    """The newest of these kinds that somebody asked to remember, `limit` of each project."""
    wanted = Filter(kinds=tuple(kinds), now=now)
    return _of_each_project(tx, project_ids, wanted, limit, "s.episode IS NULL")


def newest_titles(
    tx: Connection, project_ids: Sequence[int], limit: int, kinds: Sequence[Kind] = ()
) -> list[str]:
    """The titles of the newest visible memories of these projects, of these kinds or any."""
    where, bound = Filter(project_ids=tuple(project_ids), kinds=tuple(kinds)).condition()
    return fetch_column(
        tx, f"SELECT s.title FROM summaries s WHERE {where}{_NEWEST_FIRST} LIMIT ?", (*bound, limit)
    )


def read_version(
    tx: Connection, project_ids: Sequence[int], besides: int | None
) -> tuple[object, ...]:
    """Read what changes with each memory, relation or judgment, and with the order of the last sessions but `besides`."""
    rows = tx.execute(
        "SELECT (SELECT max(id) FROM edges),"
        " (SELECT max(id) FROM judgments), (SELECT count(undone_at) FROM judgments)"
    )
    recent = tx.execute(
        "SELECT id FROM (SELECT id, last_event_at FROM sessions s"
        f" WHERE project_id IN ({marks(project_ids)}) AND id IS NOT ?"
        " AND EXISTS (SELECT 1 FROM summaries WHERE session_id = s.id) ORDER BY started_at DESC LIMIT ?)"
        " ORDER BY last_event_at DESC",
        (*project_ids, besides, SESSIONS_EXAMINED_MAX),
    )
    return (count_changes(tx), *next(iter(rows)), *recent)


def count_changes(tx: Connection) -> int:
    """Count how often a memory, or what hides one, was written, changed or deleted in this vault."""
    return int(tx.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").get or 0)


def open_failures(
    tx: Connection, project_ids: Sequence[int], since: int, now: int, limit: int
) -> list[ContextCandidate]:
    """The newest failures since then that have no fix and that their session left, latest first.

    Left out is one whose check passed later, or whose session went on to change something in a later turn.
    """
    wanted = Filter(kinds=(Kind.FAILURE,), since=since, now=now)
    return _of_each_project(tx, project_ids, wanted, limit, f"{_IS_OPEN} AND {_IS_LEFT}")


def turn_bodies(tx: Connection, summary_ids: Sequence[int]) -> Mapping[int, str]:
    """Memory → the end of what tells of the whole turn that it was distilled from, where there is that."""
    rows = tx.execute(
        f"SELECT s.id, substr(t.body, -{BODY_CHARACTERS_MAX}) FROM summaries s JOIN summaries t"
        " ON t.session_id = s.session_id AND t.episode = s.episode AND t.rule LIKE 'turn%'"
        f" WHERE s.id IN ({marks(summary_ids)}) ORDER BY t.id",
        summary_ids,
    )
    return dict(rows)


def open_failure_ids(tx: Connection, project_id: int, limit: int) -> list[int]:
    """The newest failures of a project that nothing has closed."""
    wanted = Filter(kinds=(Kind.FAILURE,), project_ids=(project_id,))
    return [one.id for one in _find_candidates(tx, wanted, _IS_OPEN + _NEWEST_FIRST, limit)]


@dataclass(frozen=True, slots=True)
class ClosedFailure:
    """A failure that counts as fixed."""

    summary_id: int
    session_id: int | None
    """The session in which its check passed."""
    closed_in: str
    """The episode in which its check passed."""
    closed_at: int
    """UTC milliseconds; of one that was closed in its own turn the time of the failure."""
    is_own: bool
    """Whether it was closed in its own turn."""


def closed_failures(tx: Connection, project_id: int, limit: int) -> list[ClosedFailure]:
    """The failures of a project that count as fixed, the latest first."""
    rows = tx.execute(
        "SELECT s.id, coalesce((SELECT session_id FROM events WHERE id = CAST(e.to_id AS INTEGER)), s.session_id),"
        " coalesce(e.detail ->> '$.episode', s.episode, ''), coalesce(e.at, s.at),"
        f" e.id IS NULL FROM summaries s LEFT JOIN edges e ON {_OWN_EDGE} AND e.rule = ?"
        " WHERE s.project_id = ? AND s.kind = 'failure'"
        f" AND ({_IS_PASSED} AND NOT {_IS_DISPUTED} OR {_IS_CLOSED_LATER}) ORDER BY 4 DESC LIMIT ?",
        (PASSED_LATER, project_id, limit),
    )
    return [
        ClosedFailure(number, session, at, when, bool(own))
        for number, session, at, when, own in rows
    ]


def times_of_closed(tx: Connection, project_id: int, since: int) -> list[tuple[int, int]]:
    """(session, time) of each failure of a project since then whose check has passed, undisputed."""
    sql = (
        "SELECT s.session_id, s.at FROM summaries s WHERE s.project_id = ? AND s.kind = 'failure' AND s.at >= ?"
        f" AND s.session_id IS NOT NULL AND ({_IS_PASSED} AND NOT {_IS_DISPUTED} OR {_IS_CLOSED_LATER})"
    )
    return fetch_all(tx, sql, (project_id, since))


def disputes_of_session(
    tx: Connection, session_id: int
) -> list[tuple[str, int, int, Mapping[str, Any]]]:
    """(episode, time of the failure, time of the dispute, detail) of each dispute of a session's failures."""
    rows = tx.execute(
        f"SELECT s.episode, s.at, e.at, e.detail FROM summaries s JOIN edges e ON {_OWN_EDGE} AND e.rule = ?"
        " WHERE s.session_id = ? AND s.kind = 'failure' AND s.episode IS NOT NULL ORDER BY e.at, e.id",
        (DISPUTED_LATER, session_id),
    )
    return [(episode, failed, at, json.loads(detail)) for episode, failed, at, detail in rows]


def is_closed_later(tx: Connection, failure_id: int) -> bool:
    """Return whether the check of a failure passed in a later turn and that was not disputed since."""
    return has_rows(tx, f"summaries s WHERE s.id = ? AND {_IS_CLOSED_LATER}", (failure_id,))


def closed_by_events(tx: Connection, event_ids: Sequence[int]) -> list[tuple[int, str, int]]:
    """(event, title of a failure, when it failed) of the failures whose check passed in these events, undisputed since.

    Not of those whose check had failed there with another error only.
    """
    sql = (
        "SELECT CAST(p.to_id AS INTEGER), s.title, s.at FROM edges p JOIN summaries s ON s.id = CAST(p.from_id AS INTEGER)"
        f" WHERE p.to_kind = 'event' AND p.to_id IN (SELECT CAST(value AS TEXT) FROM json_each(?))"
        f" AND p.from_kind = 'summary' AND p.rule = '{PASSED_LATER}'"
        f" AND p.detail ->> '$.{OF_ANOTHER}' IS NULL AND {_IS_CLOSED_LATER} ORDER BY s.at, s.id"
    )
    return fetch_all(tx, sql, (json.dumps(list(event_ids)),))


def pinned_candidates(
    tx: Connection, project_ids: Sequence[int], now: int, limit: int
) -> list[ContextCandidate]:
    """Return the pinned memories of these projects, of any kind, newest first of each."""
    is_pinned = "s.pinned_at IS NOT NULL"
    return _of_each_project(tx, project_ids, Filter(now=now), limit, is_pinned)


def scoped_tags(tx: Connection, project_ids: Sequence[int]) -> list[tuple[int, str]]:
    """(memory, its tags as JSON) of the memories that hold for a part of these projects alone, whether they may be seen or not."""
    sql = f"SELECT id, tags FROM summaries WHERE instr(tags, '\"scope:') > 0 AND project_id IN ({marks(project_ids)})"
    return fetch_all(tx, sql, project_ids)


def has_scoped(tx: Connection) -> bool:
    """Return whether any memory holds for a part of its project alone."""
    return has_rows(tx, "summaries WHERE instr(tags, '\"scope:') > 0")


def session_candidates(
    tx: Connection, session_id: int, kinds: Sequence[Kind], now: int, limit: int
) -> list[ContextCandidate]:
    """The newest of these kinds from one session; of failures only the open ones."""
    wanted = Filter(session_id=session_id, kinds=tuple(kinds), now=now)
    condition = f"(s.kind <> 'failure' OR {_IS_OPEN})"
    return _find_candidates(tx, wanted, condition + _NEWEST_FIRST, limit)


def candidates_by_ids(
    tx: Connection, summary_ids: Sequence[int], now: int
) -> list[ContextCandidate]:
    """Return those of these that are neither expired nor hidden."""
    condition = f"s.id IN ({marks(summary_ids)})"
    return _find_candidates(tx, Filter(now=now), condition, len(summary_ids), summary_ids)


def judged_instead(
    tx: Connection, project_ids: Sequence[int], kinds: Sequence[Kind], now: int
) -> list[ContextCandidate]:
    """Return what somebody judged to supersede a memory of these kinds and is of none itself, each as one of that kind."""
    rows = fetch_all(
        tx,
        "SELECT j.newer_id, o.kind FROM judgments j CROSS JOIN summaries o ON o.id = j.older_id"
        " CROSS JOIN summaries n ON n.id = j.newer_id WHERE j.relation = 'supersedes' AND j.undone_at IS NULL"
        f" AND o.project_id IN ({marks(project_ids)}) AND o.kind IN ({marks(kinds)}) AND n.kind NOT IN ({marks(kinds)})"
        " ORDER BY j.at DESC LIMIT ?",
        (*project_ids, *kinds, *kinds, _JUDGED_MAX),
    )
    kind_of = {number: _KINDS[kind] for number, kind in rows}
    found = candidates_by_ids(tx, list(kind_of), now)
    return [replace(one, kind=kind_of[one.id], episode=None) for one in found]


def last_outcomes(  # two limits
    tx: Connection, project_id: int, *, besides: int | None, sessions: int, each: int, now: int
) -> list[ContextCandidate]:
    """Return the outcomes of a project's last `sessions` sessions, latest session first, at most `each` of a session.

    Of a session that changed something its last changes, one of each episode; of another the last memory that
    somebody asked to remember. A session that achieved nothing leaves nothing.
    """
    recent = recent_sessions(tx, project_id, SESSIONS_EXAMINED_MAX, now)
    ahead = now + CLOCK_SKEW_MAX_MS
    found: list[list[ContextCandidate]] = []
    for one in sorted(recent, key=lambda s: (s.last_event_at > ahead, -s.last_event_at)):
        if one.id != besides and (left := _outcomes_of(tx, one.id, project_id, now)[:each]):
            found.append(left)
        if len(found) == sessions:
            break
    return [
        _with_its_work(tx, candidate, is_last=number == 0)
        for left in found
        for number, candidate in enumerate(left)
    ]


def work_on_prompts(
    tx: Connection, project_id: int, since: int, limit: int
) -> list[tuple[int, int, str, str]]:
    """(time of a prompt, its session, title, body) of the work of a project that began with prompts since then and changed something."""
    where, bound = Filter(project_ids=(project_id,), kinds=_OUTCOME_KINDS).condition()
    rows = tx.execute(
        "SELECT p.at, p.session_id, s.title, s.body FROM summaries s JOIN edges e ON e.from_kind = 'summary'"
        " AND e.from_id = CAST(s.id AS TEXT) AND e.type = 'derives_from' AND e.to_kind = 'event'"
        " JOIN events p ON p.id = CAST(e.to_id AS INTEGER) AND p.kind = 'prompt' AND p.at >= ?"
        f" WHERE {where} AND s.at >= ?{_NEWEST_FIRST} LIMIT ?",
        (since, *bound, since, limit),
    )
    return [(int(at), int(number), str(title), str(body)) for at, number, title, body in rows]


def _outcomes_of(
    tx: Connection, session_id: int, project_id: int, now: int
) -> list[ContextCandidate]:
    """A session's last changes in a project, one of each episode, else its last memory; latest first."""
    left = Filter(session_id=session_id, project_ids=(project_id,), now=now)
    wanted = replace(left, kinds=_OUTCOME_KINDS)
    episodes: dict[str | int, ContextCandidate] = {}
    for one in _find_candidates(tx, wanted, f"1{_NEWEST_FIRST}", _OUTCOMES_READ_MAX):
        # A turn that changed something tells more than the fix of one error in it.
        if one.kind is Kind.CHANGE or (one.episode or one.id) not in episodes:
            episodes[one.episode or one.id] = one
    if episodes:
        return sorted(episodes.values(), key=lambda one: (-one.at, -one.id))
    return _find_candidates(tx, left, f"s.episode IS NULL{_NEWEST_FIRST}", 1)


def _with_its_work(tx: Connection, one: ContextCandidate, *, is_last: bool) -> ContextCandidate:
    """A candidate with the files that it edited, the commits that its body names, and what it left open, of the last also since."""
    sql = "SELECT to_id FROM edges WHERE from_kind = 'summary' AND from_id = ? AND type = 'edits' ORDER BY id LIMIT ?"
    edited = tuple(fetch_column(tx, sql, (str(one.id), _FILES_MAX)))
    ((body,),) = tx.execute("SELECT body FROM summaries WHERE id = ?", (one.id,))
    left_open = tuple(LEFT_OPEN.findall(body))
    if is_last and one.session_id is not None:
        since = Filter(session_id=one.session_id, since=one.at)
        where, bound = since.condition()
        rows = tx.execute(
            f"SELECT s.body FROM summaries s WHERE {where} AND s.rule LIKE 'turn%'{_NEWEST_FIRST}",
            bound,
        )
        left_open = tuple(line for (told,) in rows for line in LEFT_OPEN.findall(told))
    return replace(one, edited=edited, commits=tuple(COMMITS.findall(body)), left_open=left_open)


def _of_each_project(
    tx: Connection,
    project_ids: Sequence[int],
    wanted: Filter,
    limit: int,
    condition: str = "1",
    order: str = _NEWEST_FIRST,
) -> list[ContextCandidate]:
    return [
        candidate
        for number in project_ids
        for candidate in _find_candidates(
            tx, replace(wanted, project_ids=(number,)), condition + order, limit
        )
    ]


_IS_VOUCHED_FOR = f"(s.authority > {Authority.TOOL_OUTPUT.code} OR s.pinned_at IS NOT NULL OR s.source NOT LIKE 'import:%')"
"""The condition in SQL that a summary `s` is no note that only a file stands behind: that is shown when asked for."""


def _find_candidates(
    tx: Connection, wanted: Filter, rest: str, limit: int, values: Sequence[int] = ()
) -> list[ContextCandidate]:
    """The wanted memories that meet the rest of a WHERE clause, which may order them."""
    where, bound = wanted.condition()
    rows = tx.execute(
        "SELECT s.id, s.project_id, s.session_id, s.kind, s.title, s.at, s.created_at,"
        " s.authority || ':' || s.rule, s.pinned_at IS NOT NULL, s.revisions + s.duplicates - 2,"
        " coalesce(u.count + u.helped, 0),"
        f" s.episode, substr(s.body, 1, {BODY_CHARACTERS_MAX}), s.tags, s.author, s.source,"
        f" coalesce(s.pinned_by, 0) >= {Authority.USER_PROMPT.code},"
        " coalesce(u.ignored, 0) FROM summaries s LEFT JOIN uses u ON u.summary_id = s.id"
        f" WHERE {where} AND {_IS_VOUCHED_FOR} AND {rest} LIMIT ?",
        (*bound, *values, limit),
    )
    found = [_to_candidate(row) for row in rows]
    against = judgments.visible_contradictions(tx, [one.id for one in found])
    return [
        replace(one, contradicted_by=against[one.id]) if one.id in against else one for one in found
    ]


def _to_candidate(row: tuple[Any, ...]) -> ContextCandidate:
    values = list(row)
    code, _, rule = row[7].partition(":")
    values[3], values[7:9] = _KINDS[row[3]], (Authority.of(int(code), rule), bool(row[8]))
    values[13] = tuple(json.loads(row[13])) if row[13] != "[]" else ()
    values[16] = bool(row[16])
    return ContextCandidate(*values)
