"""`memd restore`: a backup, or what can be read of a damaged vault, takes the vault's place.

What was there is set aside.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from memd.cli import backup, door, show
from memd.cli.start import start
from memd.cli.stop import stop
from memd.daemon import lock, process
from memd.errors import AlreadyRunning
from memd.paths import private_dir

if TYPE_CHECKING:
    from memd.store.copies import Progress

T = TypeVar("T")
_TRIES = 5


def run(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="A backup of a vault; else the last that is whole."
        ),
    ] = None,
    salvage: Annotated[
        bool,
        typer.Option(
            "--salvage",
            help="Take what can be read of FILE, or of the vault itself, if damaged.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Check a backup, and put it in the vault's place. The vault that is there now is set aside.

    Of a damaged vault `--salvage` makes one of all that can be read of it, and counts what cannot.

    The daemon leaves for as long as that takes; what agents say meanwhile is kept. What was forgotten
    since the backup was made does not come back. If anything fails, the old vault stays.
    """
    from memd.daemon import backup as backups

    paths = door.paths()
    if salvage:
        _salvage(None if file is None else str(file.expanduser().absolute()), yes=yes)
        return
    source = _last() if file is None else file.expanduser().absolute()
    rows = backups.check(paths, str(source))
    memories = show.plural(rows.get("summaries", 0), "memory")
    print(
        f"{show.line(str(file or source))} is whole: {memories}, {show.plural(rows.get('events', 0), 'event')}"
    )
    if not yes:
        _confirm(
            f"Put it in the place of the vault {paths.vault!r}?"
            " What is only in that will be missing; its file is set aside."
        )
    with _daemon_away():
        restored = _alone(lambda now, draw: backups.restore(paths, str(source), now, draw))
        if restored.erased:
            erased = show.plural(restored.erased, "memory")
            print(f"{erased} of it had been forgotten since, and did not come back")
        if restored.aside:
            print(f"what was there before: {show.line(restored.aside)}")
        print("restored")


def _last() -> Path:
    """The last backup that is whole."""
    from memd.daemon import backup as backups

    paths = door.paths()
    found = backups.newest(paths, time.time_ns() // 1_000_000)
    if found is None and not Path(paths.database).exists():
        door.refuse(
            f"there is no whole backup in {backups.place(paths)}, and no vault {paths.vault!r}; name a FILE"
        )
    if found is None:
        door.refuse(
            f"there is no whole backup in {backups.place(paths)}; name a FILE, or take what can still"
            " be read of the vault with `memd restore --salvage`"
        )
    return Path(found.path)


def _salvage(file: str | None, *, yes: bool) -> None:
    from memd.daemon import backup as backups

    paths = door.paths()
    backups.check_damaged(paths, file)
    if not yes:
        what = show.line(file or "the vault itself")
        _confirm(f"Make the vault {paths.vault!r} anew of what can be read of {what}?")
    with _daemon_away():
        made = _alone(lambda now, _: backups.salvage(paths, file, now))
    for table, count in made.kept.items():
        if missing := made.lost.get(table, 0):
            print(f"{table}: {count:,} kept, at least {missing:,} could not be read")
        elif count:
            print(f"{table}: {count:,}, all of them")
    if made.aside:
        print(f"what was there before: {show.line(made.aside)}")
    print("salvaged; the index is made anew when the daemon runs")


@contextlib.contextmanager
def _daemon_away() -> Iterator[None]:
    """If a daemon runs, it runs again afterwards, whatever happens."""
    holder = lock.holder(door.paths().lock)
    ran = holder is not None and not holder.why
    try:
        yield
    finally:
        if ran:
            print(start())


def _alone(work: "Callable[[int, Progress], T]") -> T:
    """Have the daemon leave, and keep every other one out until it is done."""
    paths = door.paths()
    private_dir(paths.data_dir)
    for left in reversed(range(_TRIES)):
        stop()
        now = time.time_ns() // 1_000_000
        try:
            with lock.held(paths.lock, now, "restore"), backup.progress("copying") as draw:
                done = work(now, draw)
                process.note(paths.log, "vault_replaced", now)
                return done
        except AlreadyRunning:
            # An agent has started it again in between.
            if not left:
                raise
    raise AssertionError


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        door.refuse("nothing was changed; say --yes to mean it")
    if not typer.confirm(question):
        print("nothing was changed")
        raise typer.Exit(1)
