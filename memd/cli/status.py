"""`memd status`: is it healthy? Here for the help page; `__main__` goes to health.py directly."""

from typing import Annotated

import typer

from memd.cli import health


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Tell how memd is. Exit status: 0 healthy, 1 degraded, 2 not running."""
    raise typer.Exit(health.report(as_json=as_json))
