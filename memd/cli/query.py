"""The commands that answer questions: `memd search`, `get`, `timeline` and `why`."""

import datetime as dt
import shutil
import time
from collections.abc import Iterator
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.terminal import JsonOption, print_result
from memd.models import Kind

KINDS = f"One of {', '.join(Kind)}."
TIMES = "An ISO date or time, epoch milliseconds, or today, yesterday, 7d, 3h, 2w, last week."
_LINE_CHARACTERS_MAX = 100
_DAY = dt.timedelta(days=1)


# ── search ───────────────────────────────────────────────────────────────────────────────────────


def run_search(  # noqa: PLR0913  # one parameter per option
    words: list[str] = Argument(..., metavar="WORDS", help='Also "a phrase", prefix*, OR.'),
    *,
    project: str = Option("current", help="current (this project and global), all, or a name."),
    k: int | None = Option(None, "-k", metavar="N", help="Number of hits. Default: 5."),
    kind: list[str] | None = Option(None, help=f"Only this kind; may be repeated. {KINDS}"),
    since: str | None = Option(
        None, metavar="TIME", help=f"Only what happened then or later. {TIMES}"
    ),
    until: str | None = Option(None, metavar="TIME", help="Only what happened then or before."),
    as_of: str | None = Option(
        None, metavar="TIME", help="Only what was known then; yesterday is the day before it."
    ),
    profile: str | None = Option(None, help="Ranking profile: memd, siftcoder, or your own."),
    superseded: bool = Option(False, "--superseded", help="Include superseded memories."),
    show_all: bool = Option(False, "--all", help="Show the nearest even if they are no answer."),
    explain: bool = Option(False, "--explain", help="Show how scores are made, and near misses."),
    as_json: JsonOption = False,
) -> None:
    """Search memories. A time in the question counts: what did we do yesterday."""
    today = dt.datetime.fromtimestamp(time.time()).date()  # noqa: DTZ006  # the local day
    answer = daemon_call.call(
        "memd/search",
        query=" ".join(words),
        project=project,
        k=k,
        kinds=check_kinds(kind),
        since=None if since is None else read_local_time(since, today),
        until=None if until is None else read_local_end(until, today),
        as_of=None if as_of is None else read_local_end(as_of, today),
        profile=profile,
        include_superseded=superseded or None,
        show_all=show_all or None,
        explain=explain or None,
        directory=daemon_call.current_directory(),
    )
    print_result(answer, _format_answer(answer, explain=explain), as_json=as_json)
    if explain and not as_json:
        from memd.cli import explain as cli_explain

        print()
        cli_explain.print_trace(answer)


def check_kinds(kinds: list[str] | None) -> list[str] | None:
    """Exit with a message if a kind does not exist; return None for every kind."""
    for kind in kinds or ():
        if kind not in tuple(Kind):
            daemon_call.fail(f"--kind: there is no {kind!r}; there are {', '.join(Kind)}")
    return kinds or None


def _format_answer(answer: dict[str, Any], *, explain: bool) -> Iterator[str]:
    width = min(shutil.get_terminal_size().columns, _LINE_CHARACTERS_MAX)
    for hit in answer["hits"]:
        yield output.format_headline(hit)
        yield from output.format_snippet(hit["snippet"], width=width)
        if explain:
            yield output.format_score(hit)
    if not answer["hits"]:
        yield "nothing found"
    if answer.get("verdict") != "found" and answer.get("reason"):
        yield f"({answer['verdict']}: {output.one_line(answer['reason'])})"
    for note in answer.get("notes", ()):
        yield f"({output.format_note(note)})"
    if answer.get("suppressed"):
        yield f"(hidden: {output.format_counts(answer['suppressed'])})"
    for retriever, reason in answer.get("degraded", {}).items():
        yield f"({retriever} could not answer: {output.one_line(reason)})"


# ── get ──────────────────────────────────────────────────────────────────────────────────────────


def run_get(
    ids: list[str] = Argument(..., metavar="ID", help="12 or #12."), as_json: JsonOption = False
) -> None:
    """Show memories in full."""
    found = daemon_call.call("memd/get", ids=daemon_call.read_ids(ids))
    memories = "\n\n".join(map(_format_memory, found["memories"]))
    print_result(found, [memories], as_json=as_json)
    if found.get("unknown") and not as_json:
        daemon_call.fail("there is no memory " + ", ".join(f"#{n}" for n in found["unknown"]))


def _format_memory(memory: dict[str, Any]) -> str:
    facts = {
        "project": memory.get("project"),
        "session": memory.get("session_title"),
        "time": output.format_time(memory["at"]),
        "said by": memory["authority"],
        "pinned by": memory["pinned_by"],
        "tier": f"{memory['tier']}, from {memory['source']} by {memory['rule']}",
        "topic": memory.get("topic_key"),
        "tags": ", ".join(memory.get("tags") or ()),
        "files": ", ".join(memory.get("files") or ()),
        "expires": memory.get("expires_at") and output.format_time(memory["expires_at"]),
    }
    rows = [(name, output.one_line(str(value))) for name, value in facts.items() if value]
    head = [output.format_headline(memory), *output.format_table(rows)]
    return "\n".join([*head, "", output.clean(memory["body"])])


# ── timeline ─────────────────────────────────────────────────────────────────────────────────────


def run_timeline(  # noqa: PLR0913  # one parameter per option
    *,
    around: str | None = Option(None, metavar="ID", help="Around a memory: 12 or #12."),
    session: str | None = Option(
        None, metavar="ID", help="Only this session; the start of its id."
    ),
    at: str | None = Option(None, metavar="TIME", help=TIMES),
    days: int | None = Option(
        None, metavar="N", min=1, max=366, help="All of N days, up to today or --at."
    ),
    before: int | None = Option(None, metavar="N", help="Memories before. Default: 5."),
    after: int | None = Option(None, metavar="N", help="Memories after. Default: 5."),
    kinds: list[str] | None = Option(None, "--kind", help="Only this kind; may be repeated."),
    project: str | None = Option(None, help="current, all (default with --around), or a name."),
    as_json: JsonOption = False,
) -> None:
    """Show memories in the order of their events: around a memory or a time, or of whole days."""
    if around is not None and (at is not None or days is not None):
        daemon_call.fail("give only one of --around and --at or --days")
    if days is not None and (before is not None or after is not None):
        daemon_call.fail("--days shows everything in these days; leave out --before and --after")
    today = dt.datetime.fromtimestamp(time.time()).date()  # noqa: DTZ006  # the local day
    moment = None if at is None else read_local_time(at, today)
    since, until = (None, None) if days is None else read_days(days, moment, today)
    number = None if around is None else daemon_call.read_ids([around])[0]
    found = daemon_call.call(
        "memd/timeline",
        id=number,
        session=session,
        at=moment if days is None else None,
        since=since,
        until=until,
        before=before,
        after=after,
        kinds=check_kinds(kinds),
        project=project or (None if number is None else "all"),
        directory=daemon_call.current_directory(),
    )
    print_result(found, _format_timeline(found, marks_time=at is not None), as_json=as_json)


def read_local_time(text: str, today: dt.date) -> str | int:
    """Read a local date or time as UTC milliseconds; return anything else for the daemon to read."""
    named = {"today": today, "yesterday": today - _DAY}.get(text.strip().lower())
    if named is not None:
        return _to_milliseconds(named)
    try:
        return _to_milliseconds(dt.datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return text


def read_local_end(text: str, today: dt.date) -> str | int:
    """Read a local time, or the last millisecond of a local day, as UTC milliseconds; return anything else."""
    named = {"today": today, "yesterday": today - _DAY}.get(text.strip().lower())
    try:
        day = named or dt.date.fromisoformat(text.strip())
        return _to_milliseconds(day + _DAY) - 1
    except (ValueError, OverflowError):
        return read_local_time(text, today)


def read_days(days: int, moment: str | int | None, today: dt.date) -> tuple[int, int]:
    """Return the first and the last millisecond of N local days that end with `moment` or today.

    A local day has 23 or 25 hours when the clock changes, so the daemon could not compute this.
    """
    if isinstance(moment, str):
        daemon_call.fail(f"--at with --days takes a date such as 2026-11-20, not {moment!r}")
    last = today if moment is None else dt.datetime.fromtimestamp(moment / 1000).date()  # noqa: DTZ006
    try:
        return _to_milliseconds(last - (days - 1) * _DAY), _to_milliseconds(last + _DAY) - 1
    except (ValueError, OverflowError):
        daemon_call.fail(f"--at: {last} is too far away for --days")


def _to_milliseconds(moment: dt.date) -> int:
    """Convert a time, or the start of a day, to UTC milliseconds; without a zone it is local."""
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    return max(0, int(moment.timestamp() * 1000))


def _format_timeline(found: dict[str, Any], *, marks_time: bool) -> Iterator[str]:
    """Format the rows; with `marks_time`, also the time that they are around."""
    if not found["rows"]:
        yield "nothing happened there"
    if found["rows"] and found["more_before"]:
        yield "   …"
    last_day = ""
    is_marked = not marks_time or found["is_span"]
    mark = f"→  {output.format_time(found['pivot_at'])}"
    for row in found["rows"]:
        at = row["summary"]["at"]
        if not is_marked and at >= found["pivot_at"]:
            is_marked = True
            yield mark
        day = output.format_date(at)
        if found["is_span"] and day != last_day:
            yield f"── {output.format_weekday(at)} {day}"
        last_day = day
        yield from _format_timeline_row(row)
    if found["rows"] and not is_marked:
        yield mark
    if found["rows"] and found["more_after"]:
        yield "   …"
    if found.get("note"):
        yield f"({output.format_note(found['note'])})"


def _format_timeline_row(row: dict[str, Any]) -> Iterator[str]:
    if row.get("gap_ms"):
        yield f"   … {output.format_duration(row['gap_ms'] / 1000)} idle …"
    if row["begins_session"]:
        yield f"   ── session “{output.one_line(row['session_title'] or 'without a title')}”"
    against = ", ".join(f"#{number}" for number in row["contradicted_by"])
    suffix = f"  (contradicted by {against})" if against else ""
    headline = output.format_headline(row["summary"], with_time=True)
    yield f"{'→' if row['is_pivot'] else ' '}  {headline}{suffix}"


# ── why ──────────────────────────────────────────────────────────────────────────────────────────


def run_why(
    node: str = Argument(..., metavar="ID", help="12, #12, or a node such as file:/a/b.py."),
    depth: int | None = Option(None, metavar="N", help="Edges to follow, 1 to 6. Default: 2."),
    as_graph: bool = Option(False, "--graph", help="Draw what it is linked to as a tree."),
    as_dot: bool = Option(False, "--dot", help="For Graphviz: memd why 12 --dot | dot -Tsvg."),
    as_json: JsonOption = False,
) -> None:
    """Show where a memory comes from, what has replaced it, and what it is linked to."""
    if as_graph + as_dot + as_json > 1:
        daemon_call.fail("give only one of --graph, --dot and --json")
    found = daemon_call.call("memd/why", id=node, depth=depth)
    draw = output.format_dot if as_dot else output.format_tree if as_graph else _format_why
    print_result(found, draw(found), as_json=as_json)


def _format_why(found: dict[str, Any]) -> Iterator[str]:
    memory = found["summary"]
    yield output.format_headline(memory) if memory else output.one_line(found["node"])
    meaning = f" ({output.one_line(found['rule'])})" if found["rule"] else ""
    rule = f"; made by rule {memory['rule']}{meaning}" if memory else ""
    yield f"  {output.one_line(found['verdict'])}{rule}"
    yield from _format_uses(found["access"])
    yield from _format_sources(found["sources"])
    yield from map(_format_relation, found["relations"])
    yield from map(_format_judgment, found["judgments"])
    yield from _format_edges(found)


def _format_uses(access: dict[str, Any]) -> Iterator[str]:
    if access["count"]:
        last = output.format_time(access["last_at"])
        yield f"  used in {output.plural(access['count'], 'answer')}, last {last}"
    if access["shown"]:
        sessions = output.plural(access["sessions"], "session")
        yield f"  injected {output.plural(access['shown'], 'time')} in {sessions}:"
    for use in access["latest"]:
        title = output.one_line(use["session_title"] or use["session"])
        reason = output.one_line(use["reason"])
        yield f"    {output.format_time(use['at'])}  {use['moment']}  “{title}”: {reason}"


def _format_sources(sources: list[dict[str, Any]]) -> Iterator[str]:
    """Format the events with their words; name a transcript where it differs from the one above."""
    last_transcript = ""
    for source in sources:
        event, position = source["event"], source["position"]
        ids = (
            ("line", position["line"]),
            ("tool use", position["tool_use"]),
            ("prompt", position["prompt"]),
        )
        place = next((f"  {name} {output.one_line(value)}" for name, value in ids if value), "")
        what = output.one_line(event["tool"] or event["kind"])
        yield f"  from event {event['id']}  {output.format_time(event['at'])}  {what}{place}"
        session = position["session"]
        transcript = position["transcript"] or (f"session {session}" if session else "")
        if transcript and transcript != last_transcript:
            yield f"    in {output.one_line(transcript)}"
        last_transcript = transcript
        yield from output.format_snippet(source["quote"], width=96)


def _format_relation(relation: dict[str, Any]) -> str:
    link = relation["supersession"]
    undone_at = link["undone_at"]
    if relation["is_newer"]:
        verb = "was superseded by" if undone_at else "superseded by"
    else:
        verb = "had superseded" if undone_at else "supersedes"
    cosine = "" if link["cosine"] is None else f", cosine {link['cosine']:.3f}"
    guard = f", {output.one_line(link['guard'])}" if link["guard"] else ""
    undone = f"; undone {output.format_time(undone_at)}" if undone_at else ""
    headline = output.format_headline(relation["other"])
    return f"  {verb} {headline}\n    by rule {link['rule']}{cosine}{guard}{undone}"


def _format_judgment(entry: dict[str, Any]) -> str:
    judgment = entry["judgment"]
    undone_at = judgment["undone_at"]
    undone = f" (undone {output.format_time(undone_at)})" if undone_at else ""
    pair = f"#{judgment['newer_id']} {judgment['relation']} #{judgment['older_id']}"
    return (
        f"  judged by the {output.one_line(judgment['who'])} {output.format_time(judgment['at'])}"
        f"{undone}: {pair}: {output.one_line(judgment['reason'])}"
    )


def _format_edges(found: dict[str, Any]) -> Iterator[str]:
    """Format the edges except those to events quoted above, and the titles of their memories."""
    quoted = {f"event:{source['event']['id']}" for source in found["sources"]}
    named: set[str] = set()
    for edge in found["edges"]:
        start, end = (f"{edge[f'{way}_kind']}:{edge[f'{way}_id']}" for way in ("from", "to"))
        if start == found["node"] and end in quoted:
            continue
        named |= {start, end}
        yield f"  {_format_node(start)} {edge['type']} {_format_node(end)}  ({edge['rule']})"
    for node, title in found["titles"].items():
        if node in named and node != found["node"]:
            yield f"  #{node.removeprefix('summary:')} is “{output.one_line(title)}”"


def _format_node(node: str) -> str:
    name = output.one_line(node)
    return f"#{name.removeprefix('summary:')}" if name.startswith("summary:") else name
