"""`memd injected`: what a session was shown unasked, when and why."""

import json
from typing import Annotated, Any

import typer

from memd.cli import door, show


def run(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="The session, by the beginning of its id; if left out, the latest one here.",
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show what a session was shown unasked, oldest first."""
    found = door.call("memd/injected", session=session, directory=door.here())
    print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"session {found['session']}: {show.line(found['title'] or 'without a prompt')}"]
    if not found["injections"]:
        return [*lines, "it was shown nothing"]
    last = None
    for one in found["injections"]:
        if (one["at"], one["moment"]) != last:
            last = (one["at"], one["moment"])
            lines.append(f"{show.minute(one['at'])}  {one['moment']}")
        lines.append(f"  #{one['id']} {one['kind']}  {show.line(one['title'])}")
        lines.append(f"    {show.line(one['reason'])}")
    return lines
