"""Results of `mem_timeline` and `mem_why`, small enough for a model to read. Pure."""

from collections.abc import Container, Sequence
from itertools import groupby

from memd.belief.standing import describe_scope
from memd.models import AGENTS_IMPORT, Event, EventKind
from memd.recall import (
    JudgmentLink,
    SourceEvent,
    SupersessionLink,
    Timeline,
    TimelineRow,
    UsageHistory,
    Why,
)
from memd.server import mcp_format
from memd.server.jsonrpc import JsonObject
from memd.server.mcp_format import (
    LINE_BYTES,
    count_bytes,
    drop_empty,
    fit_items,
    fit_text,
    format_date,
)
from memd.store.lists import SessionRow
from memd.time_expressions import DAY_MS, HOUR_MS, MINUTE_MS, format_time

_WHY_CONTRADICTIONS_MAX = 50
_INJECTIONS_MAX = 5
"""Injections that `mem_why` lists: the latest few."""
_SPEAKERS = {
    EventKind.PROMPT: "user",
    EventKind.STOP: "agent",
    EventKind.AGENT_TEXT: "agent",
    EventKind.TOOL_REFUSED: "user",
    EventKind.SUBAGENT_STOP: "agent",
    EventKind.COMPACT_END: "agent",
    EventKind.TOOL_CALL: "agent",
    EventKind.TOOL_RESULT: "tool",
    EventKind.TOOL_FAILURE: "tool",
}
"""Whose words an event holds, where it holds any."""
_PAUSE_UNITS = (("day", DAY_MS), ("hour", HOUR_MS), ("minute", MINUTE_MS))


def format_timeline(
    timeline: Timeline, note: str | None, now: int, clients: Container[str] = ()
) -> JsonObject:
    """One row a memory, oldest first. If a span of days does not fit, its latest rows are returned.

    In a span, the first row of each day names the day.
    """
    rows = [_format_row(row, now, clients) for row in timeline.rows]
    if timeline.is_span:
        for day, rows_of_day in groupby(rows, key=lambda row: row["at"][:10]):
            next(rows_of_day)["day"] = day
    sides = (("before", timeline.more_before), ("after", timeline.more_after))
    more_sides = " and ".join(side for side, has_more in sides if has_more)
    frame = {
        "around": format_time(timeline.pivot_at),
        **drop_empty(more=more_sides, notes=[note] if note else []),
        "note": mcp_format.NOTE,
    }
    limit = mcp_format.RESULT_BYTES - count_bytes(frame) - 100
    fitting, left_out = fit_items(rows[::-1] if timeline.is_span else rows, limit)
    advice = "later rows; ask for fewer before and after"
    if timeline.is_span:
        fitting, advice = fitting[::-1], "earlier rows; ask for fewer days"
    more = {"left_out": f"{left_out} {advice}"} if left_out else {}
    return {"rows": fitting, **more, **frame}


def format_sessions(
    rows: Sequence[SessionRow], note: str | None, now: int, clients: Container[str] = ()
) -> JsonObject:
    """One row a session, the latest first."""
    frame = {
        "rows": [],
        "around": format_time(now),
        **drop_empty(notes=[note] if note else []),
        "note": mcp_format.NOTE,
    }
    items = [
        {
            "session": row.session.key,
            **drop_empty(title=fit_text(row.session.title or "", 120)),
            **format_date(row.session.started_at, now),
            "memories": row.memories,
            **drop_empty(client=row.session.client if row.session.client in clients else None),
        }
        for row in rows
    ]
    fitting, left_out = fit_items(items, mcp_format.RESULT_BYTES - count_bytes(frame) - 100)
    more = {"left_out": f"{left_out} earlier sessions; ask for fewer"} if left_out else {}
    return {"sessions": fitting, **more, **frame}


def _format_row(row: TimelineRow, now: int, clients: Container[str]) -> JsonObject:
    summary = row.summary
    return {
        "id": summary.id,
        "title": fit_text(summary.title, 120),
        "kind": summary.kind.value,
        "speaker": summary.speaker,
        **format_date(summary.at, now),
        **drop_empty(
            client=summary.source if summary.source in clients else None,
            gap=None if row.gap_ms is None else format_pause(row.gap_ms),
            superseded_by=summary.superseded_by,
            contradicted_by=list(row.contradicted_by)[-mcp_format.CONTRADICTIONS_MAX :],
            session=fit_text(row.session_title or "", mcp_format.SESSION_BYTES),
            new_session=row.begins_session,
            pivot=row.is_pivot,
        ),
    }


def format_pause(length_ms: int) -> str:
    """A pause in words: `3 hours idle`."""
    unit, unit_ms = next((one for one in _PAUSE_UNITS if length_ms >= one[1]), _PAUSE_UNITS[-1])
    count = length_ms // unit_ms
    return f"{count} {unit}{'' if count == 1 else 's'} idle"


def format_why(why: Why, now: int) -> JsonObject:
    """Format whether a memory still holds, where it comes from, what replaced it, and what is around it."""
    result: JsonObject = {"node": fit_text(_format_node(why.node), 2 * LINE_BYTES)}
    if why.summary is not None:
        result |= {
            "name": why.summary.name,
            "title": fit_text(why.summary.title, LINE_BYTES),
            "kind": why.summary.kind.value,
            "speaker": why.summary.speaker,
            **drop_empty(author=fit_text(why.summary.author, mcp_format.AUTHOR_BYTES)),
            **format_date(why.summary.at, now),
            "rule": why.summary.rule,
        }
    tags = why.summary.tags if why.summary is not None else ()
    result |= drop_empty(
        because=why.rule,
        scope=fit_text(describe_scope(tags), LINE_BYTES),
        verdict=why.verdict,
        contradicted_by=list(why.contradicted_by)[-_WHY_CONTRADICTIONS_MAX:],
        values=fit_items(why.values, 4 * LINE_BYTES)[0],
        checks=fit_items(why.checks, 4 * LINE_BYTES)[0],
        **_format_access(why.access),
    )
    limit = mcp_format.RESULT_BYTES - count_bytes(result) - 500
    lists = {
        "relations": [_format_relation(one, now) for one in why.relations],
        "judgments": [_format_judgment(one) for one in why.judgments],
        "sources": _format_sources(why.sources, now),
        "edges": _format_edges(why),
    }
    for position, (name, rows) in enumerate(lists.items()):
        fitting, left_out = fit_items(rows, limit // (len(lists) - position))
        if fitting or name != "judgments":
            result[name] = fitting
        limit -= count_bytes(fitting)
        if left_out:
            result[f"{name}_left_out"] = f"{left_out} more; ask with a smaller depth"
    return {**result, "note": mcp_format.NOTE}


def _format_node(name: str) -> str:
    """A memory as `#12`, any other node with its kind."""
    return "#" + name.removeprefix("summary:") if name.startswith("summary:") else name


def _format_access(access: UsageHistory) -> JsonObject:
    """Format how often the memory was returned and injected; nothing if it never was."""
    result: JsonObject = {}
    if access.count and access.last_at is not None:
        result["used"] = {"count": access.count, "last": format_time(access.last_at)}
    if access.shown:
        latest = [
            {
                "at": format_time(one.at),
                "moment": one.moment,
                "session": fit_text(one.session_title or one.session, mcp_format.SESSION_BYTES),
                "reason": fit_text(one.reason, LINE_BYTES // 2),
            }
            for one in access.latest[:_INJECTIONS_MAX]
        ]
        counts = {"count": access.shown, "sessions": access.sessions}
        result["shown_unasked"] = {**counts, "latest": latest}
    return result


def _format_relation(relation: SupersessionLink, now: int) -> JsonObject:
    one, other = relation.supersession, relation.other
    return {
        "id": other.id,
        "is": "superseded by" if relation.is_newer else "supersedes",
        **drop_empty(
            title=fit_text(other.title, LINE_BYTES),
            **format_date(other.at, now),
            rule=one.rule,
            guard=fit_text(one.guard, LINE_BYTES),
            cosine=mcp_format.round_number(one.cosine, 3),
            undone_at=None if one.undone_at is None else format_time(one.undone_at),
        ),
    }


def _format_judgment(judged: JudgmentLink) -> JsonObject:
    one = judged.judgment
    return drop_empty(
        id=one.newer_id,
        relation=one.relation.value,
        other=one.older_id,
        title=fit_text(judged.other.title, LINE_BYTES),
        reason=fit_text(one.reason, 2 * LINE_BYTES),
        who=one.who,
        at=format_time(one.at),
        undone_at=None if one.undone_at is None else format_time(one.undone_at),
    )


def _format_sources(sources: Sequence[SourceEvent], now: int) -> list[JsonObject]:
    """The events. A transcript is named where it is another than in the row before."""
    rows, last = [], ""
    for source in sources:
        event, at = source.event, source.position
        transcript = at.transcript or (f"session {at.session}" if at.session else "")
        # The most exact name of an event in its transcript.
        places = (("line", at.line), ("tool_use", at.tool_use), ("prompt", at.prompt))
        place = next((f"{kind} {name}" for kind, name in places if name), "")
        row = drop_empty(
            event=event.id,
            what=_name_event(event),
            speaker="agent" if event.source == AGENTS_IMPORT else _SPEAKERS.get(event.kind),
            **format_date(event.at, now),
            quote=fit_text(source.quote, mcp_format.QUOTE_BYTES),
            place=fit_text(place, LINE_BYTES),
            transcript=fit_text(transcript, 2 * LINE_BYTES) if transcript != last else "",
        )
        rows.append(row)
        last = transcript
    return rows


def _name_event(event: Event) -> str:
    """The tool, or what kind of event; of a subagent, with its type."""
    what = event.tool or event.kind.value
    agent = str(event.payload.get("agent_type") or event.agent) if event.agent else ""
    return fit_text(f"{what} by {agent}", LINE_BYTES) if agent else what


def _format_edges(why: Why) -> list[JsonObject]:
    """The edges. A node's title stands in its first row; that of the asked node stands above."""
    titles = {name: title for name, title in why.titles.items() if name != why.node}
    rows = []
    for edge in why.edges:
        start, end = f"{edge.from_kind}:{edge.from_id}", f"{edge.to_kind}:{edge.to_id}"
        fields = drop_empty(
            type=edge.type.value,
            to=fit_text(_format_node(end), LINE_BYTES),
            rule=edge.rule,
            from_title=fit_text(titles.pop(start, ""), LINE_BYTES // 2),
            to_title=fit_text(titles.pop(end, ""), LINE_BYTES // 2),
        )
        rows.append({"from": fit_text(_format_node(start), LINE_BYTES), **fields})
    return rows
