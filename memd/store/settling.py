"""What becomes of memories that came from another vault, beside those that were here.

Of two values of one topic key the newest hides the other, unless that is pinned; what came only from
events that were forgotten here goes again. Two that came together, or were here together, are left as
they were. Not here: rows on their way in (arrivals.py).
"""

from typing import Any

from memd.models import EdgeType
from memd.store import books, links, summaries
from memd.store.arrivals import Arrivals
from memd.store.database import Connection

RULE = "vault-import"
_GUARD = "same topic key in two vaults that became one"


def settle(tx: Connection, arrived: Arrivals, now: int) -> tuple[int, int]:
    """(memories that hide or are hidden by one that was here, memories that went again)."""
    gone = _drop_bereft(tx, arrived)
    hidden = 0
    for newer_id, older_id, is_pinned in _rivals(tx, arrived.last_summary, now):
        if is_pinned:
            edge = links.NewEdge(
                "summary", str(newer_id), EdgeType.CONTRADICTS, "summary", str(older_id), RULE, now,
                detail={"finding": "pinned"},
            )  # fmt: skip
            links.link(tx, [edge])
            continue
        hidden += bool(
            links.supersede(
                tx, newer_id=newer_id, older_id=older_id, rule=RULE, cosine=None, guard=_GUARD, at=now
            )
        )  # fmt: skip
    _enter(tx, arrived)
    return hidden, gone


def _drop_bereft(tx: Connection, arrived: Arrivals) -> int:
    """Take out new memories all of whose events were forgotten here."""
    gone = [number for number in sorted(arrived.bereft) if not links.sources_of(tx, number)]
    for number in gone:
        summaries.delete(tx, number)
    return len(gone)


def _rivals(tx: Connection, last: int, now: int) -> list[tuple[int, int, bool]]:
    """(newer, older, whether the older one is pinned): live values of a slot, one of them new here."""
    live = (
        "NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = {0}.id AND x.undone_at IS NULL)"
        " AND ({0}.expires_at IS NULL OR {0}.expires_at > ?2)"
    )
    rows: list[tuple[Any, ...]] = tx.execute(
        "SELECT a.id, a.at, a.pinned_at, b.id, b.at, b.pinned_at FROM summaries a JOIN summaries b"
        " ON b.topic_key = a.topic_key AND b.project_id = a.project_id AND b.kind = a.kind AND b.id <= ?1"
        f" WHERE a.id > ?1 AND a.topic_key IS NOT NULL AND {live.format('a')} AND {live.format('b')}"
        " ORDER BY a.at, a.id",
        (last, now),
    ).fetchall()
    pairs: list[tuple[int, int, bool]] = []
    for a, a_at, a_pinned, b, b_at, b_pinned in rows:
        is_newer = (a_at, a) > (b_at, b)
        newer, older, pinned = (a, b, b_pinned) if is_newer else (b, a, a_pinned)
        pairs.append((newer, older, pinned is not None))
    return pairs


def _enter(tx: Connection, arrived: Arrivals) -> None:
    """Enter the events in the books, as any import's."""
    became = {
        "created": ("stored", ""),
        "known": ("duplicate", ""),
        "forgotten": ("filtered", "forgotten"),
    }
    entries = {
        entry: arrived.outcomes["event", outcome]  # type: ignore[index]  # the names above are outcomes
        for outcome, entry in became.items()
    }
    entries["received", ""] = sum(entries.values())
    books.enter(tx, "import", {entry: count for entry, count in entries.items() if count})
