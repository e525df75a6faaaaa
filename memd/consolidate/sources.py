"""Link imported memories to the part of a file that they were read from.

A memory derives from its origin: a section of notes, a row of another program's database. When the
origin has another text, the new memory supersedes the old one, which then only refers to the origin.
When the origin is removed, its memory expires; when it returns, the memory holds again. An origin whose
memory was forgotten on purpose imports nothing more. The caller provides the transaction.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from memd.belief.standing import find_objection
from memd.belief.supersede import active_supersessions, hide
from memd.models import Authority, Edge, EdgeType, Summary
from memd.store import ledger, links, summaries
from memd.store.database import Connection
from memd.text import digest, storable

READ_AGAIN_RULE = "read-again"
"""The rule of a supersession of what an origin said by what it says now."""
IMPORTED = "imported"
"""The rule of an imported memory."""
IMPORTED_FILE = "imported:file"
"""The rule of a memory imported from a file that the user wrote."""
ORIGIN_NODE = "origin"
_EDGES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Origin:
    """Part of a file: its path, the lasting name of the part, and the line where it was, if known."""

    path: str
    part: str = ""
    line: int | None = None
    moves: bool = False
    """Whether the caller chose the project, so that a memory of another project is superseded."""
    has_front_matter: bool = False
    """Whether the file begins with fields about itself."""

    @property
    def node(self) -> str:
        """The id of its node in the graph of edges."""
        return f"{_node_prefix(self.path)}{storable(self.part)}"

    @property
    def rule(self) -> str:
        """The rule of the edge to it, which is displayed."""
        return IMPORTED if self.line is None else f"{IMPORTED}, line {self.line}"


def find_memory(tx: Connection, origin: Origin) -> Summary | None:
    """The memory that derives from this origin."""
    edges = _derived_edges(links.edges_at(tx, ORIGIN_NODE, origin.node))
    return summaries.get_summary(tx, int(edges[-1].from_id)) if edges else None


def is_forgotten(tx: Connection, origin: Origin) -> bool:
    """Return whether the memory of this origin was forgotten on purpose."""
    return ledger.is_forgotten(tx, digest(ORIGIN_NODE, origin.node))


def forget_origins(tx: Connection, summary_id: int, now: int) -> None:
    """Import nothing more from the origins of a memory that is about to be forgotten."""
    for edge in _find_origins(tx, summary_id):
        ledger.record_forgotten(tx, digest(ORIGIN_NODE, edge.to_id), now)


def was_replaced(tx: Connection, summary: Summary) -> bool:
    """Return whether a memory is hidden because its origin has another text."""
    return any(
        one.older_id == summary.id and one.rule == READ_AGAIN_RULE
        for one in active_supersessions(tx, summary.id)
    )


def attach_origin(
    tx: Connection, summary: Summary, origin: Origin, voice: Authority, now: int
) -> tuple[int, ...]:
    """Let a memory derive from this origin, whose words are this authority's; the ids that it hides."""
    hidden = []
    for edge in _derived_edges(links.edges_at(tx, ORIGIN_NODE, origin.node)):
        _detach_origin(tx, edge, now)
        older = summaries.get_summary(tx, int(edge.from_id))
        if older is None or older.id == summary.id or _find_origins(tx, older.id):
            continue
        guard = "its origin has another text now"
        if hide(tx, summary.id, older.id, READ_AGAIN_RULE, guard, now) is not None:
            hidden.append(older.id)
    start, end = ("summary", str(summary.id)), (ORIGIN_NODE, origin.node)
    links.drop_edge(tx, start, EdgeType.REFERENCES, end)
    said = {"authority": voice.code}
    new = links.NewEdge(*start, EdgeType.DERIVES_FROM, *end, origin.rule, now, detail=said)
    links.add_edges(tx, [new])
    return tuple(hidden)


def expire_missing(
    tx: Connection, path: str, staying: Collection[int], now: int
) -> tuple[int, ...]:
    """Let the memories of this file expire, except for those that it still says; their ids."""
    expired = []
    for edge in _derived_edges(links.edges_below(tx, ORIGIN_NODE, _node_prefix(path))):
        number = int(edge.from_id)
        if number in staying:
            continue
        _detach_origin(tx, edge, now)
        summary = summaries.get_summary(tx, number)
        if (
            summary is not None
            and find_objection(_read_authority(edge, summary), summary) is None
            and summary.pinned_at is None
            and summary.superseded_by is None
            and not _find_origins(tx, number)
        ):
            summaries.renew_summary(tx, number, at=summary.at, expires_at=now, now=now)
            expired.append(number)
    return tuple(expired)


def _read_authority(edge: Edge, summary: Summary) -> Authority:
    """Read the authority of a file; for imports from before that was recorded, the memory's own."""
    code = edge.detail.get("authority")
    return summary.authority if code is None else Authority.of(code, summary.rule)


def _detach_origin(tx: Connection, edge: Edge, now: int) -> None:
    """Turn `derives_from` into `references`."""
    start, end = (edge.from_kind, edge.from_id), (edge.to_kind, edge.to_id)
    links.drop_edge(tx, start, edge.type, end)
    past = links.NewEdge(*start, EdgeType.REFERENCES, *end, "imported before", now)
    links.add_edges(tx, [past])


def _derived_edges(edges: Iterable[Edge]) -> list[Edge]:
    return [edge for edge in edges if edge.type is EdgeType.DERIVES_FROM]


def _find_origins(tx: Connection, summary_id: int) -> list[Edge]:
    edges = links.edges_at(tx, "summary", str(summary_id), limit=_EDGES_MAX)
    return [edge for edge in _derived_edges(edges) if edge.to_kind == ORIGIN_NODE]


def _node_prefix(path: str) -> str:
    return f"{storable(path)}#"
