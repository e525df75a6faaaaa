"""What commands share: common options, printing as text or JSON, confirmation, progress bars."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import typer
from typer import Argument, Option

from memd.cli import daemon_call

JsonOption = Annotated[bool, Option("--json", help="Print all of it as JSON.")]
DryRunOption = Annotated[
    bool, Option("--dry-run", help="Show what would change, and change nothing.")
]
YesOption = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
IdArgument = Annotated[str, Argument(metavar="ID", help="A memory: 12 or #12.")]

UpdateBar = Callable[[int, int, str], None]
"""Updates a progress bar: how much is done, how much there is, and a text beside the bar."""


def print_result(result: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result as JSON for programs or as lines for people."""
    print(json.dumps(result, ensure_ascii=False) if as_json else "\n".join(lines))


def confirm(question: str, unchanged: str) -> None:
    """Ask for confirmation; without it print what was not done and exit 1."""
    if not sys.stdin.isatty():
        daemon_call.fail(f"{unchanged}; use --yes to confirm without a terminal")
    if not typer.confirm(question):
        print(unchanged)
        raise typer.Exit(1)


@contextlib.contextmanager
def progress_bar(description: str, *, shows_time_left: bool = True) -> Iterator[UpdateBar]:
    """Draw a progress bar on stderr, which must be a terminal; remove it at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        *([TimeRemainingColumn()] if shows_time_left else []),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, detail="")
        yield lambda done, total, detail: bar.update(
            task, completed=done, total=total, detail=detail
        )
