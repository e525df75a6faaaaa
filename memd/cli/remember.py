"""`memd remember`: keep this, as it is said."""

import json
from typing import Annotated

import typer

from memd.cli import door, show


def run(  # noqa: PLR0913  # one parameter per option
    text: Annotated[str, typer.Argument(help="What to remember.")],
    *,
    title: Annotated[str | None, typer.Option(help="Else the beginning of the text.")] = None,
    kind: Annotated[str | None, typer.Option(help="decision, preference, fact, note …")] = None,
    topic_key: Annotated[
        str | None,
        typer.Option(help="A slot such as build.command; a new value replaces the old."),
    ] = None,
    project: Annotated[str | None, typer.Option(help="current, global, or a name.")] = None,
    expires_in: Annotated[str | None, typer.Option(help="30d, 12h: forgotten by then.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Keep something in memory."""
    kept = door.call(
        "memd/remember",
        text=text,
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
        "duplicate": "known already; now firmer",
        "revived": "revived",
    }
    replaced = "".join(f", replaces #{number}" for number in kept.get("superseded", ()))
    print(f"#{kept['id']} {outcome.get(kept['outcome'], show.line(kept['outcome']))}{replaced}")
