"""`memd pin`: this one matters, permanently."""

from typing import Annotated

import typer

from memd.cli import door, show


def run(
    number: Annotated[str, typer.Argument(metavar="ID", help="12 or #12.")],
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
) -> None:
    """Keep a memory on top: never superseded, always preferred."""
    memory = door.call("memd/pin", id=door.numbers([number])[0], pinned=not off)
    print(show.headline(memory))
    if (above := memory["superseded_by"]) and memory["pinned_at"]:
        undo = door.typed(f"judge {above} {memory['id']} --undo")
        print(f"  it stays hidden by #{above}; {undo} shows it")
