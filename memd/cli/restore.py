"""`memd restore`: a backup takes the vault's place; what was there is set aside."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memd.cli import backup, door, show
from memd.cli.start import start
from memd.cli.stop import stop
from memd.daemon import lock
from memd.errors import AlreadyRunning
from memd.paths import private_dir

if TYPE_CHECKING:
    from memd.daemon.backup import Restored

_TRIES = 5


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup of a vault.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Check a backup, and put it in the vault's place. The vault that is there now is set aside.

    The daemon leaves for as long as that takes; what agents say meanwhile is kept. What was forgotten
    since the backup was made does not come back. If anything fails, the old vault stays.
    """
    from memd.daemon import backup as backups

    paths, source = door.paths(), file.expanduser().absolute()
    rows = backups.check(paths, str(source))
    memories = show.plural(rows.get("summaries", 0), "memory")
    print(
        f"{show.line(str(file))} is whole: {memories}, {show.plural(rows.get('events', 0), 'event')}"
    )
    if not yes:
        _confirm(paths.vault)
    ran = lock.holder(paths.lock) is not None
    try:
        restored = _restore(source)
    finally:
        if ran:
            print(start())
    if restored.erased:
        erased = show.plural(restored.erased, "memory")
        print(f"{erased} of it had been forgotten since, and did not come back")
    if restored.aside:
        print(f"what was there before: {show.line(restored.aside)}")
    print("restored")


def _restore(source: Path) -> "Restored":
    """Have the daemon leave, and keep every other one out until it is done."""
    from memd.daemon import backup as backups

    paths = door.paths()
    private_dir(paths.data_dir)
    for left in reversed(range(_TRIES)):
        stop()
        now = time.time_ns() // 1_000_000
        try:
            with lock.held(paths.lock, now), backup.progress("copying") as draw:
                return backups.restore(paths, str(source), now, draw)
        except AlreadyRunning:
            # An agent has started it again in between.
            if not left:
                raise
    raise AssertionError


def _confirm(vault: str) -> None:
    if not sys.stdin.isatty():
        door.refuse("nothing was changed; say --yes to mean it")
    if not typer.confirm(f"Put it in the place of the vault {vault!r}?"):
        print("nothing was changed")
        raise typer.Exit(1)
