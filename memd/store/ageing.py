"""What has become old: events to compact, memories to expire for good or to put away. Bounded reads.

Not here: how old is old, and what is left of an event.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from memd.store import fulltext, summaries
from memd.text import storable

_WINDOW = 2_000
"""Ids looked at in one step: of most of them nothing is read but a time."""


@dataclass(frozen=True, slots=True)
class Old:
    """One event that may be compacted, with what memories cite of it."""

    id: int
    payload: Mapping[str, Any]
    bytes: int
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """Which memories count as never missed. `at` and `created_at` before this time, UTC milliseconds."""

    before: int
    quality: float


def next_window(tx: apsw.Connection, after: int) -> int | None:
    """The last id of the next step behind an id; None if there is no event behind it."""
    found = tx.execute("SELECT min(id) FROM events WHERE id > ?", (after,)).get
    return None if found is None else int(found) + _WINDOW - 1


def events_to_compact(
    tx: apsw.Connection, window: tuple[int, int], before: int, spoken: Sequence[str], limit: int
) -> list[Old]:
    """Distilled events in (after, last] from before a time that are not of these kinds, nor compacted."""
    rows = tx.execute(
        "SELECT e.id, e.payload FROM events e WHERE e.id > ? AND e.id <= ? AND e.at < ?"
        f" AND e.kind NOT IN ({','.join('?' * len(spoken))})"
        " AND NOT EXISTS (SELECT 1 FROM compactions c WHERE c.event_id = e.id)"
        " AND NOT EXISTS (SELECT 1 FROM events p WHERE p.distilled = 0"
        " AND p.session_id = e.session_id) ORDER BY e.id LIMIT ?",
        (*window, before, *spoken, limit),
    ).fetchall()
    return [
        Old(number, json.loads(text), len(text.encode()), _quotes(tx, number))
        for number, text in ((int(str(row[0])), str(row[1])) for row in rows)
    ]


def _quotes(tx: apsw.Connection, event_id: int) -> tuple[str, ...]:
    rows = tx.execute(
        "SELECT detail ->> '$.quote' FROM edges WHERE to_kind = 'event' AND to_id = ?"
        " AND type = 'derives_from' ORDER BY id",
        (str(event_id),),
    )
    return tuple(str(quote) for (quote,) in rows if quote)


def compact(tx: apsw.Connection, old: Old, text: str, now: int) -> None:
    """Put this in the place of an event's payload, and note how much went."""
    gone = old.bytes - len(text.encode())
    if gone > 0:
        tx.execute("UPDATE events SET payload = ? WHERE id = ?", (storable(text), old.id))
    tx.execute("INSERT INTO compactions VALUES (?, ?, ?)", (old.id, now, max(0, gone)))


def expired(tx: apsw.Connection, before: int, limit: int) -> list[int]:
    """Memories that expired before a time and that nobody pinned."""
    rows = tx.execute(
        "SELECT id FROM summaries WHERE expires_at < ? AND pinned_at IS NULL ORDER BY id LIMIT ?",
        (before, limit),
    )
    return [int(row[0]) for row in rows]


def drop(tx: apsw.Connection, summary_ids: Sequence[int]) -> None:
    """Take expired memories away. Nothing is noted: said again, they come again."""
    for number in summary_ids:
        fulltext.remove(tx, number)
        summaries.delete(tx, number)


def idle(tx: apsw.Connection, idle: Idle, limit: int) -> list[int]:
    """Captured memories that are old, of low quality, said once, never returned by any answer."""
    rows = tx.execute(
        "SELECT s.id FROM summaries s WHERE s.tier = 'captured' AND s.at < ?1 AND s.updated_at < ?1"
        " AND s.quality < ?2 AND s.duplicates = 1 AND s.pinned_at IS NULL AND s.archived_at IS NULL"
        " AND s.kind NOT IN ('instruction', 'preference', 'decision')"
        " AND NOT EXISTS (SELECT 1 FROM uses u WHERE u.summary_id = s.id)"
        " AND NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = s.id"
        " AND x.undone_at IS NULL) ORDER BY s.id LIMIT ?3",
        (idle.before, idle.quality, limit),
    )
    return [int(row[0]) for row in rows]


def archive(tx: apsw.Connection, summary_ids: Sequence[int], now: int) -> None:
    """Hide memories as superseded ones are hidden; said again or pinned, they show again."""
    tx.executemany(
        "UPDATE summaries SET archived_at = ? WHERE id = ?",
        [(now, number) for number in summary_ids],
    )
