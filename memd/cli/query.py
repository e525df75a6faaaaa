"""search, get, timeline, why."""

import datetime as dt
import json
import shutil
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import daemon_call, output
from memd.models import Kind

# MERGED from memd.cli.search:
# MERGED `memd search`: what is known about this, from a shell.


KINDS = f"One of {', '.join(Kind)}."


def run_search(  # noqa: PLR0913  # one parameter per option
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS", help='Also "a phrase", prefix*, OR.')
    ],
    *,
    project: Annotated[
        str, typer.Option(help="current (where you stand, and global), all, or a name.")
    ] = "current",
    k: Annotated[
        int | None, typer.Option("-k", metavar="N", help="How many hits; 5 if not configured.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help=f"Only this kind; may be repeated. {KINDS}")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Another recipe of ranking: memd, siftcoder, your own.")
    ] = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also what a newer memory replaced.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="How each score came about, and what missed the cut."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Find memories: `#12 fix  2026-11-20  title`, then a snippet."""
    answer = daemon_call.call(
        "memd/search",
        query=" ".join(words),
        project=project,
        k=k,
        kinds=known_kinds(kind),
        profile=profile,
        include_superseded=superseded or None,
        explain=explain or None,
        directory=daemon_call.here(),
    )
    if as_json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print("\n".join(_lines(answer, explain=explain)))
    if explain and not as_json:
        from memd.cli import explain as cli_explain

        print()
        cli_explain.draw(answer)


def known_kinds(given: list[str] | None) -> list[str] | None:
    """Check the kinds that were asked for; None if that is every kind."""
    for kind in given or ():
        if kind not in tuple(Kind):
            daemon_call.refuse(f"--kind: there is no {kind!r}; there are {', '.join(Kind)}")
    return given or None


def _lines(answer: dict[str, Any], *, explain: bool) -> list[str]:
    width = min(shutil.get_terminal_size().columns, 100)
    lines = []
    for hit in answer["hits"]:
        lines += [output.headline(hit), *output.snippet(hit["snippet"], width=width)]
        lines += [output.score(hit)] if explain else []
    lines += [] if answer["hits"] else ["nothing found"]
    lines += [f"({output.note(note)})" for note in answer.get("notes", ())]
    if answer.get("suppressed"):
        lines.append(f"(hidden: {output.counts(answer['suppressed'])})")
    lines += [
        f"({leg} could not answer: {output.line(why)})"
        for leg, why in answer.get("degraded", {}).items()
    ]
    return lines


# MERGED from memd.cli.get:
# MERGED `memd get`: whole memories.


def run_get(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="12 or #12.")],
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show memories whole."""
    found = daemon_call.call("memd/get", ids=daemon_call.numbers(ids))
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    print("\n\n".join(_whole(memory) for memory in found["memories"]))
    if found.get("unknown"):
        daemon_call.refuse("there is no memory " + ", ".join(f"#{n}" for n in found["unknown"]))


def _whole(memory: dict[str, Any]) -> str:
    facts = {
        "project": memory.get("project"),
        "session": memory.get("session_title"),
        "time": output.minute(memory["at"]),
        "tier": f"{memory['tier']}, from {memory['source']} by {memory['rule']}",
        "topic": memory.get("topic_key"),
        "tags": ", ".join(memory.get("tags") or ()),
        "files": ", ".join(memory.get("files") or ()),
        "expires": output.minute(memory["expires_at"]) if memory.get("expires_at") else None,
    }
    rows = [(name, output.line(str(value))) for name, value in facts.items() if value]
    return "\n".join(
        [output.headline(memory), *output.table(rows), "", output.clean(memory["body"])]
    )


# MERGED from memd.cli.timeline:
# MERGED `memd timeline`: what happened around a memory, a time or a session, or in the last days; in local time.
# MERGED
# MERGED Days are the days of the clock on the wall: one may have 23 or 25 hours, so it is told to the daemon by
# MERGED its first and its last moment.


_DAY = dt.timedelta(days=1)


def run_timeline(  # noqa: PLR0913  # one parameter per option
    *,
    around: Annotated[
        str | None, typer.Option(metavar="ID", help="A memory: 12 or #12.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only a session, by the beginning of its id."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="An ISO date or time, epoch milliseconds, or today, yesterday, 7d, 3h, 2w, last week.",
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=366, help="All of N days, up to today or --at."),
    ] = None,
    before: Annotated[
        int | None, typer.Option(metavar="N", help="How many before; 5 if left out.")
    ] = None,
    after: Annotated[
        int | None, typer.Option(metavar="N", help="How many after; 5 if left out.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only decision, fix, …; may be repeated."),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="current (all around a memory), all, or a name."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show memories in the order of their events; around now if nothing is given."""
    if around is not None and (at is not None or days is not None):
        daemon_call.refuse("give only one of --around and --at or --days")
    if days is not None and (before is not None or after is not None):
        daemon_call.refuse("--days shows all of these days; leave out --before and --after")
    today = dt.datetime.fromtimestamp(time.time()).date()  # noqa: DTZ006  # the day on the wall
    moment = None if at is None else local_time(at, today)
    since, until = (None, None) if days is None else span(days, moment, today)
    number = None if around is None else daemon_call.numbers([around])[0]
    found = daemon_call.call(
        "memd/timeline",
        id=number,
        session=session,
        at=moment if days is None else None,
        since=since,
        until=until,
        before=before,
        after=after,
        kinds=known_kinds(kinds),
        project=project or (None if number is None else "all"),
        directory=daemon_call.here(),
    )
    print(
        json.dumps(found, ensure_ascii=False)
        if as_json
        else "\n".join(_lines_timeline(found, is_at=at is not None))
    )


def local_time(text: str, today: dt.date) -> str | int:
    """Read a time as people here mean it, in UTC ms; what is no date is left for the daemon to read."""
    named = {"today": today, "yesterday": today - _DAY}.get(text.strip().lower())
    if named is not None:
        return _midnight(named)
    try:
        return _ms(dt.datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return text


def span(days: int, moment: str | int | None, today: dt.date) -> tuple[int, int]:
    """Give the first and the last millisecond of so many local days, the last that of `moment`, or today."""
    if isinstance(moment, str):
        daemon_call.refuse(f"--at with --days: a date such as 2026-11-20, not {moment!r}")
    last = today if moment is None else dt.datetime.fromtimestamp(moment / 1000).date()  # noqa: DTZ006
    try:
        return _midnight(last - (days - 1) * _DAY), _midnight(last + _DAY) - 1
    except (ValueError, OverflowError):
        daemon_call.refuse(f"--at: {last} is too far away for --days")


def _midnight(day: dt.date) -> int:
    return _ms(dt.datetime.combine(day, dt.time()))


def _ms(moment: dt.datetime) -> int:
    """Milliseconds of a time; without a zone, of the one here, as it was on that day."""
    return max(0, int(moment.timestamp() * 1000))


def _lines_timeline(found: dict[str, Any], *, is_at: bool = False) -> list[str]:
    """Tell the rows; with `is_at`, a line of its own for the moment that they are around."""
    notes = [f"({output.note(found['note'])})"] if found.get("note") else []
    if not found["rows"]:
        return ["nothing happened there", *notes]
    lines = ["   …"] if found["more_before"] else []
    last = ""
    moment = (
        [f"→  {output.minute(found['pivot_at'])}"] if is_at and not found["is_span"] else []
    )
    for row in found["rows"]:
        if moment and row["summary"]["at"] >= found["pivot_at"]:
            lines.append(moment.pop())
        day = output.day(row["summary"]["at"])
        if found["is_span"] and day != last:
            lines.append(f"── {output.weekday(row['summary']['at'])} {day}")
        last = day
        lines.extend(_row(row))
    lines += moment
    lines += ["   …"] if found["more_after"] else []
    return [*lines, *notes]


def _row(row: dict[str, Any]) -> Iterator[str]:
    if row.get("gap_ms"):
        yield f"   … {output.span(row['gap_ms'] / 1000)} idle …"
    if row["begins_session"]:
        yield f"   ── session “{output.line(row['session_title'] or 'without a title')}”"
    mark = "→" if row["is_pivot"] else " "
    against = ", ".join(f"#{number}" for number in row["contradicted_by"])
    noted = f"  (contradicted by {against})" if against else ""
    yield f"{mark}  {output.headline(row['summary'], clock=True)}{noted}"


# MERGED from memd.cli.why:
# MERGED `memd why`: where a memory comes from, and whether it is still true.


def run_why(
    node: Annotated[
        str, typer.Argument(metavar="ID", help="12, #12, or a node such as file:/a/b.py.")
    ],
    depth: Annotated[
        int | None,
        typer.Option(metavar="N", help="How far to follow the edges: 1 to 6; 2 if left out."),
    ] = None,
    as_graph: Annotated[
        bool, typer.Option("--graph", help="Draw what it is linked to, as a tree.")
    ] = False,
    as_dot: Annotated[
        bool,
        typer.Option("--dot", help="The same for Graphviz: memd why 12 --dot | dot -Tsvg."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show the events behind a memory, what replaced it, and what is linked to it."""
    if as_graph + as_dot + as_json > 1:
        daemon_call.refuse("give only one of --graph, --dot and --json")
    found = daemon_call.call("memd/why", id=node, depth=depth)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        draw = output.dot if as_dot else output.tree if as_graph else _lines_why
        print("\n".join(draw(found)))


def _lines_why(found: dict[str, Any]) -> Iterator[str]:
    memory = found["summary"]
    yield output.headline(memory) if memory else output.line(found["node"])
    means = f" ({output.line(found['rule'])})" if found["rule"] else ""
    made = f"; made by rule {memory['rule']}{means}" if memory else ""
    yield f"  {output.line(found['verdict'])}{made}"
    yield from _used(found["access"])
    yield from _sources(found["sources"])
    for relation in found["relations"]:
        yield _relation(relation)
    for judged in found["judgments"]:
        yield _judgment(judged)
    yield from _around(found)


def _used(access: dict[str, Any]) -> Iterator[str]:
    if access["count"]:
        last = output.minute(access["last_at"])
        yield f"  used in {output.plural(access['count'], 'answer')}, the last {last}"
    if access["shown"]:
        sessions = output.plural(access["sessions"], "session")
        yield f"  shown unasked {output.plural(access['shown'], 'time')} in {sessions}:"
    for one in access["latest"]:
        title = output.line(one["session_title"] or one["session"])
        yield f"    {output.minute(one['at'])}  {one['moment']}  “{title}”: {output.line(one['reason'])}"


def _sources(sources: list[dict[str, Any]]) -> Iterator[str]:
    """The events with their words; which transcript they stand in is told where it changes."""
    last = ""
    for source in sources:
        event, at = source["event"], source["position"]
        what = event["tool"] or event["kind"]
        ids = ("line", at["line"]), ("tool use", at["tool_use"]), ("prompt", at["prompt"])
        place = next((f"  {name} {output.line(one)}" for name, one in ids if one), "")
        yield f"  from event {event['id']}  {output.minute(event['at'])}  {output.line(what)}{place}"
        where = at["transcript"] or (f"session {at['session']}" if at["session"] else "")
        if where and where != last:
            yield f"    in {output.line(where)}"
        last = where
        yield from output.snippet(source["quote"], width=96)


def _around(found: dict[str, Any]) -> Iterator[str]:
    """Tell the edges, but not again the events that were told, and what their memories are called."""
    told = {f"event:{source['event']['id']}" for source in found["sources"]}
    named: dict[str, None] = {}
    for edge in found["edges"]:
        start, end = (f"{edge[f'{way}_kind']}:{edge[f'{way}_id']}" for way in ("from", "to"))
        if start == found["node"] and end in told:
            continue
        named |= dict.fromkeys((start, end))
        yield f"  {_node(edge, 'from')} {edge['type']} {_node(edge, 'to')}  ({edge['rule']})"
    for node, title in found["titles"].items():
        if node in named and node != found["node"]:
            yield f"  #{node.removeprefix('summary:')} is “{output.line(title)}”"


def _relation(relation: dict[str, Any]) -> str:
    link = relation["supersession"]
    gone = link["undone_at"]
    if relation["is_newer"]:
        way = "was superseded by" if gone else "superseded by"
    else:
        way = "had superseded" if gone else "supersedes"
    cosine = "" if link["cosine"] is None else f", cosine {link['cosine']:.3f}"
    undone = f"; taken back {output.minute(gone)}" if gone else ""
    guard = f", {output.line(link['guard'])}" if link["guard"] else ""
    return f"  {way} {output.headline(relation['other'])}\n    by rule {link['rule']}{cosine}{guard}{undone}"


def _judgment(judged: dict[str, Any]) -> str:
    said = judged["judgment"]
    undone = f" (taken back {output.minute(said['undone_at'])})" if said["undone_at"] else ""
    pair = f"#{said['newer_id']} {said['relation']} #{said['older_id']}"
    return (
        f"  judged by the {output.line(said['who'])} {output.minute(said['at'])}{undone}:"
        f" {pair}: {output.line(said['reason'])}"
    )


def _node(edge: dict[str, Any], end: str) -> str:
    kind, number = edge[f"{end}_kind"], output.line(edge[f"{end}_id"])
    return f"#{number}" if kind == "summary" else f"{kind}:{number}"
