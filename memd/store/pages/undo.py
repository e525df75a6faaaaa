"""The latest changes of any kind, as the tables that record them tell it: there is no log beside them."""

from dataclasses import dataclass
from typing import Literal

from apsw import Connection

ChangeKind = Literal[
    "judged", "edited", "superseded", "consolidated", "pinned", "reviewed", "enforced", "merged",
    "switched", "remembered", "forgotten",
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


# What is recorded later in one transaction stands after what it brought with it.
_CHANGES = """
SELECT 'j' || id, iif(substr(reason, 1, length(?1)) = ?1, 'edited', 'judged'), at, newer_id, older_id, relation, who, 2
  FROM judgments WHERE undone_at IS NULL AND substr(reason, 1, length(?2)) <> ?2
UNION ALL SELECT 's' || id, 'superseded', at, newer_id, older_id, rule,
  iif((SELECT source FROM summaries WHERE id = newer_id) = 'user', 'user', 'memd'), 2 FROM supersessions
  WHERE undone_at IS NULL AND run IS NULL AND rule NOT IN ('judged', 'project-merge')
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
UNION ALL SELECT 'w:' || target, 'switched', at, 0, 0, scope, 'user', 3 FROM switches
UNION ALL SELECT 'n' || id, 'remembered', created_at, id, 0, '', 'user', 1 FROM summaries
  WHERE source = 'user' AND substr(rule, 1, 10) = 'remembered'
UNION ALL SELECT 'f' || at, 'forgotten', at, count(*), 0, '', 'user', 3 FROM forgotten GROUP BY at
"""


def latest_changes(
    tx: Connection, edited: str, undone: str, *, limit: int, name: str | None = None
) -> list[Change]:
    """The latest changes that hold, the last first, or the one of this name.

    A judgment whose reason begins with `edited` made an edit; one that begins with `undone` took something back.
    """
    columns = "name, kind, at, one, other, text, by, last"
    rows = tx.execute(
        f"WITH changed ({columns}) AS ({_CHANGES}) SELECT * FROM changed WHERE ?3 IS NULL OR name = ?3"
        " ORDER BY at DESC, last DESC, one DESC LIMIT ?4",
        (edited, undone, name, limit),
    )
    return [
        Change(row[0], row[1], int(row[2]), row[3], row[4], str(row[5]), row[6]) for row in rows
    ]
