"""`memd timeline`: memories in the order of their events."""

from collections.abc import Iterator
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output, query, times
from memd.cli.output import Screen, cut, find_screen
from memd.cli.query import MemoryColumns
from memd.cli.terminal import JsonOption, print_result


def run_timeline(  # noqa: PLR0913  # one parameter per option
    when: list[str] | None = Argument(
        None, metavar="WHEN", help=f"All of that time. {times.TIMES}"
    ),
    *,
    around: str | None = Option(None, metavar="ID", help="Around a memory: 12 or #12."),
    session: str | None = Option(
        None, metavar="ID", help="Only this session; the start of its id."
    ),
    at: str | None = Option(None, metavar="TIME", help=times.TIMES),
    days: int | None = Option(
        None, metavar="N", min=1, max=366, help="All of N days, up to today or --at."
    ),
    before: int | None = Option(None, metavar="N", help="Memories before. Default: 5."),
    after: int | None = Option(None, metavar="N", help="Memories after. Default: 5."),
    kinds: list[str] | None = Option(None, "--kind", help="Only this kind; may be repeated."),
    client: str | None = query.ClientOption,
    project: str | None = Option(None, help="current, all (default with --around), or a name."),
    as_json: JsonOption = False,
) -> None:
    """Show memories in the order of their events: around a memory or a time, or of whole days."""
    if sum((bool(when), around is not None, at is not None or days is not None)) > 1:
        daemon_call.fail("give only one of WHEN, --around and --at or --days")
    if days is not None and (before is not None or after is not None):
        daemon_call.fail("--days shows everything in these days; leave out --before and --after")
    today = times.read_today()
    moment = None if at is None else times.read_local_time(at, today)
    since, until = (None, None) if days is None else times.read_days(days, moment, today)
    if when:
        since, until = times.read_span(" ".join(when), today)
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
        kinds=query.check_kinds(kinds),
        source=client,
        **daemon_call.find_place(project or (None if number is None else "all")),
    )
    terminal = find_screen()
    if terminal.is_terminal:
        lines = _draw_timeline(found, terminal, marks_time=moment is not None)
    else:
        lines = _format_timeline(found, marks_time=moment is not None)
    print_result(found, lines, as_json=as_json)


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


def _draw_timeline(found: dict[str, Any], terminal: Screen, *, marks_time: bool) -> Iterator[str]:
    """Draw the rows in columns under their days and sessions."""
    rows, paint = found["rows"], terminal.paint
    if not rows:
        yield "nothing happened there"
    memories = [{**row["summary"], "contradicted_by": row["contradicted_by"]} for row in rows]
    clocks = [output.format_time(memory["at"])[-5:] for memory in memories]
    columns = MemoryColumns(terminal, memories, clocks)
    last_day, is_marked = "", not marks_time or found["is_span"]
    for row, memory in zip(rows, memories, strict=True):
        at = memory["at"]
        if not is_marked and at >= found["pivot_at"]:
            is_marked = True
            yield f"→ {output.format_time(found['pivot_at'])}"
        day = output.format_date(at)
        if day != last_day:
            yield paint(f"── {output.format_weekday(at)} {day} ", "dim")
        last_day = day
        if row.get("gap_ms"):
            yield paint(f"   … {output.format_duration(row['gap_ms'] / 1000)} idle …", "dim")
        if row["begins_session"]:
            title = output.one_line(row["session_title"] or "without a title")
            yield paint(cut(f"   session “{title}”", terminal.width), "dim")
        lines = list(columns.format(memory))
        yield "→" + lines[0][1:] if row["is_pivot"] else lines[0]
        yield from lines[1:]
    if found.get("note"):
        yield paint(f"({output.format_note(found['note'])})", "dim")
