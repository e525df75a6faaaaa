"""context, injected."""

import json
from typing import Annotated, Any

import typer

from memd.cli import daemon_call, output

# MERGED from memd.cli.context:
# MERGED `memd context`: what memd would show an agent unasked, here and now.


MOMENTS = ("startup", "resume", "clear", "compact", "prompt")


def run_context(
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
        daemon_call.refuse(f"--moment: there is no {moment!r}; there are {', '.join(MOMENTS)}")
    found = daemon_call.call(
        "memd/context",
        prompt=prompt,
        session=session,
        moment=moment,
        explain=explain,
        directory=daemon_call.here(),
    )
    print(
        json.dumps(found, ensure_ascii=False)
        if as_json
        else "\n".join(_lines(found, explain=explain))
    )


def _lines(found: dict[str, Any], *, explain: bool) -> list[str]:
    lines = (
        [f"nothing would be shown: {output.line(found['reason'])}"]
        if found["text"] is None
        else [output.clean(line) for line in found["text"].splitlines()]
    )
    if found["text"] is not None:
        count = output.plural(sum(one["shown"] for one in found["memories"]), "memory")
        lines.append(f"({count}, about {output.plural(found['tokens'], 'token')})")
    if explain and found["memories"]:
        lines += ["", "Candidates:"]
        lines += [_candidate(one) for one in found["memories"]]
    return lines


def _candidate(one: dict[str, Any]) -> str:
    mark = "+" if one["shown"] else "-"
    return f"{mark} {output.headline(one)}\n    {output.line(one['why'])}"


# MERGED from memd.cli.injected:
# MERGED `memd injected`: what a session was shown unasked, when and why.


def run_injected(
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
    found = daemon_call.call("memd/injected", session=session, directory=daemon_call.here())
    print(
        json.dumps(found, ensure_ascii=False) if as_json else "\n".join(_lines_injected(found))
    )


def _lines_injected(found: dict[str, Any]) -> list[str]:
    lines = [f"session {found['session']}: {output.line(found['title'] or 'without a prompt')}"]
    if not found["injections"]:
        return [*lines, "it was shown nothing"]
    last = None
    for one in found["injections"]:
        if (one["at"], one["moment"]) != last:
            last = (one["at"], one["moment"])
            lines.append(f"{output.minute(one['at'])}  {one['moment']}")
        lines.append(f"  #{one['id']} {one['kind']}  {output.line(one['title'])}")
        lines.append(f"    {output.line(one['reason'])}")
    return lines
