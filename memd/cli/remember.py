"""`memd remember`: keep this, as it is said."""

import json
from typing import Annotated, Any

import typer

from memd.cli import door, show
from memd.cli.search import KINDS


def run(  # noqa: PLR0913  # one parameter per option
    words: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="What to remember, complete in itself.")
    ],
    *,
    title: Annotated[str | None, typer.Option(help="Else the beginning of the text.")] = None,
    kind: Annotated[str | None, typer.Option(help=f"note if left out. {KINDS}")] = None,
    topic_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="A slot such as build.command; a new value replaces the old."
        ),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="current (where you stand) if left out; global, or a name."),
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="12h, 30d, 2w: not shown any more after that."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Keep something in memory."""
    kept = door.call(
        "memd/remember",
        text=" ".join(words),
        title=title,
        kind=kind,
        topic_key=topic_key,
        project=project,
        expires_in=expires_in,
        directory=door.here(),
    )
    if as_json:
        print(json.dumps(kept, ensure_ascii=False))
        return
    outcome = {
        "created": "remembered",
        "superseded": "remembered",
        "duplicate": "known already; now firmer",
        "revived": "revived",
    }
    replaced = "".join(f", replaces #{number}" for number in kept.get("superseded", ()))
    # As it stands in the vault: where it was put, and without what was redacted.
    (memory,) = door.call("memd/get", ids=[kept["id"]])["memories"]
    said = outcome.get(kept["outcome"], show.line(kept["outcome"]))
    print(f"#{kept['id']} {said} in {show.line(memory['project'])}{replaced}")
    print(f"    {show.line(memory['title'])}")
    if kept["candidates"]:
        print("\n".join(_open(kept["id"], kept["candidates"])))


def _open(number: int, candidates: list[dict[str, Any]]) -> list[str]:
    """Ask what the new memory is to those that are like it."""
    lines = ["  like it, and nothing says which holds:"]
    for one in candidates:
        lines += [
            f"    #{one['id']} {show.line(one['title'])}",
            f"      {show.line(one['finding'])}",
        ]
    first = candidates[0]["id"]
    judge = door.typed(f"judge {number} {first} supersedes --reason WHY")
    if candidates[0]["pinned_at"]:
        unpin = door.typed(f"pin {first} --off")
        return [*lines, f"  #{first} is pinned: {unpin} first, then {judge}"]
    return [*lines, f"  say what it is: {judge}"]
