"""The user's reviews of memories: kept, seen, holds everywhere, or rejected.

A memory without a review waits in the inbox. What was rejected stays in the vault, hidden from every answer, so that
whatever says the same again is known. Below, the latest changes of any kind, as the tables that record them tell it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from apsw import Connection

from memd.models import (
    ENDING_RULES,
    GLOBAL_PROJECT,
    RULE_KINDS,
    STATED_KINDS,
    Authority,
    Summary,
    Tier,
)
from memd.store import ledger
from memd.store.filter import ENDS_NOTHING, HIDES, NOT_SUPERSEDED, marks
from memd.store.queries import fetch_all, fetch_first, fetch_ids, has_rows
from memd.store.summaries import summaries_by_ids
from memd.time_expressions import DAY_MS

Verdict = Literal["kept", "seen", "everywhere", "rejected"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
UNUSED_MIN = 8
"""Sessions in a row that were shown a memory and did not use it, after which the user is asked whether it still holds."""
OLD_MS = 180 * DAY_MS
"""The age from which a statement that was never used is asked about, and again after as long."""
_IS_UNUSED = (
    f"EXISTS (SELECT 1 FROM uses u WHERE u.summary_id = s.id AND u.ignored >= {UNUSED_MIN})"
)
_IS_OLD = (
    "(s.at < ? AND NOT EXISTS (SELECT 1 FROM uses u WHERE u.summary_id = s.id AND u.count + u.helped > 0)"
    f" AND s.kind IN ({marks(STATED_KINDS)})"
    " AND NOT EXISTS (SELECT 1 FROM reviews v WHERE v.summary_id = s.id AND (v.verdict = 'rejected' OR v.at >= ?)))"
)
_STANDS = (
    "s.author = '' AND s.archived_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > ?)"
    f" AND {NOT_SUPERSEDED}"
)
_IS_LEARNED = (
    f"s.authority < {Authority.USER_HAND.code} AND s.tier <> '{Tier.FILE}'"
    f" AND (s.source = 'agent' OR s.kind IN ({marks(STATED_KINDS)}))"
)
_NOT_PASSED_OVER = " AND v.verdict <> 'seen'"
# By `memd judge` or `memd edit`.
_PUT_IN_PLACE = "SELECT at FROM judgments WHERE newer_id = ? AND relation = 'supersedes' AND who = 'user' AND undone_at IS NULL"
_IS_REVIEWED = "EXISTS (SELECT 1 FROM reviews v WHERE v.summary_id = s.id{})"


@dataclass(frozen=True, slots=True)
class Review:
    """The user's review of one memory, and its time."""

    summary_id: int
    verdict: Verdict
    at: int
    follows: int | None = None
    """The rejected memory that it repeats, or the one that holds everywhere instead."""


def read_review(tx: Connection, summary_id: int) -> Review | None:
    """Return what the user said of a memory; None if nothing yet."""
    return fetch_first(tx, Review, "SELECT * FROM reviews WHERE summary_id = ?", (summary_id,))


def read_stated_at(tx: Connection, summary_id: int, at: int) -> int:
    """Return when the user last stood by a memory: stated it, kept it in a review, or put it in another's place himself."""
    review = read_review(tx, summary_id)
    kept = review.at if review and review.verdict == "kept" else at
    return max(at, kept, *fetch_ids(tx, _PUT_IN_PLACE, (summary_id,)))


def put_review(tx: Connection, review: Review) -> None:
    """Write a review in the place of any other of its memory, which starts again as one that is not used."""
    tx.execute("UPDATE uses SET ignored = 0 WHERE summary_id = ?", (review.summary_id,))
    sql = "INSERT OR REPLACE INTO reviews VALUES (?, ?, ?, ?)"
    tx.execute(sql, (review.summary_id, review.verdict, review.at, review.follows))


def drop_review(tx: Connection, summary_id: int) -> None:
    """Take a review back, with those of what only repeated its memory."""
    tx.execute("DELETE FROM reviews WHERE summary_id = ?1 OR follows = ?1", (summary_id,))


def has_rejected(tx: Connection) -> bool:
    """Return whether the user rejected anything at all."""
    return has_rows(tx, "reviews WHERE verdict = 'rejected'")


def rejected_summaries(tx: Connection, project_id: int | None = None) -> list[Summary]:
    """Return what the user rejected himself, in a project and in `global`, or anywhere; without what repeats it."""
    condition = "v.verdict = 'rejected' AND v.follows IS NULL"
    if not has_rejected(tx):
        return []
    sql = (
        f"SELECT s.id FROM reviews v JOIN summaries s ON s.id = v.summary_id WHERE {condition}"
        " AND (?1 IS NULL OR s.project_id = ?1 OR s.project_id = (SELECT id FROM projects WHERE key = ?2))"
        " ORDER BY s.id"
    )
    ids = fetch_ids(tx, sql, (project_id, GLOBAL_PROJECT))
    return list(summaries_by_ids(tx, ids).values())


def replaced_statements(
    tx: Connection, project_id: int, since: int
) -> list[tuple[Summary, int, int]]:
    """Return what was stated in a project since a time and was replaced, with the time (UTC milliseconds) and id of what replaces it."""
    rows = tx.execute(
        "SELECT s.id, max(n.at), n.id FROM supersessions x JOIN summaries s ON s.id = x.older_id"
        f" JOIN summaries n ON n.id = x.newer_id WHERE {HIDES} AND s.project_id = ? AND s.at >= ?"
        f" AND s.kind IN ({marks(STATED_KINDS)}) GROUP BY s.id",
        (project_id, since, *STATED_KINDS),
    )
    newer = {int(number): (int(at), int(by)) for number, at, by in rows}
    return [(one, *newer[one.id]) for one in summaries_by_ids(tx, list(newer)).values()]


def undone_endings(tx: Connection, project_id: int) -> list[Summary]:
    """Return what was kept in a project because it ended something, and ends nothing any more."""
    sql = f"SELECT s.id FROM summaries s INDEXED BY summaries_ending WHERE s.rule IN {ENDING_RULES} AND s.project_id = ? AND {ENDS_NOTHING}"
    return list(summaries_by_ids(tx, fetch_ids(tx, sql, (project_id,))).values())


def count_repeats(tx: Connection, summary_ids: Sequence[int]) -> dict[int, int]:
    """Rejected memory → how many others have said the same since."""
    sql = (
        f"SELECT follows, count(*) FROM reviews WHERE follows IN ({marks(summary_ids)}) GROUP BY 1"
    )
    return dict(tx.execute(sql, tuple(summary_ids)))


def describe_doubts(tx: Connection, summaries: Iterable[Summary], now: int) -> dict[int, str]:
    """Memory → why the user is asked whether it still holds: shown in many sessions, or old, and never used."""
    found = list(summaries)
    sql = (
        f"SELECT summary_id, count + helped, ignored FROM uses WHERE summary_id IN ({marks(found)})"
    )
    rows = fetch_all(tx, sql, [one.id for one in found])
    uses = {number: (used, ignored) for number, used, ignored in rows}
    doubts = {}
    for one in found:
        used, ignored = uses.get(one.id, (0, 0))
        if ignored >= UNUSED_MIN:
            doubts[one.id] = f"shown in {ignored} sessions, never used"
        elif one.kind in STATED_KINDS and not used and one.at < now - OLD_MS:
            doubts[one.id] = f"noted {(now - one.at) // DAY_MS} days ago, never used"
    return doubts


def waiting_ids(
    tx: Connection, project_ids: Iterable[int] | None, now: int, limit: int, *, first: int = 0
) -> list[int]:
    """The memories that wait in the inbox: those that nobody uses, then those of the newest session, each in order of time.

    Those of the project `first` come before all others.
    """
    if not limit:
        return []
    where, values = _waiting_condition(project_ids, now)
    sql = (
        f"SELECT s.id FROM summaries s LEFT JOIN sessions n ON n.id = s.session_id WHERE {where}"
        f" ORDER BY s.project_id = ? DESC, {_IS_UNUSED} DESC,"
        " coalesce(n.started_at, s.created_at) DESC, s.session_id DESC, s.at, s.id LIMIT ?"
    )
    return fetch_ids(tx, sql, (*values, first, limit))


def count_waiting(tx: Connection, project_ids: Iterable[int] | None, now: int) -> int:
    """Count the memories that wait in the inbox."""
    where, values = _waiting_condition(project_ids, now)
    return int(tx.execute(f"SELECT count(*) FROM summaries s WHERE {where}", values).get)


def _waiting_condition(
    project_ids: Iterable[int] | None, now: int
) -> tuple[str, tuple[object, ...]]:
    # What nobody uses is asked about whoever said it, and again if it was passed over; what was kept is not.
    is_new = f"{_IS_LEARNED} AND NOT {_IS_REVIEWED.format('')}"
    is_doubtful = f"{_IS_UNUSED} AND NOT {_IS_REVIEWED.format(_NOT_PASSED_OVER)}"
    where = f"{_STANDS} AND ({is_new} OR {is_doubtful} OR {_IS_OLD})"
    kinds = [kind.value for kind in STATED_KINDS]
    values: tuple[object, ...] = (now, *kinds, now - OLD_MS, *kinds, now - OLD_MS)
    if project_ids is not None:
        wanted = tuple(project_ids)
        where += f" AND s.project_id IN ({marks(wanted)})"
        values += wanted
    return where, values


# ── Rules ─────────────────────────────────────────────────────────────────────────────────────────

_RULES_MAX = 500


def live_rules(tx: Connection, project_ids: Sequence[int], now: int) -> list[Summary]:
    """The instructions and preferences of these projects that hold now, whoever said them, oldest first."""
    sql = (
        f"SELECT s.id FROM summaries s WHERE s.project_id IN ({marks(project_ids)}) AND s.kind IN ({marks(RULE_KINDS)})"
        " AND s.archived_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > ?)"
        f" AND {NOT_SUPERSEDED} ORDER BY s.at DESC LIMIT {_RULES_MAX}"
    )
    ids = fetch_ids(tx, sql, (*project_ids, *(kind.value for kind in RULE_KINDS), now))
    found = summaries_by_ids(tx, ids)
    return [found[number] for number in sorted(ids)]


def kept_ids(tx: Connection, summary_ids: Sequence[int]) -> frozenset[int]:
    """Return the memories among these that the user reviewed and kept."""
    sql = f"SELECT summary_id FROM reviews WHERE verdict IN ('kept', 'everywhere') AND summary_id IN ({marks(summary_ids)})"
    return frozenset(fetch_ids(tx, sql, tuple(summary_ids)))


def enforced_ids(tx: Connection) -> frozenset[int]:
    """The rules that the user wants enforced."""
    return frozenset(fetch_ids(tx, "SELECT summary_id FROM enforced"))


def set_enforced(tx: Connection, summary_id: int, now: int, *, is_on: bool) -> bool:
    """Let a rule be enforced or only told; whether that changed anything."""
    was_on = has_rows(tx, "enforced WHERE summary_id = ?", (summary_id,))
    if is_on:
        tx.execute("INSERT OR IGNORE INTO enforced VALUES (?, ?)", (summary_id, now))
    else:
        tx.execute("DELETE FROM enforced WHERE summary_id = ?", (summary_id,))
    return was_on != is_on


# ── The latest changes ────────────────────────────────────────────────────────────────────────────

ChangeKind = Literal[
    "judged", "edited", "superseded", "consolidated", "pinned", "reviewed", "enforced", "merged",
    "renamed", "switched", "remembered", "forgotten",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """One change that still holds. `at` is UTC milliseconds."""

    name: str
    """What it is called: a letter for its table, and its row there."""
    kind: ChangeKind
    at: int
    one: int
    """The memory, the newer one of a pair, or the run; 0 if there is none."""
    other: int
    text: str
    """The relation, rule, verdict, or the key of a project."""
    by: str
    """`user`, `agent` or `memd`; empty where that is not recorded."""


_IS_OF_PROJECTS = (
    "CASE kind WHEN 'forgotten' THEN EXISTS (SELECT 1 FROM meta m JOIN json_each(?5) p"
    f" ON m.key = '{ledger.FORGOTTEN}' || p.value JOIN json_each(m.value) t WHERE t.value = at)"
    " WHEN 'switched' THEN substr(name, 3) IN (SELECT o.key FROM projects o JOIN json_each(?5) p ON o.id = p.value"
    " UNION ALL SELECT c.key FROM sessions c JOIN json_each(?5) p ON c.project_id = p.value) WHEN 'merged' THEN 1"
    " WHEN 'renamed' THEN substr(name, 3) IN (SELECT o.key FROM projects o JOIN json_each(?5) p ON o.id = p.value)"
    " ELSE EXISTS (SELECT 1 FROM summaries s JOIN json_each(?5) p"
    " ON s.project_id = p.value WHERE s.id IN (SELECT one WHERE kind <> 'consolidated' UNION ALL"
    " SELECT newer_id FROM supersessions WHERE kind = 'consolidated' AND run = one)) END"
)
"""A merge is of every project, a run of those in which it hid something, what was forgotten of those that note its times."""
# What is recorded later in one transaction stands after what it brought with it.
_CHANGES = """
SELECT 'j' || id, iif(substr(reason, 1, length(?1)) = ?1, 'edited', 'judged'), at, newer_id, older_id, relation, who, 2
  FROM judgments WHERE undone_at IS NULL AND substr(reason, 1, length(?2)) <> ?2
UNION ALL SELECT 's' || id, 'superseded', at, newer_id, older_id, rule,
  iif((SELECT source FROM summaries WHERE id = newer_id) = 'user', 'user', 'memd'), 2 FROM supersessions
  WHERE undone_at IS NULL AND run IS NULL AND rule NOT IN ('judged', 'judged-twin', 'project-merge')
UNION ALL SELECT 'r' || id, 'consolidated', at, id, superseded, contradicts, 'memd', 2 FROM runs WHERE undone_at IS NULL
  AND (EXISTS (SELECT 1 FROM supersessions s WHERE s.run = runs.id AND s.undone_at IS NULL) OR EXISTS (SELECT 1 FROM edges
  WHERE rule = 'near-duplicate' AND detail ->> '$.run' = runs.id AND type = 'contradicts'))
UNION ALL SELECT 'p' || id, 'pinned', pinned_at, id, 0, '', iif(pinned_by >= 5, 'user', 'agent'), 1
  FROM summaries WHERE pinned_at IS NOT NULL
UNION ALL SELECT 'v' || summary_id, 'reviewed', at, summary_id, coalesce(follows, 0), verdict, 'user', 3
  FROM reviews WHERE follows IS NULL OR verdict = 'everywhere'
UNION ALL SELECT 'e' || summary_id, 'enforced', at, summary_id, 0, '', 'user', 3 FROM enforced
UNION ALL SELECT 'm:' || substr(key, 8), 'merged', value ->> '$.at', 0, 0, value ->> '$.into', '', 3
  FROM meta WHERE substr(key, 1, 7) = 'merged:'
UNION ALL SELECT 'c:' || p.key, 'renamed', value ->> '$.at', 0, 0, value ->> '$.was', 'user', 3
  FROM projects p JOIN meta m ON m.key = 'renamed:' || p.key
UNION ALL SELECT 'w:' || target, 'switched', at, 0, 0, scope, 'user', 3 FROM switches
UNION ALL SELECT 'n' || id, 'remembered', max(at, created_at), id, 0, '', 'user', 3 FROM summaries
  WHERE source = 'user' AND substr(rule, 1, 10) = 'remembered' AND coalesce(expires_at > updated_at, 1)
  AND NOT EXISTS (SELECT 1 FROM reviews WHERE follows = summaries.id AND verdict = 'everywhere')
UNION ALL SELECT 'f' || at, 'forgotten', at, count(*), 0, '', 'user', 3 FROM forgotten GROUP BY at
"""


def latest_changes(  # what is looked for
    tx: Connection,
    edited: str,
    undone: str,
    *,
    limit: int,
    name: str | None = None,
    project_ids: Sequence[int] | None = None,
) -> list[Change]:
    """The latest changes that hold, the last first, or the one of this name; or of these projects.

    A judgment whose reason begins with `edited` made an edit; one that begins with `undone` took something back.
    """
    columns = "name, kind, at, one, other, text, by, last"
    rows = tx.execute(
        f"WITH changed ({columns}) AS ({_CHANGES}) SELECT * FROM changed WHERE (?3 IS NULL OR name = ?3)"
        f" AND (?5 IS NULL OR {_IS_OF_PROJECTS}) ORDER BY at DESC, last DESC, one DESC LIMIT ?4",
        (edited, undone, name, limit, None if project_ids is None else json.dumps(project_ids)),
    )
    return [Change(*row[:7]) for row in rows]
