"""`memd uninstall`: takes out what `memd install` put in, and nothing else. No memory is touched."""

from typing import Annotated

import typer

from memd.cli import changes


def run(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"{', '.join(changes.PLACES)}.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show what would be changed.")
    ] = False,
) -> None:
    """Disconnect memd again. What it remembers stays."""
    plan = changes.planner(what).uninstall(changes.place())
    if dry_run:
        changes.show(plan)
    else:
        changes.carry_out(plan)
