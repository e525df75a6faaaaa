"""`memd timeline`: what happened around a memory, a time or a session."""

import json
from typing import Annotated, Any

import typer

from memd.cli import door, show


def run(  # noqa: PLR0913  # one parameter per option
    *,
    around: Annotated[str | None, typer.Option(help="A memory's id: 12 or #12.")] = None,
    session: Annotated[
        str | None, typer.Option(help="The beginning of a session's id.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="A time: 2026-11-20, yesterday, 3 days ago.")
    ] = None,
    before: Annotated[int | None, typer.Option(help="How many before.")] = None,
    after: Annotated[int | None, typer.Option(help="How many after.")] = None,
    project: Annotated[str | None, typer.Option(help="all, current, or a name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show memories in the order of their events; around now if nothing is given."""
    number = door.numbers([around])[0] if around else None
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
    if not found["rows"]:
        return ["nothing happened there"]
    lines = ["   …"] if found["more_before"] else []
    for row in found["rows"]:
        if row.get("gap_ms"):
            lines.append(f"   … {show.span(row['gap_ms'] / 1000)} …")
        memory = row["summary"]
        mark = "→" if row["is_pivot"] else " "
        lines.append(f"{mark}  {show.minute(memory['at'])[11:]}  {show.headline(memory)}")
    lines += ["   …"] if found["more_after"] else []
    return [*lines, *([f"({show.line(found['note'])})"] if found.get("note") else [])]
