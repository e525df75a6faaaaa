"""`memd scrub`: take out of the past what should never have been kept. Shows where it is, and asks."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, show

_LONG_S = 24 * 3_600.0


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
    if (pattern is None) is not secrets:
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
        ids = ", ".join(f"#{number}" for number in done["ids"].get(where, ()))
        more = ", …" if ids and count > len(done["ids"][where]) else ""
        yield f"{verb} {count:,} of the {where}" + (f": {ids}{more}" if ids else "")
    if done["found"]:
        yield f"with {show.counts(done['found'])}"
    if not done["rows"]:
        yield "found nowhere"
    for where, count in done["stays"].items():
        yield f"stays in {count:,} of {where}: by that it is found; `memd forget` takes it"
    for path in done["backups"]:
        yield f"{path} is a backup and may still hold it"
