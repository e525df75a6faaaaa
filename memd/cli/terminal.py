"""Shared parts of commands: common options, printing as text or JSON, confirmation, progress bars."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import typer
from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.output import find_screen, show

JsonOption = Annotated[bool, Option("--json", help="Print all of it as JSON.")]
VerboseOption = Annotated[bool, Option("--verbose", "-v", help="Show all of it.")]
DryRunOption = Annotated[
    bool, Option("--dry-run", help="Show what would change, and change nothing.")
]
YesOption = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
IdArgument = Annotated[str, Argument(metavar="ID", help="A memory: 12 or #12.")]

UpdateBar = Callable[[int, int, str], None]
"""Updates a progress bar: how much is done, how much there is, and a text beside the bar."""


def print_result(result: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result as JSON for programs or as lines for people, who may get a pager."""
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        show(lines, find_screen())


def confirm(question: str, unchanged: str) -> None:
    """Ask for confirmation; without it print what was not done and exit 1."""
    if not sys.stdin.isatty():
        daemon_call.fail(f"{unchanged}; use --yes to confirm without a terminal")
    if not typer.confirm(question):
        print(unchanged)
        raise typer.Exit(1)


@contextlib.contextmanager
def progress_bar(
    description: str, *, unit: str = "B", shows_time_left: bool = True
) -> Iterator[UpdateBar]:
    """Draw a progress bar with its rate on stderr, which must be a terminal; remove it at the end."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn() if shows_time_left else TimeElapsedColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, detail="", rate="")

        def update(done: int, total: int, detail: str) -> None:
            rate = format_rate(bar.tasks[0].speed, unit)
            bar.update(task, completed=done, total=total, detail=detail, rate=rate)

        yield update


def format_rate(per_second: float | None, unit: str) -> str:
    """Format a rate: `12.3 MB/s`, `450 passages/s`; empty while that is not known."""
    if not per_second:
        return ""
    if unit == "B":
        return f"{output.format_size(int(per_second))}/s"
    return f"{per_second:,.0f} {unit}/s"


@contextlib.contextmanager
def waiting(description: str) -> Iterator[None]:
    """Show on a terminal what the daemon is doing and for how long, until it is done; elsewhere nothing."""
    if not sys.stderr.isatty() or os.environ.get("MEMD_PLAIN"):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(f"{description} …", total=None)
        yield
