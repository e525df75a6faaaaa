"""`memd forget`: erase on purpose. Shows what would go, and asks."""

import json
import sys
from typing import Annotated, Any

import typer

from memd.cli import door, show


def run(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="12 or #12.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs; without --yes only what would go.")
    ] = False,
) -> None:
    """Erase memories and the events that nothing else needs. There is no way back."""
    numbers = door.numbers(ids)
    if not yes:
        _ask(numbers, as_json=as_json)
    gone = door.call("memd/forget", ids=numbers, dry_run=False)
    print(json.dumps(gone, ensure_ascii=False) if as_json else "\n".join(_lines(gone)))


def _ask(numbers: list[int], *, as_json: bool) -> None:
    plan = door.call("memd/forget", ids=numbers, dry_run=True)
    if as_json:
        print(json.dumps(plan, ensure_ascii=False))
        raise typer.Exit
    print("\n".join(_lines(plan)))
    if not plan["summaries"]:
        raise typer.Exit(1)
    if not sys.stdin.isatty():
        door.refuse("nothing was erased; say --yes to mean it")
    if not typer.confirm("Erase this for good?"):
        print("nothing was erased")
        raise typer.Exit(1)


def _lines(gone: dict[str, Any]) -> list[str]:
    verb = "would forget" if gone["is_dry_run"] else "forgot"
    lines = [f"{verb} {show.headline(summary)}" for summary in gone["summaries"]]
    if gone["events"]:
        lines.append(f"{verb} {show.plural(gone['events'], 'event')} that nothing else needs")
    notes = {
        "revived": "shows again, for what hid it is gone",
        "also_in": "comes from the same events and stays",
        "unknown": "does not exist",
    }
    lines += [f"#{number} {said}" for name, said in notes.items() for number in gone[name]]
    return lines
