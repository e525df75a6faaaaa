"""`memd timeline`: what happened around a memory, a time or a session."""

import json
from typing import Annotated, Any

import typer

from memd.cli import door, show


def run(  # noqa: PLR0913  # one parameter per option
    *,
    around: Annotated[
        str | None, typer.Option(metavar="ID", help="A memory: 12 or #12.")
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="A session, by the beginning of its id.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="2026-11-20, yesterday, 3 days ago (UTC)."),
    ] = None,
    before: Annotated[
        int | None, typer.Option(metavar="N", help="How many before; 5 if left out.")
    ] = None,
    after: Annotated[
        int | None, typer.Option(metavar="N", help="How many after; 5 if left out.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="current (all around a memory), all, or a name."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show memories in the order of their events; around now if nothing is given."""
    if sum(place is not None for place in (around, session, at)) > 1:
        door.refuse("give only one of --around, --session and --at")
    number = None if around is None else door.numbers([around])[0]
    found = door.call(
        "memd/timeline",
        id=number,
        session=session,
        at=at,
        before=before,
        after=after,
        project=project or (None if number is None else "all"),
        directory=door.here(),
    )
    print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> list[str]:
    notes = [f"({show.note(found['note'])})"] if found.get("note") else []
    if not found["rows"]:
        return ["nothing happened there", *notes]
    lines = ["   …"] if found["more_before"] else []
    for row in found["rows"]:
        if row.get("gap_ms"):
            lines.append(f"   … {show.span(row['gap_ms'] / 1000)} …")
        memory = row["summary"]
        mark = "→" if row["is_pivot"] else " "
        lines.append(f"{mark}  {show.headline(memory, clock=True)}")
    lines += ["   …"] if found["more_after"] else []
    return [*lines, *notes]
