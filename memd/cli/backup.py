"""`memd backup`: a copy of the vault, proved whole, while everything goes on.

Needs no daemon, and holds none up.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from memd.cli import door, show

if TYPE_CHECKING:
    from memd.daemon.backup import Backup
    from memd.store.copies import Progress


def run(
    to: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where it shall lie; else beside the vault. Only there `memd forget` names it.",
        ),
    ] = None,
    keep: Annotated[
        int, typer.Option(min=1, help="How many to keep there; older ones go.")
    ] = 5,
    listed: Annotated[
        bool, typer.Option("--list", help="Only list the backups that there are.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Copy the vault to a dated file, check the copy, and remove the oldest ones.

    `memd restore FILE` puts one back. What a restore has set aside stays until you remove it.
    """
    from memd.daemon import backup

    paths = door.paths()
    if listed:
        found = backup.listed(to or backup.place(paths), paths.vault)
        _list(found, to or backup.place(paths), as_json=as_json)
        return
    with progress("copying") as draw:
        made = backup.make(paths, to, keep, time.time_ns() // 1_000_000, draw)
    if as_json:
        print(json.dumps({**_plain(made.backup), "pruned": list(made.pruned)}))
        return
    memories = show.plural(made.rows["summaries"], "memory")
    print(f"{show.line(made.backup.path)}: {show.size(made.backup.size)}, {memories}, checked")
    for path in made.pruned:
        print(f"removed {show.line(path)}")


def _list(found: "list[Backup]", where: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"backups": [_plain(one) for one in found]}))
        return
    if not found:
        print(f"no backups in {show.line(where)}")
    for one in found:
        aside = "  (set aside by a restore)" if one.is_aside else ""
        print(f"{show.minute(one.at)}  {show.size(one.size):>9}  {show.line(one.path)}{aside}")


def _plain(one: "Backup") -> dict[str, object]:
    return {"path": one.path, "at": one.at, "size": one.size, "is_aside": one.is_aside}


@contextlib.contextmanager
def progress(words: str) -> Iterator["Progress"]:
    """Draw a bar on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
