"""`memd context`: what memd would show an agent unasked, here and now."""

import json
from typing import Annotated, Any

import typer

from memd.cli import door, show

MOMENTS = ("startup", "resume", "clear", "compact", "prompt")


def run(
    *,
    prompt: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What would be asked; else at the start.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="ID", help="For this session, by the beginning of its id."),
    ] = None,
    moment: Annotated[
        str | None, typer.Option(metavar="MOMENT", help=f"{', '.join(MOMENTS)}.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Every candidate, with why it is in or out.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show what an agent would be shown unasked. Nothing is recorded."""
    if moment is not None and moment not in MOMENTS:
        door.refuse(f"--moment: there is no {moment!r}; there are {', '.join(MOMENTS)}")
    found = door.call(
        "memd/context",
        prompt=prompt,
        session=session,
        moment=moment,
        explain=explain,
        directory=door.here(),
    )
    print(
        json.dumps(found, ensure_ascii=False)
        if as_json
        else "\n".join(_lines(found, explain=explain))
    )


def _lines(found: dict[str, Any], *, explain: bool) -> list[str]:
    lines = (
        [f"nothing would be shown: {show.line(found['reason'])}"]
        if found["text"] is None
        else [show.clean(line) for line in found["text"].splitlines()]
    )
    if found["text"] is not None:
        count = show.plural(sum(one["shown"] for one in found["memories"]), "memory")
        lines.append(f"({count}, about {show.plural(found['tokens'], 'token')})")
    if explain and found["memories"]:
        lines += ["", "Candidates:"]
        lines += [_candidate(one) for one in found["memories"]]
    return lines


def _candidate(one: dict[str, Any]) -> str:
    mark = "+" if one["shown"] else "-"
    return f"{mark} {show.headline(one)}\n    {show.line(one['why'])}"
