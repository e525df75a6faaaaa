"""`memd forget`: erase on purpose. Shows what would go, and asks."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, show

_LONG_S = 3_600.0
_NAMED_MAX = 20


def run(  # noqa: PLR0913, PLR0917  # what can be asked for
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="12 or #12.")
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", help="Every memory in which all of these words stand."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="All of it: the beginning of its id.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            help="All of it, or only of it: a name or a path; else what fits is looked for in current, "
            "not in all.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only what happened then or later.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Only what happened then or before.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs; without --yes only what would go.")
    ] = False,
) -> None:
    """Erase memories and the events that nothing else needs. There is no way back."""
    bounds = (query, since, until)
    where = ""
    if project is None and session is None and any(one is not None for one in bounds):
        project, where = "current", " in this project; --project all looks everywhere"
    meant = {
        "ids": door.numbers(ids) if ids else None,
        "query": query,
        "session": session,
        "project": None if project is None else door.place(project),
        "since": since,
        "until": until,
        "directory": door.here(),
    }
    token = (
        None if yes and not dry_run else _ask(meant, where, as_json=as_json, dry_run=dry_run)
    )
    gone = door.call("memd/forget", _LONG_S, **meant, token=token, dry_run=False)
    print(json.dumps(gone, ensure_ascii=False) if as_json else "\n".join(_lines(gone, where)))


def _ask(meant: dict[str, Any], where: str, *, as_json: bool, dry_run: bool) -> str:
    """Show what would go; the token of what was agreed to."""
    plan = door.call("memd/forget", _LONG_S, **meant, dry_run=True)
    print(json.dumps(plan, ensure_ascii=False) if as_json else "\n".join(_lines(plan, where)))
    if as_json or dry_run:
        raise typer.Exit
    if not (plan["summaries"] or plan["events"] or plan["sessions"]):
        raise typer.Exit
    if not sys.stdin.isatty():
        door.refuse("nothing was erased; say --yes to mean it")
    if not typer.confirm("Erase this for good?"):
        print("nothing was erased")
        raise typer.Exit(1)
    token: str = plan["token"]
    return token


def _lines(gone: dict[str, Any], where: str = "") -> Iterator[str]:
    verb = "would forget" if gone["is_dry_run"] else "forgot"
    yield from (f"{verb} {show.headline(summary)}" for summary in gone["summaries"])
    if (more := gone["count"] - len(gone["summaries"])) > 0:
        yield f"{verb} {more:,} more, {show.plural(gone['count'], 'memory')} in all"
    if gone["events"]:
        yield f"{verb} {show.plural(gone['events'], 'event')} that nothing else needs"
    yield from _some(f"{verb} all of the session “{show.line(t)}”" for t in gone["sessions"])
    if gone["kept_events"]:
        count = gone["kept_events"]
        said = "stays, for other memories come from it"
        said = said if count == 1 else "stay, for other memories come from them"
        yield f"{show.plural(count, 'event')} {said}"
    notes = {
        "revived": "shows again, for what hid it is gone",
        "also_in": "comes from the same events and stays",
        "unknown": "does not exist",
    }
    for name, said in notes.items():
        yield from _some(f"#{number} {said}" for number in gone[name])
    yield from _some(f"{path} is a backup and may still hold it" for path in gone["backups"])
    if not (gone["summaries"] or gone["events"] or gone["sessions"] or gone["unknown"]):
        yield f"nothing fits{where}"


def _some(lines: Iterator[str]) -> Iterator[str]:
    """The first few, and how many more there are."""
    every = list(lines)
    yield from every[:_NAMED_MAX]
    if len(every) > _NAMED_MAX:
        yield f"… and {len(every) - _NAMED_MAX:,} more such"
