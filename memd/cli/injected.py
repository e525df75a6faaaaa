"""`memd injected`: what a session was shown unasked, when and why."""

import json
from typing import Annotated, Any

import typer

from memd.cli import door, show


def run(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The session, by the beginning of its id.")
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show what a session was shown unasked, oldest first."""
    found = door.call("memd/injected", session=session)
    print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> list[str]:
    if not found["injections"]:
        return ["this session was shown nothing"]
    lines: list[str] = []
    last = None
    for one in found["injections"]:
        if (one["at"], one["moment"]) != last:
            last = (one["at"], one["moment"])
            lines.append(f"{show.minute(one['at'])}  {one['moment']}")
        lines.append(f"  #{one['id']} {one['kind']}  {show.line(one['title'])}")
        lines.append(f"    {show.line(one['reason'])}")
    return lines
