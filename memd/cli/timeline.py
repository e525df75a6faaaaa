"""`memd timeline`: what happened around a memory, a time or a session, or in the last days; in local time.

Days are the days of the clock on the wall: one may have 23 or 25 hours, so it is told to the daemon by
its first and its last moment.
"""

import datetime as dt
import json
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, show
from memd.cli.search import known_kinds

_DAY = dt.timedelta(days=1)


def run(  # noqa: PLR0913  # one parameter per option
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
        door.refuse("give only one of --around and --at or --days")
    if days is not None and (before is not None or after is not None):
        door.refuse("--days shows all of these days; leave out --before and --after")
    today = dt.datetime.fromtimestamp(time.time()).date()  # noqa: DTZ006  # the day on the wall
    moment = None if at is None else local_time(at, today)
    since, until = (None, None) if days is None else span(days, moment, today)
    number = None if around is None else door.numbers([around])[0]
    found = door.call(
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
        directory=door.here(),
    )
    print(
        json.dumps(found, ensure_ascii=False)
        if as_json
        else "\n".join(_lines(found, is_at=at is not None))
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
        door.refuse(f"--at with --days: a date such as 2026-11-20, not {moment!r}")
    last = today if moment is None else dt.datetime.fromtimestamp(moment / 1000).date()  # noqa: DTZ006
    try:
        return _midnight(last - (days - 1) * _DAY), _midnight(last + _DAY) - 1
    except (ValueError, OverflowError):
        door.refuse(f"--at: {last} is too far away for --days")


def _midnight(day: dt.date) -> int:
    return _ms(dt.datetime.combine(day, dt.time()))


def _ms(moment: dt.datetime) -> int:
    """Milliseconds of a time; without a zone, of the one here, as it was on that day."""
    return max(0, int(moment.timestamp() * 1000))


def _lines(found: dict[str, Any], *, is_at: bool = False) -> list[str]:
    """Tell the rows; with `is_at`, a line of its own for the moment that they are around."""
    notes = [f"({show.note(found['note'])})"] if found.get("note") else []
    if not found["rows"]:
        return ["nothing happened there", *notes]
    lines = ["   …"] if found["more_before"] else []
    last = ""
    moment = [f"→  {show.minute(found['pivot_at'])}"] if is_at and not found["is_span"] else []
    for row in found["rows"]:
        if moment and row["summary"]["at"] >= found["pivot_at"]:
            lines.append(moment.pop())
        day = show.day(row["summary"]["at"])
        if found["is_span"] and day != last:
            lines.append(f"── {show.weekday(row['summary']['at'])} {day}")
        last = day
        lines.extend(_row(row))
    lines += moment
    lines += ["   …"] if found["more_after"] else []
    return [*lines, *notes]


def _row(row: dict[str, Any]) -> Iterator[str]:
    if row.get("gap_ms"):
        yield f"   … {show.span(row['gap_ms'] / 1000)} idle …"
    if row["begins_session"]:
        yield f"   ── session “{show.line(row['session_title'] or 'without a title')}”"
    mark = "→" if row["is_pivot"] else " "
    against = ", ".join(f"#{number}" for number in row["contradicted_by"])
    noted = f"  (contradicted by {against})" if against else ""
    yield f"{mark}  {show.headline(row['summary'], clock=True)}{noted}"
