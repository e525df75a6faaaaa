"""mem_why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memd.errors import BadRequest, UnknownId
from memd.models import Edge, Event, Judgment, Kind, Stance, Summary, Supersession, Tier
from memd.recall.types import (
    JudgmentLink,
    PastInjection,
    SourceEvent,
    SupersessionLink,
    TranscriptPosition,
    UsageHistory,
    Why,
)
from memd.store import events as store_events
from memd.store import judgments, links, projects, usage
from memd.store import summaries as store_summaries
from memd.store.database import Connection, Database
from memd.text import storable

# MERGED from memd.recall.testimony:
# MERGED An event as evidence: its own words, and where it stands in what its client wrote down. Pure.


QUOTE_CHARACTERS = 400
_TELLING = (
    "prompt",
    "last_assistant_message",
    "message",
    "error",
    "command",
    "file_path",
    "summary",
)
"""Where an event's own words are, if no quote of it was kept."""


def quote_event(quote: str, event: Event) -> str:
    """The quote that was kept of the event, else the event's own words; at most 400 characters."""
    return _cut(quote) or event_text(event)


def event_text(event: Event) -> str:
    """The event's own words, if it has any."""
    given = event.payload.get("tool_input")
    inner = given if isinstance(given, dict) else {}
    found = (source.get(key) for source in (event.payload, inner) for key in _TELLING)
    return _cut(next((text for text in found if isinstance(text, str) and text.strip()), ""))


def locate_in_transcript(event: Event) -> TranscriptPosition:
    """Where to find it; of a subagent's event, in the subagent's own transcript if that is said."""
    own = _text(event, "agent_transcript_path")
    return TranscriptPosition(
        transcript=own or _text(event, "transcript_path"),
        session=_text(event, "session_id"),
        line=_text(event, "uuid"),
        prompt=event.turn or _text(event, "prompt_id"),
        tool_use=_text(event, "tool_use_id"),
    )


def _text(event: Event, key: str) -> str:
    value = event.payload.get(key)
    return value if isinstance(value, str) else ""


def _cut(text: str) -> str:
    flat = text.strip()
    return (
        flat if len(flat) <= QUOTE_CHARACTERS else flat[: QUOTE_CHARACTERS - 1].rstrip() + "…"
    )


# MERGED from memd.recall.wording:
# MERGED What the names of rules mean, in words: who or what wrote a memory, an edge or a supersession. Pure.


_RULES: Mapping[str, str] = {
    "turn": "the whole turn: what was asked, answered, changed and run",
    "compaction": "the client's own summary when it compacted the session",
    "same-command": "a command failed, something was changed, and the same command passed",
    "same-tool": "a check failed, something was changed, and another run of its tool passed",
    "stated-fix": "a check failed, something was changed, and the agent said that it is fixed",
    "unmended": "a check failed and nothing in its turn mended it",
    "remembered": "somebody asked to remember it",
    "remembered:untitled": "somebody asked to remember it",
    "imported": "brought by an import",
    "imported:file": "read from a file",
    "decision:stated": "a sentence announces a decision",
    "decision:changed-mind": "somebody says that they changed their mind",
    "decision:decided": "a sentence says that it was decided or agreed",
    "decision:chose": "a sentence says what was chosen, over what or why",
    "decision:no-longer": "a sentence says what is no longer done",
    "decision:switched": "a sentence says what was switched from and to",
    "decision:rather-than": "a sentence says what is done rather than something else",
    "decision:going-with": "a sentence says what to go with",
    "passed-later": "the same check passed in a later turn",
    "stated-reversal": "the newer one says in words that it replaces the choice",
    "other-choice": "two decisions choose differently about the same thing",
    "repeat": "the same was said again",
    "said-again": "the same was said again",
    "statement": "a statement in the one file names the other",
    "near-duplicate": "nearly the same text, and no guard objected",
    "restatement": "the same words but for case, order, punctuation or filler",
    "topic-key": "a new value under the same topic key",
    "project-merge": "two projects were merged and hold the same",
    "read-again": "the file that it was read from says it no longer, or otherwise",
    "vault-import": "so it was in the vault that it was imported from",
    "judged": "somebody judged the two",
}
_PREFIXES: Mapping[str, str] = {
    "decision:": "a sentence that decides something",
    "instruction:": "the user told how to do things from now on",
    "preference:": "the user said what they prefer",
    "fact:": "the user told a fact to keep in mind",
    "task:": "the user named something to be done later",
    "imported": "brought by an import",
}


def describe_rule(rule: str) -> str:
    """What this rule means; empty for one that nobody put into words."""
    if rule in _RULES:
        return _RULES[rule]
    return next((said for start, said in _PREFIXES.items() if rule.startswith(start)), "")


# MERGED from memd.recall.access:
# MERGED How a memory was used: how often answers returned it, and which sessions were shown it unasked.


LATEST_MAX = 10


def read_usage(
    tx: Connection, summary_id: int, project_ids: tuple[int, ...] | None
) -> UsageHistory:
    """The uses of a memory; of a session of another project only that there was one."""
    use = usage.uses_of(tx, [summary_id]).get(summary_id)
    shown, sessions = usage.count_injections(tx, summary_id)
    latest = usage.summary_injections(tx, summary_id, LATEST_MAX)
    known = projects.sessions(tx, {one.session_id for one in latest})
    return UsageHistory(
        returned_count=use.count if use else 0,
        last_returned_at=use.last_at if use else None,
        injected_count=shown,
        session_count=sessions,
        latest=tuple(
            PastInjection(session.key, session.title, one.moment, one.at, one.reason)
            for one in latest
            if (session := known.get(one.session_id)) is not None
            and (project_ids is None or session.project_id in project_ids)
        ),
    )


# MERGED from memd.recall.provenance:
# MERGED Why a memory exists and whether it is still true: its sources, its successors, its surroundings.
# MERGED
# MERGED Everything is read in one snapshot. Nothing of another project is shown, not even as the far end of an
# MERGED edge: a file may be known to several projects, so edges are followed only through what the asker may
# MERGED see. Not here: how any of it is drawn.


DEPTH_MAX = 6
EDGES_MAX = 200
RELATIONS_MAX = 200
_INT_MAX = 2**63 - 1
_CHUNK = 500
_CLAIMS = frozenset({Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK})
"""Kinds that say how things are or should be; the others tell what happened, which needs no confirming."""
_STATED_FIX = "stated-fix"
_CONFIRMING = frozenset({Stance.SUPERSEDES, Stance.DUPLICATE, Stance.COMPATIBLE})

Node = tuple[str, str]
"""(kind, id as text): (`summary`, `12`), (`file`, `/a/b.py`)."""


async def explain_node(
    db: Database,
    node_kind: str,
    node_id: str,
    *,
    depth: int,
    project_ids: tuple[int, ...] | None,
    now: int | None = None,
) -> Why:
    """Everything that is known of where a node comes from.

    `depth` is how many edges away to look, 0 to 6; at most 200 edges, the nearest first, both ways.
    `now`, UTC milliseconds, is needed to say that a memory has expired. Raises UnknownId for a node
    that is not there or belongs to none of `project_ids` (None: any).
    """
    if not 0 <= depth <= DEPTH_MAX:
        raise BadRequest(f"depth: between 0 and {DEPTH_MAX}")
    node = (storable(node_kind), storable(node_id))
    if node[0] in {"summary", "event"} and _number(node):
        node = (node[0], str(_number(node)))
    return await db.read(lambda tx: _Walk(tx, project_ids).explain(node, depth, now))


@dataclass(slots=True)
class _Walk:
    """One reading of the graph, with what it has learnt of the nodes so far."""

    tx: Connection
    project_ids: tuple[int, ...] | None
    summaries: dict[int, Summary] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    visible: dict[Node, bool] = field(default_factory=dict)
    told: dict[Node, bool] = field(default_factory=dict)
    """Of nodes that are neither memories nor events: whether a visible memory tells of them."""

    def explain(self, node: Node, depth: int, now: int | None) -> Why:
        self._learn([node])
        if not self.visible[node]:
            raise UnknownId(self._unknown(node))
        number = _number(node)
        summary = self.summaries.get(number) if node[0] == "summary" else None
        if summary is None:
            edges = tuple(self._edges(node, max(depth, 1)))
            if node[0] != "event" and not edges:
                raise UnknownId(self._unknown(node))
            return self._other(node, edges if depth else ())
        edges = tuple(self._edges(node, depth))
        relations = tuple(self._relations(summary))
        said = self._judgments(summary)
        return Why(
            node=_name(node),
            summary=summary,
            verdict=self._verdict(summary, relations, said, now),
            sources=self._sources(summary),
            relations=relations,
            edges=edges,
            titles=self._titles(edges),
            rule=describe_rule(summary.rule),
            access=read_usage(self.tx, summary.id, self.project_ids),
            judgments=said,
            contradicted_by=self._contradicting(summary),
        )

    def _judgments(self, summary: Summary) -> tuple[JudgmentLink, ...]:
        found = judgments.judgments_of(self.tx, summary.id)
        pairs = [(one, _opposite(one, summary.id)) for one in found]
        self._learn(("summary", str(other)) for _, other in pairs)
        return tuple(
            JudgmentLink(one, self.summaries[other])
            for one, other in pairs
            if self.visible["summary", str(other)]
        )

    def _other(self, node: Node, edges: tuple[Edge, ...]) -> Why:
        """A node that is no memory: an event is its own source, a file is known by its edges."""
        event = self.events.get(_number(node)) if node[0] == "event" else None
        sources = (_witness(event),) if event else ()
        verdict = "recorded" if event else "known by its edges"
        return Why(_name(node), None, verdict, sources, (), edges, self._titles(edges))

    def _unknown(self, node: Node) -> str:
        number = _number(node)
        is_there = number in self.summaries if node[0] == "summary" else number in self.events
        what = f"#{node[1]}" if node[0] == "summary" else _name(node)
        if is_there and node[0] in {"summary", "event"}:
            return f"{what} belongs to another project; ask with the project all to see it"
        return (
            f"there is no memory {what}"
            if node[0] == "summary"
            else f"nothing is known of {what}"
        )

    def _learn(self, nodes: Iterable[Node]) -> None:
        """Read what these nodes are, and note whether the asker may see them."""
        fresh = [node for node in dict.fromkeys(nodes) if node not in self.visible]
        for chunk in _chunks([_number(n) for n in fresh if n[0] == "summary" and _number(n)]):
            self.summaries |= store_summaries.summaries_by_ids(self.tx, chunk)
        found: dict[int, Event] = {}
        for chunk in _chunks([_number(n) for n in fresh if n[0] == "event" and _number(n)]):
            found |= store_events.events_by_ids(self.tx, chunk)
        self.events |= found
        owners = {
            number: session.project_id
            for number, session in projects.sessions(
                self.tx, {e.session_id for e in found.values()}
            ).items()
        }
        for node in fresh:
            self.visible[node] = self._may_see(node, owners)

    def _may_see(self, node: Node, owners: dict[int, int]) -> bool:
        if node[0] not in {"summary", "event"}:
            return True
        if node[0] == "summary":
            summary = self.summaries.get(_number(node))
            project_id = summary.project_id if summary else None
        else:
            event = self.events.get(_number(node))
            project_id = owners.get(event.session_id) if event else None
        if project_id is None:
            return False
        return self.project_ids is None or project_id in self.project_ids

    def _edges(self, start: Node, depth: int) -> Iterator[Edge]:
        """Breadth first, both ways, each edge once."""
        seen: set[int] = set()
        reached = {start}
        frontier = [start]
        for _ in range(depth):
            following: list[Node] = []
            for node in frontier:
                for edge in self._edges_at(node):
                    if edge.id in seen:
                        continue
                    if len(seen) == EDGES_MAX:
                        return
                    seen.add(edge.id)
                    yield edge
                    following += [end for end in _ends(edge) if end not in reached]
                    reached.update(_ends(edge))
            frontier = following

    def _edges_at(self, node: Node) -> list[Edge]:
        edges = links.edges_at(self.tx, *node, limit=EDGES_MAX)
        self._learn(end for edge in edges for end in _ends(edge))
        return [
            edge
            for edge in edges
            if all(self.visible[end] for end in _ends(edge)) and self._is_told(edge)
        ]

    def _is_told(self, edge: Edge) -> bool:
        """Whether an edge between files is known by a memory that the asker may see."""
        if self.project_ids is None or {edge.from_kind, edge.to_kind} & {"summary", "event"}:
            return True
        start = (edge.from_kind, edge.from_id)
        if start not in self.told:
            self.told[start] = links.has_edge_to(self.tx, *start, self.project_ids)
        return self.told[start]

    def _relations(self, summary: Summary) -> Iterator[SupersessionLink]:
        """What supersedes it and what it supersedes, through any number of others; nearest first.

        An undone supersession is told, but not followed any further.
        """
        told: set[int] = set()
        for is_newer in (True, False):
            frontier = [summary.id]
            while frontier:
                following = []
                for one in self._supersessions(frontier, is_newer=is_newer):
                    other = one.newer_id if is_newer else one.older_id
                    if one.id in told or len(told) == RELATIONS_MAX:
                        continue
                    told.add(one.id)
                    yield SupersessionLink(one, self.summaries[other], is_newer)
                    if one.undone_at is None:
                        following.append(other)
                frontier = following

    def _supersessions(self, ids: Sequence[int], *, is_newer: bool) -> list[Supersession]:
        found = [
            one
            for number in ids
            for one in links.supersessions_of(self.tx, number)
            if (one.older_id if is_newer else one.newer_id) == number
        ]
        self._learn(
            ("summary", str(number)) for one in found for number in (one.newer_id, one.older_id)
        )
        return [one for one in found if all(
            self.visible["summary", str(number)] for number in (one.newer_id, one.older_id)
        )]  # fmt: skip

    def _verdict(
        self,
        summary: Summary,
        relations: Sequence[SupersessionLink],
        said: Sequence[JudgmentLink],
        now: int | None,
    ) -> str:
        above = [r for r in relations if r.is_newer and r.supersession.undone_at is None]
        if above:
            first, newest = above[0], above[-1].other.id
            via = "" if newest == first.other.id else f", via #{first.other.id}"
            return f"superseded by #{newest} ({first.supersession.rule}{via})"
        if summary.superseded_by is not None:
            return "superseded by a memory of another project"
        if now is not None and summary.expires_at is not None and summary.expires_at <= now:
            return "expired"
        if summary.archived_at is not None:
            return "archived"
        against = self._contradicting(summary)
        if against:
            return f"contradicted by {', '.join(f'#{number}' for number in against)}"
        return "unconfirmed" if _is_unconfirmed(summary, said) else "current"

    def _contradicting(self, summary: Summary) -> tuple[int, ...]:
        """Memories that say otherwise, as far as the asker may see them, and that nothing hides."""
        found = judgments.visible_contradictions(self.tx, [summary.id], self.project_ids)
        return found.get(summary.id, ())

    def _sources(self, summary: Summary) -> tuple[SourceEvent, ...]:
        quotes = links.sources_of(self.tx, summary.id)
        self._learn(("event", str(number)) for number, _ in quotes)
        return tuple(
            _witness(self.events[number], quote)
            for number, quote in quotes
            if number in self.events
        )

    def _titles(self, edges: Iterable[Edge]) -> dict[str, str]:
        nodes = {end for edge in edges for end in _ends(edge) if end[0] == "summary"}
        return {_name(node): self.summaries[_number(node)].title for node in sorted(nodes)}


def _is_unconfirmed(summary: Summary, said: Sequence[JudgmentLink]) -> bool:
    """Whether a claim was picked up from a conversation, said once, and never borne out by anybody."""
    if summary.tier is not Tier.CAPTURED or summary.duplicates > 1 or summary.pinned_at:
        return False
    if summary.kind not in _CLAIMS and summary.rule != _STATED_FIX:
        return False
    held = (one.judgment for one in said if one.judgment.undone_at is None)
    return not any(one.relation in _CONFIRMING for one in held)


def _witness(event: Event, quote: str = "") -> SourceEvent:
    return SourceEvent(event, quote_event(quote, event), locate_in_transcript(event))


def _opposite(judgment: Judgment, summary_id: int) -> int:
    is_newer = judgment.newer_id == summary_id
    return judgment.older_id if is_newer else judgment.newer_id


def _ends(edge: Edge) -> tuple[Node, Node]:
    return (edge.from_kind, edge.from_id), (edge.to_kind, edge.to_id)


def _name(node: Node) -> str:
    return f"{node[0]}:{node[1]}"


def _number(node: Node) -> int:
    """The id of a summary or an event; 0, which none has, if it is not one."""
    text = node[1]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0  # noqa: PLR2004  # 2**63 has 19
    return number if number <= _INT_MAX else 0


def _chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(ids), _CHUNK):
        yield ids[first : first + _CHUNK]
