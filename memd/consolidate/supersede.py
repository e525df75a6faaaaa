"""Hide one memory behind another, unless it is pinned, and show it again."""

from memd.models import EdgeType, Summary, Supersession
from memd.store import links
from memd.store.database import Connection


def active_supersessions(tx: Connection, summary_id: int) -> list[Supersession]:
    """The supersessions of this memory that hold now, whether it hides or is hidden."""
    return [one for one in links.supersessions_of(tx, summary_id) if one.undone_at is None]


def hide(
    tx: Connection, newer_id: int, older_id: int, rule: str, guard: str, now: int
) -> int | None:
    """Let `newer` hide `older`; None if it is hidden already or would hide itself through others."""
    return links.supersede(
        tx, newer_id=newer_id, older_id=older_id, rule=rule, cosine=None, guard=guard, at=now
    )


def hide_unless_pinned(  # noqa: PLR0913  # one argument a column
    tx: Connection,
    newer_id: int,
    older: Summary,
    rule: str,
    guard: str,
    now: int,
    *,
    otherwise: EdgeType = EdgeType.CONTRADICTS,
) -> bool:
    """Whether `older` was hidden. A pinned memory stays, with an edge of type `otherwise`."""
    if older.pinned_at is None:
        return hide(tx, newer_id, older.id, rule, guard, now) is not None
    relate(tx, newer_id, otherwise, older.id, rule, now, finding="pinned")
    return False


def show(tx: Connection, summary_id: int, now: int) -> list[Supersession]:
    """Undo the supersessions that hide this memory."""
    hiding = [one for one in active_supersessions(tx, summary_id) if one.older_id == summary_id]
    for one in hiding:
        links.undo_supersession(tx, one.id, now)
    return hiding


def relate(  # noqa: PLR0913  # one argument a column
    tx: Connection,
    newer_id: int,
    type_: EdgeType,
    older_id: int,
    rule: str,
    now: int,
    *,
    confidence: float = 1.0,
    **detail: object,
) -> bool:
    """Whether an edge between two memories was added; False if there was one."""
    edge = links.NewEdge(
        "summary", str(newer_id), type_, "summary", str(older_id), rule, now, confidence, detail
    )
    return links.add_edges(tx, [edge]) > 0


def drop_contradiction(tx: Connection, newer_id: int, older_id: int, rule: str) -> None:
    """Drop the contradiction that a rule found between two memories."""
    newer, older = ("summary", str(newer_id)), ("summary", str(older_id))
    links.drop_edge(tx, newer, EdgeType.CONTRADICTS, older, rule)
