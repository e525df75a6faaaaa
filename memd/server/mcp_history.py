"""`mem_timeline` and `mem_why` as an agent reads them: in UTC, within their room, what is left out counted. Pure.

Not here: what happened (recall/timeline.py, recall/provenance.py), and how it is drawn for people (cli).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.models import Edge
from memd.recall.types import (
    JudgmentLink,
    SourceEvent,
    SupersessionLink,
    Timeline,
    TimelineRow,
    TranscriptPosition,
    UsageHistory,
    Why,
)
from memd.server import mcp_format, time_expressions
from memd.server.mcp_format import NOTE, ROOM, View, dated

_SESSION_BYTES = 60
_QUOTE_BYTES = 500
_LINE_BYTES = 200
_AGAINST_SHOWN = 50
_AGAINST_IN_ROW = 3
_LATEST_SHOWN = 5
_IDLE = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000))


def timeline(shown: Timeline, view: View) -> dict[str, Any]:
    """`mem_timeline`: one row a memory, oldest first; of a stretch of days the latest rows are kept."""
    rows = [_row(row, view) for row in shown.rows]
    if shown.is_span:
        _name_days(rows)
    frame: dict[str, Any] = {"around": time_expressions.iso(shown.pivot_at)}
    more = [
        name
        for name, is_so in (("before", shown.more_before), ("after", shown.more_after))
        if is_so
    ]
    if more:
        frame["more"] = " and ".join(more)
    frame |= {"notes": [view.note]} if view.note else {}
    frame["note"] = NOTE
    room = ROOM - mcp_format.size(frame) - 100
    if shown.is_span:
        kept, left_out = mcp_format.items(reversed(rows), room)
        return {
            "rows": kept[::-1],
            **_left_out(left_out, "earlier rows; ask for fewer days"),
            **frame,
        }
    kept, left_out = mcp_format.items(rows, room)
    return {
        "rows": kept,
        **_left_out(left_out, "later rows; ask for fewer before and after"),
        **frame,
    }


def _left_out(count: int, what: str) -> dict[str, str]:
    return {"left_out": f"{count} {what}"} if count else {}


def _name_days(rows: list[dict[str, Any]]) -> None:
    """Put its day on the first row of each day."""
    last = ""
    for row in rows:
        day = row["at"][:10]
        if day != last:
            row["day"] = day
        last = day


def _row(row: TimelineRow, view: View) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": row.summary.id,
        "title": mcp_format.text(row.summary.title, 120),
        "kind": row.summary.kind.value,
        **dated(row.summary.at, view.now),
    }
    if row.gap_ms is not None:
        told["gap"] = idle(row.gap_ms)
    if row.summary.superseded_by is not None:
        told["superseded_by"] = row.summary.superseded_by
    if row.contradicted_by:
        told["contradicted_by"] = list(row.contradicted_by)[-_AGAINST_IN_ROW:]
    if row.session_title:
        told["session"] = mcp_format.text(row.session_title, _SESSION_BYTES)
    if row.begins_session:
        told["new_session"] = True
    return {**told, "pivot": True} if row.is_pivot else told


def idle(length_ms: int) -> str:
    """A pause in words: `3 hours idle`."""
    unit, size = next((one for one in _IDLE if length_ms >= one[1]), _IDLE[-1])
    count = length_ms // size
    return f"{count} {unit}{'' if count == 1 else 's'} idle"


def why(found: Why, view: View) -> dict[str, Any]:
    """`mem_why`: is it still true, where does it come from, what replaced it, what is around it."""
    shown: dict[str, Any] = {"node": mcp_format.text(_node(found.node), 2 * _LINE_BYTES)}
    if found.summary is not None:
        shown |= {
            "title": mcp_format.text(found.summary.title, _LINE_BYTES),
            "kind": found.summary.kind.value,
            **dated(found.summary.at, view.now),
            "rule": found.summary.rule,
        }
    if found.rule:
        shown["because"] = found.rule
    shown["verdict"] = found.verdict
    if found.contradicted_by:
        shown["contradicted_by"] = list(found.contradicted_by)[-_AGAINST_SHOWN:]
    shown |= _access(found.access)
    room = ROOM - mcp_format.size(shown) - 500
    lists = (
        ("relations", [_relation(one, view) for one in found.relations]),
        ("judgments", [_judgment(one) for one in found.judgments]),
        ("sources", _sources(found.sources, view)),
        ("edges", _edges(found)),
    )
    for position, (name, rows) in enumerate(lists):
        kept, left_out = mcp_format.items(rows, room // (len(lists) - position))
        if kept or name != "judgments":
            shown[name] = kept
        room -= mcp_format.size(kept)
        if left_out:
            shown[f"{name}_left_out"] = f"{left_out} more; ask with a smaller depth"
    return {**shown, "note": NOTE}


def _node(name: str) -> str:
    """A summary is `#12` to people; other nodes keep their kind."""
    return "#" + name.removeprefix("summary:") if name.startswith("summary:") else name


def _sources(found: Sequence[SourceEvent], view: View) -> list[dict[str, Any]]:
    """The events; which transcript they stand in is told where it changes."""
    rows, last = [], ""
    for source in found:
        at = source.position
        told: dict[str, Any] = {
            "event": source.event.id,
            "what": source.event.tool or source.event.kind.value,
            **dated(source.event.at, view.now),
            "quote": mcp_format.text(source.quote, _QUOTE_BYTES),
            "place": mcp_format.text(_place(at), _LINE_BYTES),
        }
        where = at.transcript or (f"session {at.session}" if at.session else "")
        if where != last:
            told["transcript"] = mcp_format.text(where, 2 * _LINE_BYTES)
        last = where
        rows.append({key: value for key, value in told.items() if value != ""})
    return rows


def _place(at: TranscriptPosition) -> str:
    """The best name that the event has in there: of its line, its tool call or its prompt."""
    named = (("line", at.line), ("tool_use", at.tool_use), ("prompt", at.prompt))
    return next((f"{what} {name}" for what, name in named if name), "")


def _access(found: UsageHistory) -> dict[str, Any]:
    """How often it was returned and shown; nothing if it never was."""
    told: dict[str, Any] = {}
    if found.returned_count and found.last_returned_at is not None:
        told["used"] = {
            "count": found.returned_count,
            "last": time_expressions.iso(found.last_returned_at),
        }
    if found.injected_count:
        latest = [
            {
                "at": time_expressions.iso(one.at),
                "moment": one.moment,
                "session": mcp_format.text(one.session_title or one.session, _SESSION_BYTES),
                "reason": mcp_format.text(one.reason, _LINE_BYTES // 2),
            }
            for one in found.latest[:_LATEST_SHOWN]
        ]
        told["shown_unasked"] = {
            "count": found.injected_count,
            "sessions": found.session_count,
            "latest": latest,
        }
    return told


def _relation(relation: SupersessionLink, view: View) -> dict[str, Any]:
    one = relation.supersession
    told: dict[str, Any] = {
        "id": relation.other.id,
        "is": "superseded by" if relation.is_newer else "supersedes",
        "title": mcp_format.text(relation.other.title, _LINE_BYTES),
        **dated(relation.other.at, view.now),
        "rule": one.rule,
        "guard": mcp_format.text(one.guard, _LINE_BYTES),
        "cosine": None if one.cosine is None else mcp_format.number(one.cosine, 3),
        "undone_at": None if one.undone_at is None else time_expressions.iso(one.undone_at),
    }
    return {key: value for key, value in told.items() if value is not None and value != ""}


def _judgment(one: JudgmentLink) -> dict[str, Any]:
    said = one.judgment
    told: dict[str, Any] = {
        "id": said.newer_id,
        "relation": said.relation.value,
        "other": said.older_id,
        "title": mcp_format.text(one.other.title, _LINE_BYTES),
        "reason": mcp_format.text(said.reason, 2 * _LINE_BYTES),
        "who": said.who,
        "at": time_expressions.iso(said.at),
        "undone_at": None if said.undone_at is None else time_expressions.iso(said.undone_at),
    }
    return {key: value for key, value in told.items() if value is not None and value != ""}


def _edges(found: Why) -> list[dict[str, Any]]:
    """The edges; what a memory is called is told once, and of the one asked for above."""
    titles = {name: title for name, title in found.titles.items() if name != found.node}
    rows = []
    for edge in found.edges:
        rows.append(_edge(edge, titles))
        for end in (f"{edge.from_kind}:{edge.from_id}", f"{edge.to_kind}:{edge.to_id}"):
            titles.pop(end, None)
    return rows


def _edge(edge: Edge, titles: Mapping[str, str]) -> dict[str, Any]:
    start, end = f"{edge.from_kind}:{edge.from_id}", f"{edge.to_kind}:{edge.to_id}"
    told: dict[str, Any] = {
        "from": mcp_format.text(_node(start), _LINE_BYTES),
        "type": edge.type.value,
        "to": mcp_format.text(_node(end), _LINE_BYTES),
        "rule": edge.rule,
        "from_title": mcp_format.text(titles.get(start, ""), _LINE_BYTES // 2),
        "to_title": mcp_format.text(titles.get(end, ""), _LINE_BYTES // 2),
    }
    return {key: value for key, value in told.items() if value != ""}
