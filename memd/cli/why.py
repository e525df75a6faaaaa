"""`memd why`: the story of a memory, or what is known of a file. `memd timeline`: memories in the order of their events.

What it says and whose word that is, what it replaced and what replaced it and why, the words that it rests on with
their places in the transcripts, and how it was used. `--graph` draws the raw edges.
"""

import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any

from typer import Argument, Option

from memd.belief.standing import describe_scope
from memd.cli import daemon_call, output
from memd.cli.output import Screen, find_screen
from memd.cli.query import MemoryColumns, format_with_ages
from memd.cli.terminal import (
    TIMES,
    ClientOption,
    KindsOption,
    check_kinds,
    print_result,
    read_days,
    read_local_time,
    read_span,
    read_today,
    wants_json,
)
from memd.models import AGENTS_IMPORT

_LABEL_WIDTH = 13
_TEXT_WIDTH_MAX = 96
_QUOTE_LINES_MAX = 3
_MEMORIES_OF_FILE_MAX = 20
_SPEAKERS = {"prompt": "user", "stop": "agent", "subagent_stop": "agent"}
"""Kind of event → its speaker; other kinds are tool calls."""


def run_why(
    node: str = Argument(
        ..., metavar="ID|FILE", help="12, #12, a file's name (auth.py), or a node such as event:7."
    ),
    depth: int | None = Option(None, metavar="N", help="Edges to follow, 1 to 6. Default: 2."),
    as_graph: bool = Option(False, "--graph", help="Draw what it is linked to as a tree."),
) -> None:
    """Tell the story of a memory: whose word it is, what it rests on, what it replaced; or what is known of a file."""
    if as_graph and wants_json():
        daemon_call.fail("give --graph or --json, not both")
    found = daemon_call.call(
        "memd/why", id=node, depth=depth, directory=daemon_call.current_directory()
    )
    if as_graph or wants_json():
        print_result(found, output.format_tree(found))
    elif found["summary"]:
        print_result(found, tell_story(found, find_screen()))
    else:
        memories = _fetch_linked(found)
        print_result(found, _describe_node(found, memories, find_screen()))


# ── A memory ─────────────────────────────────────────────────────────────────────────────────────


def tell_story(found: Mapping[str, Any], terminal: Screen) -> Iterator[str]:
    """The story of a memory in lines."""
    memory = found["summary"]
    width = min(terminal.width, _TEXT_WIDTH_MAX) - _LABEL_WIDTH
    title = output.one_line(memory["title"])
    yield from output.wrap(f"#{memory['id']} {title}", min(terminal.width, _TEXT_WIDTH_MAX))
    kind = terminal.paint_kind(memory["kind"], memory["kind"])
    when = output.format_time(memory["at"])
    yield f"{kind}, said by {memory['authority']}, {when}: {_paint_verdict(found, terminal)}"
    yield ""
    for relation in found["relations"]:
        yield from _tell_relation(relation, terminal, width)
    for value in found.get("values", ()):
        yield from _wrap_labelled("value", output.one_line(value), width)
    for check in found.get("checks", ()):
        yield from _wrap_labelled("check", output.one_line(check), width)
    for entry in found["judgments"]:
        yield _label("judged", _describe_judgment(entry))
    yield from _tell_sources(found["sources"], terminal, width)
    yield from _tell_links(found, terminal, width)
    if files := memory.get("files"):
        yield from _wrap_labelled("files", ", ".join(map(output.one_line, files)), width)
    if scope := describe_scope(memory.get("tags") or ()):
        yield _label("holds for", output.one_line(scope))
    yield from _tell_uses(found["access"])
    rule = f" ({output.one_line(found['rule'])})" if found["rule"] else ""
    name = memory["rule"].removesuffix(":untitled")
    yield from _wrap_labelled("made by", f"rule {name}{rule}", width)
    links = len(found["edges"])
    graph = f"; {output.plural(links, 'link')}: --graph" if links else ""
    yield _label("more", f"memd get {memory['id']}{graph}")


def _paint_verdict(found: Mapping[str, Any], terminal: Screen) -> str:
    verdict = output.one_line(found["verdict"])
    return terminal.paint(verdict, "good" if verdict == "current" else "warning")


def _label(name: str, text: str) -> str:
    return output.format_row(name, text, _LABEL_WIDTH)


def _wrap_labelled(name: str, text: str, width: int) -> Iterator[str]:
    for line, label in zip(output.wrap(text, width), itertools.chain([name], itertools.repeat(""))):  # noqa: B905
        yield _label(label, line)


def _wrap_on_terminal(name: str, text: str, terminal: Screen, width: int) -> Iterator[str]:
    if terminal.is_terminal and output.measure(text) > width:
        yield from _wrap_labelled(name, text, width)
    else:
        yield _label(name, text)


def _tell_relation(relation: Mapping[str, Any], terminal: Screen, width: int) -> Iterator[str]:
    link, other = relation["supersession"], relation["other"]
    undone_at = link["undone_at"]
    verbs = ("once behind", "once hid") if undone_at else ("replaced by", "replaces")
    verb = verbs[0] if relation["is_newer"] else verbs[1]
    yield from _wrap_on_terminal(verb, output.format_headline(other), terminal, width)
    reason = output.one_line(link["guard"]) or f"rule {link['rule']}"
    cosine = "" if link["cosine"] is None else f", cosine {link['cosine']:.3f}"
    rule = "" if reason == f"rule {link['rule']}" else f" ({link['rule']}{cosine})"
    undone = f"; undone {output.format_time(undone_at)}" if undone_at else ""
    yield _label("", terminal.paint(f"because: {reason}{rule}{undone}", "dim"))


def _tell_links(found: Mapping[str, Any], terminal: Screen, width: int) -> Iterator[str]:
    """The memories and the origins that it is linked to directly, except those that its relations name."""
    told = {f"summary:{relation['other']['id']}" for relation in found["relations"]}
    for edge in found["edges"]:
        start, end = (f"{edge[f'{way}_kind']}:{edge[f'{way}_id']}" for way in ("from", "to"))
        if found["node"] not in {start, end}:
            continue
        kind, other = (
            (edge["to_kind"], end) if start == found["node"] else (edge["from_kind"], start)
        )
        if kind == "origin":
            place = output.one_line(other.removeprefix("origin:"))
            yield _label("read from", f"{place} ({output.one_line(edge['rule'])})")
        elif kind == "summary" and other not in told:
            title = output.one_line(found["titles"].get(other) or "")
            arrow = f"{edge['type']} →" if other == end else f"← {edge['type']}"
            linked = f"{arrow} #{other.removeprefix('summary:')} “{title}”"
            yield from _wrap_on_terminal("linked", linked, terminal, width)


def _describe_judgment(entry: Mapping[str, Any]) -> str:
    judgment = entry["judgment"]
    undone_at = judgment["undone_at"]
    undone = f" (undone {output.format_time(undone_at)})" if undone_at else ""
    pair = f"#{judgment['newer_id']} {judgment['relation']} #{judgment['older_id']}"
    return (
        f"by the {output.one_line(judgment['who'])} {output.format_time(judgment['at'])}"
        f"{undone}: {pair}: {output.one_line(judgment['reason'])}"
    )


def _tell_sources(sources: list[Mapping[str, Any]], terminal: Screen, width: int) -> Iterator[str]:
    """The words that it rests on, each with its place; a transcript is named where it differs from the one above."""
    last_transcript, label = "", "because of"
    for source in sources:
        event, position = source["event"], source["position"]
        is_alleged = event.get("source") == AGENTS_IMPORT
        who = "an agent's import" if is_alleged else _SPEAKERS.get(event["kind"])
        who = who or output.one_line(event["tool"] or event["kind"])
        session = f"session {position['session']}" if position["session"] else ""
        transcript, place = position["transcript"] or session, _name_position(position)
        head = f"{output.format_time(event['at'])}  {who}"
        yield _label(label, head + terminal.paint(f"  {place}" if place else "", "dim"))
        label = ""
        if transcript and transcript != last_transcript:
            yield _label("", terminal.paint(f"in {output.one_line(transcript)}", "dim"))
        last_transcript = transcript
        quote = output.one_line(source["quote"])
        quoted = f"“{quote}”" if quote and event["kind"] in _SPEAKERS else quote
        for text in output.wrap(quoted, width - 2, _QUOTE_LINES_MAX):
            yield _label("", f"  {text}")


def _name_position(position: Mapping[str, Any]) -> str:
    ids = (
        ("message", position["line"]),
        ("tool use", position["tool_use"]),
        ("prompt", position["prompt"]),
    )
    return next((f"{name} {output.one_line(value)}" for name, value in ids if value), "")


def _tell_uses(access: Mapping[str, Any]) -> Iterator[str]:
    if access["count"]:
        last = output.format_time(access["last_at"])
        yield _label("used", f"in {output.plural(access['count'], 'answer')}, last {last}")
    if access["shown"]:
        sessions = output.plural(access["sessions"], "session")
        yield _label("shown", f"{output.plural(access['shown'], 'time')} unasked in {sessions}:")
    for use in access["latest"]:
        title = output.one_line(use["session_title"] or use["session"])
        reason = output.one_line(use["reason"])
        yield _label("", f"{output.format_time(use['at'])}  {use['moment']}  “{title}”: {reason}")


# ── A file, or another node ──────────────────────────────────────────────────────────────────────


def _fetch_linked(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The memories that are linked to a node, the newest first; a file's, in whatever worktree it is."""
    nodes = {found["node"], *found.get("copies", ())}
    ids = {
        int(edge[f"{way}_id"])
        for edge in found["edges"]
        for way, other in (("from", "to"), ("to", "from"))
        if edge[f"{way}_kind"] == "summary"
        and f"{edge[f'{other}_kind']}:{edge[f'{other}_id']}" in nodes
    }
    if not ids:
        return []
    newest = sorted(ids, reverse=True)[:_MEMORIES_OF_FILE_MAX]
    memories: list[dict[str, Any]] = daemon_call.call("memd/get", ids=newest)["memories"]
    return sorted(memories, key=lambda one: (-one["at"], -one["id"]))


def _describe_node(
    found: Mapping[str, Any], memories: list[dict[str, Any]], terminal: Screen
) -> Iterator[str]:
    node = output.one_line(found["node"])
    yield terminal.paint(node.removeprefix("file:"), "bold")
    width = min(terminal.width, _TEXT_WIDTH_MAX) - _LABEL_WIDTH
    yield from _tell_sources(found["sources"], terminal, width)
    if memories:
        yield f"known from {output.plural(len(memories), 'memory')}, the newest first:"
    yield from format_with_ages(terminal, memories, int(time.time() * 1000))
    if not memories and not found["sources"]:
        yield f"{output.plural(len(found['edges']), 'link')}: --graph"


# ── The timeline ─────────────────────────────────────────────────────────────────────────────────


def run_timeline(  # noqa: PLR0913  # one parameter per option
    when: list[str] | None = Argument(None, metavar="WHEN", help=f"All of that time. {TIMES}"),
    *,
    around: str | None = Option(None, metavar="ID", help="Around a memory: 12 or #12."),
    session: str | None = Option(None, metavar="ID", help="Only this session."),
    at: str | None = Option(None, metavar="TIME", help=TIMES),
    days: int | None = Option(
        None, metavar="N", min=1, max=366, help="All of N days, to today or --at."
    ),
    before: int | None = Option(None, metavar="N", help="Memories before. Default: 5."),
    after: int | None = Option(None, metavar="N", help="Memories after. Default: 5."),
    kinds: KindsOption = None,
    client: ClientOption = None,
    project: str | None = Option(None, help="current, all (default with --around), or a name."),
) -> None:
    """Show memories in the order of their events: around a memory or a time, or of whole days."""
    if sum((bool(when), around is not None, at is not None or days is not None)) > 1:
        daemon_call.fail("give only one of WHEN, --around and --at or --days")
    if days is not None and (before is not None or after is not None):
        daemon_call.fail("--days shows everything in these days; leave out --before and --after")
    today = read_today()
    moment = None if at is None else read_local_time(at, today)
    since, until = (None, None) if days is None else read_days(days, moment, today)
    if when:
        since, until = read_span(" ".join(when), today)
        if since == until:
            moment, since, until = since, None, None
    number = None if around is None else daemon_call.read_ids([around])[0]
    found = daemon_call.call(
        "memd/timeline",
        id=number,
        session=session,
        at=moment if since is None else None,
        since=since,
        until=until,
        before=before,
        after=after,
        kinds=check_kinds(kinds),
        source=client,
        **daemon_call.find_place(project or (None if number is None else "all")),
    )
    lines = _draw_timeline(found, find_screen(), marks_time=moment is not None)
    print_result(found, lines)


def _draw_pause(row: dict[str, Any], terminal: Screen) -> Iterator[str]:
    """The time without a memory before a row, and the session that begins with it."""
    if row.get("gap_ms"):
        idle = output.format_duration(row["gap_ms"] / 1000)
        yield terminal.paint(f"   … {idle} idle …", "dim")
    if row["begins_session"]:
        line = f"   ── session “{output.one_line(row['session_title'] or 'without a title')}”"
        cut = output.cut(line, terminal.width) if terminal.is_terminal else line
        yield terminal.paint(cut, "dim")


def _draw_timeline(found: dict[str, Any], terminal: Screen, *, marks_time: bool) -> Iterator[str]:
    """Draw the rows under their days and sessions; with `marks_time`, also the time that they are around."""
    rows, paint, in_columns = found["rows"], terminal.paint, terminal.is_terminal
    if not rows:
        yield "nothing happened then"
    memories = [{**row["summary"], "contradicted_by": row["contradicted_by"]} for row in rows]
    clocks = [output.format_time(memory["at"])[-5:] for memory in memories]
    columns = MemoryColumns(terminal, memories, clocks)
    last_day, is_marked = "", not marks_time or found["is_span"]
    mark = f"→ {'' if in_columns else ' '}{output.format_time(found['pivot_at'])}"
    if found.get("more_before"):
        yield "   …"
    for row, memory in zip(rows, memories, strict=True):
        at = memory["at"]
        if not is_marked and at >= found["pivot_at"]:
            is_marked = True
            yield mark
        day = output.format_date(at)
        if day != last_day and (in_columns or found["is_span"]):
            yield paint(f"── {output.format_weekday(at)} {day}", "dim")
        last_day = day
        yield from _draw_pause(row, terminal)
        plain = f"   {output.format_headline(memory, with_time=True)}"
        lines = list(columns.format(memory)) if in_columns else [plain]
        yield "→" + lines[0][1:] if row["is_pivot"] else lines[0]
        yield from lines[1:]
    if rows and not is_marked:
        yield mark
    if rows and found.get("more_after"):
        yield "   …"
    if found.get("note"):
        yield paint(f"({output.format_note(found['note'])})", "dim")
