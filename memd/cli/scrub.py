"""`memd scrub`: take out of the past what should never have been kept. Shows where it is, and asks."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, show

_LONG_S = 24 * 3_600.0
_NOUNS = {"summaries": "memory", "log": "log line"}
"""What people call the rows of a table, where that is not its name."""


def run(
    pattern: Annotated[
        str | None, typer.Argument(help="A regular expression (Python's); - reads it.")
    ] = None,
    secrets: Annotated[
        bool,
        typer.Option("--secrets", help="What memd redacts today, in all that it kept before."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say where it is.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Replace a text, or all secrets, in everything that was kept. The text itself is never shown."""
    if pattern == "-":
        pattern = sys.stdin.readline().rstrip("\n")
    if pattern is not None and secrets:
        door.refuse("give a pattern or --secrets, not both")
    if pattern is None and not secrets:
        door.refuse("give a pattern, or --secrets")
    asked: dict[str, Any] = {"pattern": pattern, "secrets": secrets}
    if not yes or dry_run:
        _ask(asked, dry_run=dry_run)
    print("\n".join(_lines(door.call("memd/scrub", _LONG_S, **asked, dry_run=False))))


def _ask(asked: dict[str, Any], *, dry_run: bool) -> None:
    plan = door.call("memd/scrub", _LONG_S, **asked, dry_run=True)
    print("\n".join(_lines(plan)))
    if dry_run or not plan["rows"]:
        raise typer.Exit
    if not sys.stdin.isatty():
        door.refuse("nothing was changed; say --yes to mean it")
    if not typer.confirm("Replace all of this for good?"):
        print("nothing was changed")
        raise typer.Exit(1)


def _lines(done: dict[str, Any]) -> Iterator[str]:
    verb = "would rewrite" if done["is_dry_run"] else "rewrote"
    for where, count in done["rows"].items():
        told = f"{verb} {show.plural(count, _NOUNS.get(where, where.removesuffix('s')))}"
        # Only memories are called by their numbers.
        shown = done["ids"].get(where, ()) if where == "summaries" else ()
        ids = [f"#{number}" for number in shown] + (["…"] if count > len(shown) else [])
        yield f"{told}: {', '.join(ids)}" if shown else told
    for instead, count in done["found"].items():
        become = "became"
        if done["is_dry_run"]:
            become = "becomes" if count == 1 else "become"
        yield f"{show.plural(count, 'place')} {become} {show.line(instead)}"
    if not done["rows"]:
        yield "found nowhere"
    for where, count in done["stays"].items():
        yield f"stays in {count:,} of {where}: by that it is found; `memd forget` takes it"
    for path in done["backups"]:
        yield f"{path} is a backup and may still hold it"
