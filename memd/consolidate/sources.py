"""Places elsewhere that memories were read from, and what a place says now.

A place is a part of a file: a section of notes, a row of another program's database. A memory derives
from the place that says it. When the place says something else, the new memory hides the old one,
which refers to the place from then on; when the place is gone, its memory expires, and a place that
comes back revives it. What was forgotten keeps its place from speaking again. Everything here happens
in the caller's transaction. Not here: reading places (exchange/).
"""

from collections.abc import Collection
from dataclasses import dataclass

from memd.models import Edge, EdgeType, Kind, Summary
from memd.store import ledger, links, summaries
from memd.store.database import Connection
from memd.text import digest, storable

READ_AGAIN_RULE = "read-again"
"""A supersession by this rule: the place that said the older one says the newer one now."""
IMPORTED = "imported"
IMPORTED_FILE = "imported:file"
"""The rules of memories that come from elsewhere; the second are parts of a person's own files."""
ORIGIN_NODE = "origin"


@dataclass(frozen=True, slots=True)
class Origin:
    """A place: the file, what names the part of it for good, and the line where that was, if known."""

    path: str
    part: str = ""
    line: int | None = None
    moves: bool = False
    """Whether the caller chose the project, so that a memory of another one gives way."""

    @property
    def node(self) -> str:
        """The place as a node of the graph."""
        return f"{_stem(self.path)}{storable(self.part)}"

    @property
    def rule(self) -> str:
        """The rule of the edge to it, for people."""
        return IMPORTED if self.line is None else f"{IMPORTED}, line {self.line}"


def find_memory(tx: Connection, origin: Origin) -> Summary | None:
    """The memory that this place says, if it says one."""
    edges = _held(tx, origin.node)
    return summaries.get_summary(tx, int(edges[-1].from_id)) if edges else None


def is_forgotten(tx: Connection, origin: Origin) -> bool:
    """Whether what this place said was forgotten on purpose."""
    return ledger.is_forgotten(tx, _key(origin.node))


def forget_origins(tx: Connection, summary_id: int, now: int) -> None:
    """Keep the places that say this memory, which is about to go, from saying it in other words."""
    for edge in _places(tx, summary_id):
        ledger.record_forgotten(tx, _key(edge.to_id), now)


def was_replaced(tx: Connection, summary: Summary) -> bool:
    """Whether a memory is hidden because its place said something else."""
    return any(
        one.older_id == summary.id and one.undone_at is None and one.rule == READ_AGAIN_RULE
        for one in links.supersessions_of(tx, summary.id)
    )


def attach_origin(
    tx: Connection, summary: Summary, origin: Origin, now: int
) -> tuple[int, ...]:
    """Note that this place says this memory now; the ids of those that it said before and hides."""
    hidden = []
    for edge in _held(tx, origin.node):
        _let_go(tx, edge, now)
        older = summaries.get_summary(tx, int(edge.from_id))
        if older is not None and older.id != summary.id and _gives_way(tx, older, summary, now):
            hidden.append(older.id)
    me = ("summary", str(summary.id))
    links.drop_edge(tx, me, EdgeType.REFERENCES, (ORIGIN_NODE, origin.node))
    links.add_edges(
        tx,
        [links.NewEdge(*me, EdgeType.DERIVES_FROM, ORIGIN_NODE, origin.node, origin.rule, now)],
    )
    return tuple(hidden)


def expire_missing(
    tx: Connection, path: str, staying: Collection[int], now: int
) -> tuple[int, ...]:
    """The memories of this file that it does not say any more, but for these; they expire now."""
    gone = []
    for edge in links.edges_below(tx, ORIGIN_NODE, _stem(path)):
        number = int(edge.from_id)
        if edge.type is not EdgeType.DERIVES_FROM or number in staying:
            continue
        _let_go(tx, edge, now)
        summary = summaries.get_summary(tx, number)
        if summary is None or summary.pinned_at is not None or _places(tx, number):
            continue
        if summary.superseded_by is None:
            summaries.renew_summary(tx, number, at=summary.at, expires_at=now, now=now)
            gone.append(number)
    return tuple(gone)


def has_text(summary: Summary, kind: Kind, text: str) -> bool:
    """Whether a memory is this, letter by letter."""
    return summary.kind is kind and summary.body == storable(text)


def _gives_way(tx: Connection, older: Summary, newer: Summary, now: int) -> bool:
    """Hide what a place does not say any more, unless another place does, or it is pinned."""
    if _places(tx, older.id):
        return False
    if older.pinned_at is not None:
        ends = ("summary", str(newer.id), EdgeType.CONTRADICTS, "summary", str(older.id))
        links.add_edges(
            tx, [links.NewEdge(*ends, READ_AGAIN_RULE, now, detail={"finding": "pinned"})]
        )
        return False
    hidden = links.supersede(
        tx,
        newer_id=newer.id,
        older_id=older.id,
        rule=READ_AGAIN_RULE,
        cosine=None,
        guard="the place where it was read says otherwise now",
        at=now,
    )
    return hidden is not None


def _let_go(tx: Connection, edge: Edge, now: int) -> None:
    """Turn `derives_from` into `references`: the place said it once."""
    ends = ((edge.from_kind, edge.from_id), (edge.to_kind, edge.to_id))
    links.drop_edge(tx, ends[0], edge.type, ends[1])
    once = links.NewEdge(*ends[0], EdgeType.REFERENCES, *ends[1], "said there before", now)
    links.add_edges(tx, [once])


def _held(tx: Connection, node: str) -> list[Edge]:
    edges = links.edges_at(tx, ORIGIN_NODE, node)
    return [edge for edge in edges if edge.type is EdgeType.DERIVES_FROM]


def _places(tx: Connection, summary_id: int) -> list[Edge]:
    edges = links.edges_at(tx, "summary", str(summary_id), limit=1_000)
    return [
        edge
        for edge in edges
        if edge.type is EdgeType.DERIVES_FROM and edge.to_kind == ORIGIN_NODE
    ]


def _stem(path: str) -> str:
    return f"{storable(path)}#"


def _key(node: str) -> str:
    return digest(ORIGIN_NODE, node)
