"""mem_why: where a memory comes from, what superseded it, how it was used, and whether it is still true.

Everything is read in one transaction. Nothing of another project is shown, not even as the far end of an
edge: a file may be known to several projects, so edges are followed only through what the caller may see.
"""

import functools
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path

from memd.belief.changes import CHANGED_VALUE_RULE
from memd.belief.checked_rules import describe_checks, find_later_rule
from memd.belief.notes import Note, split_note
from memd.belief.supersede import STOOD_RULE, describe_standing
from memd.belief.values import ReplacedValue, describe_line, read_set_values
from memd.directories import read_worktree_path
from memd.errors import BadRequest, UnknownId
from memd.models import (
    ENDING_RULES,
    NOTED,
    REMEMBERED,
    Authority,
    Edge,
    Event,
    Kind,
    Session,
    Stance,
    Summary,
    Supersession,
    Tier,
)
from memd.recall import (
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
from memd.text import storable, unique
from memd.time_expressions import format_time

DEPTH_MAX = 6
EDGES_MAX = 200
RELATIONS_MAX = 200
LATEST_MAX = 10
"""Injections that are listed."""
QUOTE_CHARACTERS = 400
_FILES_MAX, _FILES_SHOWN = 50, 5
"""Files of one name that are looked at, and that an error lists."""
_INT_MAX = 2**63 - 1
_READ_ROWS = 500
"""Rows that are read by one query."""
_CLAIMS = frozenset({Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK})
"""Kinds that say how things are or should be; the others say what happened, which needs no confirmation."""
_STATED_FIX = "stated-fix"
_CONFIRMING = frozenset({Stance.SUPERSEDES, Stance.DUPLICATE, Stance.COMPATIBLE})
_TEXT_KEYS = (
    "prompt", "last_assistant_message", "said", "text", "message", "error", "command", "file_path", "summary",
)  # fmt: skip
"""Where an event's own words are, if no quote of it was stored."""

Node = tuple[str, str]
"""(kind, id as text): (`summary`, `12`), (`file`, `/a/b.py`)."""


async def explain_node(  # noqa: PLR0913  # what is asked, how far, and where
    db: Database,
    node_kind: str,
    node_id: str,
    *,
    depth: int,
    project_ids: tuple[int, ...] | None,
    now: int | None = None,
    roots: Sequence[str] = (),
) -> Why:
    """Explain where a node comes from.

    `depth` is how many edges away to look, 0 to 6; at most 200 edges, the nearest first, both ways.
    `now`, UTC milliseconds, is needed to say that a memory has expired. Raises UnknownId for a node
    that does not exist or belongs to none of `project_ids` (None: any). `roots`: the worktree where it is asked, then
    the other directories of that repository: a file in one of them is the same file.
    """
    if not 0 <= depth <= DEPTH_MAX:
        raise BadRequest(f"depth: between 0 and {DEPTH_MAX}")
    node = (storable(node_kind), storable(node_id))
    if node[0] in {"summary", "event"} and _parse_id(node):
        node = (node[0], str(_parse_id(node)))
    return await db.read(
        lambda tx: _GraphReader(tx, project_ids, tuple(roots)).explain(node, depth, now)
    )


@dataclass(slots=True)
class _GraphReader:
    """Reads the graph around one node, and remembers the nodes that it has read."""

    tx: Connection
    project_ids: tuple[int, ...] | None
    roots: tuple[str, ...] = ()
    copies: list[Node] = field(default_factory=list)
    """The same file in other worktrees, whose memory is shared."""
    summaries: dict[int, Summary] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    visible: dict[Node, bool] = field(default_factory=dict)

    def explain(self, node: Node, depth: int, now: int | None) -> Why:
        """Explain a node; UnknownId if the caller may not see it."""
        if node[0] == "file":
            node = self._find_file(node)
        self._load_nodes([node])
        if not self.visible[node]:
            raise UnknownId(self._describe_unknown(node))
        if node[0] != "summary":
            return self._explain_other(node, depth)
        summary = self.summaries[_parse_id(node)]
        edges = tuple(self._walk_edges(node, depth))
        relations = tuple(self._walk_supersessions(summary))
        said = self._read_judgments(summary)
        contradicting = judgments.visible_contradictions(
            self.tx, [summary.id], self.project_ids
        ).get(summary.id, ())
        values = read_set_values(self.tx, [summary.id]).replaced
        later = find_later_rule(self.tx, summary, now or 0)
        return Why(
            node=_format_node(node),
            summary=summary,
            verdict=_decide_verdict(
                summary, relations, said, contradicting, values, later=later, now=now
            ),
            sources=self._read_sources(summary),
            relations=relations,
            edges=edges,
            titles=self._read_titles(edges),
            rule="; ".join(
                filter(None, (self._tell_making(summary), *self._read_evidence(summary)))
            ),
            access=read_usage(self.tx, summary.id, self.project_ids),
            judgments=said,
            contradicted_by=contradicting,
            values=_describe_values(summary.id, values),
            checks=() if later else describe_checks(self.tx, summary),
        )

    def _explain_other(self, node: Node, depth: int) -> Why:
        """A node that is no memory: an event is its own source, a file is known by its edges."""
        starts = (node, *self.copies)
        walked = (edge for one in starts for edge in self._walk_edges(one, max(depth, 1)))
        edges = tuple({edge.id: edge for edge in walked}.values())[:EDGES_MAX]
        event = self.events.get(_parse_id(node)) if node[0] == "event" else None
        if event is None and not edges:
            raise UnknownId(self._describe_unknown(node))
        edges = edges if depth else ()
        return Why(
            node=_format_node(node),
            summary=None,
            verdict="recorded" if event else "known by its edges",
            sources=(_make_source(event),) if event else (),
            relations=(),
            edges=edges,
            titles=self._read_titles(edges),
            copies=tuple(map(_format_node, self.copies)),
        )

    def _find_file(self, node: Node) -> Node:
        """Find the file with this ending, if the caller may see only one; a whole path stays as it is.

        In a worktree it is that worktree's, with what is known of the same file in the others.
        """
        if self.roots and (shared := self._find_shared_file(node[1])) is not None:
            return shared
        if self._has_visible_edges(node):
            return node
        paths = links.file_nodes_ending(self.tx, node[1], _FILES_MAX)
        found = [path for path in paths if self._has_visible_edges(("file", path))]
        if len(found) > 1:
            shown = ", ".join(found[:_FILES_SHOWN])
            more = f" and {len(found) - _FILES_SHOWN} more" if len(found) > _FILES_SHOWN else ""
            raise BadRequest(f"{node[1]} is {len(found)} files; name one: {shown}{more}")
        return ("file", found[0]) if found else node

    def _find_shared_file(self, name: str) -> Node | None:
        """The file of this name in the caller's worktree; None if it is of no worktree, or several have its name."""
        # `.worktrees/fix/a.py` is a file of that worktree, asked for from its repository.
        wanted = self._strip_root(
            name if name.startswith("/") else normpath(f"{self.roots[0]}/{name}")
        )
        if wanted is None:
            return None
        paths = links.file_nodes_ending(self.tx, wanted, _FILES_MAX)
        inside = {path: inner for path in paths if (inner := self._strip_root(path)) is not None}
        known = [path for path in inside if self._has_visible_edges(("file", path))]
        named = {inside[path] for path in known}
        # The whole name is meant before a file deeper down that only ends so.
        chosen = wanted if wanted in named else next(iter(named)) if len(named) == 1 else None
        if chosen is None:
            return None
        same = [path for path in known if inside[path] == chosen]
        own = f"{self.roots[0]}/{chosen}"
        path = own if own in same or Path(own).exists() else same[0]
        self.copies = [("file", one) for one in same if one != path]
        return ("file", path)

    def _strip_root(self, path: str) -> str | None:
        """The path of a file in its worktree; None if it is in none of this repository's."""
        worktree = read_worktree_path(path)
        tops = (*self.roots, *([worktree.top] if worktree and worktree.main in self.roots else []))
        inside = [top for top in tops if path.startswith(f"{top}/")]
        return path[len(max(inside, key=len)) + 1 :] if inside else None

    def _has_visible_edges(self, node: Node) -> bool:
        return any(True for _ in self._walk_edges(node, 1))

    def _describe_unknown(self, node: Node) -> str:
        known = set(self.summaries if node[0] == "summary" else self.events)
        name = {"summary": f"#{node[1]}", "file": f"the file {node[1]}"}.get(
            node[0], _format_node(node)
        )
        if node[0] in {"summary", "event"} and _parse_id(node) in known:
            return f"{name} belongs to another project; ask with the project all to see it"
        return f"{'there is no memory' if node[0] == 'summary' else 'nothing is known of'} {name}"

    def _load_nodes(self, nodes: Iterable[Node]) -> None:
        """Read the nodes that are not yet read, and whether the caller may see them."""
        new = [node for node in dict.fromkeys(nodes) if node not in self.visible]
        for ids in _split_ids(new, "summary"):
            self.summaries |= store_summaries.summaries_by_ids(self.tx, ids)
        found: dict[int, Event] = {}
        for ids in _split_ids(new, "event"):
            found |= store_events.events_by_ids(self.tx, ids)
        self.events |= found
        sessions = projects.sessions(self.tx, {event.session_id for event in found.values()})
        for node in new:
            number, project_id = _parse_id(node), None
            if node[0] == "summary" and number in self.summaries:
                project_id = self.summaries[number].project_id
            elif node[0] == "event" and number in found:
                session = sessions.get(found[number].session_id)
                project_id = session.project_id if session else None
            elif node[0] not in {"summary", "event"}:
                self.visible[node] = True
                continue
            self.visible[node] = project_id is not None and (
                self.project_ids is None or project_id in self.project_ids
            )

    def _walk_edges(self, start: Node, depth: int) -> Iterator[Edge]:
        """Breadth first, both ways, each edge once."""
        seen: set[int] = set()
        reached = {start}
        frontier = [start]
        for _ in range(depth):
            following: list[Node] = []
            for node in frontier:
                for edge in self._read_edges(node):
                    if edge.id in seen:
                        continue
                    if len(seen) == EDGES_MAX:
                        return
                    seen.add(edge.id)
                    yield edge
                    following += [end for end in _edge_ends(edge) if end not in reached]
                    reached.update(_edge_ends(edge))
            frontier = following

    def _read_edges(self, node: Node) -> list[Edge]:
        edges = links.edges_at(self.tx, *node, limit=EDGES_MAX)
        self._load_nodes(end for edge in edges for end in _edge_ends(edge))
        return [
            edge
            for edge in edges
            if all(self.visible[end] for end in _edge_ends(edge)) and self._is_mentioned(edge)
        ]

    def _is_mentioned(self, edge: Edge) -> bool:
        """Return whether an edge between files begins at a file that a visible memory has an edge to."""
        if self.project_ids is None or {edge.from_kind, edge.to_kind} & {"summary", "event"}:
            return True
        return links.has_edge_to(self.tx, edge.from_kind, edge.from_id, self.project_ids)

    def _walk_supersessions(self, summary: Summary) -> Iterator[SupersessionLink]:
        """Walk to what supersedes a memory and what it supersedes, directly or not; nearest first.

        An undone supersession is shown, but not followed any further.
        """
        seen: set[int] = set()
        for is_newer in (True, False):
            frontier = [summary.id]
            while frontier:
                following = []
                for one in self._read_supersessions(frontier, is_newer=is_newer):
                    other = one.newer_id if is_newer else one.older_id
                    if one.id in seen or len(seen) == RELATIONS_MAX:
                        continue
                    seen.add(one.id)
                    yield SupersessionLink(one, self.summaries[other], is_newer)
                    if one.undone_at is None:
                        following.append(other)
                frontier = following

    def _read_supersessions(self, ids: Sequence[int], *, is_newer: bool) -> list[Supersession]:
        found = [
            one
            for number in ids
            for one in links.supersessions_of(self.tx, number)
            if (one.older_id if is_newer else one.newer_id) == number
        ]
        self._load_summaries(end for one in found for end in (one.newer_id, one.older_id))
        return [one for one in found if self._may_see(one.newer_id) and self._may_see(one.older_id)]

    def _read_judgments(self, summary: Summary) -> tuple[JudgmentLink, ...]:
        found = judgments.judgments_of(self.tx, summary.id)
        others = [one.older_id if one.newer_id == summary.id else one.newer_id for one in found]
        self._load_summaries(others)
        return tuple(
            JudgmentLink(one, self.summaries[other])
            for one, other in zip(found, others, strict=True)
            if self._may_see(other)
        )

    def _load_summaries(self, ids: Iterable[int]) -> None:
        self._load_nodes(("summary", str(number)) for number in ids)

    def _may_see(self, summary_id: int) -> bool:
        return self.visible["summary", str(summary_id)]

    def _tell_making(self, summary: Summary) -> str:
        number = summary.session_id
        return describe_making(summary, projects.session(self.tx, number) if number else None)

    def _read_evidence(self, summary: Summary) -> Iterator[str]:
        """Yield what is behind a note beside the words of its sources, in words."""
        note = split_note(summary.body)
        around = links.edges_at(self.tx, "summary", str(summary.id))
        noted = [edge for edge in around if edge.rule in {NOTED, STOOD_RULE}]
        if note.said and not any(edge.rule == NOTED for edge in noted):
            yield f"proved {note.proved or 'on another device'}: “{note.said}”"
        if note.quoted:
            yield _tell_quoted(note)
        for edge in noted:
            if edge.rule == STOOD_RULE and edge.to_kind == "event":
                yield describe_standing(self.tx, note.stood, int(edge.to_id))
        own = (e for e in around if e.from_id == str(summary.id) and e.rule == summary.rule)
        if reasons := next((e.detail["title"] for e in own if "title" in e.detail), None):
            told = ", ".join(f"{why} ({value:+.2f})" for why, value in reasons)
            yield f"its title was chosen by the ranker of titles, rated from 0 to 1; what counted most: {told}"
        place = projects.project(self.tx, summary.project_id)
        if note.line and place is not None:
            gone = describe_line(summary.body, place.key)
            yield gone or f"it rests on {note.line}"

    def _read_sources(self, summary: Summary) -> tuple[SourceEvent, ...]:
        quotes = links.sources_of(self.tx, summary.id)
        self._load_nodes(("event", str(number)) for number, _ in quotes)
        return tuple(
            _make_source(self.events[number], quote)
            for number, quote in quotes
            if number in self.events
        )

    def _read_titles(self, edges: Iterable[Edge]) -> dict[str, str]:
        nodes = {end for edge in edges for end in _edge_ends(edge) if end[0] == "summary"}
        return {_format_node(node): self.summaries[_parse_id(node)].title for node in sorted(nodes)}


def _decide_verdict(  # noqa: PLR0911, PLR0913  # one verdict a line, and what each rests on
    summary: Summary,
    relations: Sequence[SupersessionLink],
    said: Sequence[JudgmentLink],
    contradicting: Sequence[int],
    values: Sequence[ReplacedValue],
    *,
    later: int | None,
    now: int | None,
) -> str:
    if summary.rejected_at is not None:
        return f"rejected by the user on {format_time(summary.rejected_at)[:10]}"
    above = [r for r in relations if r.is_newer and r.supersession.undone_at is None]
    above = above if summary.superseded_by is not None else []
    if above:
        first, newest = above[0], above[-1].other.id
        via = "" if newest == first.other.id else f", via #{first.other.id}"
        return f"superseded by #{newest} ({first.supersession.rule}{via})"
    if summary.superseded_by is not None:
        return "superseded by a memory of another project"
    if now is not None and summary.expires_at is not None and summary.expires_at <= now:
        return "expired"
    if summary.archived_at is not None:
        is_idle = summary.rule in ENDING_RULES
        return "not told: what it ended holds again or is gone" if is_idle else "archived"
    newer = unique(
        f"#{one.newer_id}" for one in values if one.older_id == summary.id and one.is_replaced
    )
    if newer:
        return f"value replaced by {', '.join(newer)} ({CHANGED_VALUE_RULE})"
    if contradicting:
        return f"contradicted by {', '.join(f'#{number}' for number in contradicting)}"
    if later is not None:
        return f"#{later} says what holds of it since"
    return "unconfirmed" if _is_unconfirmed(summary, said) else "current"


def _describe_values(summary_id: int, values: Sequence[ReplacedValue]) -> tuple[str, ...]:
    replaced = [one for one in values if one.is_replaced]
    return (
        *(str(one) for one in replaced if one.older_id == summary_id),
        *(
            f"replaces {one.told_by_newer} ({one.file})"
            for one in replaced
            if one.newer_id == summary_id
        ),
    )


def _tell_quoted(note: Note) -> str:
    if note.heard:
        return f"the user said “{note.heard}”, which does not surely say that"
    if note.refuted:
        return f"what it quotes, “{note.quoted}”, is not the user's word: {note.refuted}"
    return f"the words that it quotes are not found in the record: “{note.quoted}”"


def _is_unconfirmed(summary: Summary, said: Sequence[JudgmentLink]) -> bool:
    """Return whether a claim rests on an agent's or a tool's word, said once, and was never confirmed."""
    if summary.tier not in {Tier.CAPTURED, Tier.AGENT} or summary.authority >= Authority.USER_TOLD:
        return False
    if summary.duplicates > 1 or summary.pinned_at:
        return False
    if summary.kind not in _CLAIMS and summary.rule != _STATED_FIX:
        return False
    valid = (one.judgment for one in said if one.judgment.undone_at is None)
    return not any(one.relation in _CONFIRMING for one in valid)


def _edge_ends(edge: Edge) -> tuple[Node, Node]:
    return (edge.from_kind, edge.from_id), (edge.to_kind, edge.to_id)


def _format_node(node: Node) -> str:
    return f"{node[0]}:{node[1]}"


def _parse_id(node: Node) -> int:
    """The id of a summary or an event; 0, which none has, if it is not one."""
    text = node[1]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0  # noqa: PLR2004  # 2**63 has 19
    return number if number <= _INT_MAX else 0


def _split_ids(nodes: Sequence[Node], kind: str) -> Iterator[list[int]]:
    ids = [number for node in nodes if node[0] == kind and (number := _parse_id(node))]
    for first in range(0, len(ids), _READ_ROWS):
        yield ids[first : first + _READ_ROWS]


# ── Events as sources ────────────────────────────────────────────────────────────────────────────


def _make_source(event: Event, quote: str = "") -> SourceEvent:
    return SourceEvent(event, quote_event(quote, event), locate_in_transcript(event))


def quote_event(quote: str, event: Event) -> str:
    """The quote that was stored, else the event's own words, if it has any; at most 400 characters."""
    given = event.payload.get("tool_input")
    payloads = (event.payload, given if isinstance(given, dict) else {})
    texts = [quote, *(payload.get(key) for payload in payloads for key in _TEXT_KEYS)]
    flat = next((text for text in texts if isinstance(text, str) and text.strip()), "").strip()
    return flat if len(flat) <= QUOTE_CHARACTERS else flat[: QUOTE_CHARACTERS - 1].rstrip() + "…"


def locate_in_transcript(event: Event) -> TranscriptPosition:
    """Locate an event in its transcript; a subagent's in the subagent's own, if the event names it."""

    def read_text(key: str) -> str:
        value = event.payload.get(key)
        return value if isinstance(value, str) else ""

    return TranscriptPosition(
        transcript=read_text("agent_transcript_path") or read_text("transcript_path"),
        session=read_text("session_id"),
        line=read_text("uuid"),
        prompt=event.turn or read_text("prompt_id"),
        tool_use=read_text("tool_use_id"),
    )


# ── Use ──────────────────────────────────────────────────────────────────────────────────────────


def read_usage(
    tx: Connection, summary_id: int, project_ids: tuple[int, ...] | None
) -> UsageHistory:
    """The uses of a memory; injections into another project's sessions are only counted."""
    use = usage.uses_of(tx, [summary_id]).get(summary_id)
    shown, sessions = usage.count_injections(tx, summary_id)
    latest = usage.summary_injections(tx, summary_id, LATEST_MAX)
    known = projects.sessions(tx, {one.session_id for one in latest})
    return UsageHistory(
        count=use.count if use else 0,
        last_at=use.last_at if use else None,
        shown=shown,
        sessions=sessions,
        latest=tuple(
            PastInjection(session.key, session.title, one.moment, one.at, one.reason)
            for one in latest
            if (session := known.get(one.session_id)) is not None
            and (project_ids is None or session.project_id in project_ids)
        ),
    )


# ── How a memory was made ────────────────────────────────────────────────────────────────────────


def describe_rule(rule: str) -> str:
    """Describe a rule in words; empty for an unknown one."""
    meanings, (family, colon, _) = _read_meanings(), rule.partition(":")
    return meanings.get(rule) or meanings.get(family + colon) or meanings.get(family, "")


@functools.cache
def _read_meanings() -> Mapping[str, str]:
    return tomllib.loads((Path(__file__).parent / "rules.toml").read_text(encoding="utf-8"))


def describe_making(one: Summary, session: Session | None) -> str:
    """Describe the rule that made a memory; of what an agent noted also which agent, in which session, and when."""
    family, told = one.rule.partition(":")[0], describe_rule(one.rule)
    if one.source != "agent" or family not in {REMEMBERED, NOTED}:
        return told
    who, where = "an agent", "a session that its client did not name"
    if session is not None:
        title = f" “{session.title}”" if session.title else ""
        who, where = f"an agent ({session.client})", f"session{title} {session.key}"
    made = f"{who} noted it in {where}, {format_time(one.created_at)}"
    note = split_note(one.body)
    if family == NOTED:
        return f"{made}, and the user's own words prove it"
    has_basis = note.said or note.quoted or note.stood or note.seen or note.line
    return made if has_basis else f"{made}, without a quote"
