"""The user's rules in force, and those that the user wants enforced."""

from collections.abc import Sequence

from apsw import Connection

from memd.models import Kind, Summary
from memd.store.filter import NOT_SUPERSEDED, marks
from memd.store.queries import fetch_ids, has_rows
from memd.store.summaries import summaries_by_ids

RULE_KINDS = (Kind.INSTRUCTION, Kind.PREFERENCE)
_RULES_MAX = 500


def live_rules(tx: Connection, project_ids: Sequence[int], now: int) -> list[Summary]:
    """The instructions and preferences of these projects that hold now, whoever said them, oldest first."""
    ids = fetch_ids(
        tx,
        f"SELECT s.id FROM summaries s WHERE s.project_id IN ({marks(project_ids)}) AND s.kind IN ({marks(RULE_KINDS)})"
        " AND s.archived_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > ?)"
        f" AND {NOT_SUPERSEDED} ORDER BY s.at DESC LIMIT {_RULES_MAX}",
        (*project_ids, *(kind.value for kind in RULE_KINDS), now),
    )
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
