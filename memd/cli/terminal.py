"""Shared parts of commands: common options, times, completion, printing as text or JSON, confirmation, progress bars.

A shell takes what it completes into its command line as it is: bash runs `$(…)` in a name when the line is entered, zsh
while it completes. A project has the name of a directory, which anybody may have chosen, so names are left out that a
shell would read as more than a word.
"""

import contextlib
import datetime as dt
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from memd.cli import daemon_call
from memd.errors import MemdError
from memd.models import Kind
from memd.paths import Paths
from memd.time_expressions import parse_end, parse_start

# ── Completion: never an error, never a wait ─────────────────────────────────────────────────────

_PATIENCE_S = 0.5
_PLAIN_WORD = re.compile(r"[\w./][\w.@%+=/-]*")
Complete = Callable[[str], list[str]]


def complete_kinds(incomplete: str) -> list[str]:
    """The kinds of memories."""
    return _keep(Kind, incomplete)


def complete_projects(incomplete: str) -> list[str]:
    """`current`, `all`, and the projects of the vault, if a daemon answers."""
    names: list[str] = []
    with contextlib.suppress(MemdError, OSError, ValueError):
        found = daemon_call.call("memd/projects", _PATIENCE_S, counts=False)
        names = [str(one["name"]) for one in found["projects"]]
    return _keep(["current", "all", *names], incomplete)


def complete_vaults(incomplete: str) -> list[str]:
    """The vaults that there are."""
    vaults: list[str] = []
    with contextlib.suppress(OSError, ValueError):
        vaults = sorted(path.stem for path in Path(Paths(os.environ).database).parent.glob("*.db"))
    return _keep(vaults, incomplete)


def complete_from(*words: str) -> Complete:
    """Complete a word from these."""
    return lambda incomplete: _keep(words, incomplete)


def _keep(words: Iterable[str], incomplete: str) -> list[str]:
    return [
        word
        for word in dict.fromkeys(words)
        if word.startswith(incomplete) and _PLAIN_WORD.fullmatch(word)
    ]


# ── Options ──────────────────────────────────────────────────────────────────────────────────────

VerboseOption = Annotated[bool, Option("--verbose", "-v", help="Show all of it.")]
DryRunOption = Annotated[
    bool, Option("--dry-run", help="Show what would change, and change nothing.")
]
YesOption = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
IdArgument = Annotated[str, Argument(metavar="ID", help="A memory: 12 or #12.")]
ProjectOption = Annotated[
    str,
    Option(
        help="current (this project and global), all, or a name.", autocompletion=complete_projects
    ),
]
KINDS = f"One of {', '.join(Kind)}."
KindsOption = Annotated[
    list[str] | None,
    Option(
        "--kind", help=f"Only this kind; may be repeated. {KINDS}", autocompletion=complete_kinds
    ),
]
ClientOption = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="Only what this agent left: claude-code, codex, copilot, cursor, opencode, pi.",
    ),
]


def check_kinds(kinds: list[str] | None) -> list[str] | None:
    """Exit with a message if a kind does not exist; return None for every kind."""
    for kind in kinds or ():
        if kind not in tuple(Kind):
            daemon_call.fail(f"--kind: there is no {kind!r}; there are {', '.join(Kind)}")
    return kinds or None


# ── Times, as people type them in their own time zone ────────────────────────────────────────────

TIMES = "An ISO date or time, epoch milliseconds, or today, yesterday, 7d, 3h, 2w, last week."
_DAY = dt.timedelta(days=1)


def read_today() -> dt.date:
    """The local day."""
    return dt.datetime.fromtimestamp(time.time()).date()  # noqa: DTZ006  # the local day


def read_local_time(text: str, today: dt.date) -> str | int:
    """Read a local date or time as UTC milliseconds; return anything else for the daemon to read."""
    named = {"today": today, "yesterday": today - _DAY}.get(text.strip().lower())
    if named is not None:
        return _to_milliseconds(named)
    try:
        return _to_milliseconds(dt.datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return text


def read_local_end(text: str, today: dt.date) -> str | int:
    """Read a local time, or the last millisecond of a local day, as UTC milliseconds; return anything else."""
    named = {"today": today, "yesterday": today - _DAY}.get(text.strip().lower())
    try:
        day = named or dt.date.fromisoformat(text.strip())
        return _to_milliseconds(day + _DAY) - 1
    except (ValueError, OverflowError):
        return read_local_time(text, today)


def read_days(days: int, moment: str | int | None, today: dt.date) -> tuple[int, int]:
    """Return the first and the last millisecond of N local days that end with `moment` or today.

    A local day has 23 or 25 hours when the clock changes, so the daemon could not compute this.
    """
    if isinstance(moment, str):
        daemon_call.fail(f"--at with --days takes a date such as 2026-11-20, not {moment!r}")
    last = today if moment is None else dt.datetime.fromtimestamp(moment / 1000).date()  # noqa: DTZ006
    try:
        return _to_milliseconds(last - (days - 1) * _DAY), _to_milliseconds(last + _DAY) - 1
    except (ValueError, OverflowError):
        daemon_call.fail(f"--at: {last} is too far away for --days")


def read_span(text: str, today: dt.date) -> tuple[int, int]:
    """Return the first and the last millisecond of a local day, a week, a month; of an age such as 7d, until now.

    Both are the same for an exact time.
    """
    now, begins = int(time.time() * 1000), read_local_time(text, today)
    since = parse_start(begins, now, "WHEN")
    until = parse_end(read_local_end(text, today), now, "WHEN")
    return since, now if since == until and isinstance(begins, str) else until


def _to_milliseconds(moment: dt.date) -> int:
    """Convert a time, or the start of a day, to UTC milliseconds; without a zone it is local."""
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    return max(0, int(moment.timestamp() * 1000))


# ── What is printed and asked ────────────────────────────────────────────────────────────────────

UpdateBar = Callable[[int, int, str], None]
"""Updates a progress bar: how much is done, how much there is, and a text beside the bar."""


_wants_json = ContextVar("wants_json", default=False)
JsonOption = Annotated[bool, Option("--json", help="Print all of it as JSON.")]


def wants_json() -> bool:
    """Return whether the command was given `--json`."""
    return _wants_json.get()


def note_json(is_given: bool) -> None:
    """Take note of `--json`, which `cli/app.py` adds to each command with a result."""
    _wants_json.set(is_given)


def print_result(result: object, lines: Iterable[str]) -> None:
    """Print a result as JSON for programs or as lines for people."""
    if wants_json():
        print(json.dumps(result, ensure_ascii=False))
    else:
        print("\n".join(lines))


def confirm(question: str, unchanged: str) -> None:
    """Ask for confirmation; without it print what was not done and exit 1."""
    if not sys.stdin.isatty():
        daemon_call.fail(f"{unchanged}; use --yes to confirm without a terminal")
    if not typer.confirm(question):
        print(unchanged)
        raise typer.Exit(1)


@contextlib.contextmanager
def progress_bar(description: str) -> Iterator[UpdateBar]:
    """Draw a progress bar with bytes a second on stderr, and remove it at the end; where that is no terminal nothing."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[detail]}"),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, detail="")
        yield lambda done, total, detail: bar.update(
            task, completed=done, total=total, detail=detail
        )


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
