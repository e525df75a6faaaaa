"""`memd search`: what is known about this, from a shell."""

import json
import shutil
from typing import Annotated, Any

import typer

from memd.cli import door, show
from memd.models import Kind

KINDS = f"One of {', '.join(Kind)}."


def run(  # noqa: PLR0913  # one parameter per option
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
    answer = door.call(
        "memd/search",
        query=" ".join(words),
        project=project,
        k=k,
        kinds=known_kinds(kind),
        profile=profile,
        include_superseded=superseded or None,
        explain=explain or None,
        directory=door.here(),
    )
    if as_json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print("\n".join(_lines(answer, explain=explain)))
    if explain and not as_json:
        from memd.cli import trace

        print()
        trace.draw(answer)


def known_kinds(given: list[str] | None) -> list[str] | None:
    """Check the kinds that were asked for; None if that is every kind."""
    for kind in given or ():
        if kind not in tuple(Kind):
            door.refuse(f"--kind: there is no {kind!r}; there are {', '.join(Kind)}")
    return given or None


def _lines(answer: dict[str, Any], *, explain: bool) -> list[str]:
    width = min(shutil.get_terminal_size().columns, 100)
    lines = []
    for hit in answer["hits"]:
        lines += [show.headline(hit), *show.snippet(hit["snippet"], width=width)]
        lines += [show.score(hit)] if explain else []
    lines += [] if answer["hits"] else ["nothing found"]
    lines += [f"({show.note(note)})" for note in answer.get("notes", ())]
    if answer.get("suppressed"):
        lines.append(f"(hidden: {show.counts(answer['suppressed'])})")
    lines += [
        f"({leg} could not answer: {show.line(why)})"
        for leg, why in answer.get("degraded", {}).items()
    ]
    return lines
